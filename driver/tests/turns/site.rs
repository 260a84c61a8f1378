//! One client, one worker of the simulation, and a module with a handler controlled by the URI.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driver::worker::thread_config::ThreadConfig;
use engines::http::{Chunk, FileRange, ResponseHead};
use server_base::errlog::{ErrorLog, Level, Sink};
use server_base::opened::OpenedLogs;
use server_http::exchange::{
    BodyRead, BodySource, BodyStage, Broken, Ctx, Exchange, Peer, State, Wait,
};
use server_http::module::{Content, Handler, Module};
use server_http::request_body::{CollectOptions, Collected, collect};
use server_http::wants::Wants;
use server_http::{LoadOptions, load, reply};
use sim::{Disk, Faults, Random, Wire, World};

use super::detached;
use super::probe::{VARIABLES, observe};
use super::proxy_handler::pass;
use super::server_uploads::upload;
use super::servers::pass as passed;
use super::wakes::{ending, feeding};

/// A connection of a client.
pub(crate) struct TestConnection {
    pub(crate) world: World,
    received: usize,
    /// The client reads everything after each turn.
    reads: bool,
    /// The error log.
    log: File,
}

/// Log entry of one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) uri: String,
    pub(crate) status: u16,
    pub(crate) request_bytes: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) header_bytes: u64,
    pub(crate) completed: bool,
    /// Number of handler runs up to then.
    pub(crate) begun: usize,
}

thread_local! {
    static LOG_ENTRIES: RefCell<Vec<LogEntry>> = const { RefCell::new(Vec::new()) };
    static BEGUN: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of handler runs since the last call. A waiting request counts again when it is resumed.
pub(crate) fn begun() -> usize {
    BEGUN.take()
}

/// Returns the log entries since the last call.
pub(crate) fn log_entries() -> Vec<LogEntry> {
    LOG_ENTRIES.take()
}

/// Returns the statuses of the log entries since the last call.
pub(crate) fn logged() -> Vec<u16> {
    log_entries().iter().map(|entry| entry.status).collect()
}

impl TestConnection {
    /// Makes a connection; `server` is inside the `server` block. The client reads everything.
    pub(crate) fn new(server: &str) -> Self {
        Self::with_room(server, 1 << 20, true)
    }

    /// Makes a client that does not read at first. The wire has room for `room` bytes.
    pub(crate) fn deaf(server: &str, room: usize) -> Self {
        Self::with_room(server, room, false)
    }

    /// Makes a connection like [`TestConnection::new`], with SPDY enabled.
    pub(crate) fn spdy(server: &str) -> Self {
        Self::over(
            &format!("listen 127.0.0.1:8000 spdy; {server}"),
            1 << 20,
            true,
        )
    }

    fn with_room(server: &str, room: usize, reads: bool) -> Self {
        Self::over(&format!("listen 127.0.0.1:8000; {server}"), room, reads)
    }

    fn over(server: &str, room: usize, reads: bool) -> Self {
        log_entries();
        begun();
        let (generation, log) = generation(server, 1);
        let mut world = World::new(generation, Random::new(1), 4_000_000_000_000, 65_536);
        let (hands, dice) = (Rc::clone(&world.hands), Random::new(2));
        let wire = Wire::new(hands, dice, Faults::default(), room);
        let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000)));
        world.accept(wire, 0, peer);
        Self {
            world,
            received: 0,
            reads,
            log,
        }
    }

    /// Sends bytes, runs turns, and returns the bytes received then.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> String {
        self.push(bytes);
        self.turn()
    }

    /// Sends bytes without a turn of the loop.
    pub(crate) fn push(&mut self, bytes: impl AsRef<[u8]>) {
        self.wire(|wire| wire.push(bytes.as_ref()));
    }

    /// Ends the client's side, runs turns, and returns the bytes received then.
    pub(crate) fn end(&mut self) -> String {
        self.wire(Wire::end);
        self.turn()
    }

    /// Advances time, runs turns, and returns the bytes received then.
    pub(crate) fn pass(&mut self, ms: u64) -> String {
        self.world.advance(ms);
        self.turn()
    }

    /// Runs turns until nothing happens; returns the bytes received then, as text.
    pub(crate) fn turn(&mut self) -> String {
        String::from_utf8_lossy(&self.turn_bytes()).into_owned()
    }

    /// Runs turns until nothing happens; returns the bytes received then.
    pub(crate) fn turn_bytes(&mut self) -> Vec<u8> {
        for _ in 0..TURNS_MAX {
            self.world.poll(1000);
            if self.reads {
                self.wire(|wire| wire.fetch(usize::MAX));
            }
            if !self.world.is_ready() {
                return self.received();
            }
        }
        panic!("turns go on without time");
    }

    /// Returns the bytes received since the last call.
    pub(crate) fn received(&mut self) -> Vec<u8> {
        let from = self.received;
        let received = self.wire(|wire| wire.sent()[from..].to_vec());
        self.received += received.len();
        received
    }

    /// The client reads from now on.
    pub(crate) fn listen(&mut self) -> String {
        self.reads = true;
        self.wire(|wire| wire.fetch(usize::MAX));
        self.turn()
    }

    pub(crate) fn wire<T>(&mut self, act: impl FnOnce(&mut Wire) -> T) -> T {
        act(&mut self.world.links[0].wire.borrow_mut())
    }

    /// Whether the server has neither closed nor ended its side.
    pub(crate) fn is_open(&mut self) -> bool {
        self.wire(|wire| !wire.closed && wire.shutdown_ms.is_none())
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        self.wire(|wire| wire.closed)
    }

    /// Returns the error log, from level `info` on.
    pub(crate) fn error_log(&self) -> String {
        let mut text = vec![0; 64 << 10];
        let n = self.log.read_at(&mut text, 0).unwrap_or(0);
        String::from_utf8_lossy(&text[..n]).into_owned()
    }

    /// From now on files are cached only if they were fetched.
    pub(crate) fn use_disk(&mut self) {
        self.world.shared.net.disk = Some(Disk::default());
    }

    pub(crate) fn disk(&mut self) -> &mut Disk {
        let disk = self.world.shared.net.disk.as_mut();
        disk.expect("the test uses a disk")
    }

    /// Ends the oldest fetch, runs turns, and returns the bytes received then.
    pub(crate) fn end_fetch(&mut self, failed: bool) -> String {
        self.disk().end_fetch(failed);
        self.world.shared.queues.wakers.receive();
        self.turn()
    }

    /// Returns the number of the server's writes.
    pub(crate) fn sends(&mut self) -> usize {
        self.wire(|wire| wire.puts.len())
    }
}

/// Returns a GET over HTTP/1.1.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Returns the statuses of HTTP/1 responses, in order.
pub(crate) fn statuses(text: &str) -> Vec<&str> {
    let heads = text.split("HTTP/1.1 ").skip(1);
    heads.map(|head| &head[..3]).collect()
}

/// Returns the body of the only response.
pub(crate) fn body(text: &str) -> &str {
    text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Makes a configuration and its error log.
pub(crate) fn generation(server: &str, number: u64) -> (ThreadConfig, File) {
    let options = LoadOptions {
        conf_path: PathBuf::from("/etc/turns.conf"),
        prefix: PathBuf::from("/etc"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/dev/null"),
    };
    let text = format!("events {{}} http {{ server {{ {server} }} }}");
    let source = conf::Memory::default().with_file("/etc/turns.conf", text);
    let cycle = match load(source, &options, &[&STORY]) {
        Ok(cycle) => cycle,
        Err(refused) => panic!("{}", refused.error.render(&refused.files)),
    };
    let http = cycle.http.expect("the configuration has an http block");
    let log = nameless(b"");
    let sink = log.try_clone().expect("a descriptor is free");
    let error_log = ErrorLog::new(vec![Sink::file(Arc::new(sink), Level::Info)]);
    http.attach_logs(OpenedLogs::default(), &error_log);
    (ThreadConfig::new(http, number), log)
}

/// Makes an unlinked file with these bytes.
fn nameless(bytes: &[u8]) -> File {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("firstbyte-turns-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options
        .open(&path)
        .expect("the temporary directory is writable");
    fs::remove_file(path).expect("the file was made above");
    file.write_all_at(bytes, 0).expect("there is room");
    file
}

const STORY: Module = Module {
    name: "story",
    handlers: &[
        Handler::Content(respond),
        Handler::Log(record),
        Handler::Event(observe),
    ],
    variables: VARIABLES,
    wants: Some(|_, is_used| Wants::all(is_used)),
    ..Module::EMPTY
};

/// Time until which an exchange waits.
struct Until(u64);

/// Waits this number of milliseconds. Returns true when they are over.
fn has_waited(x: &mut Exchange, cx: &Ctx<'_>, ms: u64) -> bool {
    let now_ms = cx.clock.mono_ms;
    let until_ms = match x.extensions.get::<Until>() {
        Some(until) => until.0,
        None => {
            x.extensions.push(Until(now_ms + ms));
            now_ms + ms
        }
    };
    if now_ms < until_ms {
        x.progress.state = State::Waiting(Wait::until(until_ms));
    }
    now_ms >= until_ms
}

/// Answers as the URI demands.
fn respond(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    BEGUN.set(BEGUN.get() + 1);
    let uri = String::from_utf8_lossy(&x.target.uri).into_owned();
    let words: Vec<&str> = uri.split('/').skip(1).collect();
    let number = |at: usize| -> u64 {
        let word = words.get(at).expect("the URI has a number");
        word.parse().expect("a number")
    };
    let pause_ms = || words.get(2).map_or(0, |_| number(2));
    let text = match words[0] {
        "body" => {
            let plan = CollectOptions::of(x.route.core_loc());
            match collect(x, cx, &plan) {
                Collected::Wait => return Content::Wait,
                Collected::Status(status) => return Content::Status(status),
                Collected::Done => format!("{} bytes", x.body_size().unwrap_or(0)),
            }
        }
        "wait" if !has_waited(x, cx, number(1)) => return Content::Wait,
        "hint" => {
            if x.extensions.get::<Until>().is_none() {
                let mut hints = ResponseHead::default();
                hints.push(b"Link", b"</a>");
                hints.status = 103;
                x.hint(hints);
            }
            if !has_waited(x, cx, number(1)) {
                return Content::Wait;
            }
            "hinted".to_owned()
        }
        "detach" => {
            detached::start(x, cx, &words[1..]);
            uri
        }
        "status" => return Content::Status(number(1) as u16),
        "pieces" => {
            let piece = || Chunk::Owned(vec![b'x'; number(2) as usize]);
            x.body.chunks.extend((0..number(1)).map(|_| piece()));
            return send(x, cx, Some(number(1) * number(2)));
        }
        // A file and a promised length that may differ from it.
        "file" => {
            let file = nameless(&vec![b'z'; number(1) as usize]);
            x.body.chunks.push_back(Chunk::File(FileRange {
                file: Rc::new(file.into()),
                offset: 0,
                len: number(2),
            }));
            return send(x, cx, Some(number(2)));
        }
        "woken" => match ending(x, cx) {
            Ok(text) => text,
            Err(wait) => {
                x.progress.state = State::Waiting(wait);
                return Content::Wait;
            }
        },
        "pass" => return pass(x, cx, &words[1..]),
        "passed" => match passed(x, cx, number(1), number(2)) {
            Some(text) => text,
            None => return Content::Wait,
        },
        "uploaded" | "paused" => match upload(x, cx, number(1), pause_ms()) {
            Some(text) => text,
            None => return Content::Wait,
        },
        "fed" => {
            x.body.source = Some(Box::new(feeding(x, cx)));
            return send(x, cx, None);
        }
        // Two pieces; the second one breaks.
        "broken" => {
            let piece = || Chunk::Owned(vec![b'x'; number(1) as usize]);
            x.body.chunks.extend([piece(), piece()]);
            x.push_outer_stage(Box::new(Breaking { pieces: 1 }));
            return send(x, cx, None);
        }
        // A body with a body stage.
        "staged" => {
            x.body
                .chunks
                .push_back(Chunk::Owned(vec![b'x'; number(1) as usize]));
            x.push_outer_stage(Box::new(Breaking { pieces: 1 }));
            return send(x, cx, None);
        }
        "late" => {
            x.body.source = Some(Box::new(LateBody {
                at_ms: cx.clock.mono_ms + number(1),
                bytes: number(2) as usize,
            }));
            return send(x, cx, None);
        }
        _ => uri,
    };
    reply::text(x, cx, 200, text.into_bytes(), Some(b"text/plain"));
    Content::Sent
}

fn send(x: &mut Exchange, cx: &mut Ctx<'_>, length: Option<u64>) -> Content {
    x.reply.status = 200;
    x.reply.content_length = length;
    reply::send(x, cx, None);
    Content::Sent
}

/// A body stage that breaks after this number of pieces.
struct Breaking {
    pieces: usize,
}

impl BodyStage for Breaking {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        if self.pieces == 0 {
            return Err(Broken("the body is broken"));
        }
        self.pieces -= 1;
        out.push_back(chunk);
        Ok(())
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        Ok(())
    }
}

/// A body that is made later.
struct LateBody {
    at_ms: u64,
    bytes: usize,
}

impl BodySource for LateBody {
    fn next(&mut self, cx: &mut Ctx<'_>) -> BodyRead {
        if cx.clock.mono_ms < self.at_ms {
            return BodyRead::Pending(Wait::until(self.at_ms));
        }
        match std::mem::take(&mut self.bytes) {
            0 => BodyRead::End,
            bytes => BodyRead::Chunk(Chunk::Owned(vec![b'y'; bytes])),
        }
    }
}

fn record(x: &mut Exchange, _: &mut Ctx<'_>) {
    let status = match x.route.err_status {
        0 => x.reply.status,
        status => status,
    };
    let entry = LogEntry {
        uri: String::from_utf8_lossy(&x.target.uri).into_owned(),
        status,
        request_bytes: x.input.bytes,
        bytes_sent: x.response.bytes_sent,
        header_bytes: x.response.header_bytes,
        completed: x.response.completed,
        begun: BEGUN.get(),
    };
    LOG_ENTRIES.with_borrow_mut(|log_entries| log_entries.push(entry));
}

/// Turns without a change of time; far more than any story has.
const TURNS_MAX: usize = 10_000;
