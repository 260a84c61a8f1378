//! Protocol errors of FastCGI applications; each one ends the connection.

use std::fmt;

use crate::cgi;

/// An application's violation of FastCGI, or of CGI within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// A record of another version.
    Version(u8),
    /// A record of a type that is not for clients, management records included.
    RecordType(u8),
    /// A record of another request: the high byte of its id.
    RequestIdHigh(u8),
    /// A record of another request: the low byte of its id.
    RequestIdLow(u8),
    /// END_REQUEST with a content of other than 8 bytes.
    EndRequestLength(u16),
    /// END_REQUEST before the head is complete; with its protocol status.
    EndRequestInHead(u8),
    /// END_REQUEST with a protocol status other than FCGI_REQUEST_COMPLETE, before the response was known to be
    /// complete: 1 (cannot multiplex), 2 (overloaded), 3 (unknown role).
    Rejected(u8),
    /// END_REQUEST before as many bytes as the head announces.
    RequestClosed,
    /// The end of STDOUT before the head is complete, or before as many bytes as the head announces.
    StdoutClosed,
    /// STDOUT behind its end.
    StdoutAfterEnd,
    /// The head is malformed, too large, or contradicts itself.
    Head(cgi::ProtocolError),
    /// Bytes arrived without a request. The response before them, if any, is complete.
    Unasked,
    /// The application has closed the connection before it answered.
    NoResponse,
    /// The application has closed the connection within a response.
    Truncated,
}

impl fmt::Display for ProtocolError {
    /// In nginx's words if it has some; "upstream " precedes them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(out, "sent unsupported FastCGI protocol version: {version}")
            }
            Self::RecordType(of) => write!(out, "sent invalid FastCGI record type: {of}"),
            Self::RequestIdHigh(byte) => {
                write!(out, "sent unexpected FastCGI request id high byte: {byte}")
            }
            Self::RequestIdLow(byte) => {
                write!(out, "sent unexpected FastCGI request id low byte: {byte}")
            }
            Self::EndRequestLength(bytes) => {
                write!(out, "sent FastCGI end request of invalid length: {bytes}")
            }
            Self::EndRequestInHead(0) => out.write_str("sent unexpected FastCGI record: 3"),
            Self::EndRequestInHead(status) => {
                write!(
                    out,
                    "sent unexpected FastCGI record: 3, protocol status: {status}"
                )
            }
            Self::Rejected(status) => {
                write!(
                    out,
                    "rejected FastCGI request with protocol status: {status}"
                )
            }
            Self::RequestClosed => out.write_str("prematurely closed FastCGI request"),
            Self::StdoutClosed => out.write_str("prematurely closed FastCGI stdout"),
            Self::StdoutAfterEnd => out.write_str("sent FastCGI stdout after its end"),
            Self::Head(error) => error.fmt(out),
            Self::Unasked => out.write_str("sent data without being asked"),
            Self::NoResponse | Self::Truncated => out.write_str("prematurely closed connection"),
        }
    }
}
