//! Threads that bring pages of files into the page cache, so that a thread that serves does not wait for a disk.
//!
//! A serving thread sends cached data. Where a piece is missing it has a pool [`fetch`] it and goes on with
//! other connections; the connection is woken when the piece is there, and sends it from the cache. Pools are of the
//! process and known by the names of `thread_pool`; their threads are started when there is work.
//!
//! Absent: reading what is cached, which never waits, and ending a read in progress.
//!
//! Source: nginx documentation, `aio`, `thread_pool`.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engines::http::FileRange;
use server_base::offload::{Full, Work};
use server_base::thread_pool::ThreadPool;
use server_base::waker::RemoteWaker;
use sys::{page_cache, schedule};

use crate::pool::{Limits, Pool};

/// A piece of a file that a pool reads, or has read.
#[derive(Debug)]
pub struct Fetch {
    len: u64,
    done: Arc<AtomicBool>,
}

/// Reason why a read is not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many tasks wait as `max_queue` of the pool allows.
    Full,
    /// There are no descriptors.
    NoDescriptor,
}

impl Fetch {
    /// Whether the piece was read, or could not be.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Bytes of the piece; the file may end before them.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the piece has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A fetch of `len` bytes whose end the caller notes in `done`.
    #[must_use]
    pub fn new(len: u64, done: Arc<AtomicBool>) -> Self {
        Self { len, done }
    }
}

/// Has the first bytes of `range` read by a pool, [`FETCH_BYTES`] at most, and wakes when they are. A fetch that is dropped
/// before a thread takes it is not begun.
///
/// # Errors
/// Why not.
pub fn fetch(range: &FileRange, pool: &ThreadPool, waker: RemoteWaker) -> Result<Fetch, Refused> {
    let (fetch, work) = task(range, waker)?;
    let limits = Limits {
        threads: pool.threads(),
        waiting: pool.max_queue(),
    };
    let threads = of_name(pool.name());
    let given = threads.submit(work, limits, || {
        std::thread::Builder::new()
            .name("read".to_owned())
            .spawn(move || serve(threads))
            .is_ok()
    });
    given.map_err(|Full| Refused::Full)?;
    Ok(fetch)
}

/// A fetch, and the work that ends it.
fn task(range: &FileRange, waker: RemoteWaker) -> Result<(Fetch, Work), Refused> {
    // The thread may read longer than the connection and its file last.
    let file = range.file.as_fd().try_clone_to_owned();
    let file: OwnedFd = file.map_err(|_| Refused::NoDescriptor)?;
    let (offset, len) = (range.offset, range.len.min(FETCH_BYTES));
    let done = Arc::new(AtomicBool::new(false));
    let wanted = Arc::downgrade(&done);
    let work = move || {
        if let Some(done) = wanted.upgrade() {
            // Who sends the piece meets the error as well.
            let _ = page_cache::load(&file, offset, len);
            done.store(true, Ordering::Release);
            waker.wake();
        }
    };
    Ok((Fetch::new(len, done), Box::new(work)))
}

/// Returns how many of the next `len` bytes of `range` would be sent without waiting, judged by the pages at the ends
/// of pieces: none,
/// [`LOOK_BYTES`], [`FETCH_BYTES`] or all up to [`LOOK_BYTES_MAX`]. A page that is missing between them costs a wait.
#[must_use]
pub fn cached_bytes(range: &FileRange, len: u64) -> u64 {
    let is_cached = |offset| page_cache::is_cached(range.file.as_ref(), offset);
    if !is_cached(range.offset) {
        return 0;
    }
    for most in [LOOK_BYTES_MAX, FETCH_BYTES, LOOK_BYTES] {
        let piece = len.min(most);
        let last = range.offset + piece.max(1) - 1;
        if last / PAGE_BYTES == range.offset / PAGE_BYTES || is_cached(last) {
            return piece;
        }
    }
    0
}

/// The pool of that name; one that no configuration names any more stays, with its threads at rest.
fn of_name(name: &str) -> &'static Pool {
    static POOLS: Mutex<Vec<(String, &'static Pool)>> = Mutex::new(Vec::new());
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, pool)) = pools.iter().find(|(known, _)| known == name) {
        return pool;
    }
    let pool: &'static Pool = Box::leak(Box::new(Pool::new()));
    pools.push((name.to_owned(), pool));
    pool
}

fn serve(pool: &'static Pool) {
    // It works with the priority and the CPUs of the thread that started it as well.
    let _ = schedule::run_in_background(NICENESS);
    pool.serve();
}

/// Bytes of one task: a disk reads them in little more time than it takes to find them, and what a slow client does not take
/// soon is not much.
pub const FETCH_BYTES: u64 = 1 << 20;
/// Bytes that one look at their ends is good for: those of several writes, so that looks cost little beside them.
pub const LOOK_BYTES_MAX: u64 = 2 << 20;
/// The begin of a piece that is sent while its end is missing.
pub const LOOK_BYTES: u64 = 128 << 10;
/// The least page there is.
const PAGE_BYTES: u64 = 4096;
/// By how much later than the threads that serve they are scheduled.
const NICENESS: i32 = 1;

#[cfg(test)]
#[path = "read_pool_tests.rs"]
mod tests;
