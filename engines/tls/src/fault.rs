//! Errors that end a connection, with their log messages.

use std::fmt;

use rustls::{AlertDescription, Error, PeerIncompatible};

use super::server_trust::ServerFault;

/// Error that ends a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Plain HTTP came instead of a handshake.
    PlainHttp,
    /// Bytes that are no TLS.
    NotTls,
    /// The requested name is refused (`ssl_reject_handshake`).
    Rejected,
    /// A certificate chosen at the handshake could not be loaded.
    NoCertificate,
    /// The peer sent an alert.
    Alert(AlertDescription),
    /// Too many bytes came without plaintext.
    Empty,
    /// The server's certificate is refused.
    Server(ServerFault),
    /// The peer and the configuration have no protocol version, cipher or the like in common, or the peer broke TLS.
    Protocol(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::AlertReceived(alert) => Self::Alert(alert),
            other => match ServerFault::of(&other) {
                Some(fault) => Self::Server(fault),
                None => Self::Protocol(other),
            },
        }
    }
}

impl Fault {
    /// Whether the two sides have no version of TLS in common.
    #[must_use]
    pub fn is_version_mismatch(&self) -> bool {
        matches!(
            self,
            Self::Alert(AlertDescription::ProtocolVersion)
                | Self::Protocol(Error::PeerIncompatible(
                    PeerIncompatible::ServerDoesNotSupportTls12Or13
                        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                        | PeerIncompatible::SupportedVersionsExtensionRequired
                        | PeerIncompatible::Tls12NotOffered
                        | PeerIncompatible::Tls12NotOfferedOrEnabled
                ))
        )
    }

    /// Whether the two sides have no cipher in common.
    #[must_use]
    pub fn is_cipher_mismatch(&self) -> bool {
        let none = PeerIncompatible::NoCipherSuitesInCommon;
        matches!(self, Self::Protocol(Error::PeerIncompatible(why)) if *why == none)
    }

    /// Whether the peer has refused our certificate (RFC 8446 section 6.2).
    #[must_use]
    pub fn is_refused_certificate(&self) -> bool {
        matches!(
            self,
            Self::Alert(
                AlertDescription::BadCertificate
                    | AlertDescription::UnsupportedCertificate
                    | AlertDescription::CertificateRevoked
                    | AlertDescription::CertificateExpired
                    | AlertDescription::CertificateUnknown
                    | AlertDescription::UnknownCA
            )
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlainHttp => f.write_str("client sent plain HTTP request to HTTPS port"),
            Self::NotTls => f.write_str("SSL_do_handshake() failed (wrong version number)"),
            Self::Rejected => {
                f.write_str("SSL_do_handshake() failed (callback failed: handshake rejected)")
            }
            Self::NoCertificate => f.write_str("SSL_do_handshake() failed (cert cb error)"),
            Self::Alert(alert) => {
                write!(f, "SSL_do_handshake() failed (peer sent alert {alert:?})")
            }
            Self::Empty => f.write_str("SSL_read() failed (too many records without data)"),
            Self::Server(fault) => fault.fmt(f),
            Self::Protocol(error) => write!(f, "SSL_do_handshake() failed ({error})"),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_apart_by_their_cause() {
        let incompatible = |why: PeerIncompatible| Fault::from(Error::from(why));
        for (fault, expected) in [
            (
                incompatible(PeerIncompatible::Tls12NotOffered),
                [true, false, false],
            ),
            (
                Fault::Alert(AlertDescription::ProtocolVersion),
                [true, false, false],
            ),
            (
                incompatible(PeerIncompatible::NoCipherSuitesInCommon),
                [false, true, false],
            ),
            (
                Fault::Alert(AlertDescription::UnknownCA),
                [false, false, true],
            ),
            (
                Fault::Alert(AlertDescription::CertificateExpired),
                [false, false, true],
            ),
            (Fault::Alert(AlertDescription::HandshakeFailure), [false; 3]),
            (
                incompatible(PeerIncompatible::NoKxGroupsInCommon),
                [false; 3],
            ),
            (Fault::NotTls, [false; 3]),
        ] {
            let causes = [
                fault.is_version_mismatch(),
                fault.is_cipher_mismatch(),
                fault.is_refused_certificate(),
            ];
            assert_eq!(causes, expected, "{fault}");
        }
    }
}
