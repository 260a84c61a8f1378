//! Messages of the supervisor: to the error log, and to standard error until the server runs.
//!
//! Until then, warnings and worse are also printed as `nginx: [emerg] ...`, the form that scripts parse. Source: nginx
//! documentation, `error_log`.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use server_base::errlog::{ErrorLog, Level, Printable, Sink, message_bytes};
use server_http::LoadError;

/// An error that has been logged already.
#[derive(Debug)]
pub(crate) struct Logged;

/// The destinations of messages.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    log: ErrorLog,
    also_stderr: bool,
}

impl Console {
    /// Opens the log for messages before the configuration is read. It is standard error if `path` is `None` or cannot
    /// be opened.
    pub(crate) fn open(path: Option<&Path>, level: Level) -> Self {
        let stderr = || Self {
            log: ErrorLog::stderr(level),
            also_stderr: false,
        };
        let Some(path) = path else {
            return stderr();
        };
        match open_log(path, LOG_MODE) {
            Ok(file) => {
                let log = ErrorLog::new(vec![Sink::file(Arc::new(file), level)]);
                Self {
                    log,
                    also_stderr: true,
                }
            }
            Err(error) => {
                let reason = sys::os_error(&error);
                let path = Printable::path(path);
                say(format_args!(
                    "[alert] could not open error log file: open() \"{path}\" failed ({reason})"
                ));
                stderr()
            }
        }
    }

    /// Reports an error that makes a configuration unusable.
    pub(crate) fn fatal(&self, what: fmt::Arguments<'_>, error: &io::Error) -> Logged {
        self.failed(Level::Emerg, what, error);
        Logged
    }

    /// Writes warnings and worse to standard error, as `-t` does, and nothing to a log.
    pub(crate) fn of_tool() -> Self {
        Self {
            log: ErrorLog::new(Vec::new()),
            also_stderr: true,
        }
    }

    /// Writes to `log` only, once the server runs.
    pub(crate) fn of_log(log: ErrorLog) -> Self {
        Self {
            log,
            also_stderr: false,
        }
    }

    /// Reports one message.
    pub(crate) fn report(&self, level: Level, text: fmt::Arguments<'_>) {
        self.report_at_length(level, text, text);
    }

    /// Reports an event of normal operation.
    pub(crate) fn notice(&self, text: fmt::Arguments<'_>) {
        self.report(Level::Notice, text);
    }

    /// Reports a failed call as nginx does: `open() "/x" failed (2: No such file or directory)`.
    pub(crate) fn failed(&self, level: Level, what: fmt::Arguments<'_>, error: &io::Error) {
        let reason = sys::os_error(error);
        self.report(level, format_args!("{what} failed ({reason})"));
    }

    /// Reports why a configuration was refused; on a terminal with its location.
    pub(crate) fn refused(&self, refused: &LoadError) {
        self.warnings(&refused.warnings);
        let shown = refused.error.render(&refused.files);
        let line = &refused.error;
        self.report_at_length(
            Level::Emerg,
            format_args!("{line}"),
            format_args!("{shown}"),
        );
    }

    /// Reports the warnings of a configuration, each `[level] text` with its place on further lines.
    pub(crate) fn warnings(&self, warnings: &[String]) {
        for warning in warnings {
            let (level, text) = split_level(warning);
            let line = text.lines().next().unwrap_or_default();
            self.report_at_length(level, format_args!("{line}"), format_args!("{text}"));
        }
    }

    fn report_at_length(&self, level: Level, line: fmt::Arguments<'_>, full: fmt::Arguments<'_>) {
        self.log.write(level, line);
        if self.also_stderr && level <= Level::Warn {
            say(format_args!("[{}] {full}", level.name()));
        }
    }
}

/// Returns a copy of standard error, for logs opened after its redirection.
pub(crate) fn stderr_file() -> Option<Arc<File>> {
    let copy = io::stderr().as_fd().try_clone_to_owned().ok()?;
    Some(Arc::new(File::from(copy)))
}

/// Prints a line on standard error after the name of the program.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    // An error means that standard error is closed.
    let _ = io::stderr().write_all(&message_bytes(format_args!("nginx: {text}\n")));
}

/// Opens a log for appending; creates it if missing.
///
/// # Errors
/// The system's error.
pub(crate) fn open_log(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(mode)
        .open(path)
}

fn split_level(warning: &str) -> (Level, &str) {
    warning
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
        .and_then(|(level, text)| Some((Level::parse(level)?, text)))
        .unwrap_or((Level::Warn, warning))
}

/// Permissions of a new log, before the umask.
pub(crate) const LOG_MODE: u32 = 0o644;
/// Permissions of a new log of secrets.
pub(crate) const SECRET_MODE: u32 = 0o600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_of_a_warning_is_taken_from_its_front() {
        assert_eq!(split_level("[notice] a\nb"), (Level::Notice, "a\nb"));
        assert_eq!(split_level("[odd] a"), (Level::Warn, "[odd] a"));
    }
}
