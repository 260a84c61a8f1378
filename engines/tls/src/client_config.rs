//! The shared settings of connections in the client role.
//!
//! Sessions belong to the settings of their connection, and to settings derived from them.
//!
//! Source: RFC 8446 sections 2.2 and 4.2.10, RFC 7301, RFC 8879.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::{Error, KeyLog, NoKeyLog, RootCertStore, compress};

use super::client_conn::AnyServer;
use super::versions::Versions;

/// Settings of connections to a server; sessions to be resumed are kept with them.
#[derive(Clone, Debug)]
pub struct ClientConfig(Arc<rustls::ClientConfig>);

/// Accepted certificates of a server.
#[derive(Debug)]
pub enum ServerTrust {
    /// Certificates that chain to one of these authorities, are in force and have the server's name.
    Authorities(RootCertStore),
    /// Any certificate, if the server has its key.
    Any,
}

/// Offers of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Protocols by ALPN, the first the most wanted.
    pub alpn: Vec<Vec<u8>>,
    /// Whether compressed certificates are accepted.
    pub certificate_compression: bool,
    /// Whether data may be sent with the first message if the session permits it.
    pub early_data: bool,
    /// Receives the secrets.
    pub key_log: Option<Arc<dyn KeyLog>>,
}

impl ClientConfig {
    /// Settings that offer these protocols by ALPN, the most wanted first, and keep at most `sessions` sessions for
    /// resumption, 0 for none.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(trust: ServerTrust, alpn: Vec<Vec<u8>>, sessions: usize) -> Result<Self, Error> {
        let options = ClientOptions {
            alpn,
            certificate_compression: true,
            early_data: false,
            key_log: None,
        };
        Self::with_options(trust, Versions::Both, options, sessions)
    }

    /// Settings with these versions and options; `sessions` as in [`Self::new`].
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn with_options(
        trust: ServerTrust,
        versions: Versions,
        options: ClientOptions,
        sessions: usize,
    ) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions.list())?;
        let builder = match trust {
            ServerTrust::Authorities(roots) => builder.with_root_certificates(roots),
            ServerTrust::Any => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyServer(provider))),
        };
        let mut config = builder.with_no_client_auth();
        config.resumption = match sessions {
            0 => Resumption::disabled(),
            sessions => Resumption::in_memory_sessions(sessions),
        };
        options.apply(&mut config);
        Ok(Self(Arc::new(config)))
    }

    /// Settings with other options, and with the trust, versions and sessions of these.
    #[must_use]
    pub fn derived(&self, options: ClientOptions) -> Self {
        let mut config = rustls::ClientConfig::clone(&self.0);
        options.apply(&mut config);
        Self(Arc::new(config))
    }

    /// Settings that also write the secrets of connections into a log, with the sessions of these.
    pub(crate) fn logging(&self, log: Arc<dyn KeyLog>) -> Self {
        let mut config = rustls::ClientConfig::clone(&self.0);
        config.key_log = log;
        Self(Arc::new(config))
    }

    pub(crate) fn of(config: Arc<rustls::ClientConfig>) -> Self {
        Self(config)
    }

    pub(crate) fn rustls(&self) -> Arc<rustls::ClientConfig> {
        Arc::clone(&self.0)
    }
}

impl ClientOptions {
    fn apply(self, config: &mut rustls::ClientConfig) {
        config.alpn_protocols = self.alpn;
        config.enable_early_data = self.early_data;
        config.key_log = self.key_log.unwrap_or_else(|| Arc::new(NoKeyLog));
        config.cert_decompressors = match self.certificate_compression {
            true => compress::default_cert_decompressors().to_vec(),
            false => Vec::new(),
        };
    }
}
