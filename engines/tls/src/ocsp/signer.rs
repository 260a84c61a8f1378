//! Finds the signer of an OCSP response, and checks its authority.
//!
//! Without `ssl_stapling_verify` the signature must only match the signer named in the response. With it the signer
//! is the issuer of the certificate, or has a certificate for this purpose from that very issuer. A certificate
//! that the server itself sends is trusted; any other must lead to an authority. Absent: OpenSSL's roots that are
//! trusted for the whole purpose, and its trust in all other certificates sent by the server.
//!
//! Source: RFC 6960 section 4.2.2.2; OpenSSL, OCSP_basic_verify(3).

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};

use super::super::keys::Chain;
use super::super::verify::{Authorities, Verifier, is_issued_by, is_signed};
use super::super::x509::{Certificate, dn};
use super::response::{Responder, Response};
use super::{Fault, Trust};

/// Checks the signature of a response about a certificate of this issuer.
pub(super) fn check(
    response: &Response<'_>,
    issuer: &Certificate<'_>,
    sent: &Chain,
    trust: Trust<'_>,
    now_s: i64,
) -> Result<(), Fault> {
    let shown: Vec<&[u8]> = sent.certificates().skip(1).collect();
    let all = shown
        .iter()
        .chain([&issuer.der])
        .chain(&response.certificates);
    let parsed = all.filter_map(|der| Certificate::parse(der));
    let mut named = parsed.filter(|certificate| is_named(&response.responder, certificate));
    let first = named.next().ok_or(Fault::NoSigner)?;
    // Several may have the name, since keys are renewed.
    let signed = |signer: &Certificate<'_>| {
        is_signed(
            response.algorithm,
            response.signed,
            response.signature,
            signer,
        )
    };
    let mut named = std::iter::once(first).chain(named);
    let signer = named.find(signed).ok_or(Fault::BadSignature)?;
    let Trust::Below(authorities) = trust else {
        return Ok(());
    };
    let is_issuer = signer.key == issuer.key && signer.subject == issuer.subject;
    if !is_issuer && !is_delegate(&signer, issuer) {
        return Err(Fault::NotAllowed);
    }
    if shown.contains(&signer.der) {
        return Ok(());
    }
    leads_to(authorities, &signer, issuer, response, now_s)
}

fn is_named(responder: &Responder<'_>, certificate: &Certificate<'_>) -> bool {
    match responder {
        Responder::Name(name) => dn::canonical(name) == dn::canonical(certificate.subject),
        Responder::Key(hash) => {
            digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, certificate.key).as_ref() == *hash
        }
    }
}

/// Whether the issuer itself authorized it as responder.
fn is_delegate(signer: &Certificate<'_>, issuer: &Certificate<'_>) -> bool {
    signer.extensions.for_responders
        && is_issued_by(signer, issuer)
        && is_signed(signer.algorithm, signer.signed, signer.signature, issuer)
}

/// Whether the way from the signer ends at an authority.
fn leads_to(
    authorities: &Authorities,
    signer: &Certificate<'_>,
    issuer: &Certificate<'_>,
    response: &Response<'_>,
    now_s: i64,
) -> Result<(), Fault> {
    let others = [issuer.der]
        .into_iter()
        .chain(response.certificates.iter().copied());
    let way: Vec<_> = [signer.der].into_iter().chain(others).collect();
    let verifier = Verifier::new(authorities.clone(), Vec::new(), DEPTH_MAX);
    verifier
        .verify_responder(&way, now_s)
        .map_err(Fault::NotTrusted)
}

/// Most certificates between a signer's and the root; as in OpenSSL.
const DEPTH_MAX: usize = 100;
