//! The error log: levels, sinks and nginx's line format.
//!
//! A line is `2026/11/21 03:41:18 [error] PID#TID: text`; text that comes from a peer is escaped, so that
//! no terminal sequence or line break of an attacker reaches the file (CVE-2009-4487). Files are opened by
//! the driver or the supervisor; this only writes.
//!
//! Source: nginx documentation, directive `error_log`.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use engines::http::{Civil, civil};

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

    /// Parses a level name of the `error_log` directive; the `debug_*` masks count as debug.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "emerg" => Self::Emerg,
            "alert" => Self::Alert,
            "crit" => Self::Crit,
            "error" => Self::Error,
            "warn" => Self::Warn,
            "notice" => Self::Notice,
            "info" => Self::Info,
            "debug" | "debug_core" | "debug_alloc" | "debug_event" | "debug_http" => Self::Debug,
            _ => return None,
        })
    }
}

/// A set of sinks; cheap to clone.
#[derive(Clone, Debug)]
pub struct ErrorLog {
    sinks: Arc<[(Arc<File>, Level)]>,
    most: Option<Level>,
}

impl ErrorLog {
    /// A log that writes each line to every file whose level admits it.
    pub fn new(sinks: Vec<(Arc<File>, Level)>) -> Self {
        let most = sinks.iter().map(|s| s.1).max();
        Self {
            sinks: sinks.into(),
            most,
        }
    }

    /// A log that writes to standard error.
    pub fn stderr(level: Level) -> Self {
        use std::os::fd::AsFd;
        match std::io::stderr().as_fd().try_clone_to_owned() {
            Ok(fd) => Self::new(vec![(Arc::new(File::from(fd)), level)]),
            Err(_) => Self::new(Vec::new()),
        }
    }

    /// Whether a line of this level reaches any sink.
    pub fn enabled(&self, level: Level) -> bool {
        self.most.is_some_and(|most| level <= most)
    }

    /// Writes one line. Errors of the disk are swallowed: there is nowhere left to say them.
    pub fn write(&self, level: Level, text: fmt::Arguments<'_>) {
        if !self.enabled(level) {
            return;
        }
        let line = format_line(level, text);
        for (file, most) in self.sinks.iter() {
            if level <= *most {
                let _ = (&**file).write_all(&line);
            }
        }
    }
}

/// Sets the offset of local time from UTC in seconds; the driver keeps it current.
pub fn set_utc_offset(seconds: i32) {
    UTC_OFFSET_S.store(seconds, Ordering::Relaxed);
}

/// The offset of local time from UTC in seconds.
pub fn utc_offset_s() -> i32 {
    UTC_OFFSET_S.load(Ordering::Relaxed)
}

/// Appends `text` with control bytes and bytes above 0x7e written as `\xHH`.
pub fn escape(text: &[u8], out: &mut String) {
    use fmt::Write;
    for &b in text {
        if (0x20..0x7f).contains(&b) {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "\\x{b:02X}");
        }
    }
}

fn format_line(level: Level, text: fmt::Arguments<'_>) -> Vec<u8> {
    let unix_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64);
    let Civil {
        year: y,
        month: mo,
        day: d,
        hour: h,
        minute: mi,
        second: s,
        ..
    } = civil(unix_s + i64::from(utc_offset_s()));
    let pid = std::process::id();
    let mut line = format!(
        "{y:04}/{mo:02}/{d:02} {h:02}:{mi:02}:{s:02} [{}] {pid}#{pid}: ",
        level.name()
    );
    let start = line.len();
    let _ = fmt::write(&mut line, text);
    let mut bytes = line.into_bytes();
    if bytes.len() > MAX_LINE_BYTES {
        bytes.truncate(MAX_LINE_BYTES);
    }
    for b in &mut bytes[start..] {
        if *b < 0x20 || *b == 0x7f {
            *b = b' ';
        }
    }
    bytes.push(b'\n');
    bytes
}

static UTC_OFFSET_S: AtomicI32 = AtomicI32::new(0);

/// Longest line written, as nginx's NGX_MAX_ERROR_STR.
pub const MAX_LINE_BYTES: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_bytes_never_reach_the_log() {
        let line = format_line(Level::Error, format_args!("a\x1b[31mb\nc"));
        assert!(!line[..line.len() - 1].iter().any(|b| *b < 0x20));
        assert!(line.ends_with(b"a [31mb c\n"));
    }

    #[test]
    fn a_line_is_bounded() {
        let line = format_line(Level::Error, format_args!("{}", "x".repeat(5000)));
        assert_eq!(line.len(), MAX_LINE_BYTES + 1);
    }

    #[test]
    fn escape_writes_hex() {
        let mut out = String::new();
        escape(b"a\x1b\xff", &mut out);
        assert_eq!(out, "a\\x1B\\xFF");
    }
}
