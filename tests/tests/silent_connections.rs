//! More connections without a request than `worker_connections`: no client is locked out by them.
//!
//! nginx closes the oldest silent connections. Here the same holds for half a ClientHello, half a header, and streams that
//! never begin. `FIRSTBYTE_SILENT=N` runs each kind at each rate with N `worker_connections`; the default runs a few. Own
//! executable: connections are opened at a fixed rate. Source: nginx documentation, `worker_connections`.

#[path = "common/tls_client.rs"]
mod tls_client;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use firstbyte_tests::busy::{inconclusive, worst_stall_while};
use firstbyte_tests::client::request;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Client, Server, peer, wait_until};

/// Legitimate requests, each on a connection of its own, and the timeout of a response.
const REQUESTS: usize = 200;
const ANSWER_MS: u128 = 100;

/// Longest stall of a thread with which measured times are still valid.
const STALL_MAX: Duration = Duration::from_millis(20);

/// Bytes sent on a connection before it falls silent, and its port.
struct Opening {
    name: &'static str,
    port: usize,
    bytes: &'static [u8],
}

const PLAIN: usize = 1;
const TLS: usize = 2;
const SPDY: usize = 3;

const KINDS: [Opening; 9] = [
    Opening {
        name: "nothing",
        port: PLAIN,
        bytes: b"",
    },
    Opening {
        name: "nothing over TLS",
        port: TLS,
        bytes: b"",
    },
    Opening {
        name: "half a ClientHello",
        port: TLS,
        bytes: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03half of it, not more",
    },
    Opening {
        name: "HTTP/2 without a stream",
        port: PLAIN,
        bytes: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    },
    Opening {
        name: "HTTP/2 with half a header block",
        port: PLAIN,
        bytes: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x01\x82",
    },
    Opening {
        name: "SPDY without a stream",
        port: SPDY,
        bytes: b"\x80\x03\x00\x04\x00\x00\x00\x04\x00\x00\x00\x00",
    },
    Opening {
        name: "half a header",
        port: PLAIN,
        bytes: b"GET / HTTP/1.1\r\nHost: local",
    },
    Opening {
        name: "half a header after a request",
        port: PLAIN,
        bytes: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: local",
    },
    Opening {
        name: "a body that never comes, of a request that was answered",
        port: PLAIN,
        bytes: b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nbody",
    },
];

fn server(connections: usize) -> Server {
    let leaf = tls_client::site("localhost");
    let text = format!(
        "%%USER%% daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
         events {{ worker_connections {connections}; }}
         http {{ access_log off; client_body_temp_path %%DIR%%/body; http2 on; lingering_close always;
             ssl_certificate %%DIR%%/cert.pem; ssl_certificate_key %%DIR%%/cert.key;
             server {{ listen 127.0.0.1:%%PORT%% backlog=4096; listen 127.0.0.1:%%PORT2%% ssl backlog=4096;
                 listen 127.0.0.1:%%PORT3%% spdy backlog=4096; return 200 ok; }} }}"
    );
    Server::whole(&text)
        .file("cert.pem", &leaf.certificate)
        .file("cert.key", &leaf.key)
        .start()
}

/// Opens `count` connections at a rate, of these kinds in turn, and keeps them.
fn be_silent(server: &Server, kinds: &[Opening], count: usize, a_second: usize) -> Vec<TcpStream> {
    let start = Instant::now();
    let mut silent: Vec<TcpStream> = Vec::with_capacity(count);
    while silent.len() < count {
        let due = start.elapsed().as_micros() * a_second as u128 / 1_000_000;
        if silent.len() as u128 > due {
            std::thread::park_timeout(Duration::from_micros(100));
            continue;
        }
        let kind = &kinds[silent.len() % kinds.len()];
        let port = server.port_number(kind.port);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        // It may have been closed already.
        let _ = stream.write_all(kind.bytes);
        silent.push(stream);
    }
    silent
}

/// Duration of one request on a connection of its own; `None` without a response.
fn answered_in_ms(port: u16) -> Option<u128> {
    let start = Instant::now();
    let mut client = Client::try_connect_to("127.0.0.1", port).ok()?;
    client.send(request("GET", "/", &["Connection: close"]));
    let answer = client.try_response().ok()??;
    (answer.status == 200).then(|| start.elapsed().as_millis())
}

/// Sends requests while and after connections fall silent; returns the errors.
fn attack(kinds: &[Opening], connections: usize, a_second: usize) -> Result<(), String> {
    let server = server(connections);
    let count = connections * 2;
    let port = server.port();
    // A worker that has just started may still read its configuration.
    answered_in_ms(port).ok_or("the first request was not answered")?;
    let took = Duration::from_micros(count as u64 * 1_000_000 / a_second as u64);
    let pause = took / REQUESTS as u32;
    std::thread::scope(|scope| {
        let silent = scope.spawn(|| be_silent(&server, kinds, count, a_second));
        let mut slowest = 0;
        for n in 0..REQUESTS {
            match answered_in_ms(port) {
                Some(ms) if ms <= ANSWER_MS => slowest = slowest.max(ms),
                Some(ms) => return Err(format!("request {n} was answered after {ms} ms")),
                None => return Err(format!("request {n} was not answered")),
            }
            std::thread::park_timeout(pause);
        }
        let silent = silent.join().expect("connections can be opened");
        // And once more with all connections open.
        let last = answered_in_ms(port).ok_or("the last request was not answered")?;
        drop(silent);
        if last > ANSWER_MS {
            return Err(format!("the last request was answered after {last} ms"));
        }
        if std::env::var_os(VARIABLE).is_some() {
            eprintln!("slowest answer of {REQUESTS}: {slowest} ms");
        }
        Ok(())
    })
}

const VARIABLE: &str = "FIRSTBYTE_SILENT";

#[track_caller]
fn nobody_is_locked_out(what: &str, kinds: &[Opening], connections: usize, a_second: usize) {
    let mut findings = Vec::new();
    for _ in 0..3 {
        let mut outcome = Ok(());
        let stall = worst_stall_while(|| outcome = attack(kinds, connections, a_second));
        match outcome {
            Ok(()) => return,
            Err(finding) => findings.push((finding, stall)),
        }
        if stall < STALL_MAX {
            break;
        }
    }
    let what = format!("{what} at {a_second} a second: {findings:?}");
    if findings.iter().all(|(_, stall)| *stall >= STALL_MAX) {
        return inconclusive(&what);
    }
    panic!("{what}");
}

/// The requested number of connections, or a few.
fn connections() -> usize {
    let asked = std::env::var(VARIABLE).ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(64)
}

#[test]
fn silence_at_any_rate_locks_nobody_out() {
    if !peer::is_firstbyte() {
        // It waits for half a header and half a handshake.
        return;
    }
    let connections = connections();
    if std::env::var_os(VARIABLE).is_none() {
        // At this rate one kind after the other would take long.
        nobody_is_locked_out("every kind in turn", &KINDS, connections, 100);
    }
    for kind in KINDS.chunks(1) {
        for a_second in [100, 1_000, 10_000] {
            if a_second > 100 || std::env::var_os(VARIABLE).is_some() {
                nobody_is_locked_out(kind[0].name, kind, connections, a_second);
            }
        }
    }
}

/// A client that reads only on demand.
fn begin(port: u16, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.write_all(bytes).expect("it takes what is sent");
    stream.set_read_timeout(Some(DEADLINE)).expect("not zero");
    stream
}

/// Whether the server has ended a connection, without waiting.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("it is a socket");
    let mut bytes = [0; 512];
    let closed = loop {
        match stream.read(&mut bytes) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != std::io::ErrorKind::WouldBlock,
        }
    };
    stream.set_nonblocking(false).expect("it is a socket");
    closed
}

#[test]
fn the_kept_alive_go_before_the_silent_and_the_oldest_first() {
    if !peer::is_firstbyte() {
        // It closes several at once, before there are too many.
        return;
    }
    const MOST: usize = 8;
    let server = server(MOST);
    let port = server.port();
    let mut kept: VecDeque<Client> = (0..3).map(|_| server.client()).collect();
    for client in &mut kept {
        assert_eq!(client.get("/").text(), "ok");
    }
    let mut silent: VecDeque<TcpStream> = (0..MOST - 3).map(|_| begin(port, b"GET / HT")).collect();
    // Each of these takes the place of another one, and stays.
    let mut newer = Vec::new();
    while let Some(mut oldest) = kept.pop_front() {
        newer.push(begin(port, b"GET / HT"));
        assert!(oldest.closed(), "the one that was idle for longest goes");
        assert!(!silent.iter_mut().any(is_closed), "{} are left", kept.len());
    }
    while let Some(mut oldest) = silent.pop_front() {
        newer.push(begin(port, b"GET / HT"));
        let ended = oldest.read(&mut [0]);
        assert!(matches!(ended, Ok(0)), "the oldest goes: {ended:?}");
        assert!(
            !silent.iter_mut().any(is_closed),
            "{} are left",
            silent.len()
        );
    }
}

#[test]
fn requests_in_progress_are_never_closed_for_others() {
    if !peer::is_firstbyte() {
        // nginx counts other connections, too.
        return;
    }
    const MOST: usize = 8;
    let server = Server::whole(&format!(
        "%%USER%% daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
         events {{ worker_connections {MOST}; }}
         http {{ access_log off; client_body_temp_path %%DIR%%/body;
             server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; }} }}"
    ))
    .zeros("html/big", firstbyte_tests::load::BIG_BYTES)
    .allow("worker_connections are not enough")
    .start();
    let mut running: Vec<_> = (0..MOST)
        .map(|_| firstbyte_tests::load::Download::begin(&server))
        .collect();
    // No connection can be accepted, and none is closed for it.
    let mut waiting: Vec<TcpStream> = (0..MOST * 2)
        .map(|_| {
            begin(
                server.port(),
                b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n",
            )
        })
        .collect();
    server.wait_for_text("error.log", "worker_connections are not enough");
    for download in &mut running {
        assert!(download.is_whole());
    }
    drop(running);
    for stream in &mut waiting {
        // Those that had to wait for more than half a second are closed.
        let mut bytes = [0; 12];
        if stream.read_exact(&mut bytes).is_ok() {
            assert_eq!(&bytes, b"HTTP/1.1 404");
        }
    }
    wait_until("there are places again", || {
        let mut client = server.client();
        client.send("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n");
        matches!(client.try_response(), Ok(Some(response)) if response.status == 404)
    });
}
