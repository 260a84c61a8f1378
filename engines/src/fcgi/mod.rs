//! FastCGI 1.0 on one connection, client role: one responder request at a time, always with id 1 on the wire.
//!
//! Parameters are sent in one PARAMS record if they fit, and no parameter is split between two records, since
//! servers parse each record by itself. Bodies are sent between record headers without being copied. Input is
//! decoded in place: the content of STDOUT is a CGI response, STDERR becomes notes, END_REQUEST ends the response.
//!
//! END_REQUEST completes a response; so does the empty STDOUT record if the connection is not kept. The end of the
//! connection completes a response only if all bytes of its `Content-Length` arrived, if it has no body, or if
//! STDOUT has ended: a truncated response of a killed application is never taken for a whole page. Output behind
//! `Content-Length` ends the response and the connection.
//!
//! Absent: the roles authorizer and filter, multiplexing, management records, ABORT_REQUEST (closing the connection
//! has the same effect).
//!
//! Source: FastCGI Specification 1.0 sections 3 and 5.

mod protocol_error;
mod receive;
mod record;
mod request;
#[cfg(test)]
mod tests;

use crate::cgi::{HeadParser, StatusLine};
use crate::client;
use crate::reassembly::ReassemblyBuffer;
pub use protocol_error::ProtocolError;
use record::Decoder;
pub use request::RequestOptions;

/// Event of a FastCGI client.
pub type Event = client::Event<ProtocolError>;

/// One FastCGI connection in the client role.
pub type Client = client::Connection<FastCgi>;

/// The state of FastCGI on a connection.
#[derive(Debug)]
pub struct FastCgi {
    decoder: Decoder,
    parser: HeadParser,
    /// A part of a line of the head.
    partial: ReassemblyBuffer,
    receiving: Receiving,
    sending: Sending,
    /// The request's method is HEAD: the response has no body.
    is_head: bool,
    /// Received part of a STDERR record, not reported yet.
    note: Vec<u8>,
    /// Number of STDERR bytes of the request, reported or dropped.
    stderr_bytes: u64,
    scratch: Vec<u8>,
}

/// Part of the response that the next content of STDOUT belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiving {
    /// No request has been sent.
    Idle,
    Head,
    Body(Left),
    /// STDOUT has ended, END_REQUEST is outstanding.
    StdoutEnded,
    /// The response is complete; further bytes are dropped, and the connection cannot be reused.
    Dropped,
    /// Nothing is read any more.
    Over,
}

/// Remaining length of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// This many bytes.
    Bytes(u64),
    /// A body of unknown length.
    Unknown,
    /// There is no body; bytes of one are dropped.
    NoBody,
}

/// State of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// `left` is 0 if only the end is outstanding.
    Counted {
        left: u64,
    },
    Open,
    Ended,
}

impl Default for FastCgi {
    fn default() -> Self {
        Self {
            decoder: Decoder::default(),
            parser: HeadParser::new(0, StatusLine::Skipped),
            partial: ReassemblyBuffer::default(),
            receiving: Receiving::Idle,
            sending: Sending::Ended,
            is_head: false,
            note: Vec::new(),
            stderr_bytes: 0,
            scratch: Vec::new(),
        }
    }
}

impl Client {
    /// Number of bytes that the application has written to STDERR in the request, reported or not.
    #[must_use]
    pub fn stderr_bytes(&self) -> u64 {
        self.protocol.stderr_bytes
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        let in_head = self.protocol.receiving == Receiving::Head;
        assert!(
            in_head || self.protocol.partial.bytes().is_empty(),
            "bytes are held for nobody"
        );
        let told = self.protocol.stderr_bytes.min(STDERR_BYTES as u64);
        assert!(
            self.protocol.note.len() as u64 <= told,
            "a note exceeds its limit"
        );
        self.protocol.decoder.check_invariants();
    }
}

/// Maximum number of STDERR bytes reported per request; further bytes are counted and dropped.
pub const STDERR_BYTES: usize = 4096;
