//! The server over real sockets: bad requests, bounds, streams.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use firstbyte_tests::TempDir;

use super::pool::{Events, JOBS_MAX};
use super::response::{Request, Response, TEXT};
use super::{CONNECTIONS_MAX, Handler, POLICY, Route, STREAMS_MAX, Worker, run};

/// Pages of a test: `now`, `made` by a thread, `slow` behind a gate, `broken`, `large`, `events`.
struct Pages {
    gate: Mutex<Receiver<()>>,
    made: AtomicUsize,
}

struct Shared(Arc<Pages>);

impl Handler for Shared {
    fn route(&self, request: &Request) -> Route {
        match request.path.as_str() {
            "now" => Route::Now(Response::line(200, "now")),
            "events" => Route::Stream,
            "made" | "slow" | "broken" | "large" => Route::Thread,
            _ => Route::Now(Response::line(404, "none")),
        }
    }

    fn worker(&self) -> Worker {
        let pages = Arc::clone(&self.0);
        Box::new(move |request| match request.path.as_str() {
            "broken" => panic!("a fault of a page, which this test wants"),
            "large" => Response::made(200, TEXT, "x".repeat(LARGE)),
            path => {
                pages.made.fetch_add(1, Ordering::Relaxed);
                if path == "slow" {
                    let gate = pages.gate.lock().expect("no thread panics with it");
                    // Without its sender the gate is open.
                    let _ = gate.recv();
                }
                Response::line(200, &format!("{path}?{}", request.query))
            }
        })
    }

    fn events(&self) -> Events {
        let mut n = 0;
        Box::new(move || {
            n += 1;
            Some(format!("event: n\ndata: {n}\n\n"))
        })
    }

    fn period(&self) -> Duration {
        Duration::from_millis(10)
    }
}

struct Site {
    path: PathBuf,
    pages: Arc<Pages>,
    gate: Option<Sender<()>>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

impl Site {
    fn start() -> Self {
        let dir = TempDir::new();
        let path = dir.path().join("site.sock");
        let listener: OwnedFd = UnixListener::bind(&path).expect("a socket").into();
        let (gate, receiver) = channel();
        let pages = Arc::new(Pages {
            gate: Mutex::new(receiver),
            made: AtomicUsize::new(0),
        });
        let handler: Arc<dyn Handler> = Arc::new(Shared(Arc::clone(&pages)));
        let (stop, other) = UnixStream::pair().expect("a pair");
        let other: OwnedFd = other.into();
        let thread =
            std::thread::spawn(move || run(&listener, &handler, &other).expect("it serves"));
        Self {
            path,
            pages,
            gate: Some(gate),
            stop: Some(stop),
            thread: Some(thread),
            _dir: dir,
        }
    }

    fn connect(&self) -> UnixStream {
        let socket = UnixStream::connect(&self.path).expect("it listens");
        let limit = Some(Duration::from_secs(60));
        socket.set_read_timeout(limit).expect("a limit");
        socket
    }

    /// Sends bytes, ends the sending side, and returns all that comes.
    fn exchange(&self, bytes: &str) -> String {
        let mut socket = self.connect();
        socket.write_all(bytes.as_bytes()).expect("it reads");
        socket.shutdown(std::net::Shutdown::Write).expect("it ends");
        let mut found = Vec::new();
        socket.read_to_end(&mut found).expect("it answers");
        String::from_utf8(found).expect("text")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        (self.gate, self.stop) = (None, None);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_some_and(|ended| ended.is_ok()) || std::thread::panicking());
    }
}

fn get(path: &str) -> String {
    format!("GET /{path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// Reads up to an end.
fn read_until(socket: &mut UnixStream, end: &str) -> String {
    let mut found = Vec::new();
    let mut byte = [0];
    while !found.ends_with(end.as_bytes()) {
        let n = socket.read(&mut byte).expect("it comes in time");
        assert_eq!(n, 1, "{}", String::from_utf8_lossy(&found));
        found.push(byte[0]);
    }
    String::from_utf8(found).expect("text")
}

#[track_caller]
fn status(response: &str) -> u16 {
    let found = response
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse().ok());
    found.unwrap_or_else(|| panic!("{response}"))
}

#[test]
fn responses_have_policy_and_length() {
    let site = Site::start();
    for (path, body) in [("now", "now\n"), ("made?a=1", "made?a=1\n")] {
        let found = site.exchange(&get(path));
        assert_eq!(status(&found), 200, "{found}");
        for field in [
            format!("Content-Security-Policy: {POLICY}\r\n"),
            "X-Content-Type-Options: nosniff\r\n".to_owned(),
            "Cache-Control: no-store\r\n".to_owned(),
            format!("Content-Length: {}\r\n", body.len()),
        ] {
            assert!(found.contains(&field), "{field}: {found}");
        }
        assert!(found.ends_with(&format!("\r\n\r\n{body}")), "{found}");
        let head = site.exchange(&get(path).replace("GET", "HEAD"));
        assert_eq!(head, found.strip_suffix(body).expect("a body"), "HEAD");
    }
}

#[test]
fn bad_requests_get_an_error() {
    let site = Site::start();
    for (request, wanted) in [
        ("x\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/3.0\r\nHost: h\r\n\r\n".to_owned(), 505),
        ("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 400),
        (
            format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(40_000)),
            414,
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n",
                "a".repeat(40_000)
            ),
            400,
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: h\r\n{}\r\n",
                "A: b\r\n".repeat(101)
            ),
            400,
        ),
        (get("other"), 404),
        (get("now").replace("GET", "DELETE"), 405),
        (
            "POST /now HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
            405,
        ),
        (get("now"), 200),
    ] {
        let found = site.exchange(&request);
        let shown: String = request.chars().take(60).collect();
        assert_eq!(status(&found), wanted, "{shown}: {found}");
        assert_eq!(
            found.contains("\r\nAllow: GET, HEAD\r\n"),
            wanted == 405,
            "{found}"
        );
    }
}

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let site = Site::start();
    // More than are answered in one turn of the loop.
    let many: String = (0..60)
        .map(|n| match n % 3 {
            0 => get(&format!("made?{n}")),
            1 => "POST /now HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
            _ => get("now"),
        })
        .collect();
    let found = site.exchange(&many);
    assert_eq!(found.matches("HTTP/1.1 ").count(), 60, "{found}");
    for n in (0..60).step_by(3) {
        assert!(found.contains(&format!("made?{n}\n")), "{n}");
    }
    assert_eq!(found.matches("HTTP/1.1 405").count(), 20);
}

#[test]
fn a_fault_in_a_page_is_an_error_of_that_page() {
    let site = Site::start();
    for _ in 0..5 {
        assert_eq!(status(&site.exchange(&get("broken"))), 500);
    }
    assert_eq!(status(&site.exchange(&get("made"))), 200);
}

#[test]
fn equal_requests_share_one_query() {
    let site = Site::start();
    let mut waiting: Vec<UnixStream> = (0..50).map(|_| site.connect()).collect();
    for socket in &mut waiting {
        socket.write_all(get("slow").as_bytes()).expect("it reads");
    }
    let gate = site.gate.as_ref().expect("the gate");
    gate.send(()).expect("a thread waits");
    for socket in &mut waiting {
        let found = read_until(socket, "slow?\n");
        assert_eq!(status(&found), 200);
    }
    // A connection that came after the response has made it anew, at most.
    assert!(site.pages.made.load(Ordering::Relaxed) <= 2);
}

#[test]
fn a_full_queue_is_an_error_and_no_wait() {
    let mut site = Site::start();
    // Both threads wait for the gate, all places of the queue are taken, and one request has none.
    let mut sockets: Vec<UnixStream> = (0..JOBS_MAX + 3)
        .map(|n| {
            let mut socket = site.connect();
            let request = get(&format!("slow?{n}"));
            socket.write_all(request.as_bytes()).expect("it reads");
            socket
        })
        .collect();
    assert_eq!(status(&site.exchange(&get("now"))), 200, "others are there");
    site.gate = None;
    let statuses: Vec<u16> = sockets
        .iter_mut()
        .map(|socket| status(&read_until(socket, "\r\n\r\n")))
        .collect();
    let refused = statuses.iter().filter(|status| **status == 503).count();
    // A thread may take its first request late: its place is free then.
    assert!((1..=3).contains(&refused), "{statuses:?}");
    assert_eq!(statuses[..JOBS_MAX], [200; JOBS_MAX]);
}

#[test]
fn a_slow_reader_holds_nobody() {
    let site = Site::start();
    let mut slow = site.connect();
    slow.write_all(get("large").as_bytes()).expect("it reads");
    for _ in 0..3 {
        assert_eq!(status(&site.exchange(&get("made"))), 200);
    }
    let found = read_until(&mut slow, "\r\n\r\n");
    assert!(
        found.contains(&format!("Content-Length: {LARGE}\r\n")),
        "{found}"
    );
    let mut body = vec![0; LARGE];
    slow.read_exact(&mut body).expect("all of it comes");
}

#[test]
fn streams_get_events_and_end_with_their_reader() {
    let site = Site::start();
    let head = site.exchange(&get("events").replace("GET", "HEAD"));
    assert!(
        head.contains("\r\nContent-Type: text/event-stream"),
        "{head}"
    );
    let mut socket = site.connect();
    let request = get("events").replace("\r\n\r\n", "\r\nLast-Event-ID: x'\"<\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("it reads");
    let found = read_until(&mut socket, "data: 3\n\n");
    assert!(found.contains("retry: 5000\n\n"), "{found}");
    assert!(found.contains("Transfer-Encoding: chunked\r\n"), "{found}");
    assert!(found.contains("X-Accel-Buffering: no\r\n"), "{found}");
    drop(socket);
    // HTTP/1.0 has no chunks.
    let mut old = site.connect();
    old.write_all(b"GET /events HTTP/1.0\r\n\r\n")
        .expect("it reads");
    let found = read_until(&mut old, "\n\nevent: n\ndata: ");
    assert!(!found.contains("chunked"), "{found}");
}

#[test]
fn one_stream_above_the_limit_gets_an_error_until_another_ends() {
    let site = Site::start();
    let stream = || {
        let mut socket = site.connect();
        socket
            .write_all(get("events").as_bytes())
            .expect("it reads");
        let mut begin = [0; 12];
        socket.read_exact(&mut begin).expect("it answers");
        (status(&String::from_utf8_lossy(&begin)), socket)
    };
    let mut open: Vec<_> = (0..STREAMS_MAX).map(|_| stream()).collect();
    assert!(open.iter().all(|(status, _)| *status == 200));
    assert_eq!(stream().0, 503);
    assert_eq!(status(&site.exchange(&get("made"))), 200, "pages are there");
    open.pop();
    firstbyte_tests::wait_until("the place is free", || stream().0 == 200);
}

#[test]
fn connections_above_the_limit_wait_for_a_place() {
    let site = Site::start();
    let mut open: Vec<_> = (0..CONNECTIONS_MAX)
        .map(|_| {
            let mut socket = site.connect();
            socket.write_all(get("now").as_bytes()).expect("it reads");
            read_until(&mut socket, "\r\n\r\nnow\n");
            socket
        })
        .collect();
    let mut late = site.connect();
    late.write_all(get("now").as_bytes()).expect("it fits");
    late.set_read_timeout(Some(Duration::from_millis(100)))
        .expect("a limit");
    assert!(late.read(&mut [0]).is_err(), "it waits");
    late.set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit");
    open.pop();
    assert!(read_until(&mut late, "now\n").starts_with("HTTP/1.1 200"));
}

/// Larger than the buffers of a socket.
const LARGE: usize = 8 * 1024 * 1024;
