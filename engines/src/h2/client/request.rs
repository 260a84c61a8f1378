//! Requests, and their bodies as far as windows allow.
//!
//! Source: RFC 9113 sections 6.9, 8.1 to 8.3.

use super::super::budget;
use super::super::error::CANCEL;
use super::super::frame::{self, put_head};
use super::{Client, Ending};
use crate::client::{Refusal, is_sendable};
use crate::hpack::Indexing;
use crate::http::{FieldId, Fields, is_token};
use crate::mux::Window;
use crate::mux::client::{Pairs, Receiving, Sending, Stream};

impl Client {
    /// Opens a stream with these fields, `:method`, `:scheme`, `:authority` and `:path` first, names in lower case, and
    /// gives its number. With `ended` the request has no body.
    ///
    /// # Errors
    /// The connection cannot take it, or it cannot be sent; nothing has been sent then.
    pub fn request<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        ended: bool,
    ) -> Result<u32, Refusal> {
        if self.is_closed() {
            return Err(Refusal::Closed);
        }
        if self.room() == 0 {
            return Err(Refusal::Busy);
        }
        let mut block = std::mem::take(&mut self.encoded);
        block.clear();
        self.encoder.begin(&mut block);
        let mut is_head = false;
        let mut bad = false;
        for (name, value) in fields {
            // A field that is refused may come after others that have changed the table: the block has to be sent.
            bad |= !is_sendable(value);
            match name {
                b":method" => is_head = value == b"HEAD",
                [b':', ..] => {}
                _ => bad |= !is_token(name) || name.iter().any(u8::is_ascii_uppercase),
            }
            let id = FieldId::of(name);
            if !bad && !is_of_connection(id) {
                self.encoder.field(name, value, indexing(id), &mut block);
            }
        }
        let id = self.next_stream;
        self.next_stream += 2;
        self.put_block(id, &block, ended && !bad);
        self.encoded = block;
        if bad {
            self.put_reset(id, CANCEL);
            return Err(Refusal::BadField);
        }
        let window = Window::new(self.peer.window_bytes);
        let allowed_bytes = u64::from(self.settings.preread_bytes);
        let stream = self.streams.insert_with(id, Stream::new);
        stream.begin(window, allowed_bytes, ended, is_head);
        Ok(id)
    }

    /// HEADERS, and CONTINUATION where one frame is too small.
    fn put_block(&mut self, id: u32, block: &[u8], end_stream: bool) {
        let most = self.peer.frame_bytes;
        let (first, mut rest) = block.split_at(block.len().min(most));
        let mut flags = if end_stream { frame::END_STREAM } else { 0 };
        if rest.is_empty() {
            flags |= frame::END_HEADERS;
        }
        let out = &mut self.out;
        put_head(out, first.len(), frame::HEADERS, flags, id);
        out.extend_from_slice(first);
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.len().min(most));
            let flags = if more.is_empty() {
                frame::END_HEADERS
            } else {
                0
            };
            put_head(out, piece.len(), frame::CONTINUATION, flags, id);
            out.extend_from_slice(piece);
            rest = more;
        }
    }

    /// Sends bytes of a request's body, as far as windows allow now or later; with `ended` they are the last.
    pub fn send(&mut self, id: u32, bytes: &[u8], ended: bool) {
        self.send_last(id, bytes, ended.then_some(None));
    }

    /// Ends a request's body with a trailer section; fields that cannot be sent are left out.
    pub fn send_trailers(&mut self, id: u32, trailers: &Fields) {
        let fits = |name: &[u8], value: &[u8]| is_token(name) && is_sendable(value);
        let fields = trailers.fields.iter().filter_map(|field| {
            let (name, value) = (trailers.bytes(field.name), trailers.bytes(field.value));
            let sent = fits(name, value) && !is_of_connection(field.id);
            sent.then(|| (name.to_ascii_lowercase(), value.to_vec()))
        });
        let fields: Vec<_> = fields.collect();
        self.send_last(id, &[], Some((!fields.is_empty()).then_some(fields)));
    }

    fn send_last(&mut self, id: u32, bytes: &[u8], last: Option<Option<Pairs>>) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.sending != Sending::Body {
            return;
        }
        stream.pending.extend(bytes);
        if let Some(trailers) = last {
            stream.sending = Sending::Last(trailers);
        }
        self.flush(id);
    }

    /// Gives a stream up.
    pub fn cancel(&mut self, id: u32) {
        if self.streams.get(id).is_some() {
            self.put_reset(id, CANCEL);
        }
    }

    /// Bytes of a body that are sent or wait to be sent but for windows; a driver that reads a body elsewhere stops there.
    #[must_use]
    pub fn pending_bytes(&mut self, id: u32) -> usize {
        self.streams
            .get(id)
            .map_or(0, |stream| stream.pending.len())
    }

    /// Sends what windows have been opened for, each stream in turn.
    pub(super) fn flush_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            if self.window.available() == 0 {
                return;
            }
            if let Some(id) = self.waiting.pop_front() {
                self.flush(id);
            }
        }
    }

    /// Sends what windows allow of a stream.
    pub(super) fn flush(&mut self, id: u32) {
        if self.ending == Ending::Failed {
            return;
        }
        let most = self.peer.frame_bytes;
        loop {
            let Some(stream) = self.streams.get(id) else {
                return;
            };
            let allowed = stream.window.available().min(self.window.available()) as usize;
            let len = stream.pending.len().min(allowed).min(most);
            let whole = len == stream.pending.len();
            let (last, trailers) = match &mut stream.sending {
                Sending::Ended => return,
                Sending::Body => (false, None),
                Sending::Last(trailers) if whole => (true, trailers.take()),
                Sending::Last(_) => (false, None),
            };
            if len == 0 && !last {
                if !whole && stream.window.available() > 0 && !self.waiting.contains(&id) {
                    self.waiting.push_back(id);
                }
                return;
            }
            let end = last && trailers.is_none();
            if len > 0 || end {
                let taken = stream.window.take(len as u64) && self.window.take(len as u64);
                debug_assert!(taken, "windows were asked before");
                let flags = if end { frame::END_STREAM } else { 0 };
                put_head(&mut self.out, len, frame::DATA, flags, id);
                self.out.extend(stream.pending.drain(..len));
                if len >= budget::USEFUL_BYTES {
                    self.budget.earn(budget::DATA);
                }
            }
            if last {
                stream.sending = Sending::Ended;
                let done = stream.receiving == Receiving::Ended;
                if let Some(trailers) = trailers {
                    self.put_trailers(id, &trailers);
                }
                if done {
                    self.streams.remove(id);
                }
                return;
            }
        }
    }

    fn put_trailers(&mut self, id: u32, fields: &[(Vec<u8>, Vec<u8>)]) {
        let mut block = std::mem::take(&mut self.encoded);
        block.clear();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            self.encoder.field(name, value, Indexing::No, &mut block);
        }
        self.put_block(id, &block, true);
        self.encoded = block;
    }
}

/// Fields that belong to a connection of HTTP/1 (RFC 9113 section 8.2.2); `:authority` says what `host` would.
fn is_of_connection(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::Connection
            | FieldId::TransferEncoding
            | FieldId::Upgrade
            | FieldId::KeepAlive
            | FieldId::Host
    )
}

/// Secrets are kept out of tables on the way, what differs from request to request out of ours.
fn indexing(id: FieldId) -> Indexing {
    match id {
        FieldId::Authorization => Indexing::Never,
        FieldId::ContentLength => Indexing::No,
        _ => Indexing::Yes,
    }
}
