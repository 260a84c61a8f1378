//! A server that closes kept connections at the moment at which the next request may come, and counts requests.
//!
//! It ends a connection with `shutdown`, keeps the socket, and then reads. Bytes that the kernel took before its FIN
//! can still be read, and were acknowledged. The kernel answers later bytes with a reset, and no program has read them.
//! So the server knows for each request whether its sender was right to send it again. Source: RFC 9110 section 9.2.2,
//! RFC 9112 section 9.3.1.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that a connection is kept after its response, microseconds.
const KEPT_US: u64 = 400;

/// Number of receptions of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Times it was read, and a response sent.
    pub answered: usize,
    /// Times it was read after the end was sent, without a response.
    pub dropped: usize,
}

/// The server; it ends with the process, or when it is dropped.
#[derive(Debug)]
pub struct ClosingServer {
    /// Its listener.
    pub address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    received: Mutex<HashMap<String, Received>>,
    refused: AtomicUsize,
    stopped: AtomicBool,
}

impl ClosingServer {
    /// Starts it on a free port.
    ///
    /// # Panics
    /// When none is free.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let counts = Arc::new(Counts::default());
        let of_thread = Arc::clone(&counts);
        thread::spawn(move || {
            for (n, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                if of_thread.stopped.load(Ordering::Relaxed) {
                    return;
                }
                let counts = Arc::clone(&of_thread);
                thread::spawn(move || serve(stream, n as u64, &counts));
            }
        });
        Self { address, counts }
    }

    /// Number of receptions of the request with this target.
    ///
    /// # Panics
    /// Never: the lock cannot be poisoned for good.
    #[must_use]
    pub fn received(&self, target: &str) -> Received {
        let received = self.counts.received.lock();
        let received = received.unwrap_or_else(PoisonError::into_inner);
        received.get(target).copied().unwrap_or_default()
    }

    /// Number of connections that received bytes after their end, and sent a reset.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.counts.refused.load(Ordering::Relaxed)
    }
}

impl Drop for ClosingServer {
    fn drop(&mut self) {
        self.counts.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers one or two requests, and closes at some moment after.
fn serve(stream: TcpStream, number: u64, counts: &Counts) -> Option<()> {
    let mut random = fastrand::Rng::with_seed(number);
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    for _ in 0..1 + random.u8(..2) {
        let target = request(&mut reader)?;
        count(counts, target, |received| received.answered += 1);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        (&stream).write_all(answer).ok()?;
    }
    let kept = Duration::from_micros(random.u64(..KEPT_US));
    let start = Instant::now();
    // A rest is too coarse for this: a timer of the kernel rounds by more than the moment takes.
    while start.elapsed() < kept {
        std::hint::spin_loop();
    }
    stream.shutdown(Shutdown::Both).ok()?;
    // A part of a request has been acknowledged, too.
    while let Some(target) = target(&mut reader) {
        count(counts, target, |received| received.dropped += 1);
        rest(&mut reader);
    }
    // Whatever is still to come comes now: the peer has seen the end, and closes.
    let watch = Instant::now();
    while watch.elapsed() < Duration::from_millis(20) {
        if stream.take_error().ok()?.is_some() {
            counts.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    None
}

/// Reads a request with its body and returns its target, or `None` at the end.
fn request(reader: &mut impl BufRead) -> Option<String> {
    let target = target(reader)?;
    rest(reader)?;
    Some(target)
}

/// Reads a request line, or the part of it that came.
fn target(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let _ = reader.read_line(&mut line);
    line.split(' ').nth(1).map(str::to_owned)
}

/// Reads the fields of a request and its body.
fn rest(reader: &mut impl BufRead) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()
}

fn count(counts: &Counts, target: String, add: impl FnOnce(&mut Received)) {
    let received = counts.received.lock();
    let mut received = received.unwrap_or_else(PoisonError::into_inner);
    add(received.entry(target).or_default());
}
