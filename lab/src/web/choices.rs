//! Values of the filters, read from the store and kept for some seconds.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::{Error, Grouping, Query, Store};

use crate::time::DAY_S;

/// Values of the filters, and the period that the store has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choices {
    /// Protocols of the last 90 days of the store.
    pub(super) protocols: Vec<String>,
    /// Servers of the same days, at most [`SERVERS_MAX`].
    pub(super) servers: Vec<String>,
    /// Begin and end of all connections, Unix seconds.
    pub(super) extent: (u64, u64),
}

/// The values that all threads share.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Option<(Instant, Choices)>>);

impl Kept {
    /// Returns the values of the filters; `None` for an empty store. They are read anew after [`LIFE`].
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) fn read(&self, store: &dyn Store) -> Result<Option<Choices>, Error> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = lock().clone();
        if let Some((at, found)) = found
            && at.elapsed() < LIFE
        {
            return Ok(Some(found));
        }
        // Not under the lock: a slow store must not hold all threads.
        let Some(extent) = store.extent()? else {
            return Ok(None);
        };
        let query = |grouping| Query {
            from_s: extent.0.max(extent.1.saturating_sub(NEWEST_S)),
            to_s: extent.1,
            grouping,
            ..Query::default()
        };
        let names = |grouping| -> Result<Vec<String>, Error> {
            let groups = store.answer(&query(grouping))?.groups;
            Ok(groups
                .into_iter()
                .map(|group| group.key)
                .take(SERVERS_MAX)
                .collect())
        };
        let made = Choices {
            protocols: names(Grouping::Protocol)?,
            servers: names(Grouping::Server)?,
            extent,
        };
        *lock() = Some((Instant::now(), made.clone()));
        Ok(Some(made))
    }
}

/// Age at which the values of filters are read anew.
const LIFE: Duration = Duration::from_secs(30);
/// Newest part of the store, from which the values of filters are read, seconds.
const NEWEST_S: u64 = 90 * DAY_S;
/// Servers of the filter.
const SERVERS_MAX: usize = 1000;
