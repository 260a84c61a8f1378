//! TLS for the tests over the link: a client of one version, and certificates of chosen sizes.
//!
//! Absent on purpose: whether a certificate is one to trust; signatures are verified, since their cost is part of a
//! handshake.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod chain;

use std::sync::Arc;

use ::tls::AnyServer;
use rustls::client::Resumption;
use rustls::compress::CertDecompressor;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::{ClientConfig, SupportedProtocolVersion};

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Tls12,
    Tls13,
}

impl Version {
    /// Just this one, as rustls takes it.
    pub(crate) fn alone(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => &TLS12,
            Self::Tls13 => &TLS13,
        }
    }
}

static TLS12: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
static TLS13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

/// The cryptography of both ends: key exchange by X25519. P-256 is there because OpenSSL otherwise takes no certificate of it
/// in TLS 1.2.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: vec![kx_group::X25519, kx_group::SECP256R1],
        ..default_provider()
    })
}

/// A client of one version that offers these protocols, has no session and accepts any certificate.
pub(crate) fn client(version: Version, alpn: &[&str]) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(version.alone())
        .expect("the version is built")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider())))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.resumption = Resumption::disabled();
    config.cert_decompressors = Vec::new();
    config
}

/// A client that accepts certificates compressed so.
pub(crate) fn decompressing(version: Version, how: &'static dyn CertDecompressor) -> ClientConfig {
    let mut config = client(version, &["http/1.1"]);
    config.cert_decompressors = vec![how];
    config
}
