//! Lists of revoked certificates, written value by value.
//!
//! Source: RFC 5280 section 5.1.

mod der;

use der::{CN, attribute, extension, name, pem, value};
use tls::Crl;

/// The parts of a list from its version to its extensions, each with tag and length.
fn list(parts: &[&[u8]]) -> Vec<u8> {
    let signed = value(0x30, parts);
    value(0x30, &[&signed, &algorithm(), &[3, 2, 0, 1]])
}

fn algorithm() -> Vec<u8> {
    value(
        0x30,
        &[&value(6, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]])],
    )
}

fn time(text: &[u8]) -> Vec<u8> {
    value(0x17, &[text])
}

fn is_read(der: &[u8]) -> bool {
    match Crl::from_pem(pem("X509 CRL", der, "\n").as_bytes()) {
        Ok(lists) => lists.len() == 1,
        Err(fault) => {
            let why = "PEM_read_bio_X509_CRL() failed (SSL: error:0480000D:PEM routines::ASN1 lib)";
            assert_eq!(fault.to_string(), why);
            false
        }
    }
}

#[test]
fn lists_are_read_with_and_without_what_may_be_absent() {
    let (algorithm, issuer) = (algorithm(), name(&[attribute(CN, 0x0c, b"issuer")]));
    let (from, until) = (time(b"240101000000Z"), time(b"240108000000Z"));
    let version = [2, 1, 1];
    let entry = |serial: &[u8], rest: &[u8]| value(0x30, &[&value(2, &[serial]), &from, rest]);
    let reason = value(
        0x30,
        &[&extension(&[0x55, 0x1d, 21], &[1, 1, 0xff], &[10, 1, 1])],
    );
    let entries = value(0x30, &[&entry(&[5], &[]), &entry(&[0xff, 0], &reason)]);
    let number = value(
        0xa0,
        &[&value(
            0x30,
            &[&extension(&[0x55, 0x1d, 20], &[], &[2, 1, 7])],
        )],
    );
    assert!(is_read(&list(&[&algorithm, &issuer, &from])));
    assert!(is_read(&list(&[
        &version, &algorithm, &issuer, &from, &until, &entries, &number
    ])));
    assert!(is_read(&list(&[
        &version, &algorithm, &issuer, &from, &entries
    ])));
    assert!(is_read(&list(&[
        &version, &algorithm, &issuer, &from, &until, &number
    ])));
    // Several in one text.
    let one = pem("X509 CRL", &list(&[&algorithm, &issuer, &from]), "\r\n");
    let lists = Crl::from_pem(format!("{one}text\n{one}").as_bytes());
    assert_eq!(lists.map(|lists| lists.len()), Ok(2));
}

#[test]
fn damaged_lists_are_none() {
    let (algorithm, issuer) = (algorithm(), name(&[attribute(CN, 0x0c, b"issuer")]));
    let from = time(b"240101000000Z");
    let whole = list(&[&algorithm, &issuer, &from]);
    for len in 0..whole.len() {
        assert!(!is_read(&whole[..len]), "{len}");
    }
    assert!(!is_read(&list(&[&algorithm, &issuer])));
    assert!(!is_read(&list(&[&issuer, &issuer, &from])));
    assert!(!is_read(&list(&[
        &algorithm,
        &issuer,
        &time(b"2401010000Z")
    ])));
    let entry = value(0x30, &[&value(0x30, &[&[2, 1, 5]])]);
    assert!(!is_read(&list(&[&algorithm, &issuer, &from, &entry])));
    assert!(!is_read(&list(&[
        &algorithm,
        &issuer,
        &from,
        &value(0xa0, &[&[5, 0]])
    ])));
    let indefinite = [&[0x30, 0x80][..], &whole[2..], &[0, 0]].concat();
    assert!(!is_read(&indefinite));
}
