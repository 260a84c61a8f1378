//! The store: samples of connections and their histograms by minute, hour and day.
//!
//! The threads that serve requests never use this crate. The supervisor's store process writes through a [`Writer`], and the lab
//! reads with [`SqliteReader`].
//!
//! Source: docs/store.md.
#![forbid(unsafe_code)]

mod clickhouse;
mod clock;
mod connection;
mod counters;
mod error;
mod experiment;
mod histogram;
mod network;
mod packed;
mod period;
mod query;
mod retention;
mod sql;
mod sqlite;
mod store;
mod writer;

pub use clickhouse::{
    ClickHouse, ClickHouseSettings, HttpRequest, HttpResponse, Transport, TransportError,
};
pub use connection::{Connection, HandshakeKind, Stalls, TEXT_BYTES_MAX};
pub use counters::{Counters, Counts, Report};
pub use error::Error;
pub use experiment::{
    ArmFigures, ArmStep, ArmTotals, Excluded, ExperimentQuery, ExperimentRows, ExperimentSettings,
    ExperimentSummary, UserValue, VISIT_METRICS, Visit, VisitMetric,
};
pub use histogram::{Cell, Histogram, bounds_of, bucket_of};
pub use network::{Network, NetworkError, Prefixes, V4_PREFIX_MAX, V6_PREFIX_MAX};
pub use query::{
    Answer, Dimension, Group, Grouping, Metric, NETWORK_ROWS_MAX, NetworkGroup, Networks,
    OpenConnections, OpenSample, Query, Step, Totals,
};
pub use retention::{HOURS_KEPT_S, MAX_BYTES_LEAST, MINUTES_KEPT_S, Maintained, Retention};
pub use sqlite::{MovedAside, NAMES_MAX, Opened, Sqlite, SqliteReader};
pub use store::Store;
pub use writer::{Settings, Writer};
