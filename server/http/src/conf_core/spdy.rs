//! Settings of SPDY/3.1.
//!
//! They are those of the module that nginx had before HTTP/2; sizes of memory that only nginx had are accepted with a
//! warning. `http2_abuse_budget` sets the limits of abuse.
//!
//! Source: nginx documentation up to 1.9.4, `ngx_http_spdy_module`.

use conf::{ConfError, Contexts, Directive, DirectiveDef};
use server_base::config::ConfigContext;
use server_base::from_args::{Between, FromArgs, Millis};

use super::http2::{ChunkSize, Streams};
use super::obsolete::{obsolete, unneeded};
use crate::settings;
use crate::settings_set::SettingsContext;

const H: Contexts = Contexts::HTTP;
const HS: Contexts = Contexts::HTTP_SERVER;
const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

/// `spdy_headers_comp`: a level of zlib, 0 for no compression.
#[derive(Clone, Copy, Debug)]
pub struct Level(pub u8);

impl FromArgs for Level {
    const SYNTAX: &'static str = "level";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let level = conf::between(d, conf::number(d)?, 0, MAX_LEVEL)?;
        Ok(Self(level as u8))
    }
}

settings! {
    /// Settings of SPDY at server scope.
    pub struct SpdySrv: Server {
        /// Maximum number of concurrent streams of a connection.
        max_concurrent_streams "spdy_max_concurrent_streams": Streams = Between(100), "100", HS;
        /// How much response fields are compressed; cookies never share a context with other fields.
        headers_comp "spdy_headers_comp": Level = Level(0), "0", HS;
        /// Limit of time without a request.
        keepalive_timeout "spdy_keepalive_timeout": Millis = Millis(180_000), "3m", HS;
        /// Limit of time for a frame that has begun to be complete.
        recv_timeout "spdy_recv_timeout": Millis = Millis(30_000), "30s", HS;
    }
}

settings! {
    /// Settings of SPDY at location scope.
    pub struct SpdyLoc: Location {
        /// Maximum size of a frame of a response body.
        chunk_size "spdy_chunk_size": ChunkSize = ChunkSize(8 << 10), "8k", HSL;
    }
}

/// Rows of sizes of memory that only nginx has.
pub(super) const fn unneeded_rows<B: SettingsContext>() -> &'static [DirectiveDef<B>] {
    const {
        &[
            unneeded!("spdy_pool_size", HS),
            unneeded!("spdy_recv_buffer_size", H),
            unneeded!("spdy_streams_index_size", HS),
        ]
    }
}

/// Best compression that zlib knows.
const MAX_LEVEL: u64 = 9;
