//! One connection in the client role that receives answers in the order of the requests: HTTP/1, CGI, FastCGI,
//! memcached.
//!
//! A [`Protocol`] encodes requests and decodes input. The connection queues bytes and events between protocol and
//! driver, and decides whether it can be reused.
//!
//! Absent: streams, see [`crate::mux::client`].

use std::collections::VecDeque;
use std::fmt;

use super::{Event, HeadSize, SendError, Spares};
use crate::http::{OutputQueue, ResponseHead};
use crate::reassembly::ReassemblyBuffer;

/// One connection in the client role.
#[derive(Debug)]
pub struct Connection<P: Protocol> {
    pub(crate) protocol: P,
    /// A part of a head or of a line.
    pub(crate) partial: ReassemblyBuffer,
    /// The connection can still be used for another exchange.
    pub(crate) keep: bool,
    pub(crate) has_answer: bool,
    /// Number of the exchange that is answered next, or of the last one.
    pub(crate) stream: u32,
    pub(crate) body_bytes: u64,
    sent_bytes: u64,
    pub(crate) events: VecDeque<Event<P::ProtocolError>>,
    pub(crate) out: OutputQueue,
    pub(crate) spares: Spares,
}

/// A protocol on a connection: its own state and its decoder.
pub trait Protocol: fmt::Debug + Sized {
    /// The errors that end a connection.
    type ProtocolError: fmt::Debug;

    /// Progress of the response.
    fn phase(&self) -> Phase;

    /// Whether the request is sent whole.
    fn is_sent(&self) -> bool {
        true
    }

    /// Whether the input so far ends with a message of the protocol.
    fn is_whole(&self) -> bool {
        true
    }

    /// Whether a body may be delivered in the memory it was read into.
    fn passes_buffers(&self) -> bool {
        true
    }

    /// The number of events at the end of the queue that are not delivered yet.
    #[inline]
    fn withheld(&self) -> usize {
        0
    }

    /// Consumes bytes; returns the number. The rest is a part of a head or of a line.
    ///
    /// # Errors
    /// The server breaks the connection.
    fn advance(client: &mut Connection<Self>, input: &[u8]) -> Result<usize, Self::ProtocolError>;

    /// Consumes all of a buffer; a body may take over its memory.
    ///
    /// # Errors
    /// The server breaks the connection.
    fn advance_buffer(
        client: &mut Connection<Self>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Self::ProtocolError>;

    /// Stops reading and accepting output for good.
    fn close(client: &mut Connection<Self>);

    /// Gets ready for a new connection, after [`Self::close`].
    fn reopen(&mut self);
}

/// How far the response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No request has been sent.
    Idle,
    /// The next byte is one of a head, or of the line in its place.
    Head,
    /// Some of the response is still to come.
    Body,
    /// The connection takes no further request.
    Over,
}

impl<P: Protocol + Default> Default for Connection<P> {
    fn default() -> Self {
        Self::with(P::default())
    }
}

impl<P: Protocol + Default> Connection<P> {
    /// A connection on which nothing has been sent.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<P: Protocol> Connection<P> {
    /// A connection on which nothing has been sent.
    pub(crate) fn with(protocol: P) -> Self {
        Self {
            protocol,
            partial: ReassemblyBuffer::default(),
            keep: true,
            has_answer: false,
            stream: 0,
            body_bytes: 0,
            sent_bytes: 0,
            events: VecDeque::new(),
            out: OutputQueue::default(),
            spares: Spares::default(),
        }
    }

    /// Makes this a new connection and keeps the memory.
    pub fn reset(&mut self) {
        self.close();
        self.events.clear();
        self.out.clear();
        self.protocol.reopen();
        self.keep = true;
        self.has_answer = false;
        self.stream = 0;
        self.sent_bytes = 0;
    }

    /// Whether a request can begin: the exchange before it is complete in both directions, all of it has been
    /// transmitted, and both sides keep the connection.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        let is_idle = self.protocol.phase() == Phase::Idle && self.protocol.is_sent();
        is_idle && self.keep && self.protocol.is_whole() && self.out.is_empty()
    }

    /// Whether the connection takes no further request, now or later.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self.protocol.phase() {
            Phase::Over => true,
            Phase::Idle => !self.keep,
            Phase::Head | Phase::Body => false,
        }
    }

    /// Whether a byte of an answer has come, to the request or to the first one without a complete answer.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        self.has_answer
    }

    /// Bytes of the request, or of its tunnel, that have been transmitted.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Cancels all requests, and closes the connection.
    pub fn cancel(&mut self) {
        if self.protocol.phase() != Phase::Idle || !self.protocol.is_sent() {
            self.close();
            self.events.clear();
        }
    }

    /// The next event.
    #[inline]
    pub fn event(&mut self) -> Option<Event<P::ProtocolError>> {
        match self.events.len() > self.protocol.withheld() {
            true => self.events.pop_front(),
            false => None,
        }
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

    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        self.note_answer(input);
        let all = self.partial.join(input);
        match P::advance(self, &all) {
            Ok(used) => self.partial.keep(all, used),
            Err(error) => self.fail(error),
        }
    }

    /// Takes bytes from the server, and leaves the buffer empty. If they fill most of the buffer and belong to a
    /// body, except for its framing, the event takes over the memory and the buffer has none left.
    pub fn receive_buffer(&mut self, buffer: &mut Vec<u8>) {
        self.note_answer(buffer);
        let is_full = buffer.len() >= buffer.capacity() / 2;
        let in_place = is_full && self.protocol.passes_buffers() && self.partial.bytes().is_empty();
        if !in_place {
            self.receive(buffer);
        } else if let Err(error) = P::advance_buffer(self, buffer) {
            self.fail(error);
        }
        buffer.clear();
    }

    fn note_answer(&mut self, input: &[u8]) {
        self.has_answer |= !input.is_empty() && self.protocol.phase() == Phase::Head;
    }

    /// Whether a request can be taken now.
    pub(crate) fn admit(&self) -> Result<(), SendError> {
        match self.is_reusable() {
            true => Ok(()),
            false if self.is_closed() => Err(SendError::Closed),
            false => Err(SendError::Busy),
        }
    }

    /// Sends the bytes that `encode` appends; none of them if it fails.
    pub(crate) fn put_request<T>(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        let mut result = Err(SendError::Busy);
        self.out.push_with(|run| {
            let before = run.len();
            result = encode(run);
            if result.is_err() {
                run.truncate(before);
            }
        });
        result
    }

    /// Opens the exchange of a sent request with the next response; returns its number.
    pub(crate) fn begin_exchange(&mut self, keep: bool) -> u32 {
        self.keep = keep;
        self.has_answer = false;
        self.body_bytes = 0;
        self.sent_bytes = 0;
        self.stream = self.stream.wrapping_add(1);
        self.stream
    }

    /// Queues the event of a head of `size_bytes`; none of them were compressed.
    pub(crate) fn deliver_head(&mut self, head: Box<ResponseHead>, size_bytes: u64) {
        let stream = self.stream;
        let size = HeadSize {
            wire_bytes: size_bytes,
            text_bytes: size_bytes,
        };
        self.events.push_back(Event::Head { stream, head, size });
    }

    /// Queues the event of bytes of a body.
    pub(crate) fn deliver_data(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.body_bytes += bytes.len() as u64;
        match self.events.back_mut() {
            Some(Event::Data { bytes: last, .. }) => last.extend_from_slice(bytes),
            _ => self.events.push_back(Event::Data {
                stream: self.stream,
                bytes: bytes.to_vec(),
            }),
        }
    }

    /// Queues the event of bytes of a body, including their buffer.
    pub(crate) fn deliver_owned(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.body_bytes += bytes.len() as u64;
            let stream = self.stream;
            self.events.push_back(Event::Data { stream, bytes });
        }
    }

    /// Queues the event of the end of a response.
    pub(crate) fn deliver_end(&mut self) {
        self.events.push_back(Event::End {
            stream: self.stream,
            body_bytes: self.body_bytes,
        });
    }

    /// Queues the event of the end of the connection if no response is awaited.
    pub(crate) fn deliver_eof(&mut self) {
        self.keep = false;
        self.events.push_back(Event::Eof);
    }

    /// Stops reading and accepting output for good.
    pub(crate) fn close(&mut self) {
        P::close(self);
        self.keep = false;
        self.partial.clear();
    }

    /// Ends the connection because of an error.
    pub(crate) fn fail(&mut self, error: P::ProtocolError) {
        self.close();
        self.events.push_back(Event::Failed(error));
    }
}
