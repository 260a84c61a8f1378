//! The log files of one generation: opened with the supervisor's rights, written by the worker.
//!
//! They are opened anew at each reload, as in nginx, and on USR1, when they are also given to the
//! worker's user. Source: nginx documentation, "Controlling nginx", "Rotating Log-files".

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::sys::{identity, process};
use server_core::errlog::{ErrorLog, Level};
use server_core::{Cycle, LogTarget};

use super::Reported;
use super::account::Account;
use crate::console::{self, Console};

/// Open log files by path.
#[derive(Debug)]
pub(crate) struct Logs {
    files: Vec<(PathBuf, Arc<File>)>,
    /// The error logs of the main context.
    error_logs: Vec<(LogTarget, Level)>,
    /// Kept only where a log names it: a daemon must not hold the terminal or pipe it was started from.
    stderr: Option<Arc<File>>,
}

impl Logs {
    /// Opens every log that `cycle` names. Standard error stays what it was for `old`.
    ///
    /// # Errors
    /// A log cannot be opened, which has been reported.
    pub(crate) fn open(
        cycle: &Cycle,
        old: Option<&Self>,
        console: &Console,
    ) -> Result<Self, Reported> {
        let error_logs = cycle.main.error_logs.clone();
        let stderr = cycle
            .main
            .uses_stderr
            .then(|| {
                old.and_then(|old| old.stderr.clone())
                    .or_else(console::stderr_file)
            })
            .flatten();
        let mut logs = Self {
            files: Vec::new(),
            error_logs,
            stderr,
        };
        let mut paths = cycle.log_paths.clone();
        for (target, _) in &logs.error_logs {
            if let LogTarget::File(path) = target {
                paths.push(path.clone());
            }
        }
        for path in paths {
            if logs.find(&path).is_none() {
                let file = open(&path, console)?;
                logs.files.push((path, file));
            }
        }
        Ok(logs)
    }

    /// Opens every log anew; one that cannot be opened stays as it is, which is reported.
    pub(crate) fn reopen(&mut self, account: Option<&Account>, console: &Console) {
        for (path, file) in &mut self.files {
            let Ok(reopened) = open(path, console) else {
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
        let copy = |(path, file): &(PathBuf, Arc<File>)| {
            Ok((
                path.to_string_lossy().into_owned(),
                file.try_clone()?.into(),
            ))
        };
        self.files.iter().map(copy).collect()
    }

    /// The supervisor's own error log.
    pub(crate) fn error_log(&self) -> ErrorLog {
        let sinks = self
            .error_logs
            .iter()
            .filter_map(|(target, level)| match target {
                LogTarget::File(path) => Some((Arc::clone(self.find(path)?), *level)),
                LogTarget::Stderr => Some((Arc::clone(self.stderr.as_ref()?), *level)),
            });
        ErrorLog::new(sinks.collect())
    }

    /// Sends what libraries print on standard error to the first error log, unless standard error is one.
    pub(crate) fn redirect_stderr(&self, console: &Console) {
        if self.stderr.is_some() {
            return;
        }
        let first = self.error_logs.iter().find_map(|(target, _)| match target {
            LogTarget::File(path) => self.find(path),
            LogTarget::Stderr => None,
        });
        if let Some(Err(error)) = first.map(process::redirect_stderr) {
            console.failed(Level::Alert, format_args!("dup2(STDERR_FILENO)"), &error);
        }
    }

    fn find(&self, path: &Path) -> Option<&Arc<File>> {
        self.files
            .iter()
            .find(|(known, _)| known == path)
            .map(|(_, file)| file)
    }
}

fn open(path: &Path, console: &Console) -> Result<Arc<File>, Reported> {
    console::open_log(path).map(Arc::new).map_err(|error| {
        console.failed(
            Level::Emerg,
            format_args!("open() \"{}\"", path.display()),
            &error,
        );
        Reported
    })
}

/// Makes a log the worker's user's own, so that it can open it, too. Devices stay whose they are.
fn hand_over(path: &Path, file: &File, uid: u32, console: &Console) -> Result<(), Reported> {
    let failed = |what: String| {
        move |error: io::Error| {
            console.failed(Level::Emerg, format_args!("{what}"), &error);
            Reported
        }
    };
    let shown = path.display();
    let metadata = file
        .metadata()
        .map_err(failed(format!("stat() \"{shown}\"")))?;
    if !metadata.is_file() {
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
