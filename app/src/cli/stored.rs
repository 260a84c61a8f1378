//! Stores of connections and visits as options of verbs.

use std::path::{Path, PathBuf};

use server_base::lab_store::{ClickHouseConf, LabEngine, StoreUrl};

/// A store with its credentials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'o> {
    /// `sqlite:PATH` or `clickhouse:URL`.
    pub(super) url: &'o str,
    /// User of ClickHouse, the file of its password, and trusted certificates.
    pub(super) user: Option<&'o str>,
    pub(super) password_file: Option<&'o Path>,
    pub(super) cacert: Option<&'o Path>,
}

impl Stored<'_> {
    /// Returns the store with the given URL.
    ///
    /// # Errors
    /// A sentence: the URL is wrong.
    pub(super) fn engine(&self) -> Result<LabEngine, String> {
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
