//! Clients that must not notice a change of the server.
//!
//! [`Load`] is many threads that request one small file without a pause. Some connect for every request; some keep
//! their connection and reconnect if the server ends it. [`Download`] is one client that has requested a large file and
//! stops reading until the test continues.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::server::Server;
use crate::wait::{DEADLINE, wait_until};

/// A download larger than the socket buffers of both ends (some 10 MB), so that it stays unfinished while its client
/// does not read.
pub const BIG_BYTES: u64 = 40_000_000;

/// Longest absence of a client from its connection for a reset to count. A client that did not run for longer has
/// missed the end, and sends into a closed socket.
const AWAY: Duration = Duration::from_millis(200);

/// Threads that request `/t.txt` and expect `text`, until they are stopped.
#[derive(Debug)]
pub struct Load {
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
}

/// Results of the clients of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Requests sent.
    pub requests: u64,
    /// Requests on connections of their own with a wrong response.
    pub failed: u64,
    /// Kept connections that the server ended between two responses.
    pub ended: u64,
    /// Kept connections that were reset.
    pub reset: u64,
    /// Kept connections that ended inside a response, or gave a wrong one.
    pub cut: u64,
    /// The longest response time, milliseconds.
    pub slowest_ms: u64,
}

#[derive(Debug, Default)]
struct Counts {
    stop: AtomicBool,
    requests: AtomicU64,
    failed: AtomicU64,
    ended: AtomicU64,
    reset: AtomicU64,
    cut: AtomicU64,
    slowest_ms: AtomicU64,
}

impl Load {
    /// Starts `connecting` threads that connect for every request, and `keeping` that keep their connection.
    #[must_use]
    pub fn start(port: u16, connecting: usize, keeping: usize) -> Self {
        let counts = Arc::new(Counts::default());
        let threads = (0..connecting + keeping).map(|n| {
            let counts = Arc::clone(&counts);
            std::thread::spawn(move || {
                if n < connecting {
                    connect_often(port, &counts);
                } else {
                    keep_connected(port, &counts);
                }
            })
        });
        let threads = threads.collect();
        Self { counts, threads }
    }

    /// Waits until the clients have sent `count` more requests.
    #[track_caller]
    pub fn go_on_for(&self, count: u64) {
        let seen = self.counts.requests.load(Ordering::Relaxed);
        wait_until("the load goes on", || {
            self.counts.requests.load(Ordering::Relaxed) > seen + count
        });
    }

    /// Stops the clients.
    ///
    /// # Panics
    /// When one of them panicked.
    #[must_use]
    pub fn stop(self) -> Figures {
        self.counts.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a client of the load ends");
        }
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Figures {
            requests: value(&self.counts.requests),
            failed: value(&self.counts.failed),
            ended: value(&self.counts.ended),
            reset: value(&self.counts.reset),
            cut: value(&self.counts.cut),
            slowest_ms: value(&self.counts.slowest_ms),
        }
    }
}

impl Counts {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Sends one request; returns whether the response was correct, `None` if the connection had ended.
    fn ask(&self, client: &mut Client) -> io::Result<Option<bool>> {
        let start = Instant::now();
        self.requests.fetch_add(1, Ordering::Relaxed);
        client.send("GET /t.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let Some(answer) = client.try_response()? else {
            return Ok(None);
        };
        let took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.slowest_ms.fetch_max(took_ms, Ordering::Relaxed);
        Ok(Some(answer.status == 200 && answer.text() == "text"))
    }
}

/// One request on a connection; false when it failed in any way.
pub fn served(client: &mut Client) -> bool {
    matches!(Counts::default().ask(client), Ok(Some(true)))
}

fn connect_often(port: u16, counts: &Counts) {
    while counts.goes_on() {
        let answer = Client::try_connect_to("127.0.0.1", port).and_then(|mut c| counts.ask(&mut c));
        if !matches!(answer, Ok(Some(true))) {
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn keep_connected(port: u16, counts: &Counts) {
    let mut client = Client::connect(port);
    let mut last = Instant::now();
    while counts.goes_on() {
        let away = last.elapsed();
        let seen = match counts.ask(&mut client) {
            Ok(Some(true)) => {
                last = Instant::now();
                continue;
            }
            Ok(None) => &counts.ended,
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset && away < AWAY => &counts.reset,
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => &counts.ended,
            Ok(Some(false)) | Err(_) => &counts.cut,
        };
        seen.fetch_add(1, Ordering::Relaxed);
        client = Client::connect(port);
        last = Instant::now();
    }
}

/// A client that has requested `/big`, a file of [`BIG_BYTES`] zeros, and has read only its first bytes.
#[derive(Debug)]
pub struct Download(pub Client);

impl Download {
    /// Requests the file.
    ///
    /// # Panics
    /// If no response begins.
    #[must_use]
    #[track_caller]
    pub fn begin(server: &Server) -> Self {
        let mut slow = server.client();
        slow.send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(slow.has_bytes_within(DEADLINE), "the download begins");
        Self(slow)
    }

    /// Reads to the end; returns whether the response is complete and correct.
    ///
    /// # Panics
    /// If the response is cut.
    #[track_caller]
    pub fn is_whole(&mut self) -> bool {
        let answer = self.0.response();
        // Compared in large pieces: byte by byte takes seconds beside a load.
        let zeros = [0; 65_536];
        let mut pieces = answer.body.chunks(zeros.len());
        answer.body.len() as u64 == BIG_BYTES && pieces.all(|piece| *piece == zeros[..piece.len()])
    }

    /// Reads the rest; returns whether it was truncated.
    #[track_caller]
    pub fn is_cut(&mut self) -> bool {
        (self.0.rest().len() as u64) < BIG_BYTES
    }
}
