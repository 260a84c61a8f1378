//! X.509 certificates: the fields that checks and variables need, where they lie.
//!
//! Certificates of version 1 are read as well: many home-made client certificates are of that version. Absent: unique
//! identifiers, and extensions that nothing here asks for.
//!
//! Source: RFC 5280 sections 4.1 and 4.2.

use super::der::{self, Reader, Value};

/// A certificate.
#[derive(Clone, Debug)]
pub struct Certificate<'a> {
    /// The whole of it.
    pub(crate) der: &'a [u8],
    /// Signed part.
    pub(crate) signed: &'a [u8],
    /// 1 to 3.
    pub(crate) version: u32,
    /// The number its issuer gave it, a signed integer.
    pub(crate) serial: &'a [u8],
    /// The issuer's name, DER.
    pub(crate) issuer: &'a [u8],
    /// Its own name, DER.
    pub(crate) subject: &'a [u8],
    /// The first second in which it is valid, since 1970.
    pub(crate) not_before: i64,
    /// The last one.
    pub(crate) not_after: i64,
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

/// Extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions<'a> {
    /// `basicConstraints`: whether it may issue certificates, and how long a path may follow.
    pub(crate) basic: Option<(bool, Option<u32>)>,
    /// `keyUsage`, the first bit in the highest one.
    pub(crate) key_usage: Option<u16>,
    /// `extendedKeyUsage` is there and allows TLS clients, or does not.
    pub(crate) for_clients: Option<bool>,
    /// `extendedKeyUsage` is there and allows signing OCSP responses.
    pub(crate) for_responders: bool,
    /// `authorityInfoAccess`: where there is more about the issuer.
    pub(crate) access: Option<&'a [u8]>,
    /// `subjectKeyIdentifier`.
    pub(crate) key_id: Option<&'a [u8]>,
    /// `authorityKeyIdentifier`: the issuer's key.
    pub(crate) issuer_key_id: Option<&'a [u8]>,
    /// `nameConstraints` is there.
    pub(crate) constrains_names: bool,
    /// There is a critical one that is not known.
    pub(crate) unknown_critical: bool,
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
        // What is signed says again how, and both must agree (RFC 5280 section 4.1.1.2).
        if fields.body(der::SEQUENCE)? != algorithm || version > 3 || serial.is_empty() {
            return None;
        }
        let issuer = fields.expect(der::SEQUENCE)?.whole;
        let mut validity = fields.sequence()?;
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
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

    /// Whether a key may be used so; without the extension it may.
    pub(crate) fn may(&self, usages: u16) -> bool {
        self.extensions
            .key_usage
            .is_none_or(|allowed| allowed & usages != 0)
    }

    /// Whether it may issue certificates, as OpenSSL decides: one of version 1 may if it issued itself.
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

impl<'a> Extensions<'a> {
    fn parse(body: &'a [u8]) -> Option<Self> {
        let mut outer = Reader::new(body);
        let mut list = outer.sequence()?;
        let mut found = Self::default();
        while !list.is_empty() {
            let mut extension = list.sequence()?;
            let id = extension.body(der::OID)?;
            let critical = match extension.expect(der::BOOLEAN) {
                Some(value) => value.body != [0],
                None => false,
            };
            let value = extension.body(der::OCTET_STRING)?;
            if !found.take(id, value)? {
                found.unknown_critical |= critical;
            }
        }
        outer.is_empty().then_some(found)
    }

    /// Takes one extension; false if it is not known.
    fn take(&mut self, id: &[u8], value: &'a [u8]) -> Option<bool> {
        let mut reader = Reader::new(value);
        match id {
            BASIC_CONSTRAINTS => {
                let mut fields = reader.sequence()?;
                let authority = match fields.expect(der::BOOLEAN) {
                    Some(flag) => flag.body != [0],
                    None => false,
                };
                let path = match fields.is_empty() {
                    true => None,
                    false => Some(fields.small()?),
                };
                self.basic = Some((authority, path));
            }
            KEY_USAGE => self.key_usage = Some(key_usage(reader.body(der::BIT_STRING)?)?),
            EXTENDED_KEY_USAGE => {
                let mut uses = reader.sequence()?;
                let mut for_clients = false;
                while !uses.is_empty() {
                    let usage = uses.body(der::OID)?;
                    for_clients |= usage == CLIENT_AUTH;
                    self.for_responders |= usage == OCSP_SIGNING;
                }
                self.for_clients = Some(for_clients);
            }
            SUBJECT_KEY_ID => self.key_id = Some(reader.body(der::OCTET_STRING)?),
            AUTHORITY_KEY_ID => {
                let mut fields = reader.sequence()?;
                self.issuer_key_id = fields.body(KEY_ID_TAG);
            }
            NAME_CONSTRAINTS => self.constrains_names = true,
            // Read, but not known: nothing that decides about trust looks at it.
            AUTHORITY_INFO_ACCESS => {
                self.access = Some(value);
                return Some(false);
            }
            // Names and policies, which neither OpenSSL nor nginx checks in clients' certificates.
            SUBJECT_ALT_NAME | CERTIFICATE_POLICIES | POLICY_CONSTRAINTS => {}
            _ => return Some(false),
        }
        Some(true)
    }
}

/// The URL that `authorityInfoAccess` has for this method, the first of several.
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

/// Kind and key of what is inside a `SubjectPublicKeyInfo`.
pub(crate) fn public_key(info: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut info = Reader::new(info);
    Some((info.body(der::SEQUENCE)?, info.bit_string()?))
}

/// A time in seconds since 1970 (RFC 5280 section 4.1.2.5).
pub(crate) fn time(reader: &mut Reader<'_>) -> Option<i64> {
    let Value { tag, body, .. } = reader.value()?;
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0_i64, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    let (year, rest) = match tag {
        der::UTC_TIME => {
            let (year, rest) = body.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        der::GENERALIZED_TIME => {
            let (year, rest) = body.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let (digits, zone) = rest.split_at_checked(10)?;
    if zone != b"Z" {
        return None;
    }
    let part = |n: usize| number(&digits[2 * n..2 * n + 2]);
    let (month, day) = (part(0)?, part(1)?);
    let (hour, minute, second) = (part(2)?, part(3)?, part(4)?);
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    Some(days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second)
}

/// Days from 1970 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the day that comes and goes is their last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - DAYS_TO_1970
}

/// Days from the March of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;

/// Bits of `keyUsage`.
pub(crate) const DIGITAL_SIGNATURE: u16 = 0x8000;
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
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(tag: u8, text: &[u8]) -> Option<i64> {
        let mut der = vec![tag, text.len() as u8];
        der.extend(text);
        time(&mut Reader::new(&der))
    }

    #[test]
    fn times_are_read() {
        assert_eq!(seconds(der::UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(
            seconds(der::UTC_TIME, b"491231235959Z"),
            Some(2_524_607_999)
        );
        assert_eq!(seconds(der::UTC_TIME, b"500101000000Z"), Some(-631_152_000));
        assert_eq!(
            seconds(der::GENERALIZED_TIME, b"20240229120000Z"),
            Some(1_709_208_000)
        );
        assert_eq!(
            seconds(der::GENERALIZED_TIME, b"99991231235959Z"),
            Some(253_402_300_799)
        );
        for wrong in [
            &b"7001010000Z"[..],
            b"700101000000",
            b"701301000000Z",
            b"7001010000x0Z",
        ] {
            assert_eq!(seconds(der::UTC_TIME, wrong), None);
        }
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        for wrong in [&b""[..], &[0x30, 0], &[0x30, 0x82, 0xff, 0xff], &[2, 1, 1]] {
            assert!(Certificate::parse(wrong).is_none());
        }
    }
}
