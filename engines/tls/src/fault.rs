//! Errors that end a connection, with their log messages.

use std::fmt;

use rustls::{AlertDescription, Error};

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
