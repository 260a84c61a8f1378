//! OCSP stapling in the configuration: the responder of each certificate, and reasons for asking none.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, IsCa, KeyPair,
};

use crate::site::Site;

/// An authority, and a certificate of it with its key and the URL of its responder; PEM.
fn made(url: Option<&[u8]>) -> [String; 3] {
    let named = |name| {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let key = || KeyPair::generate().expect("there is randomness");
    let mut params = named("issuer");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, key()).expect("an authority");
    let mut params = named("server");
    if let Some(url) = url {
        let mut access = vec![0x06, 8, 0x2b, 6, 1, 5, 5, 7, 48, 1, 0x86, url.len() as u8];
        access.extend_from_slice(url);
        let wrap = |inner: Vec<u8>| [&[0x30, inner.len() as u8][..], &inner].concat();
        let id = [1, 3, 6, 1, 5, 5, 7, 1, 1];
        let access = CustomExtension::from_oid_content(&id, wrap(wrap(access)));
        params.custom_extensions.push(access);
    }
    let own = key();
    let certificate = params.signed_by(&own, &issuer).expect("a certificate");
    [issuer.pem(), certificate.pem(), own.serialize_pem()]
}

const PAIR: &str = "ssl_certificate c.pem; ssl_certificate_key k.pem; ssl_stapling on;";

/// Uses the certificate alone, and with its issuer after it.
fn with_files<T>(url: Option<&[u8]>, use_them: impl FnOnce(&[(&str, &[u8])]) -> T) -> T {
    let [issuer, certificate, key] = made(url);
    let whole = format!("{certificate}{issuer}");
    use_them(&[
        ("/etc/nginx/c.pem", certificate.as_bytes()),
        ("/etc/nginx/whole.pem", whole.as_bytes()),
        ("/etc/nginx/k.pem", key.as_bytes()),
        ("/etc/nginx/ca.pem", issuer.as_bytes()),
        ("/etc/nginx/resp.der", &[0x30, 3, 10, 1, 6]),
    ])
}

#[test]
fn what_keeps_a_status_from_being_asked_is_a_warning() {
    let ca = "ssl_trusted_certificate ca.pem;";
    let at = |url: &str| format!("{ca} ssl_stapling_responder {url};");
    for (inner, url, why) in [
        ("", None, "issuer certificate not found for certificate"),
        (
            "ssl_client_certificate ca.pem;",
            None,
            "issuer certificate not found for certificate",
        ),
        (ca, None, "no OCSP responder URL in the certificate"),
        (
            "ssl_client_certificate ca.pem; ssl_verify_client optional;",
            None,
            "no OCSP responder URL in the certificate",
        ),
        (
            ca,
            Some(&b"ldap://x"[..]),
            "invalid URL prefix in OCSP responder \"ldap://x\" in the certificate",
        ),
        (
            ca,
            Some(&b"http://x\x1b"[..]),
            "invalid URL in OCSP responder \"http://x\\u{1b}\" in the certificate",
        ),
        (
            &at("https://127.0.0.1/"),
            None,
            "invalid URL prefix in OCSP responder \"https://127.0.0.1/\" in the certificate",
        ),
        (
            &at("http://none.test/"),
            None,
            "host not found in OCSP responder \"http://none.test/\" in the certificate",
        ),
    ] {
        let text = format!("server {{ listen 443 ssl; {PAIR} {inner} }}");
        let warnings = with_files(url, |files| Site::warnings_with(&text, files));
        let said = format!("\"ssl_stapling\" ignored, {why} \"/etc/nginx/c.pem\"");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(&said), "{said}: {warnings:?}");
    }
}

/// Hosts, ports and addresses of planned OCSP requests, and whether names are resolved later.
fn asked(inner: &str, url: Option<&[u8]>) -> Vec<String> {
    let site = with_files(url, |files| {
        assert_eq!(Site::warnings_with(inner, files), Vec::<String>::new());
        Site::http_with(inner, files)
    });
    let fetches = &site.generation().http.background_fetches;
    let told = fetches.iter().map(|fetch| {
        let to = fetch.endpoint();
        let known: Vec<_> = to.addresses.iter().map(ToString::to_string).collect();
        let later = if to.servers.is_some() { " later" } else { "" };
        format!("{}:{} [{}]{later}", to.host, to.port, known.join(" "))
    });
    told.collect()
}

#[test]
fn the_responder_is_that_of_the_directive_or_of_the_certificate() {
    let own = Some(&b"http://127.0.0.1:81/x"[..]);
    let text = format!("{PAIR} ssl_trusted_certificate ca.pem;");
    let server = |inner: &str| format!("{text} server {{ listen 443 ssl; {inner} }}");
    assert_eq!(asked(&server(""), own), ["127.0.0.1:81 [127.0.0.1:81]"]);
    let said = server("ssl_stapling_responder http://[::1];");
    assert_eq!(asked(&said, own), ["[::1]:80 [[::1]:80]"]);
    let later = server("resolver 127.0.0.1; ssl_stapling_responder http://ocsp.test:82/;");
    assert_eq!(asked(&later, None), ["ocsp.test:82 [] later"]);
    let address = server("resolver 127.0.0.1;");
    assert_eq!(asked(&address, own), ["127.0.0.1:81 [127.0.0.1:81]"]);
    for nothing in ["ssl_stapling off;", "ssl_stapling_file resp.der;"] {
        assert_eq!(asked(&server(nothing), own), Vec::<String>::new());
    }
}

#[test]
fn servers_that_show_a_certificate_alike_ask_once() {
    let own = Some(&b"http://127.0.0.1"[..]);
    let text = "ssl_certificate whole.pem; ssl_certificate_key k.pem; ssl_stapling on;
        server { listen 1 ssl; } server { listen 2 ssl; }";
    assert_eq!(asked(text, own).len(), 1);
    let verified = format!("{text} server {{ listen 3 ssl; ssl_stapling_verify on; }}");
    assert_eq!(asked(&verified, own).len(), 2);
    let elsewhere =
        format!("{verified} server {{ listen 4 ssl; ssl_stapling_responder http://127.0.0.2/; }}");
    assert_eq!(asked(&elsewhere, own).len(), 3);
}
