//! Keys of records, made of secrets, and the opening of records.
//!
//! Source: RFC 8446 sections 5.2, 5.3 and 7.3; RFC 5246 sections 6.2.3.3 and 6.3, RFC 5288, RFC 7905.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey};
use aws_lc_rs::aead::{Nonce, UnboundKey};
use aws_lc_rs::hkdf::{self, HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use aws_lc_rs::tls_prf::{self, P_SHA256, P_SHA384};

/// A cipher suite with authenticated encryption.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suite {
    cipher: &'static Algorithm,
    is_sha384: bool,
    is_chacha: bool,
}

impl Suite {
    /// The suite with this number, if it is one that is opened here (IANA's TLS Cipher Suites).
    pub(super) fn numbered(number: u16) -> Option<Self> {
        let (cipher, is_sha384) = match number {
            0x1301 | 0x009c | 0x009e | 0xc02b | 0xc02f => (&AES_128_GCM, false),
            0x1302 | 0x009d | 0x009f | 0xc02c | 0xc030 => (&AES_256_GCM, true),
            0x1303 | 0xcca8 | 0xcca9 | 0xccaa => (&CHACHA20_POLY1305, false),
            _ => return None,
        };
        Some(Self {
            cipher,
            is_sha384,
            is_chacha: cipher == &CHACHA20_POLY1305,
        })
    }

    fn hash(&self) -> hkdf::Algorithm {
        if self.is_sha384 {
            HKDF_SHA384
        } else {
            HKDF_SHA256
        }
    }
}

/// A length to which a secret is expanded.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label without a context (RFC 8446 section 7.1).
fn expand(suite: Suite, secret: &[u8], label: &str, length: usize) -> Option<Vec<u8>> {
    let name = [b"tls13 ", label.as_bytes()].concat();
    let head = [(length >> 8) as u8, length as u8, name.len() as u8];
    let mut out = vec![0; length];
    let key = Prk::new_less_safe(suite.hash(), secret);
    let info = [&head[..], &name, &[0]];
    key.expand(&info, Length(length))
        .ok()?
        .fill(&mut out)
        .ok()?;
    Some(out)
}

/// The secret after a KeyUpdate (RFC 8446 section 7.2).
pub(super) fn next_secret(suite: Suite, secret: &[u8]) -> Option<Vec<u8>> {
    expand(suite, secret, "traffic upd", secret.len())
}

/// Opens the records of one direction under one key.
#[derive(Debug)]
pub(super) struct Opener {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    /// TLS 1.2 with GCM: eight bytes of the nonce are in the record.
    has_explicit_nonce: bool,
    is_tls13: bool,
}

impl Opener {
    /// Of a secret of TLS 1.3.
    pub(super) fn tls13(suite: Suite, secret: &[u8]) -> Option<Self> {
        let key = expand(suite, secret, "key", suite.cipher.key_len())?;
        let iv = expand(suite, secret, "iv", 12)?;
        Some(Self {
            key: LessSafeKey::new(UnboundKey::new(suite.cipher, &key).ok()?),
            iv: iv.try_into().ok()?,
            sequence: 0,
            has_explicit_nonce: false,
            is_tls13: true,
        })
    }

    /// Those of client and server, of a master secret of TLS 1.2.
    pub(super) fn tls12(suite: Suite, master: &[u8], randoms: [&[u8; 32]; 2]) -> Option<[Self; 2]> {
        let prf = if suite.is_sha384 {
            &P_SHA384
        } else {
            &P_SHA256
        };
        let (key_bytes, iv_bytes) = (suite.cipher.key_len(), if suite.is_chacha { 12 } else { 4 });
        let secret = tls_prf::Secret::new(prf, master).ok()?;
        let [client, server] = randoms;
        let length = 2 * (key_bytes + iv_bytes);
        let block = secret.derive_with_seed_concatination(b"key expansion", server, client, length);
        let block = block.ok()?;
        let (keys, ivs) = block.as_ref().split_at_checked(2 * key_bytes)?;
        let opener = |side: usize| {
            let key = keys.get(side * key_bytes..(side + 1) * key_bytes)?;
            let fixed = ivs.get(side * iv_bytes..(side + 1) * iv_bytes)?;
            let mut iv = [0; 12];
            iv[..iv_bytes].copy_from_slice(fixed);
            Some(Self {
                key: LessSafeKey::new(UnboundKey::new(suite.cipher, key).ok()?),
                iv,
                sequence: 0,
                has_explicit_nonce: !suite.is_chacha,
                is_tls13: false,
            })
        };
        Some([opener(0)?, opener(1)?])
    }

    /// Decrypts a record with its header, and advances the sequence number. Returns `None` if the record does not belong to this key.
    pub(super) fn open(&mut self, record: &[u8]) -> Option<Vec<u8>> {
        let (head, mut body) = record.split_first_chunk::<5>()?;
        let mut nonce = self.iv;
        if self.has_explicit_nonce {
            let (explicit, rest) = body.split_first_chunk::<8>()?;
            nonce[4..].copy_from_slice(explicit);
            body = rest;
        } else {
            let number = self.sequence.to_be_bytes();
            nonce[4..]
                .iter_mut()
                .zip(number)
                .for_each(|(byte, number)| *byte ^= number);
        }
        let length = body.len().checked_sub(TAG_BYTES)? as u16;
        let [kind, major, minor, ..] = *head;
        let aad = match self.is_tls13 {
            true => head.to_vec(),
            false => {
                let number = self.sequence.to_be_bytes();
                [&number[..], &[kind, major, minor], &length.to_be_bytes()].concat()
            }
        };
        let mut bytes = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(aad), &mut bytes)
            .ok()?;
        let length = plain.len();
        bytes.truncate(length);
        self.sequence += 1;
        Some(bytes)
    }
}

const TAG_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's keys of the handshake in RFC 8448 section 3.
    #[test]
    fn keys_are_those_of_the_published_trace() {
        let secret = [
            0xb6, 0x7b, 0x7d, 0x69, 0x0c, 0xc1, 0x6c, 0x4e, 0x75, 0xe5, 0x42, 0x13, 0xcb, 0x2d,
            0x37, 0xb4, 0xe9, 0xc9, 0x12, 0xbc, 0xde, 0xd9, 0x10, 0x5d, 0x42, 0xbe, 0xfd, 0x59,
            0xd3, 0x91, 0xad, 0x38,
        ];
        let suite = Suite::numbered(0x1301).expect("it is one");
        let hex = |bytes: Option<Vec<u8>>| {
            let bytes = bytes.unwrap_or_default();
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert_eq!(
            hex(expand(suite, &secret, "key", 16)),
            "3fce516009c21727d0f2e4e86ee403bc"
        );
        assert_eq!(
            hex(expand(suite, &secret, "iv", 12)),
            "5d313eb2671276ee13000b30"
        );
    }
}
