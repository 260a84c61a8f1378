//! One stream of a client of HTTP/2 or SPDY: how far its two directions are.
//!
//! Source: RFC 9113 section 5.1.

use std::collections::VecDeque;

use super::Window;

/// A stream that is open.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What the server lets us send.
    pub(crate) window: Window,
    pub(crate) sending: Sending,
    /// Bytes of the request's body that wait for a window.
    pub(crate) pending: VecDeque<u8>,
    pub(crate) receiving: Receiving,
    /// Bytes of the response's body that the server may still send.
    pub(crate) allowed_bytes: u64,
    /// Bytes that were taken and not yet allowed anew.
    pub(crate) consumed_bytes: u64,
    /// What `content-length` leaves.
    pub(crate) length_left: Option<u64>,
    pub(crate) body_bytes: u64,
    pub(crate) interim: u32,
    pub(crate) is_head: bool,
}

/// Trailers.
pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// How far the request is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    Body,
    /// What waits is the last; then come these trailers, if any, as a header block's fields.
    Last(Option<Pairs>),
    /// Our END_STREAM is sent.
    Ended,
}

/// How far the response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    Head,
    Body,
    Ended,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self {
            window: Window::new(0),
            sending: Sending::Ended,
            pending: VecDeque::new(),
            receiving: Receiving::Head,
            allowed_bytes: 0,
            consumed_bytes: 0,
            length_left: None,
            body_bytes: 0,
            interim: 0,
            is_head: false,
        }
    }

    /// Makes it a new stream and keeps its memory.
    pub(crate) fn begin(&mut self, window: Window, allowed_bytes: u64, ended: bool, head: bool) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.clear();
        *self = Self {
            window,
            sending: if ended { Sending::Ended } else { Sending::Body },
            pending,
            allowed_bytes,
            is_head: head,
            ..Self::new()
        };
    }

    pub(crate) fn is_done(&self) -> bool {
        self.sending == Sending::Ended && self.receiving == Receiving::Ended
    }
}
