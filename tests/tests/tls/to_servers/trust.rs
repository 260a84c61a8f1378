//! Which certificates of servers are trusted: depths, lists of revoked certificates, names.
//!
//! Source: nginx documentation, `proxy_ssl_verify_depth`, `proxy_ssl_crl`, `proxy_ssl_name`; X509_check_host(3).

use firstbyte_tests::{Server, peer};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    SanType, SerialNumber,
};

use super::faults::revoking;
use super::{authority, issued, pair};
use crate::tls_client::{Authority, Leaf};

/// An intermediate authority with a number.
fn intermediate(name: &str, serial: u64, by: &Authority) -> Authority {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(SerialNumber::from(serial));
    let key = KeyPair::generate().expect("there is randomness");
    CertifiedIssuer::signed_by(params, key, by).expect("it can be signed")
}

/// A server that passes requests to itself over TLS and verifies the certificate.
fn front(locations: &str, leaf: &Leaf, files: &[(&str, &str)]) -> Server {
    let mut server = Server::http(&format!(
        "proxy_ssl_verify on; proxy_ssl_trusted_certificate %%DIR%%/ca.pem; proxy_ssl_name a.test;
         server {{ listen 127.0.0.1:%%PORT%%; {locations} }}
         server {{ listen 127.0.0.1:%%PORT2%% ssl; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/c.key;
           return 200 \"$ssl_server_name.\"; }}"
    ));
    for (name, text) in pair(leaf, ["c.pem", "c.key"]).iter().chain(files) {
        server = server.bytes(name, text.as_bytes());
    }
    server.start()
}

/// The status of each path, and the reason in the log for those that are not 200.
fn check(server: &Server, expected: &[(&str, &str)]) {
    for (path, reason) in expected {
        let status = server.get(path).status;
        assert_eq!(status == 200, reason.is_empty(), "{path}: {status}");
        if !reason.is_empty() {
            assert_eq!(status, 502, "{path}");
            let request = format!("request: \"GET {path} HTTP");
            let log = server.wait_for_text("error.log", &request);
            let line = log.lines().find(|line| line.contains(&request));
            let line = line.unwrap_or_default();
            assert!(line.contains(reason), "{path}: {line}");
        }
    }
}

#[test]
fn depth_is_the_number_of_authorities_below_the_root() {
    let top = authority("Top");
    let middle = intermediate("Middle", 2, &top);
    let low = intermediate("Low", 3, &middle);
    let mut leaf = issued(&low, "a.test", |_| {});
    leaf.certificate.push_str(&low.pem());
    leaf.certificate.push_str(&middle.pem());
    let locations: String = (0..4)
        .map(|depth| {
            format!(
                "location /{depth} {{ proxy_pass https://127.0.0.1:%%PORT2%%; proxy_ssl_verify_depth {depth}; }}\n"
            )
        })
        .collect();
    let default = "location /default { proxy_pass https://127.0.0.1:%%PORT2%%; }";
    let server = front(
        &format!("{locations} {default}"),
        &leaf,
        &[("ca.pem", &top.pem())],
    );
    // OpenSSL reports a path that would be too long as a missing certificate.
    let too_long =
        "upstream SSL certificate verify error: (20:unable to get local issuer certificate)";
    check(
        &server,
        &[
            ("/0", too_long),
            ("/1", too_long),
            ("/2", ""),
            ("/3", ""),
            ("/default", too_long),
        ],
    );
}

#[test]
fn revoked_authority_below_the_root_is_refused() {
    let top = authority("Top");
    let low = intermediate("Low", 5, &top);
    let mut leaf = issued(&low, "a.test", |params| {
        params.serial_number = Some(SerialNumber::from(7));
    });
    leaf.certificate.push_str(&low.pem());
    let list = |of_top: u64, of_low: u64| {
        let lists = [revoking(&top, of_top), revoking(&low, of_low)];
        lists.concat()
    };
    let files = [
        ("none.crl", list(1, 1)),
        ("leaf.crl", list(1, 7)),
        ("low.crl", list(5, 1)),
        ("part.crl", revoking(&low, 1)),
        ("ca.pem", top.pem()),
    ];
    let files: Vec<(&str, &str)> = (files.iter())
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let locations: String = ["none", "leaf", "low", "part"]
        .iter()
        .map(|name| {
            format!(
                "location /{name} {{ proxy_pass https://127.0.0.1:%%PORT2%%; proxy_ssl_crl %%DIR%%/{name}.crl; }}\n"
            )
        })
        .collect();
    let server = front(&locations, &leaf, &files);
    let error = "upstream SSL certificate verify error: ";
    check(
        &server,
        &[
            ("/none", ""),
            ("/leaf", &format!("{error}(23:certificate revoked)")),
            ("/low", &format!("{error}(23:certificate revoked)")),
            (
                "/part",
                &format!("{error}(3:unable to get certificate CRL)"),
            ),
        ],
    );
}

#[test]
fn names_are_compared_with_those_of_the_certificate() {
    let ours = authority("Ours");
    let leaf = issued(&ours, "a.test", |params| {
        params.subject_alt_names.extend([
            SanType::DnsName("*.b.test".try_into().expect("ASCII")),
            SanType::IpAddress([127, 0, 0, 1].into()),
            SanType::IpAddress("::1".parse().expect("an address")),
        ]);
    });
    let server = front(
        "proxy_ssl_server_name on;
         location / { proxy_pass https://127.0.0.1:%%PORT2%%; proxy_ssl_name $arg_n; }",
        &leaf,
        &[("ca.pem", &ours.pem())],
    );
    let wrong = |name: &str| format!("upstream SSL certificate does not match \"{name}\"");
    check(
        &server,
        &[
            ("/?n=a.test", ""),
            ("/?n=A.TEST:443", ""),
            ("/?n=x.b.test", ""),
            ("/?n=b.test", &wrong("b.test")),
            ("/?n=x.y.b.test", &wrong("x.y.b.test")),
            ("/?n=127.0.0.2", &wrong("127.0.0.2")),
            ("/?n=", &wrong("")),
        ],
    );
    if !peer::is_firstbyte() {
        // nginx compares addresses with no name of the certificate.
        return;
    }
    check(&server, &[("/?n=127.0.0.1", ""), ("/?n=[::1]", "")]);
    assert_eq!(server.get("/?n=x.b.test").text(), "x.b.test.");
    assert_eq!(server.get("/?n=127.0.0.1").text(), ".", "it is no name");
}
