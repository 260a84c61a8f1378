//! Request bodies, collected for a handler by the settings of the location.
//!
//! Source: nginx documentation, `client_body_buffer_size`, `client_body_in_file_only`, `client_body_temp_path`.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use conf::Memory;
use engines::h1::{self, Event};
use engines::http::SharedBytes;
use server_base::clock::Clock;
use server_base::files::{
    FileError, Files, Keep, Meta, OpenPolicy, Opened, TempDir, TempError, TempFile,
};
use server_base::logs::Logs;
use server_base::waker::WakeKey;
use server_http::exchange::{Client, Ctx, Env, Exchange, Peer, Queues, State};
use server_http::http::LocalHttp;
use server_http::module::{Content, Handler, Module};
use server_http::request_body::{CollectOptions, Collected, collect};
use server_http::{LoadOptions, load, phases, reply};

use crate::servers::Servers;

/// Responds with 200 once the body is complete.
const READER: Module = Module {
    name: "reader",
    handlers: &[Handler::Content(read)],
    ..Module::EMPTY
};
static MODULES: &[&Module] = &[&READER];

fn read(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let http = Rc::clone(&x.route.http);
    let plan = CollectOptions::of(x.core_loc(&http));
    match collect(x, cx, &plan) {
        Collected::Wait => return Content::Wait,
        Collected::Status(status) => return Content::Status(status),
        Collected::Done => {}
    }
    reply::text(x, cx, 200, b"read".to_vec(), None);
    Content::Sent
}

/// Temporary files are real; there are no others.
struct Disk;

impl Files for Disk {
    fn open(&mut self, _: &[u8], _: &OpenPolicy) -> Result<Rc<Opened>, FileError> {
        unreachable!("nothing is served")
    }

    fn content(&mut self, _: &Opened) -> Option<SharedBytes> {
        None
    }

    fn stat(&mut self, _: &[u8], _: &OpenPolicy) -> Result<Meta, FileError> {
        unreachable!("nothing is served")
    }

    fn create_temp(&mut self, dir: &TempDir, mode: u32, keep: Keep) -> Result<TempFile, TempError> {
        server_base::files::create_temp(dir, mode, keep)
    }
}

/// A directory for bodies, and an exchange that reads one.
struct Reading {
    dir: PathBuf,
    x: Exchange,
    clock: Clock,
}

impl Reading {
    /// Runs the request until the handler has requested the body.
    fn begin(location: &str, fields: &str) -> Self {
        let mut reading = Self::new(location, fields);
        reading.with(phases::begin);
        reading
    }

    fn new(location: &str, fields: &str) -> Self {
        static DIRS: AtomicU32 = AtomicU32::new(0);
        let number = DIRS.fetch_add(1, Ordering::Relaxed);
        let name = format!("firstbyte-bodies-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).expect("the temporary directory is writable");
        let text = format!(
            "events {{}} http {{ client_body_temp_path {} 1 2; server {{ {location} }} }}",
            dir.display()
        );
        let options = LoadOptions {
            conf_path: PathBuf::from("/nginx.conf"),
            prefix: PathBuf::from("/"),
            globals: None,
            error_log: None,
            access_log: PathBuf::from("/access.log"),
        };
        let source = Memory::default().with_file("/nginx.conf", text);
        let cycle = load(source, &options, MODULES)
            .unwrap_or_else(|refused| panic!("{}", refused.error.render(&refused.files)));
        let http = cycle.http.expect("a configuration with http");
        let generation = Rc::new(LocalHttp::new(http, 1));
        let mut engine = h1::Conn::new(Rc::default());
        engine.receive(format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n").as_bytes());
        let Some(Event::Head(head)) = engine.event() else {
            panic!("no head with {fields:?}")
        };
        let client = Client {
            peer: Peer::Unix,
            local: None,
            connection: 1,
            requests: 1,
            since_ms: 0,
            pipelined: false,
            may_push: false,
            offers: None,
            debug: false,
            socket: server_base::transport::NO_SOCKET,
            wake: WakeKey::default(),
        };
        let clock = Clock::new(1000, 1000);
        let mut x = Exchange::new(Rc::clone(&generation), client);
        x.begin(generation, 0, client, &clock);
        x.head = head;
        Self { dir, x, clock }
    }

    fn with(&mut self, act: impl FnOnce(&mut Exchange, &mut Ctx<'_>)) -> &mut Self {
        let (mut logs, env) = (Logs::default(), Env::default());
        act(
            &mut self.x,
            &mut Ctx {
                files: &mut Disk,
                connector: &mut Servers::default(),
                clock: &self.clock,
                logs: &mut logs,
                env: &env,
                budget: &Cell::new(u64::MAX),
                queues: &Queues::default(),
            },
        );
        self
    }

    fn piece(&mut self, bytes: &[u8]) -> &mut Self {
        self.with(|x, cx| x.deliver_body(bytes.to_vec(), cx))
    }

    fn end(&mut self) -> &mut Self {
        self.with(|x, cx| {
            x.end_body(cx);
            assert!(x.is_body_due(), "the handler is run again");
            phases::resume(x, cx);
            assert_eq!((x.progress.state, x.reply.status), (State::Responding, 200));
        })
    }

    /// The content of the file of the body.
    fn written(&self) -> Vec<u8> {
        use std::os::unix::fs::FileExt;
        let file = self.x.body_file().expect("there is one");
        let mut bytes = vec![0; file.len as usize];
        let handle = fs::File::from(file.file.try_clone().expect("a descriptor"));
        let read = handle.read_exact_at(&mut bytes, 0);
        read.expect("as much was written");
        bytes
    }

    /// Returns the number of files with a name.
    fn named(&self) -> usize {
        files(&self.dir)
    }

    fn log(&mut self) -> &mut Self {
        self.with(phases::log)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn files(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).expect("it was made");
    let paths = entries.map(|entry| entry.expect("it stays").path());
    paths
        .map(|path| if path.is_dir() { files(&path) } else { 1 })
        .sum()
}

const CHUNKED: &str = "Transfer-Encoding: chunked";

#[test]
fn a_body_stays_in_memory_up_to_the_buffer() {
    let mut reading = Reading::begin("client_body_buffer_size 8;", CHUNKED);
    assert!(matches!(reading.x.progress.state, State::Waiting(_)));
    assert!(reading.x.awaits_body());
    reading.piece(b"1234").piece(b"5678").end();
    assert_eq!(reading.x.body_bytes(), Some(&b"12345678"[..]));
    assert!(reading.x.body_file().is_none());
    assert_eq!(reading.x.body_size(), Some(8));
}

#[test]
fn a_body_above_the_buffer_is_in_a_file_without_a_name() {
    let mut reading = Reading::begin("client_body_buffer_size 8;", CHUNKED);
    reading.piece(b"1234").piece(b"56789");
    assert_eq!(reading.written(), b"123456789", "it is written as it comes");
    reading.piece(b"0").end();
    assert_eq!(reading.written(), b"1234567890");
    assert_eq!(reading.x.body_bytes(), None);
    assert_eq!(reading.named(), 0);
    let levels = fs::read_dir(&reading.dir).expect("it was made").count();
    assert_eq!(levels, 1, "a directory for the last digit");
}

/// As in nginx, a body slightly longer than the buffer is not written to a file.
#[test]
fn an_announced_body_may_be_a_quarter_longer_than_the_buffer() {
    for (length, in_memory) in [(9, true), (10, false)] {
        let announced = format!("Content-Length: {length}");
        let mut reading = Reading::begin("client_body_buffer_size 8;", &announced);
        reading.piece(&vec![b'x'; length]).end();
        assert_eq!(reading.x.body_bytes().is_some(), in_memory, "{length}");
    }
}

#[test]
fn client_body_in_file_only_keeps_small_bodies_in_files() {
    for (value, during, after) in [("off", 0, 0), ("clean", 1, 0), ("on", 1, 1)] {
        let location = format!("client_body_in_file_only {value};");
        let mut reading = Reading::begin(&location, "Content-Length: 3");
        reading.piece(b"abc").end();
        assert_eq!(reading.named(), during, "{value}");
        if during == 1 {
            assert_eq!(reading.written(), b"abc");
        }
        reading.log();
        assert_eq!(reading.named(), after, "{value}");
    }
    let mut reading = Reading::begin("client_body_in_file_only clean;", "X: no body");
    assert_eq!(
        reading.x.progress.state,
        State::Responding,
        "there is nothing to wait for"
    );
    assert_eq!(reading.named(), 1, "an empty file");
    reading.log();
    assert_eq!(reading.named(), 0);
}

#[test]
fn a_body_that_cannot_be_written_is_500() {
    let mut reading = Reading::begin("client_body_buffer_size 1;", CHUNKED);
    fs::remove_dir_all(&reading.dir).expect("it was made");
    fs::write(&reading.dir, "").expect("the temporary directory is writable");
    reading.piece(b"1234").with(|x, cx| {
        assert!(x.is_body_due());
        phases::resume(x, cx);
        assert_eq!(x.reply.status, 500);
    });
    fs::remove_file(&reading.dir).expect("it was made");
}

#[test]
fn a_body_that_nobody_has_asked_for_is_held_up_to_a_limit() {
    let mut reading = Reading::new("", CHUNKED);
    assert!(reading.x.has_body_room());
    reading.piece(&[0; (64 << 10) - 1]);
    assert!(reading.x.has_body_room());
    reading.piece(&[0; 1]);
    assert!(!reading.x.has_body_room());
    assert_eq!(reading.x.body_used(), 0, "the peer may not send more");
}
