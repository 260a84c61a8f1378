//! The request itself: made as text, read by the engine, and run through the phases that serve, with a trace.
//!
//! The engine, the phases, the modules and the file system are those of the server; only the sockets are missing, and
//! with them request bodies. Nothing is logged, and the body of the answer is not read.

use std::cell::Cell;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use driver::io::files::FileCache;
use driver::worker::thread_config::ThreadConfig;
use engines::h1::{self, Event as Received};
use engines::http::{FileRange, SharedBytes};
use server_base::clock::Clock;
use server_base::logs::Logs;
use server_base::transport::NO_SOCKET;
use server_base::waker::WakeKey;
use server_base::{
    files::{
        Change, DirEntry, FileError, Files, Keep, Meta, OpenPolicy, Opened, TempDir, TempError,
        TempFile,
    },
    listen::ListenAddr,
};
use server_http::exchange::{Client, Ctx, Env, Exchange, Peer, Queues, State, Wait};
use server_http::http::Http;
use server_http::phases;
use server_http::trace::{Event, FileKind, Noted, Trace};

use super::handshake::{self, Greeting};
use super::listener::Taken;
use super::passed::Calls;
use super::url::Url;

/// Request to explain, and options.
pub(crate) struct ExplainRequest<'a> {
    /// The request's URL.
    pub(crate) url: &'a Url,
    /// Its method.
    pub(crate) method: &'a str,
    /// Its fields but for those that the URL makes: `Name: value`.
    pub(crate) fields: &'a [String],
    /// Address of the client, if one is given.
    pub(crate) from: Option<Peer>,
    /// The address it is sent to, and the port if it is not that of the URL.
    pub(crate) to: Option<(IpAddr, Option<u16>)>,
    /// Settings at their default, too.
    pub(crate) all: bool,
}

/// A finished exchange and its events.
pub(super) struct Run {
    /// The exchange.
    pub(super) x: Exchange,
    /// Start of its connection.
    pub(super) greeting: Greeting,
    /// Steps, in order.
    pub(super) events: Vec<Noted>,
    /// Requests to upstream servers.
    pub(super) passed: Calls,
}

/// Runs the request.
///
/// # Errors
/// It is no valid request.
// Long: the parts that a driver would provide are made one after another, before the one loop.
pub(super) fn run(
    asked: &ExplainRequest<'_>,
    config: &ThreadConfig,
    taken: &Taken,
) -> Result<Run, String> {
    let mut engine = h1::Conn::new(Rc::clone(&config.h1[taken.port]));
    engine.receive(text(asked).as_bytes());
    let Some(Received::Head(mut head)) = engine.event() else {
        return Err("the head of the request is incomplete".to_owned());
    };
    let client = client(asked, config, taken);
    let unix_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_millis() as u64);
    let mut clock = Clock::new(START_MS, unix_ms);
    let trace = Rc::new(Trace::default());
    let mut files = Watched {
        inner: FileCache::new(),
        trace: Rc::clone(&trace),
    };
    files.inner.set_now(START_MS, unix_ms);
    let (mut logs, env) = (Logs::default(), environment());
    let queues = Queues::default();
    let mut passed = Calls::default();
    let mut x = Exchange::new(Rc::clone(&config.http), client);
    x.begin(Rc::clone(&config.http), taken.port, client, &clock);
    let greeting = handshake::begin(&mut x, asked.url, &config.http, taken)?;
    if greeting.refused.is_some() {
        phases::place(&mut x);
        x.progress.state = State::Aborted;
        let events = Vec::new();
        return Ok(Run {
            x,
            greeting,
            events,
            passed,
        });
    }
    head.fault = head.fault.or(greeting.fault);
    x.head = head;
    x.trace = Some(Rc::clone(&trace));
    // No real time passes: the clock is set to the end of each wait, and the trace records the wait.
    for _ in 0..WAITS_MAX {
        let mut cx = Ctx {
            files: &mut files,
            connector: &mut passed,
            clock: &clock,
            logs: &mut logs,
            env: &env,
            budget: &Cell::new(u64::MAX),
            queues: &queues,
        };
        match x.progress.state {
            State::Waiting(_) => phases::resume(&mut x, &mut cx),
            _ => phases::begin(&mut x, &mut cx),
        }
        let State::Waiting(Wait { until_ms, .. }) = x.progress.state else {
            break;
        };
        if until_ms == u64::MAX || passed.is_asked() {
            // It waits for an event that cannot occur here.
            break;
        }
        let wait_ms = until_ms.saturating_sub(clock.mono_ms);
        trace.push(x.route.location, Event::Wait(wait_ms));
        clock.set(until_ms, clock.unix_ms + wait_ms);
    }
    let events = trace.take();
    Ok(Run {
        x,
        greeting,
        events,
        passed,
    })
}

/// The client of the request, the first of its connection.
fn client(asked: &ExplainRequest<'_>, http: &Http, taken: &Taken) -> Client {
    // There is no socket, so variables about it (`$tcpinfo_*`) are empty.
    Client {
        peer: asked.from.unwrap_or_else(|| from_here(http, taken)),
        local: taken.local,
        connection: 1,
        requests: 1,
        since_ms: 0,
        pipelined: false,
        may_push: false,
        offers: None,
        debug: false,
        socket: NO_SOCKET,
        wake: WakeKey::default(),
    }
}

/// A client of this machine that uses the socket.
fn from_here(http: &Http, taken: &Taken) -> Peer {
    let ip = match http.ports[taken.port].listen.addr {
        ListenAddr::Unix(_) => return Peer::Unix,
        ListenAddr::Inet(addr) if addr.is_ipv4() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ListenAddr::Inet(_) => match taken.local {
            Some(local) if local.is_ipv4() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            _ => IpAddr::V6(Ipv6Addr::LOCALHOST),
        },
    };
    Peer::Inet(SocketAddr::new(ip, CLIENT_PORT))
}

/// The request as a client sends it.
fn text(asked: &ExplainRequest<'_>) -> String {
    let mut text = format!("{} {} HTTP/1.1\r\n", asked.method, asked.url.target);
    let names_host = |field: &&String| {
        let name = field.split(':').next().unwrap_or_default();
        name.eq_ignore_ascii_case("host")
    };
    if !asked.fields.iter().any(|field| names_host(&field)) {
        text.push_str(&format!("Host: {}\r\n", asked.url.host));
    }
    for field in asked.fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text
}

fn environment() -> Env {
    Env {
        hostname: sys::process::hostname(),
        pid: std::process::id(),
        ..Env::default()
    }
}

/// The file system of the server with a record of every access.
struct Watched {
    inner: FileCache,
    trace: Rc<Trace>,
}

impl Watched {
    fn record(&self, call: &'static str, path: &[u8], found: Result<FileKind, FileError>) {
        self.trace
            .push_here(Event::File(call, path.to_vec(), found));
    }
}

fn kind(meta: &Meta) -> FileKind {
    match (meta.is_file, meta.is_dir) {
        (true, _) => FileKind::File(meta.size),
        (_, true) => FileKind::Directory,
        _ => FileKind::Other,
    }
}

impl Files for Watched {
    fn open(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Rc<Opened>, FileError> {
        let result = self.inner.open(path, policy);
        let found = result.as_ref().map(|opened| kind(&opened.meta));
        self.record("open", path, found.map_err(|error| *error));
        result
    }

    fn content(&mut self, opened: &Opened) -> Option<SharedBytes> {
        self.inner.content(opened)
    }

    fn read(&mut self, range: &FileRange) -> std::io::Result<Vec<u8>> {
        self.inner.read(range)
    }

    fn stat(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Meta, FileError> {
        let result = self.inner.stat(path, policy);
        let found = result.as_ref().map(kind);
        self.record("stat", path, found.map_err(|error| *error));
        result
    }

    fn list(&mut self, path: &[u8]) -> Result<Vec<DirEntry>, FileError> {
        let result = self.inner.list(path);
        let found = result.as_ref().map(|_| FileKind::Directory);
        self.record("list", path, found.map_err(|error| *error));
        result
    }

    /// Changes are recorded, not made.
    fn change(&mut self, change: &Change<'_>) -> Result<(), FileError> {
        let (call, path) = change.call();
        let call = call.trim_end_matches("()");
        self.record(call, path, Ok(FileKind::Unchanged));
        Ok(())
    }

    /// Output is discarded.
    fn create_temp(&mut self, dir: &TempDir, _: u32, _: Keep) -> Result<TempFile, TempError> {
        let path = dir.path.clone();
        let nowhere = File::create("/dev/null").map_err(|error| TempError {
            error: FileError {
                errno: error.raw_os_error().unwrap_or_default(),
                call: "open()",
            },
            path: path.clone(),
        })?;
        Ok(TempFile::unnamed(path, nowhere))
    }
}

/// When the request begins by the clock that only goes forward.
const START_MS: u64 = 1000;

/// Source port of requests, unless specified.
pub(crate) const CLIENT_PORT: u16 = 40_000;

/// Times that a request may wait; each limit makes it wait once.
const WAITS_MAX: u32 = 100;
