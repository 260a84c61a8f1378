//! Extensions of certificates, and critical ones in lists and OCSP responses.
//!
//! Source: RFC 5280 section 4.2.

use super::der::{self, Reader};

/// Extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions<'a> {
    /// `basicConstraints`: whether it may issue certificates, and the maximum length of a path below it.
    pub(crate) basic: Option<(bool, Option<u32>)>,
    /// `keyUsage`, the first bit in the highest one.
    pub(crate) key_usage: Option<u16>,
    /// `extendedKeyUsage`, if present: whether it permits TLS clients.
    pub(crate) for_clients: Option<bool>,
    /// `extendedKeyUsage`, if present: whether it permits TLS servers.
    pub(crate) for_servers: Option<bool>,
    /// `extendedKeyUsage` is present and permits signing of OCSP responses.
    pub(crate) for_responders: bool,
    /// `authorityInfoAccess`: links to data about the issuer.
    pub(crate) access: Option<&'a [u8]>,
    /// `subjectKeyIdentifier`.
    pub(crate) key_id: Option<&'a [u8]>,
    /// `authorityKeyIdentifier`: the issuer's key.
    pub(crate) issuer_key_id: Option<&'a [u8]>,
    /// `subjectAltName`: its general names.
    pub(crate) alt_names: Option<&'a [u8]>,
    /// `nameConstraints` is there.
    pub(crate) constrains_names: bool,
    /// There is an unknown critical extension.
    pub(crate) unknown_critical: bool,
}

impl<'a> Extensions<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut outer = Reader::new(body);
        let mut list = outer.sequence()?;
        let mut found = Self::default();
        while !list.is_empty() {
            let (id, critical, mut extension) = extension(&mut list)?;
            if !found.take(id, extension.body(der::OCTET_STRING)?)? {
                found.unknown_critical |= critical;
            }
        }
        outer.is_empty().then_some(found)
    }

    /// Takes one extension; false if it is unknown.
    fn take(&mut self, id: &[u8], value: &'a [u8]) -> Option<bool> {
        let mut reader = Reader::new(value);
        match id {
            BASIC_CONSTRAINTS => {
                let mut fields = reader.sequence()?;
                let authority = fields.flag();
                let path = match fields.is_empty() {
                    true => None,
                    false => Some(fields.small()?),
                };
                self.basic = Some((authority, path));
            }
            KEY_USAGE => self.key_usage = Some(key_usage(reader.body(der::BIT_STRING)?)?),
            EXTENDED_KEY_USAGE => {
                let mut uses = reader.sequence()?;
                let (mut for_clients, mut for_servers) = (false, false);
                while !uses.is_empty() {
                    let usage = uses.body(der::OID)?;
                    for_clients |= usage == CLIENT_AUTH;
                    for_servers |= usage == SERVER_AUTH;
                    self.for_responders |= usage == OCSP_SIGNING;
                }
                self.for_clients = Some(for_clients);
                self.for_servers = Some(for_servers);
            }
            SUBJECT_KEY_ID => self.key_id = Some(reader.body(der::OCTET_STRING)?),
            AUTHORITY_KEY_ID => {
                let mut fields = reader.sequence()?;
                self.issuer_key_id = fields.body(KEY_ID_TAG);
            }
            NAME_CONSTRAINTS => self.constrains_names = true,
            // Read, but not counted as known: decisions about trust do not use it.
            AUTHORITY_INFO_ACCESS => {
                self.access = Some(value);
                return Some(false);
            }
            SUBJECT_ALT_NAME => self.alt_names = reader.body(der::SEQUENCE),
            // Policies, which neither OpenSSL nor nginx checks.
            CERTIFICATE_POLICIES | POLICY_CONSTRAINTS => {}
            _ => return Some(false),
        }
        Some(true)
    }
}

/// Identifier of the next extension, whether it is critical, and the rest.
fn extension<'a>(list: &mut Reader<'a>) -> Option<(&'a [u8], bool, Reader<'a>)> {
    let mut fields = list.sequence()?;
    let id = fields.body(der::OID)?;
    Some((id, fields.flag(), fields))
}

/// Whether one of the extensions is critical.
pub(crate) fn has_critical(mut list: Reader<'_>) -> Option<bool> {
    let mut found = false;
    while !list.is_empty() {
        found |= extension(&mut list)?.1;
    }
    Some(found)
}

/// The URL for this method in `authorityInfoAccess`, the first of several.
pub(crate) fn access_location<'a>(access: &'a [u8], method: &[u8]) -> Option<&'a [u8]> {
    let mut list = Reader::new(access).sequence()?;
    while !list.is_empty() {
        let mut description = list.sequence()?;
        let wanted = description.body(der::OID)? == method;
        let location = description.value()?;
        if wanted && location.tag == URI_TAG {
            return Some(location.body);
        }
    }
    None
}

/// The bits of `keyUsage`, the first in the highest one.
fn key_usage(bits: &[u8]) -> Option<u16> {
    match bits {
        [_, first] => Some(u16::from(*first) << 8),
        [_, first, second, ..] => Some(u16::from_be_bytes([*first, *second])),
        _ => None,
    }
}

/// Bits of `keyUsage`.
pub(crate) const DIGITAL_SIGNATURE: u16 = 0x8000;
pub(crate) const KEY_ENCIPHERMENT: u16 = 0x2000;
pub(crate) const KEY_AGREEMENT: u16 = 0x0800;
pub(crate) const KEY_CERT_SIGN: u16 = 0x0400;
pub(crate) const CRL_SIGN: u16 = 0x0200;

/// `keyIdentifier` in `authorityKeyIdentifier`.
const KEY_ID_TAG: u8 = 0x80;

/// `uniformResourceIdentifier` in a general name.
const URI_TAG: u8 = 0x86;

const AUTHORITY_INFO_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 14];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 30];
const CERTIFICATE_POLICIES: &[u8] = &[0x55, 0x1d, 32];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 35];
const POLICY_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 36];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
