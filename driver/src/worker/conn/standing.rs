//! What a connection loses if it is closed to make room for another.
//!
//! Source: nginx documentation, `worker_connections`; as there, connections without a request are closed before new ones
//! have to wait.

use super::state::{Conn, Mode};

/// A connection without a whole request, in the order in which such connections are closed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    kind: Kind,
    /// Since when, monotonic milliseconds. What a client sends does not make its connection younger.
    since_ms: u64,
    serial: u64,
}

/// What is lost with it, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Nothing: its client has been answered, and knows how to ask on a new connection.
    KeptAlive,
    /// What has come of a request or a handshake, or the rest of a goodbye.
    Unasked,
}

impl<S> Conn<S> {
    /// The connection's place among those that can be closed to make room; none while a whole request, or its response,
    /// is in progress.
    pub fn standing(&self) -> Option<Standing> {
        let (kind, since_ms) = self.unasked_since()?;
        Some(Standing {
            kind,
            since_ms,
            serial: self.serial,
        })
    }

    fn unasked_since(&self) -> Option<(Kind, u64)> {
        let is_first = self.requests == 0;
        if let Some(mux) = &self.mux {
            return match mux.is_busy() {
                true => None,
                false if is_first => Some((Kind::Unasked, self.since_ms)),
                false => Some((Kind::KeptAlive, mux.idle_since_ms(self.mark_ms))),
            };
        }
        let Some(active) = &self.active else {
            return Some(match is_first {
                true => (Kind::Unasked, self.since_ms),
                false => (Kind::KeptAlive, self.mark_ms),
            });
        };
        if !active.is_settled() {
            return None;
        }
        let since_ms = match active.mode {
            Mode::Serve if is_first => self.since_ms,
            Mode::Serve => self.mark_ms,
            // The end of the time that was given when it began.
            Mode::AwaitBody { until_ms } | Mode::Linger { until_ms } => {
                until_ms.saturating_sub(active.closing.time_ms)
            }
        };
        Some((Kind::Unasked, since_ms))
    }
}
