//! One stream: how far its two directions are, what it may send and what waits to be sent.
//!
//! ```text
//!             receive: Open ---------------> Ended        (the peer's end)
//!             send:    Waiting -> Body ----> Ended        (our end)
//! ```
//! A stream leaves the table when both have ended, or one side has reset it. After our end the rest of a request body is
//! read and dropped, as far as the protocol has it so.
//!
//! Source: RFC 9113 section 5.1; draft-mbelshe-httpbis-spdy-00 section 2.3.

use crate::mux::{Incoming, Outgoing, Priority, Window};

/// A stream that is open.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The peer has ended its side.
    pub(crate) received: bool,
    /// The core does not want the request body.
    pub(crate) discarding: bool,
    /// It is reset after its response; until then what comes on it is dropped.
    pub(crate) malformed: bool,
    pub(crate) is_head: bool,
    /// Bytes of the request that have been read past after our end, where the protocol counts them.
    pub(crate) past_bytes: u32,
    pub(crate) out: Outgoing,
    pub(crate) incoming: Incoming,
}

impl AsMut<Outgoing> for Stream {
    fn as_mut(&mut self) -> &mut Outgoing {
        &mut self.out
    }
}

impl Stream {
    /// Makes it a new stream and keeps its memory.
    pub(super) fn begin(&mut self, window: Window, allowed_bytes: u64, priority: Priority) {
        *self = Self {
            out: self.out.renewed(window, priority),
            incoming: Incoming::new(allowed_bytes),
            ..Self::default()
        };
    }

    /// Whether a response may still be sent on it.
    pub(crate) fn is_running(&self) -> bool {
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
