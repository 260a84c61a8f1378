//! TLS in the configuration: the protocols of each server, and faults of files.

use std::sync::Arc;

use engines::http::Protocol;
use rcgen::{KeyPair, SignatureAlgorithm};
use server_http::certificates::handshake;

use crate::site::Site;

/// A certificate of a name and its key, PEM.
pub(crate) fn pair(name: &str, algorithm: &'static SignatureAlgorithm) -> (String, String) {
    let key = KeyPair::generate_for(algorithm).expect("the algorithm is built");
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    let certificate = params.self_signed(&key).expect("it can be signed");
    (certificate.pem(), key.serialize_pem())
}

/// Files with a certificate and its key, beside the configuration.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let (certificate, key) = pair("localhost", &rcgen::PKCS_ECDSA_P256_SHA256);
    let (_, other) = pair("other", &rcgen::PKCS_ECDSA_P256_SHA256);
    vec![
        ("/etc/nginx/c.pem", certificate.into_bytes()),
        ("/etc/nginx/k.pem", key.into_bytes()),
        ("/etc/nginx/other.pem", other.into_bytes()),
        ("/etc/nginx/junk.pem", b"nothing\n".to_vec()),
        (
            "/etc/nginx/damaged.pem",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec(),
        ),
        ("/etc/nginx/48.key", vec![7; 48]),
        ("/etc/nginx/47.key", vec![7; 47]),
    ]
}

fn with_files<T>(use_them: impl FnOnce(&[(&str, &[u8])]) -> T) -> T {
    let files = files();
    let borrowed: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, bytes)| (*path, bytes.as_slice()))
        .collect();
    use_them(&borrowed)
}

fn site(inner: &str) -> Site {
    with_files(|files| Site::http_with(inner, files))
}

fn refused(inner: &str) -> String {
    with_files(|files| Site::refused_with(inner, files))
}

const PAIR: &str = "ssl_certificate c.pem; ssl_certificate_key k.pem;";

#[test]
fn a_name_in_the_handshake_chooses_the_server() {
    let site = site(&format!(
        "{PAIR}
        server {{ listen 443 ssl; server_name first; }}
        server {{ listen 443; server_name *.wild.example; }}
        server {{ listen 443; server_name ~^r[0-9]+\\.example$; }}
        server {{ listen 443; server_name .dot.example; }}
        server {{ listen 443 default_server; server_name last; }}
        server {{ listen 80; server_name plain; }}"
    ));
    let http = &site.generation().http;
    let server = |name: Option<&[u8]>| {
        handshake(http, 0, None, name)
            .expect("no expression")
            .certificate
    };
    assert_eq!(server(Some(b"first")), 0);
    assert_eq!(server(Some(b"a.wild.example")), 1);
    assert_eq!(server(Some(b"r12.example")), 2);
    assert_eq!(server(Some(b"dot.example")), 3);
    assert_eq!(server(Some(b"a.dot.example")), 3);
    for other in [&b"nobody"[..], b"", b"bad/name", b"rx.example", b"plain"] {
        assert_eq!(server(Some(other)), 4, "{other:?}");
    }
    assert_eq!(server(None), 4);
    assert!(http.ports[0].addr(None).ssl && !http.ports[1].addr(None).ssl);
}

#[test]
fn a_server_without_a_certificate_shows_that_of_the_default_server() {
    let site = site(&format!(
        "server {{ listen 443 ssl; server_name a; {PAIR} }}
        server {{ listen 443 ssl; server_name b; }}
        server {{ listen 443 ssl; server_name c; ssl_verify_client on; }}
        server {{ listen 443 ssl; server_name d; ssl_reject_handshake on; }}"
    ));
    let http = &site.generation().http;
    let server = |name: &[u8]| {
        handshake(http, 0, None, Some(name))
            .expect("no expression")
            .certificate
    };
    assert_eq!([server(b"a"), server(b"b"), server(b"c")], [0; 3]);
    assert_eq!(server(b"d"), 3);
    let tls = |n: usize| http.tls[n].config.as_ref();
    assert!(tls(0).is_some_and(|tls| tls.has_certificates() && !tls.rejects()));
    assert!(tls(1).is_none());
    assert!(tls(2).is_some_and(|tls| !tls.has_certificates() && tls.asks_for_certificates()));
    assert!(tls(3).is_some_and(|tls| tls.rejects()));
}

#[test]
fn an_address_with_tls_needs_a_certificate() {
    let missing = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive";
    assert_eq!(refused("server { listen 443 ssl; }"), missing);
    assert_eq!(
        refused(&format!(
            "server {{ listen 443; }} server {{ listen 443 ssl; {PAIR} }}"
        )),
        missing
    );
    assert_eq!(
        refused("server { listen 443 ssl; ssl_reject_handshake on; } server { listen 443 ssl; }"),
        missing
    );
    site(&format!(
        "server {{ listen 443 ssl; ssl_reject_handshake on; }}
         server {{ listen 443 ssl; server_name a; {PAIR} }}"
    ));
}

#[test]
fn settings_of_http_are_those_of_servers_that_have_none() {
    let site = site(&format!(
        "{PAIR} ssl_buffer_size 4k;
        server {{ listen 443 ssl; }}
        server {{ listen 444 ssl; ssl_buffer_size 8k; }}"
    ));
    let bytes = |n: usize| {
        let tls = site.generation().http.tls[n].config.as_ref();
        tls.map(|tls| tls.record_bytes())
    };
    assert_eq!([bytes(0), bytes(1)], [Some(4 << 10), Some(8 << 10)]);
}

#[test]
fn faults_of_files_are_told_in_openssls_words() {
    let server = |text: &str| refused(&format!("server {{ listen 443 ssl; {text} }}"));
    assert_eq!(
        server("ssl_certificate c.pem;"),
        "no \"ssl_certificate_key\" is defined for certificate \"c.pem\""
    );
    assert_eq!(
        server("ssl_certificate none.pem; ssl_certificate_key k.pem;"),
        "cannot load certificate \"/etc/nginx/none.pem\": BIO_new_file() failed \
         (SSL: error:80000002:system library::No such file or directory:\
         calling fopen(/etc/nginx/none.pem, r) error:10000080:BIO routines::no such file)"
    );
    assert_eq!(
        server("ssl_certificate junk.pem; ssl_certificate_key k.pem;"),
        "cannot load certificate \"/etc/nginx/junk.pem\": PEM_read_bio_X509_AUX() failed \
         (SSL: error:0480006C:PEM routines::no start line:Expecting: TRUSTED CERTIFICATE)"
    );
    assert!(
        server("ssl_certificate damaged.pem; ssl_certificate_key k.pem;")
            .starts_with("cannot load certificate \"/etc/nginx/damaged.pem\": PEM_read_bio_X509()")
    );
    assert_eq!(
        server("ssl_certificate c.pem; ssl_certificate_key junk.pem;"),
        "cannot load certificate key \"/etc/nginx/junk.pem\": PEM_read_bio_PrivateKey() failed \
         (SSL: error:0480006C:PEM routines::no start line:Expecting: ANY PRIVATE KEY)"
    );
    assert_eq!(
        server("ssl_certificate c.pem; ssl_certificate_key other.pem;"),
        "SSL_CTX_use_PrivateKey(\"/etc/nginx/other.pem\") failed \
         (SSL: error:05800074:x509 certificate routines::key values mismatch)"
    );
    assert!(
        server(&format!(
            "{PAIR} ssl_client_certificate none.pem; ssl_verify_client on;"
        ))
        .starts_with("cannot load certificate \"/etc/nginx/none.pem\": BIO_new_file() failed")
    );
    assert!(
        server(&format!("{PAIR} ssl_crl junk.pem;"))
            .starts_with("cannot load CRL \"/etc/nginx/junk.pem\": PEM_read_bio_X509_CRL() failed")
    );
    assert_eq!(
        server(&format!(
            "{PAIR} ssl_session_ticket_key 48.key; ssl_session_ticket_key 47.key;"
        )),
        "\"/etc/nginx/47.key\" must be 48 or 80 bytes"
    );
    assert_eq!(
        server(&format!("{PAIR} ssl_verify_client on;")),
        "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client"
    );
}

#[test]
fn a_value_may_be_the_certificate_itself() {
    let (certificate, key) = pair("localhost", &rcgen::PKCS_ED25519);
    let text = format!(
        "server {{ listen 443 ssl; ssl_certificate \"data:{certificate}\"; ssl_certificate_key \"data:{key}\"; }}"
    );
    site(&text);
    // Messages do not show possible secrets.
    let text = format!(
        "server {{ listen 443 ssl; ssl_certificate \"data:{certificate}\"; ssl_certificate_key \"data:secret\"; }}"
    );
    let message = refused(&text);
    assert!(
        message.starts_with("cannot load certificate key \"data:...\""),
        "{message}"
    );
    assert!(!message.contains("secret"));
}

#[test]
fn what_is_not_built_is_refused() {
    let server = |text: &str| refused(&format!("server {{ listen 443 ssl; {text} }}"));
    for (text, why) in [
        (
            "ssl_certificate $ssl_server_name.crt; ssl_certificate_key engine:x:$y;",
            "not supported",
        ),
        (
            "ssl_certificate c.pem; ssl_certificate_key engine:pkcs11:x;",
            "not supported",
        ),
        (
            "ssl_certificate c.pem; ssl_certificate_key store:pkcs11:x;",
            "not supported",
        ),
        (&format!("{PAIR} ssl_ocsp on;"), "not built yet"),
        (
            &format!("{PAIR} ssl_ocsp_responder http://127.0.0.1/;"),
            "not built yet",
        ),
        (&format!("{PAIR} ssl_ech_file x;"), "not supported"),
        (
            &format!("{PAIR} ssl_conf_command Options NoEarly;"),
            "it is not supported",
        ),
        (
            &format!("{PAIR} ssl_conf_command MaxProtocol TLSv1.1;"),
            "only TLSv1.2 and TLSv1.3",
        ),
        (
            &format!("{PAIR} ssl_conf_command DHParameters x;"),
            "it is not supported",
        ),
        (
            &format!("{PAIR} ssl_ciphers AES128-SHA;"),
            "no cipher match",
        ),
        (
            &format!("{PAIR} ssl_ecdh_curve nonsense;"),
            "SSL_CTX_set1_curves_list",
        ),
    ] {
        let message = server(text);
        assert!(message.contains(why), "{text}: {message}");
    }
}

#[test]
fn commands_of_openssl_change_what_they_can() {
    let commands = "ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;
        ssl_conf_command CipherString ECDHE-RSA-AES128-GCM-SHA256;
        ssl_conf_command Groups X25519:P-256; ssl_conf_command MinProtocol TLSv1.2;
        ssl_conf_command Options ServerPreference,-SessionTicket,NoRenegotiation;
        ssl_conf_command Certificate c.pem; ssl_conf_command PrivateKey k.pem;";
    site(&format!("server {{ listen 443 ssl; {PAIR} {commands} }}"));
}

#[test]
fn a_file_of_passwords_must_be_there() {
    let text = format!("server {{ listen 443 ssl; {PAIR} ssl_password_file none; }}");
    assert_eq!(
        refused(&text),
        "open() \"/etc/nginx/none\" failed (2: No such file or directory)"
    );
}

#[test]
fn what_mozilla_recommends_loads_with_warnings() {
    let (certificate, key) = pair("localhost", &rcgen::PKCS_ECDSA_P256_SHA256);
    let files: [(&str, &[u8]); 3] = [
        ("/etc/nginx/c.pem", certificate.as_bytes()),
        ("/etc/nginx/k.pem", key.as_bytes()),
        (
            "/etc/nginx/dh.pem",
            b"-----BEGIN DH PARAMETERS-----\nMAYCAQUCAQI=\n-----END DH PARAMETERS-----\n",
        ),
    ];
    let text = format!(
        "server {{ listen 443 ssl; http2 on; {PAIR}
        ssl_protocols TLSv1.2 TLSv1.3; ssl_prefer_server_ciphers off; ssl_dhparam dh.pem;
        ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256;
        ssl_ecdh_curve X25519:prime256v1:secp384r1; ssl_session_timeout 1d;
        ssl_session_cache shared:MozSSL:10m; ssl_session_tickets off;
        ssl_stapling on; ssl_stapling_verify on; ssl_trusted_certificate c.pem; }}"
    );
    let warnings = Site::warnings_with(&text, &files);
    let about = |word: &str| {
        warnings
            .iter()
            .filter(|warning| warning.contains(word))
            .count()
    };
    assert_eq!((about("ssl_stapling"), about("ssl_dhparam")), (1, 1));
    assert_eq!(about("DHE-RSA-AES128-GCM-SHA256"), 1);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let refused = Site::refused_with(&text.replace("dh.pem", "c.pem"), &files);
    assert_eq!(
        refused,
        "PEM_read_bio_Parameters(\"/etc/nginx/c.pem\") failed"
    );
}

#[test]
fn parameters_of_either_label_are_accepted() {
    let (certificate, key) = pair("localhost", &rcgen::PKCS_ECDSA_P256_SHA256);
    let refused = |parameters: &str| {
        let files: [(&str, &[u8]); 3] = [
            ("/etc/nginx/c.pem", certificate.as_bytes()),
            ("/etc/nginx/k.pem", key.as_bytes()),
            ("/etc/nginx/dh.pem", parameters.as_bytes()),
        ];
        let text = format!("server {{ listen 443 ssl; {PAIR} ssl_dhparam dh.pem; }}");
        match Site::warnings_with(&text, &files).as_slice() {
            [warning] => assert!(warning.contains("\"ssl_dhparam\" ignored"), "{warning}"),
            warnings => panic!("{warnings:?}"),
        }
    };
    refused(X942);
    refused(&X942.replace("X9.42 DH", "DH"));
    refused(&format!("# a comment\n{X942}"));
}

/// Parameters of `openssl dhparam -dsaparam 512`.
const X942: &str = "-----BEGIN X9.42 DH PARAMETERS-----
MIGkAkEA4dN7InNtPY1N3YzM1+KwVFl79VHmWI0dh6CCDFnc7G+H1WI8XVg4ifp0
s7sNJ0H2ifNImgCF/Yk6Gy+nlZ4pBQJAHRZ3vBCxG5bnQ7PClKKg0w6JM8NJD32b
XDlGTrk947R+/KM8ja2aolL+oVuKkECC1Oyx0t8wqX7XYnFT8OWnqAIdAJ61ecOY
+DBOoWlhRckKA7HrrPM3jN2ym/pgrr0=
-----END X9.42 DH PARAMETERS-----
";

#[test]
fn certificates_named_by_variables_are_not_read_when_the_configuration_is() {
    let late = "ssl_certificate $ssl_server_name.crt; ssl_certificate_key $ssl_server_name.key;";
    let site = site(&format!(
        "server {{ listen 443 ssl; {late} }}
        server {{ listen 443 ssl; server_name fixed; {PAIR} }}
        server {{ listen 443 ssl; server_name mixed; ssl_certificate none.pem; ssl_certificate_key $host; }}"
    ));
    let http = &site.generation().http;
    let servers = &http.servers;
    let has = |n: usize| {
        let tls = http.tls[n].config.as_ref();
        tls.is_some_and(|tls| tls.has_certificates())
    };
    assert!(has(0) && has(1) && has(2));
    let late = [0, 1, 2].map(|n: usize| servers[n].certificates.is_some());
    assert_eq!(late, [true, false, true]);
}

#[test]
fn each_server_offers_its_own_protocols() {
    let site = site(&format!(
        "{PAIR}
        server {{ listen 443 ssl; server_name on; http2 on; }}
        server {{ listen 443 ssl; server_name off; http2 off; }}
        server {{ listen 444 ssl; server_name default; }}
        server {{ listen 444 ssl; server_name on; http2 on; }}
        server {{ listen 445 ssl http2; server_name listens; }}
        server {{ listen 445 ssl; server_name off; http2 off; }}"
    ));
    let http = &site.generation().http;
    let http2 = |port: usize, name: &[u8]| {
        handshake(http, port, None, Some(name))
            .expect("no expression")
            .offer
            .has(Protocol::Http2)
    };
    assert!(http2(0, b"on") && http2(0, b"nobody") && !http2(0, b"off"));
    assert!(!http2(1, b"default") && !http2(1, b"nobody") && http2(1, b"on"));
    assert!(http2(2, b"listens") && http2(2, b"off"));
}

#[test]
fn spdy_is_offered_on_the_addresses_that_say_so() {
    let site = site(&format!(
        "{PAIR}
        server {{ listen 443 ssl spdy; listen 444 ssl; server_name a; http2 on; }}
        server {{ listen 443 ssl; server_name b; }}"
    ));
    let http = &site.generation().http;
    let offer = |port: usize, name: &[u8]| {
        handshake(http, port, None, Some(name))
            .expect("no expression")
            .offer
    };
    let all = offer(0, b"a");
    assert!(all.has(Protocol::Spdy) && all.has(Protocol::Http2));
    let other = offer(0, b"b");
    assert!(
        other.has(Protocol::Spdy) && !other.has(Protocol::Http2),
        "it is the address that says so"
    );
    let port = offer(1, b"a");
    assert!(!port.has(Protocol::Spdy) && port.has(Protocol::Http2));
}

#[test]
fn a_server_that_shows_another_ones_certificate_offers_its_own_protocols() {
    let site = site(&format!(
        "server {{ listen 443 ssl; server_name a; {PAIR} }}
        server {{ listen 443 ssl; server_name b; http2 on; }}"
    ));
    let chosen = handshake(&site.generation().http, 0, None, Some(b"b")).expect("no expression");
    assert_eq!(
        (chosen.certificate, chosen.offer.has(Protocol::Http2)),
        (0, true)
    );
}

/// Returns whether the second and the third of three servers, each with a certificate, share the policy of the first.
/// The second one has `own`.
fn shares_policy(http: &str, own: &str) -> [bool; 2] {
    let (certificate, key) = pair("second", &rcgen::PKCS_ECDSA_P256_SHA256);
    let mut files = files();
    files.push(("/etc/nginx/second.pem", certificate.into_bytes()));
    files.push(("/etc/nginx/second.key", key.into_bytes()));
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, file)| (*path, &file[..]))
        .collect();
    let second = "ssl_certificate second.pem; ssl_certificate_key second.key;";
    let site = Site::http_with(
        &format!(
            "{http}
            server {{ listen 443 ssl; server_name one; {PAIR} }}
            server {{ listen 443 ssl; server_name two; {second} {own} }}
            server {{ listen 443 ssl; server_name three; {second} }}"
        ),
        &files,
    );
    let tls = &site.generation().http.tls;
    let config = |n: usize| tls[n].config.as_ref().expect("it has a certificate");
    let policy = config(0).policy();
    [1, 2].map(|n| Arc::ptr_eq(policy, config(n).policy()))
}

#[test]
fn servers_have_one_policy_while_no_directive_says_otherwise() {
    for http in [
        "",
        "ssl_session_cache shared:a:1m; ssl_early_data on; ssl_session_timeout 1m;",
    ] {
        assert_eq!(shares_policy(http, ""), [true, true], "{http}");
    }
    for own in [
        "ssl_protocols TLSv1.2;",
        "ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256;",
        "ssl_prefer_server_ciphers on;",
        "ssl_ecdh_curve secp384r1;",
        "ssl_buffer_size 4k;",
        "ssl_certificate_compression on;",
        "ssl_verify_client optional; ssl_client_certificate c.pem;",
        "ssl_verify_client optional_no_ca; ssl_trusted_certificate c.pem;",
        "ssl_session_timeout 1m;",
        "ssl_session_tickets off;",
        "ssl_session_ticket_key 48.key;",
        "ssl_session_cache shared:a:1m;",
        "ssl_session_cache builtin:100;",
        "ssl_early_data on;",
        "ssl_conf_command Options -SessionTicket;",
        "ssl_reject_handshake on;",
    ] {
        assert_eq!(shares_policy("", own), [false, true], "{own}");
    }
    let asks = "ssl_verify_client on; ssl_client_certificate c.pem;";
    assert_eq!(shares_policy(asks, ""), [true, true]);
    for own in [
        "ssl_verify_client off;",
        "ssl_verify_depth 2;",
        "ssl_client_certificate second.pem;",
        "ssl_trusted_certificate second.pem;",
    ] {
        assert_eq!(shares_policy(asks, own), [false, true], "{own}");
    }
    // Each of them has a cache of sessions for itself.
    for http in ["ssl_session_cache builtin:100;", "ssl_early_data on;"] {
        assert_eq!(shares_policy(http, ""), [false, false], "{http}");
    }
}
