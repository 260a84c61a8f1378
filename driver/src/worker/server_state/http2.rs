//! The engine of HTTP/2 in the client role: requests become streams, events name them.
//!
//! A request comes as HTTP/1 would write it: names get lower case, `Host` becomes `:authority`, and fields that belong to a
//! connection of HTTP/1 are left out.
//!
//! Source: RFC 9113 sections 8.2 and 8.3.

use engines::client::{self, Bodies};
use engines::h2;
use engines::http::{BodyLength, Chunk, FieldId, Fields, OutputQueue};
use server_upstream::request::{Failure, RequestSpec, UpstreamEvent};

use super::engine::{Engine, StreamEvent};

/// The engine of a new connection, for heads of responses of at most `header_bytes`.
pub(super) fn new(header_bytes: usize) -> Box<h2::Client> {
    let settings = h2::Settings {
        header_bytes,
        field_bytes: header_bytes,
        ignore_invalid_headers: false,
        underscores_in_headers: true,
        ..h2::Settings::default()
    };
    Box::new(h2::Client::new(settings, Bodies::Delivered))
}

/// Moves bytes to send to the end of `out`.
pub(super) fn transmit(client: &mut h2::Client, out: &mut OutputQueue) {
    out.push_with(|run| client.transmit(run));
}

/// Takes received bytes, and leaves `buffer` empty.
pub(super) fn receive(client: &mut h2::Client, buffer: &mut Vec<u8>) {
    client.receive(buffer);
    buffer.clear();
}

impl Engine {
    fn streams(&mut self) -> Option<&mut h2::Client> {
        match self {
            Self::Http2(client) => Some(client),
            _ => None,
        }
    }

    /// Opens a stream for a request, and returns its number; the error is the fault of the request. `names` is
    /// memory.
    pub(crate) fn open_stream(
        &mut self,
        request: &RequestSpec,
        is_secure: bool,
        names: &mut Vec<u8>,
    ) -> Result<u32, &'static str> {
        let Some(client) = self.streams() else {
            return Err("the engine has no streams");
        };
        let fields = &request.fields;
        names.clear();
        for field in &fields.fields {
            names.extend(fields.bytes(field.name).iter().map(u8::to_ascii_lowercase));
        }
        let mut rest = names.as_slice();
        let mut pseudo: [(&[u8], &[u8]); 4] = [
            (b":method", b"GET"),
            (b":scheme", if is_secure { b"https" } else { b"http" }),
            (b":authority", b""),
            (b":path", b"/"),
        ];
        let mut others: Vec<(&[u8], &[u8])> = Vec::with_capacity(fields.fields.len());
        for field in &fields.fields {
            let name;
            (name, rest) = rest.split_at(fields.bytes(field.name).len());
            let value = fields.bytes(field.value);
            match name {
                b":method" => pseudo[0].1 = value,
                b":path" => pseudo[3].1 = value,
                _ if field.id == FieldId::Host => pseudo[2].1 = value,
                b"proxy-connection" | b"http2-settings" => {}
                b"te" if !value.eq_ignore_ascii_case(b"trailers") => {}
                _ => others.push((name, value)),
            }
        }
        let pseudo = pseudo.into_iter().filter(|(_, value)| !value.is_empty());
        let ended = request.body == BodyLength::None;
        let opened = client.request(pseudo.chain(others), ended);
        opened.map_err(client::SendError::message)
    }

    /// Sends a piece of the body of a request.
    pub(crate) fn send_stream(&mut self, id: u32, bytes: &[u8]) {
        if let Some(client) = self.streams() {
            client.send(id, bytes, false);
        }
    }

    /// Ends the body of a request.
    pub(crate) fn end_stream(&mut self, id: u32, trailers: Option<&Fields>) {
        match (self.streams(), trailers) {
            (Some(client), Some(trailers)) => client.send_trailers(id, trailers),
            (Some(client), None) => client.send(id, &[], true),
            (None, _) => {}
        }
    }

    /// Abandons a stream.
    pub(crate) fn cancel(&mut self, id: u32) {
        if let Some(client) = self.streams() {
            client.cancel(id);
        }
    }

    /// Opens the window of a stream for as many bytes as the exchange has taken.
    pub(crate) fn consumed(&mut self, id: u32, bytes: u64) {
        if let Some(client) = self.streams() {
            client.consumed(id, bytes);
        }
    }

    /// Bytes of the body of a request that wait for a window.
    pub(crate) fn pending_bytes(&mut self, id: u32) -> usize {
        self.streams().map_or(0, |client| client.pending_bytes(id))
    }

    /// Bytes of the body of a request that were encoded so far, with the heads of frames.
    pub(crate) fn encoded_bytes(&mut self, id: u32) -> u64 {
        self.streams().map_or(0, |client| client.encoded_bytes(id))
    }

    /// Returns the number of streams that can be opened now.
    pub(crate) fn room(&self) -> usize {
        match self {
            Self::Http2(client) => client.room(),
            _ => 0,
        }
    }

    /// The next event; at `now_ms` the engine forgives a part of the server's misdeeds.
    pub(crate) fn stream_event(&mut self, now_ms: u64) -> Option<StreamEvent> {
        let client = self.streams()?;
        client.tick(now_ms);
        loop {
            let (stream, event) = match client.event()? {
                client::Event::Interim { stream, head } => (stream, UpstreamEvent::Interim(head)),
                client::Event::Head { stream, head, size } => {
                    (stream, UpstreamEvent::Head(head, size.wire_bytes))
                }
                client::Event::Data { stream, bytes } => {
                    (stream, UpstreamEvent::Data(Chunk::Owned(bytes)))
                }
                client::Event::Trailers { stream, fields } => {
                    (stream, UpstreamEvent::Trailers(fields))
                }
                client::Event::End { stream, .. } => (stream, UpstreamEvent::End),
                client::Event::Reset { stream, code } => return Some(reset_event(stream, code)),
                client::Event::Malformed { stream, what } => {
                    return Some(StreamEvent::Lost {
                        stream,
                        failure: Failure::Invalid(what.message()),
                        refused: false,
                    });
                }
                client::Event::Closing { .. } => return Some(StreamEvent::Closing),
                client::Event::Failed(h2::ProtocolError::Closed) => {
                    return Some(StreamEvent::Failed(Failure::Closed));
                }
                client::Event::Failed(error) => {
                    // The engine serves both roles, and its message names the client as the peer.
                    let text = error.to_string().replacen("client", "upstream", 1);
                    return Some(StreamEvent::Failed(Failure::InvalidDetail(text.into())));
                }
                client::Event::Eof => return Some(StreamEvent::Ended),
                client::Event::Pong(_)
                | client::Event::Note { .. }
                | client::Event::Upgraded(_) => {
                    continue;
                }
            };
            return Some(StreamEvent::Upstream(stream, event));
        }
    }
}

/// A stream that the server has reset.
fn reset_event(stream: u32, code: u32) -> StreamEvent {
    let text = format!("upstream reset the stream with error {code}");
    StreamEvent::Lost {
        stream,
        failure: Failure::InvalidDetail(text.into()),
        refused: code == h2::REFUSED_STREAM,
    }
}
