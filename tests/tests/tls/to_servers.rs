//! TLS to servers over sockets: names, client certificates, pools, sessions, logs of secrets.
//!
//! Source: nginx documentation, `proxy_ssl_*`.

mod faults;
mod peers;
mod pools;
mod trust;

use std::os::unix::fs::PermissionsExt;

use firstbyte_tests::dir::set_mode;
use firstbyte_tests::wait::wait_until;
use firstbyte_tests::{Server, peer};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustix::process::Signal;

use crate::tls_client::{Authority, Leaf};

/// An authority that may also sign lists of revoked certificates.
fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().expect("there is randomness");
    CertifiedIssuer::self_signed(params, key).expect("it can be signed")
}

/// A certificate of an authority, with changed parameters.
fn issued(by: &Authority, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    change(&mut params);
    let key = KeyPair::generate().expect("there is randomness");
    let certificate = params.signed_by(&key, by).expect("it can be signed");
    Leaf {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

/// The files of a certificate and its key.
fn pair<'f>(leaf: &'f Leaf, names: [&'f str; 2]) -> [(&'f str, &'f str); 2] {
    [(names[0], &leaf.certificate), (names[1], &leaf.key)]
}

/// A server with these files.
fn with_files(template: &str, files: &[(&str, &str)]) -> Server {
    let mut server = Server::http(template);
    for (name, text) in files {
        server = server.bytes(name, text.as_bytes());
    }
    server.start()
}

#[test]
fn servers_get_the_name_and_the_certificate_of_the_configuration() {
    let ours = authority("Ours");
    let (site, client) = (
        issued(&ours, "localhost", |_| {}),
        issued(&ours, "client", |_| {}),
    );
    let files = [
        pair(&site, ["c.pem", "c.key"]),
        pair(&client, ["client.pem", "client.key"]),
    ]
    .concat();
    let server = with_files(
        "proxy_ssl_session_reuse off;
         server { listen 127.0.0.1:%%PORT%%;
           location /plain { proxy_pass https://127.0.0.1:%%PORT2%%; }
           location /named { proxy_pass https://127.0.0.1:%%PORT2%%; proxy_ssl_server_name on; proxy_ssl_name a.test:1; }
           location /unsent { proxy_pass https://127.0.0.1:%%PORT2%%; proxy_ssl_name a.test; }
           location /address { proxy_pass https://127.0.0.1:%%PORT2%%; proxy_ssl_server_name on; }
           location /group { proxy_pass https://back; proxy_ssl_server_name on; }
           location /known { proxy_pass https://127.0.0.1:%%PORT2%%;
             proxy_ssl_certificate %%DIR%%/client.pem; proxy_ssl_certificate_key %%DIR%%/client.key; }
           location /variable { proxy_pass $arg_u://127.0.0.1:%%PORT2%%;
             proxy_ssl_certificate %%DIR%%/$arg_c.pem; proxy_ssl_certificate_key %%DIR%%/$arg_c.key; }
         }
         upstream back { server 127.0.0.1:%%PORT2%%; }
         server { listen 127.0.0.1:%%PORT2%% ssl; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/c.key;
           ssl_verify_client optional_no_ca;
           return 200 \"$ssl_server_name/$ssl_client_s_dn/$ssl_protocol\"; }",
        &files,
    );
    for (path, body) in [
        ("/plain", "//TLSv1.3"),
        ("/named", "a.test//TLSv1.3"),
        ("/unsent", "//TLSv1.3"),
        ("/address", "//TLSv1.3"),
        ("/group", "back//TLSv1.3"),
        ("/known", "/CN=client/TLSv1.3"),
        ("/variable?u=https&c=client", "/CN=client/TLSv1.3"),
    ] {
        let answer = server.get(path);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, body),
            "{path}"
        );
    }
    assert_eq!(server.get("/variable?u=https&c=absent").status, 500);
    // A request in the clear reaches a port that speaks TLS.
    assert_eq!(server.get("/variable?u=http&c=client").status, 400);
    let log = server.error_log();
    assert!(log.contains("cannot load certificate \""), "{log}");
}

#[test]
fn connection_is_used_only_under_the_policy_it_was_made_with() {
    let (ours, others) = (authority("Ours"), authority("Others"));
    let site = issued(&ours, "localhost", |_| {});
    let (one, two) = (issued(&ours, "one", |_| {}), issued(&ours, "two", |_| {}));
    let strange = others.pem();
    let files = [
        pair(&site, ["c.pem", "c.key"]),
        pair(&one, ["one.pem", "one.key"]),
        pair(&two, ["two.pem", "two.key"]),
        [("others.pem", strange.as_str()), ("empty", "")],
    ]
    .concat();
    let mut server = Server::http_with(
        "worker_processes 1;",
        "upstream back { server 127.0.0.1:%%PORT2%%; keepalive 16; }
         proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_ssl_server_name on;
         server { listen 127.0.0.1:%%PORT%%;
           location /open { proxy_pass https://back; }
           location /verified { proxy_pass https://back; proxy_ssl_verify on; proxy_ssl_trusted_certificate %%DIR%%/others.pem; }
           location /named { proxy_pass https://back; proxy_ssl_name $arg_n; }
           location /known { proxy_pass https://back;
             proxy_ssl_certificate %%DIR%%/$arg_c.pem; proxy_ssl_certificate_key %%DIR%%/$arg_c.key; }
         }
         server { listen 127.0.0.1:%%PORT2%% ssl; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/c.key;
           ssl_verify_client optional_no_ca; keepalive_timeout 60s;
           return 200 \"$connection/$ssl_server_name/$ssl_client_s_dn\"; }",
    );
    for (name, text) in &files {
        server = server.bytes(name, text.as_bytes());
    }
    let server = server.start();
    let get = |path: &str| server.get(path).text();
    let number = |text: &str| text.split('/').next().unwrap_or_default().to_owned();
    let first = get("/open");
    assert_eq!(get("/open"), first, "the connection is kept");
    assert_eq!(server.get("/verified").status, 502);
    assert_eq!(get("/open"), first);
    if !peer::is_firstbyte() {
        return;
    }
    let (a, b) = (get("/named?n=a.test"), get("/named?n=b.test"));
    assert!(
        a.ends_with("/a.test/") && b.ends_with("/b.test/"),
        "{a} {b}"
    );
    assert_eq!(get("/named?n=a.test"), a);
    let (one, two) = (get("/known?c=one"), get("/known?c=two"));
    assert!(
        one.ends_with("/CN=one") && two.ends_with("/CN=two"),
        "{one} {two}"
    );
    assert_eq!(get("/known?c=one"), one);
    let mut numbers: Vec<String> = [&first, &a, &b, &one, &two].map(|text| number(text)).into();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 5, "each has a connection of its own");
}

#[test]
fn sessions_are_resumed_also_after_a_reload() {
    let ours = authority("Ours");
    let site = issued(&ours, "localhost", |_| {});
    let client = issued(&ours, "client", |_| {});
    let files = [
        pair(&site, ["c.pem", "c.key"]),
        pair(&client, ["client.pem", "client.key"]),
    ]
    .concat();
    for version in ["TLSv1.2", "TLSv1.3"] {
        let template = "worker_processes 1;";
        let http = format!(
            "proxy_ssl_protocols {version}; proxy_set_header Connection close;
             server {{ listen 127.0.0.1:%%PORT%%;
               location / {{ proxy_pass https://127.0.0.1:%%PORT2%%; }}
               location /variable {{ proxy_pass https://127.0.0.1:%%PORT2%%;
                 proxy_ssl_certificate %%DIR%%/$arg_c.pem; proxy_ssl_certificate_key %%DIR%%/$arg_c.key; }}
               location /never {{ proxy_pass https://127.0.0.1:%%PORT2%%; proxy_ssl_session_reuse off; }} }}
             server {{ listen 127.0.0.1:%%PORT2%% ssl; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/c.key;
               ssl_session_cache shared:s:1m; return 200 $ssl_session_reused; }}"
        );
        let mut server = Server::http_with(template, &http);
        for (name, text) in &files {
            server = server.bytes(name, text.as_bytes());
        }
        let server = server.start();
        assert_eq!(server.get("/").text(), ".");
        assert_eq!(server.get("/").text(), "r", "{version}");
        assert_eq!(server.get("/never").text(), ".");
        assert_eq!(server.get("/never").text(), ".");
        let variable = || server.get("/variable?c=client").text();
        assert_eq!(variable(), ".", "another certificate has other sessions");
        assert_eq!(variable(), "r", "{version}");
        if !peer::is_firstbyte() {
            continue;
        }
        let before = server.workers();
        server.rewrite_conf(|text| text.replace("return 200 $ssl", "return 200 new$ssl"));
        server.signal(Signal::HUP);
        let mut texts = Vec::new();
        wait_until("the new configuration serves", || {
            texts.push(server.get("/").text());
            texts.last().is_some_and(|text| text.starts_with("new"))
        });
        assert!(
            texts.iter().all(|text| text.ends_with('r')),
            "{version}: {texts:?}"
        );
        assert_eq!(server.workers(), before, "one worker serves both");
    }
}

#[test]
fn large_bodies_pass_in_both_directions() {
    const BYTES: usize = 24 << 20;
    let ours = authority("Ours");
    let site = issued(&ours, "localhost", |_| {});
    for buffering in ["on", "off"] {
        let mut server = Server::http(&format!(
            "client_max_body_size 0; proxy_buffering {buffering}; proxy_request_buffering {buffering};
             server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass https://127.0.0.1:%%PORT2%%; }} }}
             server {{ listen 127.0.0.1:%%PORT2%% ssl; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/c.key;
               root %%DIR%%/html; dav_methods PUT; create_full_put_path on; }}"
        ))
        .zeros("html/large", BYTES as u64)
        .prepare(|dir| set_mode(&dir.join("html"), 0o777));
        for (name, text) in pair(&site, ["c.pem", "c.key"]) {
            server = server.bytes(name, text.as_bytes());
        }
        let server = server.start();
        assert_eq!(server.get("/large").body.len(), BYTES);
        let mut client = server.client();
        let body: Vec<u8> = (0..BYTES).map(|n| (n / 7) as u8).collect();
        client.send(format!(
            "PUT /sent HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BYTES}\r\n\r\n"
        ));
        client.send(&body);
        assert_eq!(client.response().status, 201, "{buffering}");
        let sent = std::fs::read(server.path("html/sent")).expect("it is stored");
        assert!(sent == body, "{buffering}: the bytes are the same");
    }
}

#[test]
fn secrets_of_connections_are_logged() {
    let ours = authority("Ours");
    let site = issued(&ours, "localhost", |_| {});
    if !peer::builds("proxy_ssl_key_log keys;") || !peer::is_firstbyte() {
        return;
    }
    let server = with_files(
        "server { listen 127.0.0.1:%%PORT%%; proxy_ssl_key_log %%DIR%%/servers.log;
           location / { proxy_pass https://127.0.0.1:%%PORT2%%; } }
         server { listen 127.0.0.1:%%PORT2%% ssl; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/c.key;
           ssl_key_log %%DIR%%/clients.log; return 200 ok; }",
        &pair(&site, ["c.pem", "c.key"]),
    );
    assert_eq!(server.get("/").text(), "ok");
    let read = |name: &str| {
        let text = server.wait_for_text(name, "SERVER_TRAFFIC_SECRET_0 ");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let (ours, theirs) = (read("servers.log"), read("clients.log"));
    assert_eq!(ours, theirs, "both ends have the same secrets");
    let words = |line: &String| line.split(' ').count();
    let mode = |name: &str| {
        let metadata = std::fs::metadata(server.path(name)).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!((mode("servers.log"), mode("clients.log")), (0o600, 0o600));
    assert!(
        ours.len() >= 4 && ours.iter().all(|line| words(line) == 3),
        "{ours:?}"
    );
}
