//! Protocol errors of HTTP/1 servers; each one ends the connection.

use crate::http::Fault;
use std::fmt;

/// One way a server breaks HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The first bytes are not "HTTP/": an answer of HTTP/0.9, or another protocol.
    NotHttp,
    /// The first line is no status line of HTTP/1 (RFC 9112 section 4).
    BadStatusLine,
    /// The status is below 100.
    BadStatus,
    /// The head is malformed or too large, or its framing fields contradict each other.
    Head(Fault),
    /// The framing of the body is broken.
    Body(Fault),
    /// 103 in a response of HTTP/1.0.
    EarlyHintsInHttp10,
    /// More interim responses than the limit.
    TooManyInterim,
    /// 101 without a request for it, or before the request was sent completely.
    UnaskedUpgrade,
    /// Bytes after a body with a length; the response is complete.
    DataAfterLength,
    /// Bytes after a chunked body; the response is complete.
    DataAfterChunks,
    /// Bytes arrived without a request. The response before them, if any, is complete.
    Unasked,
    /// The server has closed its side before it answered.
    NoResponse,
    /// The server has closed its side within a response.
    Truncated,
}

impl ProtocolError {
    /// Description of the error, in nginx's words if it has some; "upstream " or "server " precedes
    /// it.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::NotHttp | Self::BadStatusLine => "sent no valid HTTP/1.0 header",
            Self::BadStatus => "sent invalid status",
            Self::Head(fault) => match fault {
                Fault::HeaderTooLarge => "sent too big header",
                Fault::DuplicateContentLength => "sent duplicate header line: \"Content-Length\"",
                Fault::BadContentLength => "sent invalid \"Content-Length\" header",
                Fault::LengthAndEncoding => {
                    "sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
                }
                Fault::EncodingInHttp10 => "sent HTTP/1.0 response with \"Transfer-Encoding\"",
                Fault::UnknownEncoding => "sent unknown \"Transfer-Encoding\"",
                Fault::DuplicateEncoding => "sent duplicate header line: \"Transfer-Encoding\"",
                _ => "sent invalid header",
            },
            Self::Body(fault) => match fault {
                Fault::BadTrailer => "sent invalid trailer",
                Fault::TrailerTooLarge => "sent too big trailers",
                _ => "sent invalid chunked response",
            },
            Self::EarlyHintsInHttp10 => "sent HTTP/1.0 response with early hints",
            Self::TooManyInterim => "sent too many interim responses",
            Self::UnaskedUpgrade => "switched protocols without being asked",
            Self::DataAfterLength => "sent more data than specified in \"Content-Length\" header",
            Self::DataAfterChunks => "sent data after final chunk",
            Self::Unasked => "sent data without being asked",
            Self::NoResponse | Self::Truncated => "prematurely closed connection",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.message())
    }
}
