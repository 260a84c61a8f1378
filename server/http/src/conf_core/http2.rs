//! Settings of HTTP/2.
//!
//! Source: nginx documentation, `ngx_http_v2_module`.

use conf::{ConfError, Contexts, Directive};
use server_base::config::ConfigContext;
use server_base::from_args::{Between, FromArgs, Number};

use crate::settings;

const HS: Contexts = Contexts::HTTP_SERVER;
const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

/// Bytes of a DATA frame, for HTTP/2 and protocols like it.
#[derive(Clone, Copy, Debug)]
pub struct ChunkSize(pub u64);

impl FromArgs for ChunkSize {
    const SYNTAX: &'static str = "size";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let size = conf::size(d)? as u64;
        if size == 0 {
            let protocol = d.name().trim_end_matches("_chunk_size");
            let text = format!("the {protocol} chunk size cannot be zero");
            return Err(ConfError::word(d, d.word(0), text));
        }
        Ok(Self(size.min(MAX_CHUNK_BYTES)))
    }
}

/// `http2_body_preread_size`: a window of a stream.
#[derive(Clone, Copy, Debug)]
pub struct PrereadSize(pub u64);

impl FromArgs for PrereadSize {
    const SYNTAX: &'static str = "size";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let size = conf::size(d)? as u64;
        if size > MAX_WINDOW_BYTES {
            let text = format!("the maximum body preread buffer size is {MAX_WINDOW_BYTES}");
            return Err(ConfError::word(d, d.word(0), text));
        }
        Ok(Self(size))
    }
}

/// `http2_header_table_size`.
#[derive(Clone, Copy, Debug)]
pub struct TableSize(pub u64);

impl FromArgs for TableSize {
    const SYNTAX: &'static str = "size";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::between(d, conf::size(d)? as u64, 0, MAX_TABLE_BYTES).map(Self)
    }
}

/// `http2_max_concurrent_streams`: at least one.
pub(super) type Streams = Between<1, MAX_STREAMS>;

settings! {
    /// Settings of HTTP/2 at server scope.
    pub struct Http2Srv: Server {
        /// Whether HTTP/2 is enabled: by ALPN over TLS, by the preface on a plain connection.
        on "http2": bool = false, "off", HS;
        /// Maximum number of concurrent streams of a connection.
        max_concurrent_streams "http2_max_concurrent_streams": Streams = Between(128), "128", HS;
        /// Maximum number of concurrent pushed streams of a connection.
        max_concurrent_pushes "http2_max_concurrent_pushes": Number = Number(10), "10", HS;
        /// Bytes of a request body that are accepted before it has a reader.
        body_preread_size "http2_body_preread_size": PrereadSize = PrereadSize(64 << 10), "64k", HS;
        /// Frames that cost CPU without progress, before the connection is ended.
        abuse_budget "http2_abuse_budget": Between<1, MAX_FRAMES> = Between(1000), "1000", HS;
        /// Bytes of the table of header fields, in each direction.
        header_table_size "http2_header_table_size": TableSize = TableSize(4096), "4k", HS;
    }
}

settings! {
    /// Settings of HTTP/2 at location scope.
    pub struct Http2Loc: Location {
        /// Maximum size of a frame of a response body; by default such a frame fills a TLS record.
        chunk_size "http2_chunk_size": ChunkSize = ChunkSize(RECORD_CHUNK_BYTES), "16375", HSL;
    }
}

/// Data of a frame that fills a TLS record together with its head.
const RECORD_CHUNK_BYTES: u64 = (16 << 10) - 9;
/// Longest frame (RFC 9113 section 6.5.2), bytes.
const MAX_CHUNK_BYTES: u64 = (1 << 24) - 1;
/// Maximum value of the number of streams: each may hold a body of `http2_body_preread_size`.
const MAX_STREAMS: u64 = 1 << 16;
/// Largest window (RFC 9113 section 6.9.1), bytes.
const MAX_WINDOW_BYTES: u64 = (1 << 31) - 1;
/// Largest table: each connection may have two of them.
const MAX_TABLE_BYTES: u64 = 1 << 20;
/// Largest budget.
const MAX_FRAMES: u64 = 1 << 30;
