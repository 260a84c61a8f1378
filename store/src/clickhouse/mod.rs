//! The store in ClickHouse, over its HTTP interface.
//!
//! The writer's thread puts batches into a spill directory, and a second thread sends them, one at a time. ClickHouse inserts a batch
//! as one part of `connection`; materialized views fill the roll-ups. After a failure each statement runs again: it does nothing if
//! its rows are stored.
//!
//! Source: docs/store.md, "ClickHouse".

use std::path::PathBuf;
use std::time::Duration;

use crate::retention::Retention;

mod batch;
mod client;
mod encode;
mod engine;
mod experiments;
mod keep;
mod migrate;
mod parse;
mod random;
mod read;
mod reader;
mod select;
mod send;
mod shared;
mod spill;
mod sql;
mod text;
mod transport;

pub(crate) use engine::ClickHouseEngine;
pub use read::ClickHouse;
pub use transport::{HttpRequest, HttpResponse, Transport, TransportError};

/// Settings of a [`Writer`](crate::Writer) of ClickHouse.
#[derive(Clone, PartialEq, Eq)]
pub struct ClickHouseSettings {
    /// Database; it is made if there is none.
    pub database: String,
    /// User, or ClickHouse's default one.
    pub user: Option<String>,
    /// Password of the user.
    pub password: Option<String>,
    /// Directory of the batches that wait. One process at a time uses it.
    pub spill: PathBuf,
    /// Largest sum of the sizes of waiting batches, bytes. A batch that does not fit is dropped.
    pub spill_bytes: u64,
    /// Longest time of a row before its batch is spilled. A killed process loses the rows of this time.
    pub batch_pause: Duration,
    /// Limits of age. Sizes are not limited.
    pub retention: Retention,
}

impl std::fmt::Debug for ClickHouseSettings {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the password.
        out.debug_struct("ClickHouseSettings")
            .field("database", &self.database)
            .field("user", &self.user)
            .field("spill", &self.spill)
            .field("spill_bytes", &self.spill_bytes)
            .field("batch_pause", &self.batch_pause)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
