//! How long a store keeps its rows and roll-ups.

/// Age at which roll-ups by minute are deleted, seconds: two days.
pub const MINUTES_KEPT_S: u64 = 2 * DAY_S;
/// Age at which roll-ups by hour are deleted, seconds: 60 days.
pub const HOURS_KEPT_S: u64 = 60 * DAY_S;
/// Least limit of the size of a file, bytes.
pub const MAX_BYTES_LEAST: u64 = 1 << 20;

const DAY_S: u64 = 86_400;

/// Limits of the age and the size of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Age at which rows of connections are deleted, seconds.
    pub rows_s: u64,
    /// Age at which roll-ups by day are deleted, seconds; roll-ups by hour and minute end no later.
    pub rollups_s: u64,
    /// Largest size of the file, bytes, at least [`MAX_BYTES_LEAST`]. The oldest rows are deleted first, then roll-ups by
    /// minute, by hour and by day. The write-ahead log is not counted; it has up to 32 MiB.
    pub max_bytes: u64,
}

impl Default for Retention {
    /// Rows for 30 days, roll-ups for 400 days, at most 1 GiB.
    fn default() -> Self {
        Self {
            rows_s: 30 * DAY_S,
            rollups_s: 400 * DAY_S,
            max_bytes: 1 << 30,
        }
    }
}

/// Work done by a maintenance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Rows added to the roll-ups.
    pub rolled_rows: u64,
    /// Deleted rows.
    pub deleted_rows: u64,
    /// Deleted roll-ups.
    pub deleted_rollups: u64,
    /// Whether there is more to do at once.
    pub more: bool,
}
