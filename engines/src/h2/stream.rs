//! One stream: how far its two directions are, what it may send and what waits to be sent.
//!
//! ```text
//!             receive: Open ---------------> Ended        (END_STREAM of the peer)
//!             send:    Waiting -> Body ----> Ended        (our END_STREAM)
//! ```
//! A stream leaves the table when both have ended, or one side has reset it. After our end the rest of a request body is
//! read and dropped if it fits into what was allowed; else the stream is reset with NO_ERROR (section 8.1).
//!
//! Source: RFC 9113 section 5.1.

use crate::mux::{Incoming, Outgoing, Priority, Window};

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Stream {
    /// The peer has ended its side.
    pub(super) received: bool,
    pub(super) out: Outgoing,
    pub(super) incoming: Incoming,
    /// The core does not want the request body.
    pub(super) discarding: bool,
    /// It is reset after its response; until then what comes on it is dropped.
    pub(super) malformed: bool,
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
            discarding: false,
            malformed: false,
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

    /// Whether what is still to come of the request body, as far as that is known, is allowed already.
    pub(super) fn rest_is_allowed(&self) -> bool {
        let incoming = &self.incoming;
        match incoming.length_left {
            // What was allowed for the sake of the whole body is more than is worth reading past.
            None => incoming.allowed_bytes > 0 && !incoming.wide,
            Some(left) if incoming.wide => left <= incoming.allowed_bytes.min(PAST_BYTES),
            Some(left) => incoming.allowed_bytes > 0 && left <= incoming.allowed_bytes,
        }
    }

    /// Panics if the stream contradicts itself; for tests and fuzzing.
    pub(super) fn check_invariants(&self) {
        assert!(
            !self.received || self.is_running(),
            "a stream that has ended is kept"
        );
    }
}

/// Most bytes of a body that are read past after the response, where more than that was allowed.
const PAST_BYTES: u64 = 64 << 10;
