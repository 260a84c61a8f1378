//! The TLS connection that carries an exchange.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;

use engines::http::Method;
use tls::{Config, Info, Verified};

use crate::http::LocalHttp;
use crate::names::Unmatched;

/// A TLS connection after its handshake; made once for all its exchanges.
#[derive(Debug)]
pub struct Tls {
    /// The settings of the handshake.
    pub config: Arc<Config>,
    /// The negotiated parameters.
    pub info: Info,
    /// The result of verifying the client's certificate.
    pub verified: Verified,
    /// The request came before the handshake was over: `$ssl_early_data`. The driver keeps it.
    pub early_data: Cell<bool>,
    /// Time from its ClientHello to its Finished, microseconds, if it was measured.
    pub handshake_us: Option<u64>,
    /// The number of a generation and the server the name means in it.
    server: Cell<(u64, Option<usize>)>,
}

impl Tls {
    /// A connection on which the handshake is over.
    pub fn new(config: Arc<Config>, info: Info) -> Self {
        Self {
            verified: config.verify(&info.certificates),
            config,
            info,
            early_data: Cell::new(false),
            handshake_us: None,
            server: Cell::new((0, None)),
        }
    }

    /// A connection with only the server name of its handshake.
    pub fn with_server_name(config: Arc<Config>, server_name: Option<Vec<u8>>) -> Self {
        let info = Info {
            server_name,
            ..Info::default()
        };
        Self::new(config, info)
    }

    /// Whether the client must repeat the request after the handshake. It came in early data, which an attacker can replay, and
    /// its method is not safe to process twice (RFC 8470 section 5.2, RFC 9110 section 9.2.2).
    pub(crate) fn is_too_early(&self, method: Method) -> bool {
        let repeatable = !matches!(
            method,
            Method::Post | Method::Patch | Method::Lock | Method::Connect | Method::Other
        );
        self.early_data.get() && !repeatable
    }

    /// The server with the name of the client's handshake, if there is one. The configuration may be newer than the
    /// handshake.
    ///
    /// # Errors
    /// A regular expression ran into its match limit.
    pub fn named_server(
        &self,
        http: &LocalHttp,
        port: usize,
        local: Option<SocketAddr>,
    ) -> Result<Option<usize>, Unmatched> {
        let (number, known) = self.server.get();
        if number == http.number {
            return Ok(known);
        }
        let addr = http.ports[port].addr(local);
        let server = addr.names.find(self.info.server_name.as_deref())?;
        self.server.set((http.number, server));
        Ok(server)
    }
}
