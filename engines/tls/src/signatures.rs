//! Signatures of handshakes, by the keys of certificates of any version.
//!
//! rustls's own functions read certificates of version 3 only. Many home-made authorities issue version 1.
//!
//! Source: RFC 8446 section 4.4.3, RFC 5246 section 7.4.3.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme};

use super::x509::Certificate;

/// The accepted signatures of handshakes.
#[derive(Debug)]
pub(crate) struct Signatures(WebPkiSupportedAlgorithms);

impl Default for Signatures {
    /// The algorithms of the cryptographic library.
    fn default() -> Self {
        Self(aws_lc_rs::default_provider().signature_verification_algorithms)
    }
}

impl Signatures {
    /// Verifies a signature of TLS 1.2. There the scheme does not determine the curve, so several algorithms are
    /// possible.
    ///
    /// # Errors
    /// The signature is invalid, or of a scheme that was not offered.
    pub(crate) fn verify_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, certificate, signed, usize::MAX)
    }

    /// Verifies a signature of TLS 1.3.
    ///
    /// # Errors
    /// Those of [`Self::verify_tls12`].
    pub(crate) fn verify_tls13(
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

    /// The schemes to offer.
    pub(crate) fn schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
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
        let of_scheme = self.0.mapping.iter();
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
