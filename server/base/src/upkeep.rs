//! Work beside serving: what a module does now and then, asked for by no request.
//!
//! The worker's main thread does it, which serves nobody, so it may read a file and take its time. Absent: anything
//! for the supervisor, which reads its files when it reloads.

use crate::errlog::ErrorLog;

/// Something to be done again and again while a configuration is served.
pub trait Upkeep: Send + Sync {
    /// Does it, at this time (seconds since 1970): once before anything is served, then whenever as many milliseconds
    /// have passed as it gives back; never again where it gives none. A panic ends the worker.
    fn run(&self, now_s: i64, log: &ErrorLog) -> Option<u64>;
}
