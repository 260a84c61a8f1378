//! Figures and messages of a writer.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Figures of a writer, readable by any thread.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) written: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) moved_aside: AtomicU64,
    pub(crate) deleted_rows: AtomicU64,
    pub(crate) queued: AtomicU64,
    pub(crate) file_bytes: AtomicU64,
    pub(crate) failing: AtomicBool,
    pub(crate) sending_fails: AtomicBool,
    pub(crate) batches_sent: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) spilled_batches: AtomicU64,
    pub(crate) spilled_rows: AtomicU64,
    pub(crate) spilled_bytes: AtomicU64,
    pub(crate) spill_dropped: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// Values of [`Counters`] at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows stored: connections and page views.
    pub written: u64,
    /// Rows dropped: the queue or the spill directory was full, or the store could not be written at the end.
    pub dropped: u64,
    /// Commits and maintenances that failed; rows were kept for the next try.
    pub failed: u64,
    /// Damaged files moved aside.
    pub moved_aside: u64,
    /// Rows deleted by age or size.
    pub deleted_rows: u64,
    /// Rows in the queue and in the next commit.
    pub queued: u64,
    /// Size of SQLite's file, bytes.
    pub file_bytes: u64,
    /// Whether the store cannot be written now.
    pub failing: bool,
    /// Batches that ClickHouse has stored.
    pub batches_sent: u64,
    /// Batches that were sent again because ClickHouse did not confirm them.
    pub retries: u64,
    /// Batches in the spill directory.
    pub spilled_batches: u64,
    /// Rows of these batches.
    pub spilled_rows: u64,
    /// Bytes of these batches.
    pub spilled_bytes: u64,
    /// Rows dropped because the spill directory was full; [`Counts::dropped`] has them too.
    pub spill_dropped: u64,
}

impl Counters {
    /// Reads all values.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            written: read(&self.written),
            dropped: read(&self.dropped),
            failed: read(&self.failed),
            moved_aside: read(&self.moved_aside),
            deleted_rows: read(&self.deleted_rows),
            queued: read(&self.queued),
            file_bytes: read(&self.file_bytes),
            failing: self.failing.load(Ordering::Relaxed)
                || self.sending_fails.load(Ordering::Relaxed),
            batches_sent: read(&self.batches_sent),
            retries: read(&self.retries),
            spilled_batches: read(&self.spilled_batches),
            spilled_rows: read(&self.spilled_rows),
            spilled_bytes: read(&self.spilled_bytes),
            spill_dropped: read(&self.spill_dropped),
        }
    }

    /// Text of the last failure, one line; `None` before the first one.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Counts a failure.
    pub(crate) fn note_failure(&self, reason: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut last = self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Some(reason.replace('\n', "; "));
    }
}

/// Takes a report.
type OnReport = Box<dyn Fn(Report) + Send>;

/// Takes the reports of all threads of a writer.
#[derive(Clone)]
pub(crate) struct Reports(Arc<Mutex<OnReport>>);

impl Reports {
    pub(crate) fn new(on_report: impl Fn(Report) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(on_report))))
    }

    pub(crate) fn send(&self, report: Report) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(report);
    }
}

/// A message of a writer for the error log. Its text is one line without the path of the store, unless the path matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The store is open.
    Opened {
        /// The file.
        path: PathBuf,
    },
    /// The database of ClickHouse can be written.
    Connected {
        /// Its name.
        database: String,
    },
    /// The file was damaged and has been renamed. SQLite starts a new one; a batch of ClickHouse is not sent.
    MovedAside {
        /// New name of the damaged file.
        to: PathBuf,
        /// Description of the damage.
        reason: String,
    },
    /// A batch did not fit into the spill directory. It is reported once until one fits again.
    SpillFull {
        /// Limit of the directory, bytes.
        limit: u64,
    },
    /// The store cannot be written. It is tried again; each reason is reported once.
    CannotWrite {
        /// The error.
        reason: String,
    },
    /// The store can be written again.
    Recovered {
        /// Time since the first failure.
        after: Duration,
    },
    /// Rows were dropped since the last such report.
    Dropped {
        /// Their number.
        rows: u64,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { path } => write!(out, "store {} is open", path.display()),
            Self::Connected { database } => {
                write!(out, "the database {database} of ClickHouse is open")
            }
            Self::SpillFull { limit } => write!(
                out,
                "the spill directory has reached its limit of {limit} bytes; new connections are dropped"
            ),
            Self::MovedAside { to, reason } => write!(
                out,
                "the store was damaged and is now {}: {}",
                to.display(),
                reason.replace('\n', "; ")
            ),
            Self::CannotWrite { reason } => {
                write!(
                    out,
                    "cannot write the store: {}",
                    reason.replace('\n', "; ")
                )
            }
            Self::Recovered { after } => write!(
                out,
                "the store can be written again after {} s",
                after.as_secs()
            ),
            Self::Dropped { rows } => write!(out, "the store has dropped {rows} connections"),
        }
    }
}
