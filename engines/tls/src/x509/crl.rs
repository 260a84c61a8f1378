//! Lists of revoked certificates.
//!
//! Absent: delta and indirect lists, which are marked by critical extensions; a list with any of those is ignored.
//!
//! Source: RFC 5280 section 5.

use std::collections::HashSet;

use super::der::{self, Reader};
use super::extensions::has_critical;
use super::file::{CRL, FileFault};
use super::time::Time;
use super::{dn, pem};

/// A list of revoked certificates.
#[derive(Clone, Debug)]
pub struct Crl {
    /// The issuer's name in its canonical form.
    pub(crate) issuer: Vec<u8>,
    /// When it was made, seconds since 1970.
    pub(crate) from_s: i64,
    /// When the next one is to be made.
    pub(crate) until_s: Option<i64>,
    /// Signed part.
    pub(crate) signed: Vec<u8>,
    /// How.
    pub(crate) algorithm: Vec<u8>,
    pub(crate) signature: Vec<u8>,
    /// It has a critical extension.
    pub(crate) critical: bool,
    revoked: HashSet<Vec<u8>>,
}

impl Crl {
    /// Reads the lists of a PEM text.
    ///
    /// # Errors
    /// There is none, or one is damaged.
    pub fn from_pem(text: &[u8]) -> Result<Vec<Self>, FileFault> {
        let parts = pem::parts(text).map_err(|_| FileFault::Damaged(CRL))?;
        let lists = parts.iter().filter(|part| part.label == CRL);
        let lists = lists.map(|part| Self::parse(&part.der).ok_or(FileFault::NotDer(CRL)));
        let lists: Vec<Self> = lists.collect::<Result<_, _>>()?;
        if lists.is_empty() {
            return Err(FileFault::NoStart(CRL));
        }
        Ok(lists)
    }

    fn parse(der: &[u8]) -> Option<Self> {
        let mut parts = Reader::new(der).sequence()?;
        let signed = parts.expect(der::SEQUENCE)?;
        let algorithm = parts.body(der::SEQUENCE)?;
        let signature = parts.bit_string()?;
        let mut fields = Reader::new(signed.body);
        if fields.tag() == Some(der::INTEGER) {
            fields.value()?;
        }
        if fields.body(der::SEQUENCE)? != algorithm {
            return None;
        }
        let issuer = dn::canonical(fields.expect(der::SEQUENCE)?.whole);
        let from_s = Time::read(&mut fields)?.unix_s();
        let until_s = match fields.tag() {
            Some(der::UTC_TIME | der::GENERALIZED_TIME) => Some(Time::read(&mut fields)?.unix_s()),
            _ => None,
        };
        let mut critical = false;
        let mut revoked = HashSet::new();
        if fields.tag() == Some(der::SEQUENCE) {
            let mut entries = fields.sequence()?;
            while !entries.is_empty() {
                let mut entry = entries.sequence()?;
                revoked.insert(entry.body(der::INTEGER)?.to_vec());
                Time::read(&mut entry)?;
                if let Some(list) = entry.sequence() {
                    critical |= has_critical(list)?;
                }
            }
        }
        if let Some(extensions) = fields.body(der::context(0)) {
            critical |= has_critical(Reader::new(extensions).sequence()?)?;
        }
        Some(Self {
            issuer,
            from_s,
            until_s,
            signed: signed.whole.to_vec(),
            algorithm: algorithm.to_vec(),
            signature: signature.to_vec(),
            critical,
            revoked,
        })
    }

    /// Whether the certificate with this number is revoked.
    pub(crate) fn revokes(&self, serial: &[u8]) -> bool {
        self.revoked.contains(serial)
    }
}
