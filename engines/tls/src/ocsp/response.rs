//! An OCSP response, parsed; its signature is checked elsewhere.
//!
//! Source: RFC 6960 section 4.2.1.

use super::super::x509::der::{self, Reader};
use super::super::x509::{Time, has_critical};
use super::{Answer, Fault, Status};

/// A basic response.
#[derive(Debug)]
pub(super) struct Response<'a> {
    /// Signed part.
    pub(super) signed: &'a [u8],
    /// How.
    pub(super) algorithm: &'a [u8],
    pub(super) signature: &'a [u8],
    /// Signer.
    pub(super) responder: Responder<'a>,
    /// Certificates for its verification, DER.
    pub(super) certificates: Vec<&'a [u8]>,
    /// Status of each certificate.
    pub(super) singles: Vec<Single<'a>>,
    /// It has a critical extension.
    pub(super) critical: bool,
}

/// Signer of a response.
#[derive(Clone, Copy, Debug)]
pub(super) enum Responder<'a> {
    /// One of this name, DER.
    Name(&'a [u8]),
    /// The responder with the key of this SHA-1.
    Key(&'a [u8]),
}

/// Status of one certificate.
#[derive(Debug)]
pub(super) struct Single<'a> {
    pub(super) id: CertId<'a>,
    pub(super) answer: Answer,
    /// It has a critical extension.
    pub(super) critical: bool,
}

/// Which certificate is meant.
#[derive(Debug)]
pub(super) struct CertId<'a> {
    /// The digest that identifies the issuer, an object identifier.
    pub(super) digest: &'a [u8],
    pub(super) issuer_name: &'a [u8],
    pub(super) issuer_key: &'a [u8],
    pub(super) serial: &'a [u8],
}

impl<'a> Response<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        let mut outer = Reader::new(bytes);
        let mut parts = outer.sequence().ok_or(Fault::NotDer)?;
        let status = match parts.body(ENUMERATED) {
            Some([status]) if outer.is_empty() => *status,
            _ => return Err(Fault::NotDer),
        };
        if status != SUCCESSFUL {
            return Err(Fault::NotSuccessful(status));
        }
        let basic = basic(&mut parts).ok_or(Fault::NotBasic)?;
        Self::of_basic(basic).ok_or(Fault::NotBasic)
    }

    fn of_basic(bytes: &'a [u8]) -> Option<Self> {
        let mut outer = Reader::new(bytes);
        let mut parts = outer.sequence()?;
        let signed = parts.expect(der::SEQUENCE)?;
        let algorithm = parts.body(der::SEQUENCE)?;
        let signature = parts.bit_string()?;
        let mut certificates = Vec::new();
        if let Some(list) = parts.body(der::context(0)) {
            let mut list = Reader::new(list).sequence()?;
            while !list.is_empty() {
                if certificates.len() == CERTIFICATES_MAX {
                    return None;
                }
                certificates.push(list.expect(der::SEQUENCE)?.whole);
            }
        }
        if !outer.is_empty() || !parts.is_empty() {
            return None;
        }
        let mut fields = Reader::new(signed.body);
        if let Some(version) = fields.body(der::context(0)) {
            Reader::new(version).small()?;
        }
        let responder = match fields.value()? {
            name if name.tag == der::context(1) => {
                Responder::Name(Reader::new(name.body).expect(der::SEQUENCE)?.whole)
            }
            key if key.tag == der::context(2) => {
                Responder::Key(Reader::new(key.body).body(der::OCTET_STRING)?)
            }
            _ => return None,
        };
        generalized(&mut fields)?;
        let mut list = fields.sequence()?;
        let mut singles = Vec::new();
        while !list.is_empty() {
            singles.push(Single::parse(list.sequence()?)?);
        }
        let critical = extensions(&mut fields)?;
        fields.is_empty().then_some(Self {
            signed: signed.whole,
            algorithm,
            signature,
            responder,
            certificates,
            singles,
            critical,
        })
    }
}

/// The basic response inside the bytes behind the status.
fn basic<'a>(parts: &mut Reader<'a>) -> Option<&'a [u8]> {
    let bytes = parts.body(der::context(0))?;
    let mut bytes = Reader::new(bytes).sequence()?;
    (parts.is_empty() && bytes.body(der::OID)? == BASIC).then_some(())?;
    let basic = bytes.body(der::OCTET_STRING)?;
    bytes.is_empty().then_some(basic)
}

impl<'a> Single<'a> {
    fn parse(mut fields: Reader<'a>) -> Option<Self> {
        let mut id = fields.sequence()?;
        let id = CertId {
            digest: id.sequence()?.body(der::OID)?,
            issuer_name: id.body(der::OCTET_STRING)?,
            issuer_key: id.body(der::OCTET_STRING)?,
            serial: id.body(der::INTEGER)?,
        };
        let status = match fields.value()?.tag {
            GOOD => Status::Good,
            REVOKED => Status::Revoked,
            UNKNOWN => Status::Unknown,
            _ => return None,
        };
        let from_s = generalized(&mut fields)?;
        let until_s = match fields.body(der::context(0)) {
            Some(inner) => Some(generalized(&mut Reader::new(inner))?),
            None => None,
        };
        let critical = extensions(&mut fields)?;
        let answer = Answer {
            status,
            from_s,
            until_s,
        };
        fields.is_empty().then_some(Self {
            id,
            answer,
            critical,
        })
    }
}

/// Whether the extensions, if any, have a critical one.
fn extensions(fields: &mut Reader<'_>) -> Option<bool> {
    match fields.body(der::context(1)) {
        Some(list) => has_critical(Reader::new(list).sequence()?),
        None => Some(false),
    }
}

/// A time, in the one form permitted in responses.
fn generalized(fields: &mut Reader<'_>) -> Option<i64> {
    (fields.tag() == Some(der::GENERALIZED_TIME)).then_some(())?;
    Some(Time::read(fields)?.unix_s())
}

/// Most certificates in a response: it usually has the signer's only.
pub(super) const CERTIFICATES_MAX: usize = 16;

const ENUMERATED: u8 = 0x0a;
const SUCCESSFUL: u8 = 0;
const GOOD: u8 = 0x80;
const REVOKED: u8 = 0xa1;
const UNKNOWN: u8 = 0x82;
/// `id-pkix-ocsp-basic`.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1, 1];
