//! Server push: a request that the server makes on the client's behalf, and answers on a stream of its own.
//!
//! A promise is sent on the stream of the request that it belongs to, before the head of that response. The
//! promised request is then an [`Event::Head`] like any other, so that the driver need not distinguish it. Nothing
//! is promised if the client disallows it, if its stream limit is reached, on a pushed stream, or once either side
//! has announced the end of the connection.
//!
//! Absent: pushes without a request of the client, and methods other than GET.
//!
//! Source: RFC 9113 sections 5.1.2, 6.6, 8.4; the fields that nginx 1.24 copies.

use super::conn::{Conn, Ending};
use super::frame::{self, put_head};
use super::request::Builder;
use super::settings::Settings;
use crate::hpack::Indexing;
use crate::http::{FieldId, RequestHead};
use crate::mux::Priority;

/// Push state of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pushes {
    /// The client accepts pushes (SETTINGS_ENABLE_PUSH).
    pub(super) allowed: bool,
    /// The client's limit of open pushed streams (SETTINGS_MAX_CONCURRENT_STREAMS).
    pub(super) most: u32,
    /// The client announced that it takes no further stream (GOAWAY).
    pub(super) ended: bool,
    /// The highest number of a promised stream, 0 before the first.
    pub(super) last: u32,
}

impl Default for Pushes {
    /// RFC 9113 section 6.5.2.
    fn default() -> Self {
        Self {
            allowed: true,
            most: u32::MAX,
            ended: false,
            last: 0,
        }
    }
}

impl Conn {
    /// Whether a push on this stream is possible now, if there is room for one more.
    #[must_use]
    pub fn may_push(&self, parent: u32) -> bool {
        let pushes = &self.protocol.pushes;
        pushes.allowed
            && !pushes.ended
            && self.ending == Ending::Open
            && !parent.is_multiple_of(2)
            && self.protocol.settings.max_concurrent_pushes > 0
    }

    /// Promises `GET target` on the stream of a request that has no response head yet; `head` is that request.
    /// Returns the length of the promise on the wire, in bytes; 0 if it is not made.
    ///
    /// A target is a path with its query. Nothing is promised for another or too long target, or with a request
    /// that has a fault.
    pub fn push(&mut self, parent: u32, target: &[u8], head: &RequestHead) -> u64 {
        let (Some(host), true) = (head.field(FieldId::Host), is_target(target)) else {
            return 0;
        };
        let most = self
            .protocol
            .settings
            .max_concurrent_pushes
            .min(self.protocol.pushes.most);
        if !self.may_push(parent)
            || self.pushed_streams() >= most as usize
            || self.protocol.pushes.last >= LAST_PUSH
            || head.fault.is_some()
        {
            return 0;
        }
        let Some(stream) = self.streams.get(parent) else {
            return 0;
        };
        if !stream.out.is_waiting() {
            return 0;
        }
        // Objects of a response are useful after it, and whole rather than in pieces.
        let priority = Priority {
            urgency: (stream.out.priority.urgency + 1).min(LEAST_URGENCY),
            incremental: false,
        };
        let scheme = head
            .scheme
            .get()
            .map_or(&b"http"[..], |span| head.bytes(span));
        let control: [(&[u8], &[u8]); 4] = [
            (b":method", b"GET"),
            (b":path", target),
            (b":scheme", scheme),
            (b":authority", host),
        ];
        let copied = COPIED
            .iter()
            .filter_map(|(id, name)| Some((*name, head.field(*id)?)));
        let fields: Vec<_> = control.into_iter().chain(copied).collect();
        self.protocol.pushes.last += 2;
        let id = self.protocol.pushes.last;
        let (block_bytes, bytes) = self.put_promise(parent, id, &fields);
        self.open_pushed(id, &fields, block_bytes, priority);
        bytes
    }

    /// Pushed streams that are open.
    pub(super) fn pushed_streams(&self) -> usize {
        match self.protocol.pushes.last {
            0 => 0,
            _ => self.streams.ids().filter(|id| id.is_multiple_of(2)).count(),
        }
    }

    /// Opens the promised request as if the client had made it.
    fn open_pushed(
        &mut self,
        id: u32,
        fields: &[(&[u8], &[u8])],
        block_bytes: u64,
        priority: Priority,
    ) {
        // The limits are for requests of clients; this request is the server's own.
        let unlimited = Settings {
            field_bytes: usize::MAX,
            header_bytes: usize::MAX,
            max_headers: u32::MAX,
            ..(*self.protocol.settings).clone()
        };
        let mut builder = Builder::new(&unlimited, Box::default());
        for (name, value) in fields {
            builder.field(name, value, &mut None);
        }
        let mut built = builder.finish(true);
        built.head.size_bytes = block_bytes;
        self.open(id, built.head, priority, 0, true);
    }

    /// PUSH_PROMISE, and CONTINUATION if one frame is too small; returns the bytes of the header block, and all of
    /// them.
    fn put_promise(&mut self, parent: u32, id: u32, fields: &[(&[u8], &[u8])]) -> (u64, u64) {
        let mut payload = id.to_be_bytes().to_vec();
        self.protocol.encoder.begin(&mut payload);
        for (name, value) in fields {
            let indexing = match value.len() {
                0..=LONG_VALUE_BYTES => Indexing::Yes,
                _ => Indexing::No,
            };
            self.protocol
                .encoder
                .field(name, value, indexing, &mut payload);
        }
        let before = self.out.len();
        let mut kind = frame::PUSH_PROMISE;
        let pieces = payload.chunks(self.protocol.frame_bytes);
        let last = pieces.len() - 1;
        for (at, piece) in pieces.enumerate() {
            let flags = if at == last { frame::END_HEADERS } else { 0 };
            self.out.push_with(|out| {
                put_head(out, piece.len(), kind, flags, parent);
                out.extend_from_slice(piece);
            });
            kind = frame::CONTINUATION;
        }
        let bytes = self.out.len() - before;
        self.count(parent, bytes);
        (payload.len() as u64 - 4, bytes)
    }
}

/// Whether it is a path, with or without a query, in the form of a request line.
fn is_target(target: &[u8]) -> bool {
    let odd = |byte: &u8| *byte <= b' ' || *byte == 0x7f || *byte == b'#';
    target.first() == Some(&b'/') && target.len() <= MAX_TARGET_BYTES && !target.iter().any(odd)
}

/// Fields copied from the original to the promised request.
const COPIED: [(FieldId, &[u8]); 3] = [
    (FieldId::AcceptEncoding, b"accept-encoding"),
    (FieldId::AcceptLanguage, b"accept-language"),
    (FieldId::UserAgent, b"user-agent"),
];
/// Longest target that is promised: an eighth of the limit that nginx's integers set for a field.
pub(super) const MAX_TARGET_BYTES: usize = 256 << 10;
/// The last possible number of a promised stream.
pub(super) const LAST_PUSH: u32 = frame::MAX_STREAM - 1;
/// RFC 9218 section 4.1.
const LEAST_URGENCY: u8 = 7;
/// Longer values are not worth a place in the table.
const LONG_VALUE_BYTES: usize = 512;
