//! Settings of the store of the lab, as the supervisor starts the store process by them.
//!
//! Source: docs/map.md.

use std::path::PathBuf;

/// Settings of `lab_store`, `lab_retention`, `lab_network` and `geoip_database`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabStoreConf {
    /// File of the SQLite database, absolute.
    pub path: PathBuf,
    /// Name of this server in the rows; `None` for the name of the host.
    pub server: Option<String>,
    /// Time for which histograms by day are kept, seconds.
    pub retention_s: u64,
    /// Time for which rows of single connections are kept, seconds.
    pub rows_s: u64,
    /// Limit of the file's size, bytes; 0 for none.
    pub max_bytes: u64,
    /// Prefix lengths to which IPv4 and IPv6 addresses are truncated; `None` stores no networks.
    pub network: Option<(u8, u8)>,
    /// Files of `geoip_database`, absolute.
    pub databases: Vec<PathBuf>,
}

/// Time for which histograms are kept by default, seconds: 400 days.
pub const RETENTION_S: u64 = 400 * DAY_S;
/// Time for which rows of connections are kept by default, seconds: 30 days.
pub const ROWS_S: u64 = 30 * DAY_S;
/// Limit of the file's size by default, bytes.
pub const MAX_BYTES: u64 = 1 << 30;
/// Least limit of the file's size, bytes.
pub const LEAST_BYTES: u64 = 1 << 20;
/// Longest prefix of IPv4 addresses that may be stored, bits.
pub const V4_PREFIX_MAX: u8 = 24;
/// Longest prefix of IPv6 addresses that may be stored, bits.
pub const V6_PREFIX_MAX: u8 = 48;
/// Seconds of a day.
pub const DAY_S: u64 = 86_400;
