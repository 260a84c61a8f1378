//! An entry that is being received: any number of requests read its file while it grows.
//!
//! ```text
//! producer:  set_head(..), advance(..) as bytes are written, then finish(), fail() or settle()
//! consumer:  FillReader::join(..), then progress() at each turn; wait(..) if it has read all of it
//! ```
//!
//! Bytes are read from the file of [`FillHead`], never from here. A consumer that waits is woken once by the next progress,
//! through its own thread. A wake without progress is harmless.
//!
//! Absent: the begin of a fill and its result for the index, which are in `index`.

use std::fs::File;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use server_base::waker::RemoteWaker;

use crate::directory::FileIdentity;
use crate::key::CacheKey;
use crate::response_head::HeadFormat;
use crate::stored_head::StoredHead;

/// Maximum number of consumers of a fill; others ask the server themselves.
pub const READERS_MAX: usize = 10_000;

/// The received part of an entry.
#[derive(Debug)]
pub struct Fill {
    epoch: u64,
    started_ms: u64,
    head: OnceLock<FillHead>,
    /// Bytes of the body that the file has.
    available: AtomicU64,
    state: AtomicU8,
    readers: Mutex<Readers>,
}

/// The begin of an entry, and its file.
#[derive(Debug)]
pub struct FillHead {
    /// All bytes before the body ([`crate::disk::encode`]).
    prefix: Box<[u8]>,
    file: Arc<File>,
    /// The parsed bytes, once a consumer has parsed them.
    parsed: OnceLock<Arc<StoredHead>>,
}

impl FillHead {
    /// The begin of an entry in a file. Consumers keep the file open, so that it outlives its name.
    #[must_use]
    pub fn new(prefix: Box<[u8]>, file: Arc<File>) -> Self {
        Self {
            prefix,
            file,
            parsed: OnceLock::new(),
        }
    }

    /// Returns the file that grows.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the parsed bytes before the body, one value for all consumers; `None` if they are of another key or format.
    #[must_use]
    pub fn parse(&self, key: &CacheKey, format: HeadFormat) -> Option<Arc<StoredHead>> {
        if let Some(parsed) = self.parsed.get() {
            return parsed.is_of(key, format).then(|| Arc::clone(parsed));
        }
        let identity = FileIdentity {
            uniq: 0,
            len: self.prefix.len() as u64,
        };
        // A failure concerns this key alone, so it is not kept for other consumers.
        let head = StoredHead::parse(&self.prefix, identity, key, format).ok()?;
        Some(Arc::clone(self.parsed.get_or_init(|| Arc::new(head))))
    }
}

/// How far a fill is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether [`Fill::head`] is known.
    pub has_head: bool,
    /// Bytes of the body in the file.
    pub available: u64,
    /// Whether and how it has ended.
    pub end: Option<FillEnd>,
}

/// The end of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillEnd {
    /// The body is whole.
    Done,
    /// The response has ended early. Without a head, a consumer calls [`crate::index::Index::begin_fill`] again: one of them
    /// sends the next request.
    Failed,
    /// The response may not be stored. Without a head, each consumer sends its own request.
    NotStorable,
    /// There is no body: the stored response is still valid, or the server has failed. A consumer looks up the entry again.
    Settled,
}

const RECEIVING: u8 = 0;
const DONE: u8 = 1;
const FAILED: u8 = 2;
const SETTLED: u8 = 3;
const NOT_STORABLE: u8 = 4;

/// Consumers, each with a slot for its waker.
#[derive(Debug, Default)]
struct Readers {
    slots: Vec<Option<RemoteWaker>>,
    free: Vec<u32>,
}

impl Fill {
    /// A fill that begins at a monotonic time, at an epoch of purges ([`crate::index`]).
    #[must_use]
    pub fn new(epoch: u64, started_ms: u64) -> Self {
        Self {
            epoch,
            started_ms,
            head: OnceLock::new(),
            available: AtomicU64::new(0),
            state: AtomicU8::new(RECEIVING),
            readers: Mutex::default(),
        }
    }

    /// Returns the epoch of purges at its begin.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the monotonic time of its begin, milliseconds.
    #[must_use]
    pub fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// Publishes the head, once; another head is ignored.
    pub fn set_head(&self, head: FillHead) {
        let _ = self.head.set(head);
        self.wake();
    }

    /// Returns the head, once it is known.
    #[must_use]
    pub fn head(&self) -> Option<&FillHead> {
        self.head.get()
    }

    /// Publishes bytes of the body that were written behind earlier ones.
    pub fn advance(&self, bytes: u64) {
        if bytes > 0 {
            self.available.fetch_add(bytes, Ordering::Release);
            self.wake();
        }
    }

    /// Ends the fill: the body is whole. A second end is ignored.
    pub fn finish(&self) {
        self.end(DONE);
    }

    /// Ends the fill early. A second end is ignored.
    pub fn fail(&self) {
        self.end(FAILED);
    }

    /// Ends the fill without a body: the index has the result. A second end is ignored.
    pub fn settle(&self) {
        self.end(SETTLED);
    }

    /// Ends the fill of a response that may not be stored. A second end is ignored.
    pub fn refuse(&self) {
        self.end(NOT_STORABLE);
    }

    fn end(&self, state: u8) {
        let relaxed = Ordering::Relaxed;
        let ended = self
            .state
            .compare_exchange(RECEIVING, state, Ordering::Release, relaxed);
        if ended.is_ok() {
            self.wake();
        }
    }

    /// Returns how far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        // The end is read first: bytes are published before it, so an end never hides the last of them.
        let end = match self.state.load(Ordering::Acquire) {
            DONE => Some(FillEnd::Done),
            FAILED => Some(FillEnd::Failed),
            SETTLED => Some(FillEnd::Settled),
            NOT_STORABLE => Some(FillEnd::NotStorable),
            _ => None,
        };
        Progress {
            available: self.available.load(Ordering::Acquire),
            has_head: self.head.get().is_some(),
            end,
        }
    }

    /// Returns the number of consumers.
    #[must_use]
    pub fn readers(&self) -> usize {
        let readers = self.lock();
        readers.slots.len() - readers.free.len()
    }

    /// Wakes all waiting consumers, outside of the lock.
    fn wake(&self) {
        let wakers: Vec<RemoteWaker> = {
            let mut readers = self.lock();
            readers.slots.iter_mut().filter_map(Option::take).collect()
        };
        for waker in wakers {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Readers> {
        // No operation under the lock can leave a partial change.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A consumer of a fill.
#[derive(Debug)]
pub struct FillReader {
    fill: Arc<Fill>,
    slot: u32,
}

/// A fill has [`READERS_MAX`] consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyReaders;

impl FillReader {
    /// Adds a consumer to a fill, which may have ended.
    ///
    /// # Errors
    /// The fill has [`READERS_MAX`] consumers.
    pub fn join(fill: &Arc<Fill>) -> Result<Self, TooManyReaders> {
        let mut readers = fill.lock();
        let slot = match readers.free.pop() {
            Some(slot) => slot,
            None if readers.slots.len() >= READERS_MAX => return Err(TooManyReaders),
            None => {
                readers.slots.push(None);
                readers.slots.len() as u32 - 1
            }
        };
        drop(readers);
        Ok(Self {
            fill: Arc::clone(fill),
            slot,
        })
    }

    /// Returns the fill.
    #[must_use]
    pub fn fill(&self) -> &Arc<Fill> {
        &self.fill
    }

    /// Returns how far the fill is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.fill.progress()
    }

    /// Waits for progress beyond `seen`. Returns `false` if there is some already: then no wake follows.
    #[must_use]
    pub fn wait(&self, seen: Progress, waker: impl FnOnce() -> RemoteWaker) -> bool {
        let mut readers = self.fill.lock();
        // A producer publishes before it takes this lock, so either it is seen here, or it finds the waker.
        if self.fill.progress() != seen {
            return false;
        }
        readers.slots[self.slot as usize] = Some(waker());
        true
    }
}

impl Drop for FillReader {
    fn drop(&mut self) {
        let mut readers = self.fill.lock();
        readers.slots[self.slot as usize] = None;
        readers.free.push(self.slot);
    }
}

#[cfg(test)]
#[path = "fill_tests.rs"]
mod tests;
