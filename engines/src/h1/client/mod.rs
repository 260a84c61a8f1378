//! HTTP/1.1 and HTTP/1.0 on one connection, client role.
//!
//! One exchange at a time: the next request is accepted when the previous response, and the body of its request,
//! are complete. Exchanges are numbered from 1.
//!
//! Requests are sent as the caller writes them; their fields determine the framing of the body.
//! Responses are read with nginx's leniencies as long as they are unambiguous: a body has one
//! length, chunked is the only coding, and unrequested bytes are refused. Heads keep all their
//! fields, verbatim. The driver decides whether the end of the connection ends a body, since TLS
//! can tell a real end from a forged one.
//!
//! A response may end before its request has. The connection then cannot be reused, unless the rest of the request
//! is still sent. Bytes behind a response leave it intact, and end the connection.
//!
//! A tunnel has two ends: the server's is reported as the end of the exchange, ours is [`Client::end`]. Either
//! direction continues after the end of the other.
//!
//! Absent: HTTP/0.9, pipelining.
//!
//! Source: RFC 9112, RFC 9110 section 15.

mod head;
mod protocol_error;
mod receive;
mod request;

use super::Settings;
use super::chunked::ChunkedDecoder;
use crate::client::{self, Bodies};
use crate::http::{Fields, Version};
pub(crate) use head::{Ends, FirstLine, ResponseParser, ends};
pub use protocol_error::ProtocolError;
use request::RequestInfo;
pub use request::RequestOptions;

/// Event of an HTTP/1 client.
pub type Event = client::Event<ProtocolError>;

/// One HTTP/1 connection in the client role.
pub type Client = client::Connection<Http1>;

/// The state of HTTP/1 on a connection.
#[derive(Debug)]
pub struct Http1 {
    /// Limits of heads and trailer sections.
    settings: Settings,
    bodies: Bodies,
    parser: ResponseParser,
    receiving: Receiving,
    sending: Sending,
    request_info: RequestInfo,
    /// The version of the last head.
    version: Version,
    interim: u32,
    /// Treatment of bytes received while no request is open.
    surplus: ProtocolError,
    scratch: Vec<u8>,
}

/// Part of the message that the next received byte belongs to.
#[derive(Debug)]
enum Receiving {
    /// No request has been sent.
    Idle,
    Head,
    /// A body with a length; `left` is never 0.
    Length {
        left: u64,
    },
    Chunked(ChunkedDecoder, Fields),
    UntilClose,
    Tunnel,
    /// Nothing is read any more.
    Over,
}

/// State of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// `left` is never 0, unless the body is empty.
    Counted {
        left: u64,
    },
    Chunked,
    Tunnel,
    Ended,
}

/// Options of the Connection fields of a head (RFC 9112 section 9.3).
#[derive(Clone, Copy, Debug, Default)]
struct ConnectionOptions {
    close: bool,
    keep_alive: bool,
}

impl ConnectionOptions {
    /// Takes one field.
    fn take(&mut self, value: &[u8]) {
        if value == b"keep-alive" {
            // The usual value of most servers that send the field.
            self.keep_alive = true;
            return;
        }
        for option in value.split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Whether the sender of a head of this version leaves the connection open.
    fn keeps(self, version: Version) -> bool {
        !self.close && (version >= Version::Http11 || self.keep_alive)
    }
}

impl Client {
    /// A connection on which nothing has been sent.
    #[must_use]
    pub fn new(bodies: Bodies) -> Self {
        let settings = Settings {
            max_headers: u32::MAX,
            ignore_invalid_headers: false,
            underscores_in_headers: true,
            ..Settings::default()
        };
        Self::with(Http1 {
            parser: ResponseParser::new(Box::default(), FirstLine::Status, &settings),
            settings,
            bodies,
            receiving: Receiving::Idle,
            sending: Sending::Ended,
            request_info: RequestInfo::default(),
            version: Version::Http11,
            interim: 0,
            surplus: ProtocolError::Unasked,
            scratch: Vec::new(),
        })
    }

    /// The version of the last response head; HTTP/1.1 before the first one.
    #[must_use]
    pub fn version(&self) -> Version {
        self.protocol.version
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        match self.protocol.receiving {
            Receiving::Head => {
                let limit = self.protocol.settings.header_buffer_bytes;
                let partial = self.partial.bytes().len();
                assert!(partial <= limit, "a part of a line exceeds its limit");
            }
            Receiving::Length { left } => assert!(left > 0, "a complete body is not recognised"),
            Receiving::Chunked(ref decoder, _) => assert!(!decoder.is_done(), "a body has ended"),
            _ => {}
        }
        let in_head = matches!(self.protocol.receiving, Receiving::Head);
        assert!(
            in_head || self.partial.bytes().is_empty(),
            "bytes are held for nobody"
        );
    }
}
