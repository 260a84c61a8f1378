//! One stream of a client: the state of its two directions.
//!
//! Source: RFC 9113 section 5.1.

use std::collections::VecDeque;

use crate::mux::{Incoming, Window};

/// A stream that is open.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Send window, in bytes.
    pub(crate) window: Window,
    pub(super) sending: Sending,
    /// Bytes of the request's body that wait for a window.
    pub(super) pending: VecDeque<u8>,
    /// Bytes of its body and trailers that were encoded, with the heads of frames.
    pub(super) encoded_bytes: u64,
    pub(crate) receiving: Receiving,
    pub(super) incoming: Incoming,
    pub(super) body_bytes: u64,
    pub(crate) interim: u32,
    pub(super) is_head: bool,
}

/// Trailers.
pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// State of the request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Sending {
    Body,
    /// The queued data is the last; these trailers, if any, follow it as a header block's fields.
    Last(Option<Pairs>),
    /// Our end of the stream is sent.
    #[default]
    Ended,
}

/// State of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Receiving {
    #[default]
    Head,
    Body,
    Ended,
}

impl Stream {
    /// Makes it a new stream and keeps its memory.
    pub(super) fn begin(&mut self, window: Window, allowed_bytes: u64, ended: bool, head: bool) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.clear();
        *self = Self {
            window,
            sending: if ended { Sending::Ended } else { Sending::Body },
            pending,
            incoming: Incoming::new(allowed_bytes),
            is_head: head,
            ..Self::default()
        };
    }

    pub(super) fn is_done(&self) -> bool {
        self.sending == Sending::Ended && self.receiving == Receiving::Ended
    }
}
