//! The map of a store: connections that the server has recorded.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lab::map::RttMap;
use server_base::lab_store::{ClickHouseConf, LabEngine, StoreUrl};
use store::Query;

use crate::recorder;

/// Connections of a store to be mapped.
#[derive(Debug)]
pub(super) struct Recorded<'o> {
    /// `sqlite:PATH` or `clickhouse:URL`.
    pub(super) url: &'o str,
    /// User of ClickHouse, the file of its password, and trusted certificates.
    pub(super) user: Option<&'o str>,
    pub(super) password_file: Option<&'o Path>,
    pub(super) cacert: Option<&'o Path>,
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
        let engine = self.engine()?;
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

impl Recorded<'_> {
    /// Returns the store that the URL names.
    fn engine(&self) -> Result<LabEngine, String> {
        if let Some(path) = self
            .url
            .strip_prefix("sqlite:")
            .filter(|path| !path.is_empty())
        {
            return Ok(LabEngine::Sqlite(path.into()));
        }
        let Some(url) = self.url.strip_prefix("clickhouse:") else {
            // A wrong URL may have a password.
            return Err("a store is \"sqlite:path\" or \"clickhouse:url\"".to_owned());
        };
        let url = StoreUrl::parse(url).map_err(|why| format!("the store: {why}"))?;
        Ok(LabEngine::ClickHouse(ClickHouseConf {
            url,
            user: self.user.map(str::to_owned),
            password_file: self.password_file.map(Path::to_owned),
            ca_file: self.cacert.map(Path::to_owned),
            // Nothing is written.
            spill: PathBuf::new(),
            spill_bytes: 0,
            batch_ms: 0,
        }))
    }
}

/// Seconds of a day.
const DAY_S: u64 = 86_400;
