//! Servers that cannot be trusted, and those that break the protocol.
//!
//! Source: nginx documentation, `proxy_ssl_verify`, `proxy_ssl_crl`; nginx's texts of the log.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use firstbyte_tests::backend::{Backend, Step};
use firstbyte_tests::{Server, peer};
use rcgen::{
    CertificateRevocationListParams, KeyIdMethod, RevocationReason, RevokedCertParams,
    SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{authority, issued};
use crate::tls_client::{Authority, Leaf, site};

/// A list of revoked certificates with one number, PEM.
pub(super) fn revoking(by: &Authority, serial: u64) -> String {
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(4000, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = params.signed_by(by).expect("it can be signed");
    list.pem().expect("it can be encoded")
}

#[test]
fn server_that_cannot_be_trusted_gets_no_request() {
    let (ours, others) = (authority("Ours"), authority("Others"));
    let named = |name: &str| issued(&ours, name, |_| {});
    let (good, other_name) = (named("a.test"), named("b.test"));
    let strange = issued(&others, "a.test", |_| {});
    let expired = issued(&ours, "a.test", |p| p.not_after = date_time_ymd(2001, 1, 1));
    let future = issued(&ours, "a.test", |p| {
        p.not_before = date_time_ymd(4000, 1, 1)
    });
    let revoked = issued(&ours, "a.test", |p| {
        p.serial_number = Some(SerialNumber::from(77))
    });
    let leaves = [&good, &other_name, &strange, &expired, &future, &revoked];
    let names = ["good", "name", "strange", "expired", "future", "revoked"];
    let mut template = String::from(
        "proxy_ssl_verify on; proxy_ssl_trusted_certificate %%DIR%%/ca.pem; proxy_ssl_crl %%DIR%%/crl.pem;
         proxy_ssl_name a.test;
         server { listen 127.0.0.1:%%PORT%%;
         location /unverified { proxy_pass https://127.0.0.1:%%PORT4%%; proxy_ssl_verify off; }\n",
    );
    let mut behind = String::new();
    for (n, name) in names.iter().enumerate() {
        let port = format!("%%PORT{}%%", n + 2);
        template.push_str(&format!(
            "location /{name} {{ proxy_pass https://127.0.0.1:{port}; }}\n"
        ));
        behind.push_str(&format!(
            "server {{ listen 127.0.0.1:{port} ssl; access_log %%DIR%%/behind.log;
             ssl_certificate %%DIR%%/{name}.pem; ssl_certificate_key %%DIR%%/{name}.key; return 200 {name}; }}\n"
        ));
    }
    let (ca, crl) = (ours.pem(), revoking(&ours, 77));
    let mut server = Server::http(&format!("{template} }}\n{behind}"))
        .bytes("ca.pem", ca.as_bytes())
        .bytes("crl.pem", crl.as_bytes());
    for (name, leaf) in names.iter().zip(leaves) {
        server = server
            .bytes(&format!("{name}.pem"), leaf.certificate.as_bytes())
            .bytes(&format!("{name}.key"), leaf.key.as_bytes());
    }
    let server = server.start();
    assert_eq!(server.get("/good").text(), "good");
    assert_eq!(server.get("/unverified").text(), "strange");
    for (name, reason) in [
        ("name", "upstream SSL certificate does not match \"a.test\""),
        (
            "strange",
            "upstream SSL certificate verify error: (21:unable to verify the first certificate)",
        ),
        (
            "expired",
            "upstream SSL certificate verify error: (10:certificate has expired)",
        ),
        (
            "future",
            "upstream SSL certificate verify error: (9:certificate is not yet valid)",
        ),
        (
            "revoked",
            "upstream SSL certificate verify error: (23:certificate revoked)",
        ),
    ] {
        assert_eq!(server.get(&format!("/{name}")).status, 502, "{name}");
        let log = server.wait_for_text("error.log", reason);
        let line = log.lines().find(|line| line.contains(reason));
        let line = line.unwrap_or_default();
        let request = format!("request: \"GET /{name} HTTP/1.1\", upstream: \"https://127.0.0.1:");
        let is_whole = line.contains(&format!("{reason} while SSL handshaking to upstream"))
            && line.contains(&request);
        assert!(is_whole && line.contains("[error]"), "{line}");
    }
    let requests = server.dir().read("behind.log");
    assert_eq!(requests.lines().count(), 2, "{requests}");
}

#[test]
fn plaintext_in_place_of_a_handshake_is_no_response() {
    // CVE-2026-1642: a response in the clear that precedes the handshake.
    let early = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nforged".to_vec();
    for wait_for_hello in [false, true] {
        let early = early.clone();
        let backend = Backend::scripted(move |_| match wait_for_hello {
            false => vec![Step::Send(early.clone()), Step::Hold],
            true => vec![Step::Read(5), Step::Send(early.clone()), Step::Hold],
        });
        let server = Server::http(&format!(
            "server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass https://{}; }} }}",
            backend.name()
        ))
        .start();
        let answer = server.get("/");
        assert_eq!(answer.status, 502);
        assert!(!answer.text().contains("forged"));
        let log = server.wait_for_text("error.log", "while SSL handshaking to upstream");
        assert!(log.contains("SSL_do_handshake() failed"), "{log}");
    }
}

#[test]
fn server_that_leaves_during_the_handshake_is_named_in_the_log() {
    for (step, text) in [
        (Step::Close, "peer closed connection in SSL handshake"),
        (
            Step::Reset,
            "peer closed connection in SSL handshake (104: Connection reset by peer)",
        ),
    ] {
        let backend = Backend::scripted(move |_| vec![Step::Read(5), step.clone()]);
        let server = Server::http(&format!(
            "server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass https://{}; }} }}",
            backend.name()
        ))
        .start();
        assert_eq!(server.get("/").status, 502);
        let log = server.wait_for_text("error.log", "while SSL handshaking to upstream");
        // Unread bytes of the handshake make a close a reset.
        let known = log.contains(text) || log.contains("(104: Connection reset by peer)");
        assert!(known, "{text}: {log}");
    }
    let backend = Backend::scripted(|_| vec![Step::Hold]);
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass https://{}; proxy_connect_timeout 200ms; }} }}",
        backend.name()
    ))
    .start();
    assert_eq!(server.get("/").status, 504);
    let text = "upstream timed out (110: Connection timed out) while SSL handshaking to upstream";
    server.wait_for_text("error.log", text);
}

/// A connection of a server of rustls.
type Stream = rustls::StreamOwned<rustls::ServerConnection, TcpStream>;

/// A server of rustls that sends this many tickets with each handshake, then runs a script. Returns its port.
fn over_tls(leaf: &Leaf, tickets: usize, script: impl Fn(&mut Stream) + Send + 'static) -> u16 {
    let chain = CertificateDer::pem_slice_iter(leaf.certificate.as_bytes());
    let chain = chain.map(|part| part.expect("a certificate")).collect();
    let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the version is built")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("they belong together");
    config.send_tls13_tickets = tickets;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let conn = rustls::ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut stream = Stream::new(conn, socket);
            let _ = stream.read(&mut [0; 4096]);
            script(&mut stream);
        }
    });
    port
}

/// A server under test that passes everything on to a server over TLS.
fn front(port: u16, directives: &str) -> Server {
    Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%;
           location / {{ proxy_pass https://127.0.0.1:{port}; {directives} }} }}"
    ))
    .start()
}

fn send(stream: &mut Stream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
    let _ = stream.flush();
}

#[test]
fn server_may_send_some_tickets_but_no_flood_of_them() {
    let leaf = site("localhost");
    for (tickets, status) in [(0, 200), (40, 200), (4000, 502)] {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        let server = front(over_tls(&leaf, tickets, |s| send(s, response)), "");
        let answer = server.get("/");
        if !peer::is_firstbyte() && status != 200 {
            continue;
        }
        assert_eq!(answer.status, status, "{tickets} tickets");
        if status != 200 {
            server.wait_for_text("error.log", "too many records without data");
        }
    }
}

#[test]
fn malformed_response_over_tls_is_502() {
    let leaf = site("localhost");
    let mut endless = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(4000);
    endless.extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\n");
    let faults: [&[u8]; 12] = [
        b"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 1000 High\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        &endless,
    ];
    if !peer::is_firstbyte() {
        return;
    }
    for bytes in faults {
        let shown = bytes.escape_ascii().to_string();
        let response = bytes.to_vec();
        let server = front(over_tls(&leaf, 2, move |s| send(s, &response)), "");
        assert_eq!(
            server.get("/").status,
            502,
            "{}",
            &shown[..shown.len().min(80)]
        );
    }
}

#[test]
fn response_that_ends_without_an_announcement_is_incomplete() {
    // RFC 8446 section 6.1: without close_notify the end may be an attacker's.
    let leaf = site("localhost");
    let port = over_tls(&leaf, 2, |stream| {
        send(stream, b"HTTP/1.1 200 OK\r\n\r\npart");
        let _ = stream.sock.shutdown(Shutdown::Both);
    });
    let server = front(port, "");
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let text = String::from_utf8_lossy(&client.rest()).into_owned();
    assert!(text.contains("part"), "{text}");
    if peer::is_firstbyte() {
        assert!(!text.ends_with("0\r\n\r\n"), "it is not ended: {text}");
    }
}

#[test]
fn bad_chunk_over_tls_ends_the_response_without_a_terminator() {
    let leaf = site("localhost");
    let port = over_tls(&leaf, 2, |stream| {
        send(
            stream,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\nXX\r\n",
        );
        let _ = stream.read(&mut [0; 1]);
    });
    let server = front(port, "proxy_http_version 1.1;");
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let text = String::from_utf8_lossy(&client.rest()).into_owned();
    assert!(text.contains(" 200 OK") && text.contains("part"), "{text}");
    assert!(!text.ends_with("0\r\n\r\n"), "it is not ended: {text}");
    server.wait_for_text("error.log", "while reading");
}

#[test]
fn connection_with_unrequested_bytes_serves_no_other_request() {
    // RFC 9112 section 9.3: the bytes would be the response to the next request.
    let leaf = site("localhost");
    for (extra, is_reused) in [("", true), ("HTTP/1.1 200 OK\r\n\r\nforged", false)] {
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok{extra}");
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let port = over_tls(&leaf, 2, move |stream| {
            counted.fetch_add(1, Ordering::Relaxed);
            send(stream, response.as_bytes());
            while let Ok(1..) = stream.read(&mut [0; 4096]) {
                send(stream, response.as_bytes());
            }
        });
        let server = Server::http_with(
            "worker_processes 1;",
            &format!(
                "upstream back {{ server 127.0.0.1:{port}; keepalive 4; }}
                 server {{ listen 127.0.0.1:%%PORT%%; proxy_http_version 1.1; proxy_set_header Connection \"\";
                   location / {{ proxy_pass https://back; }} }}"
            ),
        )
        .start();
        for _ in 0..3 {
            assert_eq!(server.get("/").text(), "ok");
        }
        let expected = if is_reused { 1 } else { 3 };
        assert_eq!(connections.load(Ordering::Relaxed), expected, "{extra:?}");
    }
}

#[test]
fn upgrade_over_tls_becomes_a_tunnel() {
    let leaf = site("localhost");
    let port = over_tls(&leaf, 2, |stream| {
        send(
            stream,
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n",
        );
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            send(stream, &bytes[..read]);
        }
    });
    let server = front(
        port,
        "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;",
    );
    let mut client = server.client();
    client
        .send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    assert_eq!(client.response_to_head().status, 101);
    for text in ["one", "two", "three"] {
        client.send(text);
        assert_eq!(client.bytes(text.len()), text.as_bytes());
    }
}
