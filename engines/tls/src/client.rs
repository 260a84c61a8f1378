//! Certificates of clients during the handshake: any certificate is accepted if the client has its key.
//!
//! Trust is decided afterwards ([`Config::verify`](super::Config::verify)), so that a client without a trusted
//! certificate gets an explanatory answer, not a broken handshake.
//!
//! Source: nginx documentation, `ssl_verify_client`.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved,
    SignatureScheme,
};

use super::x509::Certificate;

/// Takes any certificate.
#[derive(Debug)]
pub(crate) struct AnyClient {
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyClient {
    /// Sends clients the names of these authorities.
    pub(crate) fn new(hints: Vec<DistinguishedName>) -> Self {
        Self {
            hints,
            algorithms: aws_lc_rs::default_provider().signature_verification_algorithms,
        }
    }

    fn verify(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        algorithms: usize,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = Certificate::parse(certificate)
            .ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let of_scheme = self.algorithms.mapping.iter();
        let (_, candidates) = of_scheme
            .clone()
            .find(|(scheme, _)| *scheme == signed.scheme)
            .ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let fits = |algorithm: &&&dyn SignatureVerificationAlgorithm| {
            algorithm.public_key_alg_id().as_ref() == certificate.key_algorithm
        };
        let candidates = &candidates[..candidates.len().min(algorithms)];
        let algorithm = candidates.iter().find(fits);
        let bad = Error::InvalidCertificate(CertificateError::BadSignature);
        let verified = algorithm.ok_or(bad.clone())?.verify_signature(
            certificate.key,
            message,
            signed.signature(),
        );
        verified
            .map(|()| HandshakeSignatureValid::assertion())
            .map_err(|_| bad)
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

    /// In TLS 1.2 the scheme does not determine the curve, so several algorithms are possible.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, certificate, signed, usize::MAX)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // RSA with PKCS #1 padding is for certificates alone (RFC 8446 section 4.2.3).
        if matches!(
            signed.scheme,
            SignatureScheme::RSA_PKCS1_SHA256
                | SignatureScheme::RSA_PKCS1_SHA384
                | SignatureScheme::RSA_PKCS1_SHA512
        ) {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        }
        self.verify(message, certificate, signed, 1)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
