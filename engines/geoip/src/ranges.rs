//! Lists of address ranges with a country each, one a line, as the anonymity network Tor distributes them.
//!
//! `first,last,code`: IPv4 addresses are written as numbers, IPv6 addresses in their own form. Ranges of one family
//! are in order and do not overlap; a file may have both families. A line that begins with `#` is a comment. A code has
//! two characters; the caller decides which codes are countries. `??` is none.
//!
//! Source: tor(1), `GeoIPFile` and `GeoIPv6File`.

use core::net::{IpAddr, Ipv6Addr};

/// Countries by range.
#[derive(Debug, Default)]
pub struct Ranges {
    v4: Spans<u32>,
    v6: Spans<u128>,
}

/// Spans by their first address, each up to the next one, with a code or zeros.
#[derive(Debug, Default)]
struct Spans<K> {
    starts: Vec<K>,
    codes: Vec<Code>,
    /// The lowest address of the next range; `None` behind the last address of the family.
    free: Option<K>,
    any: bool,
}

impl Ranges {
    /// Whether these are the bytes of a text.
    pub fn is_one(bytes: &[u8]) -> bool {
        let beginning = &bytes[..bytes.len().min(LOOKED_AT_BYTES)];
        let text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
        !beginning.is_empty() && beginning.iter().all(text)
    }

    /// Reads a list.
    ///
    /// # Errors
    /// The number of the first wrong line, from 1.
    pub fn read(bytes: &[u8]) -> Result<Self, usize> {
        let mut ranges = Self::default();
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            ranges.line(line).ok_or(index + 1)?;
        }
        ranges.v4.shrink();
        ranges.v6.shrink();
        Ok(ranges)
    }

    fn line(&mut self, line: &[u8]) -> Option<()> {
        let mut words = line.split(|byte| *byte == b',');
        let (first, last, code) = (words.next()?, words.next()?, words.next()?);
        let (Ok(code), None) = (Code::try_from(code), words.next()) else {
            return None;
        };
        let code = if code == *b"??" { NONE } else { code };
        if first.contains(&b':') {
            let address = |word| std::str::from_utf8(word).ok()?.parse::<Ipv6Addr>().ok();
            return self
                .v6
                .push(address(first)?.to_bits(), address(last)?.to_bits(), code);
        }
        self.v4.push(decimal(first)?, decimal(last)?, code)
    }

    /// Whether the list has no ranges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.v4.any && !self.v6.any
    }

    /// Returns the code of an address's range.
    #[must_use]
    pub fn code(&self, ip: IpAddr) -> Option<[u8; 2]> {
        let code = match ip.to_canonical() {
            IpAddr::V4(ip) => self.v4.find(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.find(ip.to_bits()),
        };
        (code != NONE).then_some(code)
    }

    /// Whether this list and another one both have IPv4 ranges, or both have IPv6 ranges.
    #[must_use]
    pub fn shares_family(&self, other: &Self) -> bool {
        (self.v4.any && other.v4.any) || (self.v6.any && other.v6.any)
    }
}

/// An address as a number.
trait Address: Copy + Ord + Default {
    /// The one after it.
    fn next(self) -> Option<Self>;
}

impl Address for u32 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Address for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl<K: Address> Spans<K> {
    /// Adds a range behind all others.
    fn push(&mut self, first: K, last: K, code: Code) -> Option<()> {
        let free = if self.any { self.free? } else { K::default() };
        if first < free || last < first {
            return None;
        }
        if first > free {
            self.begin(free, NONE);
        }
        self.begin(first, code);
        self.free = last.next();
        self.any = true;
        Some(())
    }

    fn begin(&mut self, start: K, code: Code) {
        if self.codes.last() != Some(&code) {
            self.starts.push(start);
            self.codes.push(code);
        }
    }

    /// Returns unused memory: a list stays for the lifetime of a configuration.
    fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.codes.shrink_to_fit();
    }

    fn find(&self, at: K) -> Code {
        if self.any && self.free.is_some_and(|free| at >= free) {
            return NONE;
        }
        match self.starts.partition_point(|start| *start <= at) {
            0 => NONE,
            n => self.codes[n - 1],
        }
    }
}

/// Decimal digits, at least one, as a number. Unlike `str::parse` it accepts no `+`.
fn decimal(text: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(text).ok()?;
    digits.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    digits.parse().ok()
}

/// The two characters of a line's code.
type Code = [u8; 2];

/// The code of addresses without one.
const NONE: Code = [0; 2];

/// Maximum number of bytes examined to recognise a text.
const LOOKED_AT_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn code(ranges: &Ranges, ip: &str) -> Option<String> {
        let code = ranges.code(ip.parse().expect("an address"))?;
        Some(String::from_utf8_lossy(&code).into_owned())
    }

    #[test]
    fn addresses_lie_in_ranges_or_between_them() {
        let text = b"# a comment\n\n16777216,16777471,AU\r\n16777472,16777473,CN\n16777480,16777481,??\n\
                     16777482,16777483,AU\n2001:200::,2001:200:0:ffff::,JP\n2001:db8::,2001:db8::1,US";
        let ranges = Ranges::read(text).expect("a list");
        for (ip, expected) in [
            ("0.0.0.0", None),
            ("0.255.255.255", None),
            ("1.0.0.0", Some("AU")),
            ("1.0.0.255", Some("AU")),
            ("::ffff:1.0.1.1", Some("CN")),
            ("1.0.1.2", None),
            ("1.0.1.8", None),
            ("1.0.1.10", Some("AU")),
            ("1.0.1.12", None),
            ("255.255.255.255", None),
            ("2001:1ff::", None),
            ("2001:200::1", Some("JP")),
            ("2001:200:1::", None),
            ("2001:db8::1", Some("US")),
            ("2001:db8::2", None),
        ] {
            assert_eq!(code(&ranges, ip).as_deref(), expected, "{ip}");
        }
        let last = Ranges::read(b"4294967295,4294967295,US").expect("a list");
        assert_eq!(code(&last, "255.255.255.255").as_deref(), Some("US"));
        assert_eq!(code(&last, "255.255.255.254"), None);
    }

    #[test]
    fn a_wrong_line_is_told_by_its_number() {
        for (line, text) in [
            (1, "1,2"),
            (1, "1,2,USA"),
            (1, "1,2,US,x"),
            (1, "2,1,US"),
            (1, "1,4294967296,US"),
            (1, "::2,::1,US"),
            (1, "::1,2,US"),
            (1, "x,y,US"),
            (2, "1,2,US\n2,3,US"),
            (3, "#\n5,6,US\n1,2,US"),
            (2, "4294967295,4294967295,US\n1,1,US"),
            (2, "::1,::2,US\n::2,::3,US"),
        ] {
            assert_eq!(Ranges::read(text.as_bytes()).err(), Some(line), "{text}");
        }
    }

    #[test]
    fn lists_of_one_family_share_it() {
        let read = |text: &str| Ranges::read(text.as_bytes()).expect("a list");
        let (v4, v6, none) = (read("1,2,US"), read("::1,::2,FR"), read(""));
        let both = read("1,2,US\n::1,::2,FR");
        for (one, other, shares) in [
            (&v4, &v6, false),
            (&v4, &v4, true),
            (&v6, &v6, true),
            (&both, &v4, true),
            (&v6, &both, true),
            (&none, &both, false),
        ] {
            assert_eq!(one.shares_family(other), shares, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_text_is_told_from_a_database() {
        assert!(Ranges::is_one(b"# Last updated\n1,2,US\n"));
        assert!(!Ranges::is_one(b""));
        assert!(!Ranges::is_one(b"1,2,US\n\0"));
        assert!(!Ranges::is_one(&[0x01, 0, 0, 0x20, 0, 0]));
    }
}
