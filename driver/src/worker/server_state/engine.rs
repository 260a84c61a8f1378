//! The engine below a connection to a server: one match finds it by the protocol's row
//! ([`ProtocolSpec`]).
//!
//! An engine has an [`EngineKind`]: the memory of an attempt serves another one of that kind alone.

use engines::client::{self, Bodies};
use engines::http::{Chunk, Fields, OutputQueue, ResponseHead};
use engines::{cgi, fcgi, h1, h2, memcached, scgi, uwsgi};
use server_upstream::protocol::{MEMCACHED, ProtocolId, ProtocolSpec};
use server_upstream::request::{Failure, RequestSpec, UpstreamEvent};

use super::http2;

/// An engine in the client role.
pub(crate) enum Engine {
    /// HTTP/1.
    Http1(Box<h1::Client>),
    /// SCGI and uwsgi, which differ in how a request is written.
    Cgi(Box<cgi::Client>),
    /// FastCGI.
    FastCgi(Box<fcgi::Client>),
    /// The text protocol of memcached.
    Memcached(Box<memcached::Client>),
    /// HTTP/2, the one with streams.
    Http2(Box<h2::Client>),
}

/// Engine that serves a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineKind {
    Http1,
    Cgi,
    FastCgi,
    Memcached,
    Http2,
}

/// Number of kinds.
pub(crate) const ENGINE_KINDS: usize = 5;

/// Event of an engine.
pub(crate) enum Event {
    /// Something for the exchange.
    Upstream(UpstreamEvent),
    /// The server has broken the protocol, or has closed the connection too early.
    Failed(Failure),
}

/// Event of an engine with streams.
pub(crate) enum StreamEvent {
    /// Something for the exchange of a stream.
    Upstream(u32, UpstreamEvent),
    /// A stream has failed; the connection goes on.
    Lost {
        /// The stream.
        stream: u32,
        /// Why.
        failure: Failure,
        /// The server has not processed the request (RFC 9113 section 8.7).
        refused: bool,
    },
    /// The server takes no further request.
    Closing,
    /// The server has broken the protocol, or has closed the connection too early.
    Failed(Failure),
    /// The server has closed the connection while no request was in progress.
    Ended,
}

/// The kind of engine for a protocol.
#[inline]
pub(crate) fn kind_of(protocol: &ProtocolSpec) -> EngineKind {
    match protocol.id {
        ProtocolId::Scgi | ProtocolId::Uwsgi => EngineKind::Cgi,
        ProtocolId::FastCgi => EngineKind::FastCgi,
        ProtocolId::Memcached => EngineKind::Memcached,
        ProtocolId::Http1 => EngineKind::Http1,
        ProtocolId::Http2 => EngineKind::Http2,
    }
}

/// The engine takes as many requests behind each other as the row of its protocol announces.
const _: () = match MEMCACHED.pipelining {
    Some(pipelining) => assert!(pipelining.requests_max == memcached::PIPELINE_MAX),
    None => panic!("requests of the protocol share connections"),
};

/// Returns the length of an answer that others follow, with a head of this many bytes.
pub(crate) fn answer_bytes(head: &ResponseHead, head_bytes: u64) -> u64 {
    memcached::answer_bytes(head, head_bytes)
}

/// Does something with the engine, whichever it is.
macro_rules! with_engine {
    ($of:expr, $client:ident => $call:expr, $streams:ident => $other:expr) => {
        match $of {
            Engine::Http1($client) => $call,
            Engine::Cgi($client) => $call,
            Engine::FastCgi($client) => $call,
            Engine::Memcached($client) => $call,
            Engine::Http2($streams) => $other,
        }
    };
}

impl Engine {
    /// An engine for a protocol.
    pub(crate) fn new(protocol: &ProtocolSpec, head_bytes: usize) -> Self {
        match kind_of(protocol) {
            EngineKind::Http1 => Self::Http1(Box::new(h1::Client::new(Bodies::Delivered))),
            EngineKind::Cgi => Self::Cgi(Box::default()),
            EngineKind::FastCgi => Self::FastCgi(Box::default()),
            EngineKind::Memcached => Self::Memcached(Box::default()),
            EngineKind::Http2 => Self::Http2(http2::new(head_bytes)),
        }
    }

    /// Its kind.
    #[inline]
    pub(crate) fn kind(&self) -> EngineKind {
        match self {
            Self::Http1(_) => EngineKind::Http1,
            Self::Cgi(_) => EngineKind::Cgi,
            Self::FastCgi(_) => EngineKind::FastCgi,
            Self::Memcached(_) => EngineKind::Memcached,
            Self::Http2(_) => EngineKind::Http2,
        }
    }

    /// Begins a request as the first one of a connection, of a response with a head of at most `head_bytes`; the error is
    /// the fault of the request.
    pub(crate) fn begin(
        &mut self,
        protocol: &ProtocolSpec,
        head_bytes: usize,
        request: &RequestSpec,
    ) -> Result<(), &'static str> {
        let begun = match self {
            Self::Http1(client) => {
                client.reset();
                let options = h1::RequestOptions {
                    http10: request.http10,
                    body: request.body,
                    upgrade: request.upgrade,
                    head_bytes,
                };
                client.request_fields(&request.fields, options)
            }
            Self::Cgi(client) => {
                client.reset();
                let options = cgi::RequestOptions {
                    body: request.body,
                    upgrade: request.upgrade,
                    head_bytes,
                };
                match protocol.id {
                    ProtocolId::Uwsgi => {
                        uwsgi::request(client, &request.fields, request.modifiers, options)
                    }
                    _ => scgi::request(client, &request.fields, options),
                }
            }
            Self::FastCgi(client) => {
                client.reset();
                let options = fcgi::RequestOptions {
                    head_bytes,
                    keep: request.keep,
                    body: request.body,
                };
                client.request(&request.fields, options)
            }
            Self::Memcached(client) => {
                client.reset();
                client.request(key_of(request), head_bytes)
            }
            // `open_stream` begins them.
            Self::Http2(_) => return Err("the engine has streams"),
        };
        match begun {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.message()),
        }
    }

    /// Sends a request behind those that were begun; false if it cannot be sent there.
    pub(crate) fn pipeline(&mut self, request: &RequestSpec) -> bool {
        match self {
            Self::Memcached(client) => client.pipeline(key_of(request)).is_ok(),
            _ => false,
        }
    }

    /// Sends a piece of the request body, or of a tunnel.
    #[inline]
    pub(crate) fn send(&mut self, chunk: Chunk) {
        match self {
            Self::Http1(client) => client.send(chunk),
            Self::Cgi(client) => client.send(chunk),
            Self::FastCgi(client) => client.send(chunk),
            // A `get` has no body.
            Self::Memcached(_) | Self::Http2(_) => {}
        }
    }

    /// Ends the request body, or our side of a tunnel.
    #[inline]
    pub(crate) fn end(&mut self, trailers: Option<&Fields>) {
        match self {
            Self::Http1(client) => client.end(trailers),
            Self::Cgi(client) => client.end(),
            Self::FastCgi(client) => client.end(),
            Self::Memcached(_) | Self::Http2(_) => {}
        }
    }

    /// Moves bytes to send to the end of `out`.
    #[inline]
    pub(crate) fn transmit(&mut self, out: &mut OutputQueue) {
        with_engine!(self, client => client.transmit(out), streams => http2::transmit(streams, out))
    }

    /// Takes received bytes, and leaves `buffer` empty; its memory may go along.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut Vec<u8>) {
        with_engine!(self, client => client.receive_buffer(buffer), streams => http2::receive(streams, buffer))
    }

    /// Takes the end of the server's side, `whole` unless the transport was cut off.
    pub(crate) fn receive_eof(&mut self, whole: bool) {
        match self {
            Self::Http1(client) => client.receive_eof(whole),
            Self::Cgi(client) => client.receive_eof(whole),
            Self::FastCgi(client) => client.receive_eof(),
            Self::Memcached(client) => client.receive_eof(),
            Self::Http2(client) => client.receive_eof(whole),
        }
    }

    /// Returns the next event.
    #[inline(always)] // A call moves each event once more.
    pub(crate) fn event(&mut self) -> Option<Event> {
        match self {
            Self::Http1(client) => to_event(client.event()?, http1_failure),
            Self::Cgi(client) => to_event(client.event()?, cgi_failure),
            Self::FastCgi(client) => to_event(client.event()?, fastcgi_failure),
            Self::Memcached(client) => to_event(client.event()?, memcached_failure),
            // They have streams: `http2::stream_event`.
            Self::Http2(_) => None,
        }
    }

    /// Takes the memory of a head.
    #[inline]
    pub(crate) fn recycle(&mut self, head: Box<ResponseHead>) {
        with_engine!(self, client => client.recycle(head), streams => streams.recycle(head))
    }

    /// Whether it speaks the protocol that TLS has agreed on, if any.
    pub(crate) fn speaks(&self, alpn: Option<&[u8]>) -> bool {
        (alpn == Some(b"h2")) == matches!(self, Self::Http2(_))
    }

    /// Whether the connection may be used for another request; asked after the end of a response.
    #[inline]
    pub(crate) fn is_reusable(&self) -> bool {
        with_engine!(self, client => client.is_reusable(), streams => streams.room() > 0)
    }
}

/// An engine's event, if it is one for the exchange or its end.
#[inline]
fn to_event<E>(event: client::Event<E>, failure: impl FnOnce(E) -> Failure) -> Option<Event> {
    Some(Event::Upstream(match event {
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

/// The key that is asked for.
fn key_of(request: &RequestSpec) -> &[u8] {
    let key = request.fields.fields.first();
    key.map_or(&b""[..], |field| request.fields.bytes(field.value))
}

fn http1_failure(error: h1::ProtocolError) -> Failure {
    match error {
        h1::ProtocolError::NoResponse | h1::ProtocolError::Truncated => Failure::Closed,
        error => Failure::Invalid(error.message()),
    }
}

fn cgi_failure(error: cgi::ProtocolError) -> Failure {
    match error {
        cgi::ProtocolError::NoResponse | cgi::ProtocolError::Truncated => Failure::Closed,
        error => Failure::Invalid(error.message()),
    }
}

fn fastcgi_failure(error: fcgi::ProtocolError) -> Failure {
    match error {
        fcgi::ProtocolError::NoResponse | fcgi::ProtocolError::Truncated => Failure::Closed,
        error => Failure::InvalidDetail(format!("upstream {error}").into()),
    }
}

fn memcached_failure(error: memcached::ProtocolError) -> Failure {
    match error {
        memcached::ProtocolError::NoResponse | memcached::ProtocolError::Truncated => {
            Failure::Closed
        }
        error => Failure::InvalidDetail(error.to_string().into()),
    }
}
