//! Certificates of version 1, which rcgen does not make.

use rcgen::{KeyPair, PublicKeyData, SigningKey};

use super::{Authority, Leaf};

#[path = "../der/mod.rs"]
pub(crate) mod der;

fn value(tag: u8, body: &[u8]) -> Vec<u8> {
    der::value(tag, &[body])
}

fn common_name(name: &str) -> Vec<u8> {
    let pair = [value(6, &[0x55, 4, 3]), value(0x0c, name.as_bytes())].concat();
    value(0x30, &value(0x31, &value(0x30, &pair)))
}

/// A client's certificate of version 1, valid until the year 2049.
pub(crate) fn client(name: &str, issuer_name: &str, issuer: &Authority) -> Leaf {
    let key = KeyPair::generate().expect("there is randomness");
    let ecdsa_with_sha256 = value(0x30, &value(6, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));
    let validity = [value(0x17, b"200101000000Z"), value(0x17, b"491231235959Z")].concat();
    let signed = [
        value(2, &[5]),
        ecdsa_with_sha256.clone(),
        common_name(issuer_name),
        value(0x30, &validity),
        common_name(name),
        key.subject_public_key_info(),
    ]
    .concat();
    let signed = value(0x30, &signed);
    let signature = issuer.key().sign(&signed).expect("it can be signed");
    let signature = value(3, &[&[0][..], &signature].concat());
    let der = value(0x30, &[signed, ecdsa_with_sha256, signature].concat());
    Leaf {
        certificate: String::new(),
        key: key.serialize_pem(),
        der,
    }
}
