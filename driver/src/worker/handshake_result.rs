//! Results of TLS handshakes as counters distinguish them, with clients and with servers.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "SSL".

use server_base::handshakes::{CertificateFault, HandshakeFailure};
use tls::{Fault, Reason, ServerFault};

/// Returns why a handshake failed.
pub(crate) fn failure_of(fault: &Fault) -> HandshakeFailure {
    match fault {
        Fault::Server(ServerFault::WrongName(_)) => {
            HandshakeFailure::Certificate(CertificateFault::WrongName)
        }
        Fault::Server(ServerFault::Untrusted(reason)) => {
            HandshakeFailure::Certificate(certificate_fault(*reason))
        }
        fault if fault.is_version_mismatch() => HandshakeFailure::NoCommonProtocol,
        fault if fault.is_cipher_mismatch() => HandshakeFailure::NoCommonCipher,
        fault if fault.is_refused_certificate() => HandshakeFailure::RejectedCertificate,
        _ => HandshakeFailure::Other,
    }
}

/// Returns the kind of a reason for which a certificate is refused.
pub(crate) fn certificate_fault(reason: Reason) -> CertificateFault {
    match reason {
        reason if reason.is_expired() => CertificateFault::Expired,
        reason if reason.is_revoked() => CertificateFault::Revoked,
        _ => CertificateFault::Other,
    }
}
