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

use std::collections::VecDeque;

use crate::http::Chunk;
use crate::mux::{Priority, Window};

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Stream {
    /// The peer has ended its side.
    pub(super) received: bool,
    pub(super) sending: Sending,
    /// What the peer lets us send.
    pub(super) window: Window,
    /// Since when that is nothing, while there is something to send.
    pub(super) blocked_ms: Option<u64>,
    /// Bytes of the request body that the peer may still send.
    pub(super) allowed_bytes: u64,
    /// Bytes that were taken and not yet allowed anew.
    pub(super) consumed_bytes: u64,
    /// The whole body is wanted: it has been allowed as much as there can be.
    pub(super) wide: bool,
    /// What `content-length` leaves.
    pub(super) length_left: Option<u64>,
    pub(super) priority: Priority,
    /// Body pieces that wait to be sent, and how many bytes they are.
    pub(super) pending: VecDeque<Chunk>,
    pub(super) pending_bytes: u64,
    /// Bytes of the response so far, frame heads included.
    pub(super) sent_bytes: u64,
    /// Most bytes of a DATA frame.
    pub(super) chunk_bytes: usize,
    /// It is in a queue of the scheduler.
    pub(super) queued: bool,
    /// It waits for its source: nothing is asked of it until `resume`.
    pub(super) stalled: bool,
    /// The core does not want the request body.
    pub(super) discarding: bool,
    /// It is reset after its response; until then what comes on it is dropped.
    pub(super) malformed: bool,
    pub(super) is_head: bool,
}

/// How far the response is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// No head has been sent.
    Waiting,
    /// The head has been sent, more of the body is to come.
    Body,
    /// The last piece of the body is here; then come these trailers, if any, as a header block.
    Last(Vec<u8>),
    /// Our END_STREAM is sent.
    Ended,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self {
            received: false,
            sending: Sending::Waiting,
            window: Window::new(0),
            blocked_ms: None,
            allowed_bytes: 0,
            consumed_bytes: 0,
            wide: false,
            length_left: None,
            priority: Priority::default(),
            pending: VecDeque::new(),
            pending_bytes: 0,
            sent_bytes: 0,
            chunk_bytes: 0,
            queued: false,
            stalled: false,
            discarding: false,
            malformed: false,
            is_head: false,
        }
    }

    /// Makes it a new stream and keeps its memory.
    pub(super) fn begin(&mut self, window: Window, allowed_bytes: u64, priority: Priority) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.clear();
        *self = Self {
            window,
            allowed_bytes,
            priority,
            pending,
            ..Self::new()
        };
    }

    /// Whether a response may still be sent on it.
    pub(super) fn is_running(&self) -> bool {
        self.sending != Sending::Ended
    }

    /// Whether what is still to come of the request body, as far as that is known, is allowed already.
    pub(super) fn rest_is_allowed(&self) -> bool {
        match self.length_left {
            // What was allowed for the sake of the whole body is more than is worth reading past.
            None => self.allowed_bytes > 0 && !self.wide,
            Some(left) if self.wide => left <= self.allowed_bytes.min(PAST_BYTES),
            Some(left) => self.allowed_bytes > 0 && left <= self.allowed_bytes,
        }
    }

    /// Whether the scheduler should know of it.
    pub(super) fn could_send(&self) -> bool {
        let pending = self.pending_bytes > 0;
        match self.sending {
            Sending::Waiting | Sending::Ended => false,
            Sending::Body => pending || !self.stalled,
            Sending::Last(_) => true,
        }
    }

    /// Something has changed: whether the scheduler is to be told of the stream now.
    pub(super) fn comes_back(&mut self) -> bool {
        if self.window.available() > 0 {
            self.blocked_ms = None;
        }
        let back = !self.queued && self.could_send();
        self.queued |= back;
        back
    }

    /// Panics if the stream contradicts itself; for tests and fuzzing.
    pub(super) fn check_invariants(&self) {
        let sum: u64 = self.pending.iter().map(Chunk::len).sum();
        assert_eq!(sum, self.pending_bytes, "pending bytes are counted wrongly");
        assert!(
            !(self.received && self.sending == Sending::Ended),
            "a stream that has ended is kept"
        );
        assert!(
            self.queued || !self.could_send() || self.window.available() == 0,
            "a stream that could send waits for nobody"
        );
    }
}

/// Most bytes of a body that are read past after the response, where more than that was allowed.
const PAST_BYTES: u64 = 64 << 10;
