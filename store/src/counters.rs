//! Figures and messages of a writer.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Figures of a writer, which any thread may read.
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
}

/// Values of [`Counters`] at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows stored.
    pub written: u64,
    /// Rows dropped: the queue was full, or the store could not be written at the end.
    pub dropped: u64,
    /// Commits and maintenances that failed; rows were kept for the next try.
    pub failed: u64,
    /// Damaged files moved aside.
    pub moved_aside: u64,
    /// Rows deleted by age or size.
    pub deleted_rows: u64,
    /// Rows in the queue and in the next commit.
    pub queued: u64,
    /// Size of the file, bytes.
    pub file_bytes: u64,
    /// Whether the store cannot be written now.
    pub failing: bool,
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
            failing: self.failing.load(Ordering::Relaxed),
        }
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
    /// The file was damaged and has a new name; a new one began.
    MovedAside {
        /// New name of the damaged file.
        to: PathBuf,
        /// SQLite's description of the damage.
        reason: String,
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
