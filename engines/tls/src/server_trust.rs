//! Whether a server is to be trusted, in the client role: OpenSSL's rules, in nginx's words.
//!
//! The certificate is checked during the handshake, so an untrusted server gets no certificate of ours and no request.
//! Absent: OCSP responses of servers.
//!
//! Source: nginx documentation, `proxy_ssl_verify`, `proxy_ssl_name`.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use super::host_names::is_valid_for;
use super::reason::Reason;
use super::signatures::Signatures;
use super::verify::{Authorities, Verifier};
use super::x509::{Certificate, Crl};

/// Verification of servers' certificates.
#[derive(Clone, Debug, Default)]
pub struct ServerAuth {
    /// Trusted certificates.
    pub trusted: Authorities,
    /// Lists of revoked certificates.
    pub crls: Vec<Crl>,
    /// Most certificates between the server's and the root.
    pub depth: usize,
}

/// Reason why a server's certificate is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFault {
    /// No trusted authority vouches for it.
    Untrusted(Reason),
    /// It is valid for other hosts than this.
    WrongName(Box<str>),
}

impl fmt::Display for ServerFault {
    /// As nginx's log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted(reason) => {
                let number = reason.0;
                write!(
                    f,
                    "upstream SSL certificate verify error: ({number}:{reason})"
                )
            }
            Self::WrongName(name) => {
                write!(f, "upstream SSL certificate does not match \"{name}\"")
            }
        }
    }
}

impl std::error::Error for ServerFault {}

impl ServerFault {
    /// The fault in an error of rustls.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        match error {
            Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
                inner.downcast_ref().cloned()
            }
            _ => None,
        }
    }
}

impl From<ServerFault> for Error {
    fn from(fault: ServerFault) -> Self {
        Self::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(fault))))
    }
}

/// Checks servers' certificates of any version: trust and name, or only that the server has the key.
#[derive(Debug)]
pub(crate) struct UpstreamServer {
    trust: Option<Verifier>,
    signatures: Signatures,
}

impl UpstreamServer {
    /// Checks as `auth` demands; `None`: any certificate is accepted.
    pub(crate) fn new(auth: Option<ServerAuth>) -> Self {
        Self {
            trust: auth.map(|auth| Verifier::new(auth.trusted, auth.crls, auth.depth)),
            signatures: Signatures::default(),
        }
    }
}

impl ServerCertVerifier for UpstreamServer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(parsed) = Certificate::parse(certificate) else {
            return Err(Error::InvalidCertificate(CertificateError::BadEncoding));
        };
        if let Some(trust) = &self.trust {
            let sent = std::iter::once(certificate).chain(others);
            let sent: Vec<&[u8]> = sent.map(AsRef::as_ref).collect();
            let trusted = trust.verify_server(&sent, now.as_secs());
            trusted.map_err(ServerFault::Untrusted)?;
            let name = name.to_str();
            if !is_valid_for(&parsed, name.as_bytes()) {
                return Err(ServerFault::WrongName(name.into()).into());
            }
        }
        Ok(ServerCertVerified::assertion())
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
