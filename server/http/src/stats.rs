//! Counters of the process: connections by activity, and requests.
//!
//! The driver calls; `stub_status` and `metrics` read. Every thread counts in a cell of its own
//! ([`server_base::per_thread`]).
//!
//! Source: nginx documentation, `ngx_http_stub_status_module`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use engines::http::Protocol;
use server_base::per_thread::{PerThread, add};

/// The states of a connection, as the status page counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Between requests, or before the first byte.
    Waiting,
    /// A request head is coming in.
    Reading,
    /// A request is being answered.
    Writing,
}

/// Connections of one protocol, by activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Idle ones.
    pub waiting: u64,
    /// Those that send a request head.
    pub reading: u64,
    /// Those that get an answer.
    pub writing: u64,
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

/// A connection as it is counted, from [`Counted::accepted`] until it is dropped; it speaks HTTP/1 until it shows another
/// protocol.
#[derive(Debug)]
pub struct Counted {
    activity: Activity,
    protocol: Protocol,
}

impl Counted {
    /// A connection has been accepted; nothing has come from it.
    #[must_use]
    pub fn accepted() -> Self {
        CELL.with(|cell| {
            add(&cell.accepted, 1);
            shift(&cell.at[place(Protocol::Http1, Activity::Waiting)], 1);
        });
        Self {
            activity: Activity::Waiting,
            protocol: Protocol::Http1,
        }
    }

    /// The connection is at something now; nothing to do if it was before.
    pub fn set(&mut self, activity: Activity) {
        if self.activity == activity {
            return;
        }
        self.change(self.protocol, activity);
    }

    /// The connection has shown that it speaks this.
    pub fn speak(&mut self, protocol: Protocol) {
        self.change(protocol, self.activity);
    }

    fn change(&mut self, protocol: Protocol, activity: Activity) {
        CELL.with(|cell| {
            shift(&cell.at[place(self.protocol, self.activity)], -1);
            shift(&cell.at[place(protocol, activity)], 1);
        });
        self.activity = activity;
        self.protocol = protocol;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // At the very end of a thread its cell may be gone; it is not read after that.
        let _ = CELL.try_with(|cell| shift(&cell.at[place(self.protocol, self.activity)], -1));
    }
}

/// A connection was accepted and closed at once, since there was no place for it.
pub fn refused() {
    CELL.with(|cell| {
        add(&cell.accepted, 1);
        add(&cell.refused, 1);
    });
}

/// A request has begun.
pub fn request() {
    CELL.with(|cell| add(&cell.requests, 1));
}

/// The counters of the whole process.
pub fn totals() -> Totals {
    let mut totals = Totals::default();
    let mut refused = 0;
    CELLS.each(|cell| {
        refused += cell.refused.load(Ordering::Relaxed);
        totals.accepted += cell.accepted.load(Ordering::Relaxed);
        totals.requests += cell.requests.load(Ordering::Relaxed);
    });
    for open in open() {
        totals.waiting += open.waiting;
        totals.reading += open.reading;
        totals.writing += open.writing;
    }
    totals.handled = totals.accepted.saturating_sub(refused);
    totals.active = totals.waiting + totals.reading + totals.writing;
    totals
}

/// Records the time at which the present configuration was taken, milliseconds since 1970.
pub fn set_loaded(unix_ms: u64) {
    LOADED_MS.store(unix_ms, Ordering::Relaxed);
}

/// Returns the time at which the present configuration was taken, milliseconds since 1970; 0 before the first.
pub fn loaded_ms() -> u64 {
    LOADED_MS.load(Ordering::Relaxed)
}

static LOADED_MS: AtomicU64 = AtomicU64::new(0);

/// Records the number of workers that were lost before this one.
pub fn set_respawned(workers: u64) {
    RESPAWNED.store(workers, Ordering::Relaxed);
}

/// Returns the number of workers that were lost before this one, since the start of the supervisor.
pub fn respawned() -> u64 {
    RESPAWNED.load(Ordering::Relaxed)
}

static RESPAWNED: AtomicU64 = AtomicU64::new(0);

/// Records the number of threads that serve.
pub fn set_threads(threads: u64) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// Returns the number of threads that serve; 1 in a program that did not set it.
pub fn threads() -> u64 {
    THREADS.load(Ordering::Relaxed)
}

static THREADS: AtomicU64 = AtomicU64::new(1);

/// The open connections of each of [`Protocol::ALL`].
pub fn open() -> [Open; Protocol::ALL.len()] {
    let mut at = [0; PLACES];
    CELLS.each(|cell| {
        for (sum, one) in at.iter_mut().zip(&cell.at) {
            *sum += one.load(Ordering::Relaxed);
        }
    });
    Protocol::ALL.map(|protocol| {
        // Changes while the cells are read can make a sum negative.
        let count = |activity| u64::try_from(at[place(protocol, activity)]).unwrap_or(0);
        Open {
            waiting: count(Activity::Waiting),
            reading: count(Activity::Reading),
            writing: count(Activity::Writing),
        }
    })
}

/// The offset of such connections in a cell.
const fn place(protocol: Protocol, activity: Activity) -> usize {
    protocol as usize * ACTIVITIES + activity as usize
}

const ACTIVITIES: usize = 3;
const PLACES: usize = Protocol::ALL.len() * ACTIVITIES;

/// One thread's counters, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Cell {
    accepted: AtomicU64,
    refused: AtomicU64,
    requests: AtomicU64,
    at: [AtomicI64; PLACES],
}

thread_local! {
    static CELL: Arc<Cell> = CELLS.of_thread();
}

static CELLS: PerThread<Cell> = PerThread::new();

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
        assert_eq!(totals.handled, 2);
        refused();
        let totals = super::totals();
        assert_eq!((totals.accepted, totals.handled), (3, 2));
        one.speak(Protocol::Http2);
        let [http1, _, http2, http3] = open();
        assert_eq!((http1, http3), (Open::default(), Open::default()));
        assert_eq!(http2.writing, 1);
        drop(one);
        assert_eq!(super::totals().active, 0);
    }
}
