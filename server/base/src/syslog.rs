//! Logs to syslog: destinations, message format, and lost messages.
//!
//! A message is `<PRI>Mon dd hh:mm:ss HOST TAG: text` and one datagram. It is sent without waiting: a message that
//! cannot be sent is lost, counted, and reported in the main error log at most once a second. Sockets are the
//! driver's, behind [`Datagrams`]. Absent: syslog over TCP and the form of RFC 5424, which nginx does not have either.
//!
//! Source: nginx documentation, "Logging to syslog"; RFC 3164, section 4.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use engines::http::{Civil, civil};

use crate::clock::{MONTHS, utc_offset_s};
use crate::errlog::{ErrorLog, Level, WeakLog};
use crate::listen::ListenAddr;

/// A syslog server and the parts of its message headers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SyslogTarget {
    /// The server.
    pub server: ListenAddr,
    /// Facility, 0 to 23.
    pub facility: u8,
    /// Severity of access logs, 0 to 7; lines of an error log have that of their level.
    pub severity: u8,
    /// Tag.
    pub tag: String,
    /// The host name is left out.
    pub nohostname: bool,
}

/// A socket of the driver with a fixed destination.
pub trait Datagrams: fmt::Debug + Send + Sync {
    /// Sends one datagram without waiting, and reconnects if this helps.
    ///
    /// # Errors
    /// A datagram is lost: this one, or one before it that the network reports only now.
    fn send(&self, datagram: &[u8]) -> Result<(), NotSent>;
}

/// The error that lost a datagram.
#[derive(Debug)]
pub struct NotSent {
    /// The call that failed.
    pub call: &'static str,
    /// Its error.
    pub error: io::Error,
}

/// One syslog server, for all threads of a process.
#[derive(Debug)]
pub struct Syslog {
    target: SyslogTarget,
    hostname: String,
    socket: Box<dyn Datagrams>,
    /// The log in which lost messages are reported.
    main_log: Mutex<WeakLog>,
    /// Number of lost messages that have not been reported.
    lost: AtomicU64,
    told: Mutex<Option<Instant>>,
    /// True while a loss is reported; the server that caused it does not get the report.
    telling: AtomicBool,
}

impl Syslog {
    /// A server with its socket.
    pub fn new(target: SyslogTarget, hostname: &[u8], socket: Box<dyn Datagrams>) -> Self {
        Self {
            target,
            hostname: String::from_utf8_lossy(hostname).into_owned(),
            socket,
            main_log: Mutex::default(),
            lost: AtomicU64::new(0),
            told: Mutex::default(),
            telling: AtomicBool::new(false),
        }
    }

    /// The target of this sender.
    pub fn target(&self) -> &SyslogTarget {
        &self.target
    }

    /// Sets the log in which lost messages are reported.
    pub fn report_to(&self, log: &ErrorLog) {
        *lock(&self.main_log) = log.downgrade();
    }

    /// Sends a line of an access log, without its end.
    pub fn access(&self, line: &[u8]) {
        self.send(self.target.severity, line);
    }

    /// Sends a line of an error log, without its end.
    pub fn error(&self, level: Level, line: &[u8]) {
        if !self.telling.load(Ordering::Relaxed) {
            self.send(level as u8, line);
        }
    }

    fn send(&self, severity: u8, line: &[u8]) {
        let (seconds, _) = crate::errlog::now();
        let mut datagram = self.head(severity, seconds + i64::from(utc_offset_s()));
        datagram.extend_from_slice(line);
        match self.socket.send(&datagram) {
            Ok(()) if self.lost.load(Ordering::Relaxed) == 0 => {}
            Ok(()) => self.report(None),
            Err(failed) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                self.report(Some(&failed));
            }
        }
    }

    /// `<PRI>Mon dd hh:mm:ss HOST TAG: `, of local time.
    fn head(&self, severity: u8, local_s: i64) -> Vec<u8> {
        let Civil {
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = civil(local_s);
        let SyslogTarget {
            facility,
            tag,
            nohostname,
            ..
        } = &self.target;
        let pri = u32::from(*facility) * 8 + u32::from(severity);
        let month = MONTHS[month as usize - 1];
        let mut head = format!("<{pri}>{month} {day:2} {hour:02}:{minute:02}:{second:02} ");
        if !nohostname {
            head.push_str(&self.hostname);
            head.push(' ');
        }
        head.push_str(tag);
        head.push_str(": ");
        head.into_bytes()
    }

    /// Reports lost messages, at most once per [`TOLD_EVERY`].
    fn report(&self, failed: Option<&NotSent>) {
        if self.telling.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut told = lock(&self.told);
        if told.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            let lost = self.lost.swap(0, Ordering::Relaxed);
            let log = lock(&self.main_log).upgrade();
            if let Some(log) = log {
                self.write(&log, failed, lost);
            }
        }
        drop(told);
        self.telling.store(false, Ordering::Relaxed);
    }

    fn write(&self, log: &ErrorLog, failed: Option<&NotSent>, lost: u64) {
        let server = &self.target.server;
        match failed {
            Some(NotSent { call, error }) => {
                let reason = conf::os_error(error);
                let more = match lost {
                    0 | 1 => String::new(),
                    _ => format!(", messages lost: {lost}"),
                };
                log.write(
                    level_of(call, error),
                    format_args!(
                        "{call} failed ({reason}) while logging to syslog, server: {server}{more}"
                    ),
                );
            }
            None => log.write(
                Level::Error,
                format_args!(
                    "send() failed while logging to syslog, server: {server}, messages lost: {lost}"
                ),
            ),
        }
    }
}

/// As in nginx, failures of the network or the server are errors, and refusals of this machine alerts.
fn level_of(call: &str, error: &io::Error) -> Level {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::TimedOut
        | ErrorKind::NetworkDown
        | ErrorKind::NetworkUnreachable
        | ErrorKind::HostUnreachable
        | ErrorKind::WouldBlock
            if call == "send()" =>
        {
            Level::Error
        }
        _ => Level::Alert,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Facilities in the order of their numbers, with nginx's names.
pub const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv",
    "ftp", "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];

/// Minimum time between two reports of lost messages.
const TOLD_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errlog::Sink;
    use std::fs::File;
    use std::sync::Arc;

    /// Stores sent datagrams while it accepts them.
    #[derive(Debug, Default)]
    struct Kept {
        taken: Mutex<Vec<String>>,
        refuses: AtomicBool,
    }

    impl Datagrams for Arc<Kept> {
        fn send(&self, datagram: &[u8]) -> Result<(), NotSent> {
            if self.refuses.load(Ordering::Relaxed) {
                let error = io::Error::from_raw_os_error(111);
                let call = "send()";
                return Err(NotSent { call, error });
            }
            let text = String::from_utf8_lossy(datagram).into_owned();
            lock(&self.taken).push(text);
            Ok(())
        }
    }

    fn syslog(change: impl FnOnce(&mut SyslogTarget)) -> (Arc<Kept>, Syslog) {
        let mut target = SyslogTarget {
            server: ListenAddr::Inet(([127, 0, 0, 1], 514).into()),
            facility: 23,
            severity: 6,
            tag: "nginx".to_owned(),
            nohostname: false,
        };
        change(&mut target);
        let kept = Arc::new(Kept::default());
        let syslog = Syslog::new(target, b"host", Box::new(Arc::clone(&kept)));
        (kept, syslog)
    }

    #[test]
    fn the_head_is_that_of_rfc_3164() {
        let head = |change: fn(&mut SyslogTarget), severity| {
            let head = syslog(change).1.head(severity, 784_111_777);
            String::from_utf8(head).expect("ASCII")
        };
        assert_eq!(head(|_| {}, 6), "<190>Nov  6 08:49:37 host nginx: ");
        assert_eq!(
            head(
                |t| {
                    t.nohostname = true;
                    t.facility = 1;
                    t.tag = "x".to_owned();
                },
                3
            ),
            "<11>Nov  6 08:49:37 x: "
        );
    }

    #[test]
    fn severity_is_that_of_the_line_or_of_the_access_log() {
        let (kept, syslog) = syslog(|t| t.severity = 1);
        syslog.access(b"a");
        syslog.error(Level::Crit, b"b");
        let taken = lock(&kept.taken);
        assert!(taken[0].starts_with("<185>") && taken[0].ends_with(": a"));
        assert!(taken[1].starts_with("<186>") && taken[1].ends_with(": b"));
    }

    #[test]
    fn lost_messages_are_counted_and_told_once_a_second() {
        let (kept, syslog) = syslog(|_| {});
        let syslog = Arc::new(syslog);
        let name = format!("firstbyte-syslog-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).expect("the temporary directory is writable");
        let own = Sink {
            output: crate::errlog::Output::Syslog(Arc::clone(&syslog)),
            ..Sink::file(Arc::new(file), Level::Error)
        };
        let file = Sink::file(
            Arc::new(File::create(&path).expect("as above")),
            Level::Error,
        );
        let log = ErrorLog::new(vec![own, file]);
        syslog.report_to(&log);
        kept.refuses.store(true, Ordering::Relaxed);
        for _ in 0..100 {
            log.write(Level::Error, format_args!("line"));
        }
        let text = std::fs::read_to_string(&path).expect("the file was made above");
        let _ = std::fs::remove_file(&path);
        let told: Vec<&str> = text.lines().filter(|l| l.contains("send()")).collect();
        assert_eq!(told.len(), 1, "{text}");
        assert!(
            told[0].ends_with(
                "send() failed (111: Connection refused) while logging to syslog, \
                 server: 127.0.0.1:514"
            ),
            "{text}"
        );
        assert_eq!(text.matches(": line\n").count(), 100);
        assert_eq!(syslog.lost.load(Ordering::Relaxed), 99);
        assert!(lock(&kept.taken).is_empty());
    }
}
