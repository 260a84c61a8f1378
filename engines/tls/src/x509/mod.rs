//! Syntax of certificates, of lists of revoked certificates and of the files they stand in: DER, X.509, names, PEM.
//!
//! A [`Certificate`] refers to the bytes it was parsed from. Nothing here decides about trust: see `verify`, and
//! `ocsp` for responses of responders.
//!
//! Certificates of version 1 are parsed as well: many home-made client certificates are of that version. Some
//! violations of DER are accepted as in OpenSSL: an explicit default value, any byte but 0 for `TRUE`, unsorted
//! sets, unused bits of `keyUsage` that are set. docs/dependencies.md explains why no library is used. Absent:
//! indefinite lengths, unique identifiers, and unused extensions.
//!
//! Source: RFC 5280 sections 4.1 and 4.2.

mod crl;
pub(crate) mod der;
pub(crate) mod dn;
mod extensions;
mod file;
pub(crate) mod pem;
mod shown;
mod time;

use der::Reader;
use extensions::Extensions;

pub use crl::Crl;
pub(crate) use extensions::{
    CRL_SIGN, DIGITAL_SIGNATURE, KEY_AGREEMENT, KEY_CERT_SIGN, KEY_ENCIPHERMENT, access_location,
    has_critical,
};
pub use file::FileFault;
pub(crate) use file::certificates;
pub(crate) use time::Time;

/// A certificate.
#[derive(Clone, Debug)]
pub struct Certificate<'a> {
    /// The whole of it.
    pub(crate) der: &'a [u8],
    /// Signed part.
    pub(crate) signed: &'a [u8],
    /// 1 to 3.
    pub(crate) version: u32,
    /// The serial number, a signed integer.
    pub(crate) serial: &'a [u8],
    /// The issuer's name, DER.
    pub(crate) issuer: &'a [u8],
    /// Its own name, DER.
    pub(crate) subject: &'a [u8],
    /// The first second in which it is valid.
    pub(crate) not_before: Time,
    /// The last one.
    pub(crate) not_after: Time,
    /// The kind of its key.
    pub(crate) key_algorithm: &'a [u8],
    /// Its key.
    pub(crate) key: &'a [u8],
    /// How it is signed.
    pub(crate) algorithm: &'a [u8],
    /// The signature.
    pub(crate) signature: &'a [u8],
    /// Its extensions.
    pub(crate) extensions: Extensions<'a>,
}

impl<'a> Certificate<'a> {
    /// Reads a certificate; `None` if it is none.
    #[must_use]
    pub fn parse(der: &'a [u8]) -> Option<Self> {
        let mut outer = Reader::new(der);
        let whole = outer.expect(der::SEQUENCE)?;
        if !outer.is_empty() {
            return None;
        }
        let mut parts = Reader::new(whole.body);
        let signed = parts.expect(der::SEQUENCE)?;
        let algorithm = parts.body(der::SEQUENCE)?;
        let signature = parts.bit_string()?;
        let mut fields = Reader::new(signed.body);
        let version = match fields.expect(der::context(0)) {
            Some(value) => Reader::new(value.body).small()?.checked_add(1)?,
            None => 1,
        };
        let serial = fields.body(der::INTEGER)?;
        // The signed part repeats its algorithm, and both must agree (RFC 5280 section 4.1.1.2).
        if fields.body(der::SEQUENCE)? != algorithm || version > 3 || serial.is_empty() {
            return None;
        }
        let issuer = fields.expect(der::SEQUENCE)?.whole;
        let mut validity = fields.sequence()?;
        let (not_before, not_after) = (Time::read(&mut validity)?, Time::read(&mut validity)?);
        let subject = fields.expect(der::SEQUENCE)?.whole;
        let (key_algorithm, key) = public_key(fields.expect(der::SEQUENCE)?.body)?;
        let mut extensions = Extensions::default();
        while let Some(field) = fields.value() {
            if field.tag == der::context(3) {
                extensions = Extensions::parse(field.body)?;
            }
        }
        if !fields.is_empty() {
            return None;
        }
        Some(Self {
            der,
            signed: signed.whole,
            version,
            serial,
            issuer,
            subject,
            not_before,
            not_after,
            key_algorithm,
            key,
            algorithm,
            signature,
            extensions,
        })
    }

    /// Whether it names itself as its issuer.
    pub(crate) fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    /// Whether a key may be used for this; without the extension it may.
    pub(crate) fn may(&self, usages: u16) -> bool {
        self.extensions
            .key_usage
            .is_none_or(|allowed| allowed & usages != 0)
    }

    /// Whether it may issue certificates, by OpenSSL's rules: one of version 1 may if it is self-issued.
    pub(crate) fn is_authority(&self) -> bool {
        if !self.may(KEY_CERT_SIGN) {
            return false;
        }
        match self.extensions.basic {
            Some((authority, _)) => authority,
            None => {
                (self.version == 1 && self.is_self_issued()) || self.extensions.key_usage.is_some()
            }
        }
    }
}

/// Kind and key in the content of a `SubjectPublicKeyInfo`.
pub(crate) fn public_key(info: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut info = Reader::new(info);
    Some((info.body(der::SEQUENCE)?, info.bit_string()?))
}
