//! The map of round-trip times: countries with their requests and the histograms of their round-trip times.
//!
//! Source: docs/map.md.

mod figures;
pub mod log;
mod output;
mod world;

pub use figures::{CountryCode, CountryFigures, RttMap};
pub use output::{MIN_SAMPLES, Options, Quantile, Subject, csv, html, json, svg, text};
pub(crate) use output::{PAGE_RULES, PICTURE_RULES, Times, cell, part};
