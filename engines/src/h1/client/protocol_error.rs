//! What a server can do wrong on a connection of HTTP/1; all of it ends the connection.

use crate::http::Fault;
use std::fmt;

/// One way a server breaks HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The first line is no status line (RFC 9112 section 4).
    BadStatusLine,
    /// The head is malformed, or contradicts itself about where the body ends.
    Head(Fault),
    /// The framing of the body is broken.
    Body(Fault),
    /// More interim responses than the limit.
    TooManyInterim,
    /// 101 without a request for it.
    UnaskedUpgrade,
    /// Bytes that no request has asked for.
    Unasked,
    /// The server has closed its side before it answered; a request that may be repeated is safe to repeat.
    NoResponse,
    /// The server has closed its side inside of a response.
    Truncated,
}

impl ProtocolError {
    /// The text for a log.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::BadStatusLine => "server sent an invalid status line",
            Self::Head(fault) => match fault {
                Fault::HeaderTooLarge | Fault::TooManyHeaders => "server sent too big a header",
                Fault::BadHeader => "server sent an invalid header line",
                Fault::DuplicateContentLength => "server sent duplicate \"Content-Length\"",
                Fault::BadContentLength => "server sent an invalid \"Content-Length\"",
                Fault::LengthAndEncoding => {
                    "server sent \"Content-Length\" and \"Transfer-Encoding\" at the same time"
                }
                Fault::EncodingInHttp10 => "server sent \"Transfer-Encoding\" in HTTP/1.0",
                Fault::UnknownEncoding => "server sent an unknown \"Transfer-Encoding\"",
                Fault::DuplicateEncoding => "server sent duplicate \"Transfer-Encoding\"",
                _ => "server sent an invalid header",
            },
            Self::Body(_) => "server sent an invalid chunked body",
            Self::TooManyInterim => "server sent too many interim responses",
            Self::UnaskedUpgrade => "server switched protocols unasked",
            Self::Unasked => "server sent bytes that nobody asked for",
            Self::NoResponse => "server closed the connection without a response",
            Self::Truncated => "server closed the connection inside of a response",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.message())
    }
}
