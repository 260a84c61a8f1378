//! Outputs of a map: picture, page, table for programs, and text for a terminal.
//!
//! Names of files, warnings and codes of countries are texts of others. Templates escape them by type; control characters
//! are written out, and lengths have limits.

mod csv;
mod html;
mod json;
mod options;
mod rows;
mod scale;
mod style;
mod svg;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use csv::cell;
pub use csv::csv;
pub use html::html;
pub use json::json;
pub use options::{MIN_SAMPLES, Options, Quantile, Subject};
pub(crate) use rows::Times;
pub(crate) use style::{HTML as PAGE_RULES, PICTURE as PICTURE_RULES};
pub(crate) use svg::part;
pub use svg::svg;
pub use text::text;
