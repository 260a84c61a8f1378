//! Counters of each thread, summed on reading.
//!
//! Requests write no shared memory: only its thread writes a cell, on cache lines of its own. The counts of a thread outlive
//! it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The cells of all current and ended threads.
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
    /// A cell for this thread. Cells of ended threads are reused, so there are at most as many cells as threads.
    pub fn of_thread(&self) -> Arc<T> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = cells.iter().find(|cell| Arc::strong_count(cell) == 1) {
            return Arc::clone(left);
        }
        let cell = Arc::new(T::default());
        cells.push(Arc::clone(&cell));
        cell
    }

    /// Passes every cell to `see`. Cells are not read at one instant, so a sum may miss concurrent changes.
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
