//! The logs of the worker: opened by the supervisor, replaced by new ones, reopened.
//!
//! Files come as descriptors; sockets of syslog servers need no rights and are opened here. Source: nginx documentation,
//! "Controlling nginx", "Rotating Log-files"; `error_log`.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use server_base::errlog::{self, ErrorLog, Level, Ring};
use server_base::opened::OpenedLogs;
use server_http::Cycle;
use server_http::http::Http;
use sys::process;

use super::Worker;
use super::thread_commands::Command;
use crate::io::syslog;

impl Worker {
    /// Attaches the logs to a new configuration. Lines of requests under an older one follow the new levels at once.
    pub(super) fn change_logs(
        &mut self,
        fds: Vec<(String, OwnedFd)>,
        cycle: &Cycle,
        http: &Arc<Http>,
    ) {
        self.flush_logs();
        let opened = self.open_logs(fds, cycle);
        let log = opened.error_log(&cycle.main.error_logs);
        // This one lives as long as requests that use the servers.
        syslog::report_to(&opened.syslogs, &http.default_log);
        self.files.clone_from(&opened.files);
        http.attach_logs(opened, &log);
        errlog::set_debugging(http.debugs() || !cycle.main.events.debug_connections.is_empty());
        self.log.follow(&log);
        self.older.retain(|older| match older.upgrade() {
            Some(older) => {
                older.follow_logs(http);
                true
            }
            None => false,
        });
        self.older.push(Arc::downgrade(http));
        install_panic_hook(log.clone());
        self.log = log;
    }

    fn open_logs(&self, fds: Vec<(String, OwnedFd)>, cycle: &Cycle) -> OpenedLogs {
        let mut opened = OpenedLogs {
            syslogs: syslog::servers(&cycle.syslogs, &self.env.hostname),
            ..OpenedLogs::default()
        };
        if cycle.main.uses_stderr {
            opened.stderr = process::duplicate_stderr()
                .ok()
                .map(|fd| Arc::new(File::from(fd)));
        }
        for (key, fd) in fds {
            let key = PathBuf::from(key);
            match cycle.memory_logs.iter().find(|buffer| buffer.key() == key) {
                Some(buffer) => {
                    let ring = Ring::new(File::from(fd), buffer);
                    opened.rings.push((buffer.clone(), Arc::new(ring)));
                }
                None => {
                    let file = self.take_file(&key, fd);
                    opened.files.insert(key, file);
                }
            }
        }
        opened
    }

    /// A log that is known already keeps its descriptor, put onto the file that was opened anew: requests that began under
    /// an older configuration then write to the same file.
    fn take_file(&self, path: &Path, fd: OwnedFd) -> Arc<File> {
        let known = self.files.get(path);
        let kept = known.filter(|file| process::replace_descriptor(file, &fd).is_ok());
        kept.cloned().unwrap_or_else(|| Arc::new(File::from(fd)))
    }

    /// Puts new files in the place of the logs' descriptors; lines that wait in buffers still go to the old ones.
    pub(super) fn reopen(&mut self, logs: Vec<(String, OwnedFd)>) {
        self.flush_logs();
        for (path, fd) in logs {
            if let Some(file) = self.files.get(&PathBuf::from(&path))
                && let Err(e) = process::replace_descriptor(file, &fd)
            {
                let reason = sys::os_error(&e);
                self.log.write(
                    Level::Alert,
                    format_args!("dup3() \"{path}\" failed ({reason})"),
                );
            }
        }
    }

    /// Has every thread write its buffers out, and waits for that unless one is too busy.
    fn flush_logs(&self) {
        if self.threads.is_empty() {
            return;
        }
        let (done, all_done) = channel();
        self.command(|| Command::FlushLogs(done.clone()));
        drop(done);
        // Nothing is ever sent: the channel ends with the last thread's half.
        let _ = all_done.recv_timeout(FLUSH_WAIT);
    }
}

/// Panics are written to the error log with their location; the connection they belong to is closed by its thread.
fn install_panic_hook(log: ErrorLog) {
    static LOG: Mutex<Option<ErrorLog>> = Mutex::new(None);
    let first = LOG
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .replace(log)
        .is_none();
    if first {
        std::panic::set_hook(Box::new(|info| {
            if let Some(log) = &*LOG.lock().unwrap_or_else(PoisonError::into_inner) {
                log.write(Level::Crit, format_args!("{info}"));
            }
        }));
    }
}

/// Time limit of threads for writing their buffers out at a change of logs.
const FLUSH_WAIT: Duration = Duration::from_secs(1);
