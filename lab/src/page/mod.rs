//! A visit to a page: its resources, the beginning and end of each of their phases, and the timings of the page.
//!
//! A [`Visit`] comes from a browser, from the clients of this crate, or from a HAR file; waterfalls, the doctor and
//! comparisons read nothing else. Times are fractional milliseconds from the start of the visit.
//!
//! Source: docs/lab.md; phases as in HAR 1.2 and in W3C Resource Timing.

pub mod analysis;
pub mod comparison;
mod figure;
pub mod har;
mod resource;
mod runs;
mod visit;

pub use figure::{FIGURES, Figure};
pub use resource::{Kind, Phases, Piece, Resource, origin};
pub use runs::{AnalysedVisit, Runs, Views};
pub use visit::{Agent, Frame, PROGRAM, PageTimings, TITLE_BYTES_MAX, View, Visit, Withheld};
