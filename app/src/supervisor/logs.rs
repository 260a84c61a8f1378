//! The log files of one generation: opened with the supervisor's rights, written by the worker.
//!
//! They are reopened at each reload, as in nginx, and on USR1, which also makes the worker's user their owner. Source:
//! nginx documentation, "Controlling nginx", "Rotating Log-files".

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::io::syslog;
use server_base::errlog::{ErrorLog, Level, Printable};
use server_base::opened::OpenedLogs;
use server_base::syslog::{Syslog, SyslogTarget};
use server_http::{Cycle, ErrorLogConf, LogTarget};
use sys::{identity, process, trusted};

use super::account::Account;
use super::memory_logs::MemoryLogs;
use crate::console::{self, Console, Logged};

/// Open log files by path.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    files: Vec<(PathBuf, Arc<File>)>,
    /// Those that only their owner may read.
    secret: Vec<PathBuf>,
    /// The error logs of the main context.
    error_logs: Vec<ErrorLogConf>,
    /// The supervisor's own way to the syslog servers among them.
    syslogs: Vec<Arc<Syslog>>,
    /// Written by the worker alone.
    pub(crate) memory_logs: MemoryLogs,
    /// Kept only if it is used as a log: a daemon must not hold its terminal or pipe open.
    stderr: Option<Arc<File>>,
}

impl Logs {
    /// Opens all logs of `cycle`. Standard error is that of `old`.
    ///
    /// # Errors
    /// A log cannot be opened, which has been reported.
    pub(crate) fn open(
        cycle: &Cycle,
        old: Option<&Self>,
        console: &Console,
    ) -> Result<Self, Logged> {
        let error_logs = cycle.main.error_logs.clone();
        let stderr = cycle
            .main
            .uses_stderr
            .then(|| {
                old.and_then(|old| old.stderr.clone())
                    .or_else(console::stderr_file)
            })
            .flatten();
        let is_own = |target: &&SyslogTarget| {
            let named = LogTarget::Syslog((*target).clone());
            error_logs.iter().any(|log| log.target == named)
        };
        let own: Vec<_> = cycle.syslogs.iter().filter(is_own).cloned().collect();
        let mut logs = Self {
            files: Vec::new(),
            secret: cycle.secret_logs.clone(),
            syslogs: syslog::servers(&own, &process::hostname()),
            memory_logs: MemoryLogs::open(&cycle.memory_logs, console)?,
            error_logs,
            stderr,
        };
        // The list has no duplicates.
        for path in cycle.log_paths.clone() {
            let file = open(&path, &logs.secret, console)?;
            logs.files.push((path, file));
        }
        Ok(logs)
    }

    /// Reopens every log. One that cannot be opened is kept, and the error is reported.
    pub(crate) fn reopen(&mut self, account: Option<&Account>, console: &Console) {
        for (path, file) in &mut self.files {
            let Ok(reopened) = open(path, &self.secret, console) else {
                continue;
            };
            let handed_over = match account {
                Some(account) => hand_over(path, &reopened, account.uid, console),
                None => Ok(()),
            };
            if handed_over.is_ok() {
                *file = reopened;
            }
        }
    }

    /// Copies of the descriptors, for the worker.
    ///
    /// # Errors
    /// The descriptor limit is reached.
    pub(crate) fn duplicates(&self) -> io::Result<Vec<(String, OwnedFd)>> {
        let files = self.files.iter();
        let files = files.map(|(path, file)| (path.clone(), &**file));
        let copy = |(path, file): (PathBuf, &File)| {
            Ok((
                path.to_string_lossy().into_owned(),
                file.try_clone()?.into(),
            ))
        };
        files
            .chain(self.memory_logs.files_by_key())
            .map(copy)
            .collect()
    }

    /// The supervisor's own error log.
    pub(crate) fn error_log(&self) -> ErrorLog {
        let opened = OpenedLogs {
            files: self.files.iter().cloned().collect(),
            stderr: self.stderr.clone(),
            syslogs: self.syslogs.clone(),
            ..OpenedLogs::default()
        };
        let log = opened.error_log(&self.error_logs);
        syslog::report_to(&self.syslogs, &log);
        log
    }

    /// Saves the logs in memory beside the first file among the error logs.
    pub(crate) fn save_memory_logs(&self, console: &Console) {
        self.memory_logs.save(self.first_file(), console);
    }

    /// Redirects standard error, which libraries may use, to the first error log unless standard error is a log itself.
    pub(crate) fn redirect_stderr(&self, console: &Console) {
        if self.stderr.is_some() {
            return;
        }
        let first = self.first_file().and_then(|path| self.find(path));
        if let Some(Err(error)) = first.map(process::redirect_stderr) {
            console.failed(Level::Alert, format_args!("dup2(STDERR_FILENO)"), &error);
        }
    }

    fn first_file(&self) -> Option<&Path> {
        self.error_logs.iter().find_map(|log| match &log.target {
            LogTarget::File(path) => Some(path.as_path()),
            _ => None,
        })
    }

    fn find(&self, path: &Path) -> Option<&Arc<File>> {
        self.files
            .iter()
            .find(|(known, _)| known == path)
            .map(|(_, file)| file)
    }
}

/// Opens a log. If it is new, others may read it unless it is one of the secret ones.
fn open(path: &Path, secret: &[PathBuf], console: &Console) -> Result<Arc<File>, Logged> {
    let mode = match secret.iter().any(|own| own == path) {
        true => console::SECRET_MODE,
        false => console::LOG_MODE,
    };
    console::open_log(path, mode)
        .map(Arc::new)
        .map_err(|error| {
            console.fatal(format_args!("open() \"{}\"", Printable::path(path)), &error)
        })
}

/// Makes the worker's user the owner of a log, as nginx does; the worker itself writes by the descriptor. Devices keep
/// their owner, and so does the target of another user's link, which could be any file.
fn hand_over(path: &Path, file: &File, uid: u32, console: &Console) -> Result<(), Logged> {
    let failed =
        |what: String| move |error: io::Error| console.fatal(format_args!("{what}"), &error);
    let shown = Printable::path(path);
    let metadata = file
        .metadata()
        .map_err(failed(format!("stat() \"{shown}\"")))?;
    if !metadata.is_file() {
        return Ok(());
    }
    let is_open = metadata.permissions().mode() & OWNER_READ_WRITE == OWNER_READ_WRITE;
    if metadata.uid() == uid && is_open {
        return Ok(());
    }
    if !trusted::names(path, file) {
        console.report(
            Level::Warn,
            format_args!(
                "owner of \"{shown}\" is not changed to user {uid}: a symlink of another user is on its path, or it has \
                 a second hard link"
            ),
        );
        return Ok(());
    }
    if metadata.uid() != uid {
        identity::chown(file, uid).map_err(failed(format!("chown(\"{shown}\", {uid})")))?;
    }
    let mut permissions = metadata.permissions();
    if permissions.mode() & OWNER_READ_WRITE != OWNER_READ_WRITE {
        permissions.set_mode(permissions.mode() | OWNER_READ_WRITE);
        file.set_permissions(permissions)
            .map_err(failed(format!("chmod() \"{shown}\"")))?;
    }
    Ok(())
}

const OWNER_READ_WRITE: u32 = 0o600;
