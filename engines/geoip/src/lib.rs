//! Databases of addresses: bytes of a file in, countries, cities and network operators out.
//!
//! [`database::Database`] recognises the format of a file: MaxMind DB ([`mmdb`]), MaxMind's older databases
//! ([`legacy`]) and lists of ranges ([`ranges`]). A broken file yields wrong answers or none, but no panic. [`Places`]
//! searches several databases in order.
//!
//! A crate of its own, since the server and the measuring tools use it, and the protocol engines do not. Like these
//! it is pure: callers read the files.
#![forbid(unsafe_code)]

pub mod countries;
pub mod database;
mod iso;
pub mod legacy;
pub mod mmdb;
pub mod mmdb_data;
mod operators;
mod places;
pub mod ranges;
pub mod regions;
#[cfg(test)]
#[path = "testing_tests.rs"]
mod testing;

pub use iso::{code_of_numeric, codes, is_country, name_of, numeric_of};
pub use operators::OPERATOR_CHARS_MAX;
pub use places::{DEBIAN_FILES, DEBIAN_PACKAGE, Location, Places, PlacesError};
