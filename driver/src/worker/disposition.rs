//! Disposition of an entry of a table after its turn.

use std::convert::Infallible;

/// Disposition of an entry after its turn. `P` is a place besides the table, such as a pool of idle connections; clients
/// have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition<P = Infallible> {
    /// Keep it; run a turn at this time at the latest.
    Keep {
        /// Monotonic milliseconds.
        deadline_ms: u64,
    },
    /// Keep it and put it into this place; run a turn at this time at the latest.
    Park {
        /// The place.
        place: P,
        /// Monotonic milliseconds.
        deadline_ms: u64,
    },
    /// Close it.
    Close,
}
