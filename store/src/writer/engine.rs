//! The interface of all engines for the thread that writes.

use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::error::Error;
use crate::experiment::ExperimentRows;
use crate::query::OpenSample;

/// Rows of the next commit.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) rows: Vec<Connection>,
    pub(crate) open: Vec<OpenSample>,
    pub(crate) experiments: ExperimentRows,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.largest() == 0
    }

    /// Rows that counters count: connections and page views.
    pub(crate) fn counted(&self) -> u64 {
        (self.rows.len() + self.experiments.visits.len()) as u64
    }

    /// Number of rows of the largest table.
    pub(crate) fn largest(&self) -> usize {
        let ExperimentRows {
            visits,
            arms,
            settings,
        } = &self.experiments;
        let others = [visits.len(), arms.len(), settings.len()];
        let most = self.rows.len().max(self.open.len());
        others.into_iter().fold(most, usize::max)
    }

    /// Removes all rows.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.open.clear();
        self.experiments.visits.clear();
        self.experiments.arms.clear();
        self.experiments.settings.clear();
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

    /// Whether this many rows since the last maintenance require the next one.
    fn is_maintenance_due(&self, rows: u64) -> bool;

    /// Notes that a commit or a maintenance failed.
    fn note_failure(&mut self, error: &Error);

    /// Ends the work of the engine, within a few seconds.
    fn close(&mut self);
}
