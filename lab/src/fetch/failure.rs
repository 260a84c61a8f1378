//! Why there is no response, or no whole one.

use std::fmt;

use tls::Fault;

use super::response::Response;
use crate::client::trust::{error_name, is_of_certificate};

/// A connection or an exchange that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its cause.
    pub cause: FailureCause,
    /// One sentence for people.
    pub message: String,
    /// The received part of the response, if its head was complete.
    pub partial: Option<Box<Response>>,
}

/// Causes of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureCause {
    /// The host has no known address.
    Name,
    /// No TCP connection was made, or it broke.
    Connect,
    /// TLS failed: no common version, a certificate that is not trusted, an alert.
    Tls,
    /// The request cannot be sent.
    Request,
    /// The server did not process it. It may be sent again, on another connection if this one accepts no more.
    Refused,
    /// The server broke its protocol, or gave the response up.
    Protocol,
    /// The server closed the connection.
    Closed,
    /// The time was up.
    Timeout,
    /// The server sent more than a limit allows.
    Limit,
}

impl Failure {
    pub(crate) fn new(cause: FailureCause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            partial: None,
        }
    }

    /// Makes a TLS failure. If the certificate is the reason, the message names the option `--insecure`.
    pub(super) fn of_tls(fault: &Fault) -> Self {
        let hint = match is_of_certificate(fault) {
            true => INSECURE_HINT,
            false => "",
        };
        Self::new(FailureCause::Tls, error_name(fault) + hint)
    }

    /// Its message without options of verbs.
    pub(super) fn without_hint(self) -> String {
        let message = self.message;
        let plain = message.strip_suffix(INSECURE_HINT);
        plain.map(str::to_owned).unwrap_or(message)
    }

    /// Adds the received part of the response.
    pub(crate) fn with(mut self, partial: Option<Box<Response>>) -> Self {
        self.partial = partial;
        self
    }
}

/// The hint of verbs behind an error of a certificate.
const INSECURE_HINT: &str = "; --insecure accepts any";

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
