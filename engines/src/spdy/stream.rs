//! One stream: how far its two directions are, what it may send and what waits to be sent.
//!
//! ```text
//!             receive: Open ---------------> Ended        (FIN of the peer)
//!             send:    Waiting -> Body ----> Ended        (our FIN)
//! ```
//! A stream leaves the table when both have ended, or one side has reset it. After our end the rest of a request body is
//! read and dropped.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 section 2.3.

use crate::mux::{Incoming, Outgoing, Priority, Window};

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Stream {
    /// The peer has ended its side.
    pub(super) received: bool,
    pub(super) out: Outgoing,
    pub(super) incoming: Incoming,
    /// Bytes that are still read past after our end.
    pub(super) past_bytes: u64,
    /// The core does not want the request body.
    pub(super) discarding: bool,
    pub(super) is_head: bool,
}

impl AsMut<Outgoing> for Stream {
    fn as_mut(&mut self) -> &mut Outgoing {
        &mut self.out
    }
}

impl Stream {
    pub(super) fn new() -> Self {
        Self {
            received: false,
            out: Outgoing::new(),
            incoming: Incoming::default(),
            past_bytes: PAST_BYTES,
            discarding: false,
            is_head: false,
        }
    }

    /// Makes it a new stream and keeps its memory.
    pub(super) fn begin(&mut self, window: Window, allowed_bytes: u64, priority: Priority) {
        *self = Self {
            out: self.out.renewed(window, priority),
            incoming: Incoming::new(allowed_bytes),
            ..Self::new()
        };
    }

    /// Whether a response may still be sent on it.
    pub(super) fn is_running(&self) -> bool {
        self.out.is_running()
    }

    /// Panics if the stream contradicts itself; for tests and fuzzing.
    pub(super) fn check_invariants(&self) {
        assert!(
            !self.received || self.is_running(),
            "a stream that has ended is kept"
        );
    }
}

/// Bytes of a request that are read past after its response has ended.
pub(super) const PAST_BYTES: u64 = 64 << 20;
