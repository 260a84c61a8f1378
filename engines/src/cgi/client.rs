//! One connection with a server that answers as CGI does: one request, one response, the end.
//!
//! The parameters of a request are written by its protocol; its body follows as it is. A response may end before its request
//! has. Bytes behind a response with a length are dropped.

use super::{Ends, HeadParser, ProtocolError, StatusLine, ends, is_head};
use crate::client::{self, HeadSize, SendError, Spares};
use crate::http::{BodyLength, Chunk, Fields, OutputQueue, ResponseHead};
use crate::reassembly::ReassemblyBuffer;
use std::collections::VecDeque;

/// Event of a connection to a CGI-style server.
pub type Event = client::Event<ProtocolError>;

/// One connection in the client role.
#[derive(Debug)]
pub struct Client {
    parser: HeadParser,
    /// Most bytes of the head.
    head_bytes: usize,
    /// A part of a head.
    partial: ReassemblyBuffer,
    receiving: Receiving,
    sending: Sending,
    /// The response has no body, since the request is a HEAD.
    is_head: bool,
    /// 101 is an answer.
    upgrade: bool,
    body_bytes: u64,
    events: VecDeque<Event>,
    out: OutputQueue,
    spares: Spares,
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
    /// Nothing has been asked.
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

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A connection on which nothing has been sent.
    #[must_use]
    pub fn new() -> Self {
        Self {
            parser: HeadParser::new(HEAD_BYTES, StatusLine::Taken),
            head_bytes: HEAD_BYTES,
            partial: ReassemblyBuffer::default(),
            receiving: Receiving::Idle,
            sending: Sending::Ended,
            is_head: false,
            upgrade: false,
            body_bytes: 0,
            events: VecDeque::new(),
            out: OutputQueue::default(),
            spares: Spares::default(),
        }
    }

    /// Makes this a new connection and keeps the memory.
    pub fn reset(&mut self) {
        self.close();
        self.receiving = Receiving::Idle;
        self.events.clear();
        self.out.clear();
    }

    /// Begins the request whose parameters `encode` writes. Its body follows by [`Self::send`] and [`Self::end`]. Returns the
    /// number of the exchange.
    ///
    /// # Errors
    /// There has been one, or the parameters cannot be sent; nothing has been sent then.
    pub(crate) fn begin(
        &mut self,
        params: &Fields,
        options: RequestOptions,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), SendError>,
    ) -> Result<u32, SendError> {
        if self.receiving != Receiving::Idle {
            return Err(SendError::Closed);
        }
        let mut result = Ok(());
        self.out.push_with(|run| {
            let before = run.len();
            result = encode(run);
            if result.is_err() {
                run.truncate(before);
            }
        });
        result?;
        self.sending = match options.body {
            BodyLength::None | BodyLength::Length(0) => Sending::Ended,
            _ => Sending::Body,
        };
        self.is_head = is_head(params);
        self.upgrade = options.upgrade;
        self.head_bytes = options.head_bytes;
        self.parser.reset(options.head_bytes);
        self.receiving = Receiving::Head;
        self.body_bytes = 0;
        Ok(STREAM)
    }

    /// Sends a piece of the request's body, or of a tunnel.
    pub fn send(&mut self, chunk: Chunk) {
        if self.sending != Sending::Ended && !chunk.is_empty() {
            self.out.push(chunk);
        }
    }

    /// Ends the request's body, or our side of a tunnel.
    pub fn end(&mut self) {
        self.sending = Sending::Ended;
    }

    /// Moves the bytes to send to the end of `out`.
    #[inline]
    pub fn transmit(&mut self, out: &mut OutputQueue) {
        out.append(&mut self.out);
    }

    /// The next event.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes back the memory of a head.
    #[inline]
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.spares.give(head);
    }

    /// Whether another request can be begun: never, the protocols have one a connection.
    #[must_use]
    pub const fn is_reusable(&self) -> bool {
        false
    }

    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        let all = self.partial.join(input);
        match self.advance_head(&all) {
            Ok(used) if self.receiving == Receiving::Head => self.partial.keep(all, used),
            Ok(used) => self.data(&all[used..]),
            Err(error) => self.fail(error),
        }
    }

    /// Takes bytes from the server, and leaves the buffer empty. Where they are many for its capacity and all of a body, but
    /// for a head before them, the memory goes along with them and the buffer has none left.
    pub fn receive_buffer(&mut self, buffer: &mut Vec<u8>) {
        let is_full = buffer.len() >= buffer.capacity() / 2;
        if !is_full || !self.partial.bytes().is_empty() {
            self.receive(buffer);
            return buffer.clear();
        }
        match self.advance_head(buffer) {
            Ok(used) if self.receiving == Receiving::Head => {
                self.partial.keep(buffer.as_slice().into(), used);
            }
            Ok(used) => {
                buffer.drain(..used);
                self.own_data(std::mem::take(buffer));
            }
            Err(error) => self.fail(error),
        }
        buffer.clear();
    }

    /// Takes the end of the server's bytes. It ends a body without a length only where it is `whole`: with TLS, where the
    /// server has said so before it closed.
    pub fn receive_eof(&mut self, whole: bool) {
        match self.receiving {
            Receiving::Over => {}
            Receiving::Idle => {
                self.receiving = Receiving::Over;
                self.events.push_back(Event::Eof);
            }
            Receiving::UntilClose | Receiving::Tunnel if whole => self.end_response(),
            Receiving::Head if self.parser.is_fresh() => self.fail(ProtocolError::NoResponse),
            _ => self.fail(ProtocolError::Truncated),
        }
    }

    /// Consumes the head, if that is what comes next; returns how many bytes.
    fn advance_head(&mut self, input: &[u8]) -> Result<usize, ProtocolError> {
        if self.receiving != Receiving::Head || input.is_empty() {
            return Ok(0);
        }
        let (used, done) = self.parser.advance(input)?;
        if done {
            let spare = self.spares.take();
            let parsed = self.parser.take(spare)?;
            self.head(parsed.head, parsed.size_bytes)?;
        }
        Ok(used)
    }

    fn head(&mut self, head: Box<ResponseHead>, size_bytes: u64) -> Result<(), ProtocolError> {
        let tunnel = head.status == 101;
        if tunnel && !(self.upgrade && self.sending == Sending::Ended) {
            return Err(ProtocolError::UnaskedUpgrade);
        }
        let ends = ends(&head, self.is_head);
        let size = HeadSize {
            wire_bytes: size_bytes,
            text_bytes: size_bytes,
        };
        let stream = STREAM;
        self.events.push_back(Event::Head { stream, head, size });
        if tunnel {
            self.events.push_back(Event::Upgraded(stream));
            self.receiving = Receiving::Tunnel;
            self.sending = Sending::Tunnel;
            return Ok(());
        }
        match ends {
            Ends::Now => self.end_response(),
            Ends::After(left) => self.receiving = Receiving::Length { left },
            // A head with chunked is none of CGI.
            Ends::AtClose | Ends::Chunked => self.receiving = Receiving::UntilClose,
        }
        Ok(())
    }

    /// Takes bytes of a body.
    fn data(&mut self, bytes: &[u8]) {
        let taken = self.count(bytes.len());
        if taken > 0 {
            match self.events.back_mut() {
                Some(Event::Data { bytes: last, .. }) => last.extend_from_slice(&bytes[..taken]),
                _ => self.events.push_back(Event::Data {
                    stream: STREAM,
                    bytes: bytes[..taken].to_vec(),
                }),
            }
        }
        self.end_if_complete();
    }

    /// Like [`Self::data`], but takes ownership of the buffer.
    fn own_data(&mut self, mut bytes: Vec<u8>) {
        bytes.truncate(self.count(bytes.len()));
        if !bytes.is_empty() {
            let stream = STREAM;
            self.events.push_back(Event::Data { stream, bytes });
        }
        self.end_if_complete();
    }

    /// Returns how many of `len` bytes belong to the body, and subtracts them from its remaining length.
    fn count(&mut self, len: usize) -> usize {
        let taken = match &mut self.receiving {
            Receiving::Length { left } => {
                let taken = (*left).min(len as u64);
                *left -= taken;
                taken as usize
            }
            Receiving::UntilClose | Receiving::Tunnel => len,
            Receiving::Idle | Receiving::Head | Receiving::Over => 0,
        };
        self.body_bytes += taken as u64;
        taken
    }

    fn end_if_complete(&mut self) {
        if self.receiving == (Receiving::Length { left: 0 }) {
            self.end_response();
        }
    }

    fn end_response(&mut self) {
        self.receiving = Receiving::Over;
        self.events.push_back(Event::End {
            stream: STREAM,
            body_bytes: self.body_bytes,
        });
    }

    fn fail(&mut self, error: ProtocolError) {
        self.close();
        self.events.push_back(Event::Failed(error));
    }

    /// From here on nothing is read, nor taken to be sent.
    fn close(&mut self) {
        self.receiving = Receiving::Over;
        self.sending = Sending::Ended;
        self.partial.clear();
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        let partial = self.partial.bytes().len();
        match self.receiving {
            Receiving::Head => {
                assert!(
                    partial <= self.head_bytes,
                    "a part of a line exceeds its limit"
                );
            }
            _ => assert_eq!(partial, 0, "bytes are held for nobody"),
        }
        let is_complete = self.receiving == (Receiving::Length { left: 0 });
        assert!(!is_complete, "a complete body is not recognised");
    }
}

/// The number of the one exchange.
const STREAM: u32 = 1;
/// Most bytes of a response head unless the caller says otherwise.
const HEAD_BYTES: usize = 64 << 10;
