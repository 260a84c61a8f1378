//! A worker thread with a handler that passes requests on, and a client of it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use driver::worker::orders::{Counters, Order, Setup};
use driver::worker::thread::Thread;
use engines::http::{BodyLength, Chunk, Fields};
use server_base::connector::{
    Pool, Route, SocketOptions, Timeouts, UpstreamAddr, UpstreamProtocol,
};
use server_base::errlog::ErrorLog;
use server_base::opened::OpenedLogs;
use server_base::upstream_request::{RequestSpec, UpstreamEvent, UpstreamRequest};
use server_http::exchange::{Ctx, Env, Exchange, State, Wait};
use server_http::module::{Content, Handler, Module};
use server_http::{LoadOptions, load, reply};
use sys::poll::Waker;

const PASS: Module = Module {
    name: "pass",
    handlers: &[Handler::Content(pass)],
    ..Module::EMPTY
};

/// An attempt and what has come of it.
struct Passing {
    request: UpstreamRequest,
    told: Vec<u8>,
}

/// Passes a request on: `/<port>/<words>`. The words say how: `pool`, `post`, `give_up` once the head is there.
fn pass(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let uri = String::from_utf8_lossy(&x.uri).into_owned();
    let words: Vec<&str> = uri.split('/').skip(1).collect();
    let has = |word| words.contains(&word);
    let mut passing = match x.guards.take::<Passing>() {
        Some(passing) => passing,
        None => {
            let waker = x.waker(cx);
            let request = cx.connector.call(route(&words), spec(&words), waker);
            if has("post") {
                request.send(Chunk::Static(b"abc"));
                request.end(None);
            }
            Passing {
                request,
                told: Vec::new(),
            }
        }
    };
    while let Some(event) = passing.request.next() {
        let told = &mut passing.told;
        match event {
            UpstreamEvent::Interim(head) => told.extend(format!("({}) ", head.status).bytes()),
            UpstreamEvent::Head(head, _) => {
                told.extend(format!("{} ", head.status).bytes());
                if has("give_up") {
                    reply::text(x, cx, 200, passing.told, Some(b"text/plain"));
                    return Content::Sent;
                }
            }
            UpstreamEvent::Data(chunk) => told.extend_from_slice(chunk.bytes()),
            UpstreamEvent::Trailers(_) => told.extend(b" trailers"),
            UpstreamEvent::Upgraded => told.extend(b" upgraded"),
            UpstreamEvent::End => {
                let facts = passing.request.facts();
                assert!(facts.connected_ms >= Some(facts.started_ms), "{facts:?}");
                assert!(facts.head_ms >= facts.connected_ms && facts.ended_ms >= facts.head_ms);
                let reused = if facts.reused { " reused" } else { "" };
                told.extend_from_slice(reused.as_bytes());
                reply::text(x, cx, 200, passing.told, Some(b"text/plain"));
                return Content::Sent;
            }
            UpstreamEvent::Failed(error) => {
                let text = format!(
                    "{:?} sent {} reused {} untouched {}",
                    error.failure, error.sent_bytes, error.reused, error.untouched
                );
                told.extend_from_slice(text.as_bytes());
                reply::text(x, cx, 200, passing.told, Some(b"text/plain"));
                return Content::Sent;
            }
        }
    }
    x.guards.push(passing);
    x.state = State::Waiting(Wait::woken());
    Content::Wait
}

fn route(words: &[&str]) -> Route {
    let addr = match words[0].parse() {
        Ok(port) => UpstreamAddr::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => UpstreamAddr::Unix(words[0].replace('|', "/").into_bytes().into()),
    };
    let ms = |word| if words.contains(&word) { 50 } else { 20_000 };
    Route {
        addr,
        protocol: UpstreamProtocol::Http1 {
            head_bytes: 64 << 10,
        },
        pool: words.contains(&"pool").then_some(Pool {
            id: 7,
            connections: 2,
            requests: if words.contains(&"twice") { 2 } else { 1000 },
            time_ms: 3_600_000,
            timeout_ms: 60_000,
        }),
        options: SocketOptions::default(),
        timeouts: Timeouts {
            connect_ms: ms("connect_soon"),
            send_ms: ms("send_soon"),
            read_ms: ms("read_soon"),
        },
    }
}

fn spec(words: &[&str]) -> RequestSpec {
    let mut fields = Fields::default();
    let post = words.contains(&"post");
    fields.push(b":method", if post { b"POST" } else { b"GET" });
    fields.push(b":path", b"/path");
    fields.push(b"Host", b"upstream");
    if post {
        fields.push(b"Content-Length", b"3");
    }
    RequestSpec {
        fields,
        http10: false,
        body: match post {
            true => BodyLength::Length(3),
            false => BodyLength::None,
        },
        upgrade: false,
    }
}

/// A worker thread.
pub(crate) struct Site {
    addr: SocketAddr,
    orders: Sender<Order>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// With so many `worker_connections`.
    pub(crate) fn new(worker_connections: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let addr = listener.local_addr().expect("it is bound");
        let (orders, inbox) = channel();
        let waker = Arc::new(Waker::new().expect("a descriptor is free"));
        let theirs = Arc::clone(&waker);
        let setup = setup(listener, worker_connections);
        let thread = std::thread::spawn(move || {
            let counters = Arc::<Counters>::default();
            let thread = Thread::new(setup, theirs, inbox, counters, Env::default());
            thread.expect("a poller can be made").run();
        });
        Self {
            addr,
            orders,
            waker,
            thread: Some(thread),
        }
    }

    /// A client of it.
    pub(crate) fn client(&self) -> Client {
        let socket = TcpStream::connect(self.addr).expect("it listens");
        let patience = Some(Duration::from_secs(20));
        socket.set_read_timeout(patience).expect("it is a time");
        Client(socket)
    }

    /// What one client hears.
    pub(crate) fn get(&self, uri: &str) -> String {
        self.client().get(uri)
    }

    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).expect("the thread runs");
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
            let _ = self.orders.send(Order::Terminate);
            self.waker.wake();
            thread.join().expect("it does not panic");
        }
    }
}

/// A client of the worker.
pub(crate) struct Client(TcpStream);

impl Client {
    /// Asks, and gives the body of the response.
    pub(crate) fn get(&mut self, uri: &str) -> String {
        self.ask(uri);
        self.answer()
    }

    pub(crate) fn ask(&mut self, uri: &str) {
        let request = format!("GET {uri} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.0.write_all(request.as_bytes()).expect("it is open");
    }

    /// The body of the next response.
    pub(crate) fn answer(&mut self) -> String {
        let mut heard = Vec::new();
        let mut piece = [0; 65536];
        loop {
            let text = String::from_utf8_lossy(&heard);
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
                String::from_utf8_lossy(&heard)
            );
            heard.extend_from_slice(&piece[..read]);
        }
    }
}

fn setup(listener: TcpListener, worker_connections: usize) -> Setup {
    let options = LoadOptions {
        conf_path: PathBuf::from("/etc/upstream.conf"),
        prefix: PathBuf::from("/etc"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/dev/null"),
    };
    let address = listener.local_addr().expect("it is bound").to_string();
    let text = format!("events {{}} http {{ server {{ listen {address}; }} }}");
    let source = conf::Memory::default().with_file("/etc/upstream.conf", text);
    let Ok(cycle) = load(source, &options, &[&PASS]) else {
        panic!("the configuration is refused");
    };
    let http = cycle.http.expect("the configuration has an http block");
    let log = ErrorLog::new(Vec::new());
    http.attach_logs(OpenedLogs::default(), &log);
    listener
        .set_nonblocking(true)
        .expect("a socket can be changed");
    Setup {
        http,
        number: 1,
        listeners: vec![Arc::new(listener.into())],
        addresses: vec![address],
        log,
        worker_connections,
        descriptor_ceiling: i32::MAX,
        debug_connections: Arc::new([]),
        multi_accept: true,
        keep_connections: true,
        shutdown_timeout_ms: None,
    }
}
