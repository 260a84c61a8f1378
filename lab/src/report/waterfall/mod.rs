//! Pictures of visits: waterfalls as text, as SVG and as a page, of one visit or of two on one time axis.
//!
//! A visit's figures come from [`crate::page::analysis`]; nothing is measured here. Names, fields and pictures of a visit are
//! of others: they are escaped, characters that a reader does not see are written out, and each has a limit.
//!
//! Absent: scripts. A page is read, printed and walked through by keyboard without them.
//!
//! Source: docs/waterfall.md.

mod canvas;
pub mod compare;
mod connections;
mod details;
mod figures;
mod filmstrip;
mod html;
mod palette;
mod rows;
mod scale;
mod summary;
mod svg;
mod text;

#[cfg(test)]
mod tests;

pub use html::html;
pub use svg::svg;
pub use text::text;
