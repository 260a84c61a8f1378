//! Periodic work on a cache: the thread of the loader, and manager and purger in bounded steps with pauses of their own.
//!
//! The state belongs to the cache and outlives a reload, so that a load in progress goes on. The settings are those of
//! the configuration that is served.
//!
//! Source: nginx documentation, `proxy_cache_path`; messages are those of nginx, if it has them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use conf::os_error;
use server_base::errlog::{ErrorLog, Level, Printable};
use server_cache::directory::Directory;
use server_cache::index::Index;
use server_cache::key::EntryId;
use server_cache::loader::{LoadCounts, Loader};
use server_cache::loading::LoadingThread;
use server_cache::manager::{ManagedFiles, ManagerConf, manage};
use server_cache::pace::Pace;
use server_cache::purger::{PurgeStep, Purger};

/// Time from the start to the begin of the loader, milliseconds. It is a minute in nginx; here the loader takes no time of
/// serving threads, and purges wait for its end.
pub(super) const LOADER_DELAY_MS: u64 = 1000;
/// Pause after an error of the directory, milliseconds.
pub(super) const RETRY_MS: u64 = 1000;
/// Pause of the purger without purges, milliseconds. A purge ends it.
const PURGER_PAUSE_MS: u64 = 10_000;

/// Pause between two walks of the purger, milliseconds.
const WALKS_PAUSE_MS: u64 = 1000;

/// The state of periodic work on a cache. Times are monotonic, milliseconds.
#[derive(Debug, Default)]
pub(super) struct Work {
    loading: Loading,
    purger: Purger,
    manager_due_ms: u64,
    purger_due_ms: u64,
    /// The error that was logged last: a repeated one is not logged.
    logged: Option<String>,
}

/// The state of the loader.
#[derive(Debug, Default)]
enum Loading {
    /// The start is not known yet.
    #[default]
    New,
    /// It begins at this time.
    Waiting(u64),
    /// A thread loads.
    Running(LoadingThread),
    Done,
}

/// Settings of periodic work.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkConf {
    /// Bounds of the manager.
    pub(super) manager: ManagerConf,
    /// `loader_files`, `loader_sleep`, `loader_threshold`.
    pub(super) loader: Pace,
    /// `purger_files`, `purger_sleep`, `purger_threshold`.
    pub(super) purger: Pace,
}

/// The cache and the times of a run.
pub(super) struct Run<'a> {
    pub(super) index: &'a Arc<Index>,
    pub(super) directory: &'a Directory,
    pub(super) log: &'a ErrorLog,
    /// Returns monotonic milliseconds.
    pub(super) clock: &'a dyn Fn() -> u64,
    /// Seconds since 1970.
    pub(super) now_s: u32,
}

impl Work {
    /// Manager and purger are due at once.
    pub(super) fn make_due(&mut self) {
        self.manager_due_ms = 0;
        self.purger_due_ms = 0;
    }

    /// Does the work that is due, in a step of each kind, and returns the milliseconds until more is due.
    pub(super) fn run(&mut self, conf: &WorkConf, run: &Run<'_>) -> u64 {
        self.load(conf.loader, run);
        if (run.clock)() >= self.manager_due_ms {
            let mut files = Files(run);
            let pause_ms = manage(run.index, &conf.manager, &mut files, run.clock, run.now_s);
            self.manager_due_ms = (run.clock)() + pause_ms;
        }
        if (run.clock)() >= self.purger_due_ms {
            let pause_ms = self.purge(conf.purger, run);
            self.purger_due_ms = (run.clock)() + pause_ms;
        }
        let due_ms = self.manager_due_ms.min(self.purger_due_ms);
        let due_ms = match self.loading {
            Loading::New | Loading::Running(_) | Loading::Done => due_ms,
            Loading::Waiting(load_ms) => due_ms.min(load_ms),
        };
        due_ms.saturating_sub((run.clock)())
    }

    /// Starts the thread of the loader if it is due, and logs its end.
    fn load(&mut self, pace: Pace, run: &Run<'_>) {
        let now_ms = (run.clock)();
        self.loading = match std::mem::take(&mut self.loading) {
            Loading::New => Loading::Waiting(now_ms + LOADER_DELAY_MS),
            Loading::Waiting(due_ms) if due_ms <= now_ms => self.start_loader(pace, run),
            Loading::Running(thread) => match thread.counts() {
                None => {
                    thread.set_pace(pace);
                    Loading::Running(thread)
                }
                Some(counts) => {
                    log_loaded(&counts, run);
                    // A purge may have waited for the last file.
                    self.purger_due_ms = 0;
                    Loading::Done
                }
            },
            later => later,
        };
    }

    fn start_loader(&mut self, pace: Pace, run: &Run<'_>) -> Loading {
        let path = Printable::path(run.directory.path());
        let (call, error) = match Loader::new(run.directory) {
            Err(error) => ("opendir()", error),
            Ok(loader) => {
                let directory = run.directory.clone();
                match LoadingThread::start(loader, directory, run.index, pace, run.now_s) {
                    Ok(thread) => return Loading::Running(thread),
                    Err(error) => ("pthread_create()", error),
                }
            }
        };
        let error = os_error(&error);
        self.log_once(run.log, format!("{call} \"{path}\" failed ({error})"));
        Loading::Waiting((run.clock)() + RETRY_MS)
    }

    /// Does a step of the purger, and returns the milliseconds until the next one.
    fn purge(&mut self, pace: Pace, run: &Run<'_>) -> u64 {
        let mut errors = Vec::new();
        let now_s = i64::from(run.now_s);
        let failed = |error: io::Error| errors.push(os_error(&error));
        let step = (self.purger).step(run.index, run.directory, pace, run.clock, now_s, failed);
        let path = Printable::path(run.directory.path());
        for error in errors {
            self.log_once(
                run.log,
                format!("a file of cache \"{path}\" cannot be purged ({error})"),
            );
        }
        match step {
            PurgeStep::Idle => PURGER_PAUSE_MS,
            PurgeStep::Again(pause_ms) => pause_ms,
            // Purges that came during the walk, or wait for a fill, need another one.
            PurgeStep::Done(_) => WALKS_PAUSE_MS,
        }
    }

    /// Logs an error of the directory, unless it is the one logged last.
    pub(super) fn log_once(&mut self, log: &ErrorLog, text: String) {
        if self.logged.as_ref() != Some(&text) {
            log.write(Level::Crit, format_args!("{text}"));
            self.logged = Some(text);
        }
    }
}

fn log_loaded(counts: &LoadCounts, run: &Run<'_>) {
    let path = Printable::path(run.directory.path());
    if let Some(first) = &counts.first_error {
        let errors = counts.errors;
        run.log.write(
            Level::Crit,
            format_args!(
                "{errors} files of cache \"{path}\" are not loaded, the first one ({first})"
            ),
        );
    }
    let block_bytes = run.directory.block_bytes();
    let bytes = run.index.stats().blocks.saturating_mul(block_bytes);
    let megabytes = bytes as f64 / f64::from(1 << 20);
    run.log.write(
        Level::Notice,
        format_args!("http file cache: {path} {megabytes:.3}M, bsize: {block_bytes}"),
    );
}

/// The files of a cache, for its manager.
struct Files<'a>(&'a Run<'a>);

impl ManagedFiles for Files<'_> {
    fn available_bytes(&mut self) -> Option<u64> {
        self.0.directory.available_bytes().ok()
    }

    fn remove(&mut self, id: &EntryId) {
        if let Err(error) = self.0.directory.remove(id) {
            log_unlink(self.0.log, &self.0.directory.path_of(id), &error);
        }
    }
}

fn log_unlink(log: &ErrorLog, path: &Path, error: &io::Error) {
    let (path, error) = (Printable::path(path), os_error(error));
    log.write(
        Level::Crit,
        format_args!("unlink() \"{path}\" failed ({error})"),
    );
}
