//! The TLS settings of one server, ready for use.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, version};

use super::keys::{Identities, Identity};

/// The TLS settings of one server.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) rustls: Arc<ServerConfig>,
    has_certificates: bool,
    rejects: bool,
    record_bytes: usize,
}

/// What a [`Config`] is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's certificates.
    pub identities: Vec<Identity>,
    /// Application protocols, those it likes most first.
    pub alpn: Vec<Vec<u8>>,
    /// Most plaintext of a record, bytes.
    pub record_bytes: usize,
    /// Every handshake is refused.
    pub reject: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            identities: Vec::new(),
            alpn: Vec::new(),
            record_bytes: 1 << 14,
            reject: false,
        }
    }
}

impl Config {
    /// Wraps what rustls needs.
    #[must_use]
    pub fn new(rustls: Arc<ServerConfig>) -> Self {
        Self {
            rustls,
            has_certificates: true,
            rejects: false,
            record_bytes: 1 << 14,
        }
    }

    /// Makes a configuration.
    ///
    /// # Errors
    /// What rustls says of settings that do not go together.
    pub fn build(settings: Settings) -> Result<Self, rustls::Error> {
        let provider = CryptoProvider {
            ..aws_lc_rs::default_provider()
        };
        let has_certificates = !settings.identities.is_empty();
        let mut rustls = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&version::TLS12, &version::TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Identities(settings.identities)));
        rustls.alpn_protocols = settings.alpn;
        rustls.session_storage = Arc::new(NoServerSessionStorage {});
        rustls.cert_compressors = Vec::new();
        rustls.cert_decompressors = Vec::new();
        Ok(Self {
            rustls: Arc::new(rustls),
            has_certificates,
            rejects: settings.reject,
            record_bytes: settings.record_bytes,
        })
    }

    /// Whether it has a certificate to show.
    #[must_use]
    pub fn has_certificates(&self) -> bool {
        self.has_certificates
    }

    /// Whether every handshake is refused (`ssl_reject_handshake`).
    #[must_use]
    pub fn rejects(&self) -> bool {
        self.rejects
    }

    /// Most plaintext of a record, bytes (`ssl_buffer_size`).
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }
}
