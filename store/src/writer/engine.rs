//! The interface of all engines for the thread that writes.

use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::error::Error;
use crate::query::OpenSample;

/// Rows of the next commit.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) rows: Vec<Connection>,
    pub(crate) open: Vec<OpenSample>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.open.is_empty()
    }
}

/// A store that one thread writes.
pub(crate) trait Engine: Send {
    /// Rows of a commit at most.
    fn rows_max(&self) -> usize;

    /// Returns the time from the first row of the next commit to this commit, `longest` at most.
    fn commit_pause(&self, longest: Duration) -> Duration {
        longest
    }

    /// Stores rows and removes them from the batch; rows that remain are kept for the next try.
    fn commit(&mut self, batch: &mut Batch) -> Result<(), Error>;

    /// Does the work of the store itself, such as roll-ups. Returns the time of the next call.
    fn maintain(&mut self) -> Result<Instant, Error>;

    /// Whether so many rows since the last maintenance are a reason for the next one.
    fn is_maintenance_due(&self, rows: u64) -> bool;

    /// Notes that a commit or a maintenance failed.
    fn note_failure(&mut self, error: &Error);

    /// Ends the work of the engine, within a few seconds.
    fn close(&mut self);
}
