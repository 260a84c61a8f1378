//! The error log: levels, records and sinks.
//!
//! A [`Record`] is written as nginx's line or as a JSON object (`line`), to files, to syslog servers and to rings in memory
//! (`memory`). Files and sockets are opened by the driver or the supervisor. If no log has debugging messages, such a message
//! costs one test of [`debugging`].
//!
//! Source: nginx documentation, directives `error_log` and `debug_connection`.

mod line;
mod memory;
mod printable;
mod stamp;

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

pub use line::{MAX_LINE_BYTES, Shown, escape};
pub use memory::{MIN_RING_BYTES, MemoryBuffer, Ring};
pub use printable::{Printable, message_bytes, message_text};
pub(crate) use stamp::now;
pub use stamp::set_thread;

use crate::peer::Peer;
use crate::syslog::Syslog;

/// Severity, most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The system is unusable.
    Emerg,
    /// Must be looked at at once.
    Alert,
    /// Critical conditions.
    Crit,
    /// Errors in processing a request.
    Error,
    /// Warnings.
    Warn,
    /// Normal but significant.
    Notice,
    /// Informational.
    Info,
    /// Debugging.
    Debug,
}

impl Level {
    /// All levels, most severe first; the place of one is its number in syslog (RFC 3164, 4.1.1).
    pub const ALL: [Self; 8] = [
        Self::Emerg,
        Self::Alert,
        Self::Crit,
        Self::Error,
        Self::Warn,
        Self::Notice,
        Self::Info,
        Self::Debug,
    ];

    /// The name in brackets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Emerg => "emerg",
            Self::Alert => "alert",
            Self::Crit => "crit",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// Parses the name of a level.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == text)
    }
}

/// A set of topics of debugging messages: `debug_http` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topics(u8);

impl Topics {
    /// No topic.
    pub const NONE: Self = Self(0);
    /// Every topic.
    pub const ALL: Self = Self(u8::MAX);
    /// Connections and their bytes: `debug_event`.
    pub const EVENT: Self = Self(8);
    /// Requests: `debug_http`.
    pub const HTTP: Self = Self(16);

    /// Parses `debug_core`, `debug_alloc`, `debug_mutex`, `debug_event`, `debug_http`, `debug_mail`, `debug_stream`.
    pub fn parse(text: &str) -> Option<Self> {
        let at = TOPICS.iter().position(|name| *name == text)?;
        Some(Self(1 << at))
    }

    /// Both sets together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any topic is in both sets.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// One thing to be logged.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// Its severity.
    pub level: Level,
    /// The topics of a debugging message; empty for other levels.
    pub topics: Topics,
    /// The number of the connection.
    pub connection: Option<u64>,
    /// The message text.
    pub message: fmt::Arguments<'a>,
    /// The request in which it occurred; debugging messages are written without it.
    pub request: Option<&'a Details<'a>>,
    /// Written to every sink regardless of its level: `debug_connection`.
    pub everywhere: bool,
}

/// The request fields of a record; the bytes are as the client sent them.
#[derive(Clone, Copy, Debug)]
pub struct Details<'a> {
    /// The client's address.
    pub client: Peer,
    /// The first name of the server.
    pub server: &'a [u8],
    /// The request line.
    pub request: Option<&'a [u8]>,
    /// The URI of the subrequest it happened in.
    pub subrequest: Option<&'a [u8]>,
    /// The upstream server and the request URI as a URL.
    pub upstream: Option<&'a [u8]>,
    /// `Host`.
    pub host: Option<&'a [u8]>,
    /// `Referer`.
    pub referrer: Option<&'a [u8]>,
}

/// The target of a sink's lines.
#[derive(Clone, Debug)]
pub enum Output {
    /// A file, or standard error.
    File(Arc<File>),
    /// A syslog server.
    Syslog(Arc<Syslog>),
    /// A ring in memory.
    Memory(Arc<Ring>),
}

/// One target of an error log.
#[derive(Clone, Debug)]
pub struct Sink {
    /// The target.
    pub output: Output,
    /// The least severe level that is written.
    pub level: Level,
    /// The topics of written debugging messages.
    pub topics: Topics,
    /// Lines are JSON objects.
    pub json: bool,
    /// When its disk was full last.
    pub disk: FullDisk,
}

/// The second in which a disk was full. Until the next second no line is written: such a write is slow, and a storm of errors
/// may have filled the disk.
#[derive(Clone, Debug, Default)]
pub struct FullDisk(Arc<AtomicI64>);

impl FullDisk {
    fn write(&self, mut file: &File, line: &[u8], now_s: i64) {
        if self.0.load(Ordering::Relaxed) == now_s {
            return;
        }
        if let Err(error) = file.write_all(line)
            && error.kind() == ErrorKind::StorageFull
        {
            self.0.store(now_s, Ordering::Relaxed);
        }
    }
}

impl Sink {
    /// A file that takes lines of this level and above.
    pub fn file(file: Arc<File>, level: Level) -> Self {
        Self {
            output: Output::File(file),
            level,
            topics: Topics::ALL,
            json: false,
            disk: FullDisk::default(),
        }
    }

    fn takes(&self, record: &Record<'_>) -> bool {
        let debugs = record.level < Level::Debug || self.topics.intersects(record.topics);
        record.everywhere || (record.level <= self.level && debugs)
    }
}

/// A set of sinks; cheap to clone. Clones share all changes.
#[derive(Clone, Debug)]
pub struct ErrorLog {
    shared: Arc<Shared>,
}

/// An error log that may be gone.
#[derive(Clone, Debug, Default)]
pub struct WeakLog {
    shared: Weak<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Number of levels that reach a sink.
    levels: AtomicU8,
    sinks: RwLock<Arc<[Sink]>>,
}

impl ErrorLog {
    /// A log that writes each line to every sink of a sufficient level.
    pub fn new(sinks: Vec<Sink>) -> Self {
        let shared = Shared {
            levels: AtomicU8::new(levels(&sinks)),
            sinks: RwLock::new(sinks.into()),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A log that writes to standard error.
    pub fn stderr(level: Level) -> Self {
        use std::os::fd::AsFd;
        match std::io::stderr().as_fd().try_clone_to_owned() {
            Ok(fd) => Self::new(vec![Sink::file(Arc::new(File::from(fd)), level)]),
            Err(_) => Self::new(Vec::new()),
        }
    }

    /// Whether a line of this level reaches any sink.
    pub fn enabled(&self, level: Level) -> bool {
        (level as u8) < self.shared.levels.load(Ordering::Relaxed)
    }

    /// Writes one line.
    pub fn write(&self, level: Level, text: fmt::Arguments<'_>) {
        self.record(&Record {
            level,
            topics: Topics::NONE,
            connection: None,
            message: text,
            request: None,
            everywhere: false,
        });
    }

    /// Writes one record on the calling thread, with one system call for each sink. After the return the line is in the file,
    /// even if the process ends. Errors of the disk are ignored, since no other log is left for them.
    pub fn record(&self, record: &Record<'_>) {
        if !record.everywhere && !self.enabled(record.level) {
            return;
        }
        let now = now();
        let mut text = line::take_buffer();
        let mut json = None;
        for sink in self.sinks().iter().filter(|sink| sink.takes(record)) {
            let line: &[u8] = if sink.json {
                json.get_or_insert_with(|| line::json(record, now))
            } else {
                if text.is_empty() {
                    line::text(record, now.0, &mut text);
                }
                &text
            };
            match &sink.output {
                Output::File(file) => sink.disk.write(file, line, now.0),
                Output::Syslog(syslog) => syslog.error(record.level, line.trim_ascii_end()),
                Output::Memory(ring) => ring.write(line),
            }
        }
        line::return_buffer(text);
    }

    /// Adopts the sinks of a log of a later configuration, so that requests in progress log as new ones do.
    pub fn follow(&self, newer: &Self) {
        let sinks = newer.sinks();
        self.shared.levels.store(levels(&sinks), Ordering::Relaxed);
        *self
            .shared
            .sinks
            .write()
            .unwrap_or_else(PoisonError::into_inner) = sinks;
    }

    /// A reference that does not keep the log.
    pub fn downgrade(&self) -> WeakLog {
        WeakLog {
            shared: Arc::downgrade(&self.shared),
        }
    }

    fn sinks(&self) -> Arc<[Sink]> {
        let sinks = self.shared.sinks.read();
        Arc::clone(&sinks.unwrap_or_else(PoisonError::into_inner))
    }
}

impl WeakLog {
    /// The log, unless it was dropped.
    pub fn upgrade(&self) -> Option<ErrorLog> {
        let shared = self.shared.upgrade()?;
        Some(ErrorLog { shared })
    }
}

fn levels(sinks: &[Sink]) -> u8 {
    let most = sinks.iter().map(|sink| sink.level).max();
    most.map_or(0, |most| most as u8 + 1)
}

/// Returns whether any log of the process has debugging messages; otherwise such a message costs only this branch.
#[inline]
pub fn debugging() -> bool {
    DEBUGGING.load(Ordering::Relaxed)
}

/// Sets whether any log takes debugging messages; called when a configuration is applied.
pub fn set_debugging(on: bool) {
    DEBUGGING.store(on, Ordering::Relaxed);
}

/// Topics in the order of nginx's bits.
const TOPICS: [&str; 7] = [
    "debug_core",
    "debug_alloc",
    "debug_mutex",
    "debug_event",
    "debug_http",
    "debug_mail",
    "debug_stream",
];

static DEBUGGING: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(name: &str, level: Level) -> (std::path::PathBuf, Sink) {
        let name = format!("firstbyte-errlog-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).expect("the temporary directory is writable");
        (path, Sink::file(Arc::new(file), level))
    }

    fn taken(path: &std::path::Path) -> String {
        let text = std::fs::read_to_string(path).expect("the file was made above");
        std::fs::remove_file(path).expect("the file was made above");
        text
    }

    #[test]
    fn a_sink_takes_what_its_level_and_topics_admit() {
        let (error, first) = sink("error", Level::Error);
        let (http, second) = sink("http", Level::Debug);
        let topics = Topics::parse("debug_http").expect("a topic");
        let log = ErrorLog::new(vec![first, Sink { topics, ..second }]);
        log.write(Level::Info, format_args!("an info"));
        log.write(Level::Error, format_args!("an error"));
        for topics in [Topics::EVENT, Topics::HTTP] {
            log.record(&Record {
                level: Level::Debug,
                topics,
                connection: Some(7),
                message: format_args!("{topics:?}"),
                request: None,
                everywhere: false,
            });
        }
        let (error, http) = (taken(&error), taken(&http));
        assert!(error.ends_with(": an error\n") && !error.contains("info"));
        assert!(http.contains("an info") && http.contains("*7 Topics(16)"));
        assert!(!http.contains("Topics(8)"), "{http}");
    }

    #[test]
    fn a_full_disk_is_tried_once_a_second() {
        let (path, file) = sink("full-disk", Level::Error);
        let Output::File(file) = file.output else {
            return;
        };
        let full = File::options().write(true).open("/dev/full");
        let full = full.expect("Linux has it");
        let disk = FullDisk::default();
        disk.write(&file, b"first ", 7);
        disk.write(&full, b"lost", 7);
        disk.write(&file, b"not tried", 7);
        disk.write(&file, b"last", 8);
        assert_eq!(taken(&path), "first last");
    }

    #[test]
    fn a_record_of_a_debugged_connection_goes_everywhere() {
        let (path, sink) = sink("everywhere", Level::Alert);
        let log = ErrorLog::new(vec![sink]);
        let record = |everywhere| Record {
            level: Level::Debug,
            topics: Topics::HTTP,
            connection: None,
            message: format_args!("step"),
            request: None,
            everywhere,
        };
        log.record(&record(false));
        log.record(&record(true));
        assert_eq!(taken(&path).lines().count(), 1);
    }

    #[test]
    fn a_log_follows_the_one_after_it() {
        let (before, first) = sink("before", Level::Error);
        let (after, second) = sink("after", Level::Info);
        let log = ErrorLog::new(vec![first]);
        let held_by_a_request = log.clone();
        assert!(!held_by_a_request.enabled(Level::Info));
        log.follow(&ErrorLog::new(vec![second]));
        assert!(held_by_a_request.enabled(Level::Info));
        held_by_a_request.write(Level::Info, format_args!("seen"));
        assert_eq!(taken(&before), "");
        assert!(taken(&after).contains("seen"));
    }

    #[test]
    fn levels_and_topics_have_nginx_names() {
        assert_eq!(Level::parse("warn"), Some(Level::Warn));
        assert_eq!(Level::parse("debug_http"), None);
        assert_eq!(Topics::parse("debug_http"), Some(Topics::HTTP));
        assert_eq!(Topics::parse("debug_event"), Some(Topics::EVENT));
        assert_eq!(Topics::parse("debug"), None);
        assert!(!ErrorLog::new(Vec::new()).enabled(Level::Emerg));
    }
}
