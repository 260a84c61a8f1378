//! Reasons why certificates are not trusted, with OpenSSL's numbers and texts.
//!
//! Source: X509_STORE_CTX_get_error(3).

use std::fmt;

/// Reason why a certificate is not trusted: OpenSSL's number and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub u32, &'static str);

impl Reason {
    /// Whether the only fault is an unknown issuer (`optional_no_ca`).
    #[must_use]
    pub fn is_unknown_issuer(self) -> bool {
        matches!(
            self,
            NO_LOCAL_ISSUER | SELF_SIGNED_LEAF | SELF_SIGNED_IN_CHAIN | LEAF_NOT_VERIFIED
        )
    }

    /// Whether the certificate has expired, or is not yet valid.
    #[must_use]
    pub fn is_expired(self) -> bool {
        matches!(self, EXPIRED | NOT_YET_VALID)
    }

    /// Whether the certificate is revoked.
    #[must_use]
    pub fn is_revoked(self) -> bool {
        self == REVOKED
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }
}

pub(crate) const UNSPECIFIED: Reason = Reason(1, "unspecified certificate verification error");
pub(crate) const NO_ISSUER: Reason = Reason(2, "unable to get issuer certificate");
pub(crate) const NO_CRL: Reason = Reason(3, "unable to get certificate CRL");
pub(crate) const BAD_SIGNATURE: Reason = Reason(7, "certificate signature failure");
pub(crate) const CRL_SIGNATURE: Reason = Reason(8, "CRL signature failure");
pub(crate) const NOT_YET_VALID: Reason = Reason(9, "certificate is not yet valid");
pub(crate) const EXPIRED: Reason = Reason(10, "certificate has expired");
pub(crate) const CRL_NOT_YET: Reason = Reason(11, "CRL is not yet valid");
pub(crate) const CRL_EXPIRED: Reason = Reason(12, "CRL has expired");
pub(crate) const SELF_SIGNED_LEAF: Reason = Reason(18, "self-signed certificate");
pub(crate) const SELF_SIGNED_IN_CHAIN: Reason =
    Reason(19, "self-signed certificate in certificate chain");
pub(crate) const NO_LOCAL_ISSUER: Reason = Reason(20, "unable to get local issuer certificate");
pub(crate) const LEAF_NOT_VERIFIED: Reason = Reason(21, "unable to verify the first certificate");
pub(crate) const REVOKED: Reason = Reason(23, "certificate revoked");
pub(crate) const NO_AUTHORITY: Reason = Reason(24, "invalid CA certificate");
pub(crate) const PATH_LENGTH: Reason = Reason(25, "path length constraint exceeded");
pub(crate) const WRONG_PURPOSE: Reason = Reason(26, "unsuitable certificate purpose");
pub(crate) const NO_CERT_SIGN: Reason =
    Reason(32, "key usage does not include certificate signing");
pub(crate) const UNKNOWN_CRITICAL: Reason = Reason(34, "unhandled critical extension");
pub(crate) const CRL_NOT_ALLOWED: Reason = Reason(35, "key usage does not include CRL signing");
pub(crate) const CRL_CRITICAL: Reason = Reason(36, "unhandled critical CRL extension");
pub(crate) const NAME_NOT_PERMITTED: Reason = Reason(47, "permitted subtree violation");
