//! Certificates of clients during the handshake: any certificate is accepted if the client has its key.
//!
//! Trust is decided afterwards ([`Config::verify`](super::Config::verify)), so that a client without a trusted
//! certificate gets an explanatory answer, not a broken handshake.
//!
//! Source: nginx documentation, `ssl_verify_client`.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::signatures::Signatures;
use super::x509::Certificate;

/// Takes any certificate.
#[derive(Debug)]
pub(crate) struct AnyClient {
    hints: Vec<DistinguishedName>,
    signatures: Signatures,
}

impl AnyClient {
    /// Sends clients the names of these authorities.
    pub(crate) fn new(hints: Vec<DistinguishedName>) -> Self {
        Self {
            hints,
            signatures: Signatures::default(),
        }
    }
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match Certificate::parse(certificate) {
            Some(_) => Ok(ClientCertVerified::assertion()),
            None => Err(Error::InvalidCertificate(CertificateError::BadEncoding)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.schemes()
    }
}
