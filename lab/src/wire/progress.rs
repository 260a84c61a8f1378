//! How far a visit is.

use std::time::Duration;

/// How far a visit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Resources that are known so far.
    pub resources: usize,
    /// Complete resources.
    pub done: usize,
    /// Time since the visit began.
    pub elapsed: Duration,
}
