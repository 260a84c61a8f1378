//! One connection with a server that answers in CGI's format: one request, one response, the end.
//!
//! The protocol of a request encodes its parameters; its body follows verbatim. A response may end before its
//! request has. Bytes behind a response with a length are dropped.

use super::{Ends, HeadParser, ProtocolError, StatusLine, ends, is_head};
use crate::client::{self, Phase, Protocol, SendError};
use crate::http::{BodyLength, Chunk, Fields, ResponseHead};

/// Event of a connection to a CGI-style server.
pub type Event = client::Event<ProtocolError>;

/// One connection in the client role; it is used for one request.
pub type Client = client::Connection<Cgi>;

/// The state of CGI on a connection.
#[derive(Debug)]
pub struct Cgi {
    parser: HeadParser,
    /// Most bytes of the head.
    head_bytes: usize,
    receiving: Receiving,
    sending: Sending,
    /// The response has no body, since the request is a HEAD.
    is_head: bool,
    /// 101 is an answer.
    upgrade: bool,
}

/// Properties of a request besides its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOptions {
    /// The length of the body.
    pub body: BodyLength,
    /// The caller is prepared for a tunnel: 101.
    pub upgrade: bool,
    /// Most bytes of the response head.
    pub head_bytes: usize,
}

impl Default for RequestOptions {
    /// A request without a body.
    fn default() -> Self {
        Self {
            body: BodyLength::None,
            upgrade: false,
            head_bytes: HEAD_BYTES,
        }
    }
}

/// Part of the response that the next received byte belongs to.
#[derive(Debug, PartialEq, Eq)]
enum Receiving {
    /// No request has been sent.
    Idle,
    Head,
    /// A body with a length; `left` is never 0.
    Length {
        left: u64,
    },
    UntilClose,
    Tunnel,
    /// Nothing is read any more.
    Over,
}

/// State of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Body,
    Tunnel,
    Ended,
}

impl Default for Cgi {
    fn default() -> Self {
        Self {
            parser: HeadParser::new(HEAD_BYTES, StatusLine::Taken),
            head_bytes: HEAD_BYTES,
            receiving: Receiving::Idle,
            sending: Sending::Ended,
            is_head: false,
            upgrade: false,
        }
    }
}

impl Protocol for Cgi {
    type ProtocolError = ProtocolError;

    fn phase(&self) -> Phase {
        match self.receiving {
            Receiving::Idle => Phase::Idle,
            Receiving::Head => Phase::Head,
            Receiving::Length { .. } | Receiving::UntilClose => Phase::Body,
            Receiving::Tunnel | Receiving::Over => Phase::Over,
        }
    }

    fn is_sent(&self) -> bool {
        self.sending == Sending::Ended
    }

    fn advance(client: &mut Client, input: &[u8]) -> Result<usize, ProtocolError> {
        let used = client.advance_head(input)?;
        if client.protocol.receiving == Receiving::Head {
            return Ok(used);
        }
        client.data(&input[used..]);
        Ok(input.len())
    }

    fn advance_buffer(client: &mut Client, buffer: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let used = client.advance_head(buffer)?;
        if client.protocol.receiving == Receiving::Head {
            client.partial.keep(buffer.as_slice().into(), used);
        } else {
            buffer.drain(..used);
            client.own_data(std::mem::take(buffer));
        }
        Ok(())
    }

    fn reopen(&mut self) {
        self.receiving = Receiving::Idle;
    }

    fn close(client: &mut Client) {
        client.protocol.receiving = Receiving::Over;
        client.protocol.sending = Sending::Ended;
    }
}

impl Client {
    /// Begins a request; `encode` writes its parameters. Its body follows by [`Self::send`] and [`Self::end`].
    /// Returns the number of the exchange.
    ///
    /// # Errors
    /// The connection was used before, or the parameters cannot be sent; nothing has been sent then.
    pub(crate) fn begin(
        &mut self,
        params: &Fields,
        options: RequestOptions,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), SendError>,
    ) -> Result<u32, SendError> {
        if self.protocol.receiving != Receiving::Idle {
            return Err(SendError::Closed);
        }
        self.put_request(encode)?;
        self.protocol.sending = match options.body {
            BodyLength::None | BodyLength::Length(0) => Sending::Ended,
            _ => Sending::Body,
        };
        self.protocol.is_head = is_head(params);
        self.protocol.upgrade = options.upgrade;
        self.protocol.head_bytes = options.head_bytes;
        self.protocol.parser.reset(options.head_bytes);
        self.protocol.receiving = Receiving::Head;
        Ok(self.begin_exchange(false))
    }

    /// Sends a piece of the request's body, or of a tunnel.
    pub fn send(&mut self, chunk: Chunk) {
        if self.protocol.sending != Sending::Ended && !chunk.is_empty() {
            self.out.push(chunk);
        }
    }

    /// Ends the request's body, or our side of a tunnel.
    pub fn end(&mut self) {
        self.protocol.sending = Sending::Ended;
    }

    /// Handles the end of the server's bytes. It ends a body without a length only if the end is `whole`: with TLS,
    /// if the server sent its close alert first.
    pub fn receive_eof(&mut self, whole: bool) {
        match self.protocol.receiving {
            Receiving::Over => {}
            Receiving::Idle => {
                self.protocol.receiving = Receiving::Over;
                self.deliver_eof();
            }
            Receiving::UntilClose | Receiving::Tunnel if whole => self.end_response(),
            Receiving::Head if self.protocol.parser.is_fresh() => {
                self.fail(ProtocolError::NoResponse)
            }
            _ => self.fail(ProtocolError::Truncated),
        }
    }

    /// Consumes bytes of the head, if a head is expected; returns the number of bytes.
    fn advance_head(&mut self, input: &[u8]) -> Result<usize, ProtocolError> {
        if self.protocol.receiving != Receiving::Head || input.is_empty() {
            return Ok(0);
        }
        let (used, done) = self.protocol.parser.advance(input)?;
        if done {
            let spare = self.spares.take();
            let parsed = self.protocol.parser.take(spare)?;
            self.head(parsed.head, parsed.size_bytes)?;
        }
        Ok(used)
    }

    fn head(&mut self, head: Box<ResponseHead>, size_bytes: u64) -> Result<(), ProtocolError> {
        let tunnel = head.status == 101;
        if tunnel && !(self.protocol.upgrade && self.protocol.sending == Sending::Ended) {
            return Err(ProtocolError::UnaskedUpgrade);
        }
        let ends = ends(&head, self.protocol.is_head);
        self.deliver_head(head, size_bytes);
        if tunnel {
            self.events.push_back(Event::Upgraded(self.stream));
            self.protocol.receiving = Receiving::Tunnel;
            self.protocol.sending = Sending::Tunnel;
            return Ok(());
        }
        match ends {
            Ends::Now => self.end_response(),
            Ends::After(left) => self.protocol.receiving = Receiving::Length { left },
            // A head with chunked is none of CGI.
            Ends::AtClose | Ends::Chunked => self.protocol.receiving = Receiving::UntilClose,
        }
        Ok(())
    }

    /// Takes bytes of a body.
    fn data(&mut self, bytes: &[u8]) {
        let taken = self.take(bytes.len());
        self.deliver_data(&bytes[..taken]);
        self.end_if_complete();
    }

    /// Takes a buffer with bytes of a body, including its memory.
    fn own_data(&mut self, mut bytes: Vec<u8>) {
        bytes.truncate(self.take(bytes.len()));
        self.deliver_owned(bytes);
        self.end_if_complete();
    }

    /// Takes up to `len` bytes from the rest of the body; returns the number of bytes.
    fn take(&mut self, len: usize) -> usize {
        match &mut self.protocol.receiving {
            Receiving::Length { left } => {
                let taken = (*left).min(len as u64);
                *left -= taken;
                taken as usize
            }
            Receiving::UntilClose | Receiving::Tunnel => len,
            Receiving::Idle | Receiving::Head | Receiving::Over => 0,
        }
    }

    fn end_if_complete(&mut self) {
        if self.protocol.receiving == (Receiving::Length { left: 0 }) {
            self.end_response();
        }
    }

    fn end_response(&mut self) {
        self.protocol.receiving = Receiving::Over;
        self.deliver_end();
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        let partial = self.partial.bytes().len();
        match self.protocol.receiving {
            Receiving::Head => {
                assert!(
                    partial <= self.protocol.head_bytes,
                    "a part of a line exceeds its limit"
                );
            }
            _ => assert_eq!(partial, 0, "bytes are held for nobody"),
        }
        let is_complete = self.protocol.receiving == (Receiving::Length { left: 0 });
        assert!(!is_complete, "a complete body is not recognised");
    }
}

/// Default maximum of a response head, bytes.
const HEAD_BYTES: usize = 64 << 10;
