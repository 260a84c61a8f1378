//! Early data over sockets: the response to a request that comes before the end of the handshake.
//!
//! Source: RFC 8446 section 2.3, RFC 8470; nginx documentation, `ssl_early_data`, `$ssl_early_data`.

use std::io::{Read, Write};
use std::time::Duration;

use crate::tls_client::{Tls, authority, site};
use firstbyte_tests::{Builder, Server, peer, process, wait_until};

fn early(directives: &str) -> Builder {
    let leaf = site("localhost");
    let http = format!(
        "ssl_protocols TLSv1.3; ssl_early_data on; ssl_session_cache shared:s:1m;
         ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem; {directives}
         server {{ listen 127.0.0.1:%%PORT%% ssl; server_name localhost;
             return 200 \"$request_method [$ssl_early_data] $ssl_session_reused $scheme\"; }}"
    );
    Server::http_with("worker_processes 1;", &http)
        .bytes("c.pem", leaf.certificate.as_bytes())
        .bytes("k.pem", leaf.key.as_bytes())
        .bytes("ca.pem", authority("Ours").pem().as_bytes())
}

fn request(method: &str) -> String {
    format!(
        "{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

/// Response to a request that is sent as early data, and whether the server accepted it as such.
fn ask(client: &Tls, port: u16, method: &str) -> (String, bool) {
    let mut stream = client.connect(port, "localhost");
    let mut early = stream.conn.early_data().expect("there is a session");
    early
        .write_all(request(method).as_bytes())
        .expect("it is short");
    let mut answer = Vec::new();
    while stream.conn.is_handshaking() {
        stream
            .conn
            .complete_io(&mut stream.sock)
            .expect("they agree");
    }
    let taken = stream.conn.is_early_data_accepted();
    if !taken {
        stream
            .write_all(request(method).as_bytes())
            .expect("it is short");
    }
    stream.read_to_end(&mut answer).expect("the server answers");
    (String::from_utf8_lossy(&answer).into_owned(), taken)
}

#[test]
fn requests_in_early_data_are_known_as_such() {
    let server = early("").start();
    let client = Tls::early();
    let first = client.get(server.port(), "localhost", "/");
    assert_eq!(first.body, "GET [] . https");
    let (answer, taken) = ask(&client, server.port(), "GET");
    assert!(taken);
    assert!(answer.ends_with("\r\n\r\nGET [1] r https"), "{answer}");
}

/// A replay of another client's bytes must not repeat its effects.
#[test]
fn what_must_not_be_done_twice_is_too_early() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = early("").start();
    let client = Tls::early();
    client.get(server.port(), "localhost", "/");
    for (method, status) in [
        ("POST", 425),
        ("PATCH", 425),
        ("ODD", 425),
        ("GET", 200),
        ("HEAD", 200),
        ("PUT", 200),
        ("DELETE", 200),
    ] {
        let (answer, taken) = ask(&client, server.port(), method);
        assert!(taken, "{method}");
        let line = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&line), "{method}: {answer}");
        if status == 425 {
            assert!(answer.contains("425 Too Early"), "{answer}");
        }
    }
    // After the handshake the request is in time.
    let mut stream = client.connect(server.port(), "localhost");
    stream
        .write_all(request("POST").as_bytes())
        .expect("it is short");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("the server answers");
    assert!(answer.ends_with("\r\n\r\nPOST [] r https"), "{answer}");
}

/// A session of a client that was refused for its certificate is none to be let in by.
#[test]
fn early_data_is_no_way_around_a_certificate() {
    let server = early("ssl_verify_client on; ssl_client_certificate %%DIR%%/ca.pem;").start();
    let client = Tls::early();
    assert_eq!(client.get(server.port(), "localhost", "/").status, 400);
    let (answer, _) = ask(&client, server.port(), "GET");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(
        answer.contains("No required SSL certificate was sent"),
        "{answer}"
    );
}

/// The response waits for the end of the handshake, and the server waits without work.
#[test]
fn early_data_without_an_end_of_the_handshake_costs_nothing() {
    let server = early("send_timeout 1s; client_header_timeout 1s;").start();
    let client = Tls::early();
    client.get(server.port(), "localhost", "/");
    let mut stream = client.connect(server.port(), "localhost");
    let mut early = stream.conn.early_data().expect("there is a session");
    early
        .write_all(request("GET").as_bytes())
        .expect("it is short");
    let worker = server.workers()[0];
    let before = process::cpu_time(worker);
    while stream.conn.wants_write() {
        stream
            .conn
            .write_tls(&mut stream.sock)
            .expect("it is short");
    }
    // The server sends its flight, then nothing, until it gives up.
    let mut bytes = Vec::new();
    let _ = stream.sock.read_to_end(&mut bytes);
    assert!(!bytes.is_empty());
    let spent = process::cpu_time(worker) - before;
    assert!(spent < Duration::from_millis(300), "{spent:?}");
    wait_until("others are served", || {
        client.get(server.port(), "localhost", "/").status == 200
    });
}
