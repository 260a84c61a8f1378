//! The interface of all engines.

use std::time::Duration;

use crate::connection::Connection;
use crate::error::Error;
use crate::query::{MapAnswer, Query, Totals};
use crate::retention::{Maintained, Retention};

/// A store of connections.
pub trait Store {
    /// Stores rows in one transaction.
    ///
    /// # Errors
    /// If the rows cannot be stored; none is stored then.
    fn insert(&mut self, rows: &[Connection]) -> Result<(), Error>;

    /// Groups the connections of a period, each with sums and with the histogram of one metric.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn map(&self, query: &Query) -> Result<MapAnswer, Error>;

    /// Adds up the connections of a period. The metric of the query does not matter.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn totals(&self, query: &Query) -> Result<Totals, Error>;

    /// Adds new rows to the roll-ups, and deletes old rows and roll-ups. It stops after the step that reaches the time limit.
    ///
    /// # Errors
    /// If the store cannot be written. Completed steps remain.
    fn maintain(
        &mut self,
        now_s: u64,
        retention: &Retention,
        limit: Duration,
    ) -> Result<Maintained, Error>;
}
