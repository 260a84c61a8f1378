//! Files that are not in memory, and the threads that read them.
//!
//! With a [`Disk`] every byte of a file range is missing until a fetch that the test lets end has brought it in.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::io::read_pool::{FETCH_BYTES, Fetch};
use engines::http::{FileHandle, FileRange, Front, OutputQueue};
use server_base::offload::Full;
use server_base::waker::RemoteWaker;

/// What is in memory, and what is read.
#[derive(Default)]
pub struct Disk {
    /// Fetches that have not ended, in the order in which they began.
    pub fetches: Vec<Fetching>,
    /// No fetch is taken.
    pub full: bool,
    present: Vec<FileRange>,
}

/// A fetch in progress.
pub struct Fetching {
    range: FileRange,
    done: Arc<AtomicBool>,
    waker: RemoteWaker,
}

impl Disk {
    pub(crate) fn fetch(&mut self, range: &FileRange, waker: RemoteWaker) -> Result<Fetch, Full> {
        if self.full {
            return Err(Full);
        }
        let done = Arc::new(AtomicBool::new(false));
        let range = FileRange {
            len: range.len.min(FETCH_BYTES),
            ..range.clone()
        };
        self.fetches.push(Fetching {
            range,
            done: Arc::clone(&done),
            waker,
        });
        Ok(Fetch::new(done))
    }

    /// Ends the fetch that began first, without bringing anything in if it `failed`; wakes who waits for it.
    pub fn end_fetch(&mut self, failed: bool) {
        let ended = self.fetches.remove(0);
        if !failed {
            self.present.push(ended.range);
        }
        ended.done.store(true, Ordering::Release);
        ended.waker.wake();
    }

    /// What was brought in is dropped from memory.
    pub fn evict(&mut self) {
        self.present.clear();
    }

    /// How many bytes from the front of `out` are in memory.
    pub(crate) fn present_bytes(&self, out: &OutputQueue) -> u64 {
        match out.front() {
            None => 0,
            Some(Front::Bytes(bytes)) => bytes.len() as u64,
            Some(Front::File(range)) => self.present_of(range),
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
