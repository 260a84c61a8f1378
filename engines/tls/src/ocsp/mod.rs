//! OCSP, client role: requests about a certificate, and the verdict on a response.
//!
//! A [`Question`] is a certificate with its issuer. It makes the request, DER, and verifies the response: whether
//! it is about this certificate, is signed by an authorized responder of its issuer, and is valid now. Absent: the
//! transport; nonces, which would prevent cached responses; signed requests; and questions about several
//! certificates.
//!
//! Source: RFC 6960, RFC 5019; the checks with and without `ssl_stapling_verify` are those of nginx and OpenSSL.

#[cfg(test)]
#[path = "made_tests.rs"]
mod made;
mod response;
mod signer;
#[cfg(test)]
mod tests;

use std::fmt;

use aws_lc_rs::digest::{self, Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use super::keys::Chain;
use super::reason::Reason;
use super::verify::{Authorities, is_issued_by, is_signed};
use super::x509::{Certificate, access_location, der};
use response::{CertId, Response};

/// A certificate and its issuer for a status request, both DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    certificate: Vec<u8>,
    issuer: Vec<u8>,
}

/// Status of a certificate by a responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: Status,
    /// Start of its validity, seconds since 1970.
    pub from_s: i64,
    /// Time of the next update; `None` if it can come at any time.
    pub until_s: Option<i64>,
}

/// The status of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is not revoked.
    Good,
    /// It is.
    Revoked,
    /// The responder does not know it.
    Unknown,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "good",
            Self::Revoked => "revoked",
            Self::Unknown => "unknown",
        })
    }
}

/// Accepted signers of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Any signer named in the response: `ssl_stapling_verify off`. Clients verify for themselves.
    Named,
    /// The issuer, or a responder authorized by the issuer, with a path to one of these.
    Below(&'a Authorities),
}

/// Reason why an answer is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are no response.
    NotDer,
    /// The responder refused with this status.
    NotSuccessful(u8),
    /// The answer is of an unknown type, or contains no answer.
    NotBasic,
    /// There is a critical extension; none is supported.
    Critical,
    /// The certificate of whom the answer names is not there.
    NoSigner,
    /// The signature does not match the named signer.
    BadSignature,
    /// The signer is neither the issuer nor authorized by it.
    NotAllowed,
    /// The signer's certificate is not to be trusted.
    NotTrusted(Reason),
    /// The answer is about other certificates.
    NotFound,
    /// It begins to hold later.
    NotYetValid,
    /// It does not hold any more.
    Expired,
    /// It ends before it begins.
    EndsBefore,
}

impl fmt::Display for Fault {
    /// In nginx's words, with OpenSSL's reasons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let check = "OCSP_check_validity() failed";
        let verify = "OCSP_basic_verify() failed";
        match self {
            Self::NotDer => f.write_str("d2i_OCSP_RESPONSE() failed"),
            Self::NotSuccessful(status) => {
                let name = match status {
                    1 => "malformedrequest",
                    2 => "internalerror",
                    3 => "trylater",
                    5 => "sigrequired",
                    6 => "unauthorized",
                    _ => "(UNKNOWN)",
                };
                write!(f, "OCSP response not successful ({status}: {name})")
            }
            Self::NotBasic => f.write_str("OCSP_response_get1_basic() failed"),
            Self::Critical => f.write_str("unhandled critical extension in the OCSP response"),
            Self::NotFound => f.write_str("certificate status not found in the OCSP response"),
            Self::NoSigner => write!(f, "{verify} (signer certificate not found)"),
            Self::BadSignature => write!(f, "{verify} (signature failure)"),
            Self::NotAllowed => write!(f, "{verify} (missing ocspsigning usage)"),
            Self::NotTrusted(reason) => {
                write!(f, "{verify} (certificate verify error: {reason})")
            }
            Self::NotYetValid => write!(f, "{check} (status not yet valid)"),
            Self::Expired => write!(f, "{check} (status expired)"),
            Self::EndsBefore => write!(f, "{check} (nextupdate before thisupdate)"),
        }
    }
}

impl std::error::Error for Fault {}

impl Question {
    /// The question about the first certificate of a chain. Its issuer is in the chain or among these authorities;
    /// `None` if it is in neither.
    #[must_use]
    pub fn about(chain: &Chain, authorities: &Authorities) -> Option<Self> {
        let mut chain = chain.certificates();
        let der = chain.next()?;
        let certificate = Certificate::parse(der)?;
        let all = chain.chain(authorities.iter());
        let named = all.filter_map(Certificate::parse);
        let named: Vec<_> = named
            .filter(|issuer| is_issued_by(&certificate, issuer))
            .collect();
        // Among several with one name, choose the one that signed it; signatures with unsupported algorithms count
        // as valid.
        let (algorithm, signature) = (certificate.algorithm, certificate.signature);
        let mut signed = named.iter();
        let signed = signed.find(|i| is_signed(algorithm, certificate.signed, signature, i));
        let issuer = signed.or(named.first())?;
        Some(Self {
            certificate: der.to_vec(),
            issuer: issuer.der.to_vec(),
        })
    }

    /// URL of the responder in the certificate, if any.
    #[must_use]
    pub fn responder(&self) -> Option<&str> {
        let certificate = Certificate::parse(&self.certificate)?;
        let access = certificate.extensions.access?;
        std::str::from_utf8(access_location(access, OCSP)?).ok()
    }

    /// The certificate and its issuer, DER.
    #[must_use]
    pub fn certificates(&self) -> [&[u8]; 2] {
        [&self.certificate, &self.issuer]
    }

    /// The request, DER. It identifies the issuer by SHA-1, the one digest that every responder knows (RFC 5019
    /// section 2.1.1).
    #[must_use]
    pub fn request(&self) -> Vec<u8> {
        let (Some(certificate), Some(issuer)) = self.parsed() else {
            return Vec::new();
        };
        let hash = |bytes| digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
        let algorithm = der::encode(der::SEQUENCE, &[SHA1_OID, &[der::NULL, 0]]);
        let id = der::encode(
            der::SEQUENCE,
            &[
                &algorithm,
                &der::encode(der::OCTET_STRING, &[hash(certificate.issuer).as_ref()]),
                &der::encode(der::OCTET_STRING, &[hash(issuer.key).as_ref()]),
                &der::encode(der::INTEGER, &[certificate.serial]),
            ],
        );
        // A request about one certificate is only its id within nested sequences: request, list, requests and the
        // whole.
        (0..4).fold(id, |inner, _| der::encode(der::SEQUENCE, &[&inner]))
    }

    /// Evaluates a response, DER, for the certificate at a time in seconds since 1970. The signer's certificate is
    /// in the response, or among the server's own (`sent`).
    ///
    /// # Errors
    /// The reason why the response is not usable.
    pub fn judge(
        &self,
        response: &[u8],
        sent: &Chain,
        trust: Trust<'_>,
        now_s: i64,
    ) -> Result<Answer, Fault> {
        let (Some(certificate), Some(issuer)) = self.parsed() else {
            return Err(Fault::NotFound);
        };
        let response = Response::parse(response)?;
        signer::check(&response, &issuer, sent, trust, now_s)?;
        let mut about = response.singles.iter();
        let about = about.find(|single| is_about(&single.id, &certificate, &issuer));
        let about = about.ok_or(Fault::NotFound)?;
        if response.critical || about.critical {
            return Err(Fault::Critical);
        }
        let answer = about.answer;
        if answer.from_s > now_s.saturating_add(SKEW_S) {
            return Err(Fault::NotYetValid);
        }
        if let Some(until_s) = answer.until_s {
            if until_s < now_s.saturating_sub(SKEW_S) {
                return Err(Fault::Expired);
            }
            if until_s < answer.from_s {
                return Err(Fault::EndsBefore);
            }
        }
        Ok(answer)
    }

    /// Both are certificates, since a question is made of such.
    fn parsed(&self) -> (Option<Certificate<'_>>, Option<Certificate<'_>>) {
        let parse = |der| Certificate::parse(der);
        (parse(&self.certificate), parse(&self.issuer))
    }
}

/// Whether a response is about this certificate. A responder may identify it by another digest than the request
/// did.
fn is_about(id: &CertId<'_>, certificate: &Certificate<'_>, issuer: &Certificate<'_>) -> bool {
    let known = DIGESTS.iter().find(|(oid, _)| *oid == id.digest);
    known.is_some_and(|(_, algorithm)| {
        let hash = |bytes| digest::digest(algorithm, bytes);
        id.serial == certificate.serial
            && id.issuer_name == hash(certificate.issuer).as_ref()
            && id.issuer_key == hash(issuer.key).as_ref()
    })
}

/// Tolerated clock skew, in seconds; as in nginx.
pub const SKEW_S: i64 = 300;

/// `id-ad-ocsp`.
const OCSP: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1];
/// SHA-1, with tag and length.
const SHA1_OID: &[u8] = &[der::OID, 5, 0x2b, 14, 3, 2, 26];
/// Digests that certificates are meant by.
const DIGESTS: [(&[u8], &Algorithm); 2] = [
    (&[0x2b, 14, 3, 2, 26], &SHA1_FOR_LEGACY_USE_ONLY),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1], &SHA256),
];
