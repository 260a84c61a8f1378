//! Bad handshakes and old versions on a port of TLS.
//!
//! Sources: RFC 8446 sections 4.1.2, 5.1, 6.2; RFC 5246 section 7.4.1.2; CVE-2009-3555 (renegotiation), CVE-2012-4929
//! (compression), CVE-2025-23419 (sessions of another server).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::tls_client::{Tls, authority, site};
use firstbyte_tests::busy::Waits;
use firstbyte_tests::skip::skip_outside_ci;
use firstbyte_tests::{Builder, Server, peer};

fn with(directives: &str) -> Builder {
    let leaf = site("localhost");
    let http = format!(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem; {directives}
         server {{ listen 127.0.0.1:%%PORT%% ssl; server_name localhost;
             location = /v {{ return 200 ok; }} }}"
    );
    Server::http_with("worker_processes 1;", &http)
        .bytes("c.pem", leaf.certificate.as_bytes())
        .bytes("k.pem", leaf.key.as_bytes())
        .bytes("ca.pem", authority("Ours").pem().as_bytes())
}

/// Returns all bytes that the server sends in response, until it closes.
#[track_caller]
fn answer(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(("127.0.0.1", server.port())).expect("the server accepts");
    let limit = Some(Duration::from_secs(8));
    socket.set_read_timeout(limit).expect("the limit is valid");
    // A server that closes in the middle of it is no failure.
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Err(e) if e.kind() != std::io::ErrorKind::ConnectionReset => panic!("it stays open: {e}"),
        _ => answer,
    }
}

#[track_caller]
fn is_unharmed(server: &Server) {
    assert_eq!(Tls::new().get(server.port(), "localhost", "/v").body, "ok");
    assert_eq!(server.workers().len(), 1);
}

/// A record of a handshake with a ClientHello of this version and these compression methods.
fn hello(version: [u8; 2], compressions: &[u8]) -> Vec<u8> {
    let suites = [0xc0, 0x2b, 0xc0, 0x2c, 0xc0, 0x09, 0xc0, 0x0a, 0xc0, 0x2f];
    let extensions = [
        // Groups: x25519, secp256r1.
        &[0, 10, 0, 6, 0, 4, 0, 29, 0, 23][..],
        // Signatures: ECDSA with SHA-256, RSA-PSS, RSA.
        &[0, 13, 0, 8, 0, 6, 4, 3, 8, 4, 4, 1],
        // The extension of point formats, with one format.
        &[0, 11, 0, 2, 1, 0],
    ]
    .concat();
    let mut body = version.to_vec();
    body.extend_from_slice(&[7; 32]);
    body.push(0);
    body.extend_from_slice(&[0, suites.len() as u8]);
    body.extend_from_slice(&suites);
    body.push(compressions.len() as u8);
    body.extend_from_slice(compressions);
    body.extend_from_slice(&[0, extensions.len() as u8]);
    body.extend_from_slice(&extensions);
    let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    [&[22, 3, 1, 0, message.len() as u8][..], &message].concat()
}

#[test]
fn garbage_on_a_port_of_tls_ends_the_connection() {
    let server = with("").start();
    for first in [0_u8, 0x80, 0xff, 23] {
        let received = answer(&server, &vec![first; 65_000]);
        assert!(received.len() < 100, "{received:?}");
    }
    // A record longer than any, and a handshake that begins with anything but a ClientHello.
    for bytes in [
        &[22, 3, 1, 0xff, 0xff, 1, 0, 0, 0][..],
        &[22, 3, 1, 0, 4, 2, 0, 0, 0],
        &[22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff],
    ] {
        let mut bytes = bytes.to_vec();
        bytes.resize(70_000, 0);
        answer(&server, &bytes);
    }
    is_unharmed(&server);
}

/// Served as plain HTTP/1, like every other request in the clear.
#[test]
fn http2_in_the_clear_on_a_port_of_tls_gets_400() {
    let server = with("http2 on;").start();
    let received = answer(&server, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let received = String::from_utf8_lossy(&received).into_owned();
    assert!(received.starts_with("HTTP/1.1 400 "), "{received}");
    is_unharmed(&server);
}

#[test]
fn handshake_that_does_not_come_is_waited_for_as_long_as_a_head() {
    let server = with("client_header_timeout 600ms;").start();
    let whole = hello([3, 3], &[0]);
    for part in [
        &[][..],
        &whole[..1],
        &whole[..40],
        &whole[..whole.len() - 1],
    ] {
        let start = Instant::now();
        answer(&server, part);
        let took = start.elapsed();
        assert!(took > Duration::from_millis(450), "{took:?}");
    }
    is_unharmed(&server);
}

#[test]
fn handshake_and_head_have_their_time_together() {
    let server = with("client_header_timeout 1s;").start();
    let waits = Waits::begin();
    let start = Instant::now();
    let open = Tls::new().open(server.port(), "localhost");
    let mut open = open.expect("a handshake");
    if open.is_silent_for(Duration::from_millis(700)) {
        open.send(b"GET /v HT").expect("the connection is open");
        assert!(!open.is_silent_for(Duration::from_secs(8)), "it closes");
    } else {
        let late = waits.explain(Duration::from_millis(100), "the handshake took long");
        assert!(late, "it is closed before its time");
    }
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(950), "{took:?}");
    waits.assert_below(took, Duration::from_millis(1600));
    is_unharmed(&server);
}

#[test]
fn hello_in_records_of_one_byte_is_answered() {
    let server = with("client_header_timeout 300ms;").start();
    let whole = hello([3, 3], &[0]);
    let records: Vec<u8> = whole[5..]
        .iter()
        .flat_map(|byte| [22, 3, 1, 0, 1, *byte])
        .collect();
    let received = answer(&server, &records);
    assert_eq!((received.first(), received.get(5)), (Some(&22), Some(&2)));
    is_unharmed(&server);
}

#[test]
fn versions_before_1_2_are_refused() {
    let server = with("").start();
    for version in [[3, 0], [3, 1], [3, 2]] {
        let received = answer(&server, &hello(version, &[0]));
        // A fatal alert: protocol_version.
        assert_eq!(received.first(), Some(&21), "{received:?}");
        assert_eq!(received.get(5..7), Some(&[2, 70][..]), "{received:?}");
    }
    is_unharmed(&server);
}

#[test]
fn compression_is_not_taken() {
    let server = with("client_header_timeout 300ms;").start();
    let received = answer(&server, &hello([3, 3], &[1, 0]));
    assert_eq!(received.first(), Some(&22), "{received:?}");
    // ServerHello: after its head, version and random come the session, the suite and the compression.
    let session = usize::from(received[43]);
    assert_eq!(received[5], 2);
    assert_eq!(received[44 + session + 2], 0, "the null method");
    let received = answer(&server, &hello([3, 3], &[1]));
    assert_eq!(received.first(), Some(&21), "{received:?}");
    is_unharmed(&server);
}

/// A session of a server without client certificates resumes none of a server that requires them, whatever the client
/// claims.
#[test]
fn sessions_are_bound_to_their_server() {
    let template = "server { listen 127.0.0.1:%%PORT%% ssl; server_name strict;
        ssl_verify_client on; ssl_client_certificate %%DIR%%/ca.pem; return 200 secret; }
        server { listen 127.0.0.1:%%PORT%% ssl; server_name other; return 200 other; }";
    for sessions in [
        "",
        "ssl_session_tickets off; ssl_session_cache shared:s:1m;",
    ] {
        let server = with(&format!("{sessions} {template}")).start();
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let client = Tls::careless(version);
            assert_eq!(client.get(server.port(), "localhost", "/v").body, "ok");
            assert!(client.get(server.port(), "localhost", "/v").resumed || !peer::is_firstbyte());
            let strict = client.get(server.port(), "strict", "/");
            assert_eq!(
                (strict.status, strict.resumed),
                (400, false),
                "{sessions} {version:?}"
            );
        }
        is_unharmed(&server);
    }
}

/// Sent by the openssl command if installed: no library here can renegotiate.
#[test]
fn renegotiation_is_refused() {
    let server = with("ssl_protocols TLSv1.2;").start();
    let spawned = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-connect"])
        .arg(format!("127.0.0.1:{}", server.port()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut client) = spawned else {
        return skip_outside_ci("the openssl command is not installed");
    };
    let mut input = client.stdin.take().expect("it is a pipe");
    // A line with R alone is a command: begin a handshake anew.
    input.write_all(b"R\n").expect("it listens");
    let mut said = String::new();
    let mut output = client.stderr.take().expect("it is a pipe");
    output.read_to_string(&mut said).expect("it is text");
    drop(input);
    let status = client.wait().expect("it ends");
    assert!(said.contains("RENEGOTIATING"), "{said}");
    let refused = said.contains("no renegotiation") || said.contains("alert");
    assert!(refused && !status.success(), "{said}");
    is_unharmed(&server);
}
