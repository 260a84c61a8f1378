//! Whether a certificate of a client or a server is trusted, by OpenSSL's rules and in its words.
//!
//! A path is built from the peer's certificate to a self-issued certificate among the trusted ones. The whole
//! path is then checked. Of several faults the last one found is returned, in OpenSSL's order of checks, because
//! nginx shows that one. Certificates of version 1, which many home-made authorities issue, are handled as in
//! OpenSSL.
//!
//! rustls's own verifier does not support version 1 and has other words. So it is used for one thing only: if a
//! certificate of the path limits names, it must agree. Absent: certificate policies, and OpenSSL's security
//! levels. Instead, signatures count only with keys and digests that rustls accepts (RSA from 2048 bits, no SHA-1).
//!
//! Source: RFC 5280 section 6; openssl-verification-options(1).

use std::collections::HashMap;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};

use super::host_names;
use super::reason::{
    BAD_SIGNATURE, CRL_CRITICAL, CRL_EXPIRED, CRL_NOT_ALLOWED, CRL_NOT_YET, CRL_SIGNATURE, EXPIRED,
    LEAF_NOT_VERIFIED, NAME_NOT_PERMITTED, NO_AUTHORITY, NO_CERT_SIGN, NO_CRL, NO_ISSUER,
    NO_LOCAL_ISSUER, NOT_YET_VALID, PATH_LENGTH, REVOKED, Reason, SELF_SIGNED_IN_CHAIN,
    SELF_SIGNED_LEAF, UNKNOWN_CRITICAL, UNSPECIFIED, WRONG_PURPOSE,
};
use super::x509::{
    CRL_SIGN, Certificate, Crl, DIGITAL_SIGNATURE, FileFault, KEY_AGREEMENT, KEY_CERT_SIGN,
    KEY_ENCIPHERMENT, certificates, dn,
};

/// Result of verifying a client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// There is none.
    None,
    /// It is to be trusted.
    Success,
    /// It is not.
    Failed(Reason),
}

/// Certificates trusted to issue others.
#[derive(Clone, Debug, Default)]
pub struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// Reads certificates from PEM.
    ///
    /// # Errors
    /// There is none, or one is damaged.
    pub fn from_pem(text: &[u8]) -> Result<Self, FileFault> {
        Ok(Self {
            certificates: certificates(text)?,
        })
    }

    /// Adds those of another.
    pub fn extend(&mut self, other: &Self) {
        for certificate in &other.certificates {
            if !self.certificates.contains(certificate) {
                self.certificates.push(certificate.clone());
            }
        }
    }

    /// The certificates, DER.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.certificates.iter().map(AsRef::as_ref)
    }
}

/// Checks certificates.
#[derive(Debug)]
pub(crate) struct Verifier {
    trusted: Authorities,
    /// The trusted certificates by their names.
    by_name: HashMap<Vec<u8>, Vec<usize>>,
    /// Lists of revoked certificates; if there are any, there must be one for every issuer.
    crls: Vec<Crl>,
    /// Most certificates between the client's and the root.
    depth: usize,
    roots: Arc<RootCertStore>,
    names: Option<Arc<dyn ClientCertVerifier>>,
}

/// A path while it is built.
struct Path<'c> {
    certificates: Vec<Certificate<'c>>,
    /// It ends at a trusted self-issued certificate.
    complete: bool,
    fault: Option<Reason>,
}

impl Verifier {
    pub(crate) fn new(trusted: Authorities, crls: Vec<Crl>, depth: usize) -> Self {
        let mut by_name: HashMap<_, Vec<usize>> = HashMap::new();
        for (n, der) in trusted.iter().enumerate() {
            if let Some(certificate) = Certificate::parse(der) {
                by_name
                    .entry(dn::canonical(certificate.subject))
                    .or_default()
                    .push(n);
            }
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.certificates.iter().cloned());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let roots = Arc::new(roots);
        let names =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider).build();
        Self {
            trusted,
            by_name,
            crls,
            depth,
            roots,
            names: names.ok(),
        }
    }

    /// Checks a client's certificates, its own first, at a time in seconds since 1970.
    pub(crate) fn verify(&self, sent: &[Vec<u8>], now_s: u64) -> Verified {
        if sent.is_empty() {
            return Verified::None;
        }
        let sent: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
        match self.verify_peer(&sent, Purpose::Client, now_s) {
            Ok(()) => Verified::Success,
            Err(reason) => Verified::Failed(reason),
        }
    }

    /// Checks a server's certificates, its own first, at a time in seconds since 1970. Its name is not checked.
    ///
    /// # Errors
    /// The reason why the server is not trusted.
    pub(crate) fn verify_server(&self, sent: &[&[u8]], now_s: u64) -> Result<(), Reason> {
        self.verify_peer(sent, Purpose::Server, now_s)
    }

    fn verify_peer(&self, sent: &[&[u8]], purpose: Purpose, now_s: u64) -> Result<(), Reason> {
        let parsed: Vec<_> = sent
            .iter()
            .map_while(|der| Certificate::parse(der))
            .collect();
        if parsed.is_empty() || parsed.len() != sent.len() {
            return Err(UNSPECIFIED);
        }
        let now = i64::try_from(now_s).unwrap_or(i64::MAX);
        let path = self.build(&parsed, now);
        let fault = self.check(&path, purpose, now);
        let mut all = path.certificates.iter();
        let constrains_names = all.any(|c| c.extensions.constrains_names);
        match fault {
            Some(reason) => Err(reason),
            None if !path.complete => Err(UNSPECIFIED),
            None if constrains_names && !self.names_are_allowed(&path, purpose, now_s) => {
                Err(NAME_NOT_PERMITTED)
            }
            None => Ok(()),
        }
    }

    /// Checks the certificate of an OCSP signer, the first of these, with the known path above it. Limits of names
    /// are not checked: the issuer of the certificate in question made it a responder itself.
    pub(crate) fn verify_responder(&self, sent: &[&[u8]], now: i64) -> Result<(), Reason> {
        let parsed: Vec<_> = sent
            .iter()
            .filter_map(|der| Certificate::parse(der))
            .collect();
        if parsed.is_empty() {
            return Err(UNSPECIFIED);
        }
        let path = self.build(&parsed, now);
        match self.check(&path, Purpose::Responder, now) {
            Some(reason) => Err(reason),
            None if !path.complete => Err(UNSPECIFIED),
            None => Ok(()),
        }
    }

    /// Returns the fault of a path; of several the last.
    fn check(&self, path: &Path<'_>, purpose: Purpose, now: i64) -> Option<Reason> {
        let mut fault = path.fault;
        let mut tell = |reason| fault = Some(reason);
        check_extensions(path, purpose, &mut tell);
        self.check_revocation(path, now, &mut tell);
        check_signatures(path, now, &mut tell);
        fault
    }

    /// Builds the path: trusted certificates are preferred to those from the peer.
    fn build<'c>(&'c self, sent: &[Certificate<'c>], now: i64) -> Path<'c> {
        let mut path = vec![sent[0].clone()];
        let mut used = vec![0];
        let mut among_trusted = false;
        let (complete, fault) = loop {
            let last = &path[path.len() - 1];
            if last.is_self_issued() && is_issued_by(last, last) {
                if self.is_trusted(last) {
                    break (true, None);
                }
                break (
                    false,
                    Some(if path.len() == 1 {
                        SELF_SIGNED_LEAF
                    } else {
                        SELF_SIGNED_IN_CHAIN
                    }),
                );
            }
            // OpenSSL reports a path that would be too long as a missing next certificate.
            let missing = if among_trusted {
                NO_ISSUER
            } else {
                NO_LOCAL_ISSUER
            };
            if path.len() >= self.depth + PATH_ENDS {
                break (false, Some(missing));
            }
            if let Some(issuer) = self.trusted_issuer(last, now) {
                among_trusted = true;
                path.push(issuer);
                continue;
            }
            if among_trusted {
                break (false, Some(missing));
            }
            let next = (0..sent.len()).find(|n| !used.contains(n) && is_issued_by(last, &sent[*n]));
            match next {
                Some(n) => {
                    used.push(n);
                    path.push(sent[n].clone());
                }
                None => break (false, Some(missing)),
            }
        };
        Path {
            certificates: path,
            complete,
            fault,
        }
    }

    fn is_trusted(&self, certificate: &Certificate<'_>) -> bool {
        self.trusted.iter().any(|der| der == certificate.der)
    }

    /// The trusted certificate that may have issued one; among several, one that is valid now.
    fn trusted_issuer(&self, certificate: &Certificate<'_>, now: i64) -> Option<Certificate<'_>> {
        let same_name = self.by_name.get(&dn::canonical(certificate.issuer))?;
        let candidates = same_name
            .iter()
            .filter_map(|n| Certificate::parse(&self.trusted.certificates[*n]))
            .filter(|issuer| is_issued_by(certificate, issuer));
        let mut first = None;
        for issuer in candidates {
            if is_valid(&issuer, now).is_none() {
                return Some(issuer);
            }
            first.get_or_insert(issuer);
        }
        first
    }

    /// Every certificate of the path needs a list of its issuer, and must not be in it.
    fn check_revocation(&self, path: &Path<'_>, now: i64, tell: &mut dyn FnMut(Reason)) {
        if self.crls.is_empty() {
            return;
        }
        for (n, certificate) in path.certificates.iter().enumerate() {
            let name = dn::canonical(certificate.issuer);
            let list = self
                .crls
                .iter()
                .filter(|crl| crl.issuer == name)
                .max_by_key(|crl| crl.from_s);
            let Some(list) = list else {
                tell(NO_CRL);
                continue;
            };
            // The last certificate of a complete path issued itself.
            let issuer = path.certificates.get(n + 1).unwrap_or(certificate);
            if list.critical {
                tell(CRL_CRITICAL);
            }
            if !issuer.may(CRL_SIGN) {
                tell(CRL_NOT_ALLOWED);
            }
            if list.from_s > now {
                tell(CRL_NOT_YET);
            }
            if list.until_s.is_some_and(|until| until < now) {
                tell(CRL_EXPIRED);
            }
            if !is_signed(&list.algorithm, &list.signed, &list.signature, issuer) {
                tell(CRL_SIGNATURE);
            }
            if list.revokes(certificate.serial) {
                tell(REVOKED);
            }
        }
    }

    /// Whether rustls finds the names of the path within the limits its certificates set.
    fn names_are_allowed(&self, path: &Path<'_>, purpose: Purpose, now_s: u64) -> bool {
        let der = |certificate: &Certificate<'_>| CertificateDer::from(certificate.der.to_vec());
        let all: Vec<_> = path.certificates.iter().map(der).collect();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now_s));
        if purpose == Purpose::Server {
            let algorithms = aws_lc_rs::default_provider()
                .signature_verification_algorithms
                .all;
            // Common names are not checked against the limits.
            if host_names::relies_on_common_name(&path.certificates[0]) {
                return false;
            }
            return ParsedCertificate::try_from(&all[0]).is_ok_and(|leaf| {
                let (roots, others) = (&self.roots, &all[1..]);
                verify_server_cert_signed_by_trust_anchor(&leaf, roots, others, now, algorithms)
                    .is_ok()
            });
        }
        let Some(verifier) = &self.names else {
            return false;
        };
        verifier.verify_client_cert(&all[0], &all[1..], now).is_ok()
    }
}

/// Purpose of the first certificate of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A client shows it.
    Client,
    /// A server shows it.
    Server,
    /// It signs OCSP responses.
    Responder,
}

/// Extensions, purposes, lengths of paths.
fn check_extensions(path: &Path<'_>, purpose: Purpose, tell: &mut dyn FnMut(Reason)) {
    // Number of certificates between this one and the peer's that are not self-issued.
    let mut between = 0;
    for (n, certificate) in path.certificates.iter().enumerate() {
        let extensions = &certificate.extensions;
        if extensions.unknown_critical {
            tell(UNKNOWN_CRITICAL);
        }
        let may_be_here = match n {
            0 if purpose == Purpose::Server => {
                certificate.may(DIGITAL_SIGNATURE | KEY_ENCIPHERMENT | KEY_AGREEMENT)
            }
            0 => certificate.may(DIGITAL_SIGNATURE | KEY_AGREEMENT),
            _ => certificate.is_authority(),
        };
        if n > 0 && !may_be_here {
            tell(NO_AUTHORITY);
        }
        let permitted = match purpose {
            Purpose::Client => extensions.for_clients,
            Purpose::Server => extensions.for_servers,
            Purpose::Responder => None,
        };
        let is_suitable = permitted != Some(false) && may_be_here;
        if purpose != Purpose::Responder && !is_suitable {
            tell(WRONG_PURPOSE);
        }
        if let Some((true, Some(longest))) = extensions.basic
            && n > 1
            && between > longest as usize
        {
            tell(PATH_LENGTH);
        }
        if n > 0 && !certificate.is_self_issued() {
            between += 1;
        }
    }
}

/// Signatures and times, from the root to the client's certificate.
fn check_signatures(path: &Path<'_>, now: i64, tell: &mut dyn FnMut(Reason)) {
    let all = &path.certificates;
    let last = &all[all.len() - 1];
    let own_issuer = last.is_self_issued() && is_issued_by(last, last);
    if all.len() == 1 && !own_issuer {
        tell(LEAF_NOT_VERIFIED);
    }
    for n in (0..all.len()).rev() {
        match all.get(n + 1) {
            Some(issuer) => {
                let certificate = &all[n];
                if !issuer.may(KEY_CERT_SIGN) {
                    tell(NO_CERT_SIGN);
                }
                let (signed, signature) = (certificate.signed, certificate.signature);
                if !is_signed(certificate.algorithm, signed, signature, issuer) {
                    tell(BAD_SIGNATURE);
                }
            }
            // OpenSSL does not check a last certificate without an issuer.
            None if !own_issuer && all.len() > 1 => continue,
            None => {}
        }
        if let Some(reason) = is_valid(&all[n], now) {
            tell(reason);
        }
    }
}

/// Returns the fault of a certificate at a time.
fn is_valid(certificate: &Certificate<'_>, now: i64) -> Option<Reason> {
    if now < certificate.not_before.unix_s() {
        Some(NOT_YET_VALID)
    } else if now > certificate.not_after.unix_s() {
        Some(EXPIRED)
    } else {
        None
    }
}

/// Whether one certificate names another as its issuer.
pub(crate) fn is_issued_by(certificate: &Certificate<'_>, issuer: &Certificate<'_>) -> bool {
    let same_name = certificate.issuer == issuer.subject
        || dn::canonical(certificate.issuer) == dn::canonical(issuer.subject);
    let ids = (
        certificate.extensions.issuer_key_id,
        issuer.extensions.key_id,
    );
    same_name && !matches!(ids, (Some(named), Some(own)) if named != own)
}

/// Whether a signature was made with a certificate's key.
pub(crate) fn is_signed(
    algorithm: &[u8],
    signed: &[u8],
    signature: &[u8],
    issuer: &Certificate<'_>,
) -> bool {
    let known = aws_lc_rs::default_provider().signature_verification_algorithms;
    let fits = known.all.iter().filter(|known| {
        known.signature_alg_id().as_ref() == algorithm
            && known.public_key_alg_id().as_ref() == issuer.key_algorithm
    });
    fits.into_iter().any(|known| {
        known
            .verify_signature(issuer.key, signed, signature)
            .is_ok()
    })
}

/// The client's certificate and the root.
const PATH_ENDS: usize = 2;
