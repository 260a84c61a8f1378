//! Protocol errors of servers that answer in CGI's format; each one ends the connection.

use crate::{h1, http::Fault};

errors! {
    /// A server's violation of CGI, in nginx's words if it has some; "upstream " precedes them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProtocolError {
        /// The first line begins with "HTTP/" and is no status line.
        BadStatusLine = "sent invalid status line",
        /// The status is not three digits from 200 to 999, nor 101.
        BadStatus = "sent invalid status",
        /// Two `Status` fields.
        DuplicateStatus = "sent duplicate header line: \"Status\"",
        /// A NUL, a bare CR or an invalid name in a line of the head.
        BadHeader = "sent invalid header",
        /// The head exceeds its limit.
        HeaderTooLarge = "sent too big header",
        /// Two `Content-Length` fields.
        DuplicateContentLength = "sent duplicate header line: \"Content-Length\"",
        /// A `Content-Length` that is no number.
        BadContentLength = "sent invalid \"Content-Length\" header",
        /// A `Transfer-Encoding`, which is a field of HTTP/1 connections.
        TransferEncoding = "sent unexpected \"Transfer-Encoding\" header",
        /// 101 without a request for it, or before the request was sent completely.
        UnaskedUpgrade = "switched protocols without being asked",
        /// The server has closed its side before it answered.
        NoResponse = "prematurely closed connection",
        /// The server has closed its side within a response.
        Truncated = "prematurely closed connection",
    }
}

impl ProtocolError {
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
