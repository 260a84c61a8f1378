//! Whatever a server behind has sent leaves for the client at once: heads before bodies, single bytes one by one, through
//! every protocol and every compression, with buffering and without.
//!
//! The server behind sends its next piece only when the test lets it, which is when the client has the one before: what is held
//! back never comes. `FLUSH_LATE_MS=5` is how late a byte may be, a generous time without. Sources: nginx documentation,
//! `proxy_buffering`, `gzip`; docs/differences.md.

mod tls_client;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Gate, Step, chunk, send};
use firstbyte_tests::busy::{inconclusive, worst_stall_while};
use firstbyte_tests::client::request;
use firstbyte_tests::node::script;
use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{H2Client, Server, SpdyClient, peer};
use tls_client::site;

/// How late a byte may be on a machine that does something else as well.
const LATE: Duration = Duration::from_millis(20);
/// A machine that keeps a thread from running for so long cannot judge that.
const STALL_MAX: Duration = Duration::from_millis(5);
/// How often a judgement is tried.
const TRIES: usize = 4;
/// Bytes of the body, each of them a piece that is sent alone.
const EVENTS: &[u8] = b"abcdefgh";
/// A piece has come when nothing follows for so long.
const QUIET: Duration = Duration::from_millis(3);

/// A client in the middle of a response.
enum Reader {
    Http1(TcpStream, Vec<u8>),
    Http2(Box<H2Client>, u32),
    Spdy(Box<SpdyClient>, u32),
}

impl Reader {
    fn ask(protocol: &str, port: u16, path: &str, coding: &str) -> Self {
        let fields = [("accept-encoding", coding)];
        match protocol {
            "h2" => {
                let mut client = Box::new(H2Client::connect(port));
                let stream = client.request("GET", path, &fields, true);
                Self::Http2(client, stream)
            }
            "spdy/3.1" => {
                let mut client = Box::new(SpdyClient::connect(port));
                let stream = client.request("GET", path, &fields, true);
                Self::Spdy(client, stream)
            }
            _ => {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
                let accept = format!("Accept-Encoding: {coding}");
                let head = request("GET", path, &[&accept]);
                stream.write_all(head.as_bytes()).expect("it reads");
                Self::Http1(stream, Vec::new())
            }
        }
    }

    /// What has come of the body; `None` before the end of the head.
    fn body(&self) -> Option<Vec<u8>> {
        let reply = match self {
            Self::Http1(_, bytes) => return chunks_of(bytes),
            Self::Http2(client, stream) => client.so_far(*stream),
            Self::Spdy(client, stream) => client.so_far(*stream),
        };
        (reply.status != 0).then_some(reply.body)
    }

    /// Reads until `done` says so of the body.
    fn holds_within(&mut self, limit: Duration, done: impl Fn(Option<usize>) -> bool) -> bool {
        let start = Instant::now();
        let len = |reader: &Self| reader.body().map(|body| body.len());
        match self {
            Self::Http2(client, stream) => {
                let stream = *stream;
                client.holds_within(limit, |c| {
                    let reply = c.replies.get(&stream).filter(|reply| reply.status != 0);
                    done(reply.map(|reply| reply.body.len()))
                })
            }
            Self::Spdy(client, stream) => {
                let stream = *stream;
                client.holds_within(limit, |c| {
                    let reply = c.replies.get(&stream).filter(|reply| reply.status != 0);
                    done(reply.map(|reply| reply.body.len()))
                })
            }
            Self::Http1(..) => {
                while !done(len(self)) {
                    let left = limit.saturating_sub(start.elapsed());
                    if left.is_zero() || !self.read_http1(left) {
                        break;
                    }
                }
                done(len(self))
            }
        }
    }

    /// Reads once; false when nothing came.
    fn read_http1(&mut self, limit: Duration) -> bool {
        let Self::Http1(stream, bytes) = self else {
            return false;
        };
        stream
            .set_read_timeout(Some(limit))
            .expect("it is not zero");
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(count) => {
                bytes.extend_from_slice(&piece[..count]);
                count > 0
            }
            Err(e) => e.kind() == ErrorKind::Interrupted,
        }
    }
}

/// The whole chunks behind a head; `None` before its end.
fn chunks_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let text_end = |bytes: &[u8], mark: &[u8]| bytes.windows(mark.len()).position(|w| w == mark);
    let mut rest = &bytes[text_end(bytes, b"\r\n\r\n")? + 4..];
    let mut body = Vec::new();
    while let Some(end) = text_end(rest, b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = usize::from_str_radix(&size, 16).expect("a chunk size");
        let Some(data) = rest.get(end + 2..end + 2 + size) else {
            break;
        };
        body.extend_from_slice(data);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    Some(body)
}

/// What can be decoded of a body whose end has not come.
fn decoded(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut command = match coding {
        "gzip" => Command::new("gzip"),
        "zstd" => Command::new("zstd"),
        "br" => {
            let mut node = Command::new("node");
            node.arg(script("inflate.js"));
            node
        }
        _ => return body.to_vec(),
    };
    if coding != "br" {
        command.arg("-dcq");
    }
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = piped
        .spawn()
        .expect("the tool is there; .ci/setup installs it");
    // It is far shorter than a pipe. That the end is missing is an error of the tool, which prints what it has.
    let written = child.stdin.take().expect("it is piped").write_all(body);
    written.expect("it reads");
    child.wait_with_output().expect("it was started").stdout
}

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

/// One response, byte by byte: the worst delay of its pieces, or what was wrong.
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
    let mut worst = start.elapsed();
    for (n, gate) in own[1..=EVENTS.len()].iter().enumerate() {
        // A stream that is compressed may begin with bytes of its own, before there is anything to compress.
        let before = reader.body().map_or(0, |body| body.len());
        let start = Instant::now();
        gate.open();
        let mut came = before;
        let mut last = None;
        let mut limit = DEADLINE / 4;
        while reader.holds_within(limit, |len| len > Some(came)) {
            last = Some(start.elapsed());
            came = reader.body().map_or(0, |body| body.len());
            limit = QUIET;
            if coding == "identity" {
                break;
            }
        }
        let Some(last) = last else {
            return Err(format!("byte {n} is held back"));
        };
        worst = worst.max(last);
        // To decode every one would take seconds for all of them.
        if n == 0 || n + 1 == EVENTS.len() {
            let text = decoded(coding, &reader.body().unwrap_or_default());
            if text != EVENTS[..=n] {
                return Err(format!("after byte {n} a client can read {text:?}"));
            }
        }
    }
    own[EVENTS.len() + 1].open();
    Ok(worst)
}

/// Tries until all is in time, or the machine is not to blame.
fn judge(what: &str, mut once: impl FnMut() -> Result<Duration, String>) -> Option<String> {
    let limit = std::env::var("FLUSH_LATE_MS").map_or(LATE, |ms| {
        Duration::from_millis(ms.parse().expect("a number"))
    });
    let mut stalls = Vec::new();
    let mut finding = String::new();
    for _ in 0..TRIES {
        let mut outcome = Ok(Duration::ZERO);
        let stall = worst_stall_while(|| outcome = once());
        match outcome {
            Ok(worst) if worst <= limit => return None,
            Ok(worst) => finding = format!("{what}: {worst:?} late"),
            // That is no matter of time.
            Err(why) => return Some(format!("{what}: {why}")),
        }
        stalls.push(stall);
    }
    if stalls.iter().all(|stall| *stall >= STALL_MAX) {
        inconclusive(&format!("{finding}, with stalls of {stalls:?}"));
        return None;
    }
    Some(finding)
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
    // nginx flushes where nothing is buffered, alone.
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
