//! All bytes sent by an upstream server are sent to the client at once: heads before bodies, single bytes one by one,
//! through every protocol and every compression, with buffering and without.
//!
//! The upstream server sends its next piece only after the client has received the one before, so a held piece never comes.
//! `FLUSH_LATE_MS=5` is the permitted delay of a byte; the default is generous. Own executable: delays of bytes are
//! measured. Sources: nginx documentation, `proxy_buffering`, `gzip`; docs/differences.md.

#[path = "common/tls_client.rs"]
mod tls_client;

use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Gate, Step, chunk, send};
use firstbyte_tests::flushed::{Expected, Reader, judge};
use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Server, peer};
use tls_client::site;

/// Bytes of the body, each of them a piece that is sent alone.
const EVENTS: &[u8] = b"abcdefgh";
/// A server that sends its head and each byte of its body when it is let, a gate for each; the last ends the body.
fn gated() -> (Backend, std::sync::Arc<std::sync::Mutex<Vec<Gate>>>) {
    let gates = std::sync::Arc::new(std::sync::Mutex::new(Vec::<Gate>::new()));
    let of_script = std::sync::Arc::clone(&gates);
    let backend = Backend::answering(move |_| {
        let own = of_script.lock().expect("nobody panics with it").clone();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut steps = vec![Step::Gate(own[0].clone()), send(head)];
        for (gate, byte) in own[1..].iter().zip(EVENTS) {
            steps.extend([Step::Gate(gate.clone()), chunk([*byte])]);
        }
        steps.extend([Step::Gate(own[EVENTS.len() + 1].clone()), send("0\r\n\r\n")]);
        steps
    });
    (backend, gates)
}

/// Requests one response, byte by byte; returns the worst delay of its pieces, or an error.
fn delay(
    gates: &std::sync::Mutex<Vec<Gate>>,
    (protocol, port, path, coding): (&str, u16, &str, &str),
) -> Result<Duration, String> {
    let own: Vec<Gate> = (0..EVENTS.len() + 2).map(|_| Gate::default()).collect();
    gates
        .lock()
        .expect("nobody panics with it")
        .clone_from(&own);
    let mut reader = Reader::ask(protocol, port, path, coding);
    let start = Instant::now();
    own[0].open();
    if !reader.holds_within(DEADLINE / 4, |len| len.is_some()) {
        return Err("the head is held back".to_owned());
    }
    let late = start.elapsed();
    let pieces = EVENTS.iter().map(|byte| vec![*byte]);
    let expected = Expected {
        first: Vec::new(),
        pause: Duration::ZERO,
        pieces: pieces.collect(),
        coding,
    };
    let worst = expected.worst_delay(&mut reader, |n| own[n + 1].open())?;
    own[EVENTS.len() + 1].open();
    Ok(worst.max(late))
}

fn server(backend: &Backend) -> Server {
    let leaf = site("localhost");
    let pass = backend.name();
    let (spdy, codings) = if peer::is_firstbyte() {
        ("spdy", "brotli on; brotli_types *; zstd on; zstd_types *;")
    } else {
        ("", "")
    };
    Server::http(&format!(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         gzip on; gzip_types *; gzip_min_length 0; {codings}
         server {{ listen 127.0.0.1:%%PORT%% {spdy}; listen 127.0.0.1:%%PORT2%% ssl {spdy}; http2 on;
             location / {{ proxy_pass http://{pass}; }}
             location /unbuffered {{ proxy_pass http://{pass}; proxy_buffering off; }} }}"
    ))
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .start()
}

#[test]
fn every_piece_leaves_when_it_comes() {
    let (backend, gates) = gated();
    let server = server(&backend);
    // nginx flushes only without buffering.
    let (protocols, codings, paths) = if peer::is_firstbyte() {
        (
            &["http/1.1", "h2", "spdy/3.1"][..],
            &["identity", "gzip", "br", "zstd"][..],
            &["/", "/unbuffered"][..],
        )
    } else {
        (
            &["http/1.1", "h2"][..],
            &["identity", "gzip"][..],
            &["/unbuffered"][..],
        )
    };
    let mut findings = Vec::new();
    for protocol in protocols {
        let tls = tls_pipe(server.port_number(2), protocol);
        for coding in codings {
            for path in paths {
                for (over, port) in [("TCP", server.port()), ("TLS", tls)] {
                    let what = format!("{protocol} over {over}, {coding}, {path}");
                    let once = || delay(&gates, (protocol, port, path, coding));
                    findings.extend(judge(&what, once));
                }
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
