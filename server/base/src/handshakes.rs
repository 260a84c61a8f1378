//! Counts of TLS handshakes: of the process, of zones of servers, and of upstream servers.
//!
//! Absent: the handshakes themselves, and the reading of their errors, which belong to the driver.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "SSL".

/// The result of a TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeResult {
    /// It succeeded without a session.
    Full,
    /// It resumed a session.
    Resumed,
    /// It failed.
    Failed(HandshakeFailure),
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The two sides have no version of TLS in common.
    NoCommonProtocol,
    /// The two sides have no cipher in common.
    NoCommonCipher,
    /// It took too long.
    TimedOut,
    /// The peer refused our certificate with an alert.
    RejectedCertificate,
    /// We refused the peer's certificate.
    Certificate(CertificateFault),
    /// Any other reason.
    Other,
}

/// Why the certificate of a peer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// A client sent no certificate, although one is required.
    Missing,
    /// It has expired, or is not yet valid.
    Expired,
    /// It is revoked.
    Revoked,
    /// It is valid for other hosts.
    WrongName,
    /// Any other reason.
    Other,
}

/// Counts of TLS handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeCounts {
    /// Handshakes that succeeded.
    pub succeeded: u64,
    /// Handshakes that resumed a session, among those that succeeded.
    pub resumed: u64,
    /// Handshakes that failed.
    pub failed: u64,
    /// Failed handshakes: [`HandshakeFailure::NoCommonProtocol`].
    pub no_common_protocol: u64,
    /// Failed handshakes: [`HandshakeFailure::NoCommonCipher`].
    pub no_common_cipher: u64,
    /// Failed handshakes: [`HandshakeFailure::TimedOut`].
    pub timed_out: u64,
    /// Failed handshakes: [`HandshakeFailure::RejectedCertificate`].
    pub rejected_certificate: u64,
    /// Refused certificates by [`CertificateFault`]. The handshake of a client succeeds nevertheless; its requests fail.
    pub certificates: [u64; CERTIFICATE_FAULTS],
}

/// Number of values of [`CertificateFault`].
pub const CERTIFICATE_FAULTS: usize = CertificateFault::Other as usize + 1;

impl HandshakeCounts {
    /// No handshakes.
    pub const NONE: Self = Self {
        succeeded: 0,
        resumed: 0,
        failed: 0,
        no_common_protocol: 0,
        no_common_cipher: 0,
        timed_out: 0,
        rejected_certificate: 0,
        certificates: [0; CERTIFICATE_FAULTS],
    };

    /// Counts a handshake.
    pub fn count(&mut self, result: HandshakeResult) {
        let failure = match result {
            HandshakeResult::Full => {
                self.succeeded += 1;
                return;
            }
            HandshakeResult::Resumed => {
                self.succeeded += 1;
                self.resumed += 1;
                return;
            }
            HandshakeResult::Failed(failure) => failure,
        };
        self.failed += 1;
        match failure {
            HandshakeFailure::NoCommonProtocol => self.no_common_protocol += 1,
            HandshakeFailure::NoCommonCipher => self.no_common_cipher += 1,
            HandshakeFailure::TimedOut => self.timed_out += 1,
            HandshakeFailure::RejectedCertificate => self.rejected_certificate += 1,
            HandshakeFailure::Certificate(fault) => self.count_certificate(fault),
            HandshakeFailure::Other => {}
        }
    }

    /// Counts a refused certificate.
    pub fn count_certificate(&mut self, fault: CertificateFault) {
        self.certificates[fault as usize] += 1;
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.succeeded += other.succeeded;
        self.resumed += other.resumed;
        self.failed += other.failed;
        self.no_common_protocol += other.no_common_protocol;
        self.no_common_cipher += other.no_common_cipher;
        self.timed_out += other.timed_out;
        self.rejected_certificate += other.rejected_certificate;
        for (sum, count) in self.certificates.iter_mut().zip(other.certificates) {
            *sum += count;
        }
    }

    /// Returns the counts since `earlier`, an earlier value of these.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut certificates = self.certificates;
        for (count, earlier) in certificates.iter_mut().zip(earlier.certificates) {
            *count -= earlier;
        }
        Self {
            succeeded: self.succeeded - earlier.succeeded,
            resumed: self.resumed - earlier.resumed,
            failed: self.failed - earlier.failed,
            no_common_protocol: self.no_common_protocol - earlier.no_common_protocol,
            no_common_cipher: self.no_common_cipher - earlier.no_common_cipher,
            timed_out: self.timed_out - earlier.timed_out,
            rejected_certificate: self.rejected_certificate - earlier.rejected_certificate,
            certificates,
        }
    }

    /// Returns the number of certificates refused for a reason.
    pub fn refused_certificates(&self, fault: CertificateFault) -> u64 {
        self.certificates[fault as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_has_its_counts() {
        let mut counts = HandshakeCounts::default();
        counts.count(HandshakeResult::Full);
        counts.count(HandshakeResult::Resumed);
        for failure in [
            HandshakeFailure::NoCommonProtocol,
            HandshakeFailure::NoCommonCipher,
            HandshakeFailure::TimedOut,
            HandshakeFailure::RejectedCertificate,
            HandshakeFailure::Certificate(CertificateFault::WrongName),
            HandshakeFailure::Other,
        ] {
            counts.count(HandshakeResult::Failed(failure));
        }
        counts.count_certificate(CertificateFault::Missing);
        let expected = HandshakeCounts {
            succeeded: 2,
            resumed: 1,
            failed: 6,
            no_common_protocol: 1,
            no_common_cipher: 1,
            timed_out: 1,
            rejected_certificate: 1,
            certificates: [1, 0, 0, 1, 0],
        };
        assert_eq!(counts, expected);
        let mut twice = counts;
        twice.add(&counts);
        assert_eq!(twice.since(&counts), expected);
        assert_eq!(twice.refused_certificates(CertificateFault::Missing), 2);
        assert_eq!(twice.refused_certificates(CertificateFault::Other), 0);
    }
}
