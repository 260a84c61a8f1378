//! A database of any of the formats.
//!
//! The content of a file determines its format: MaxMind DB files have a mark, lists of ranges are text, and the older
//! databases have a structure at their end.

use crate::legacy::{DatabaseKind, Legacy};
use crate::mmdb::Mmdb;
use crate::ranges::Ranges;

/// A database in memory.
#[derive(Debug)]
pub enum Database {
    /// One of MaxMind's older databases.
    Legacy(Legacy),
    /// A MaxMind DB file.
    Mmdb(Mmdb),
    /// A list of ranges.
    Ranges(Ranges),
}

/// The purpose of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Codes and names of countries.
    Country,
    /// Cities with their subdivisions.
    City,
    /// Organisations, providers and autonomous systems.
    Org,
}

impl Database {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// The reason why the bytes are no database.
    pub fn open(bytes: Vec<u8>) -> Result<Self, String> {
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

    /// Whether the database can have the fields for a purpose.
    ///
    /// # Errors
    /// The type of a database that cannot.
    pub fn is_for(&self, purpose: Purpose) -> Result<(), String> {
        let fits = match self {
            Self::Legacy(database) => match database.edition().kind {
                DatabaseKind::Country => purpose == Purpose::Country,
                DatabaseKind::City { .. } => purpose == Purpose::City,
                DatabaseKind::Name(_) => purpose == Purpose::Org,
                DatabaseKind::Other => false,
            },
            Self::Mmdb(database) => type_fits(&database.database_type, purpose),
            Self::Ranges(_) => purpose == Purpose::Country,
        };
        if fits { Ok(()) } else { Err(self.type_name()) }
    }

    /// Returns the type: that of the metadata, the number of an older database, or `ranges`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Self::Legacy(database) => database.edition().number.to_string(),
            Self::Mmdb(database) => database.database_type.clone(),
            Self::Ranges(_) => "ranges".to_owned(),
        }
    }
}

/// Whether a database of this type can have the fields for a purpose. An unspecific type can have all of them.
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

/// Words in the types of databases with countries, with cities, and with organisations.
const PLACES: &[&str] = &["country", "city", "location", "enterprise", "insights"];
const CITIES: &[&str] = &["city", "location", "enterprise", "insights"];
const NAMES: &[&str] = &["asn", "isp", "org", "domain", "enterprise", "insights"];
