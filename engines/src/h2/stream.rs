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

use crate::mux::{Outgoing, Priority, Window};

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Stream {
    /// The peer has ended its side.
    pub(super) received: bool,
    pub(super) out: Outgoing,
    /// Bytes of the request body that the peer may still send.
    pub(super) allowed_bytes: u64,
    /// Bytes that were taken and not yet allowed anew.
    pub(super) consumed_bytes: u64,
    /// What `content-length` leaves.
    pub(super) length_left: Option<u64>,
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
            allowed_bytes: 0,
            consumed_bytes: 0,
            length_left: None,
            discarding: false,
            malformed: false,
            is_head: false,
        }
    }

    /// Makes it a new stream and keeps its memory.
    pub(super) fn begin(&mut self, window: Window, allowed_bytes: u64, priority: Priority) {
        *self = Self {
            out: self.out.renewed(window, priority),
            allowed_bytes,
            ..Self::new()
        };
    }

    /// Whether a response may still be sent on it.
    pub(super) fn is_running(&self) -> bool {
        self.out.is_running()
    }

    /// Whether what is still to come of the request body, as far as that is known, is allowed already.
    pub(super) fn rest_is_allowed(&self) -> bool {
        self.allowed_bytes > 0
            && self
                .length_left
                .is_none_or(|left| left <= self.allowed_bytes)
    }

    /// Panics if the stream contradicts itself; for tests and fuzzing.
    pub(super) fn check_invariants(&self) {
        assert!(
            !self.received || self.is_running(),
            "a stream that has ended is kept"
        );
    }
}
