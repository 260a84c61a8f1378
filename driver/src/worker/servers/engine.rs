//! The engine below a connection to a server: one match finds it by the protocol's row
//! ([`ProtocolSpec`]).
//!
//! An engine has an [`EngineKind`]: the memory of an attempt serves another one of that kind alone.

use engines::client::{self, Bodies};
use engines::http::{Chunk, Fields, OutputQueue, ResponseHead};
use engines::{cgi, fcgi, h1, memcached, scgi, uwsgi};
use server_upstream::protocol::{MEMCACHED, ProtocolId, ProtocolSpec};
use server_upstream::request::{Failure, RequestSpec, UpstreamEvent};

/// An engine in the client role.
pub(super) enum Engine {
    /// HTTP/1.
    Http1(Box<h1::Client>),
    /// SCGI and uwsgi, which differ in how a request is written.
    Cgi(Box<cgi::Client>),
    /// FastCGI.
    FastCgi(Box<fcgi::Client>),
    /// The text protocol of memcached.
    Memcached(Box<memcached::Client>),
}

/// Engine that serves a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EngineKind {
    Http1,
    Cgi,
    FastCgi,
    Memcached,
}

/// Number of kinds.
pub(super) const ENGINE_KINDS: usize = 4;

/// Event of an engine.
pub(super) enum Event {
    /// Something for the exchange.
    Upstream(UpstreamEvent),
    /// The server has broken the protocol, or has closed the connection too early.
    Failed(Failure),
}

/// The kind of engine for a protocol.
#[inline]
pub(super) fn kind_of(protocol: &ProtocolSpec) -> EngineKind {
    match protocol.id {
        ProtocolId::Scgi | ProtocolId::Uwsgi => EngineKind::Cgi,
        ProtocolId::FastCgi => EngineKind::FastCgi,
        ProtocolId::Memcached => EngineKind::Memcached,
        ProtocolId::Http1 => EngineKind::Http1,
    }
}

/// The engine takes as many requests behind each other as the row of its protocol announces.
const _: () = match MEMCACHED.pipelining {
    Some(pipelining) => assert!(pipelining.requests_max == memcached::PIPELINE_MAX),
    None => panic!("requests of the protocol share connections"),
};

/// Returns the length of an answer that others follow, with a head of this many bytes.
pub(super) fn answer_bytes(head: &ResponseHead, head_bytes: u64) -> u64 {
    memcached::answer_bytes(head, head_bytes)
}

/// Does something with the engine, whichever it is.
macro_rules! with_engine {
    ($of:expr, $client:ident => $call:expr) => {
        match $of {
            Engine::Http1($client) => $call,
            Engine::Cgi($client) => $call,
            Engine::FastCgi($client) => $call,
            Engine::Memcached($client) => $call,
        }
    };
}

impl Engine {
    /// An engine for a protocol.
    pub(super) fn new(protocol: &ProtocolSpec) -> Self {
        match kind_of(protocol) {
            EngineKind::Http1 => Self::Http1(Box::new(h1::Client::new(Bodies::Delivered))),
            EngineKind::Cgi => Self::Cgi(Box::default()),
            EngineKind::FastCgi => Self::FastCgi(Box::default()),
            EngineKind::Memcached => Self::Memcached(Box::default()),
        }
    }

    /// Its kind.
    #[inline]
    pub(super) fn kind(&self) -> EngineKind {
        match self {
            Self::Http1(_) => EngineKind::Http1,
            Self::Cgi(_) => EngineKind::Cgi,
            Self::FastCgi(_) => EngineKind::FastCgi,
            Self::Memcached(_) => EngineKind::Memcached,
        }
    }

    /// Begins a request as the first one of a connection, of a response with a head of at most `head_bytes`; the error says
    /// what is wrong with it.
    pub(super) fn begin(
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
        };
        match begun {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.message()),
        }
    }

    /// Sends a request behind those that were begun; false where it cannot be sent there.
    pub(super) fn pipeline(&mut self, request: &RequestSpec) -> bool {
        match self {
            Self::Memcached(client) => client.pipeline(key_of(request)).is_ok(),
            _ => false,
        }
    }

    /// Sends a piece of the request body, or of a tunnel.
    #[inline]
    pub(super) fn send(&mut self, chunk: Chunk) {
        match self {
            Self::Http1(client) => client.send(chunk),
            Self::Cgi(client) => client.send(chunk),
            Self::FastCgi(client) => client.send(chunk),
            // A `get` has no body.
            Self::Memcached(_) => {}
        }
    }

    /// Ends the request body, or our side of a tunnel.
    #[inline]
    pub(super) fn end(&mut self, trailers: Option<&Fields>) {
        match self {
            Self::Http1(client) => client.end(trailers),
            Self::Cgi(client) => client.end(),
            Self::FastCgi(client) => client.end(),
            Self::Memcached(_) => {}
        }
    }

    /// Moves what is to be sent to the end of `out`.
    #[inline]
    pub(super) fn transmit(&mut self, out: &mut OutputQueue) {
        with_engine!(self, client => client.transmit(out))
    }

    /// Takes what has come, and leaves `buffer` empty; its memory may go along.
    #[inline]
    pub(super) fn receive(&mut self, buffer: &mut Vec<u8>) {
        with_engine!(self, client => client.receive_buffer(buffer))
    }

    /// Takes the end of the server's side.
    pub(super) fn receive_eof(&mut self) {
        match self {
            Self::Http1(client) => client.receive_eof(true),
            Self::Cgi(client) => client.receive_eof(true),
            Self::FastCgi(client) => client.receive_eof(),
            Self::Memcached(client) => client.receive_eof(),
        }
    }

    /// Returns the next event.
    #[inline(always)] // A call moves each event once more.
    pub(super) fn event(&mut self) -> Option<Event> {
        match self {
            Self::Http1(client) => told(client.event()?, http1_failure),
            Self::Cgi(client) => told(client.event()?, cgi_failure),
            Self::FastCgi(client) => told(client.event()?, fastcgi_failure),
            Self::Memcached(client) => told(client.event()?, memcached_failure),
        }
    }

    /// Takes the memory of a head.
    #[inline]
    pub(super) fn recycle(&mut self, head: Box<ResponseHead>) {
        with_engine!(self, client => client.recycle(head))
    }

    /// Whether the connection may be used for another request; asked after the end of a response.
    #[inline]
    pub(super) fn is_reusable(&self) -> bool {
        with_engine!(self, client => client.is_reusable())
    }
}

/// An engine's event, where it is one for the exchange or its end.
#[inline]
fn told<E>(event: client::Event<E>, failure: impl FnOnce(E) -> Failure) -> Option<Event> {
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
