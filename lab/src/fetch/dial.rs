//! Settings of a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tls::{ClientOptions, Versions};

use super::key_log::KeyLog;
use super::sessions::Sessions;
use crate::client::trust::Trust;
use crate::client::{Protocol, Url};

/// Server of a connection, and options for opening it.
#[derive(Clone, Debug)]
pub struct Dial {
    /// The server; its path plays no part.
    pub url: Url,
    /// Address of the server.
    pub address: SocketAddr,
    /// TLS options, if the connection uses TLS.
    pub tls: Option<TlsOptions>,
    /// Protocols that are offered by ALPN, the first the most wanted; without TLS the first is spoken.
    pub protocols: Vec<Protocol>,
    /// Longest time until a connection is open, and until a response after the one before it is complete.
    pub timeout: Duration,
    /// When received data is acknowledged.
    pub acks: Acks,
    /// zlib's level for header blocks of SPDY requests.
    pub spdy_level: u8,
    /// Longest body of a response, bytes; a longer one fails. With `None`, [`MAX_BODY_BYTES`](super::MAX_BODY_BYTES)
    /// are kept, and the rest is counted.
    pub body_limit: Option<usize>,
}

/// How TLS is spoken.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Authorities with trusted certificates.
    pub trust: Trust,
    /// Versions that are offered.
    pub versions: Versions,
    /// Whether compressed certificates are accepted (RFC 8879).
    pub certificate_compression: bool,
    /// Sessions for resumption.
    pub sessions: Sessions,
    /// Whether early data carries the first requests, if a session allows it and all requests are GET or HEAD. Then the
    /// first request begins the handshake, not the opening of the connection.
    pub early_data: bool,
    /// File for TLS secrets.
    pub key_log: Option<Arc<KeyLog>>,
}

/// When the kernel acknowledges received data; see tcp(7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// As it likes.
    #[default]
    Kernel,
    /// At once: TCP_QUICKACK is set before each read.
    Quick,
    /// With the next sent data, or after a timer of at least 40 ms: TCP_QUICKACK is cleared before each read.
    Delayed,
}

impl Dial {
    /// Makes options as browsers use them for a URL: TLS with HTTP/2 and HTTP/1.1 if the scheme is https.
    #[must_use]
    pub fn new(url: &Url, address: SocketAddr, timeout: Duration) -> Self {
        Self {
            url: url.clone(),
            address,
            tls: url.tls.then(TlsOptions::default),
            protocols: match url.tls {
                true => vec![Protocol::H2, Protocol::H1],
                false => vec![Protocol::H1],
            },
            timeout,
            acks: Acks::default(),
            spdy_level: SPDY_LEVEL,
            body_limit: None,
        }
    }
}

impl TlsOptions {
    /// Prepares TLS settings and random numbers, so that the first connection does not wait for them.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn prepare(&self) -> Result<(), String> {
        tls::warm_up();
        let offered = self.client_options(&[]);
        let config = self.sessions.config(&self.trust, self.versions, offered);
        config.map(|_| ())
    }

    /// Returns the TLS options offered to a server.
    pub(super) fn client_options(&self, protocols: &[Protocol]) -> ClientOptions {
        ClientOptions {
            alpn: protocols.iter().map(|one| one.alpn().to_vec()).collect(),
            certificate_compression: self.certificate_compression,
            early_data: self.early_data,
            key_log: self.key_log.clone().map(|log| log as _),
        }
    }
}

impl Default for TlsOptions {
    /// As browsers: both versions, compressed certificates; without resumption.
    fn default() -> Self {
        Self {
            trust: Trust::default(),
            versions: Versions::default(),
            certificate_compression: true,
            sessions: Sessions::none(),
            early_data: false,
            key_log: None,
        }
    }
}

/// As browsers compressed the header blocks of SPDY.
const SPDY_LEVEL: u8 = 9;
