//! Requests over TLS: variables, and clients with and without certificates.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    KeyUsagePurpose, SerialNumber,
};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion};
use tls::{Info, Offered};

use crate::site::Site;
use crate::tls_settings::pair;

/// An authority, and a certificate of it, DER.
fn authority(name: &str) -> (String, Vec<u8>) {
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().expect("there is randomness");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("it can be signed");
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "Some, \"Org\"");
    params.distinguished_name.push(DnType::CommonName, "client");
    params.serial_number = Some(SerialNumber::from_slice(&[0x0a, 0xbc]));
    params.not_before = rcgen::date_time_ymd(1990, 2, 3);
    let key = KeyPair::generate().expect("there is randomness");
    let leaf = params.signed_by(&key, &issuer).expect("it can be signed");
    (issuer.pem(), leaf.der().to_vec())
}

fn site(inner: &str, authorities: &[(&str, &str)]) -> Site {
    let (certificate, key) = pair("localhost", &rcgen::PKCS_ECDSA_P256_SHA256);
    let mut files = vec![
        ("/etc/nginx/c.pem", certificate.as_bytes()),
        ("/etc/nginx/k.pem", key.as_bytes()),
    ];
    files.extend(
        authorities
            .iter()
            .map(|(path, pem)| (*path, pem.as_bytes())),
    );
    let inner = format!("ssl_certificate c.pem; ssl_certificate_key k.pem; root /www; {inner}");
    Site::http_with(&inner, &files)
}

fn named(name: &str) -> Info {
    Info {
        server_name: Some(name.as_bytes().to_vec()),
        ..Info::default()
    }
}

fn value(site: &mut Site) -> String {
    site.get("/").body
}

#[test]
fn variables_tell_what_was_agreed_on() {
    let mut site = site(
        "server { listen 443 ssl; return 200 \"$ssl_protocol $ssl_cipher $ssl_curve $ssl_server_name \
         $ssl_session_reused [$ssl_early_data] $ssl_alpn_protocol $ssl_ciphers $ssl_curves $ssl_sigalgs \
         $ssl_client_verify [$ssl_session_id$ssl_sigalg$ssl_client_cert]\"; }
         server { listen 80; return 200 \"[$ssl_protocol$ssl_client_verify$ssl_session_reused]\"; }",
        &[],
    );
    let info = Info {
        version: Some(ProtocolVersion::TLSv1_3),
        cipher: Some(CipherSuite::TLS13_AES_128_GCM_SHA256),
        group: Some(NamedGroup::secp256r1),
        resumed: true,
        alpn: Some(b"http/1.1".to_vec()),
        offered: Arc::new(Offered {
            ciphers: vec![0x1301, 0xc02f, 0x0a0a, 0x00ff],
            groups: vec![0x11ec, 29, 23, 0x1a1a],
            schemes: vec![0x0403, 0x0804],
        }),
        ..named("localhost")
    };
    site.come_over(0, info);
    assert_eq!(
        value(&mut site),
        "TLSv1.3 TLS_AES_128_GCM_SHA256 prime256v1 localhost r [] http/1.1 \
         TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256:0x0a0a:TLS_EMPTY_RENEGOTIATION_INFO_SCSV \
         X25519MLKEM768:X25519:prime256v1:0x1a1a 0x0403:0x0804 NONE []"
    );
}

#[test]
fn without_tls_its_variables_are_empty() {
    let mut site = Site::server("return 200 \"[$ssl_protocol$ssl_client_verify$ssl_cipher]\";");
    assert_eq!(value(&mut site), "[]");
}

#[test]
fn scheme_and_redirects_are_those_of_tls() {
    let mut site = site(
        "server { listen 443 ssl; server_name localhost;
           location = /v { return 200 \"$scheme $https\"; } location = /r { return 301 /there; } }
         server { listen 8443 ssl; location = /r { return 301 /there; } }",
        &[],
    )
    .dir("/www/dir/");
    site.come_over(0, named("localhost"));
    assert_eq!(site.get("/v").body, "https on");
    assert_eq!(
        site.get("/r").field("Location"),
        "https://localhost:80/there"
    );
    let mut plain = Site::server("location = /v { return 200 \"$scheme [$https]\"; }");
    assert_eq!(plain.get("/v").body, "http []");
}

#[test]
fn variables_tell_of_the_clients_certificate() {
    let (authority, client) = authority("Authority");
    let mut site = site(
        "server { listen 443 ssl; ssl_verify_client optional; ssl_client_certificate ca.pem;
           location = /v { return 200 \"$ssl_client_verify|$ssl_client_s_dn|$ssl_client_i_dn|$ssl_client_s_dn_legacy|\
             $ssl_client_i_dn_legacy|$ssl_client_serial|$ssl_client_v_start\"; }
           location = /raw { return 200 $ssl_client_raw_cert; }
           location = /cert { return 200 $ssl_client_cert; }
           location = /escaped { return 200 $ssl_client_escaped_cert; }
           location = /fingerprint { return 200 $ssl_client_fingerprint; }
           location = /days { return 200 $ssl_client_v_remain; } }",
        &[("/etc/nginx/ca.pem", &authority)],
    );
    site.come_over(
        0,
        Info {
            certificates: vec![client],
            ..Info::default()
        },
    );
    assert_eq!(
        site.get("/v").body,
        "SUCCESS|CN=client,O=Some\\, \\\"Org\\\"|CN=Authority|/O=Some, \"Org\"/CN=client|\
         /CN=Authority|0ABC|Feb  3 00:00:00 1990 GMT"
    );
    let raw = site.get("/raw").body;
    assert!(raw.starts_with("-----BEGIN CERTIFICATE-----\nMII") && raw.ends_with("-----\n"));
    assert_eq!(site.get("/cert").body, raw.trim_end().replace('\n', "\n\t"));
    let escaped = site.get("/escaped").body;
    assert!(escaped.starts_with("-----BEGIN%20CERTIFICATE-----%0AMII"));
    assert_eq!(site.get("/fingerprint").body.len(), 40);
    assert!(
        site.get("/days")
            .body
            .parse::<u32>()
            .is_ok_and(|days| days > 700_000)
    );
}

#[test]
fn clients_without_a_required_certificate_get_496_and_with_a_bad_one_495() {
    let ((authority_pem, client), (_, strange)) = (authority("Authority"), authority("Stranger"));
    let mut site = site(
        "server { listen 443 ssl; ssl_verify_client on; ssl_client_certificate ca.pem;
           return 200 in; }
         server { listen 444 ssl; ssl_verify_client on; ssl_client_certificate ca.pem;
           error_page 495 496 =200 /e; location / { return 200 in; }
           location = /e { return 200 $ssl_client_verify; } }",
        &[("/etc/nginx/ca.pem", &authority_pem)],
    );
    let with = |certificates: &[&Vec<u8>]| Info {
        certificates: certificates.iter().map(|der| der.to_vec()).collect(),
        ..Info::default()
    };
    let answer = site.come_over(0, with(&[])).get("/");
    assert_eq!((answer.status, answer.keep_alive), (400, false));
    assert!(answer.body.contains("No required SSL certificate was sent"));
    let answer = site.come_over(0, with(&[&strange])).get("/");
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("The SSL certificate error"));
    assert_eq!(site.come_over(0, with(&[&client])).get("/").body, "in");
    let page = site.come_over(1, with(&[&strange])).get("/").body;
    assert_eq!(page, "FAILED:unable to verify the first certificate");
    assert_eq!(site.come_over(1, with(&[])).get("/").body, "NONE");
}

#[test]
fn refusals_are_logged_as_in_nginx() {
    let ((authority_pem, _), (_, strange)) = (authority("Authority"), authority("Stranger"));
    let mut site = site(
        "server { listen 443 ssl; ssl_verify_client on; ssl_client_certificate ca.pem; }",
        &[("/etc/nginx/ca.pem", &authority_pem)],
    );
    let log = site.logged(|site| {
        site.come_over(0, Info::default()).get("/");
        let bad = Info {
            certificates: vec![strange.clone()],
            ..Info::default()
        };
        site.come_over(0, bad).get("/");
    });
    assert!(log.contains(
        "client sent no required SSL certificate while reading client request headers, client: "
    ));
    assert!(log.contains(
        "client SSL certificate verify error: (21:unable to verify the first certificate) \
         while reading client request headers, client: "
    ));
}

#[test]
fn a_host_with_another_policy_than_the_name_in_the_handshake_is_misdirected() {
    let (authority_pem, client) = authority("Authority");
    let (other_pem, _) = authority("Other");
    let mut site = site(
        "server { listen 443 ssl; server_name open; return 200 open; }
         server { listen 443 ssl; server_name closed; ssl_verify_client on; ssl_client_certificate ca.pem;
           return 200 closed; }
         server { listen 443 ssl; server_name same; ssl_verify_client on; ssl_client_certificate ca.pem;
           return 200 same; }
         server { listen 443 ssl; server_name other; ssl_verify_client on; ssl_client_certificate other.pem;
           return 200 other; }",
        &[("/etc/nginx/ca.pem", &authority_pem), ("/etc/nginx/other.pem", &other_pem)],
    );
    let mut ask = |name: &str, host: &str, certificates: &[Vec<u8>]| {
        let info = Info {
            server_name: (!name.is_empty()).then(|| name.as_bytes().to_vec()),
            certificates: certificates.to_vec(),
            ..Info::default()
        };
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = site.come_over(0, info).send(&request);
        (answer.status, answer.body)
    };
    let certificate = [client];
    let ok = |text: &str| (200, text.to_owned());
    assert_eq!(ask("closed", "closed", &certificate), ok("closed"));
    assert_eq!(ask("closed", "same", &certificate), ok("same"));
    assert_eq!(ask("closed", "open", &certificate), ok("open"));
    assert_eq!(ask("open", "closed", &[]).0, 421);
    assert_eq!(ask("closed", "other", &certificate).0, 421);
    // Without a server name there was no other server; the requested server checks the certificate.
    assert_eq!(ask("", "closed", &[]).0, 400);
    assert_eq!(ask("", "open", &[]), ok("open"));
    assert_eq!(ask("", "other", &certificate).0, 400);
}

#[test]
fn the_name_in_the_handshake_counts_until_the_host_is_known() {
    let mut site = site(
        "server { listen 443 ssl; server_name first; error_page 400 =200 /e; location = /e { return 200 first; } }
         server { listen 443 ssl; server_name second; error_page 400 =200 /e; location = /e { return 200 second; } }",
        &[],
    );
    let broken = "GET / HTTP/1.1\r\n\r\n";
    assert_eq!(
        site.come_over(0, named("second")).send(broken).body,
        "second"
    );
    assert_eq!(
        site.come_over(0, named("nobody")).send(broken).body,
        "first"
    );
}
