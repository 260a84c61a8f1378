//! MaxMind's older databases, `GeoIP.dat` and its kin: countries, cities, organisations, for IPv4 and IPv6.
//!
//! A file is a binary tree of pairs of little-endian records. The bits of an address select the records, from the
//! highest bit. A record below the number of segments is the next pair; any other is the result. The last bytes have
//! the number of the edition. Every read is checked against the file's end, and a walk is as long as an address at
//! most: a broken file yields wrong answers or none. Absent: editions without a directive of nginx, and files from
//! before 2003 without an edition.
//!
//! Source: the files themselves, and nginx documentation, `ngx_http_geoip_module`.

use core::net::IpAddr;

/// A database in memory.
#[derive(Debug)]
pub struct Legacy {
    bytes: Vec<u8>,
    edition: Edition,
    /// Records from here on are results.
    segments: u32,
    /// Size of a record: a pair has two.
    record_bytes: usize,
}

/// The contents of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edition {
    /// The record at an address.
    pub kind: DatabaseKind,
    /// Whether it is of IPv6 addresses.
    pub v6: bool,
    /// The number in the file.
    pub number: u8,
}

/// The record at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// The number of a country.
    Country,
    /// A city.
    City {
        /// Whether it has the codes of metropolitan and telephone areas; the first revision has none.
        areas: bool,
    },
    /// An organisation, a provider, a domain or an autonomous system, with the size of records in bytes.
    Name(usize),
    /// A database without a directive of nginx.
    Other,
}

/// A city's record; texts are ISO 8859-1, `None` if they are empty.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct City<'a> {
    /// Index in the table of countries.
    pub country: u8,
    /// A code of FIPS 10-4, or a postal one in the United States and Canada.
    pub region: Option<&'a [u8]>,
    /// Name of the city.
    pub name: Option<&'a [u8]>,
    /// Postal code.
    pub postal_code: Option<&'a [u8]>,
    /// Degrees, north is positive.
    pub latitude: f32,
    /// Degrees, east is positive.
    pub longitude: f32,
    /// Metropolitan area of the United States, or 0.
    pub dma_code: u32,
    /// Telephone area of the United States, or 0.
    pub area_code: u32,
}

impl Legacy {
    /// Reads a file's bytes; `None` without an edition, or if the number of segments is cut.
    pub fn open(bytes: Vec<u8>) -> Option<Self> {
        let (number, after) = structure(&bytes)?;
        let edition = Edition::of(number);
        let (segments, record_bytes) = match edition.kind {
            DatabaseKind::Country => (COUNTRY_BEGIN, RECORD_BYTES),
            DatabaseKind::City { .. } => (number_at(&bytes, after, 3)?, RECORD_BYTES),
            DatabaseKind::Name(record_bytes) => (number_at(&bytes, after, 3)?, record_bytes),
            DatabaseKind::Other => (0, RECORD_BYTES),
        };
        Some(Self {
            bytes,
            edition,
            segments,
            record_bytes,
        })
    }

    /// The edition of the database.
    pub fn edition(&self) -> Edition {
        self.edition
    }

    /// Whether the database can have an address: IPv4 addresses are in each, IPv6 addresses in those of IPv6.
    #[must_use]
    pub fn has_family(&self, ip: IpAddr) -> bool {
        self.edition.v6 || ip.to_canonical().is_ipv4()
    }

    /// The index of a country, never 0.
    pub fn country(&self, ip: Option<IpAddr>) -> Option<u8> {
        let found = self.walk(ip)?.checked_sub(self.segments)?;
        u8::try_from(found).ok().filter(|country| *country != 0)
    }

    /// The record of a city.
    pub fn city(&self, ip: Option<IpAddr>) -> Option<City<'_>> {
        let at = self.record(ip)?;
        let mut rest = self.bytes.get(at..)?;
        let (country, after) = rest.split_first()?;
        rest = after;
        let region = text(&mut rest)?;
        let name = text(&mut rest)?;
        let postal_code = text(&mut rest)?;
        let mut city = City {
            country: *country,
            region,
            name,
            postal_code,
            latitude: degrees(number_at(rest, 0, 3)?),
            longitude: degrees(number_at(rest, 3, 3)?),
            ..City::default()
        };
        let areas = self.edition.kind == (DatabaseKind::City { areas: true });
        if areas && *country == UNITED_STATES {
            let both = number_at(rest, 6, 3)?;
            (city.dma_code, city.area_code) = (both / 1000, both % 1000);
        }
        Some(city)
    }

    /// A name, in ISO 8859-1.
    pub fn name(&self, ip: Option<IpAddr>) -> Option<&[u8]> {
        let at = self.record(ip)?;
        Some(text(&mut self.bytes.get(at..)?)?.unwrap_or_default())
    }

    /// Returns the offset of an address's record; `None` for an address without one.
    fn record(&self, ip: Option<IpAddr>) -> Option<usize> {
        let into = self.walk(ip)?.checked_sub(self.segments)? as usize;
        let tree = (self.segments as usize).checked_mul(2 * self.record_bytes)?;
        (into != 0).then(|| tree.checked_add(into))?
    }

    /// Returns the result of the tree. Addresses of the other family are replaced as in nginx: by
    /// 255.255.255.255 in IPv4 editions; by `::` or the mapped address in IPv6 editions.
    fn walk(&self, ip: Option<IpAddr>) -> Option<u32> {
        let ip = ip.map(|ip| ip.to_canonical());
        let (bits, mut mask) = match (self.edition.v6, ip) {
            (false, Some(IpAddr::V4(ip))) => (u128::from(ip.to_bits()), 1 << 31),
            (false, _) => (u128::from(u32::MAX), 1 << 31),
            (true, Some(IpAddr::V4(ip))) => (ip.to_ipv6_mapped().to_bits(), 1 << 127),
            (true, Some(IpAddr::V6(ip))) => (ip.to_bits(), 1 << 127),
            (true, None) => (0, 1 << 127),
        };
        let mut pair = 0usize;
        while mask != 0 {
            let record = pair.checked_mul(2)? + usize::from(bits & mask != 0);
            let at = record.checked_mul(self.record_bytes)?;
            let next = number_at(&self.bytes, at, self.record_bytes)?;
            if next >= self.segments {
                return Some(next);
            }
            pair = next as usize;
            mask >>= 1;
        }
        None
    }
}

impl Edition {
    fn of(number: u8) -> Self {
        let (kind, v6) = match number {
            1 => (DatabaseKind::Country, false),
            12 => (DatabaseKind::Country, true),
            2 => (DatabaseKind::City { areas: true }, false),
            6 => (DatabaseKind::City { areas: false }, false),
            30 => (DatabaseKind::City { areas: true }, true),
            31 => (DatabaseKind::City { areas: false }, true),
            // Provider, organisation, domain: their records have a byte more.
            4 | 5 | 11 => (DatabaseKind::Name(RECORD_BYTES + 1), false),
            22..=24 => (DatabaseKind::Name(RECORD_BYTES + 1), true),
            // Autonomous systems.
            9 => (DatabaseKind::Name(RECORD_BYTES), false),
            21 => (DatabaseKind::Name(RECORD_BYTES), true),
            _ => (DatabaseKind::Other, false),
        };
        Self { kind, v6, number }
    }
}

/// Returns the number of the edition, which follows three bytes of 255 near the end, and the offset behind it.
fn structure(bytes: &[u8]) -> Option<(u8, usize)> {
    let last = bytes.len().checked_sub(MARK.len())?;
    let first = last.saturating_sub(STRUCTURE_BYTES - 1);
    let at = (first..=last)
        .rev()
        .find(|at| bytes[*at..].starts_with(&MARK))?;
    let number = *bytes.get(at + MARK.len())?;
    // Until 2003 the numbers began at 106.
    let number = if number >= 106 { number - 105 } else { number };
    Some((number, at + MARK.len() + 1))
}

/// A little-endian number of up to four bytes.
fn number_at(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(length)?)?;
    let number = digits.iter().rev();
    Some(number.fold(0, |number, byte| (number << 8) | u32::from(*byte)))
}

/// Takes a text up to its zero byte; the inner option is `None` if it is empty.
fn text<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let window = &rest[..rest.len().min(TEXT_BYTES_MAX + 1)];
    let end = window.iter().position(|byte| *byte == 0)?;
    let text = &rest[..end];
    *rest = &rest[end + 1..];
    Some((!text.is_empty()).then_some(text))
}

/// Ten thousandths of a degree from the far end.
fn degrees(number: u32) -> f32 {
    (f64::from(number) / 10_000.0 - 180.0) as f32
}

const MARK: [u8; 3] = [0xff; 3];
/// Maximum distance of the mark from the end, bytes.
const STRUCTURE_BYTES: usize = 20;
/// The size of a record, but of names with a byte more.
const RECORD_BYTES: usize = 3;
/// The number of segments of every tree of countries.
const COUNTRY_BEGIN: u32 = 0xff_ff00;
/// The only country with areas.
const UNITED_STATES: u8 = 225;
/// Maximum length of a text, bytes. A longer one is part of a broken file.
pub const TEXT_BYTES_MAX: usize = 300;

#[cfg(test)]
#[path = "legacy_tests.rs"]
mod tests;
