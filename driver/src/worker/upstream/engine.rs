//! The engine below a connection to a server: the one place that knows which protocols there are.

use engines::client::{self, Bodies};
use engines::h1;
use engines::http::{Chunk, Fields, OutputQueue, ResponseHead};
use server_base::connector::UpstreamProtocol;
use server_base::upstream_request::{Failure, RequestSpec, UpstreamEvent};

/// An engine in the client role.
pub(super) enum Engine {
    /// HTTP/1.
    Http1(Box<h1::Client>),
}

/// What an engine tells.
pub(super) enum Event {
    /// Something for the exchange.
    Upstream(UpstreamEvent),
    /// The server has broken the protocol, or has closed the connection too early.
    Failed(Failure),
}

impl Engine {
    /// An engine for a protocol.
    pub(super) fn new(protocol: &UpstreamProtocol) -> Self {
        match protocol {
            _ => Self::Http1(Box::new(h1::Client::new(Bodies::Told))),
        }
    }

    /// Begins a request as the first one of a connection; the error says what is wrong with it.
    pub(super) fn begin(
        &mut self,
        protocol: &UpstreamProtocol,
        request: &RequestSpec,
    ) -> Result<(), &'static str> {
        let (Self::Http1(client), UpstreamProtocol::Http1 { head_bytes }) = (self, protocol) else {
            return Err("the protocol is not built yet");
        };
        client.reset();
        let options = h1::RequestOptions {
            http10: request.http10,
            body: request.body,
            upgrade: request.upgrade,
            head_bytes: *head_bytes,
        };
        match client.request_fields(&request.fields, options) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.message()),
        }
    }

    /// Sends a piece of the request body, or of a tunnel.
    pub(super) fn send(&mut self, chunk: Chunk) {
        let Self::Http1(client) = self;
        client.send(chunk);
    }

    /// Ends the request body, or our side of a tunnel.
    pub(super) fn end(&mut self, trailers: Option<&Fields>) {
        let Self::Http1(client) = self;
        client.end(trailers);
    }

    /// Moves what is to be sent to the end of `out`.
    pub(super) fn transmit(&mut self, out: &mut OutputQueue) {
        let Self::Http1(client) = self;
        client.transmit(out);
    }

    /// Takes what has come, and leaves `buffer` empty; its memory may go along.
    pub(super) fn receive(&mut self, buffer: &mut Vec<u8>) {
        let Self::Http1(client) = self;
        client.receive_buffer(buffer);
    }

    /// Takes the end of the server's side.
    pub(super) fn receive_eof(&mut self) {
        let Self::Http1(client) = self;
        client.receive_eof(true);
    }

    /// What has happened next.
    pub(super) fn event(&mut self) -> Option<Event> {
        let Self::Http1(client) = self;
        Some(Event::Upstream(match client.event()? {
            client::Event::Interim { head, .. } => UpstreamEvent::Interim(head),
            client::Event::Head { head, size, .. } => UpstreamEvent::Head(head, size.wire_bytes),
            client::Event::Data { bytes, .. } => UpstreamEvent::Data(Chunk::Owned(bytes)),
            client::Event::Note { text, .. } => UpstreamEvent::Note(text),
            client::Event::Trailers { fields, .. } => UpstreamEvent::Trailers(fields),
            client::Event::End { .. } => UpstreamEvent::End,
            client::Event::Upgraded(_) => UpstreamEvent::Upgraded,
            client::Event::Failed(error) => return Some(Event::Failed(failure(error))),
            _ => return None,
        }))
    }

    /// Takes the memory of a head.
    pub(super) fn recycle(&mut self, head: Box<ResponseHead>) {
        let Self::Http1(client) = self;
        client.recycle(head);
    }

    /// Whether the connection may be used for another request; asked after the end of a response.
    pub(super) fn is_reusable(&self) -> bool {
        let Self::Http1(client) = self;
        client.is_reusable()
    }
}

fn failure(error: h1::ProtocolError) -> Failure {
    match error {
        h1::ProtocolError::NoResponse | h1::ProtocolError::Truncated => Failure::Closed,
        error => Failure::Invalid(error.message()),
    }
}
