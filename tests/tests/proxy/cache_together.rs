//! Many clients of one cold response: one request reaches the server, and its bytes reach all of them at once.
//!
//! Times are compared with those of the first client. `FIRSTBYTE_NGINX` is the program of an nginx that is measured beside
//! it; its figures are printed. A busy machine is inconclusive. Source: nginx documentation, `proxy_cache_lock`.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Gate, Step, send};
use firstbyte_tests::busy::check_timing;
use firstbyte_tests::change::install;
use firstbyte_tests::client::request;
use firstbyte_tests::peer;
use firstbyte_tests::wait::DEADLINE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cache_server::{cached_for_many, wait_for_requests};

/// Time between two pieces of the server.
const PIECE_MS: u64 = 2;
/// Bytes of the read with the first bytes of a body, which is to be short: the next client is measured after it.
const FIRST_READ_BYTES: usize = 2048;
/// Bytes of each other read.
const READ_BYTES: usize = 256 << 10;
/// Wait for a CPU after which times of a few milliseconds prove nothing.
const WAIT_MAX: Duration = Duration::from_millis(2);

/// Returns a limit for the server under test: a build for debugging, beside the tests, needs ten times as long.
fn limit_of(limit: Duration) -> Duration {
    match cfg!(debug_assertions) && std::env::var_os("FIRSTBYTE_BIN").is_none() {
        true => limit * 10,
        false => limit,
    }
}

/// A measurement.
#[derive(Clone, Copy)]
struct Load {
    clients: usize,
    /// Length of the response, and bytes that the server sends in a second.
    body_bytes: usize,
}

/// The longest time by which a client is later than the first one.
#[derive(Debug)]
struct Delays {
    first_byte: Duration,
    last_byte: Duration,
}

/// A client that compares each byte.
struct Reader {
    stream: TcpStream,
    head: Vec<u8>,
    /// Bytes of the body so far.
    received: usize,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Reader {
    /// Connects and sends the request.
    fn start(port: u16) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server accepts");
        let text = request("GET", "/cold", &[]);
        stream.write_all(text.as_bytes()).expect("it is open");
        stream.set_nonblocking(true).expect("it is a socket");
        Self {
            stream,
            head: Vec::new(),
            received: 0,
            first: None,
            last: None,
        }
    }

    /// Reads the bytes that have arrived.
    fn read(&mut self, buffer: &mut [u8], body: &[u8]) {
        let max = match self.first {
            None => FIRST_READ_BYTES,
            Some(_) => READ_BYTES,
        };
        let count = match self.stream.read(&mut buffer[..max]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            other => other.expect("the response is not reset"),
        };
        assert!(count > 0, "it ends after {} bytes", self.received);
        let now = Instant::now();
        let mut piece = &buffer[..count];
        if self.first.is_none() {
            self.head.extend_from_slice(piece);
            let mut parts = self.head.windows(4);
            let Some(end) = parts.position(|part| part == b"\r\n\r\n") else {
                return;
            };
            let start = self.head.len() - piece.len();
            piece = &piece[end + 4 - start..];
            assert!(self.head.starts_with(b"HTTP/1.1 200"));
        }
        if piece.is_empty() {
            return;
        }
        let end = self.received + piece.len();
        assert!(body.get(self.received..end) == Some(piece), "at {end}");
        self.received = end;
        self.first.get_or_insert(now);
        if end == body.len() {
            self.last = Some(now);
        }
    }
}

/// Reads all responses to their ends, on this thread.
fn read_all(readers: &mut [Reader], body: &[u8]) {
    let mut buffer = vec![0; READ_BYTES];
    let end = Instant::now() + DEADLINE;
    loop {
        // The first bytes of all are read before the rest of any.
        let has_begun = readers.iter().all(|reader| reader.first.is_some());
        let open = |reader: &&mut Reader| match has_begun {
            true => reader.last.is_none(),
            false => reader.first.is_none(),
        };
        let mut waiting: Vec<&mut Reader> = readers.iter_mut().filter(open).collect();
        if waiting.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{} have not ended", waiting.len());
        let ready: Vec<bool> = {
            let mut polled: Vec<PollFd<'_>> = waiting
                .iter()
                .map(|reader| PollFd::new(&reader.stream, PollFlags::IN))
                .collect();
            let second = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            poll(&mut polled, Some(&second)).expect("sockets can be polled");
            polled.iter().map(|one| !one.revents().is_empty()).collect()
        };
        for (reader, _) in waiting
            .iter_mut()
            .zip(ready)
            .filter(|(_, is_ready)| *is_ready)
        {
            reader.read(&mut buffer, body);
        }
    }
}

/// A server that begins at the gate and sends `body` in one second.
fn paced(body: &[u8], gate: &Gate) -> Backend {
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let pieces = body.chunks(body.len() / (1000 / PIECE_MS as usize));
    let of_piece = |piece: &[u8]| [send(piece), Step::Wait(PIECE_MS)];
    let mut steps = vec![Step::Gate(gate.clone()), send(head)];
    steps.extend(pieces.flat_map(of_piece));
    Backend::answering(move |_| steps.clone())
}

/// Measures a server: the binary under test, or `program`.
fn measure(load: Load, program: Option<&Path>) -> Delays {
    let body: Vec<u8> = (0..load.body_bytes).map(|at| (at % 251) as u8).collect();
    let body: Arc<[u8]> = body.into();
    let gate = Gate::default();
    let backend = paced(&body, &gate);
    let lock = "proxy_cache_lock on; proxy_cache_lock_age 60s; proxy_cache_lock_timeout 60s;";
    let builder = cached_for_many(&backend, lock);
    let builder = match program {
        Some(program) => builder.prepare(|dir| install(dir, program)),
        None => builder,
    };
    let server = builder.start();
    let mut readers: Vec<Reader> = (0..load.clients)
        .map(|_| Reader::start(server.port()))
        .collect();
    wait_for_requests(&server, load.clients);
    gate.open();
    read_all(&mut readers, &body);
    assert_eq!(backend.request_count(), 1);
    let delay = |time: fn(&Reader) -> Option<Instant>| {
        let times = || readers.iter().filter_map(time);
        match (times().min(), times().max()) {
            (Some(first), Some(last)) => last - first,
            _ => Duration::ZERO,
        }
    };
    Delays {
        first_byte: delay(|reader| reader.first),
        last_byte: delay(|reader| reader.last),
    }
}

/// Measures and prints; nginx beside it, if there is one.
fn check(load: Load, judge: impl Fn(&Delays)) {
    let what = format!("{} clients, {} bytes", load.clients, load.body_bytes);
    let found = check_timing(
        &what,
        WAIT_MAX,
        || {
            let delays = measure(load, None);
            println!("{what}: {delays:?}");
            delays
        },
        judge,
    );
    println!(
        "{what}: {}",
        if found.is_some() {
            "passed"
        } else {
            "inconclusive"
        }
    );
    let nginx = std::env::var_os("FIRSTBYTE_NGINX").map(PathBuf::from);
    if let Some(program) = nginx.filter(|_| peer::is_firstbyte()) {
        println!("{what}, nginx: {:?}", measure(load, Some(&program)));
    }
}

#[test]
fn a_hundred_clients_of_a_cold_response_get_it_together() {
    let load = Load {
        clients: 100,
        body_bytes: 10_000_000,
    };
    check(load, |delays| {
        // nginx lets the others wait for the end, and looks every 500 ms.
        if peer::is_firstbyte() {
            assert!(
                delays.first_byte < limit_of(Duration::from_millis(5)),
                "{delays:?}"
            );
            assert!(
                delays.last_byte < limit_of(Duration::from_millis(50)),
                "{delays:?}"
            );
        }
    });
}

#[test]
fn a_thousand_clients_of_a_cold_response_get_it_together() {
    let load = Load {
        clients: 1000,
        body_bytes: 1_000_000,
    };
    check(load, |delays| {
        if peer::is_firstbyte() {
            assert!(
                delays.first_byte < limit_of(Duration::from_millis(25)),
                "{delays:?}"
            );
        }
    });
}
