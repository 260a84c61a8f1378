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

pub use csv::csv;
pub use html::html;
pub use json::json;
pub use options::{MIN_SAMPLES, Options};
pub use svg::svg;
pub use text::text;
