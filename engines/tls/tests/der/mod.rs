//! Certificates written value by value, so that each may be wrong in one place.
#![allow(dead_code, reason = "each test file uses its own part")]

/// A value of DER with the shortest length.
pub(crate) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let mut out = vec![tag];
    match body.len() {
        len @ 0..0x80 => out.push(len as u8),
        len @ 0x80..0x100 => out.extend([0x81, len as u8]),
        len => {
            out.push(0x82);
            out.extend((len as u16).to_be_bytes());
        }
    }
    out.extend(body);
    out
}

/// One attribute of a name: identifier, tag and bytes of its value.
pub(crate) fn attribute(id: &[u8], tag: u8, bytes: &[u8]) -> Vec<u8> {
    value(0x30, &[&value(6, &[id]), &value(tag, &[bytes])])
}

/// A name of these attributes, each in a set of its own.
pub(crate) fn name(attributes: &[Vec<u8>]) -> Vec<u8> {
    let sets = attributes.iter().map(|one| value(0x31, &[one]));
    value(0x30, &[&sets.collect::<Vec<_>>().concat()])
}

/// An extension: identifier, encoding of its critical flag, and its value.
pub(crate) fn extension(id: &[u8], critical: &[u8], inner: &[u8]) -> Vec<u8> {
    let id = value(6, &[id]);
    value(0x30, &[&id, critical, &value(4, &[inner])])
}

/// The fields of a certificate, each with its tag and length.
#[derive(Clone)]
pub(crate) struct Fields {
    pub(crate) version: Vec<u8>,
    pub(crate) serial: Vec<u8>,
    pub(crate) inner_algorithm: Vec<u8>,
    pub(crate) issuer: Vec<u8>,
    pub(crate) validity: Vec<u8>,
    pub(crate) subject: Vec<u8>,
    pub(crate) key: Vec<u8>,
    /// The fields that follow the key.
    pub(crate) rest: Vec<u8>,
    pub(crate) algorithm: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

impl Default for Fields {
    /// A certificate of version 3 without extensions, valid from 2020 to 2049.
    fn default() -> Self {
        let algorithm = value(0x30, &[&value(6, &[ECDSA_SHA256])]);
        let own = name(&[attribute(CN, 0x0c, b"own")]);
        let kind = [value(6, &[EC_PUBLIC_KEY]), value(6, &[P256])].concat();
        let point = [&[0, 4][..], &[7; 64]].concat();
        let key = [value(0x30, &[&kind]), value(3, &[&point])].concat();
        let validity = [
            value(0x17, &[b"200101000000Z"]),
            value(0x17, &[b"491231235959Z"]),
        ];
        Self {
            version: vec![0xa0, 3, 2, 1, 2],
            serial: vec![2, 1, 5],
            inner_algorithm: algorithm.clone(),
            issuer: name(&[attribute(CN, 0x0c, b"issuer")]),
            validity: value(0x30, &[&validity.concat()]),
            subject: own,
            key: value(0x30, &[&key]),
            rest: Vec::new(),
            algorithm,
            signature: value(3, &[&[0, 0x30, 6, 2, 1, 1, 2, 1, 1]]),
        }
    }
}

impl Fields {
    /// With these extensions.
    pub(crate) fn extended(extensions: &[Vec<u8>]) -> Self {
        let list = value(0x30, &[&extensions.concat()]);
        Self {
            rest: value(0xa3, &[&list]),
            ..Self::default()
        }
    }

    /// Valid between these two values.
    pub(crate) fn valid(from: (u8, &[u8]), until: (u8, &[u8])) -> Self {
        let both = [value(from.0, &[from.1]), value(until.0, &[until.1])];
        Self {
            validity: value(0x30, &[&both.concat()]),
            ..Self::default()
        }
    }

    /// The certificate.
    pub(crate) fn der(&self) -> Vec<u8> {
        let signed = value(
            0x30,
            &[
                &self.version,
                &self.serial,
                &self.inner_algorithm,
                &self.issuer,
                &self.validity,
                &self.subject,
                &self.key,
                &self.rest,
            ],
        );
        value(0x30, &[&signed, &self.algorithm, &self.signature])
    }
}

/// PEM of a label, in lines that end so.
pub(crate) fn pem(label: &str, der: &[u8], end: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = format!("-----BEGIN {label}-----{end}");
    for line in der.chunks(48) {
        for three in line.chunks(3) {
            let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for at in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
                out.push(char::from(if at > three.len() { b'=' } else { digit }));
            }
        }
        out.push_str(end);
    }
    out + &format!("-----END {label}-----{end}")
}

pub(crate) const CN: &[u8] = &[0x55, 4, 3];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
