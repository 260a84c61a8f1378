//! The Range field: the requested bytes of a representation.
//!
//! Source: RFC 9110 section 14. Fields are ignored and refused by the rules of nginx's range
//! filter. Nothing here can overflow: positions above 2^63 - 1 are not satisfiable.

use super::{is_ows, trim_ows};
use std::ops::Range;

/// Parsed value of a Range field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// Ignore the field and send all (200).
    None,
    /// One range (206).
    One(Range<u64>),
    /// Several ranges in the requested order (206, multipart/byteranges).
    Many(Vec<Range<u64>>),
    /// No range can be sent (416).
    NotSatisfiable,
}

/// Parses the value of a Range field for a representation of `size` bytes. Returned ranges are never empty and are
/// within `0..size`.
///
/// `max_ranges` is the directive; 0 ignores the field, [`UNLIMITED_RANGES`] or more means it was
/// not set. The field is also ignored if there are more ranges, if the sum of overlapping ranges
/// exceeds the representation, or if there are many small ranges without a limit set (RFC 9110
/// section 14.2 permits it).
#[must_use]
pub fn parse_range(value: &[u8], size: u64, max_ranges: u64) -> Ranges {
    let unit = value.get(..UNIT.len()).unwrap_or_default();
    if max_ranges == 0 || value.len() <= UNIT.len() || !unit.eq_ignore_ascii_case(UNIT) {
        return Ranges::None;
    }
    let mut specs = Specs {
        rest: &value[UNIT.len()..],
    };
    let mut one = None;
    let mut many = Vec::new();
    let mut sum = 0_u128;
    specs.skip_separators();
    loop {
        let Some(spec) = specs.next_spec() else {
            return Ranges::NotSatisfiable;
        };
        match spec.within(size) {
            Some(range) => {
                sum += u128::from(range.end - range.start);
                if (many.len() + usize::from(one.is_some())) as u64 == max_ranges {
                    return Ranges::None;
                }
                if let Some(first) = one.replace(range) {
                    many.push(first);
                }
            }
            None if spec.starts_at_zero(size) => return Ranges::None,
            None => {}
        }
        specs.skip_separators();
        if specs.rest.is_empty() {
            break;
        }
    }
    let Some(last) = one else {
        return Ranges::NotSatisfiable;
    };
    if many.is_empty() {
        return Ranges::One(last);
    }
    many.push(last);
    if sum > u128::from(size)
        || (max_ranges >= UNLIMITED_RANGES && too_costly(many.len(), sum, size))
    {
        return Ranges::None;
    }
    Ranges::Many(many)
}

/// Whether the parts' own heads make a multipart answer larger than the whole.
fn too_costly(ranges: usize, sum: u128, size: u64) -> bool {
    sum + ranges as u128 * PART_HEAD_BYTES > u128::from(size) + SLACK_BYTES
}

/// One range-spec: `first-`, `first-last` or `-suffix`.
#[derive(Clone, Copy)]
enum Spec {
    From(u64),
    Between(u64, u64),
    Suffix(u64),
}

impl Spec {
    /// The bytes of a representation of `size` bytes; `None` if there are none.
    fn within(self, size: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first) => first..size,
            Self::Between(first, last) => first..size.min(last.saturating_add(1)),
            Self::Suffix(len) => size.saturating_sub(len)..size,
        };
        (range.start < range.end).then_some(range)
    }

    /// Whether the range begins with the first byte. If there is no such byte, the representation is empty (or the
    /// range runs backwards from zero), and it is sent whole.
    fn starts_at_zero(self, size: u64) -> bool {
        match self {
            Self::From(first) | Self::Between(first, _) => first == 0,
            Self::Suffix(len) => len >= size,
        }
    }
}

/// The list of range-specs not read yet.
struct Specs<'a> {
    rest: &'a [u8],
}

impl Specs<'_> {
    /// Returns the next range-spec; `None` if the text is none.
    fn next_spec(&mut self) -> Option<Spec> {
        let spec = if self.eat(b'-') {
            Spec::Suffix(self.number()?)
        } else {
            let first = self.number()?;
            self.skip_spaces();
            if !self.eat(b'-') {
                return None;
            }
            self.skip_spaces();
            if self.is_at_end() {
                return Some(Spec::From(first));
            }
            Spec::Between(first, self.number()?)
        };
        self.is_at_end().then_some(spec)
    }

    /// Skips commas and white space: a list may have empty elements (RFC 9110 section 5.6.1.2).
    fn skip_separators(&mut self) {
        while let [byte, rest @ ..] = self.rest
            && (*byte == b',' || is_ows(*byte))
        {
            self.rest = rest;
        }
    }

    /// Returns whether a comma or the end of the list follows, perhaps after white space.
    fn is_at_end(&self) -> bool {
        matches!(trim_ows(self.rest), [] | [b',', ..])
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return None;
        }
        let (text, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let number = text.iter().try_fold(0_u64, |number, byte| {
            number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
        })?;
        (number <= i64::MAX as u64).then_some(number)
    }

    fn eat(&mut self, wanted: u8) -> bool {
        match self.rest.split_first() {
            Some((byte, rest)) if *byte == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn skip_spaces(&mut self) {
        while self.eat(b' ') {}
    }
}

const UNIT: &[u8] = b"bytes=";

/// `max_ranges` if it is not set, as in nginx.
pub const UNLIMITED_RANGES: u64 = 0x7fff_ffff;

/// Size of the head of one part by nginx's estimate, in bytes.
const PART_HEAD_BYTES: u128 = 256;

/// Number of bytes by which a multipart answer may exceed the whole.
const SLACK_BYTES: u128 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(value: &str) -> Ranges {
        parse_range(value.as_bytes(), 1000, UNLIMITED_RANGES)
    }

    #[test]
    fn single_ranges_are_cut_to_the_size() {
        assert_eq!(ranges("bytes=0-8"), Ranges::One(0..9));
        assert_eq!(ranges("bytes=-10"), Ranges::One(990..1000));
        assert_eq!(ranges("bytes=990-"), Ranges::One(990..1000));
        assert_eq!(ranges("bytes=990-1990"), Ranges::One(990..1000));
        assert_eq!(ranges("bytes=-5000"), Ranges::One(0..1000));
        assert_eq!(ranges("BYTES= 0 - 0 "), Ranges::One(0..1));
    }

    #[test]
    fn several_ranges_keep_their_order_and_lose_what_cannot_be_sent() {
        let wanted = Ranges::Many(vec![0..10, 990..1000, 10..20]);
        assert_eq!(ranges("bytes=0-9, -10, 10-19"), wanted);
        assert_eq!(ranges("bytes=0-9, -10, 100000-, 10-19"), wanted);
        assert_eq!(ranges("bytes=5-3, 1-1"), Ranges::One(1..2));
    }

    /// RFC 9110 section 5.6.1.2: empty elements of a list are ignored.
    #[test]
    fn empty_elements_of_the_list_are_ignored() {
        for value in [
            "bytes=0-9,",
            "bytes=,0-9",
            "bytes= ,\t, 0-9 , ,\t,",
            "bytes=0-9\t",
        ] {
            assert_eq!(ranges(value), Ranges::One(0..10), "{value:?}");
        }
        let wanted = Ranges::Many(vec![0..10, 990..1000, 20..30]);
        assert_eq!(ranges("bytes=0-9,,-10\t,\t20-29,"), wanted);
        // Empty elements do not count towards the limit.
        assert_eq!(parse_range(b"bytes=,,0-9,,", 1000, 1), Ranges::One(0..10));
    }

    #[test]
    fn nothing_to_send_is_not_satisfiable() {
        for value in [
            "bytes=100000-",
            "bytes=alpha",
            "bytes=10-alpha",
            "bytes=10",
            "bytes=10-11 12-",
            "bytes=,",
            "bytes= ,\t, ",
            "bytes=0-9,;",
            "bytes=,10",
            "bytes=0\t-9",
            "bytes=-",
            "bytes=--1",
            "bytes=-0",
            "bytes=5-3",
        ] {
            assert_eq!(ranges(value), Ranges::NotSatisfiable, "{value}");
        }
    }

    #[test]
    fn other_units_and_empty_sets_are_ignored() {
        for value in ["", "bytes", "bytes=", "lines=1-2", "bytes 0-1"] {
            assert_eq!(ranges(value), Ranges::None, "{value}");
        }
    }

    /// An empty representation has no range, and is sent completely.
    #[test]
    fn an_empty_representation_is_sent_whole() {
        for value in ["bytes=0-", "bytes=0-5", "bytes=-5"] {
            assert_eq!(
                parse_range(value.as_bytes(), 0, UNLIMITED_RANGES),
                Ranges::None,
                "{value}"
            );
        }
        assert_eq!(
            parse_range(b"bytes=1-", 0, UNLIMITED_RANGES),
            Ranges::NotSatisfiable
        );
    }

    #[test]
    fn positions_beyond_63_bits_are_not_satisfiable_and_never_overflow() {
        assert_eq!(
            ranges("bytes=0-18446744073709551616"),
            Ranges::NotSatisfiable
        );
        assert_eq!(
            ranges("bytes=0-9223372036854775808"),
            Ranges::NotSatisfiable
        );
        assert_eq!(ranges("bytes=0-9223372036854775807"), Ranges::One(0..1000));
        assert_eq!(ranges("bytes=-9223372036854775608"), Ranges::One(0..1000));
        assert_eq!(
            ranges("bytes=99999999999999999999-"),
            Ranges::NotSatisfiable
        );
        let twice_all = parse_range(b"bytes=0-,0-", u64::MAX, UNLIMITED_RANGES);
        assert_eq!(twice_all, Ranges::None);
    }

    /// CVE-2011-3192: overlapping ranges must not multiply the response.
    #[test]
    fn overlapping_ranges_that_exceed_the_whole_are_ignored() {
        let many = format!("bytes={}", vec!["0-999"; 1000].join(","));
        assert_eq!(ranges(&many), Ranges::None);
        assert_eq!(ranges("bytes=0-10001, 0-0"), Ranges::None);
    }

    #[test]
    fn max_ranges_counts_ranges_that_can_be_sent() {
        let limited = |value: &str, max| parse_range(value.as_bytes(), 1000, max);
        assert_eq!(
            limited("bytes=0-9, -10", 2),
            Ranges::Many(vec![0..10, 990..1000])
        );
        assert_eq!(
            limited("bytes=0-9, -10, 10000-", 2),
            Ranges::Many(vec![0..10, 990..1000])
        );
        assert_eq!(limited("bytes=0-9, -10, 10-19", 2), Ranges::None);
        assert_eq!(limited("bytes=0-9", 1), Ranges::One(0..10));
        assert_eq!(limited("bytes=0-9", 0), Ranges::None);
    }

    #[test]
    fn many_small_ranges_are_ignored_only_without_a_limit() {
        let spread: Vec<String> = (0..30)
            .map(|at| format!("{}-{}", at * 10, at * 10))
            .collect();
        let value = format!("bytes={}", spread.join(","));
        assert_eq!(
            parse_range(value.as_bytes(), 1000, UNLIMITED_RANGES),
            Ranges::None
        );
        assert!(matches!(
            parse_range(value.as_bytes(), 1000, 100),
            Ranges::Many(_)
        ));
    }
}
