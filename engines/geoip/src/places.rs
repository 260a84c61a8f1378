//! Several databases as one: country, subdivision and network operator of an address.
//!
//! Files come in an order of precedence: of two with countries, the first that knows the country of an address counts,
//! and so for operators. An IPv4-mapped IPv6 address is looked up as IPv4. Only codes of [`is_country`] are countries,
//! and names are cleaned, since the content of a file is input as well.
//!
//! Absent: names of places below a country. The callers need groups of addresses, not positions.

use core::fmt;
use core::net::IpAddr;
use std::io;
use std::sync::Arc;

use crate::countries::Country;
use crate::database::{Database, Purpose};
use crate::iso::is_country;
use crate::legacy::{DatabaseKind, Legacy};
use crate::mmdb::Mmdb;
use crate::mmdb_data::Value;
use crate::operators;

/// Databases in memory, in their order of precedence.
#[derive(Debug)]
pub struct Places {
    sources: Vec<Source>,
}

/// A database with its file's name.
#[derive(Debug)]
struct Source {
    file: String,
    database: Arc<Database>,
    /// Whether it can have countries.
    countries: bool,
    /// Whether it can have subdivisions.
    subdivisions: bool,
    /// Whether it can have network operators.
    operators: bool,
}

/// The fields of an address; each is `None` if no database has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// Code of ISO 3166-1, two capitals.
    pub country: Option<[u8; 2]>,
    /// Code of ISO 3166-2 such as `US-CA`, always of the country above.
    pub subdivision: Option<String>,
    /// Autonomous system or provider such as `AS64496 Example`, without control characters, of
    /// [`OPERATOR_CHARS_MAX`](crate::OPERATOR_CHARS_MAX) characters at most.
    pub operator: Option<String>,
}

/// The reason why databases are not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacesError {
    /// No file was named, and Debian's package with the default files is not installed.
    NotInstalled,
    /// A file that cannot be read.
    Unreadable {
        /// Its name.
        file: String,
        /// The system's error.
        reason: String,
    },
    /// A file without bytes.
    Empty {
        /// Its name.
        file: String,
    },
    /// A file that is no database of a known format, or a list without ranges.
    Malformed {
        /// Its name.
        file: String,
        /// The first fault.
        reason: String,
    },
    /// A database without countries and without network operators.
    WrongKind {
        /// Its name.
        file: String,
        /// The type that it has in its metadata, or a number.
        database_type: String,
    },
}

impl PlacesError {
    /// Returns the error without the file's name.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::NotInstalled => format!(
                "no database of countries: install {DEBIAN_PACKAGE} \
                 (apt-get install {DEBIAN_PACKAGE}) or name a file in \"geoip_database\""
            ),
            Self::Unreadable { reason, .. } | Self::Malformed { reason, .. } => reason.clone(),
            Self::Empty { .. } => "the file is empty".to_owned(),
            Self::WrongKind { database_type, .. } => format!(
                "a database of type \"{database_type}\" has neither countries nor network operators"
            ),
        }
    }
}

impl fmt::Display for PlacesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => {}
            Self::Unreadable { file, .. }
            | Self::Empty { file }
            | Self::Malformed { file, .. }
            | Self::WrongKind { file, .. } => write!(f, "\"{file}\": ")?,
        }
        f.write_str(&self.reason())
    }
}

impl core::error::Error for PlacesError {}

impl Places {
    /// Reads files by their names and contents.
    ///
    /// # Errors
    /// [`PlacesError`] of the first wrong file; `NotInstalled` without files.
    pub fn read<I>(files: I) -> Result<Self, PlacesError>
    where
        I: IntoIterator<Item = (String, Vec<u8>)>,
    {
        let databases = files.into_iter().map(|(file, bytes)| {
            let database = open(&file, bytes)?;
            Ok((file, Arc::new(database)))
        });
        Self::of_databases(databases.collect::<Result<Vec<_>, _>>()?)
    }

    /// Reads named files, or those of [`DEBIAN_FILES`] that exist if none is named. `read` returns a file's content.
    ///
    /// # Errors
    /// As [`Self::read`]; `Unreadable` if a named file does not exist, or on any other error of `read`.
    pub fn open<S: AsRef<str>>(
        files: &[S],
        mut read: impl FnMut(&str) -> io::Result<Vec<u8>>,
    ) -> Result<Self, PlacesError> {
        let named = files.iter().map(|file| (file.as_ref(), true));
        let defaults = DEBIAN_FILES.iter().map(|file| (*file, false));
        let candidates: Vec<_> = if files.is_empty() {
            defaults.collect()
        } else {
            named.collect()
        };
        let mut contents = Vec::new();
        for (file, must_exist) in candidates {
            match read(file) {
                Ok(bytes) => contents.push((file.to_owned(), bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => {}
                Err(error) => {
                    return Err(PlacesError::Unreadable {
                        file: file.to_owned(),
                        reason: error.to_string(),
                    });
                }
            }
        }
        Self::read(contents)
    }

    /// Takes databases in memory, by the names of their files.
    ///
    /// # Errors
    /// `WrongKind` for a database without countries and operators, `Malformed` for a list without ranges,
    /// `NotInstalled` without databases.
    pub fn of_databases<I>(databases: I) -> Result<Self, PlacesError>
    where
        I: IntoIterator<Item = (String, Arc<Database>)>,
    {
        let sources = databases
            .into_iter()
            .map(|(file, database)| Source::new(file, database));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        if sources.is_empty() {
            return Err(PlacesError::NotInstalled);
        }
        Ok(Self { sources })
    }

    /// Returns the names of the files, in their order of precedence.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.file.as_str())
    }

    /// Returns an address's country: a code accepted by [`is_country`].
    #[must_use]
    pub fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        let ip = ip.to_canonical();
        let sources = self.sources.iter().filter(|source| source.countries);
        sources
            .into_iter()
            .find_map(|source| country(&source.database, ip))
    }

    /// Returns all fields of an address.
    #[must_use]
    pub fn find(&self, ip: IpAddr) -> Location {
        let ip = ip.to_canonical();
        let country = self.country(ip);
        let mut cities = self.sources.iter().filter(|source| source.subdivisions);
        let subdivision = country.and_then(|country| {
            let code = |source: &Source| subdivision(&source.database, ip, country);
            cities.find_map(code)
        });
        let mut named = self.sources.iter().filter(|source| source.operators);
        Location {
            country,
            subdivision,
            operator: named.find_map(|source| operators::operator(&source.database, ip)),
        }
    }
}

/// Reads one file.
fn open(file: &str, bytes: Vec<u8>) -> Result<Database, PlacesError> {
    if bytes.is_empty() {
        let file = file.to_owned();
        return Err(PlacesError::Empty { file });
    }
    Database::open(bytes).map_err(|reason| PlacesError::Malformed {
        file: file.to_owned(),
        reason,
    })
}

impl Source {
    fn new(file: String, database: Arc<Database>) -> Result<Self, PlacesError> {
        let is_for = |purpose| database.is_for(purpose).is_ok();
        let countries = is_for(Purpose::Country) || is_for(Purpose::City);
        let operators = is_for(Purpose::Org);
        let has_any = match &*database {
            Database::Legacy(_) => countries || operators,
            Database::Ranges(ranges) if ranges.is_empty() => {
                let reason = "the list has no ranges".to_owned();
                return Err(PlacesError::Malformed { file, reason });
            }
            Database::Ranges(_) => true,
            Database::Mmdb(mmdb) => has_fields(mmdb, countries, operators),
        };
        if !has_any {
            let database_type = database.type_name();
            return Err(PlacesError::WrongKind {
                file,
                database_type,
            });
        }
        Ok(Self {
            subdivisions: is_for(Purpose::City),
            file,
            database,
            countries,
            operators,
        })
    }
}

/// Whether a record among the first [`RECORDS_EXAMINED_MAX`] has a country, or an operator.
fn has_fields(mmdb: &Mmdb, countries: bool, operators: bool) -> bool {
    let mut records = mmdb.records().take(RECORDS_EXAMINED_MAX);
    records.any(|record| {
        (countries && country_of_record(mmdb, record).is_some())
            || (operators && operators::operator_of_record(mmdb, record).is_some())
    })
}

/// Returns the country in one database.
fn country(database: &Database, ip: IpAddr) -> Option<[u8; 2]> {
    let code = match database {
        Database::Ranges(ranges) => ranges.code(ip)?,
        Database::Mmdb(mmdb) => return country_of_record(mmdb, mmdb.record_of(ip)?),
        Database::Legacy(legacy) => {
            let country = Country::numbered(country_number(legacy, ip)?)?;
            country.code.as_bytes().try_into().ok()?
        }
    };
    known(code)
}

/// Returns a country's number in an older database.
fn country_number(legacy: &Legacy, ip: IpAddr) -> Option<u8> {
    if !legacy.has_family(ip) {
        return None;
    }
    match legacy.edition().kind {
        DatabaseKind::Country => legacy.country(Some(ip)),
        DatabaseKind::City { .. } => Some(legacy.city(Some(ip))?.country),
        DatabaseKind::Name(_) | DatabaseKind::Other => None,
    }
}

/// Returns a country's code in a MaxMind DB file: as MaxMind has it, or directly in the record as others do.
fn country_of_record(mmdb: &Mmdb, record: usize) -> Option<[u8; 2]> {
    COUNTRY_PATHS.iter().find_map(|path| {
        let Some(Value::Text(text)) = mmdb.value_of(record, path) else {
            return None;
        };
        known(text.try_into().ok()?)
    })
}

/// Returns the code of an address's subdivision, if it is part of the country.
fn subdivision(database: &Database, ip: IpAddr, country: [u8; 2]) -> Option<String> {
    let code: &[u8] = match database {
        Database::Ranges(_) => return None,
        Database::Mmdb(mmdb) => {
            let record = mmdb.record_of(ip)?;
            let path = ["subdivisions", "0", "iso_code"];
            match mmdb.value_of(record, &path)? {
                Value::Text(code) if country_of_record(mmdb, record)? == country => code,
                _ => return None,
            }
        }
        // Only in these two countries the regions of the older databases have codes of ISO 3166-2.
        Database::Legacy(legacy) if matches!(&country, b"US" | b"CA") => {
            let city = legacy
                .has_family(ip)
                .then(|| legacy.city(Some(ip)))
                .flatten()?;
            let code = Country::numbered(city.country)?.code.as_bytes();
            city.region.filter(|_| code == country)?
        }
        Database::Legacy(_) => return None,
    };
    let is_code = (1..=SUBDIVISION_CHARS_MAX).contains(&code.len())
        && code
            .iter()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let [a, b] = country.map(char::from);
    let code = str::from_utf8(code).ok().filter(|_| is_code)?;
    Some(format!("{a}{b}-{code}"))
}

/// Returns the code if it is a country's. `UK`, which registries use, is the United Kingdom's.
fn known(code: [u8; 2]) -> Option<[u8; 2]> {
    let code = if code == *b"UK" { *b"GB" } else { code };
    is_country(code).then_some(code)
}

/// Debian's package of lists of countries by address.
pub const DEBIAN_PACKAGE: &str = "tor-geoipdb";
/// The files of that package, used if no file is named.
pub const DEBIAN_FILES: [&str; 2] = ["/usr/share/tor/geoip", "/usr/share/tor/geoip6"];

/// Paths of a country's code in the records of MaxMind DB files: MaxMind and DB-IP, lists of others, IPinfo's older ones.
const COUNTRY_PATHS: [&[&str]; 3] = [&["country", "iso_code"], &["country_code"], &["country"]];
/// Maximum length of a subdivision's code, ISO 3166-2.
const SUBDIVISION_CHARS_MAX: usize = 3;
/// Maximum number of records examined to find a field in a file.
const RECORDS_EXAMINED_MAX: usize = 100_000;

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
