//! Protocol errors of servers that answer in CGI's format; each one ends the connection.

use crate::{h1, http::Fault};
use std::fmt;

/// One way a server breaks CGI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The first line begins with "HTTP/" and is no status line.
    BadStatusLine,
    /// The status is not three digits from 200 to 999, nor 101.
    BadStatus,
    /// Two `Status` fields.
    DuplicateStatus,
    /// A NUL, a bare CR or an invalid name in a line of the head.
    BadHeader,
    /// The head exceeds its limit.
    HeaderTooLarge,
    /// Two `Content-Length` fields.
    DuplicateContentLength,
    /// A `Content-Length` that is no number.
    BadContentLength,
    /// A `Transfer-Encoding`, which belongs to connections of HTTP/1.
    TransferEncoding,
    /// 101 without a request for it, or before that was sent whole.
    UnaskedUpgrade,
    /// The server has closed its side before it answered.
    NoResponse,
    /// The server has closed its side inside of a response.
    Truncated,
}

impl ProtocolError {
    /// Description of the error, in nginx's words where it has some; "upstream " precedes it.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::BadStatusLine => "sent invalid status line",
            Self::BadStatus => "sent invalid status",
            Self::DuplicateStatus => "sent duplicate header line: \"Status\"",
            Self::BadHeader => "sent invalid header",
            Self::HeaderTooLarge => "sent too big header",
            Self::DuplicateContentLength => "sent duplicate header line: \"Content-Length\"",
            Self::BadContentLength => "sent invalid \"Content-Length\" header",
            Self::TransferEncoding => "sent unexpected \"Transfer-Encoding\" header",
            Self::UnaskedUpgrade => "switched protocols without being asked",
            Self::NoResponse | Self::Truncated => "prematurely closed connection",
        }
    }

    /// Maps an error of the head parser to a protocol error.
    pub(super) const fn of_head(error: h1::ProtocolError) -> Self {
        match error {
            h1::ProtocolError::BadStatus => Self::BadStatus,
            h1::ProtocolError::BadStatusLine => Self::BadStatusLine,
            h1::ProtocolError::Head(fault) => match fault {
                Fault::HeaderTooLarge => Self::HeaderTooLarge,
                Fault::DuplicateContentLength => Self::DuplicateContentLength,
                Fault::BadContentLength => Self::BadContentLength,
                Fault::LengthAndEncoding
                | Fault::EncodingInHttp10
                | Fault::UnknownEncoding
                | Fault::DuplicateEncoding => Self::TransferEncoding,
                _ => Self::BadHeader,
            },
            _ => Self::BadHeader,
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.message())
    }
}
