//! Texts of certificates, keys and lists: permitted text around them, and OpenSSL's words for faults.
//!
//! Source: RFC 7468; PEM_read_bio(3).

mod der;

use der::{Fields, pem};
use tls::{Chain, Crl, Key};

fn read(text: &str) -> Result<usize, String> {
    match Chain::from_pem(text.as_bytes()) {
        Ok(chain) => Ok(chain.certificates().count()),
        Err(fault) => Err(fault.to_string()),
    }
}

fn sample() -> String {
    pem("CERTIFICATE", &Fields::default().der(), "\n")
}

#[test]
fn what_stands_around_is_passed_over() {
    let (one, label) = (sample(), "CERTIFICATE");
    let der = Fields::default().der();
    let between = format!(
        "subject=a\n\n{one}\r\nBag Attributes: <No Attributes>\n -----BEGIN X-----\n{one}end"
    );
    assert_eq!(read(&between), Ok(2));
    assert_eq!(read(&pem(label, &der, "\r\n")), Ok(1));
    assert_eq!(read(&pem(label, &der, " \t\n")), Ok(1));
    assert_eq!(read(one.trim_end()), Ok(1));
    // Lines within, of any length.
    assert_eq!(read(&one.replacen("\n", "\n\n", 1)), Ok(1));
    let lines: Vec<&str> = one.lines().collect();
    let long = lines[1..lines.len() - 1].concat();
    assert_eq!(
        read(&format!("{}\n{long}\n{}", lines[0], lines[lines.len() - 1])),
        Ok(1)
    );
    let apart = long
        .chars()
        .map(|digit| format!(" {digit}\n"))
        .collect::<String>();
    assert_eq!(
        read(&format!("{}\n{apart}{}", lines[0], lines[lines.len() - 1])),
        Ok(1)
    );
    // Head lines before the digits.
    assert_eq!(
        read(&one.replacen('\n', "\nComment: a text\nX:\n\n", 1)),
        Ok(1)
    );
    // Other parts before it.
    let key = pem("SOMETHING", b"whatever", "\n");
    assert_eq!(read(&(key + &one)), Ok(1));
}

const NO_START: &str = "PEM_read_bio_X509_AUX() failed \
    (SSL: error:0480006C:PEM routines::no start line:Expecting: TRUSTED CERTIFICATE)";
const DAMAGED: &str =
    "PEM_read_bio_X509() failed (SSL: error:04800064:PEM routines::bad base64 decode)";

#[test]
fn what_is_no_part_is_told_in_openssls_words() {
    let one = sample();
    let no_start = Err(NO_START.to_owned());
    assert_eq!(read(""), no_start);
    assert_eq!(read("text"), no_start);
    assert_eq!(read(&pem("PRIVATE KEY", b"k", "\n")), no_start);
    assert_eq!(read(&one.replace("CERTIFICATE", "certificate")), no_start);
    assert_eq!(read(&format!("\u{feff}{one}")), no_start);
    assert_eq!(read(&format!(" {one}")), no_start);
    assert_eq!(read(&one.replacen("-----", "----", 1)), no_start);
    let damaged = Err(DAMAGED.to_owned());
    for wrong in [
        one.replace("END CERTIFICATE", "END CERTIFICATES"),
        one.replace("-----END CERTIFICATE-----", ""),
        one.replace("-----END", " -----END"),
        one.replacen("\nM", "\n?", 1),
        one.replacen("\nM", "\n", 1),
        one.replacen("\nM", "\n=", 1),
        format!("{one}{}", one.replace("-----END", "----END")),
        format!("{one}-----BEGIN X-----\nAA\n-----END X-----\n"),
    ] {
        assert_eq!(read(&wrong), damaged, "{wrong}");
    }
}

#[test]
fn digits_end_with_as_many_signs_as_are_missing() {
    // Unused text within the label is hashed as well, so that any bytes will do.
    let with = |digits: &str| {
        read(&format!(
            "-----BEGIN X-----\n{digits}\n-----END X-----\n{}",
            sample()
        ))
    };
    for right in [
        "",
        "AAAA",
        "AAA=",
        "AA==",
        "AAAAAA==",
        "A A\tA\nA",
        "AA\n==",
        "+/+/",
    ] {
        assert_eq!(with(right), Ok(1), "{right}");
    }
    // Bits that belong to no byte may be 1, as in OpenSSL.
    assert_eq!(
        [with("AAB="), with("AB=="), with("A/==")],
        [Ok(1), Ok(1), Ok(1)]
    );
    for wrong in [
        "A",
        "AA",
        "AAA",
        "AAAAA",
        "A===",
        "====",
        "=",
        "AA=A",
        "AA=",
        "AAA==",
        "AAAA=",
        "AAAA==",
        "AAAA====",
        "=AAA",
        "AA==AAAA",
        "A-A_",
        "AAA\u{a0}",
        "AA\0A",
    ] {
        assert_eq!(with(wrong), Err(DAMAGED.to_owned()), "{wrong:?}");
    }
}

#[test]
fn keys_and_lists_are_told_apart_by_their_labels() {
    let told = |text: &str| {
        Key::from_pem(text.as_bytes(), &[])
            .expect_err("no key")
            .to_string()
    };
    let key = "PEM_read_bio_PrivateKey() failed ";
    let no_start = format!(
        "{key}(SSL: error:0480006C:PEM routines::no start line:Expecting: ANY PRIVATE KEY)"
    );
    assert_eq!(told(""), no_start);
    assert_eq!(told(&sample()), no_start);
    assert_eq!(told(&pem("PUBLIC KEY", b"k", "\n")), no_start);
    let damaged = format!("{key}(SSL: error:04800064:PEM routines::bad base64 decode)");
    assert_eq!(
        told("-----BEGIN PRIVATE KEY-----\nA\n-----END PRIVATE KEY-----\n"),
        damaged
    );
    assert_eq!(
        told(&pem("DSA PRIVATE KEY", b"k", "\n")),
        format!("{key}(\"DSA PRIVATE KEY\" is not supported)")
    );
    let locked = pem("ENCRYPTED PRIVATE KEY", b"k", "\n");
    assert_eq!(
        told(&locked),
        format!("{key}(SSL: error:0480000D:PEM routines::ASN1 lib)")
    );
    let head =
        "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,000102030405060708090A0B0C0D0E0F\n\n";
    let older = pem("RSA PRIVATE KEY", &[7; 16], "\n").replacen('\n', head, 1);
    assert_eq!(
        told(&older),
        format!("{key}(SSL: error:04800065:PEM routines::bad decrypt)")
    );

    let told = |text: &str| {
        Crl::from_pem(text.as_bytes())
            .expect_err("no list")
            .to_string()
    };
    let list = "PEM_read_bio_X509_CRL() failed ";
    let no_start =
        format!("{list}(SSL: error:0480006C:PEM routines::no start line:Expecting: X509 CRL)");
    assert_eq!(told(&sample()), no_start);
    assert_eq!(
        told(&pem("X509 CRL", b"l", "\n")),
        format!("{list}(SSL: error:0480000D:PEM routines::ASN1 lib)")
    );
    let damaged = format!("{list}(SSL: error:04800064:PEM routines::bad base64 decode)");
    assert_eq!(told("-----BEGIN X509 CRL-----\nA"), damaged);
}
