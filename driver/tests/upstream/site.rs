//! A worker thread with a proxying handler, and its client.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use driver::worker::thread::Thread;
use driver::worker::thread_commands::{Command, Counters};
use engines::http::{BodyLength, Chunk, Fields, FileRange};
use server_http::exchange::{Ctx, Env, Exchange, State, Wait};
use server_http::module::{Content, Handler, Module};
use server_http::reply;
use server_upstream::protocol::{FASTCGI, HTTP1, ProtocolSpec, SCGI, UWSGI};
use server_upstream::request::{RequestSpec, UpstreamEvent, UpstreamRequest};
use server_upstream::route::{Pool, Route, SocketOptions, Timeouts, UpstreamAddr};
use sys::poll::Waker;

use super::setup::setup;

const PASS: Module = Module {
    name: "pass",
    handlers: &[Handler::Content(pass)],
    ..Module::EMPTY
};

/// An attempt and the report on it.
struct ProxiedRequest {
    request: UpstreamRequest,
    report: Vec<u8>,
}

/// Passes a request on: `/<port>/<words>`. The words are options.
fn pass(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let uri = String::from_utf8_lossy(&x.target.uri).into_owned();
    let words: Vec<&str> = uri.split('/').skip(1).collect();
    let has = |word| words.contains(&word);
    let mut proxied = match x.extensions.take::<ProxiedRequest>() {
        Some(proxied) => proxied,
        None => {
            if has("hold") {
                wait_in_turn(words[0]);
            }
            let waker = x.waker(cx);
            let request = cx.connector.call(route(&words), spec(&words), waker);
            if has("post") {
                request.send(Chunk::Static(b"abc"));
                request.end(None);
            }
            if has("file") {
                request.send(file());
                request.end(None);
            }
            if has("narrow") {
                request.set_window(7);
            }
            ProxiedRequest {
                request,
                report: Vec::new(),
            }
        }
    };
    while let Some(event) = proxied.request.next() {
        let report = &mut proxied.report;
        match event {
            UpstreamEvent::Interim(head) => report.extend(format!("({}) ", head.status).bytes()),
            UpstreamEvent::Head(head, _) => {
                report.extend(format!("{} ", head.status).bytes());
                if has("give_up") {
                    reply::text(x, cx, 200, proxied.report, Some(b"text/plain"));
                    return Content::Sent;
                }
            }
            UpstreamEvent::Data(chunk) => {
                assert!(!has("narrow") || chunk.len() <= 7, "more than the window");
                report.extend_from_slice(chunk.bytes());
                if has("tunnel") && chunk.bytes().ends_with(b"bye") {
                    proxied.request.end(None);
                }
            }
            UpstreamEvent::Note(text) => report.extend(text),
            UpstreamEvent::Trailers(_) => report.extend(b" trailers"),
            UpstreamEvent::Upgraded => {
                report.extend(b"upgraded ");
                proxied.request.send(Chunk::Static(b"ping"));
            }
            UpstreamEvent::End => {
                let facts = proxied.request.facts();
                assert!(facts.connected_ms >= Some(facts.started_ms), "{facts:?}");
                assert!(facts.head_ms >= facts.connected_ms && facts.ended_ms >= facts.head_ms);
                assert!(facts.sent_ms >= facts.connected_ms || has("file"));
                let reused = if facts.reused { " reused" } else { "" };
                report.extend_from_slice(reused.as_bytes());
                reply::text(x, cx, 200, proxied.report, Some(b"text/plain"));
                return Content::Sent;
            }
            UpstreamEvent::Failed(error) => {
                let text = format!(
                    "{:?} sent {} reused {} untouched {}",
                    error.failure, error.sent_bytes, error.reused, error.untouched
                );
                report.extend_from_slice(text.as_bytes());
                reply::text(x, cx, 200, proxied.report, Some(b"text/plain"));
                return Content::Sent;
            }
        }
    }
    x.extensions.push(proxied);
    x.progress.state = State::Waiting(Wait::woken());
    Content::Wait
}

/// A handler that waits within its turn: the port of its server, the sender that it notifies, and the receiver. It
/// waits until that receiver's senders are gone.
type Waiting = (u16, Sender<()>, Receiver<()>);

static HELD: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// Holds the next request with the word `hold`. It notifies `held`, and continues when the senders of `may_go` are
/// dropped.
pub(crate) fn hold(port: u16, held: Sender<()>, may_go: Receiver<()>) {
    HELD.lock()
        .expect("nobody panics with it")
        .push((port, held, may_go));
}

fn wait_in_turn(port: &str) {
    let mut all = HELD.lock().expect("nobody panics with it");
    let at = all.iter().position(|(of, ..)| of.to_string() == port);
    let (_, held, may_go) = all.swap_remove(at.expect("it is announced"));
    drop(all);
    held.send(()).expect("the server waits");
    assert!(may_go.recv().is_err(), "nothing is said");
}

fn route(words: &[&str]) -> Route {
    let addr = match words[0].parse() {
        Ok(port) => UpstreamAddr::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => UpstreamAddr::Unix(words[0].replace('|', "/").into_bytes().into()),
    };
    let ms = |word| if words.contains(&word) { 50 } else { 20_000 };
    Route {
        addr,
        protocol: protocol(words),
        head_bytes: 64 << 10,
        group: 0,
        tls: None,
        pool: words.contains(&"pool").then_some(Pool {
            id: 7,
            group: 7,
            connections: 2,
            requests: if words.contains(&"twice") { 2 } else { 1000 },
            time_ms: 3_600_000,
            timeout_ms: 60_000,
            counted: 0,
        }),
        options: SocketOptions::default(),
        timeouts: Timeouts {
            connect_ms: ms("connect_soon"),
            send_ms: ms("send_soon"),
            read_ms: ms("read_soon"),
        },
    }
}

fn protocol(words: &[&str]) -> &'static ProtocolSpec {
    let has = |word| words.contains(&word);
    if has("scgi") {
        &SCGI
    } else if has("uwsgi") {
        &UWSGI
    } else if has("fastcgi") {
        &FASTCGI
    } else {
        &HTTP1
    }
}

/// Returns the parameters of a request to an application.
fn params(words: &[&str]) -> RequestSpec {
    let has = |word| words.contains(&word);
    let mut fields = Fields::default();
    let length: &[u8] = if has("post") { b"3" } else { b"0" };
    fields.push(b"CONTENT_LENGTH", length);
    fields.push(b"A", if has("bad_field") { b"b\0c" } else { b"b" });
    if has("huge") {
        fields.push(b"B", &vec![b'x'; 65_536]);
    }
    RequestSpec {
        fields,
        body: match has("post") {
            true => BodyLength::Length(3),
            false => BodyLength::None,
        },
        upgrade: has("tunnel"),
        modifiers: [5, 9],
        ..RequestSpec::default()
    }
}

fn spec(words: &[&str]) -> RequestSpec {
    let has = |word| words.contains(&word);
    if has("scgi") || has("uwsgi") {
        return params(words);
    }
    let mut fields = Fields::default();
    let body = match (has("post"), has("file")) {
        (true, _) => BodyLength::Length(3),
        (_, true) => BodyLength::Length(FILE_BYTES),
        _ => BodyLength::None,
    };
    let upgrade = has("tunnel");
    let method: &[u8] = match body {
        BodyLength::None => b"GET",
        _ => b"POST",
    };
    fields.push(b":method", method);
    fields.push(b":path", b"/path");
    fields.push(b"Host", b"upstream");
    if has("bad_field") {
        fields.push(b"X", b"a\r\nb");
    }
    if let BodyLength::Length(bytes) = body {
        fields.push(b"Content-Length", bytes.to_string().as_bytes());
    }
    if upgrade {
        fields.push(b"Connection", b"upgrade");
        fields.push(b"Upgrade", b"echo");
    }
    RequestSpec {
        fields,
        body,
        upgrade,
        keep: true,
        ..RequestSpec::default()
    }
}

/// Returns a request body in an unlinked file.
fn file() -> Chunk {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("firstbyte-upstream-{}-{number}.body", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let mut file = options.open(&path).expect("the directory is writable");
    std::fs::remove_file(path).expect("the file was made above");
    let bytes = vec![b'f'; FILE_BYTES as usize];
    file.write_all(&bytes).expect("there is room");
    Chunk::File(FileRange {
        file: Rc::new(file.into()),
        offset: 0,
        len: FILE_BYTES,
    })
}

/// Bytes of a body in a file: more than one write takes.
pub(crate) const FILE_BYTES: u64 = 5_000_000;

/// A worker thread.
pub(crate) struct Site {
    addr: SocketAddr,
    commands: Sender<Command>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// Starts a worker thread with this number of `worker_connections`.
    pub(crate) fn new(worker_connections: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let addr = listener.local_addr().expect("it is bound");
        let (commands, inbox) = channel();
        let waker = Arc::new(Waker::new().expect("a descriptor is free"));
        let theirs = Arc::clone(&waker);
        let setup = setup(listener, "", &[&PASS], worker_connections);
        let thread = std::thread::spawn(move || {
            let counters = Arc::<Counters>::default();
            let thread = Thread::new(setup, theirs, inbox, counters, Env::default());
            thread.expect("a poller can be made").run();
        });
        Self {
            addr,
            commands,
            waker,
            thread: Some(thread),
        }
    }

    /// Connects a client.
    pub(crate) fn client(&self) -> Client {
        let socket = TcpStream::connect(self.addr).expect("it listens");
        let patience = Some(Duration::from_secs(20));
        socket.set_read_timeout(patience).expect("it is a time");
        Client(socket)
    }

    /// Returns the response for a new client.
    pub(crate) fn get(&self, uri: &str) -> String {
        self.client().get(uri)
    }

    pub(crate) fn command(&self, order: Command) {
        self.commands.send(order).expect("the thread runs");
        self.waker.wake();
    }

    /// Waits until the thread has ended by itself.
    pub(crate) fn join(mut self) {
        let thread = self.thread.take().expect("it is joined once");
        thread.join().expect("it does not panic");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = self.commands.send(Command::Terminate);
            self.waker.wake();
            thread.join().expect("it does not panic");
        }
    }
}

/// A client of the worker.
pub(crate) struct Client(TcpStream);

impl Client {
    /// Sends a request. Returns the body of its response.
    pub(crate) fn get(&mut self, uri: &str) -> String {
        self.ask(uri);
        self.answer()
    }

    pub(crate) fn ask(&mut self, uri: &str) {
        let request = format!("GET {uri} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.0.write_all(request.as_bytes()).expect("it is open");
    }

    /// Returns the body of the next response.
    pub(crate) fn answer(&mut self) -> String {
        let mut received = Vec::new();
        let mut piece = [0; 65536];
        loop {
            let text = String::from_utf8_lossy(&received);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.split("Content-Length: ").nth(1);
                let length = length.and_then(|rest| rest.split("\r\n").next());
                let length: usize = length.and_then(|text| text.parse().ok()).expect("a length");
                if body.len() >= length {
                    return body.to_owned();
                }
            }
            let read = self.0.read(&mut piece).expect("an answer in time");
            assert!(
                read > 0,
                "closed after {:?}",
                String::from_utf8_lossy(&received)
            );
            received.extend_from_slice(&piece[..read]);
        }
    }
}
