//! Certificates are read and shown as by OpenSSL, and damage in each place is found.
//!
//! Expected values are from `openssl x509` of OpenSSL 3.0, unless noted otherwise.
//!
//! Source: RFC 5280 section 4.1; X.690.

mod der;

use der::{CN, Fields, attribute, extension, name, pem, value};
use tls::{Certificate, Chain};

fn subject(attributes: &[Vec<u8>]) -> Fields {
    Fields {
        subject: name(attributes),
        ..Fields::default()
    }
}

fn is_read(fields: &Fields) -> bool {
    let der = fields.der();
    let read = Certificate::parse(&der).is_some();
    let chain = Chain::from_pem(pem("CERTIFICATE", &der, "\n").as_bytes());
    match chain {
        Ok(chain) => assert!(read && chain.certificates().eq([&der[..]])),
        Err(fault) => assert_eq!((read, fault.to_string().as_str()), (false, NOT_DER)),
    }
    read
}

const NOT_DER: &str = "PEM_read_bio_X509() failed (SSL: error:0480000D:PEM routines::ASN1 lib)";

/// Tag and bytes of a common name, and both forms of the name.
type Name<'a> = (u8, &'a [u8], &'a str, &'a str);

#[test]
fn strings_of_names_are_shown_as_openssl_shows_them() {
    let cases: &[Name<'_>] = &[
        (0x0c, "ä".as_bytes(), "CN=\\C3\\A4", "/CN=\\xC3\\xA4"),
        (0x0c, b"", "CN=", "/CN="),
        (0x0c, b" a# ", "CN=\\ a#\\ ", "/CN= a# "),
        (
            0x0c,
            b"#+,\"\\<>;=/",
            "CN=\\#\\+\\,\\\"\\\\\\<\\>\\;=/",
            "/CN=#\\+,\"\\<>;=\\/",
        ),
        (0x0c, b"\0\n\x7f", "CN=\\00\\0A\\7F", "/CN=\\x00\\x0A\\x7F"),
        (0x12, b"12 3", "CN=12 3", "/CN=12 3"),
        (0x13, b"a_b", "CN=a_b", "/CN=a_b"),
        // T61String is taken for Latin-1.
        (0x14, b"\xe9", "CN=\\C3\\A9", "/CN=\\xE9"),
        (0x16, b"a@b", "CN=a@b", "/CN=a@b"),
        (
            0x1c,
            b"\0\0\0a\0\x01\xf6\0",
            "CN=a\\F0\\9F\\98\\80",
            "/CN=\\x00\\x00\\x00a\\x00\\x01\\xF6\\x00",
        ),
        (0x1e, b"\0a\x20\xac", "CN=a\\E2\\82\\AC", "/CN=\\x00a \\xAC"),
        // A value that is no string is shown as DER in the newer form.
        (0x30, &[5, 0], "CN=#30020500", "/CN=\\x05\\x00"),
    ];
    for (tag, bytes, newer, older) in cases {
        let der = subject(&[attribute(CN, *tag, bytes)]).der();
        let certificate = Certificate::parse(&der).expect("a certificate");
        assert_eq!(certificate.subject(), *newer, "{tag:x} {bytes:x?}");
        assert_eq!(certificate.subject_oneline(), *older, "{tag:x} {bytes:x?}");
        assert_eq!(certificate.issuer(), "CN=issuer");
        assert_eq!(certificate.issuer_oneline(), "/CN=issuer");
    }
}

/// OpenSSL reads no certificate with such strings; here they are shown, with a placeholder for unknown characters.
#[test]
fn other_and_damaged_strings_of_names_are_shown_nevertheless() {
    let cases: &[Name<'_>] = &[
        (0x1a, b"v", "CN=v", "/CN=v"),
        (0x02, &[1, 2], "CN=#02020102", "/CN=\\x01\\x02"),
        (0x04, b"oct", "CN=#04036F6374", "/CN=oct"),
        (0x0c, b"a\xff", "CN=a\\EF\\BF\\BD", "/CN=a\\xFF"),
        (0x1e, b"\0a\0", "CN=a", "/CN=\\x00a\\x00"),
        (0x1e, b"\xd8\0", "CN=\\EF\\BF\\BD", "/CN=\\xD8\\x00"),
        (
            0x1c,
            b"\0\x11\0\0",
            "CN=\\EF\\BF\\BD",
            "/CN=\\x00\\x11\\x00\\x00",
        ),
        (0x1c, b"\0\0a", "CN=", "/CN=\\x00\\x00a"),
    ];
    for (tag, bytes, newer, older) in cases {
        let der = subject(&[attribute(CN, *tag, bytes)]).der();
        let certificate = Certificate::parse(&der).expect("a certificate");
        assert_eq!(certificate.subject(), *newer, "{tag:x} {bytes:x?}");
        assert_eq!(certificate.subject_oneline(), *older, "{tag:x} {bytes:x?}");
    }
}

#[test]
fn sets_and_unknown_attributes_of_names() {
    let both = [
        attribute(CN, 0x0c, b"a"),
        attribute(&[0x55, 4, 10], 0x0c, b"b"),
    ]
    .concat();
    let unknown = attribute(&[0x2a, 3, 0x84, 0x5f], 0x0c, b"u");
    let der = Fields {
        subject: value(0x30, &[&value(0x31, &[&unknown]), &value(0x31, &[&both])]),
        issuer: value(0x30, &[]),
        ..Fields::default()
    }
    .der();
    let certificate = Certificate::parse(&der).expect("a certificate");
    assert_eq!(certificate.subject(), "O=b+CN=a,1.2.3.607=#0C0175");
    assert_eq!(certificate.subject_oneline(), "/1.2.3.607=u/CN=a+O=b");
    assert_eq!(certificate.issuer(), "");
}

#[test]
fn serial_numbers_are_shown_as_openssl_shows_them() {
    let long = [&[0x7f][..], &[0xab; 25]].concat();
    let cases: &[(&[u8], &str)] = &[
        (&[0], "00"),
        (&[5], "05"),
        (&[0x7f, 0xff], "7FFF"),
        (&[0, 0x80], "80"),
        (&[0x80], "-80"),
        (&[0xff], "-01"),
        (&[0xff, 0], "-0100"),
        (&long, &format!("7F{}", "AB".repeat(25))),
    ];
    for (bytes, shown) in cases {
        let der = Fields {
            serial: value(2, &[bytes]),
            ..Fields::default()
        }
        .der();
        let certificate = Certificate::parse(&der).expect("a certificate");
        assert_eq!(certificate.serial(), *shown, "{bytes:x?}");
    }
}

#[test]
fn times_are_shown_as_openssl_shows_them() {
    const UTC: u8 = 0x17;
    const GENERALIZED: u8 = 0x18;
    let cases: &[(u8, &[u8], &str)] = &[
        (UTC, b"491231235959Z", "Dec 31 23:59:59 2049 GMT"),
        (UTC, b"500101000000Z", "Jan  1 00:00:00 1950 GMT"),
        (UTC, b"000229010203Z", "Feb 29 01:02:03 2000 GMT"),
        (GENERALIZED, b"20240229120000Z", "Feb 29 12:00:00 2024 GMT"),
        (GENERALIZED, b"19491231235959Z", "Dec 31 23:59:59 1949 GMT"),
        (GENERALIZED, b"00010203040506Z", "Feb  3 04:05:06 1 GMT"),
        (GENERALIZED, b"99991231235959Z", "Dec 31 23:59:59 9999 GMT"),
    ];
    for (tag, text, shown) in cases {
        let der = Fields::valid((*tag, text), (*tag, text)).der();
        let certificate = Certificate::parse(&der).expect("a certificate");
        assert_eq!(certificate.valid_from(), *shown);
        assert_eq!(certificate.valid_until(), *shown);
    }
    let der = Fields::valid((UTC, b"700101000000Z"), (UTC, b"700111000000Z")).der();
    let certificate = Certificate::parse(&der).expect("a certificate");
    let left = |days: i64, s: i64| certificate.days_left(days * 86_400 + s);
    assert_eq!(
        [left(0, 0), left(0, 1), left(9, 86_399), left(11, 0)],
        [10, 9, 0, 0]
    );
}

/// OpenSSL reads certificates with times of any form, and shows "Bad time value" or refuses them when they are checked.
#[test]
fn times_of_other_forms_make_no_certificate() {
    let good = (0x17, &b"491231235959Z"[..]);
    for (tag, text) in [
        (0x17, &b"2001010000Z"[..]),
        (0x17, b"200101000000"),
        (0x17, b"200101000000+0000"),
        (0x17, b"200001000000Z"),
        (0x17, b"201301000000Z"),
        (0x17, b"200100000000Z"),
        (0x17, b"200132000000Z"),
        (0x17, b"200101240000Z"),
        (0x17, b"200101006000Z"),
        (0x17, b"200101000060Z"),
        (0x17, b"2001010000-1Z"),
        (0x17, b""),
        (0x18, b"200101000000Z"),
        (0x18, b"20200101000000.5Z"),
        (0x0c, b"200101000000Z"),
    ] {
        assert!(!is_read(&Fields::valid((tag, text), good)), "{text:?}");
        assert!(!is_read(&Fields::valid(good, (tag, text))), "{text:?}");
    }
    // A day that its month does not have is shown as OpenSSL does.
    let der = Fields::valid((0x17, b"230230000000Z"), good).der();
    let shown = Certificate::parse(&der).map(|certificate| certificate.valid_from());
    assert_eq!(shown.as_deref(), Some("Bad time value"));
}

#[test]
fn digests_and_pem_are_of_all_bytes() {
    let der = Fields::default().der();
    let certificate = Certificate::parse(&der).expect("a certificate");
    assert_eq!(certificate.fingerprint(), FINGERPRINT);
    assert_eq!(certificate.pem(), pem("CERTIFICATE", &der, "\n").as_bytes());
}

/// From `openssl x509 -fingerprint -sha1`.
const FINGERPRINT: &str = "ebf362b492da902e2773ca4de80500467b1c698f";

#[test]
fn versions_and_what_follows_the_key() {
    let with = |change: &dyn Fn(&mut Fields)| {
        let mut fields = Fields::default();
        change(&mut fields);
        is_read(&fields)
    };
    assert!(with(&|f| f.version = vec![0xa0, 3, 2, 1, 0]));
    assert!(with(&|f| f.version = vec![]));
    assert!(with(&|f| f.version = vec![0xa0, 3, 2, 1, 1]));
    assert!(!with(&|f| f.version = vec![0xa0, 3, 2, 1, 3]));
    assert!(!with(&|f| f.version = vec![0xa0, 3, 2, 1, 0xff]));
    // Identifiers of issuer and subject, which are unused in practice.
    let ids = [value(0x81, &[&[0, 1]]), value(0x82, &[&[0, 1]])].concat();
    assert!(with(&|f| f.rest.clone_from(&ids)));
    assert!(!with(&|f| f.rest = vec![0x30]));
    assert!(!with(
        &|f| f.inner_algorithm = value(0x30, &[&value(6, &[CN])])
    ));
    assert!(!with(&|f| f.signature = value(3, &[&[4, 0x10]])));
    assert!(!with(&|f| f.signature = value(3, &[])));
    assert!(!with(&|f| f.serial = vec![2, 0]));
    assert!(!with(&|f| f.serial = vec![]));
    assert!(!with(&|f| f.subject = value(0x31, &[])));
}

#[test]
fn extensions_are_read_whatever_their_order() {
    const BASIC: &[u8] = &[0x55, 0x1d, 19];
    const USAGE: &[u8] = &[0x55, 0x1d, 15];
    let read = |list: &[Vec<u8>]| is_read(&Fields::extended(list));
    assert!(read(&[]));
    let authority = value(0x30, &[&[1, 1, 0xff]]);
    assert!(read(&[
        extension(USAGE, &[1, 1, 0xff], &[3, 2, 1, 6]),
        extension(BASIC, &[], &authority)
    ]));
    // Not DER, but accepted by OpenSSL: an explicit default value, other bytes for "true".
    assert!(read(&[extension(BASIC, &[1, 1, 0], &authority)]));
    assert!(read(&[extension(
        BASIC,
        &[1, 1, 1],
        &value(0x30, &[&[1, 1, 1]])
    )]));
    // Unused bits of a set that are not 0.
    assert!(read(&[extension(USAGE, &[], &[3, 2, 1, 7])]));
    assert!(read(&[extension(&[0x2a, 3], &[1, 1, 0xff], b"whatever")]));
    assert!(!read(&[extension(USAGE, &[], &[3, 1, 0])]));
    assert!(!read(&[extension(BASIC, &[], &[2, 1, 0])]));
    assert!(!read(&[extension(
        BASIC,
        &[],
        &value(0x30, &[&[2, 1, 0x80]])
    )]));
    assert!(!read(&[vec![0x30, 0]]));
    let mut twice = Fields::extended(&[]);
    twice.rest = value(0xa3, &[&[0x30, 0], &[0x30, 0]]);
    assert!(!is_read(&twice));
}

#[test]
fn lengths_are_definite_and_shortest() {
    let whole = Fields::default().der();
    assert_eq!(
        whole[..2],
        [0x30, 0x81],
        "the sample has a length of one byte"
    );
    let body = &whole[3..];
    let framed = |length: &[u8]| [&[0x30][..], length, body, &[0, 0]].concat();
    let len = (body.len() as u32).to_be_bytes();
    for length in [
        &[0x80][..],
        &[0x82, len[2], len[3]],
        &[0x83, len[1], len[2], len[3]],
        &[0x84, len[0], len[1], len[2], len[3]],
        &[0x85, 0, len[0], len[1], len[2], len[3]],
        &[0x84, 0xff, 0xff, 0xff, 0xff],
        &[0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xff],
    ] {
        let der = framed(length);
        assert!(Certificate::parse(&der).is_none(), "{length:x?}");
        let fault = Chain::from_pem(pem("CERTIFICATE", &der, "\n").as_bytes());
        assert_eq!(fault.expect_err("it is none").to_string(), NOT_DER);
    }
    for len in 0..whole.len() {
        assert!(Certificate::parse(&whole[..len]).is_none(), "{len}");
    }
    // Bytes behind a certificate are the trust settings of a trusted one.
    let behind = [&whole[..], &[5, 0]].concat();
    assert!(Certificate::parse(&behind).is_none());
    for label in ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"] {
        let chain = Chain::from_pem(pem(label, &behind, "\n").as_bytes()).expect("a chain");
        assert!(chain.certificates().eq([&whole[..]]));
    }
    let mut tagged = whole.clone();
    tagged[0] = 0x3f;
    assert!(Certificate::parse(&tagged).is_none());
}
