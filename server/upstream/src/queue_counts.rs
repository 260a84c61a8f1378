//! Counts of the queues of a group with a zone, over all threads.
//!
//! Source: nginx documentation, `ngx_http_api_module`, `queue` of an upstream.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of the queues of all threads.
#[derive(Debug, Default)]
pub struct QueueCounts {
    waiting: AtomicU64,
    overflows: AtomicU64,
}

impl QueueCounts {
    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were rejected since a queue was full.
    pub fn overflows(&self) -> u64 {
        self.overflows.load(Ordering::Relaxed)
    }

    /// Counts a request that begins to wait.
    pub(crate) fn join(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that waits no longer.
    pub(crate) fn leave(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a rejected request.
    pub(crate) fn overflow(&self) {
        self.overflows.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the number of rejected requests to 0.
    pub(crate) fn reset(&self) {
        self.overflows.store(0, Ordering::Relaxed);
    }
}
