//! Benchmark of one exchange in the worker without its system calls: read, engine, phases, file lookup, response,
//! write, log.
//!
//! `worker_exchange CASE N` runs N exchanges on one keep-alive connection with a socket in memory. The file is real and
//! is checked each time. `benches/run` counts the instructions of two runs with different N; the difference is the cost
//! of the exchanges alone. Cases:
//!
//! - `h2` and `h2-32` use HTTP/2, with one and 32 requests per read.
//! - `spdy-32` uses SPDY. Its client compresses each request anew, which is included.
//! - `proxied` and `proxied-h2` pass their requests to a server, also with sockets in memory.
//! - `recorded` records the connection for the map of round-trip times.
//! - `connection` and `connection-recorded` open a connection for each request.
//! - `experiment` has an experiment with a beacon that the request does not read. `experiment-user` reads the arm of a
//!   cookie. `experiment-host` requests the host of an arm. `locations`, `split_clients` and `servers` have the same
//!   locations and servers without an experiment.
//! - `costly.rs` configures experiments, long lists of expressions, and filtered bodies.

#[path = "worker_exchange/clients.rs"]
mod clients;
#[path = "worker_exchange/costly.rs"]
mod costly;
#[path = "worker_exchange/proxied.rs"]
mod proxied;
#[path = "worker_exchange/samples.rs"]
mod samples;

use std::collections::HashMap;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use driver::worker::conn::{Conn, accepted, end_probe, read_ready, turn};
use driver::worker::disposition::Disposition;
use driver::worker::net::Net;
use driver::worker::readiness::{Readiness, SocketFlags};
use driver::worker::shared::{SCRATCH_BYTES, Shared};
use driver::worker::thread_config::ThreadConfig;
use engines::http::{FileRange, OutputQueue, Protocol, Protocols};
use server_base::errlog::{self, ErrorLog, Level, Sink};
use server_base::opened::OpenedLogs;
use server_base::transport::TcpInfo;
use server_http::exchange::{Env, Peer};
use server_http::{LoadOptions, load};
use server_upstream::route::{SocketOptions, UpstreamAddr};
use sys::connect::{ConnectError, Connecting};
use sys::socket::Sent;

use clients::{Http2, Spdy};
use samples::SampleCounter;

/// Name of each case, its URI, and its number of requests per read.
const CASES: [(&str, &str, usize); 25] = [
    ("return", "/text", 1),
    ("file", "/page.html", 1),
    ("logged", "/logged/page.html", 1),
    ("error", "/none.html", 1),
    ("large", "/large.bin", 1),
    ("pipelined", "/page.html", 8),
    ("h2", "/page.html", 1),
    ("h2-32", "/page.html", 32),
    ("spdy-32", "/page.html", 32),
    ("proxied", "/px/page", 1),
    ("proxied-h2", "/px/page", 32),
    ("map-regex", "/map", 1),
    ("location-regex", "/location", 1),
    ("sub_filter", "/sub/text.html", 1),
    ("sub_filter-20", "/sub/text.html", 1),
    ("charset", "/charset/text.html", 1),
    ("recorded", "/page.html", 1),
    ("connection", "/page.html", 1),
    ("connection-recorded", "/page.html", 1),
    ("split_clients", "/split", 1),
    ("locations", "/page.html", 1),
    ("servers", "/page.html", 1),
    ("experiment", "/page.html", 1),
    ("experiment-user", "/experiment", 1),
    ("experiment-host", "/page.html", 1),
];

/// Size of the small and of the large file, bytes.
const PAGE_BYTES: usize = 612;
const LARGE_BYTES: usize = 1 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let case = CASES
        .iter()
        .find(|(name, ..)| arguments.first().is_some_and(|a| a == name));
    let (Some((name, path, times)), Some(count)) =
        (case, arguments.get(1).and_then(|n| n.parse().ok()))
    else {
        return ExitCode::from(2);
    };
    let root = std::env::temp_dir().join(format!("firstbyte-bench-{}", std::process::id()));
    let result = site(&root).and_then(|()| serve(&root, name, path, *times, count));
    let _ = std::fs::remove_dir_all(&root);
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn site(root: &Path) -> io::Result<()> {
    std::fs::create_dir_all(root)?;
    std::fs::write(root.join("page.html"), vec![b'x'; PAGE_BYTES])?;
    costly::site(root)?;
    std::fs::write(root.join("large.bin"), vec![b'x'; LARGE_BYTES])
}

/// Sends `count` requests. Returns false if a connection was not kept or a response is missing.
fn serve(root: &Path, name: &str, path: &str, times: usize, count: usize) -> io::Result<bool> {
    let proxies = name.starts_with("proxied");
    let generation = ThreadConfig::new(configuration(root, name)?, 1);
    let mut shared = Shared::new(Memory, generation, env());
    let mut http2 = name.contains("h2").then(Http2::new);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: client/1.0\r\nAccept: */*\r\n\
         Accept-Encoding: gzip\r\nConnection: keep-alive\r\n{cookie}\r\n",
        cookie = costly::cookie(name),
    );
    let connect = |shared: &Shared<Memory>| {
        let socket = Socket {
            request: request.repeat(times).into_bytes(),
            ..Socket::default()
        };
        let peer = Peer::Inet(SocketAddr::from(([127, 0, 0, 1], 40_000)));
        let mut conn = Conn::new(socket, peer, 0, 1, 1);
        accepted(&mut conn, shared);
        conn
    };
    let mut conn = connect(&shared);
    let mut spdy = name.starts_with("spdy").then(Spdy::new);
    conn.expect(match (&http2, &spdy) {
        (Some(_), _) => Protocols::default().with(Protocol::Http2),
        (_, Some(_)) => Protocols::default().with(Protocol::Spdy),
        _ => Protocols::default(),
    });
    if proxies {
        // Two connections take turns, in the loop's order.
        let client = proxied::Loop::new(shared, conn);
        return Ok(pass_on(client, http2, (path, times), count));
    }
    for n in 0..count {
        let now_ms = n as u64 / EXCHANGES_A_MS + 1;
        shared.clock.set(now_ms, UNIX_MS + now_ms);
        shared.files.set_now(now_ms, UNIX_MS + now_ms);
        if name.starts_with("connection") && n > 0 {
            end_probe(&mut conn, &mut shared);
            conn = connect(&shared);
        }
        conn.socket_mut().asked = true;
        if let Some(client) = &mut http2 {
            client.ask(path, times, &mut conn.socket_mut().request);
        }
        if let Some(client) = &mut spdy {
            client.ask(path, times, &mut conn.socket_mut().request);
        }
        let cause = Readiness::of_socket(SocketFlags::READABLE);
        let mut kept = read_ready(&mut conn, &mut shared, black_box(cause));
        // A connection that used up its turn gets another one at once.
        while kept {
            match turn(&mut conn, &mut shared, Readiness::default()) {
                Disposition::Keep { deadline_ms } if deadline_ms <= now_ms => {}
                Disposition::Keep { .. } => break,
                Disposition::Close => kept = false,
            }
        }
        if !kept {
            return Ok(false);
        }
    }
    Ok(shared.requests == (count * times) as u64 && conn.socket().sent > 0)
}

/// A process without a kernel: samples of connections are encoded and counted.
fn env() -> Env {
    Env {
        clock_us: Some(clock_us),
        tcp_info: Some(|_| Some(TcpInfo::default())),
        samples: Some(Arc::new(SampleCounter::default())),
        ..Env::default()
    }
}

/// Returns monotonic microseconds. The server's own clock needs a vDSO, which valgrind hides.
fn clock_us() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64 + 1
}

/// Sends `count` proxied requests. Returns false if a connection was not kept or a response is missing.
fn pass_on(
    mut client: proxied::Loop,
    mut http2: Option<Http2>,
    (path, times): (&str, usize),
    count: usize,
) -> bool {
    for n in 0..count {
        let now_ms = n as u64 / EXCHANGES_A_MS + 1;
        let Some(socket) = client.client() else {
            return false;
        };
        socket.asked = true;
        if let Some(http2) = &mut http2 {
            http2.ask(path, times, &mut socket.request);
        }
        if !client.exchange(now_ms, UNIX_MS + now_ms) {
            return false;
        }
    }
    client.requests() == (count * times) as u64 && client.client().is_some_and(|s| s.sent > 0)
}

fn configuration(root: &Path, name: &str) -> io::Result<Arc<server_http::http::Http>> {
    let proxies = name.starts_with("proxied");
    let (http, locations) = costly::blocks(name, root);
    let text = format!(
        "events {{}}
        http {{
            root {root};
            access_log off;
            keepalive_requests 1000000000;
            {recorded}
            {group}
            {http}
            server {{
                listen 127.0.0.1:8000 spdy;
                http2 on;
                server_name www.example.org;
                location = /text {{ return 200 'a few words of text'; }}
                {proxied}
                {locations}
                location /logged/ {{ alias {root}/; access_log /dev/null; }}
            }}
        }}",
        root = root.display(),
        recorded = match name.ends_with("recorded") {
            true => "rtt_map on; lab_store sqlite:/bench/store;",
            false => "",
        },
        group = if proxies { proxied::GROUP } else { "" },
        proxied = if proxies { proxied::LOCATION } else { "" },
    );
    let options = LoadOptions {
        conf_path: PathBuf::from("/bench/nginx.conf"),
        prefix: PathBuf::from("/bench"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/dev/null"),
    };
    let source = conf::Memory::default()
        .with_file("/bench/nginx.conf", text)
        .with_file("/bench/key", costly::KEY);
    let cycle = load(source, &options, server_modules::MODULES)
        .map_err(|refused| io::Error::other(refused.error.render(&refused.files)))?;
    let http = cycle
        .http
        .ok_or_else(|| io::Error::other("there is no http block"))?;
    let null = Arc::new(File::options().append(true).open("/dev/null")?);
    let opened = OpenedLogs {
        files: HashMap::from([(PathBuf::from("/dev/null"), Arc::clone(&null))]),
        ..OpenedLogs::default()
    };
    let errors = ErrorLog::new(vec![Sink::file(null, Level::Error)]);
    // As in a serving thread.
    errlog::set_thread(1);
    http.attach_logs(opened, &errors);
    Ok(http)
}

/// Sockets without cost: a request is available when it is read, and there is always room.
struct Memory;

#[derive(Default)]
struct Socket {
    /// Input of the connection; for a connection to a server, the response.
    request: Vec<u8>,
    /// The input can be read.
    asked: bool,
    sent: u64,
    to_server: bool,
}

impl Net for Memory {
    type Socket = Socket;

    fn receive(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
        if !std::mem::take(&mut socket.asked) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = socket.request.len();
        buffer[..len].copy_from_slice(&socket.request);
        Ok(len)
    }

    fn receive_into(
        &mut self,
        socket: &mut Socket,
        buffer: &mut Vec<u8>,
        _: usize,
    ) -> io::Result<usize> {
        if !std::mem::take(&mut socket.asked) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Like a read from a socket, it reserves more room than it fills.
        buffer.reserve(SCRATCH_BYTES);
        buffer.extend_from_slice(&socket.request);
        Ok(socket.request.len())
    }

    fn connect(
        &mut self,
        _: &UpstreamAddr,
        _: &SocketOptions,
    ) -> Result<Connecting<Socket>, ConnectError> {
        Ok(Connecting {
            socket: Socket {
                request: ANSWER.into(),
                to_server: true,
                ..Socket::default()
            },
            established: true,
        })
    }

    fn send(
        &mut self,
        socket: &mut Socket,
        out: &mut OutputQueue,
        limit: u64,
        _: u64,
    ) -> io::Result<Sent> {
        let bytes = out.len().min(limit);
        out.advance(bytes);
        socket.sent += bytes;
        socket.asked |= socket.to_server && bytes > 0;
        Ok(Sent {
            bytes,
            blocked: false,
        })
    }

    fn send_bytes(&mut self, _: &mut Socket, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_file(&mut self, _: &FileRange, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn shutdown(&mut self, _: &mut Socket) {}

    fn reset(&mut self, _: &mut Self::Socket) {}

    fn local_addr(&mut self, _: &mut Socket) -> Option<SocketAddr> {
        None
    }

    fn set_nodelay(&mut self, _: &mut Socket, _: bool) {}
}

/// The start of the wall clock, so late that the files have long settled.
const UNIX_MS: u64 = 4_000_000_000_000;

/// Exchanges per millisecond of the virtual clock.
const EXCHANGES_A_MS: u64 = 100;

/// Response of the server.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.31.4\r\nDate: Sun, 22 Nov 2026 17:00:00 GMT\r\n\
    Content-Type: application/octet-stream\r\nContent-Length: 100\r\nLast-Modified: Sun, 22 Nov 2026 16:00:00 GMT\r\n\
    Connection: keep-alive\r\nETag: \"6921e110-64\"\r\nAccept-Ranges: bytes\r\n\r\n\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
