//! Files that are not in memory, and the threads that read them.
//!
//! With a [`Disk`], every byte of a file range is missing until a fetch has brought it in; the test decides when a
//! fetch ends. Fetched bytes can be evicted again.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::io::read_ahead::ReadAhead;
use driver::io::read_pool::{FETCH_BYTES, Fetch, Refused};
use engines::http::{FileHandle, FileRange, Front, OutputQueue};
use server_base::waker::RemoteWaker;

/// State of memory and of reads.
pub struct Disk {
    /// Fetches in progress, in the order of their begin.
    pub fetches: Vec<Fetching>,
    /// No fetch is taken.
    pub full: bool,
    /// Bytes of one fetch.
    pub(crate) piece_bytes: u64,
    present: Vec<FileRange>,
}

impl Default for Disk {
    fn default() -> Self {
        Self::new(FETCH_BYTES)
    }
}

/// A fetch in progress.
pub struct Fetching {
    range: FileRange,
    done: Arc<AtomicBool>,
    waker: RemoteWaker,
}

impl Disk {
    /// A disk with this number of bytes per fetch.
    pub fn new(piece_bytes: u64) -> Self {
        Self {
            fetches: Vec::new(),
            full: false,
            piece_bytes,
            present: Vec::new(),
        }
    }

    pub(crate) fn fetch(
        &mut self,
        range: &FileRange,
        waker: RemoteWaker,
    ) -> Result<Fetch, Refused> {
        if self.full {
            return Err(Refused::Full);
        }
        let done = Arc::new(AtomicBool::new(false));
        let len = range.len.min(self.piece_bytes);
        let range = FileRange {
            len,
            ..range.clone()
        };
        self.fetches.push(Fetching {
            range,
            done: Arc::clone(&done),
            waker,
        });
        Ok(Fetch::new(len, done))
    }

    /// Ends the oldest fetch and wakes its waiter; a `failed` fetch brings nothing in.
    pub fn end_fetch(&mut self, failed: bool) {
        let ended = self.fetches.remove(0);
        if !failed {
            self.present.push(ended.range);
        }
        ended.done.store(true, Ordering::Release);
        ended.waker.wake();
    }

    /// Drops fetched data from memory.
    pub fn evict(&mut self) {
        self.present.clear();
    }

    /// Bytes from the front of `out` that are in memory; if a pool reads ahead, those that it has read.
    pub(crate) fn present_bytes(&self, out: &OutputQueue, ahead: Option<&ReadAhead>) -> u64 {
        match out.front() {
            None => 0,
            Some(Front::Bytes(bytes)) => bytes.len() as u64,
            Some(Front::File(range)) => {
                let read = ahead.and_then(|ahead| ahead.read_bytes(range));
                self.present_of(range).min(read.unwrap_or(u64::MAX))
            }
        }
    }

    fn present_of(&self, range: &FileRange) -> u64 {
        let is_same = |file: &FileHandle| Rc::ptr_eq(file, &range.file);
        let ends = self.present.iter().filter_map(|present| {
            let end = present.offset + present.len;
            let has_begin = present.offset <= range.offset && range.offset < end;
            (is_same(&present.file) && has_begin).then(|| end - range.offset)
        });
        ends.max().unwrap_or(0).min(range.len)
    }
}
