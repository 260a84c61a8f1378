//! A MaxMind DB file that can be reloaded while in use.
//!
//! Lookups hold the read lock. A periodic task of the worker reads a changed file and holds the write lock only to
//! replace the database. A broken or missing file keeps the old one. A change is detected by device, inode, size and
//! times of the file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use conf::{DataFile, Stamp, os_error};
use geoip::mmdb::Mmdb;
use server_base::errlog::{ErrorLog, Level};
use server_base::periodic_task::{PeriodicTask, TaskClock};

/// The file.
pub(super) struct Live {
    path: PathBuf,
    /// Time between two checks for a change, seconds; 0 is never.
    pub(super) interval_s: u64,
    current: RwLock<Mmdb>,
    /// The identity of the current file.
    stamp: Mutex<Option<Stamp>>,
    last_check_s: AtomicI64,
    last_change_s: AtomicI64,
}

impl Live {
    /// Reads the file.
    ///
    /// # Errors
    /// The reason for refusing the file.
    pub(super) fn open(path: PathBuf, file: &DataFile) -> Result<Self, String> {
        let (database, stamp) = read(file)?;
        Ok(Self {
            path,
            interval_s: 0,
            current: RwLock::new(database),
            stamp: Mutex::new(stamp),
            last_check_s: AtomicI64::new(NEVER),
            last_change_s: AtomicI64::new(NEVER),
        })
    }

    /// Calls a function with the current database.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Mmdb) -> T) -> T {
        look(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the time of the last check, seconds since 1970.
    pub(super) fn last_check_s(&self) -> i64 {
        self.last_check_s.load(Ordering::Relaxed)
    }

    /// Returns the time of the last change, seconds since 1970: that of the file, or of its first use.
    pub(super) fn last_change_s(&self) -> i64 {
        self.last_change_s.load(Ordering::Relaxed)
    }

    /// Reloads the file if it has changed.
    fn check(&self, log: &ErrorLog) {
        let path = self.path.display();
        let now = match Stamp::of(&self.path) {
            Ok(now) => now,
            Err(error) => {
                let error = os_error(&error);
                return log.write(
                    Level::Emerg,
                    format_args!("stat() \"{path}\" failed ({error})"),
                );
            }
        };
        let mut known = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == Some(now) {
            return;
        }
        let file = DataFile::open(&self.path).map_err(|error| os_error(&error));
        match file.and_then(|file| read(&file)) {
            Ok((database, stamp)) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                let old = std::mem::replace(&mut *current, database);
                drop(current);
                // Freed after the lock is released, so that no lookup waits for it.
                drop(old);
                *known = stamp;
                self.last_change_s.store(now.mtime_s, Ordering::Relaxed);
                log.write(Level::Info, format_args!("Reload MMDB \"{path}\""));
            }
            Err(why) => log.write(
                Level::Error,
                format_args!("MMDB_open(\"{path}\") failed to reload - {why}"),
            ),
        }
    }
}

impl PeriodicTask for Live {
    fn run(&self, clock: &TaskClock<'_>, log: &ErrorLog) -> Option<u64> {
        let now_s = clock.unix_s;
        if self.last_check_s() == NEVER {
            self.last_change_s.store(now_s, Ordering::Relaxed);
        } else {
            self.check(log);
        }
        self.last_check_s.store(now_s, Ordering::Relaxed);
        (self.interval_s != 0).then(|| self.interval_s.saturating_mul(1000))
    }
}

fn read(file: &DataFile) -> Result<(Mmdb, Option<Stamp>), String> {
    // The identity is read first, so that a change while reading is found by the next check.
    let stamp = file.stamp().map_err(|error| os_error(&error))?;
    let bytes = file.read().map_err(|error| os_error(&error))?;
    let database = Mmdb::open(bytes).map_err(|refused| refused.to_string())?;
    Ok((database, stamp))
}

/// The value before the first check.
const NEVER: i64 = 0;
