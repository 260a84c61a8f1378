//! Cost of closing a connection to make room for another.
//!
//! Source: nginx documentation, `worker_connections`; as there, connections without a request are closed before new ones
//! have to wait.

use super::state::{Conn, State};
use crate::worker::state::serving::{H1Input, Protocol};

/// A connection without a whole request, in the order in which such connections are closed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvictionPriority {
    kind: EvictionCost,
    /// Since when, monotonic milliseconds. Input of a client does not make its connection younger.
    since_ms: u64,
    serial: u64,
}

/// Loss with the connection, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EvictionCost {
    /// Nothing: its client has been answered, and can use a new connection.
    KeptAlive,
    /// A partial request or handshake, or the rest of a shutdown.
    Unasked,
}

impl EvictionPriority {
    /// Whether the connection has been answered, and waits for its next request.
    pub fn is_kept_alive(&self) -> bool {
        self.kind == EvictionCost::KeptAlive
    }
}

impl<S> Conn<S> {
    /// The connection's place among those that can be closed to make room; none while a whole request, or its response,
    /// is in progress.
    pub fn eviction_priority(&self) -> Option<EvictionPriority> {
        let (kind, since_ms) = self.unasked_since()?;
        Some(EvictionPriority {
            kind,
            since_ms,
            serial: self.serial,
        })
    }

    fn unasked_since(&self) -> Option<(EvictionCost, u64)> {
        let is_first = self.requests == 0;
        match &self.state {
            State::Outlived(_) => None,
            State::Serving(Protocol::Mux(mux)) if !mux.outliving.is_empty() => None,
            State::Serving(protocol) if protocol.exchanges().is_busy() => None,
            State::Serving(Protocol::Mux(mux)) if !is_first => {
                // There is none yet in the turn in which the last exchange ended.
                let since_ms = mux.idle_since_ms.unwrap_or(self.last_progress_ms);
                Some((EvictionCost::KeptAlive, since_ms))
            }
            State::Serving(Protocol::H1(h1)) if !h1.exchanges.is_settled() => None,
            State::Serving(Protocol::H1(h1)) => match h1.input {
                H1Input::Requests if is_first => Some((EvictionCost::Unasked, self.since_ms)),
                H1Input::Requests => Some((EvictionCost::Unasked, self.last_progress_ms)),
                // `until_ms` minus the allowed time is the start of discarding.
                H1Input::Discarded { until_ms } => {
                    let since_ms = until_ms.saturating_sub(h1.exchanges.closing.time_ms);
                    Some((EvictionCost::Unasked, since_ms))
                }
            },
            State::Lingering(lingering) => Some((EvictionCost::Unasked, lingering.since_ms)),
            _ if is_first => Some((EvictionCost::Unasked, self.since_ms)),
            _ => Some((EvictionCost::KeptAlive, self.last_progress_ms)),
        }
    }
}
