//! Keys encrypted with a password.
//!
//! Supports PKCS #8 with PBES2 (PBKDF2 and AES in CBC mode), the default of OpenSSL since 1.0, and OpenSSL's older
//! form with `DEK-Info` in the head lines, for AES. Absent: DES and other broken ciphers; scrypt.
//!
//! Source: RFC 8018 (PKCS #5), RFC 5958; EVP_BytesToKey(3) for the older form.

use std::num::NonZeroU32;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2::{
    self, PBKDF2_HMAC_SHA1, PBKDF2_HMAC_SHA256, PBKDF2_HMAC_SHA384, PBKDF2_HMAC_SHA512,
};
use md5::{Digest, Md5};

use super::x509::FileFault;
use super::x509::der::{self, Reader};

/// Decrypts the content of an `ENCRYPTED PRIVATE KEY`; the result is a key in PKCS #8.
pub(crate) fn pkcs8(der: &[u8], passwords: &[Vec<u8>]) -> Result<Vec<u8>, FileFault> {
    let scheme = Scheme::parse(der)?;
    let open = |password: &Vec<u8>| {
        let mut key = vec![0; key_bytes(scheme.cipher)];
        pbkdf2::derive(scheme.prf, scheme.rounds, scheme.salt, password, &mut key);
        decrypt(scheme.cipher, &key, scheme.vector, scheme.body)
    };
    passwords
        .iter()
        .find_map(open)
        .ok_or(FileFault::BadPassword)
}

/// Decrypts a part in the older form; `info` is its `DEK-Info`.
pub(crate) fn older(info: &str, body: &[u8], passwords: &[Vec<u8>]) -> Result<Vec<u8>, FileFault> {
    let (name, vector) = info.split_once(',').unwrap_or((info, ""));
    let cipher = match name.trim() {
        "AES-128-CBC" => &AES_128,
        "AES-192-CBC" => &AES_192,
        "AES-256-CBC" => &AES_256,
        other => return Err(unsupported(other)),
    };
    let vector = hex(vector.trim()).ok_or_else(|| unsupported(info))?;
    let open = |password: &Vec<u8>| {
        let key = derive(password, &vector[..SALT_BYTES], key_bytes(cipher));
        decrypt(cipher, &key, vector, body)
    };
    passwords
        .iter()
        .find_map(open)
        .ok_or(FileFault::BadPassword)
}

/// How a key is encrypted.
struct Scheme<'a> {
    salt: &'a [u8],
    rounds: NonZeroU32,
    prf: pbkdf2::Algorithm,
    cipher: &'static Algorithm,
    vector: [u8; VECTOR_BYTES],
    body: &'a [u8],
}

impl<'a> Scheme<'a> {
    fn parse(der: &'a [u8]) -> Result<Self, FileFault> {
        let damaged = || FileFault::NotDer(KEY);
        let mut outer = Reader::new(der).sequence().ok_or_else(damaged)?;
        let mut scheme = outer.sequence().ok_or_else(damaged)?;
        let body = outer.body(der::OCTET_STRING).ok_or_else(damaged)?;
        if scheme.body(der::OID).ok_or_else(damaged)? != PBES2 {
            return Err(unsupported("PKCS #5 v1.5 or PKCS #12"));
        }
        let mut parameters = scheme.sequence().ok_or_else(damaged)?;
        let mut derivation = parameters.sequence().ok_or_else(damaged)?;
        let mut encryption = parameters.sequence().ok_or_else(damaged)?;
        if derivation.body(der::OID).ok_or_else(damaged)? != PBKDF2 {
            return Err(unsupported("scrypt"));
        }
        let mut fields = derivation.sequence().ok_or_else(damaged)?;
        let salt = fields.body(der::OCTET_STRING).ok_or_else(damaged)?;
        let rounds = fields.small().and_then(NonZeroU32::new);
        let rounds = rounds.ok_or_else(damaged)?;
        if fields.tag() == Some(der::INTEGER) {
            fields.value();
        }
        let prf = match fields.sequence().and_then(|mut prf| prf.body(der::OID)) {
            None | Some(HMAC_SHA1) => PBKDF2_HMAC_SHA1,
            Some(HMAC_SHA256) => PBKDF2_HMAC_SHA256,
            Some(HMAC_SHA384) => PBKDF2_HMAC_SHA384,
            Some(HMAC_SHA512) => PBKDF2_HMAC_SHA512,
            Some(_) => return Err(unsupported("its pseudo-random function")),
        };
        let cipher = match encryption.body(der::OID).ok_or_else(damaged)? {
            AES_128_CBC => &AES_128,
            AES_192_CBC => &AES_192,
            AES_256_CBC => &AES_256,
            DES_EDE3_CBC => return Err(unsupported("DES-EDE3-CBC")),
            _ => return Err(unsupported("its cipher")),
        };
        let vector = encryption.body(der::OCTET_STRING).ok_or_else(damaged)?;
        Ok(Self {
            salt,
            rounds,
            prf,
            cipher,
            vector: vector.try_into().map_err(|_| damaged())?,
            body,
        })
    }
}

fn key_bytes(cipher: &Algorithm) -> usize {
    if cipher == &AES_128 {
        16
    } else if cipher == &AES_192 {
        24
    } else {
        32
    }
}

fn decrypt(
    cipher: &'static Algorithm,
    key: &[u8],
    vector: [u8; VECTOR_BYTES],
    body: &[u8],
) -> Option<Vec<u8>> {
    let key = UnboundCipherKey::new(cipher, key).ok()?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
    let mut body = body.to_vec();
    let context = DecryptionContext::Iv128(FixedLength::from(vector));
    let plain = key.decrypt(&mut body, context).ok()?;
    // One wrong password in 256 yields plausible padding; but a key is also a sequence.
    let whole = Reader::new(plain).expect(der::SEQUENCE)?.whole.len() == plain.len();
    whole.then(|| plain.to_vec())
}

/// A key from a password by OpenSSL's older method: MD5, once.
fn derive(password: &[u8], salt: &[u8], len: usize) -> Vec<u8> {
    let mut key = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    while key.len() < len {
        let mut hash = Md5::new();
        hash.update(&last);
        hash.update(password);
        hash.update(salt);
        last = hash.finalize().to_vec();
        key.extend_from_slice(&last);
    }
    key.truncate(len);
    key
}

fn hex(text: &str) -> Option<[u8; VECTOR_BYTES]> {
    let mut bytes = [0; VECTOR_BYTES];
    let hex = text.bytes().all(|b| b.is_ascii_hexdigit());
    if text.len() != 2 * VECTOR_BYTES || !hex {
        return None;
    }
    for (n, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * n..2 * n + 2], 16).ok()?;
    }
    Some(bytes)
}

fn unsupported(what: &str) -> FileFault {
    FileFault::Unsupported(format!(
        "the key is encrypted with {what}, which is not supported; convert it with \"openssl pkcs8 -topk8 -v2 aes256\""
    ))
}

const KEY: &str = "ANY PRIVATE KEY";
const VECTOR_BYTES: usize = 16;
/// The part of the vector that is also the salt.
const SALT_BYTES: usize = 8;

const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
const HMAC_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 7];
const HMAC_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 9];
const HMAC_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 10];
const HMAC_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 11];
const AES_128_CBC: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 2];
const AES_192_CBC: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 22];
const AES_256_CBC: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42];
const DES_EDE3_CBC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 3, 7];

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::cipher::{EncryptionContext, PaddedBlockEncryptingKey};

    fn value(tag: u8, body: &[u8]) -> Vec<u8> {
        assert!(body.len() < 0x80, "short forms are enough here");
        [&[tag, body.len() as u8][..], body].concat()
    }

    fn encrypt(cipher: &'static Algorithm, key: &[u8], plain: &[u8]) -> Vec<u8> {
        let key = UnboundCipherKey::new(cipher, key).expect("the length is right");
        let key = PaddedBlockEncryptingKey::cbc_pkcs7(key).expect("it is a block cipher");
        let mut body = plain.to_vec();
        let context = EncryptionContext::Iv128(FixedLength::from([9; VECTOR_BYTES]));
        key.less_safe_encrypt(&mut body, context)
            .expect("memory takes all");
        body
    }

    /// A key in PKCS #8, by these algorithms.
    fn sealed(
        prf: Option<(&[u8], pbkdf2::Algorithm)>,
        (id, cipher): (&[u8], &'static Algorithm),
        plain: &[u8],
    ) -> Vec<u8> {
        let mut key = vec![0; key_bytes(cipher)];
        let rounds = NonZeroU32::new(3).expect("it is not 0");
        let algorithm = prf.map_or(PBKDF2_HMAC_SHA1, |(_, algorithm)| algorithm);
        pbkdf2::derive(algorithm, rounds, b"salt", b"right", &mut key);
        let prf = prf.map(|(id, _)| value(der::SEQUENCE, &value(der::OID, id)));
        let parameters = [
            value(der::OCTET_STRING, b"salt"),
            value(der::INTEGER, &[3]),
            prf.unwrap_or_default(),
        ];
        let derivation = [
            value(der::OID, PBKDF2),
            value(der::SEQUENCE, &parameters.concat()),
        ];
        let encryption = [
            value(der::OID, id),
            value(der::OCTET_STRING, &[9; VECTOR_BYTES]),
        ];
        let both = [
            value(der::SEQUENCE, &derivation.concat()),
            value(der::SEQUENCE, &encryption.concat()),
        ];
        let scheme = [value(der::OID, PBES2), value(der::SEQUENCE, &both.concat())];
        let body = encrypt(cipher, &key, plain);
        let all = [
            value(der::SEQUENCE, &scheme.concat()),
            value(der::OCTET_STRING, &body),
        ];
        // The whole may be longer than a short form holds.
        let all = all.concat();
        match all.len() {
            len @ 0..0x80 => [&[der::SEQUENCE, len as u8][..], &all].concat(),
            len => [&[der::SEQUENCE, 0x81, len as u8][..], &all].concat(),
        }
    }

    fn words(list: &[&str]) -> Vec<Vec<u8>> {
        list.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    const PLAIN: &[u8] = &[0x30, 3, 2, 1, 7];

    #[test]
    fn pkcs8_is_opened_by_the_password_that_fits() {
        let prfs: [Option<(&[u8], _)>; 3] = [
            None,
            Some((HMAC_SHA256, PBKDF2_HMAC_SHA256)),
            Some((HMAC_SHA512, PBKDF2_HMAC_SHA512)),
        ];
        for prf in prfs {
            for cipher in [
                (AES_128_CBC, &AES_128),
                (AES_192_CBC, &AES_192),
                (AES_256_CBC, &AES_256),
            ] {
                let der = sealed(prf, cipher, PLAIN);
                let open = |list: &[&str]| pkcs8(&der, &words(list));
                assert_eq!(open(&["wrong", "right"]).as_deref(), Ok(PLAIN));
                assert_eq!(open(&["wrong"]), Err(FileFault::BadPassword));
                assert_eq!(open(&[]), Err(FileFault::BadPassword));
            }
        }
    }

    #[test]
    fn ciphers_that_protect_no_more_are_named() {
        let der = sealed(None, (DES_EDE3_CBC, &AES_256), PLAIN);
        let refused = pkcs8(&der, &words(&["right"]));
        assert!(
            matches!(refused, Err(FileFault::Unsupported(why)) if why.contains("DES-EDE3-CBC"))
        );
        let refused = older("DES-EDE3-CBC,0011223344556677", &[0; 8], &words(&["right"]));
        assert!(
            matches!(refused, Err(FileFault::Unsupported(why)) if why.contains("DES-EDE3-CBC"))
        );
        assert_eq!(pkcs8(&[0x30, 0], &[]), Err(FileFault::NotDer(KEY)));
    }

    #[test]
    fn the_older_form_is_opened() {
        let vector = "09".repeat(VECTOR_BYTES);
        for (name, cipher) in [("AES-128-CBC", &AES_128), ("AES-256-CBC", &AES_256)] {
            let key = derive(b"right", &[9; SALT_BYTES], key_bytes(cipher));
            let body = encrypt(cipher, &key, PLAIN);
            let info = format!("{name},{vector}");
            let open = |list: &[&str]| older(&info, &body, &words(list));
            assert_eq!(open(&["wrong", "right"]).as_deref(), Ok(PLAIN));
            assert_eq!(open(&["wrong"]), Err(FileFault::BadPassword));
        }
        assert!(older("AES-128-CBC,xy", &[0; 16], &[]).is_err());
    }

    #[test]
    fn a_key_is_derived_as_openssl_derives_it() {
        // openssl enc -aes-128-cbc -md md5 -k right -S 0909090909090909 -P
        let key = derive(b"right", &[9; SALT_BYTES], 16);
        let shown: String = key.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(shown, "B2773E008435045DFF0F4EBB30B79FE7");
    }
}
