//! Counters of the process: connections and requests, and what connections are at.
//!
//! The driver calls; `stub_status` reads. Every thread counts in a cell of its own, so that nothing is shared on the way
//! of a request; a reader adds the cells up. What a thread counted stays when it ends.
//!
//! Source: nginx documentation, `ngx_http_stub_status_module`.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Between requests, or before the first byte.
    Waiting,
    /// A request head is coming in.
    Reading,
    /// A request is being answered.
    Writing,
}

/// The counters of the process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Connections that could be served, of these.
    pub handled: u64,
    /// Requests since the start.
    pub requests: u64,
    /// Connections that are open.
    pub active: u64,
    /// Those of them that send a request head.
    pub reading: u64,
    /// Those of them that get an answer.
    pub writing: u64,
    /// Those of them that are idle.
    pub waiting: u64,
}

/// A connection as it is counted, from [`Counted::accepted`] until it is dropped.
#[derive(Debug)]
pub struct Counted {
    activity: Activity,
}

impl Counted {
    /// A connection has been accepted; nothing has come from it.
    #[must_use]
    pub fn accepted() -> Self {
        CELL.with(|cell| {
            add(&cell.accepted, 1);
            shift(&cell.at[Activity::Waiting as usize], 1);
        });
        Self {
            activity: Activity::Waiting,
        }
    }

    /// The connection is at something now; nothing to do if it was before.
    pub fn set(&mut self, activity: Activity) {
        if self.activity == activity {
            return;
        }
        CELL.with(|cell| {
            shift(&cell.at[self.activity as usize], -1);
            shift(&cell.at[activity as usize], 1);
        });
        self.activity = activity;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // At the very end of a thread its cell may be gone; nobody reads it after that.
        let _ = CELL.try_with(|cell| shift(&cell.at[self.activity as usize], -1));
    }
}

/// A request has begun.
pub fn request() {
    CELL.with(|cell| add(&cell.requests, 1));
}

/// The counters of the whole process.
pub fn totals() -> Totals {
    let cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut at = [0; 3];
    let mut totals = Totals::default();
    for cell in cells.iter() {
        totals.accepted += cell.accepted.load(Ordering::Relaxed);
        totals.requests += cell.requests.load(Ordering::Relaxed);
        for (sum, one) in at.iter_mut().zip(&cell.at) {
            *sum += one.load(Ordering::Relaxed);
        }
    }
    // The cells are not read at one moment, so that a sum may be off by what happens meanwhile.
    let count = |activity: Activity| u64::try_from(at[activity as usize]).unwrap_or(0);
    totals.handled = totals.accepted;
    totals.waiting = count(Activity::Waiting);
    totals.reading = count(Activity::Reading);
    totals.writing = count(Activity::Writing);
    totals.active = totals.waiting + totals.reading + totals.writing;
    totals
}

/// One thread's counters, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Cell {
    accepted: AtomicU64,
    requests: AtomicU64,
    at: [AtomicI64; 3],
}

thread_local! {
    static CELL: Arc<Cell> = new_cell();
}

/// The cells of all threads there are or were.
static CELLS: Mutex<Vec<Arc<Cell>>> = Mutex::new(Vec::new());

/// A cell for this thread: one that a thread before it has left goes on, so that there are never more than threads.
fn new_cell() -> Arc<Cell> {
    let mut cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(left) = cells.iter().find(|cell| Arc::strong_count(cell) == 1) {
        return Arc::clone(left);
    }
    let cell = Arc::new(Cell::default());
    cells.push(Arc::clone(&cell));
    cell
}

/// Only its thread writes a cell: no need for a locked instruction.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

fn shift(counter: &AtomicI64, n: i64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_is_added_up_and_outlives_them() {
        let mut one = Counted::accepted();
        one.set(Activity::Reading);
        request();
        one.set(Activity::Writing);
        let other = std::thread::spawn(|| {
            let _gone = Counted::accepted();
            request();
        });
        assert!(other.join().is_ok());
        let totals = totals();
        assert_eq!((totals.accepted, totals.requests), (2, 2));
        assert_eq!((totals.active, totals.writing), (1, 1));
        assert_eq!((totals.reading, totals.waiting), (0, 0));
        drop(one);
        assert_eq!(super::totals().active, 0);
    }
}
