//! The map of round-trip times: countries with their requests and the histograms of their round-trip times.
//!
//! Source: docs/map.md.

mod figures;

pub use figures::{CountryCode, CountryFigures, RttMap};
