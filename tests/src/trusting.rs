//! A client's look at certificates that takes any, for tests of what is not the certificate.
//!
//! Deliberately absent: whether a certificate is one to trust. That its key signed the handshake is verified, because
//! that is part of what a handshake is, and costs.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Takes any certificate whose key signed the handshake.
#[derive(Debug)]
pub struct Trusting {
    known: WebPkiSupportedAlgorithms,
    offered: Vec<SignatureScheme>,
}

impl Default for Trusting {
    /// Offers what it knows.
    fn default() -> Self {
        let known = aws_lc_rs::default_provider().signature_verification_algorithms;
        Self {
            known,
            offered: known.supported_schemes(),
        }
    }
}

impl Trusting {
    /// Offers these signatures alone.
    #[must_use]
    pub fn of(offered: Vec<SignatureScheme>) -> Self {
        Self {
            offered,
            ..Self::default()
        }
    }
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.offered.clone()
    }
}
