//! PEM and DER: certificates, keys, lists of revoked certificates.
//!
//! The first byte chooses whether the rest is a text or the DER of a text with a label. Parsed input can be printed in
//! every form, and written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tls::{Authorities, Certificate, Chain, Crl, Key};

fuzz_target!(|input: &[u8]| {
    let Some((&kind, rest)) = input.split_first() else {
        return;
    };
    match LABELS.get(usize::from(kind) % (LABELS.len() + 1)) {
        None => read(rest),
        Some(label) => {
            show(rest);
            read(&text(label, rest));
        }
    }
});

/// Parses a text as each kind of object.
fn read(text: &[u8]) {
    let chain = Chain::from_pem(text);
    let authorities = Authorities::from_pem(text);
    if let Ok(chain) = &chain {
        for der in chain.certificates() {
            show(der);
        }
    }
    if let Ok(authorities) = &authorities {
        let mut twice = authorities.clone();
        twice.extend(authorities);
        assert_eq!(twice.iter().count(), authorities.iter().count());
        authorities.iter().for_each(show);
    }
    if let Ok(lists) = Crl::from_pem(text) {
        assert!(!lists.is_empty());
    }
    // Without passwords: an encrypted key chooses its number of hash rounds.
    let _ = Key::from_pem(text, &[]);
}

/// Prints a certificate in all forms, if it is valid.
fn show(der: &[u8]) {
    let Some(certificate) = Certificate::parse(der) else {
        return;
    };
    for name in [certificate.subject(), certificate.issuer()] {
        assert!(name.is_ascii(), "{name}");
    }
    for name in [certificate.subject_oneline(), certificate.issuer_oneline()] {
        assert!(name.is_ascii(), "{name}");
    }
    let serial = certificate.serial();
    assert!(
        serial
            .trim_start_matches('-')
            .bytes()
            .all(|b| b.is_ascii_hexdigit())
    );
    assert_eq!(certificate.fingerprint().len(), 40);
    for time in [certificate.valid_from(), certificate.valid_until()] {
        // OpenSSL's text for a day that the month does not have.
        assert!(time.ends_with("GMT") || time == "Bad time value", "{time}");
    }
    let _ = certificate.days_left(1_795_272_703);
    let pem = certificate.pem();
    let again = Chain::from_pem(&pem).expect("it can be read again");
    assert!(again.certificates().eq([der]));
}

/// Encodes DER as PEM with a label.
fn text(label: &str, der: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = format!("-----BEGIN {label}-----").into_bytes();
    for (n, three) in der.chunks(3).enumerate() {
        if n % 16 == 0 {
            out.push(b'\n');
        }
        let byte = |at: usize| three.get(at).copied().map_or(0, usize::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[bits >> (18 - 6 * at) & 63];
            out.push(if at > three.len() { b'=' } else { digit });
        }
    }
    out.extend(format!("\n-----END {label}-----\n").bytes());
    out
}

const LABELS: [&str; 6] = [
    "CERTIFICATE",
    "X509 CRL",
    "PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "EC PRIVATE KEY",
    "RSA PRIVATE KEY",
];
