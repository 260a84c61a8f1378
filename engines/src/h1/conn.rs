//! The connection: receiving, and its fate after a response.
//!
//! The response side is in `send`. See the module documentation for the
//! contract; this file holds the states and their transitions.

mod invariants;
mod memory;

use super::chunked::ChunkedDecoder;
use super::head::{HeadParser, Progress};
use super::send::Sending;
use super::{Event, Next, Phase, Settings};
use crate::http::{BodyLength, Fault, Fields, Method, OutputQueue, RequestHead, Version};
use std::rc::Rc;

/// [`Settings::held_bytes`] of a server.
pub const PIPELINE_BUFFER_BYTES: usize = 64 * 1024;

/// One HTTP/1 connection in the server role.
#[derive(Debug)]
pub struct Conn {
    settings: Rc<Settings>,
    /// Received bytes; those before `start` are consumed.
    buffer: Vec<u8>,
    start: usize,
    parser: HeadParser,
    receiving: Receiving,
    /// The core does not want the data of this request's body.
    discarding: bool,
    /// Number of bytes of the body on the wire, framing included, not reported yet.
    body_bytes: u64,
    ready: Ready,
    eof: Eof,
    pub(super) request: Request,
    pub(super) sending: Sending,
    /// No request after this one.
    pub(super) last: bool,
    pub(super) out: OutputQueue,
    /// The head that is ready; else memory for the next one.
    head: RequestHead,
    is_head_ready: bool,
}

/// Part of the message that the next received byte belongs to.
#[derive(Debug)]
enum Receiving {
    Head,
    /// A body with a length; `left` is never 0.
    Length {
        left: u64,
    },
    Chunked(ChunkedDecoder),
    /// The request is complete; bytes belong to the next one and wait.
    Complete,
    /// After 101: bytes are data until the end.
    Tunnel,
    /// Input is ignored from now on: `Linger` or `Close`.
    Over(Next),
}

/// Events that are ready, in this order.
#[derive(Debug, Default)]
struct Ready {
    data: Vec<u8>,
    /// Reported when the body has ended.
    trailers: Fields,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Complete,
    Fault(Fault),
}

/// Whether the peer has closed its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eof {
    Open,
    Seen,
    Delivered,
}

/// Properties of the request that framing the response depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request {
    pub(super) version: Version,
    pub(super) is_head: bool,
    pub(super) close: bool,
}

impl Conn {
    /// A connection on which nothing has been received.
    #[must_use]
    pub fn new(settings: Rc<Settings>) -> Self {
        Self {
            parser: HeadParser::new(&settings),
            settings,
            buffer: Vec::new(),
            start: 0,
            receiving: Receiving::Head,
            discarding: false,
            body_bytes: 0,
            ready: Ready::default(),
            eof: Eof::Open,
            request: Request::default(),
            sending: Sending::Waiting,
            last: false,
            out: OutputQueue::default(),
            head: RequestHead::default(),
            is_head_ready: false,
        }
    }

    /// Resets this to a new connection and keeps the memory.
    pub fn reset(&mut self, settings: Rc<Settings>) {
        self.parser.reset(&settings);
        self.settings = settings;
        self.buffer.clear();
        self.start = 0;
        self.eof = Eof::Open;
        self.last = false;
        self.out.clear();
        self.begin_exchange();
    }

    /// Takes bytes from the peer.
    pub fn receive(&mut self, input: &[u8]) {
        debug_assert!(self.eof == Eof::Open, "nothing follows the end");
        match self.receiving {
            Receiving::Over(_) => return,
            Receiving::Complete => {}
            _ if self.has_buffered() => {}
            _ => {
                let used = self.advance(input);
                self.hold(&input[used..]);
                return;
            }
        }
        self.hold(input);
        if !matches!(self.receiving, Receiving::Complete) {
            self.resume();
        }
    }

    /// Takes the end of the peer's bytes.
    pub fn receive_eof(&mut self) {
        if self.eof == Eof::Open {
            self.eof = Eof::Seen;
        }
    }

    /// Whether more bytes can be taken without holding back too many.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.eof == Eof::Open
            && match self.receiving {
                Receiving::Complete => self.buffered() < self.settings.held_bytes,
                Receiving::Over(_) => false,
                _ => self.ready.data.len() < self.settings.held_bytes,
            }
    }

    /// Whether the peer has ended its side, whether an event has reported it or not.
    #[must_use]
    pub fn input_ended(&self) -> bool {
        self.eof != Eof::Open
    }

    /// The next event; `None` until more is received or the exchange is
    /// finished.
    pub fn event(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.is_head_ready) {
            return Some(Event::Head(std::mem::take(&mut self.head)));
        }
        if !self.ready.data.is_empty() {
            return Some(Event::Data(std::mem::take(&mut self.ready.data)));
        }
        match self.ready.end {
            Some(End::Complete) if !self.ready.trailers.is_empty() => {
                return Some(Event::Trailers(std::mem::take(&mut self.ready.trailers)));
            }
            Some(end) => {
                self.ready.end = None;
                return Some(match end {
                    End::Complete => Event::BodyEnd,
                    End::Fault(fault) => Event::BodyFault(fault),
                });
            }
            None => {}
        }
        let ended = self.eof == Eof::Seen
            && !matches!(self.receiving, Receiving::Complete | Receiving::Over(_));
        if ended {
            self.eof = Eof::Delivered;
        }
        ended.then_some(Event::Eof)
    }

    /// The head of the next event.
    #[inline]
    #[must_use]
    pub fn ready_head(&self) -> Option<&RequestHead> {
        self.is_head_ready.then_some(&self.head)
    }

    /// Swaps the ready head with `head`, reusing its memory; false if none is ready. Cheaper than [`Conn::event`]
    /// and [`Conn::recycle`]: moves some hundred bytes less.
    #[inline]
    pub fn swap_head(&mut self, head: &mut RequestHead) -> bool {
        let is_ready = std::mem::take(&mut self.is_head_ready);
        if is_ready {
            std::mem::swap(&mut self.head, head);
            self.limit_spare();
        }
        is_ready
    }

    /// Swaps the received part of an incomplete head with `head`, for the log. Returns false if no byte has come.
    pub fn take_unfinished(&mut self, head: &mut RequestHead) -> bool {
        let held = &self.buffer[self.start..];
        matches!(self.receiving, Receiving::Head)
            && self.parser.take_unfinished(held, head, &self.settings)
    }

    /// Takes back the memory of a head.
    pub fn recycle(&mut self, head: RequestHead) {
        if !self.is_head_ready {
            self.head = head;
            self.limit_spare();
        }
    }

    /// Frees the memory for the next head if it is larger than most heads need.
    #[inline]
    fn limit_spare(&mut self) {
        if self.head.arena.capacity() > KEEP_BYTES {
            self.head = RequestHead::default();
        }
    }

    /// Suppresses `Data` and `Trailers` events of this request: its body is read
    /// and dropped up to `BodyEnd` or `BodyFault`.
    pub fn discard_body(&mut self) {
        if !matches!(self.receiving, Receiving::Head | Receiving::Tunnel) {
            self.discarding = true;
            self.ready.data = Vec::new();
            self.ready.trailers.clear();
        }
    }

    /// Whether the request body has been received completely.
    #[must_use]
    pub fn body_done(&self) -> bool {
        matches!(
            self.receiving,
            Receiving::Head | Receiving::Complete | Receiving::Tunnel
        )
    }

    /// Bytes of the request body received since the last call, framing included, unless the body is discarded.
    pub fn body_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.body_bytes)
    }

    /// Moves the bytes to send to the end of `out`.
    pub fn transmit(&mut self, out: &mut OutputQueue) {
        out.append(&mut self.out);
    }

    /// Ends the exchange, after `send_end` or to abandon it. Returns the next step; on `KeepAlive` the next request
    /// may be ready.
    pub fn finish(&mut self) -> Next {
        let keep = self.sending == Sending::Ended { keep: true } && !self.last;
        match self.receiving {
            Receiving::Over(Next::Linger) if self.eof == Eof::Open => Next::Linger,
            Receiving::Over(_) | Receiving::Tunnel => self.over(Next::Close),
            _ if !keep => {
                let next = self.last_next();
                self.over(next)
            }
            Receiving::Complete => self.next_request(),
            _ if self.eof != Eof::Open => self.over(Next::Close),
            _ => {
                self.discard_body();
                Next::AwaitBody
            }
        }
    }

    /// Phase of the connection.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.receiving {
            Receiving::Head if self.parser.is_fresh() => Phase::Idle,
            Receiving::Head => Phase::Head,
            Receiving::Length { .. } | Receiving::Chunked(_) => Phase::Body,
            Receiving::Complete | Receiving::Tunnel | Receiving::Over(_) => Phase::Respond,
        }
    }

    /// Whether the connection belongs to another protocol, after 101.
    #[must_use]
    pub fn is_tunnel(&self) -> bool {
        matches!(self.receiving, Receiving::Tunnel)
    }

    /// Whether bytes are buffered that no event has reported yet.
    #[must_use]
    pub fn has_buffered(&self) -> bool {
        self.buffered() > 0
    }

    /// Makes the response in progress, or else the next one, the last.
    pub fn close_after(&mut self) {
        self.last = true;
    }

    /// Consumes bytes up to the end of the request; returns the number.
    fn advance(&mut self, input: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match &mut self.receiving {
                Receiving::Head => {
                    let (used, progress) = self.parser.advance(rest, &self.settings);
                    at += used;
                    if progress == Progress::More {
                        return at;
                    }
                    self.head_done();
                }
                _ if rest.is_empty() => return at,
                Receiving::Length { .. } | Receiving::Chunked(_) => at += self.advance_body(rest),
                Receiving::Tunnel => {
                    self.ready.data.extend_from_slice(rest);
                    return input.len();
                }
                Receiving::Complete => return at,
                Receiving::Over(_) => return input.len(),
            }
        }
    }

    /// Takes the head that the parser has completed.
    fn head_done(&mut self) {
        self.parser.take(&mut self.head, &self.settings);
        self.is_head_ready = true;
        let head = &self.head;
        self.request = Request {
            version: head.version,
            is_head: head.method == Method::Head,
            close: head.close,
        };
        self.receiving = match head.body {
            _ if head.fault.is_some() => Receiving::Over(Next::Linger),
            BodyLength::None => Receiving::Complete,
            BodyLength::Length(0) => {
                self.ready.end = Some(End::Complete);
                Receiving::Complete
            }
            BodyLength::Length(left) => Receiving::Length { left },
            BodyLength::Unknown => Receiving::Chunked(ChunkedDecoder::new()),
        };
    }

    /// Consumes bytes of the request body; returns the number.
    fn advance_body(&mut self, input: &[u8]) -> usize {
        let data = &mut self.ready.data;
        let (used, done) = match &mut self.receiving {
            Receiving::Length { left } => {
                let used = (*left).min(input.len() as u64) as usize;
                *left -= used as u64;
                if !self.discarding {
                    data.extend_from_slice(&input[..used]);
                }
                (used, *left == 0)
            }
            Receiving::Chunked(decoder) => {
                let result = decoder.decode(input, &self.settings, data, &mut self.ready.trailers);
                if self.discarding {
                    data.clear();
                    self.ready.trailers.clear();
                }
                match result {
                    Ok(used) => (used, decoder.is_done()),
                    Err(fault) => {
                        self.ready.end = Some(End::Fault(fault));
                        self.receiving = Receiving::Over(Next::Linger);
                        return input.len();
                    }
                }
            }
            _ => return 0,
        };
        if !self.discarding {
            self.body_bytes += used as u64;
        }
        if done {
            self.ready.end = Some(End::Complete);
            self.receiving = Receiving::Complete;
        }
        used
    }

    /// From here on bytes are data of a tunnel (RFC 9110 section 7.8).
    #[cold]
    pub(super) fn begin_tunnel(&mut self) {
        if matches!(self.receiving, Receiving::Complete) {
            self.receiving = Receiving::Tunnel;
            self.resume();
            // There are no more heads, and a tunnel may be idle for long.
            if !self.has_buffered() {
                self.buffer = Vec::new();
            }
            self.head = RequestHead::default();
        }
    }

    /// Whether a request is waiting for its response.
    pub(super) fn has_request(&self) -> bool {
        !matches!(self.receiving, Receiving::Head)
    }

    /// Whether the peer has broken the framing.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.receiving, Receiving::Over(_))
    }

    /// Starts on the next request, which may be buffered already.
    fn next_request(&mut self) -> Next {
        self.begin_exchange();
        self.resume();
        if self.eof != Eof::Open && !self.is_head_ready {
            return self.over(Next::Close);
        }
        Next::KeepAlive
    }

    fn begin_exchange(&mut self) {
        self.receiving = Receiving::Head;
        self.discarding = false;
        self.body_bytes = 0;
        self.ready = Ready::default();
        self.is_head_ready = false;
        self.request = Request::default();
        self.sending = Sending::Waiting;
    }

    /// How to close after a response. If the peer still sends, closing at once would reset the connection, which
    /// could lose the response.
    fn last_next(&self) -> Next {
        let whole = matches!(self.sending, Sending::Ended { .. });
        let coming = self.has_buffered() || !self.body_done();
        if whole && coming && self.eof == Eof::Open {
            Next::Linger
        } else {
            Next::Close
        }
    }

    fn over(&mut self, next: Next) -> Next {
        self.receiving = Receiving::Over(next);
        self.buffer.clear();
        self.start = 0;
        next
    }

    /// Parses held bytes.
    fn resume(&mut self) {
        if !self.has_buffered() {
            return;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let used = self.advance(&buffer[self.start..]);
        self.buffer = buffer;
        self.start += used;
        if self.start == self.buffer.len() {
            self.start = 0;
            self.buffer.clear();
            self.buffer.shrink_to(KEEP_BYTES);
        }
    }

    /// Buffers bytes behind those already held.
    fn hold(&mut self, input: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(input);
    }

    fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }
}

/// Capacity of a buffer that is kept for the next request.
const KEEP_BYTES: usize = 32 * 1024;
