//! The periodic task of a cache: opens its directory, applies the size of `keys_zone`, and does the work that is due.
//!
//! The first run of a task comes before its configuration is served, and the configuration may still fail. So it only
//! opens the directory. A later run belongs to the configuration that is served.
//!
//! Absent: the work itself, which is in [`work`](super::work).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use conf::os_error;
use server_base::errlog::{ErrorLog, Printable};
use server_base::periodic_task::{PeriodicTask, TaskClock, Wake};
use server_cache::directory::Directory;
use server_cache::index::entries_max;
use server_cache::manager::ManagerConf;

use super::path::{CacheLimits, CachePath};
use super::work::{RETRY_MS, Run, WorkConf};
use super::zone::SharedCache;

/// The periodic task of a cache.
pub(super) struct Maintenance {
    shared: Arc<SharedCache>,
    entries_max: u64,
    limits: CacheLimits,
    /// Without the limit of blocks, which depends on the file system.
    work: WorkConf,
    /// The first run is over.
    has_run: AtomicBool,
}

impl Maintenance {
    /// The task of a cache with these parameters.
    pub(super) fn new(shared: &Arc<SharedCache>, written: &CachePath) -> Self {
        let limits = written.limits;
        Self {
            shared: Arc::clone(shared),
            entries_max: entries_max(written.zone_bytes).max(1),
            limits,
            work: WorkConf {
                manager: ManagerConf {
                    max_blocks: u64::MAX,
                    min_free_bytes: limits.min_free_bytes,
                    inactive_s: limits.inactive_s,
                    pace: written.manager,
                },
                loader: written.loader,
                purger: written.purger,
            },
            has_run: AtomicBool::new(false),
        }
    }

    /// Returns the settings of the work for the blocks of a directory.
    fn work_conf(&self, directory: &Directory) -> WorkConf {
        let mut conf = self.work;
        if let Some(bytes) = self.limits.max_bytes {
            conf.manager.max_blocks = bytes / directory.block_bytes();
        }
        conf
    }

    /// Runs the task at a time: monotonic milliseconds, seconds since 1970.
    fn run_at(&self, clock: &dyn Fn() -> u64, now_s: i64, log: &ErrorLog) -> u64 {
        let is_first = !self.has_run.swap(true, Ordering::Relaxed);
        let work = self.shared.work.lock();
        let mut work = work.unwrap_or_else(PoisonError::into_inner);
        let directory = match self.shared.open() {
            Ok(directory) => directory,
            Err(error) => {
                let (path, error) = (Printable::path(self.shared.path()), os_error(&error));
                work.log_once(log, format!("statvfs() \"{path}\" failed ({error})"));
                return RETRY_MS;
            }
        };
        if is_first {
            return 0;
        }
        let index = &self.shared.index;
        // It forgets the state of a full index, so it is not set again and again.
        if index.stats().entries_max != self.entries_max {
            index.set_entries_max(self.entries_max);
        }
        self.shared.memory.set_max_bytes(self.limits.memory_bytes);
        if self.shared.take_wake() {
            work.make_due();
        }
        let run = Run {
            index,
            directory,
            log,
            clock,
            now_s: u32::try_from(now_s).unwrap_or(0),
        };
        work.run(&self.work_conf(directory), &run)
    }
}

impl PeriodicTask for Maintenance {
    fn run(&self, clock: &TaskClock<'_>, log: &ErrorLog) -> Option<u64> {
        Some(self.run_at(clock.mono_ms, clock.unix_s, log))
    }

    fn set_wake(&self, wake: &Wake) {
        // Weak, since the index belongs to the cache.
        let (shared, wake) = (Arc::downgrade(&self.shared), Arc::clone(wake));
        self.shared.index.set_work_wake(move || {
            if let Some(shared) = shared.upgrade() {
                shared.wake();
                wake();
            }
        });
    }

    fn is_woken(&self) -> bool {
        self.shared.is_woken()
    }
}

#[cfg(test)]
#[path = "upkeep_tests.rs"]
mod tests;
