//! `geoip_country`, `geoip_city`, `geoip_org`: variables for place and owner of the client's address.
//!
//! Databases are legacy MaxMind files, MaxMind DB files and, for countries, lists of ranges; the content determines the
//! format. They are read with the configuration; lookups happen when a variable is used. Absent: reloading a changed
//! file without a reload, which `geoip2` has.
//!
//! Source: nginx documentation, `ngx_http_geoip_module`.

mod decimal;
mod fields;

use std::ffi::OsStr;
use std::iter;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use conf::{Builder, ConfError, Contexts, Directive, os_error};
use geoip::database::{Database, Purpose};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::Exchange;
use server_http::module::Module;
use server_http::settings;
use server_http::variables;
use server_http::vars::Variable;

use crate::networks::{self, Network};
pub(crate) use fields::append_value;
use fields::{CityPart, CountryPart};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "geoip",
    directives: &[PLAIN, ROWS],
    settings: &[<GeoipMain as server_http::settings_set::Conf>::def],
    variables: VARIABLES,
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct GeoipMain: Main / PLAIN {
        /// Whether the client is the last address that is not trusted, instead of the last one.
        recursive "geoip_proxy_recursive": bool = false, "off", Contexts::HTTP;
    }
    extra {
        /// `geoip_proxy`.
        proxies: Vec<Network>,
        /// `geoip_country`.
        country: Option<Source>,
        /// `geoip_city`.
        city: Option<Source>,
        /// `geoip_org`.
        org: Option<Source>,
        /// Cache of files, so that two directives share one database.
        read: Vec<(Vec<u8>, Arc<Database>)>,
    }
    merge forget;
}

/// The database of a directive with its parameters.
pub(crate) struct Source {
    database: Arc<Database>,
    /// A second list, for the other address family.
    other: Option<Arc<Database>>,
    /// Whether texts of legacy databases are converted to UTF-8.
    utf8: bool,
}

fn forget(own: &mut GeoipMain, _: Option<&GeoipMain>) {
    own.read = Vec::new();
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Database of countries; a second file may have the ranges of the other family of addresses.
    directive "geoip_country": Contexts::HTTP, TAKE12, "", "file [utf8]" => country_file;

    /// Database of cities.
    directive "geoip_city": Contexts::HTTP, TAKE12, "", "file [utf8]" => |b, d| {
        conf::once(d, b.conf_mut::<GeoipMain>().city.is_some())?;
        let source = open(b, d, Purpose::City)?;
        b.conf_mut::<GeoipMain>().city = Some(source);
        Ok(())
    };

    /// Database of organisations, providers, domains or autonomous systems.
    directive "geoip_org": Contexts::HTTP, TAKE12, "", "file [utf8]" => |b, d| {
        conf::once(d, b.conf_mut::<GeoipMain>().org.is_some())?;
        let source = open(b, d, Purpose::Org)?;
        b.conf_mut::<GeoipMain>().org = Some(source);
        Ok(())
    };

    /// Proxies that are trusted to name the client.
    directive "geoip_proxy": Contexts::HTTP, TAKE1, "", "address | CIDR" => |b, d| {
        let network = networks::network(b, d, d.word(0))?;
        b.conf_mut::<GeoipMain>().proxies.push(network);
        Ok(())
    };
}

fn country_file(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let duplicate = || ConfError::directive(d, "is duplicate");
    let Some(mut first) = b.conf_mut::<GeoipMain>().country.take() else {
        let source = open(b, d, Purpose::Country)?;
        b.conf_mut::<GeoipMain>().country = Some(source);
        return Ok(());
    };
    let Database::Ranges(own) = &*first.database else {
        return Err(duplicate());
    };
    let second = open(b, d, Purpose::Country)?;
    match &*second.database {
        Database::Ranges(other) if first.other.is_none() && !own.shares_family(other) => {}
        _ => return Err(duplicate()),
    }
    first.utf8 |= second.utf8;
    first.other = Some(second.database);
    b.conf_mut::<GeoipMain>().country = Some(first);
    Ok(())
}

/// Reads a database, or returns the one that an earlier directive has read from a file of this name.
///
/// # Errors
/// The system's error, or the fault of the file.
pub(crate) fn read(b: &mut ConfigBuilder, name: &[u8]) -> Result<Arc<Database>, String> {
    let known = &b.conf_mut::<GeoipMain>().read;
    if let Some((_, database)) = known.iter().find(|(path, _)| path == name) {
        return Ok(Arc::clone(database));
    }
    let file = b.loader().source().open(Path::new(OsStr::from_bytes(name)));
    let bytes = file.and_then(|file| file.read());
    let bytes = bytes.map_err(|error| os_error(&error))?;
    if bytes.is_empty() {
        return Err("the file is empty".to_owned());
    }
    let database = Arc::new(Database::open(bytes)?);
    let entry = (name.to_vec(), Arc::clone(&database));
    b.conf_mut::<GeoipMain>().read.push(entry);
    Ok(database)
}

/// Reads the file of a directive. As in nginx a relative path is one of the directory the server was started in.
fn open(b: &mut ConfigBuilder, d: &Directive, purpose: Purpose) -> Result<Source, ConfError> {
    let (name, shown) = (d.arg(0), d.arg_str(0));
    let failed = |why: String| {
        let text = format!("GeoIP_open(\"{shown}\") failed ({why})");
        ConfError::word(d, d.word(0), text)
    };
    let database = read(b, name).map_err(failed)?;
    let utf8 = conf::has_option(d, 1, b"utf8")?;
    database.is_for(purpose).map_err(|kind| {
        let city = if purpose == Purpose::City {
            " City"
        } else {
            ""
        };
        let text = format!("invalid GeoIP{city} database \"{shown}\" type:{kind}");
        ConfError::word(d, d.word(0), text)
    })?;
    Ok(Source {
        database,
        other: None,
        utf8,
    })
}

/// The address to look up; `None` for one of a UNIX-domain socket.
fn address(x: &Exchange, conf: &GeoipMain) -> Option<IpAddr> {
    networks::client_ip(x, &conf.proxies, *conf.recursive)
}

fn country(x: &Exchange, part: CountryPart, out: &mut Vec<u8>) -> bool {
    let conf: &GeoipMain = x.route.http.main();
    let Some(source) = &conf.country else {
        return false;
    };
    let ip = address(x, conf);
    let mut databases = iter::once(&source.database).chain(&source.other);
    databases.any(|database| fields::country(database, ip, part, source.utf8, out))
}

fn city(x: &Exchange, part: CityPart, out: &mut Vec<u8>) -> bool {
    let conf: &GeoipMain = x.route.http.main();
    let Some(source) = &conf.city else {
        return false;
    };
    let ip = address(x, conf);
    fields::city(&source.database, ip, part, source.utf8, out)
}

fn org(x: &Exchange, out: &mut Vec<u8>) -> bool {
    let conf: &GeoipMain = x.route.http.main();
    let Some(source) = &conf.org else {
        return false;
    };
    fields::org(&source.database, address(x, conf), source.utf8, out)
}

const VARIABLES: &[Variable] = variables! {
    "geoip_country_code": "two-letter code of the country" => |x, _, _, out| country(x, CountryPart::Code, out);
    "geoip_country_code3": "three-letter code of the country" => |x, _, _, out| country(x, CountryPart::Code3, out);
    "geoip_country_name": "name of the country" => |x, _, _, out| country(x, CountryPart::Name, out);
    "geoip_org": "organisation" => |x, _, _, out| org(x, out);
    "geoip_city_continent_code": "two-letter code of the city's continent"
        => |x, _, _, out| city(x, CityPart::Continent, out);
    "geoip_city_country_code": "two-letter code of the city's country"
        => |x, _, _, out| city(x, CityPart::Country(CountryPart::Code), out);
    "geoip_city_country_code3": "three-letter code of the city's country"
        => |x, _, _, out| city(x, CityPart::Country(CountryPart::Code3), out);
    "geoip_city_country_name": "name of the city's country"
        => |x, _, _, out| city(x, CityPart::Country(CountryPart::Name), out);
    "geoip_region": "code of the city's region" => |x, _, _, out| city(x, CityPart::Region, out);
    "geoip_region_name": "name of the city's region" => |x, _, _, out| city(x, CityPart::RegionName, out);
    "geoip_city": "name of the city" => |x, _, _, out| city(x, CityPart::City, out);
    "geoip_postal_code": "postal code of the city" => |x, _, _, out| city(x, CityPart::PostalCode, out);
    "geoip_latitude": "latitude of the city" => |x, _, _, out| city(x, CityPart::Latitude, out);
    "geoip_longitude": "longitude of the city" => |x, _, _, out| city(x, CityPart::Longitude, out);
    "geoip_dma_code": "code of the metropolitan area, of the United States"
        => |x, _, _, out| city(x, CityPart::DmaCode, out);
    "geoip_area_code": "code of the telephone area, of the United States"
        => |x, _, _, out| city(x, CityPart::AreaCode, out);
};
