//! Events and errors of connections in the client role: one vocabulary for all protocols.
//!
//! A client of each protocol has the same upper edge. `request` opens an exchange and returns its number; `send`
//! and `cancel` continue it. `receive` and `receive_eof` take input, `event` returns its meaning, `transmit` the
//! bytes to send. `recycle` takes back the memory of heads; if there are streams, `consumed` opens windows again.
//! Nothing blocks, and server input never panics.
//!
//! An exchange ends by exactly one of [`Event::End`], [`Event::Reset`] and [`Event::Malformed`], or with its connection by
//! [`Event::Failed`] or [`Event::Eof`].
//!
//! Absent: retries, redirects, connection pools and timers, which belong to the driver.

mod connection;

pub use connection::{Connection, Phase, Protocol};

use crate::http::{BodyLength, Fields, ResponseHead, has_control, parse_length};

/// Something the server sent, in order; `ProtocolError` lists the connection errors of the protocol.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<ProtocolError> {
    /// An interim response, 1xx; the final response follows.
    Interim {
        /// Number of the exchange.
        stream: u32,
        /// Its head.
        head: Box<ResponseHead>,
    },
    /// The head of the response.
    Head {
        /// Number of the exchange.
        stream: u32,
        /// The head. Fields that belong to the connection are in it; an engine in the server role leaves them out.
        head: Box<ResponseHead>,
        /// Size of the head.
        size: HeadSize,
    },
    /// Bytes of the body, or of a tunnel. They count against windows until `consumed` is called.
    Data {
        /// Number of the exchange.
        stream: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Output of an application to its error stream (FastCGI).
    Note {
        /// Number of the exchange.
        stream: u32,
        /// The bytes.
        text: Vec<u8>,
    },
    /// The trailer section, if it had fields.
    Trailers {
        /// Number of the exchange.
        stream: u32,
        /// The fields.
        fields: Fields,
    },
    /// The response is complete.
    End {
        /// Number of the exchange.
        stream: u32,
        /// Bytes of its body.
        body_bytes: u64,
    },
    /// From here on the connection is a tunnel: 101, or the answer to CONNECT.
    Upgraded(u32),
    /// The server abandoned the exchange, or did not begin it.
    Reset {
        /// Number of the exchange.
        stream: u32,
        /// Why, as a number of the protocol.
        code: u32,
    },
    /// The response breaks the protocol; its exchange is abandoned, the connection continues.
    Malformed {
        /// Number of the exchange.
        stream: u32,
        /// Cause of the error.
        what: Malformed,
    },
    /// The answer to a PING.
    Pong(u64),
    /// The server takes no further request on this connection.
    Closing {
        /// The last exchange that it serves.
        last: u32,
        /// Why, as a number of the protocol.
        code: u32,
    },
    /// The server has broken the connection: nothing follows the bytes that wait to be transmitted, and nothing
    /// more is read.
    Failed(ProtocolError),
    /// The server has closed its side while no exchange was in progress.
    Eof,
}

impl<ProtocolError> Event<ProtocolError> {
    /// Converts an event to one with another form of error.
    pub fn map_error<Other>(self, form: impl FnOnce(ProtocolError) -> Other) -> Event<Other> {
        match self {
            Self::Failed(error) => Event::Failed(form(error)),
            Self::Interim { stream, head } => Event::Interim { stream, head },
            Self::Head { stream, head, size } => Event::Head { stream, head, size },
            Self::Data { stream, bytes } => Event::Data { stream, bytes },
            Self::Note { stream, text } => Event::Note { stream, text },
            Self::Trailers { stream, fields } => Event::Trailers { stream, fields },
            Self::End { stream, body_bytes } => Event::End { stream, body_bytes },
            Self::Upgraded(stream) => Event::Upgraded(stream),
            Self::Reset { stream, code } => Event::Reset { stream, code },
            Self::Malformed { stream, what } => Event::Malformed { stream, what },
            Self::Pong(number) => Event::Pong(number),
            Self::Closing { last, code } => Event::Closing { last, code },
            Self::Eof => Event::Eof,
        }
    }
}

/// Length of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadSize {
    /// Bytes on the wire: of a compressed block, or of status line and fields.
    pub wire_bytes: u64,
    /// Bytes of names and values; for HTTP/1, which compresses nothing, those on the wire.
    pub text_bytes: u64,
}

errors! {
    /// Error in a response of a protocol that has streams.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Malformed {
        /// A status that is missing, or no number from 100 to 999.
        Status = "server sent an invalid status",
        /// A field with a forbidden name or value, or one of HTTP/1 connections.
        Field = "server sent an invalid field",
        /// More fields, or longer ones, than the limits allow.
        TooLarge = "server sent too large a head",
        /// The body's length differs from `content-length`, or `content-length` is no number.
        Length = "server sent a body of another length than announced",
        /// More interim responses than the limit allows, or one that ends the stream.
        Interim = "server sent too many interim responses",
        /// A frame in the wrong place, such as a body before its head.
        OutOfOrder = "server sent a frame out of order",
        /// More of a body than the window allowed.
        Window = "server sent more than the window allowed",
    }
}

errors! {
    /// Error of a request that cannot be sent; the name of the refused part precedes its text.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SendError {
        /// The maximum of exchanges is in progress; later another may be possible.
        Busy = "the connection is busy",
        /// The connection takes no further request.
        Closed = "the connection is closed",
        /// A field of a protocol with streams cannot be sent: its name is no token, its value has a control, or it contradicts
        /// the body.
        BadField = "a field cannot be sent",
        /// The method is no token, or the caller cannot handle its answer.
        BadMethod = "the method cannot be sent",
        /// The request target is empty, or has a blank or a control.
        BadTarget = "the URI is empty, or has a space or a control character",
        /// The name of a field is empty, or has a blank, a control or a colon.
        BadName = "a header name is empty, or has a space, a control character or a colon",
        /// The value of a field has a CR, LF or NUL.
        BadValue = "a header value has a line break or a null character",
        /// The fields contradict each other about the length of the body, or name a coding other than chunked.
        BadFraming = "\"Content-Length\" and \"Transfer-Encoding\" are repeated, invalid or contradict each other",
        /// The fields announce no body, or less than there is.
        BodyTooLong = "the body is longer than \"Content-Length\" says",
        /// The name of a parameter is empty, or a parameter has a byte that its protocol cannot send.
        BadParameter = "a parameter has no name, or has a null character",
        /// The first parameter is not the length of the body, of SCGI.
        NoLength = "the first parameter is not \"CONTENT_LENGTH\" with a number",
        /// The parameters exceed the limit, or the maximum of their format.
        ParametersTooLarge = "the parameters are too large",
        /// The key of memcached is empty, or has a blank or a control.
        BadKey = "the key is empty, or has a space or a control character",
    }
}

/// Treatment of the bytes of response bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// They are reported by [`Event::Data`]; calls of `consumed` open windows.
    #[default]
    Delivered,
    /// They are counted and dropped; windows open by themselves.
    Counted,
}

/// Spare heads; their memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    #[allow(clippy::vec_box, reason = "heads move as pointers")]
    heads: Vec<Box<ResponseHead>>,
}

impl Spares {
    /// An empty head.
    #[inline]
    pub(crate) fn take(&mut self) -> Box<ResponseHead> {
        let mut head = self.heads.pop().unwrap_or_default();
        head.clear();
        head
    }

    /// Keeps the memory of a head for reuse, unless there is enough or it is large.
    #[inline]
    pub(crate) fn give(&mut self, head: Box<ResponseHead>) {
        if self.heads.len() < MAX_SPARES && head.arena.capacity() <= MAX_SPARE_BYTES {
            self.heads.push(head);
        }
    }
}

/// Moves bytes to the end of others; if the target is empty, it takes over the buffer.
#[inline]
pub(crate) fn hand_over(from: &mut Vec<u8>, to: &mut Vec<u8>) {
    if to.is_empty() {
        std::mem::swap(to, from);
    } else {
        to.append(from);
    }
}

/// Value of `content-length`; a second one makes it invalid.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Announced(Option<Option<u64>>);

impl Announced {
    /// Takes a value of the field.
    pub(crate) fn take(&mut self, value: &[u8]) {
        let repeated = self.0.is_some();
        self.0 = Some(parse_length(value).filter(|_| !repeated));
    }

    /// The length of the body, or `None` if the field is invalid; `ended`: the message has no body.
    pub(crate) fn body(self, ended: bool) -> Option<BodyLength> {
        match self.0 {
            Some(length) => length.map(BodyLength::Length),
            None if ended => Some(BodyLength::None),
            None => Some(BodyLength::Unknown),
        }
    }
}

/// Whether a value may be sent: no CR, LF or NUL, which could end its line.
pub(crate) fn is_sendable(value: &[u8]) -> bool {
    // Nearly no value has a control; only such a value is checked byte by byte.
    !has_control(value) || !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}

/// Three digits of a status, 100 to 999.
pub(crate) fn parse_status(text: &[u8]) -> Option<u16> {
    let [hundreds @ b'1'..=b'9', tens, ones] = text else {
        return None;
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    Some(u16::from(hundreds - b'0') * 100 + digit(tens)? * 10 + digit(ones)?)
}

/// Maximum number of interim responses of one exchange.
pub const MAX_INTERIM: u32 = 100;
/// Heads that are kept for their memory.
const MAX_SPARES: usize = 128;
/// Largest text of a head to keep for reuse.
const MAX_SPARE_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_three_digits_from_one_hundred() {
        assert_eq!(parse_status(b"100"), Some(100));
        assert_eq!(parse_status(b"999"), Some(999));
        for bad in [&b"099"[..], b"20", b"2000", b"2 0", b"", b"abc"] {
            assert_eq!(parse_status(bad), None, "{bad:?}");
        }
    }
}
