//! Reports of a bench, as JSON, text, a page and a log of histograms; pictures of visits ([`waterfall`]).
//!
//! The structs are the format `firstbyte-bench/1`. Members may be added, but none is removed or changes its meaning. Readers
//! ignore unknown members.
//!
//! Source: docs/lab.md.

mod columns;
pub mod compare;
mod comparison;
mod conditions;
pub mod doctor;
mod document;
mod escape;
mod excluded;
mod format;
pub mod hdr;
pub mod html;
mod server;
mod style;
mod table;
pub mod text;
mod warnings;
pub mod waterfall;
#[cfg(test)]
pub(crate) mod xml_tests;

pub use columns::{WIDTH, WIDTH_MIN, within};
pub use comparison::ComparisonReport;
pub use conditions::Conditions;
pub(crate) use document::{document, wide};
pub(crate) use escape::bounded;
pub use escape::{escaped_json, visible};
pub use format::{FORMAT, PROGRAM, Report, Settings};
pub use server::{Block, Excluded, Figure, ServerReport, TimesReport};
pub(crate) use style::STYLE;
pub use table::push_lines;
pub(crate) use table::{push_rows, push_wrapped};
