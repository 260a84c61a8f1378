//! A database of any of the formats, and what the variables find in it.
//!
//! Which format a file has is found from its content: MaxMind DB files by their mark, lists of ranges by being text,
//! the older databases by their structure. A directive takes a file if it can have what the directive is for.

use std::net::IpAddr;

use super::countries::Country;
use super::decimal;
use super::legacy::{DatabaseKind, Legacy};
use super::mmdb::Mmdb;
use super::mmdb_data::Value;
use super::ranges::Ranges;
use super::regions;

/// A database in memory.
#[derive(Debug)]
pub(crate) enum Database {
    Legacy(Legacy),
    Mmdb(Mmdb),
    Ranges(Ranges),
}

/// The purpose of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Country,
    City,
    Org,
}

/// The fields of a country.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CountryPart {
    Code,
    Code3,
    Name,
}

/// The fields of a city.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CityPart {
    Continent,
    Country(CountryPart),
    Region,
    RegionName,
    City,
    PostalCode,
    Latitude,
    Longitude,
    DmaCode,
    AreaCode,
}

impl Database {
    /// Takes a file's bytes.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn open(bytes: Vec<u8>) -> Result<Self, String> {
        if Mmdb::is_one(&bytes) {
            return Mmdb::open(bytes).map(Self::Mmdb).map_err(|e| e.to_string());
        }
        if Ranges::is_one(&bytes) {
            let ranges = Ranges::read(&bytes).map(Self::Ranges);
            return ranges.map_err(|line| format!("line {line} is no range with a country"));
        }
        let legacy = Legacy::open(bytes).map(Self::Legacy);
        legacy.ok_or_else(|| "the format is not known".to_owned())
    }

    /// Whether it can have what a directive is for; if not, what it is.
    pub(crate) fn is_for(&self, purpose: Purpose) -> Result<(), String> {
        let (fits, kind) = match self {
            Self::Legacy(database) => {
                let edition = database.edition();
                let fits = match edition.kind {
                    DatabaseKind::Country => purpose == Purpose::Country,
                    DatabaseKind::City { .. } => purpose == Purpose::City,
                    DatabaseKind::Name(_) => purpose == Purpose::Org,
                    DatabaseKind::Other => false,
                };
                (fits, edition.number.to_string())
            }
            Self::Mmdb(database) => {
                let kind = &database.database_type;
                (type_fits(kind, purpose), kind.clone())
            }
            Self::Ranges(_) => (purpose == Purpose::Country, "ranges".to_owned()),
        };
        if fits { Ok(()) } else { Err(kind) }
    }

    /// Appends what is asked of the country of an address; false without one.
    pub(crate) fn country(
        &self,
        ip: Option<IpAddr>,
        part: CountryPart,
        utf8: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let number = match self {
            Self::Legacy(database) => database.country(ip),
            Self::Ranges(ranges) => ip.and_then(|ip| ranges.country(ip)),
            Self::Mmdb(database) => {
                return ip.is_some_and(|ip| country_of_mmdb(database, ip, part, out));
            }
        };
        match number.and_then(Country::numbered) {
            Some(country) => append_country(country, part, utf8, out),
            None => false,
        }
    }

    /// Appends what is asked of the city of an address; false without one.
    pub(crate) fn city(
        &self,
        ip: Option<IpAddr>,
        part: CityPart,
        utf8: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        match self {
            Self::Legacy(database) => city_of_legacy(database, ip, part, utf8, out),
            Self::Mmdb(database) => ip.is_some_and(|ip| city_of_mmdb(database, ip, part, out)),
            Self::Ranges(_) => false,
        }
    }

    /// Appends the organisation of an address; false without one.
    pub(crate) fn org(&self, ip: Option<IpAddr>, utf8: bool, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Legacy(database) => match database.name(ip) {
                Some(name) => {
                    append_text(name, utf8, out);
                    true
                }
                None => false,
            },
            Self::Mmdb(database) => ip.is_some_and(|ip| org_of_mmdb(database, ip, out)),
            Self::Ranges(_) => false,
        }
    }
}

/// Whether a database of this type can have the fields for a purpose. An unspecific type can have all.
fn type_fits(database_type: &str, purpose: Purpose) -> bool {
    let name = database_type.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let (places, cities) = (has(PLACES), has(CITIES));
    let names = has(NAMES);
    match purpose {
        Purpose::Country => places || !names,
        Purpose::City => cities || !(places || names),
        Purpose::Org => names || !places,
    }
}

/// Words in types of databases that have countries, of those that have cities, of those that have organisations.
const PLACES: &[&str] = &["country", "city", "location", "enterprise", "insights"];
const CITIES: &[&str] = &["city", "location", "enterprise", "insights"];
const NAMES: &[&str] = &["asn", "isp", "org", "domain", "enterprise", "insights"];

fn append_country(country: Country, part: CountryPart, utf8: bool, out: &mut Vec<u8>) -> bool {
    let name;
    let text = match part {
        CountryPart::Code => country.code,
        CountryPart::Code3 => country.code3,
        CountryPart::Name if utf8 => country.name(),
        CountryPart::Name => {
            name = country.plain_name();
            &name
        }
    };
    out.extend_from_slice(text.as_bytes());
    !text.is_empty()
}

/// Appends a text of ISO 8859-1, in UTF-8 if so asked.
fn append_text(text: &[u8], utf8: bool, out: &mut Vec<u8>) {
    if !utf8 {
        return out.extend_from_slice(text);
    }
    for byte in text {
        let mut buffer = [0; 2];
        out.extend_from_slice(char::from(*byte).encode_utf8(&mut buffer).as_bytes());
    }
}

fn city_of_legacy(
    database: &Legacy,
    ip: Option<IpAddr>,
    part: CityPart,
    utf8: bool,
    out: &mut Vec<u8>,
) -> bool {
    let Some(city) = database.city(ip) else {
        return false;
    };
    let country = Country::numbered(city.country);
    let text = |text: Option<&[u8]>, utf8, out: &mut Vec<u8>| {
        append_text(text.unwrap_or_default(), utf8, out);
        text.is_some()
    };
    match part {
        CityPart::Continent => text(country.map(|c| c.continent.as_bytes()), false, out),
        CityPart::Country(part) => country.is_some_and(|c| append_country(c, part, utf8, out)),
        CityPart::Region => text(city.region, false, out),
        CityPart::RegionName => {
            let code = country.map_or("", |country| country.code).as_bytes();
            let name = regions::name(code, city.region.unwrap_or_default());
            text(name.map(str::as_bytes), false, out)
        }
        CityPart::City => text(city.name, utf8, out),
        CityPart::PostalCode => text(city.postal_code, false, out),
        CityPart::Latitude => decimal::append(f64::from(city.latitude), 4, out),
        CityPart::Longitude => decimal::append(f64::from(city.longitude), 4, out),
        CityPart::DmaCode => text(Some(city.dma_code.to_string().as_bytes()), false, out),
        CityPart::AreaCode => text(Some(city.area_code.to_string().as_bytes()), false, out),
    }
}

fn country_of_mmdb(database: &Mmdb, ip: IpAddr, part: CountryPart, out: &mut Vec<u8>) -> bool {
    let code = || match database.value(ip, &["country", "iso_code"]) {
        Some(Value::Text(code)) => Some(code),
        _ => None,
    };
    match part {
        CountryPart::Code => append_value(code().map(Value::Text), out),
        // These files have no such code, but the table that goes with the older ones has.
        CountryPart::Code3 => {
            let country = code().and_then(Country::coded);
            append_value(country.map(|c| Value::Text(c.code3.as_bytes())), out)
        }
        CountryPart::Name => append_value(database.value(ip, &["country", "names", "en"]), out),
    }
}

fn city_of_mmdb(database: &Mmdb, ip: IpAddr, part: CityPart, out: &mut Vec<u8>) -> bool {
    let path: &[&str] = match part {
        CityPart::Country(part) => return country_of_mmdb(database, ip, part, out),
        CityPart::Continent => &["continent", "code"],
        CityPart::Region => &["subdivisions", "0", "iso_code"],
        CityPart::RegionName => &["subdivisions", "0", "names", "en"],
        CityPart::City => &["city", "names", "en"],
        CityPart::PostalCode => &["postal", "code"],
        CityPart::Latitude => &["location", "latitude"],
        CityPart::Longitude => &["location", "longitude"],
        CityPart::DmaCode => &["location", "metro_code"],
        // They have no codes of telephone areas.
        CityPart::AreaCode => return false,
    };
    match (part, database.value(ip, path)) {
        (CityPart::Latitude | CityPart::Longitude, Some(Value::Double(degrees))) => {
            decimal::append(degrees, 4, out)
        }
        (_, value) => append_value(value, out),
    }
}

fn org_of_mmdb(database: &Mmdb, ip: IpAddr, out: &mut Vec<u8>) -> bool {
    let named = ["organization", "isp", "domain"];
    if let Some(name) = named.iter().find_map(|name| database.value(ip, &[name])) {
        return append_value(Some(name), out);
    }
    // An autonomous system, as the older databases have it: `AS64496 Example`.
    let number = match database.value(ip, &["autonomous_system_number"]) {
        Some(Value::Unsigned(number)) => Some(number),
        _ => None,
    };
    if let Some(number) = number {
        out.extend_from_slice(format!("AS{number}").as_bytes());
    }
    let Some(name) = database.value(ip, &["autonomous_system_organization"]) else {
        return number.is_some();
    };
    if number.is_some() {
        out.push(b' ');
    }
    append_value(Some(name), out) || number.is_some()
}

/// Appends a value as text; false for none, a map or an array. Numbers with a fraction have five digits of it.
pub(crate) fn append_value(value: Option<Value<'_>>, out: &mut Vec<u8>) -> bool {
    match value {
        Some(Value::Text(bytes) | Value::Bytes(bytes)) => out.extend_from_slice(bytes),
        Some(Value::Double(number)) => return decimal::append(number, 5, out),
        Some(Value::Float(number)) => return decimal::append(f64::from(number), 5, out),
        Some(Value::Unsigned(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        Some(Value::Signed(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        Some(Value::Wide(number)) => out.extend_from_slice(format!("0x{number:032x}").as_bytes()),
        Some(Value::Bool(is)) => out.push(b'0' + u8::from(is)),
        Some(Value::Map | Value::Array) | None => return false,
    }
    true
}
