//! Counters that each thread has for itself, added up on reading.
//!
//! Nothing is shared on the way of a request: only its thread writes a cell, on cache lines of its own. The counts of
//! a thread outlive it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The cells of all threads there are or were.
#[derive(Debug)]
pub struct PerThread<T>(Mutex<Vec<Arc<T>>>);

impl<T> Default for PerThread<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PerThread<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T: Default> PerThread<T> {
    /// A cell for this thread: one that a thread before it has left goes on, so that there are never more than threads.
    pub fn mine(&self) -> Arc<T> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = cells.iter().find(|cell| Arc::strong_count(cell) == 1) {
            return Arc::clone(left);
        }
        let cell = Arc::new(T::default());
        cells.push(Arc::clone(&cell));
        cell
    }

    /// Shows every cell. They are not read at one moment, so that a sum may be off by what happens meanwhile.
    pub fn each(&self, see: impl FnMut(&T)) {
        let cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cells.iter().map(|cell| &**cell).for_each(see);
    }
}

/// Only its thread writes a cell: no need for a locked instruction.
#[inline]
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}
