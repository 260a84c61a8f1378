//! The text protocol of memcached on one connection, client role: `get` of one key, one at a time or pipelined.
//!
//! ```text
//! get KEY\r\n          VALUE KEY FLAGS LENGTH[ CAS]\r\n  the value  \r\nEND\r\n
//!                      END\r\n                                        there is no such key
//! ```
//!
//! A value is reported as an HTTP response: status 200 with `Content-Length`, and the flags verbatim in the field
//! `Flags`. Without a value the status is 404. The value line defines its length. If anything but END follows it, a
//! note reports that, and the connection cannot be reused.
//!
//! Further requests can be pipelined behind the first, until a byte of an answer has come. Answers come in the
//! order of the requests; only the lengths sent by the server divide them. So an answer with others behind it is
//! withheld until its END has arrived, and any other input ends the connection before a byte of that answer is
//! reported. Such a value has at most [`PIPELINED_VALUE_BYTES`]. The last answer has nothing behind it and is
//! reported as it arrives.
//!
//! Absent: every other command, the binary protocol, and a `get` of several keys, since its answer does not
//! identify the missing ones.
//!
//! Source: memcached, doc/protocol.txt, "Retrieval command".

mod protocol_error;
mod request;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use crate::client::{self, Phase, Protocol};
use crate::http::{BodyLength, FieldId, ResponseHead, parse_length};
pub use protocol_error::ProtocolError;

/// Event of a memcached client.
pub type Event = client::Event<ProtocolError>;

/// One connection to a memcached server in the client role.
pub type Client = client::Connection<Memcached>;

/// The state of memcached's protocol on a connection.
#[derive(Debug, Default)]
pub struct Memcached {
    /// The requested keys, one behind the other.
    keys: Vec<u8>,
    /// Ranges in `keys` of the requests without a complete answer, in the order of the requests.
    asked: VecDeque<Range<usize>>,
    /// Most bytes of the line before the value, with its line end.
    line_bytes: usize,
    receiving: Receiving,
    /// The number of events at the end of the queue that are not delivered yet.
    withheld: usize,
}

/// Part of the answer that the next received byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Receiving {
    /// No request has been sent.
    #[default]
    Idle,
    ReplyLine,
    /// `left` is never 0.
    Value {
        left: u64,
    },
    /// The text behind a value, with the number of its received bytes.
    Trailer {
        at: usize,
    },
    /// The response is complete; further bytes are dropped, and the connection cannot be reused.
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

impl Protocol for Memcached {
    type ProtocolError = ProtocolError;

    fn phase(&self) -> Phase {
        match self.receiving {
            Receiving::Idle => Phase::Idle,
            Receiving::ReplyLine => Phase::Head,
            Receiving::Value { .. } | Receiving::Trailer { .. } => Phase::Body,
            Receiving::Dropped | Receiving::Over => Phase::Over,
        }
    }

    /// Several answers share a buffer, so none can take it over.
    fn passes_buffers(&self) -> bool {
        !self.is_followed()
    }

    #[inline]
    fn withheld(&self) -> usize {
        self.withheld
    }

    fn advance(client: &mut Client, input: &[u8]) -> Result<usize, ProtocolError> {
        client.decode(input, false)
    }

    fn advance_buffer(client: &mut Client, buffer: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let from = client.decode(buffer, true)?;
        let Receiving::Value { left } = client.protocol.receiving else {
            client.partial.keep(buffer.as_slice().into(), from);
            return Ok(());
        };
        let rest = buffer.len() - from;
        let used = usize::try_from(left).map_or(rest, |left| left.min(rest));
        let behind = buffer.split_off(from + used);
        buffer.drain(..from);
        client.own_data(std::mem::take(buffer));
        client.decode(&behind, false).map(drop)
    }

    fn reopen(&mut self) {
        self.receiving = Receiving::Idle;
    }

    fn close(client: &mut Client) {
        let own = &mut client.protocol;
        own.receiving = Receiving::Over;
        own.asked.clear();
        // The bytes can no longer be attributed to a request.
        let told = client.events.len() - own.withheld;
        client.events.truncate(told);
        own.withheld = 0;
    }
}

impl Client {
    /// Takes the end of the server's bytes.
    pub fn receive_eof(&mut self) {
        match self.protocol.receiving {
            Receiving::Over => {}
            Receiving::Idle | Receiving::Dropped => {
                self.protocol.receiving = Receiving::Over;
                self.deliver_eof();
            }
            Receiving::Trailer { .. } => match self.end_without_trailer() {
                Ok(()) => self.protocol.receiving = Receiving::Over,
                Err(error) => self.fail(error),
            },
            Receiving::ReplyLine if !self.has_answer => self.fail(ProtocolError::NoResponse),
            Receiving::ReplyLine | Receiving::Value { .. } => self.fail(ProtocolError::Truncated),
        }
    }

    /// Consumes bytes; returns the number. The rest is a part of a line, or with `only_line` all bytes behind it.
    fn decode(&mut self, input: &[u8], only_line: bool) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            at += match self.protocol.receiving {
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

    /// Takes the line at the start of `input`, if it is complete; returns its length.
    fn line(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let within = &input[..input.len().min(self.protocol.line_bytes)];
        let Some(lf) = memchr::memchr(b'\n', within) else {
            return match input.len() >= self.protocol.line_bytes {
                true => Err(ProtocolError::LineTooLong),
                false => Ok(None),
            };
        };
        let line = &input[..lf];
        let key = self.protocol.asked.front().map_or(0..0, Range::clone);
        let parsed = parse(line, &self.protocol.keys[key])?;
        let (status, bytes) = match parsed {
            ReplyLine::NotFound => (404, 0),
            ReplyLine::Value { bytes, .. }
                if self.protocol.is_followed() && bytes > PIPELINED_VALUE_BYTES =>
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
        let told = self.events.len();
        self.deliver_head(head, size_bytes);
        self.withhold(told);
        match (status, bytes) {
            (404, _) => self.end_response(),
            (_, 0) => self.protocol.receiving = Receiving::Trailer { at: 0 },
            (_, left) => self.protocol.receiving = Receiving::Value { left },
        }
        Ok(Some(lf + 1))
    }

    /// Compares the bytes behind a value with the expected ones; returns the number of bytes taken.
    fn trailer(&mut self, at: usize, input: &[u8]) -> Result<usize, ProtocolError> {
        let expected = &TRAILER[at..];
        let used = expected.len().min(input.len());
        if input[..used] != expected[..used] {
            self.end_without_trailer()?;
            self.protocol.receiving = Receiving::Dropped;
        } else if used < expected.len() {
            self.protocol.receiving = Receiving::Trailer { at: at + used };
        } else if self.protocol.is_followed() && self.has_end_inside() {
            return Err(ProtocolError::Trailer);
        } else {
            self.end_response();
        }
        Ok(used)
    }

    /// Whether the withheld value has an END in it: a wrong length may include the next answer up to its end. Such
    /// a value is requested again with nothing behind it.
    fn has_end_inside(&self) -> bool {
        match self.events.back() {
            Some(Event::Data { bytes, .. }) => {
                memchr::memchr_iter(TRAILER[0], bytes).any(|at| bytes[at..].starts_with(TRAILER))
            }
            _ => false,
        }
    }

    /// The value is complete by its length alone: with other answers behind it, it may contain bytes of them.
    fn end_without_trailer(&mut self) -> Result<(), ProtocolError> {
        if self.protocol.is_followed() {
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
        let told = self.events.len();
        self.deliver_data(bytes);
        self.withhold(told);
        self.take(bytes.len());
    }

    /// Withholds the events behind the first `told` until the end of their answer, if other answers wait behind it.
    fn withhold(&mut self, told: usize) {
        if self.protocol.is_followed() {
            self.protocol.withheld += self.events.len() - told;
        }
    }

    /// Takes bytes of the value, in a buffer of their own.
    fn own_data(&mut self, bytes: Vec<u8>) {
        let len = bytes.len();
        self.deliver_owned(bytes);
        self.take(len);
    }

    /// Takes bytes from the rest of the value.
    fn take(&mut self, bytes: usize) {
        if let Receiving::Value { left } = self.protocol.receiving {
            self.protocol.receiving = match left.saturating_sub(bytes as u64) {
                0 => Receiving::Trailer { at: 0 },
                left => Receiving::Value { left },
            };
        }
    }

    fn end_response(&mut self) {
        self.protocol.withheld = 0;
        self.deliver_end();
        self.protocol.asked.pop_front();
        match self.protocol.asked.is_empty() {
            true => self.protocol.receiving = Receiving::Idle,
            false => {
                self.stream = self.stream.wrapping_add(1);
                self.has_answer = false;
                self.body_bytes = 0;
                self.protocol.receiving = Receiving::ReplyLine;
            }
        }
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        let partial = self.partial.bytes().len();
        match self.protocol.receiving {
            Receiving::ReplyLine => assert!(
                partial < self.protocol.line_bytes.max(1),
                "a line exceeds its limit"
            ),
            Receiving::Value { left } => assert!(left > 0, "a complete value is not recognised"),
            Receiving::Trailer { at } => assert!(at < TRAILER.len(), "END is not recognised"),
            _ => {}
        }
        let is_asked = matches!(
            self.protocol.receiving,
            Receiving::ReplyLine | Receiving::Value { .. } | Receiving::Trailer { .. }
        );
        assert_eq!(
            is_asked,
            !self.protocol.asked.is_empty(),
            "an answer to nobody"
        );
        assert!(
            self.protocol.asked.len() <= PIPELINE_MAX,
            "too many requests"
        );
        assert!(self.protocol.withheld <= self.events.len());
        assert!(
            self.protocol.withheld == 0 || self.protocol.is_followed(),
            "an answer is withheld for nobody"
        );
        let in_line = self.protocol.receiving == Receiving::ReplyLine;
        assert!(in_line || partial == 0, "bytes are held for nobody");
    }
}

/// Parses the answer line to a request for this key, without its LF.
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

/// Returns the length on the wire of the answer with this head; `line_bytes` is the length of the line before its
/// value.
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
/// Most bytes of a value with other answers behind it: it is buffered until it is complete, and they wait for it.
pub const PIPELINED_VALUE_BYTES: u64 = 16 << 10;
/// Most bytes of a key that may be pipelined: the limit of memcached.
pub const KEY_BYTES: usize = 250;
/// The field with the flags of a value, as they were sent.
pub const FLAGS_FIELD: &[u8] = b"Flags";
/// Text that follows a value.
const TRAILER: &[u8] = b"\r\nEND\r\n";
