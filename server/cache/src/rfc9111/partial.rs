//! Incomplete responses: the part that is stored, the part that is requested, and the rest.
//!
//! Absent: 206 responses with several parts, which are never stored. Source: RFC 9111 sections 3.3, 3.4; RFC 9110
//! sections 14.1, 14.4, 15.3.7.3.

use std::ops::Range;

use engines::http::{FieldId, Fields, Method, Ranges, parse_decimal, parse_range};

use super::field_list::FieldList;
use super::validation::Validators;

/// The part of a representation in a 206 response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes, from the first up to the last one exclusive; never empty.
    pub bytes: Range<u64>,
    /// Length of the whole representation in bytes, if it is known.
    pub complete_bytes: Option<u64>,
}

/// Parses `Content-Range`. Returns `None` unless there is exactly one field, with bytes, within the complete length.
#[must_use]
pub fn parse_content_range(response: FieldList<'_>) -> Option<ContentRange> {
    let mut values = response.by_id(FieldId::ContentRange);
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (unit, rest) = value.split_at_checked(UNIT.len())?;
    let (range, complete) = split_once(rest, b'/')?;
    let (first, last) = split_once(range, b'-')?;
    let complete_bytes = match complete {
        b"*" => None,
        digits => Some(parse_decimal::<u64>(digits)?),
    };
    let (first, last): (u64, u64) = (parse_decimal(first)?, parse_decimal(last)?);
    let end = last.checked_add(1)?;
    let is_valid = unit.eq_ignore_ascii_case(UNIT)
        && first <= last
        && complete_bytes.is_none_or(|complete| end <= complete);
    is_valid.then_some(ContentRange {
        bytes: first..end,
        complete_bytes,
    })
}

fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns the requested bytes if one range is requested and is wholly within the stored part (RFC 9111 section 3.3).
///
/// `range` is the value of `Range`. Positions are those of the whole representation.
#[must_use]
pub fn requested_part(range: &[u8], stored: &ContentRange) -> Option<Range<u64>> {
    // Ranges that depend on an unknown length reach far behind the stored part.
    let size = stored.complete_bytes.unwrap_or(i64::MAX as u64);
    let Ranges::One(wanted) = parse_range(range, size, 1) else {
        return None;
    };
    let is_within = stored.bytes.start <= wanted.start && wanted.end <= stored.bytes.end;
    is_within.then_some(wanted)
}

/// Whether a response that ended early may be stored as an incomplete one, if its whole head was received (RFC 9111
/// section 3.3).
#[must_use]
pub fn may_store_incomplete(method: Method, status: u16) -> bool {
    method == Method::Get && status == 200
}

/// Whether parts of two responses may be combined: both have one strong entity tag (RFC 9111 section 3.4).
#[must_use]
pub fn can_combine(stored: FieldList<'_>, received: FieldList<'_>) -> bool {
    let tag = Validators::of(stored).strong_etag();
    tag.is_some() && tag == Validators::of(received).strong_etag()
}

/// Appends the fields that request the rest of an incomplete response: `Range`, and `If-Range` with its entity tag.
///
/// Returns false, with nothing appended, without a strong entity tag, or if the rest is not one range.
pub fn completing_fields(stored: FieldList<'_>, part: &ContentRange, request: &mut Fields) -> bool {
    let Some(tag) = Validators::of(stored).strong_etag() else {
        return false;
    };
    let (start, end) = (part.bytes.start, part.bytes.end);
    let range = match (start, part.complete_bytes) {
        (0, Some(complete)) if end >= complete => return false,
        (0, _) => format!("bytes={end}-"),
        (_, Some(complete)) if end == complete => format!("bytes=0-{}", start - 1),
        _ => return false,
    };
    request.push(b"Range", range.as_bytes());
    request.push(b"If-Range", tag);
    true
}

/// The unit of all ranges, with the blank behind it.
const UNIT: &[u8] = b"bytes ";

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(list: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in list {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    fn part(bytes: Range<u64>, complete_bytes: Option<u64>) -> ContentRange {
        ContentRange {
            bytes,
            complete_bytes,
        }
    }

    fn parse(value: &str) -> Option<ContentRange> {
        let list = fields(&[("Content-Range", value)]);
        parse_content_range(FieldList::from(&list))
    }

    /// RFC 9110 section 14.4.
    #[test]
    fn a_content_range_is_within_the_complete_length() {
        assert_eq!(parse("bytes 4-9/10"), Some(part(4..10, Some(10))));
        assert_eq!(parse("BYTES 0-0/*"), Some(part(0..1, None)));
        for value in [
            "",
            "bytes",
            "bytes */10",
            "bytes 4-10/10",
            "bytes 5-4/10",
            "bytes 4-/10",
            "bytes -4/10",
            "bytes 4-9",
            "bytes=4-9/10",
            "lines 4-9/10",
            "bytes 4-9/x",
            "bytes +4-9/10",
            "bytes 0-18446744073709551615/*",
        ] {
            assert_eq!(parse(value), None, "{value}");
        }
        let twice = fields(&[
            ("Content-Range", "bytes 0-1/2"),
            ("content-range", "bytes 0-1/2"),
        ]);
        assert_eq!(parse_content_range(FieldList::from(&twice)), None);
        let none = fields(&[]);
        assert_eq!(parse_content_range(FieldList::from(&none)), None);
    }

    /// RFC 9111 section 3.3.
    #[test]
    fn a_requested_range_is_wholly_within_the_part() {
        for (range, complete, expected) in [
            ("bytes=4-9", Some(10), Some(4..10)),
            ("bytes=6-8", Some(10), Some(6..9)),
            ("bytes=6-8", None, Some(6..9)),
            ("bytes=6-", Some(10), Some(6..10)),
            ("bytes=6-", None, None),
            ("bytes=-1", Some(10), Some(9..10)),
            ("bytes=-1", None, None),
            ("bytes=-5", Some(10), Some(5..10)),
            ("bytes=6-100", Some(10), Some(6..10)),
            ("bytes=6-100", None, None),
            ("bytes=-7", Some(10), None),
            ("bytes=3-5", Some(10), None),
            ("bytes=4-5,7-8", Some(10), None),
            ("bytes=10-", Some(10), None),
            ("lines=4-5", Some(10), None),
            ("", Some(10), None),
        ] {
            let stored = part(4..10, complete);
            assert_eq!(
                requested_part(range.as_bytes(), &stored),
                expected,
                "{range}"
            );
        }
    }

    /// RFC 9111 section 3.3.
    #[test]
    fn only_200_responses_to_get_may_be_incomplete() {
        assert!(may_store_incomplete(Method::Get, 200));
        assert!(!may_store_incomplete(Method::Head, 200));
        assert!(!may_store_incomplete(Method::Get, 404));
    }

    /// RFC 9111 section 3.4: one strong validator.
    #[test]
    fn parts_with_one_strong_entity_tag_are_combined() {
        let combine = |one: &str, other: &str| {
            let (one, other) = (fields(&[("ETag", one)]), fields(&[("ETag", other)]));
            can_combine(FieldList::from(&one), FieldList::from(&other))
        };
        assert!(combine("\"a\"", "\"a\""));
        for (one, other) in [
            ("\"a\"", "\"b\""),
            ("W/\"a\"", "W/\"a\""),
            ("a", "a"),
            ("", ""),
        ] {
            assert!(!combine(one, other), "{one} {other}");
        }
    }

    /// RFC 9111 section 3.3: a range request completes a stored response.
    #[test]
    fn the_rest_is_requested_with_the_entity_tag() {
        let request = |etag: &str, part: &ContentRange| {
            let (stored, mut request) = (fields(&[("ETag", etag)]), Fields::default());
            let appended = completing_fields(FieldList::from(&stored), part, &mut request);
            assert_eq!(appended, !request.is_empty());
            let request = FieldList::from(&request);
            let range = request.first(FieldId::Range).map(<[u8]>::to_vec);
            assert_eq!(request.has(FieldId::IfRange), appended);
            range.map(|range| String::from_utf8(range).expect("ASCII"))
        };
        for (bytes, complete, expected) in [
            (0..5, Some(10), Some("bytes=5-")),
            (0..5, None, Some("bytes=5-")),
            (4..10, Some(10), Some("bytes=0-3")),
            (0..10, Some(10), None),
            (4..9, Some(10), None),
            (4..10, None, None),
        ] {
            let part = part(bytes, complete);
            assert_eq!(request("\"a\"", &part).as_deref(), expected, "{part:?}");
            assert_eq!(request("W/\"a\"", &part), None);
        }
    }
}
