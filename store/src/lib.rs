//! The store: samples of connections and their histograms by minute, hour and day.
//!
//! The threads that serve requests never use this crate. The supervisor's store process writes, and the lab reads.
//!
//! Source: docs/map.md.
#![forbid(unsafe_code)]

mod histogram;

pub use histogram::{Cell, Histogram, bounds_of, bucket_of};
