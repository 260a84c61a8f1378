//! The site of the simulated server: files on disk, three configurations, and a module that waits and records log
//! entries.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driver::worker::thread_config::ThreadConfig;
use server_base::opened::OpenedLogs;
use server_http::conf_core::InFile;
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::module::{Content, Handler, Module};
use server_http::port_slots::PortSlots;
use server_http::reply;
use server_http::request_body::{self, CollectOptions, Collected};

use super::load::{load_text, log};
use super::waits::{forget_waits, wait};

/// Names and sizes of the files: empty, small, at the limits of copying, inline reading and the queue, large.
pub(crate) const FILES: [(&str, usize); 9] = [
    ("empty.txt", 0),
    ("one.bin", 1),
    ("small.html", 700),
    ("copy.bin", 4097),
    ("inline.bin", 16_384),
    ("sendfile.bin", 16_385),
    ("mid.bin", 40_000),
    ("queue.bin", 65_537),
    ("big.bin", 150_000),
];

/// Timeouts (milliseconds) and limits of one configuration.
#[derive(Clone, Debug)]
pub(crate) struct Conf {
    pub(crate) name: &'static str,
    pub(crate) header_ms: u64,
    pub(crate) send_ms: u64,
    pub(crate) idle_ms: u64,
    pub(crate) linger_ms: u64,
    pub(crate) linger_idle_ms: u64,
    pub(crate) requests: usize,
    pub(crate) listen: &'static [&'static str],
    /// Further servers, each with its own port and without connections.
    pub(crate) others: std::ops::Range<u16>,
}

/// The configurations. The second one has its ports in another order and a hundred servers; the third one has one port
/// less.
pub(crate) const CONFS: [Conf; 3] = [
    Conf {
        name: "first",
        header_ms: 10_000,
        send_ms: 8_000,
        idle_ms: 15_000,
        linger_ms: 6_000,
        linger_idle_ms: 2_000,
        requests: 1000,
        listen: &["127.0.0.1:8001", "127.0.0.1:8002"],
        others: 9000..9000,
    },
    Conf {
        name: "the second one",
        header_ms: 4_000,
        send_ms: 3_000,
        idle_ms: 5_000,
        linger_ms: 3_500,
        linger_idle_ms: 1_500,
        requests: 1000,
        listen: &["127.0.0.1:8002", "127.0.0.1:8001"],
        others: 9000..9099,
    },
    Conf {
        name: "3",
        header_ms: 20_000,
        send_ms: 12_000,
        idle_ms: 700,
        linger_ms: 10_000,
        linger_idle_ms: 4_000,
        requests: 3,
        listen: &["127.0.0.1:8001"],
        others: 9090..9100,
    },
];

impl Conf {
    /// Returns the body of `/text`.
    pub(crate) fn text(&self) -> String {
        format!("text of {}", self.name)
    }

    fn config(&self, root: &str, more: &str) -> String {
        let Self {
            header_ms,
            send_ms,
            idle_ms,
            linger_ms,
            linger_idle_ms,
            requests,
            ..
        } = self;
        let listen: String = self
            .listen
            .iter()
            .map(|l| format!("listen {l};\n"))
            .collect();
        let others: String = (self.others.clone())
            .map(|port| {
                format!("server {{ listen 127.0.0.1:{port}; server_name o{port}.test; }}\n")
            })
            .collect();
        let text = self.text();
        format!(
            "events {{}}
            http {{
                access_log off;
                {more}
                root {root};
                default_type application/octet-stream;
                client_header_buffer_size 256;
                large_client_header_buffers 2 1k;
                client_header_timeout {header_ms}ms;
                client_body_timeout {send_ms}ms;
                client_body_buffer_size 1m;
                send_timeout {send_ms}ms;
                keepalive_timeout {idle_ms}ms;
                keepalive_time 30d;
                keepalive_requests {requests};
                lingering_time {linger_ms}ms;
                lingering_timeout {linger_idle_ms}ms;
                server {{
                    {listen}
                    server_name a.test;
                    location = /text {{ return 200 '{text}'; }}
                    location = /slow {{ return 200 '{text}'; }}
                    location = /none {{ return 204; }}
                    location = /moved {{ return 301 /small.html; }}
                    location = /drop {{ return 444; }}
                    location = /last {{ keepalive_timeout 0; return 200 '{text}'; }}
                    location = /always {{ keepalive_timeout 0; lingering_close always; return 200 '{text}'; }}
                    location = /never {{ keepalive_timeout 0; lingering_close off; return 200 '{text}'; }}
                    location = /trailer {{ add_trailer X-Sum $uri; return 200 '{text}'; }}
                    location /pieces/ {{ add_trailer X-Sum $uri; alias {root}/; sendfile_max_chunk 1k; }}
                    location /limited {{ client_max_body_size 100; return 200 '{text}'; }}
                    location /cork/ {{ tcp_nodelay off; alias {root}/; }}
                }}
                {others}
            }}"
        )
    }
}

/// Files and configurations, made once.
pub(crate) struct Site {
    root: PathBuf,
    pub(crate) files: Vec<Vec<u8>>,
    https: Vec<Arc<Http>>,
}

impl Site {
    /// Writes the files and loads the configurations, each with the directives `more`.
    pub(crate) fn new(more: &str) -> Self {
        static SITES: AtomicU32 = AtomicU32::new(0);
        let number = SITES.fetch_add(1, Ordering::Relaxed);
        let name = format!("firstbyte-sim-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir_all(root.join("dir")).expect("the temporary directory is writable");
        let mut files = Vec::new();
        for (n, (name, size)) in FILES.iter().enumerate() {
            let bytes: Vec<u8> = (0..*size).map(|at| byte(n, at)).collect();
            std::fs::write(root.join(name), &bytes).expect("the temporary directory is writable");
            files.push(bytes);
        }
        let modules: &'static [&'static Module] = Vec::leak(
            // First, so that its content handler runs before the one for files.
            [&SIM]
                .into_iter()
                .chain(server_modules::MODULES.iter().copied())
                .collect(),
        );
        let shown = root
            .to_str()
            .expect("the temporary directory has a plain name");
        let mut places = PortSlots::default();
        let https = CONFS
            .iter()
            .map(|conf| http(&conf.config(shown, more), modules, &mut places))
            .collect();
        Self { root, files, https }
    }

    /// Makes the configuration the `number`th of a run.
    pub(crate) fn generation(&self, conf: usize, number: u64) -> ThreadConfig {
        ThreadConfig::unprepared(Arc::clone(&self.https[conf]), number)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Returns a byte that reveals a piece from a wrong position or file.
fn byte(file: usize, at: usize) -> u8 {
    let mixed = (at as u32 + 1)
        .wrapping_mul(2_654_435_761)
        .wrapping_add(file as u32 * 97);
    (mixed >> 13) as u8
}

fn http(text: &str, modules: &'static [&'static Module], places: &mut PortSlots) -> Arc<Http> {
    let http = Arc::into_inner(load_text(text, modules));
    let mut http = http.expect("it was just loaded, so there is no other owner");
    places.arrange(&mut http);
    let http = Arc::new(http);
    http.attach_logs(OpenedLogs::default(), &log());
    http
}

/// Log entry of one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogEntry {
    pub(crate) status: u16,
    pub(crate) bytes_sent: u64,
    pub(crate) completed: bool,
}

#[derive(Default)]
struct LogEntries {
    ended: HashMap<u64, Vec<LogEntry>>,
}

thread_local! {
    static LOG_ENTRIES: RefCell<LogEntries> = RefCell::default();
}

/// Forgets the log entries of the previous run.
pub(crate) fn clear_log_entries() {
    LOG_ENTRIES.with(|log_entries| *log_entries.borrow_mut() = LogEntries::default());
    forget_waits();
}

/// Returns the log entries of a connection, by its serial number.
pub(crate) fn log_entries_of(connection: u64) -> Vec<LogEntry> {
    LOG_ENTRIES.with(|log_entries| {
        log_entries
            .borrow()
            .ended
            .get(&connection)
            .cloned()
            .unwrap_or_default()
    })
}

/// Returns the number of a connection's exchanges that were logged as completed.
pub(crate) fn completed_of(connection: u64) -> usize {
    LOG_ENTRIES.with(|log_entries| {
        let log_entries = log_entries.borrow();
        log_entries
            .ended
            .get(&connection)
            .map_or(0, |n| n.iter().filter(|n| n.completed).count())
    })
}

/// Returns the number of logged exchanges.
pub(crate) fn log_entries_count() -> u64 {
    LOG_ENTRIES.with(|log_entries| {
        log_entries
            .borrow()
            .ended
            .values()
            .map(|n| n.len() as u64)
            .sum()
    })
}

const SIM: Module = Module {
    name: "sim",
    handlers: &[
        Handler::PostRead(wait),
        Handler::Content(store),
        Handler::Log(record),
    ],
    ..Module::EMPTY
};

/// Collects the request body for `/store`, and answers with its length and sum.
fn store(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if x.target.uri != b"/store" {
        return Content::Declined;
    }
    let plan = CollectOptions {
        in_file: InFile::Off,
        mode: 0o600,
        log: None,
        most: None,
    };
    match request_body::collect(x, cx, &plan) {
        Collected::Wait => Content::Wait,
        Collected::Status(status) => Content::Status(status),
        Collected::Done => {
            let text = stored(x.body_bytes().unwrap_or(b"a file"));
            reply::text(x, cx, 200, text, Some(b"text/plain"));
            Content::Sent
        }
    }
}

/// Returns the body of `/store`'s response.
pub(crate) fn stored(body: &[u8]) -> Vec<u8> {
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    format!("{} bytes, sum {sum}", body.len()).into_bytes()
}

fn record(x: &mut Exchange, _: &mut Ctx<'_>) {
    let status = if x.route.err_status == 0 {
        x.reply.status
    } else {
        x.route.err_status
    };
    let entry = LogEntry {
        status,
        bytes_sent: x.response.bytes_sent,
        completed: x.response.completed,
    };
    LOG_ENTRIES.with(|log_entries| {
        log_entries
            .borrow_mut()
            .ended
            .entry(x.client.connection)
            .or_default()
            .push(entry)
    });
}
