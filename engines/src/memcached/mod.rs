//! The text protocol of memcached on one connection, client role: `get` of one key, one at a time or pipelined.
//!
//! ```text
//! get KEY\r\n          VALUE KEY FLAGS LENGTH[ CAS]\r\n  the value  \r\nEND\r\n
//!                      END\r\n                                        there is no such key
//! ```
//!
//! A value is reported as an HTTP response: status 200 with `Content-Length`, and the flags as they were sent in the field
//! `Flags`. Without one the status is 404. The value is as long as its line says; where something else than END follows it,
//! that is a note, and the connection is of no further use.
//!
//! Further requests can be pipelined behind the first, until a byte of an answer has come. Answers come in the order of the
//! requests, and nothing but the lengths that the server sends divides them: so an answer with others behind it is withheld
//! until its END is there, and any other input ends the connection before a byte of that answer is reported.
//! Such a value has at most [`PIPELINED_VALUE_BYTES`]. The last one has nothing behind it and is reported as it comes.
//!
//! Absent: every other command, a `get` of several keys, whose answer does not say which of them were not found in which
//! order, and the binary protocol.
//!
//! Source: memcached, doc/protocol.txt, "Retrieval command".

mod protocol_error;
mod request;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use crate::client::{self, HeadSize, Spares};
use crate::http::{BodyLength, FieldId, OutputQueue, ResponseHead, parse_length};
use crate::reassembly::ReassemblyBuffer;
pub use protocol_error::ProtocolError;

/// Event of a memcached client.
pub type Event = client::Event<ProtocolError>;

/// One connection to a memcached server in the client role.
#[derive(Debug)]
pub struct Client {
    /// The keys that were asked for, one behind the other.
    keys: Vec<u8>,
    /// Where in them those are whose answers are not complete, in the order of their requests.
    asked: VecDeque<Range<usize>>,
    /// Most bytes of the line before the value, with its line end.
    line_bytes: usize,
    /// A part of that line.
    partial: ReassemblyBuffer,
    receiving: Receiving,
    /// Nothing has happened that forbids to use the connection again.
    keep: bool,
    /// A byte has come in answer to the first of those asked.
    has_answer: bool,
    /// Number of the last request.
    stream: u32,
    body_bytes: u64,
    events: VecDeque<Event>,
    /// Number of the last events that are withheld.
    withheld: usize,
    out: OutputQueue,
    spares: Spares,
}

/// Part of the answer that the next received byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiving {
    /// Nothing has been asked.
    Idle,
    ReplyLine,
    /// `left` is never 0.
    Value {
        left: u64,
    },
    /// The text that follows a value, of which this many bytes have come.
    Trailer {
        at: usize,
    },
    /// The response is complete; what still comes is dropped, and the connection is of no further use.
    Dropped,
    /// Nothing is read any more.
    Over,
}

/// A parsed line of a reply.
#[derive(Debug, PartialEq, Eq)]
enum ReplyLine<'a> {
    NotFound,
    Value { flags: &'a [u8], bytes: u64 },
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A connection on which nothing has been sent.
    #[must_use]
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            asked: VecDeque::new(),
            line_bytes: 0,
            partial: ReassemblyBuffer::default(),
            receiving: Receiving::Idle,
            keep: true,
            has_answer: false,
            stream: 0,
            body_bytes: 0,
            events: VecDeque::new(),
            withheld: 0,
            out: OutputQueue::default(),
            spares: Spares::default(),
        }
    }

    /// Makes this a new connection and keeps the memory.
    pub fn reset(&mut self) {
        self.close();
        self.events.clear();
        self.out.clear();
        self.receiving = Receiving::Idle;
        self.keep = true;
        self.has_answer = false;
        self.stream = 0;
    }

    /// Whether a request can be begun: the response before it is complete, with END, and the request was transmitted.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.receiving == Receiving::Idle && self.keep && self.out.is_empty()
    }

    /// Whether the connection takes no further request, now or later.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self.receiving {
            Receiving::Dropped | Receiving::Over => true,
            Receiving::Idle => !self.keep,
            _ => false,
        }
    }

    /// Whether a byte has come in answer to the request, or to the first of those without a complete answer.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        self.has_answer
    }

    /// Abandons all requests, and with them the connection.
    pub fn cancel(&mut self) {
        if self.receiving != Receiving::Idle {
            self.close();
            self.events.clear();
        }
    }

    /// The next event.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        match self.events.len() > self.withheld {
            true => self.events.pop_front(),
            false => None,
        }
    }

    /// Moves the bytes to send to the end of `out`.
    #[inline]
    pub fn transmit(&mut self, out: &mut OutputQueue) {
        out.append(&mut self.out);
    }

    /// Takes back the memory of a head.
    #[inline]
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.spares.give(head);
    }

    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        let all = self.partial.join(input);
        match self.advance(&all, false) {
            Ok(used) => self.partial.keep(all, used),
            Err(error) => self.fail(error),
        }
    }

    /// Takes bytes from the server, and leaves the buffer empty. Where they are many for its capacity and of a value, but for
    /// what is around it, the memory goes along with them and the buffer has none left.
    pub fn receive_buffer(&mut self, buffer: &mut Vec<u8>) {
        let is_full = buffer.len() >= buffer.capacity() / 2;
        // Of several answers none has a buffer for itself.
        if !is_full || !self.partial.bytes().is_empty() || self.is_followed() {
            self.receive(buffer);
        } else if let Err(error) = self.advance_buffer(buffer) {
            self.fail(error);
        }
        buffer.clear();
    }

    /// Takes the end of the server's bytes.
    pub fn receive_eof(&mut self) {
        match self.receiving {
            Receiving::Over => {}
            Receiving::Idle | Receiving::Dropped => {
                self.receiving = Receiving::Over;
                self.keep = false;
                self.events.push_back(Event::Eof);
            }
            Receiving::Trailer { .. } => match self.end_without_trailer() {
                Ok(()) => self.receiving = Receiving::Over,
                Err(error) => self.fail(error),
            },
            Receiving::ReplyLine if !self.has_answer => self.fail(ProtocolError::NoResponse),
            Receiving::ReplyLine | Receiving::Value { .. } => self.fail(ProtocolError::Truncated),
        }
    }

    /// Consumes bytes; returns how many. The rest is a part of a line, or with `only_line` all behind it.
    fn advance(&mut self, input: &[u8], only_line: bool) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            at += match self.receiving {
                Receiving::Over | Receiving::Dropped => rest.len(),
                Receiving::Idle => return Err(ProtocolError::Unasked),
                Receiving::Value { .. } if only_line => return Ok(at),
                Receiving::ReplyLine => {
                    self.has_answer = true;
                    match self.line(rest)? {
                        Some(used) => used,
                        None => return Ok(at),
                    }
                }
                Receiving::Value { left } => {
                    let used =
                        usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                    self.data(&rest[..used]);
                    used
                }
                Receiving::Trailer { at } => self.trailer(at, rest)?,
            };
        }
        Ok(at)
    }

    /// Consumes a whole buffer like [`Self::advance`], but may keep its memory.
    fn advance_buffer(&mut self, buffer: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let from = self.advance(buffer, true)?;
        let Receiving::Value { left } = self.receiving else {
            self.partial.keep(buffer.as_slice().into(), from);
            return Ok(());
        };
        let rest = buffer.len() - from;
        let used = usize::try_from(left).map_or(rest, |left| left.min(rest));
        let behind = buffer.split_off(from + used);
        buffer.drain(..from);
        self.own_data(std::mem::take(buffer));
        self.advance(&behind, false).map(drop)
    }

    /// Takes the line at the start of `input`, if it is there to its end; returns how long it is.
    fn line(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let within = &input[..input.len().min(self.line_bytes)];
        let Some(lf) = memchr::memchr(b'\n', within) else {
            return match input.len() >= self.line_bytes {
                true => Err(ProtocolError::LineTooLong),
                false => Ok(None),
            };
        };
        let line = &input[..lf];
        let key = self.asked.front().map_or(0..0, Range::clone);
        let parsed = parse(line, &self.keys[key])?;
        let (status, bytes) = match parsed {
            ReplyLine::NotFound => (404, 0),
            ReplyLine::Value { bytes, .. }
                if self.is_followed() && bytes > PIPELINED_VALUE_BYTES =>
            {
                return Err(ProtocolError::ValueTooLarge);
            }
            ReplyLine::Value { bytes, .. } => (200, bytes),
        };
        let mut head = self.spares.take();
        head.status = status;
        head.body = BodyLength::Length(bytes);
        head.push_id(
            FieldId::ContentLength,
            b"Content-Length",
            bytes.to_string().as_bytes(),
        );
        if let ReplyLine::Value { flags, .. } = parsed {
            head.push(FLAGS_FIELD, flags);
        }
        let size_bytes = lf as u64 + 1;
        self.withhold(Event::Head {
            stream: self.answered(),
            head,
            size: HeadSize {
                wire_bytes: size_bytes,
                text_bytes: size_bytes,
            },
        });
        match (status, bytes) {
            (404, _) => self.end_response(),
            (_, 0) => self.receiving = Receiving::Trailer { at: 0 },
            (_, left) => self.receiving = Receiving::Value { left },
        }
        Ok(Some(lf + 1))
    }

    /// Compares what follows a value; returns how many bytes it took.
    fn trailer(&mut self, at: usize, input: &[u8]) -> Result<usize, ProtocolError> {
        let expected = &TRAILER[at..];
        let used = expected.len().min(input.len());
        if input[..used] != expected[..used] {
            self.end_without_trailer()?;
            self.receiving = Receiving::Dropped;
        } else if used < expected.len() {
            self.receiving = Receiving::Trailer { at: at + used };
        } else if self.is_followed() && self.has_end_inside() {
            return Err(ProtocolError::Trailer);
        } else {
            self.end_response();
        }
        Ok(used)
    }

    /// Whether the value that is withheld has an END in it: its length may be a lie that takes in the next answer up to its
    /// end. A value that is like that is asked for again with nothing behind it.
    fn has_end_inside(&self) -> bool {
        match self.events.back() {
            Some(Event::Data { bytes, .. }) => {
                memchr::memchr_iter(TRAILER[0], bytes).any(|at| bytes[at..].starts_with(TRAILER))
            }
            _ => false,
        }
    }

    /// The value is complete by its length alone: with others behind it, it may contain bytes of theirs.
    fn end_without_trailer(&mut self) -> Result<(), ProtocolError> {
        if self.is_followed() {
            return Err(ProtocolError::Trailer);
        }
        let stream = self.stream;
        let text = b"memcached sent invalid trailer".to_vec();
        self.events.push_back(Event::Note { stream, text });
        self.end_response();
        self.keep = false;
        Ok(())
    }

    /// Takes bytes of the value.
    fn data(&mut self, bytes: &[u8]) {
        match self.events.back_mut() {
            Some(Event::Data { bytes: last, .. }) => last.extend_from_slice(bytes),
            _ => self.withhold(Event::Data {
                stream: self.answered(),
                bytes: bytes.to_vec(),
            }),
        }
        self.count(bytes.len());
    }

    /// Queues an event, which is withheld until the end of its answer where others wait behind it.
    fn withhold(&mut self, event: Event) {
        self.events.push_back(event);
        self.withheld += usize::from(self.is_followed());
    }

    /// Takes bytes of the value, in memory of their own.
    fn own_data(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.count(bytes.len());
            let stream = self.stream;
            self.events.push_back(Event::Data { stream, bytes });
        }
    }

    fn count(&mut self, bytes: usize) {
        self.body_bytes += bytes as u64;
        if let Receiving::Value { left } = self.receiving {
            self.receiving = match left.saturating_sub(bytes as u64) {
                0 => Receiving::Trailer { at: 0 },
                left => Receiving::Value { left },
            };
        }
    }

    fn end_response(&mut self) {
        self.withheld = 0;
        self.events.push_back(Event::End {
            stream: self.answered(),
            body_bytes: self.body_bytes,
        });
        self.asked.pop_front();
        match self.asked.is_empty() {
            true => self.receiving = Receiving::Idle,
            false => self.await_answer(),
        }
    }

    fn fail(&mut self, error: ProtocolError) {
        self.close();
        self.events.push_back(Event::Failed(error));
    }

    /// From here on nothing is read.
    fn close(&mut self) {
        self.receiving = Receiving::Over;
        self.keep = false;
        self.partial.clear();
        self.asked.clear();
        // Nobody can say any more whose these bytes were.
        let told = self.events.len() - self.withheld;
        self.events.truncate(told);
        self.withheld = 0;
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        let partial = self.partial.bytes().len();
        match self.receiving {
            Receiving::ReplyLine => {
                assert!(partial < self.line_bytes.max(1), "a line exceeds its limit")
            }
            Receiving::Value { left } => assert!(left > 0, "a complete value is not recognised"),
            Receiving::Trailer { at } => assert!(at < TRAILER.len(), "END is not recognised"),
            _ => {}
        }
        let is_asked = matches!(
            self.receiving,
            Receiving::ReplyLine | Receiving::Value { .. } | Receiving::Trailer { .. }
        );
        assert_eq!(is_asked, !self.asked.is_empty(), "an answer to nobody");
        assert!(self.asked.len() <= PIPELINE_MAX, "too many requests");
        assert!(self.withheld <= self.events.len());
        assert!(
            self.withheld == 0 || self.is_followed(),
            "an answer is withheld for nobody"
        );
        let in_line = self.receiving == Receiving::ReplyLine;
        assert!(in_line || partial == 0, "bytes are held for nobody");
    }
}

/// Parses the line in answer to a request for this key, without its LF.
fn parse<'a>(line: &'a [u8], key: &[u8]) -> Result<ReplyLine<'a>, ProtocolError> {
    let invalid = || ProtocolError::Response(line.into());
    let line = line.strip_suffix(b"\r").ok_or_else(invalid)?;
    if line == b"END" {
        return Ok(ReplyLine::NotFound);
    }
    let rest = line.strip_prefix(b"VALUE ").ok_or_else(invalid)?;
    let of = |wrong: fn(Box<[u8]>, Box<[u8]>) -> ProtocolError| wrong(line.into(), key.into());
    let rest = rest.strip_prefix(key);
    let rest = rest.ok_or_else(|| of(ProtocolError::Key))?;
    let rest = rest.strip_prefix(b" ").ok_or_else(invalid)?;
    let blank = memchr::memchr(b' ', rest).ok_or_else(invalid)?;
    let (flags, rest) = (&rest[..blank], &rest[blank + 1..]);
    let (length, cas) = match memchr::memchr(b' ', rest) {
        Some(blank) => (&rest[..blank], Some(&rest[blank + 1..])),
        None => (rest, None),
    };
    let is_number = |cas: &[u8]| !cas.is_empty() && cas.iter().all(u8::is_ascii_digit);
    match parse_length(length).filter(|_| cas.is_none_or(is_number)) {
        Some(bytes) => Ok(ReplyLine::Value { flags, bytes }),
        None => Err(of(ProtocolError::Length)),
    }
}

/// Returns the length on the wire of the answer with this head, with a line before its value of this many bytes.
#[must_use]
pub fn answer_bytes(head: &ResponseHead, line_bytes: u64) -> u64 {
    match head.body {
        BodyLength::Length(bytes) if head.status == 200 => {
            line_bytes + bytes + TRAILER.len() as u64
        }
        _ => line_bytes,
    }
}

/// Maximum number of requests that wait for answers on one connection.
pub const PIPELINE_MAX: usize = 16;
/// Most bytes of a value with answers to others behind it: they wait until all of it has come, and it is kept until then.
pub const PIPELINED_VALUE_BYTES: u64 = 16 << 10;
/// Most bytes of a key that may be pipelined: the limit of memcached.
pub const KEY_BYTES: usize = 250;
/// The field with the flags of a value, as they were sent.
pub const FLAGS_FIELD: &[u8] = b"Flags";
/// Text that follows a value.
const TRAILER: &[u8] = b"\r\nEND\r\n";
