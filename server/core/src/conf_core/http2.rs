//! Settings of HTTP/2.
//!
//! Directives that nginx has made obsolete are accepted with a warning that names their successor.
//!
//! Source: nginx documentation, `ngx_http_v2_module`.

use conf::{Arity, ConfError, Contexts, Directive, Row};

use crate::build::Build;
use crate::settings;
use crate::typed::{Number, Size, Typed};

const HS: Contexts = Contexts::HTTP_SERVER;
const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

/// `http2_chunk_size`: bytes of a DATA frame.
#[derive(Clone, Copy, Debug)]
pub struct ChunkSize(pub u64);

impl Typed for ChunkSize {
    const ARITY: Arity = Arity::TAKE1;
    const SYNTAX: &'static str = "size";

    fn parse(_: &mut Build, d: &Directive) -> Result<Self, ConfError> {
        let size = conf::size(d)? as u64;
        if size == 0 || size > MAX_CHUNK_BYTES {
            let text = format!("the http2 chunk size must be between 1 and {MAX_CHUNK_BYTES}");
            return Err(ConfError::word(d, d.word(0), text));
        }
        Ok(Self(size))
    }
}

/// `http2_max_concurrent_streams`: at least one.
#[derive(Clone, Copy, Debug)]
pub struct Streams(pub u64);

impl Typed for Streams {
    const ARITY: Arity = Arity::TAKE1;
    const SYNTAX: &'static str = "number";

    fn parse(_: &mut Build, d: &Directive) -> Result<Self, ConfError> {
        conf::between(d, conf::number(d)?, 1, MAX_STREAMS).map(Self)
    }
}

settings! {
    /// Settings of HTTP/2 at server scope.
    pub struct Http2Srv: Server / PLAIN {
        /// Whether HTTP/2 is spoken: chosen by ALPN over TLS, by the preface on a plain connection.
        on "http2": bool = false, "off", HS;
        /// Most streams of a connection at a time.
        max_concurrent_streams "http2_max_concurrent_streams": Streams = Streams(128), "128", HS;
        /// Bytes of a request body that are taken before anybody reads it.
        body_preread_size "http2_body_preread_size": Size = Size(64 << 10), "64k", HS;
        /// Frames that cost work and bring nothing, before the connection is ended.
        abuse_budget "http2_abuse_budget": Number = Number(1000), "1000", HS;
        /// Bytes of the table of header fields, in each direction.
        header_table_size "http2_header_table_size": Size = Size(4096), "4k", HS;
    }
}

settings! {
    /// Settings of HTTP/2 at location scope.
    pub struct Http2Loc: Location / LOC_PLAIN {
        /// Most bytes of a frame of a response body.
        chunk_size "http2_chunk_size": ChunkSize = ChunkSize(16 << 10), "16k", HSL;
    }
}

macro_rules! obsolete {
    ($name:literal, $contexts:expr, $successor:literal) => {
        Row {
            name: $name,
            contexts: $contexts,
            arity: Arity::TAKE1,
            block: false,
            default: "",
            doc: concat!("Obsolete: use ", $successor, "."),
            syntax: "...",
            apply: |b, d| {
                let text = concat!(
                    "the \"",
                    $name,
                    "\" directive is obsolete, use the \"",
                    $successor,
                    "\" directive instead"
                );
                b.warn(ConfError::at(d, text));
                Ok(())
            },
        }
    };
}

/// Directives of nginx that have a successor.
pub(super) const ROWS: &[Row<Build>] = &[
    obsolete!("http2_recv_timeout", HS, "client_header_timeout"),
    obsolete!("http2_idle_timeout", HS, "keepalive_timeout"),
    obsolete!("http2_max_requests", HS, "keepalive_requests"),
    obsolete!("http2_max_field_size", HS, "large_client_header_buffers"),
    obsolete!("http2_max_header_size", HS, "large_client_header_buffers"),
];

/// Largest frame that a client must take (RFC 9113 section 6.5.2), bytes.
const MAX_CHUNK_BYTES: u64 = (1 << 24) - 1;
/// Most streams that can be allowed: each may hold a body of `http2_body_preread_size`.
const MAX_STREAMS: u64 = 1 << 16;
