//! SPDY/3.1 on one connection, client role.
//!
//! Its upper edge is that of HTTP/2's: fields may say `:authority`, which is `:host` here, and `:version` is added. Header
//! blocks share one compression context and end with a sync flush, so that each may refer to those before.
//!
//! Of the settings, `headers_level` is zlib's level for header blocks of requests, `preread_bytes` the window of each
//! response, `header_bytes` and `max_headers` are its limits.
//!
//! Absent: pushed streams, which are reset; trailers of requests; settings that the server wants kept.
//!
//! Source: draft-mbelshe-httpbis-spdy-00.

mod receive;
mod response;

use std::collections::VecDeque;

use super::budget::{self, Budget};
use super::error::{self, Misdeed};
use super::frame::{self, FrameHead, HEAD_BYTES, put_control, put_data, put_pair};
use super::pairs::Writer;
use super::settings::{DEFAULT_WINDOW, INITIAL_WINDOW_SIZE, MAX_WINDOW, Settings};
use super::zlib::{Deflater, Inflater};
use crate::client::{self, Bodies, Refusal, Spares, is_sendable};
use crate::http::{FieldId, ResponseHead, is_token};
use crate::mux::client::{Receiving, Sending, Stream};
use crate::mux::{StreamTable, Window};

/// What a client of SPDY tells its driver.
pub type Event = client::Event<Misdeed>;

/// One SPDY/3.1 connection in the client role.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    bodies: Bodies,
    /// A part of a frame.
    held: Vec<u8>,
    inflater: Inflater,
    deflater: Deflater,
    writer: Writer,
    /// The text of a header block.
    text: Vec<u8>,
    streams: StreamTable<Stream>,
    next_stream: u32,
    max_streams: usize,
    /// What the server lets us send on the connection, and on a new stream.
    window: Window,
    window_bytes: u32,
    /// Streams with a body that waits for the window of the connection, in turn.
    waiting: VecDeque<u32>,
    /// Bytes of data that the server may still send on the connection.
    allowed_bytes: u64,
    closing: bool,
    failed: bool,
    budget: Budget,
    events: VecDeque<Event>,
    out: Vec<u8>,
    spares: Spares,
}

impl Client {
    /// A connection on which nothing has been received; our SETTINGS are ready to be transmitted.
    #[must_use]
    pub fn new(settings: Settings, bodies: Bodies) -> Self {
        let mut out = Vec::new();
        let window = settings.window_bytes();
        put_control(&mut out, frame::SETTINGS, 0, 12);
        for number in [1, INITIAL_WINDOW_SIZE, window] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        // The window of the connection never stops a response; those of streams do.
        let grant = MAX_WINDOW as u32 - DEFAULT_WINDOW;
        put_pair(&mut out, frame::WINDOW_UPDATE, 0, grant);
        Self {
            bodies,
            held: Vec::new(),
            inflater: Inflater::default(),
            deflater: Deflater::new(settings.headers_level),
            writer: Writer::default(),
            text: Vec::new(),
            streams: StreamTable::default(),
            next_stream: 1,
            max_streams: STREAMS_BEFORE_SETTINGS,
            window: Window::new(DEFAULT_WINDOW),
            window_bytes: DEFAULT_WINDOW,
            waiting: VecDeque::new(),
            allowed_bytes: MAX_WINDOW,
            closing: false,
            failed: false,
            budget: Budget::new(settings.abuse_budget),
            events: VecDeque::new(),
            out,
            spares: Spares::default(),
            settings,
        }
    }

    /// How many exchanges can be begun now.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.is_closed() {
            return 0;
        }
        self.max_streams.saturating_sub(self.streams.len())
    }

    /// Whether the connection takes no further request, now or later.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closing || self.failed || self.next_stream > frame::MAX_STREAM
    }

    /// Opens a stream with these fields, `:method`, `:scheme`, `:authority` and `:path` first, and gives its number. With
    /// `ended` the request has no body.
    ///
    /// # Errors
    /// The connection cannot take it, or it cannot be sent; nothing has been sent then.
    pub fn request<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        ended: bool,
    ) -> Result<u32, Refusal> {
        self.request_at(fields, DEFAULT_PRIORITY, ended)
    }

    /// The same with a priority: 0 is the most urgent, 7 the least.
    ///
    /// # Errors
    /// As those of [`Self::request`].
    pub fn request_at<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        priority: u8,
        ended: bool,
    ) -> Result<u32, Refusal> {
        if self.is_closed() {
            return Err(Refusal::Closed);
        }
        if self.room() == 0 {
            return Err(Refusal::Busy);
        }
        let is_head = self.write(fields)?;
        let id = self.next_stream;
        self.next_stream += 2;
        let start = self.out.len();
        let flags = if ended { frame::FIN } else { 0 };
        put_control(&mut self.out, frame::SYN_STREAM, flags, 0);
        self.out.extend_from_slice(&id.to_be_bytes());
        self.out
            .extend_from_slice(&[0, 0, 0, 0, priority.min(7) << 5, 0]);
        self.deflater.block(&self.writer.text, &[], &mut self.out);
        let len = (self.out.len() - start - HEAD_BYTES) as u32;
        self.out[start + 5..start + 8].copy_from_slice(&len.to_be_bytes()[1..]);
        let window = Window::new(self.window_bytes);
        // Until the server has read our SETTINGS it may take less for granted, never more.
        let allowed_bytes = u64::from(self.settings.window_bytes());
        let stream = self.streams.insert_with(id, Stream::new);
        stream.begin(window, allowed_bytes, ended, is_head);
        Ok(id)
    }

    /// Writes the text of a request's header block; gives whether it is for HEAD.
    fn write<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<bool, Refusal> {
        let mut is_head = false;
        let mut version = false;
        self.writer.begin();
        for (name, value) in fields {
            if !is_sendable(value) {
                return Err(Refusal::BadField);
            }
            let name = match name {
                b":method" => {
                    is_head = value == b"HEAD";
                    name
                }
                b":authority" => b":host",
                b":version" => {
                    version = true;
                    name
                }
                [b':', ..] => name,
                _ if !is_token(name) => return Err(Refusal::BadField),
                // Draft section 3.2.1; the host is among the pseudo-fields.
                _ => match FieldId::of(name) {
                    FieldId::Connection
                    | FieldId::Host
                    | FieldId::KeepAlive
                    | FieldId::TransferEncoding => continue,
                    _ => name,
                },
            };
            self.writer.single(name, value);
        }
        if !version {
            self.writer.single(b":version", b"HTTP/1.1");
        }
        self.writer.finish();
        Ok(is_head)
    }

    /// Sends bytes of a request's body, as far as windows allow now or later; with `ended` they are the last.
    pub fn send(&mut self, id: u32, bytes: &[u8], ended: bool) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.sending != Sending::Body {
            return;
        }
        stream.pending.extend(bytes);
        if ended {
            stream.sending = Sending::Last(None);
        }
        self.flush(id);
    }

    /// Bytes of a body that wait for windows.
    #[must_use]
    pub fn pending_bytes(&mut self, id: u32) -> usize {
        self.streams
            .get(id)
            .map_or(0, |stream| stream.pending.len())
    }

    /// Sends what windows allow of a stream.
    fn flush(&mut self, id: u32) {
        if self.failed {
            return;
        }
        loop {
            let Some(stream) = self.streams.get(id) else {
                return;
            };
            let allowed = stream.window.available().min(self.window.available()) as usize;
            let len = stream.pending.len().min(allowed).min(FRAME_BYTES);
            let whole = len == stream.pending.len();
            let last = whole && stream.sending == Sending::Last(None);
            if stream.sending == Sending::Ended || (len == 0 && !last) {
                let waits = !whole && stream.window.available() > 0;
                if waits && !self.waiting.contains(&id) {
                    self.waiting.push_back(id);
                }
                return;
            }
            let taken = stream.window.take(len as u64) && self.window.take(len as u64);
            debug_assert!(taken, "windows were asked before");
            put_data(&mut self.out, id, if last { frame::FIN } else { 0 }, len);
            self.out.extend(stream.pending.drain(..len));
            if len >= budget::USEFUL_BYTES {
                self.budget.earn(budget::DATA);
            }
            if last {
                stream.sending = Sending::Ended;
                if stream.receiving == Receiving::Ended {
                    self.streams.remove(id);
                }
                return;
            }
        }
    }

    /// Sends what windows have been opened for, each stream in turn.
    fn flush_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            if self.window.available() == 0 {
                return;
            }
            if let Some(id) = self.waiting.pop_front() {
                self.flush(id);
            }
        }
    }

    /// Gives a stream up.
    pub fn cancel(&mut self, id: u32) {
        if self.streams.get(id).is_some() {
            self.put_reset(id, error::CANCEL);
        }
    }

    /// Resets a stream and forgets it.
    fn put_reset(&mut self, id: u32, code: u32) {
        self.streams.remove(id);
        put_pair(&mut self.out, frame::RST_STREAM, id, code);
    }

    /// Asks for an answer; a client's numbers are odd.
    pub fn ping(&mut self, number: u32) {
        put_control(&mut self.out, frame::PING, 0, 4);
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    /// The next event.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Moves the bytes to send to the end of `out`.
    #[inline]
    pub fn transmit(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() {
            std::mem::swap(out, &mut self.out);
        } else {
            out.append(&mut self.out);
        }
    }

    /// Takes back the memory of a head.
    #[inline]
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.spares.give(head);
    }

    /// Time has passed: what a server did is forgiven by and by.
    pub fn seconds_passed(&mut self, seconds: u32) {
        self.budget.earn(seconds.saturating_mul(budget::SECOND));
    }

    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        if self.failed {
            return;
        }
        let result = if self.held.is_empty() {
            self.frames(input).map(|used| {
                self.held.extend_from_slice(&input[used..]);
            })
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(input);
            let result = self.frames(&held);
            result.map(|used| {
                held.drain(..used);
                self.held = held;
            })
        };
        if let Err(misdeed) = result {
            self.fail(misdeed);
        }
    }

    /// Takes whole frames; gives how many bytes they were.
    fn frames(&mut self, input: &[u8]) -> Result<usize, Misdeed> {
        let mut at = 0;
        while let Some(head) = input[at..].first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::parse(head);
            self.refuse_by_head(head)?;
            let start = at + HEAD_BYTES;
            let Some(payload) = input.get(start..start + head.len) else {
                break;
            };
            self.frame(head, payload)?;
            at = start + head.len;
        }
        Ok(at)
    }

    /// Takes the end of the server's bytes; that it is `whole` says nothing here, since frames say where bodies end.
    pub fn receive_eof(&mut self, _whole: bool) {
        if self.failed {
            return;
        }
        if self.streams.is_empty() {
            self.failed = true;
            self.events.push_back(Event::Eof);
        } else {
            self.fail(Misdeed::Closed);
        }
    }

    /// Ends the connection because of a misdeed.
    fn fail(&mut self, misdeed: Misdeed) {
        self.failed = true;
        self.held = Vec::new();
        let ids: Vec<u32> = self.streams.ids().collect();
        for id in ids {
            self.streams.remove(id);
        }
        self.waiting.clear();
        if misdeed != Misdeed::Closed {
            put_pair(&mut self.out, frame::GOAWAY, 0, error::PROTOCOL_ERROR);
        }
        self.events.push_back(Event::Failed(misdeed));
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&mut self) {
        assert!(self.held.len() < HEAD_BYTES + frame::MAX_LEN);
        assert!(self.allowed_bytes <= MAX_WINDOW);
        let next = self.next_stream;
        self.streams.each(|id, stream| {
            assert!(id < next, "a stream that nobody opened");
            assert!(!stream.is_done(), "a stream that has ended is kept");
        });
    }
}

/// Bytes of a DATA frame that is sent.
const FRAME_BYTES: usize = 16 << 10;
/// Streams that are opened before the server has said how many it takes.
const STREAMS_BEFORE_SETTINGS: usize = 100;
/// Neither urgent nor not.
const DEFAULT_PRIORITY: u8 = 3;
