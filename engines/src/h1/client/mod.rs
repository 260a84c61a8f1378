//! HTTP/1.1 and HTTP/1.0 on one connection, client role.
//!
//! One exchange at a time: the next request is taken when the response before it, and the body of its own request, are
//! complete. Exchanges are numbered from 1.
//!
//! Requests are sent as the caller writes them; how the body is framed follows from their fields. Responses are read with
//! nginx's leniencies as long as they mean one thing: a body has one length, chunked is the only coding, nothing may come
//! that was not asked for. Heads keep all their fields, verbatim. Whether the end of the connection ends a body is the
//! driver's to say, since TLS knows of ends that somebody else has made.
//!
//! A response may end before its request has. The connection is then of no further use, unless the rest of the request is
//! sent all the same. Bytes behind a response leave it whole, and end the connection.
//!
//! A tunnel has two ends: the server's is reported as the end of the exchange, ours is [`Client::end`]. Either goes on
//! when the other has ended.
//!
//! Absent: HTTP/0.9, pipelining.
//!
//! Source: RFC 9112, RFC 9110 section 15.

mod head;
mod protocol_error;
mod receive;
mod request;

use std::collections::VecDeque;

use super::Settings;
use super::chunked::ChunkedDecoder;
use crate::client::{self, Bodies, Spares};
use crate::http::{Fields, OutputQueue, ResponseHead, Version};
use crate::reassembly::ReassemblyBuffer;
pub(crate) use head::{Ends, FirstLine, ResponseParser, ends};
pub use protocol_error::ProtocolError;
use request::RequestInfo;
pub use request::RequestOptions;

/// Event of an HTTP/1 client.
pub type Event = client::Event<ProtocolError>;

/// One HTTP/1 connection in the client role.
#[derive(Debug)]
pub struct Client {
    /// Limits of heads and trailer sections.
    settings: Settings,
    bodies: Bodies,
    /// A part of a head.
    partial: ReassemblyBuffer,
    parser: ResponseParser,
    receiving: Receiving,
    sending: Sending,
    request_info: RequestInfo,
    /// Number of the exchange that is in progress, or of the last one.
    stream: u32,
    /// The connection may be used for another exchange.
    keep: bool,
    has_answer: bool,
    interim: u32,
    body_bytes: u64,
    sent_bytes: u64,
    /// Treatment of bytes received while no request is open.
    surplus: ProtocolError,
    events: VecDeque<Event>,
    out: OutputQueue,
    spares: Spares,
    scratch: Vec<u8>,
}

/// Part of the message that the next received byte belongs to.
#[derive(Debug)]
enum Receiving {
    /// Nothing has been asked.
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
    /// `left` is never 0, unless there is no byte of the body at all.
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
            // What most servers say, if anything.
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
        Self {
            parser: ResponseParser::new(Box::default(), FirstLine::Status, &settings),
            settings,
            bodies,
            partial: ReassemblyBuffer::default(),
            receiving: Receiving::Idle,
            sending: Sending::Ended,
            request_info: RequestInfo::default(),
            stream: 0,
            keep: true,
            has_answer: false,
            interim: 0,
            body_bytes: 0,
            sent_bytes: 0,
            surplus: ProtocolError::Unasked,
            events: VecDeque::new(),
            out: OutputQueue::default(),
            spares: Spares::default(),
            scratch: Vec::new(),
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
        self.sent_bytes = 0;
        self.surplus = ProtocolError::Unasked;
    }

    /// Whether a request can be begun: the exchange before it is complete in both directions, all of it has been
    /// transmitted, and both sides keep the connection.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        let idle = matches!(self.receiving, Receiving::Idle) && self.sending == Sending::Ended;
        idle && self.keep && self.out.is_empty()
    }

    /// Whether the connection takes no further request, now or later.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self.receiving {
            Receiving::Over | Receiving::Tunnel => true,
            Receiving::Idle => !self.keep,
            _ => false,
        }
    }

    /// Bytes of the request, or of its tunnel, that have been transmitted.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Whether a byte has come in answer to the request.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        self.has_answer
    }

    /// Abandons the exchange, and with it the connection.
    pub fn cancel(&mut self) {
        if !matches!(self.receiving, Receiving::Idle) || self.sending != Sending::Ended {
            self.close();
            self.events.clear();
        }
    }

    /// The next event.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Moves the bytes to send to the end of `out`.
    #[inline]
    pub fn transmit(&mut self, out: &mut OutputQueue) {
        self.sent_bytes += self.out.len();
        out.append(&mut self.out);
    }

    /// Takes back the memory of a head.
    #[inline]
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.spares.give(head);
    }

    /// From here on nothing is read, nor taken to be sent.
    fn close(&mut self) {
        self.receiving = Receiving::Over;
        self.sending = Sending::Ended;
        self.keep = false;
        self.partial.clear();
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        match self.receiving {
            Receiving::Head => {
                let limit = self.settings.header_buffer_bytes;
                let partial = self.partial.bytes().len();
                assert!(partial <= limit, "a part of a line exceeds its limit");
            }
            Receiving::Length { left } => assert!(left > 0, "a complete body is not recognised"),
            Receiving::Chunked(ref decoder, _) => assert!(!decoder.is_done(), "a body has ended"),
            _ => {}
        }
        let in_head = matches!(self.receiving, Receiving::Head);
        assert!(
            in_head || self.partial.bytes().is_empty(),
            "bytes are held for nobody"
        );
    }
}
