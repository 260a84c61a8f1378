//! Threads that read file pages into the page cache, so that serving threads do not wait for a disk.
//!
//! A serving thread sends cached data. If a piece is missing, it submits a [`fetch`] to a pool and continues with other
//! connections. When the piece is read, the connection is woken and sends it from the cache. Pools belong to the
//! process, have the names of `thread_pool`, and start their threads on demand.
//!
//! Absent: reading cached data, which never waits, and cancelling a read in progress.
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

/// A piece of a file that a pool reads or has read.
#[derive(Debug)]
pub struct Fetch {
    len: u64,
    done: Arc<AtomicBool>,
}

/// Reason for not starting a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The pool's queue has reached `max_queue`.
    Full,
    /// No descriptor is available.
    NoDescriptor,
}

impl Fetch {
    /// Whether the read has finished or failed.
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

    /// Makes a fetch of `len` bytes. The caller sets `done` at its end.
    #[must_use]
    pub fn new(len: u64, done: Arc<AtomicBool>) -> Self {
        Self { len, done }
    }
}

/// Submits a read of the first bytes of `range` to a pool, at most [`FETCH_BYTES`]. Calls `waker` at its end. If the
/// fetch is dropped before a thread takes it, it is not started.
///
/// # Errors
/// The reason for not starting the read.
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

/// Returns a fetch, and the work that completes it.
fn task(range: &FileRange, waker: RemoteWaker) -> Result<(Fetch, Work), Refused> {
    // The read may outlast the connection and its file.
    let file = range.file.as_fd().try_clone_to_owned();
    let file: OwnedFd = file.map_err(|_| Refused::NoDescriptor)?;
    let (offset, len) = (range.offset, range.len.min(FETCH_BYTES));
    let done = Arc::new(AtomicBool::new(false));
    let wanted = Arc::downgrade(&done);
    let work = move || {
        if let Some(done) = wanted.upgrade() {
            // The sender of the piece will meet the same error.
            let _ = page_cache::load(&file, offset, len);
            done.store(true, Ordering::Release);
            waker.wake();
        }
    };
    Ok((Fetch::new(len, done), Box::new(work)))
}

/// Returns how many of the next `len` bytes of `range` can be sent without waiting, judged by the first and last pages
/// of pieces. The result is 0, [`LOOK_BYTES`], [`FETCH_BYTES`], or all bytes up to [`LOOK_BYTES_MAX`]. A missing page
/// between them costs a wait.
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

/// Returns the pool of that name. Pools are never removed; an unused one has idle threads.
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
    // The thread also inherits the priority and the CPUs of the thread that started it.
    let _ = schedule::run_in_background(NICENESS);
    pool.serve();
}

/// Bytes of one task. The transfer takes little longer than the seek. A slow client wastes little memory.
pub const FETCH_BYTES: u64 = 1 << 20;
/// Maximum number of bytes covered by one check of pages: enough for several writes, so that checks cost little.
pub const LOOK_BYTES_MAX: u64 = 2 << 20;
/// Bytes at the start of a piece that are sent while its end is missing.
pub const LOOK_BYTES: u64 = 128 << 10;
/// Size of the smallest page.
const PAGE_BYTES: u64 = 4096;
/// Nice value of the threads, relative to serving threads.
const NICENESS: i32 = 1;

#[cfg(test)]
#[path = "read_pool_tests.rs"]
mod tests;
