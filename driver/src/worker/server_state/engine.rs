//! The engine below a connection to a server, found by the protocol's row ([`ProtocolSpec`]).
//!
//! Absent: streams, which `http2` has.

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
    /// A stream has failed; the connection stays open.
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

/// The engine pipelines as many requests as the row of its protocol announces.
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

/// Functions from the error of an engine to a failure: a response cut short, or another fault of the server.
macro_rules! failures {
    ($($name:ident($engine:ident, $error:ident) => $invalid:expr;)*) => {$(
        fn $name($error: $engine::ProtocolError) -> Failure {
            match $error {
                $engine::ProtocolError::NoResponse | $engine::ProtocolError::Truncated => {
                    Failure::Closed
                }
                $error => $invalid,
            }
        }
    )*};
}

failures! {
    http1_failure(h1, error) => Failure::Invalid(error.message());
    cgi_failure(cgi, error) => Failure::Invalid(error.message());
    fastcgi_failure(fcgi, error) => detail(format!("upstream {error}"));
    memcached_failure(memcached, error) => detail(error.to_string());
}

impl Engine {
    /// An engine for a protocol.
    pub(crate) fn new(protocol: &ProtocolSpec, head_bytes: usize) -> Self {
        match protocol.id {
            ProtocolId::Http1 => Self::Http1(Box::new(h1::Client::new(Bodies::Delivered))),
            ProtocolId::Scgi | ProtocolId::Uwsgi => Self::Cgi(Box::default()),
            ProtocolId::FastCgi => Self::FastCgi(Box::default()),
            ProtocolId::Memcached => Self::Memcached(Box::default()),
            ProtocolId::Http2 => Self::Http2(http2::new(head_bytes)),
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

    /// Sends a request behind earlier ones; false if it cannot be pipelined.
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

    /// Whether the connection may carry another request; valid after the end of a response.
    #[inline]
    pub(crate) fn is_reusable(&self) -> bool {
        with_engine!(self, client => client.is_reusable(), streams => streams.room() > 0)
    }
}

/// Converts an engine's event, if it concerns the exchange or the end of the response.
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

/// The key of the request.
fn key_of(request: &RequestSpec) -> &[u8] {
    let key = request.fields.fields.first();
    key.map_or(&b""[..], |field| request.fields.bytes(field.value))
}

fn detail(text: String) -> Failure {
    Failure::InvalidDetail(text.into())
}
