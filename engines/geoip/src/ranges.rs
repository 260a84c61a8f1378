//! Lists of address ranges with a country each, one a line, as the anonymity network Tor distributes them.
//!
//! `first,last,code`: IPv4 addresses are written as numbers, IPv6 addresses in their own form. Ranges of one family
//! are in order and do not overlap; a file may have both families. A line that begins with `#` is a comment. `??` and
//! unknown codes are no country.
//!
//! Source: tor(1), `GeoIPFile` and `GeoIPv6File`.

use core::net::{IpAddr, Ipv6Addr};

use crate::countries::Country;

/// Countries by range.
#[derive(Debug, Default)]
pub struct Ranges {
    v4: Spans<u32>,
    v6: Spans<u128>,
}

/// Spans by their first address, each up to the next one, with the number of a country or 0.
#[derive(Debug, Default)]
struct Spans<K> {
    starts: Vec<K>,
    countries: Vec<u8>,
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
        let numbers = numbers();
        let mut ranges = Self::default();
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            ranges.line(line, &numbers).ok_or(index + 1)?;
        }
        Ok(ranges)
    }

    fn line(&mut self, line: &[u8], numbers: &Numbers) -> Option<()> {
        let mut words = line.split(|byte| *byte == b',');
        let (first, last, code) = (words.next()?, words.next()?, words.next()?);
        let (&[a, b], None) = (code, words.next()) else {
            return None;
        };
        let country = numbers[usize::from(a & 0x7f)][usize::from(b & 0x7f)];
        if first.contains(&b':') {
            let address = |word| std::str::from_utf8(word).ok()?.parse::<Ipv6Addr>().ok();
            return self
                .v6
                .push(address(first)?.to_bits(), address(last)?.to_bits(), country);
        }
        self.v4.push(decimal(first)?, decimal(last)?, country)
    }

    /// Returns the number of an address's country.
    pub fn country(&self, ip: IpAddr) -> Option<u8> {
        let country = match ip.to_canonical() {
            IpAddr::V4(ip) => self.v4.find(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.find(ip.to_bits()),
        };
        (country != 0).then_some(country)
    }

    /// Adds the ranges of another list; false if both lists have ranges of one family.
    pub fn join(&mut self, other: Self) -> bool {
        if (self.v4.any && other.v4.any) || (self.v6.any && other.v6.any) {
            return false;
        }
        if other.v4.any {
            self.v4 = other.v4;
        }
        if other.v6.any {
            self.v6 = other.v6;
        }
        true
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
    fn push(&mut self, first: K, last: K, country: u8) -> Option<()> {
        let free = if self.any { self.free? } else { K::default() };
        if first < free || last < first {
            return None;
        }
        if first > free {
            self.begin(free, 0);
        }
        self.begin(first, country);
        self.free = last.next();
        self.any = true;
        Some(())
    }

    fn begin(&mut self, start: K, country: u8) {
        if self.countries.last() != Some(&country) {
            self.starts.push(start);
            self.countries.push(country);
        }
    }

    fn find(&self, at: K) -> u8 {
        if self.any && self.free.is_some_and(|free| at >= free) {
            return 0;
        }
        match self.starts.partition_point(|start| *start <= at) {
            0 => 0,
            n => self.countries[n - 1],
        }
    }
}

/// Decimal digits, at least one, as a number. Unlike `str::parse` it accepts no `+`.
fn decimal(text: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(text).ok()?;
    digits.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    digits.parse().ok()
}

/// Numbers of countries by the two characters of their codes.
type Numbers = Vec<[u8; 128]>;

/// Made once for a list of hundreds of thousands of lines.
fn numbers() -> Numbers {
    let mut numbers = vec![[0; 128]; 128];
    for number in 1..=u8::MAX {
        if let Some(country) = Country::numbered(number)
            && let &[a, b] = country.code.as_bytes()
        {
            numbers[usize::from(a & 0x7f)][usize::from(b & 0x7f)] = number;
        }
    }
    numbers
}

/// Maximum number of bytes that are examined to recognise a text.
const LOOKED_AT_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn code(ranges: &Ranges, ip: &str) -> Option<&'static str> {
        let number = ranges.country(ip.parse().expect("an address"))?;
        Country::numbered(number).map(|country| country.code)
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
            assert_eq!(code(&ranges, ip), expected, "{ip}");
        }
        let last = Ranges::read(b"4294967295,4294967295,US").expect("a list");
        assert_eq!(code(&last, "255.255.255.255"), Some("US"));
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
    fn lists_of_both_sorts_are_joined() {
        let read = |text: &str| Ranges::read(text.as_bytes()).expect("a list");
        let mut both = read("1,2,US");
        assert!(both.join(read("::1,::2,FR")));
        assert_eq!(
            (code(&both, "0.0.0.1"), code(&both, "::2")),
            (Some("US"), Some("FR"))
        );
        assert!(!both.join(read("5,6,DE")));
        assert!(!both.join(read("::5,::6,DE")));
    }

    #[test]
    fn a_text_is_told_from_a_database() {
        assert!(Ranges::is_one(b"# Last updated\n1,2,US\n"));
        assert!(!Ranges::is_one(b""));
        assert!(!Ranges::is_one(b"1,2,US\n\0"));
        assert!(!Ranges::is_one(&[0x01, 0, 0, 0x20, 0, 0]));
    }
}
