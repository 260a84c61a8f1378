//! The map of a store: connections that the server has recorded.

use std::time::{SystemTime, UNIX_EPOCH};

use lab::map::RttMap;
use store::Query;

use crate::cli::stored::Stored;
use crate::recorder;

/// Connections of a store to be mapped.
#[derive(Debug)]
pub(super) struct Recorded<'o> {
    pub(super) store: Stored<'o>,
    /// Days before now.
    pub(super) days: u64,
    pub(super) protocol: Option<&'o str>,
    pub(super) server: Option<&'o str>,
}

/// A map, and its period in Unix seconds.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) map: RttMap,
    pub(super) period: (i64, i64),
}

impl Recorded<'_> {
    /// Reads the map.
    ///
    /// # Errors
    /// A sentence: the URL is not that of a file, the file cannot be read, or has no connection of the period.
    pub(super) fn read(&self) -> Result<Mapped, String> {
        let engine = self.store.engine()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        // Connections of this second count.
        let to_s = now.map_or(0, |since| since.as_secs()) + 1;
        let query = Query {
            from_s: to_s.saturating_sub(self.days * DAY_S),
            to_s,
            protocol: self.protocol.map(str::to_owned),
            server: self.server.map(str::to_owned),
            ..Query::default()
        };
        let store = recorder::open_to_read(&engine)?;
        let answer = store
            .answer(&query)
            .map_err(|error| format!("{engine}: {error}"))?;
        if answer.groups.is_empty() {
            let days = self.days;
            return Err(format!(
                "{engine}: no such connection in the last {days} days"
            ));
        }
        Ok(Mapped {
            map: RttMap::of_store(&answer),
            // The end of the query does not belong to it.
            period: (answer.from_s as i64, answer.to_s.min(to_s) as i64 - 1),
        })
    }
}

/// Seconds of a day.
const DAY_S: u64 = 86_400;
