//! The lab: what loads servers and says what it measured.
//!
//! The engines in the client role and system calls; nothing here is part of a server. A run is asked for with a
//! [`Plan`] and gives an [`Outcome`]; what is told of it says how many measurements a figure stands on, how sure it is, and
//! under which conditions it was taken.
//!
//! Source: docs/lab.md.
#![forbid(unsafe_code)]

pub mod bench;
pub mod cpu;
pub mod engine;
mod flights;
pub mod hdr;
mod judge;
mod link;
mod load;
pub mod mix;
pub mod outcome;
mod pace;
pub mod report;
mod run;
pub mod stats;
pub mod trust;
pub mod url;

pub use judge::Judge;
pub use load::{Connect, Plan};
pub use mix::Request;
pub use outcome::Outcome;
pub use run::{Progress, run};
