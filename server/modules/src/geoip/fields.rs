//! Values of the variables of `geoip`, from a database of any format.
//!
//! Source: nginx documentation, `ngx_http_geoip_module`.

use std::net::IpAddr;

use geoip::countries::Country;
use geoip::database::Database;
use geoip::legacy::Legacy;
use geoip::mmdb::Mmdb;
use geoip::mmdb_data::Value;
use geoip::regions;

use super::decimal;

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

/// Appends a field of an address's country; false without one. With `utf8` texts of legacy databases are converted to
/// UTF-8.
pub(crate) fn country(
    source: &Database,
    ip: Option<IpAddr>,
    part: CountryPart,
    utf8: bool,
    out: &mut Vec<u8>,
) -> bool {
    let country = match source {
        Database::Legacy(database) => database.country(ip).and_then(Country::numbered),
        Database::Ranges(ranges) => {
            let code = ip.and_then(|ip| ranges.code(ip));
            code.and_then(|code| Country::coded(&code))
        }
        Database::Mmdb(database) => {
            return ip.is_some_and(|ip| country_of_mmdb(database, ip, part, out));
        }
    };
    match country {
        Some(country) => append_country(country, part, utf8, out),
        None => false,
    }
}

/// Appends a field of an address's city; false without one.
pub(crate) fn city(
    source: &Database,
    ip: Option<IpAddr>,
    part: CityPart,
    utf8: bool,
    out: &mut Vec<u8>,
) -> bool {
    match source {
        Database::Legacy(database) => city_of_legacy(database, ip, part, utf8, out),
        Database::Mmdb(database) => ip.is_some_and(|ip| city_of_mmdb(database, ip, part, out)),
        Database::Ranges(_) => false,
    }
}

/// Appends the organisation of an address; false without one.
pub(crate) fn org(source: &Database, ip: Option<IpAddr>, utf8: bool, out: &mut Vec<u8>) -> bool {
    match source {
        Database::Legacy(database) => match database.name(ip) {
            Some(name) => {
                append_text(name, utf8, out);
                true
            }
            None => false,
        },
        Database::Mmdb(database) => ip.is_some_and(|ip| org_of_mmdb(database, ip, out)),
        Database::Ranges(_) => false,
    }
}

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

/// Appends a text of ISO 8859-1, converted to UTF-8 on request.
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
        // MaxMind DB files lack three-letter codes; the table for legacy files has them.
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
        // MaxMind DB files have no area codes.
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
    // An autonomous system, in the format of legacy databases: `AS64496 Example`.
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
