//! `worker_memory_limit`: measures against the end of the worker by the kernel's out-of-memory killer.
//!
//! The main thread checks the process's resident memory. Near the limit the threads close idle connections and release
//! pools; at the limit new requests are refused until there is room again. Requests in progress continue: each has a
//! limit of its own. Absent: surviving a failed allocation, which ends the process as in most programs; the limit
//! prevents it.

use std::io;
use std::time::{Duration, Instant};

use server_base::errlog::{ErrorLog, Level};
use server_base::memory;
use sys::heap::Resident;

/// The thread that checks the memory.
pub(super) struct MemoryWatch {
    resident: Resident,
    limit_bytes: u64,
    next: Instant,
    /// Interval between log lines about the limit.
    log_after: Instant,
}

impl MemoryWatch {
    /// Watches a limit, bytes. Without the kernel's figures, as in a chroot without /proc, requests are served without a
    /// limit: then this logs an alert and returns `None`.
    pub(super) fn begin(limit_bytes: u64, log: &ErrorLog) -> Option<Self> {
        let watch = Self::new(limit_bytes);
        let refused = |error| {
            let reason = sys::os_error(&error);
            let text = format_args!("worker_memory_limit has no effect: {reason}");
            log.write(Level::Alert, text);
        };
        watch.map_err(refused).ok()
    }

    /// # Errors
    /// The kernel's figures cannot be read.
    fn new(limit_bytes: u64) -> io::Result<Self> {
        let resident = Resident::open()?;
        resident.bytes()?;
        let now = Instant::now();
        Ok(Self {
            resident,
            limit_bytes,
            next: now,
            log_after: now,
        })
    }

    /// Milliseconds until the next look, `most` at most.
    pub(super) fn wait_ms(&self, most: u64) -> u64 {
        let left = self.next.saturating_duration_since(Instant::now());
        most.min(left.as_millis() as u64 + 1)
    }

    /// Checks the memory if it is time to; true if the threads are to release pools and idle connections.
    pub(super) fn check(&mut self, log: &ErrorLog) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        self.next = now + CHECK_INTERVAL;
        // A failed read leaves the state as it is.
        let Ok(bytes) = self.resident.bytes() else {
            return false;
        };
        let near = bytes >= self.limit_bytes - self.limit_bytes / NEAR_PART;
        let full = bytes >= self.limit_bytes || (near && memory::is_full());
        let before = memory::set_full(full);
        if full && now >= self.log_after {
            self.log_after = now + LOG_INTERVAL;
            let limit = self.limit_bytes;
            let text = format_args!(
                "worker_memory_limit {limit} is reached, {bytes} bytes are resident: new requests are refused"
            );
            log.write(Level::Crit, text);
        }
        if before && !full {
            let text = format_args!("new requests are served again, {bytes} bytes are resident");
            log.write(Level::Notice, text);
        }
        near
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        memory::set_full(false);
    }
}

/// Time between two looks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two lines in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// Idle connections are closed once less than one part in this many of the limit is left. After the limit was reached, new
/// requests are refused until that much is free again.
const NEAR_PART: u64 = 8;
