//! Kept files by their paths: one pool of those whose bytes are in memory, one of those with a descriptor.
//!
//! Both are evicted by S3-FIFO (`server_base::s3_fifo`), one by bytes, the other by number, so that neither a scan over
//! many small files nor one over many large ones drives out what is used. An entry is what was found at a path and when
//! that was last compared with the disk.

use std::rc::Rc;

use server_base::files::{FileError, Meta, Opened};
use server_base::s3_fifo::S3Fifo;
use sys::prefetch::prefetch;

use super::base_dir::{BaseDir, common_dir};
use super::fetch_ahead::NO_PLACE;
use super::open_path;

/// Limits of a thread's file cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of small files, with what an entry takes beside them.
    pub memory_bytes: u64,
    /// Descriptors.
    pub descriptors: u64,
}

impl Limits {
    /// Share of one thread of `threads` in a process's limits of memory, in bytes, and of descriptors.
    #[must_use]
    pub fn shared(memory_bytes: u64, descriptors: u64, threads: u64) -> Self {
        let threads = threads.max(1);
        let kept = descriptors / KEPT_SHARE / threads;
        Self {
            memory_bytes: memory_bytes / threads,
            descriptors: kept.clamp(KEPT_LEAST, KEPT_MOST),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            descriptors: KEPT_DEFAULT,
        }
    }
}

/// Entries by path.
#[derive(Debug)]
pub(crate) struct Kept {
    entries: S3Fifo<Entry>,
    /// The place that is probably looked for next.
    near: u32,
    /// The place that was used first since `near` was set.
    used: u32,
    /// The directory that most entries lie below, where looks at many come together.
    base: Option<BaseDir>,
}

/// Cached state of a path.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: Box<[u8]>,
    pub(crate) opened: Rc<Opened>,
    pub(crate) used_ms: u64,
    /// The value of the reads' count when it was last compared with the disk.
    pub(crate) checked: u64,
}

/// Result of a look at a path.
pub(crate) enum Check {
    /// Nothing is kept of it.
    Unknown,
    /// The entry at this place is what is there.
    Same(u32),
    /// Something else is there; the entry was removed.
    Changed(Meta),
}

impl Kept {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            entries: S3Fifo::new(limit),
            near: NO_PLACE,
            used: NO_PLACE,
            base: None,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.entries.set_limit(limit);
    }

    pub(crate) fn limit(&self) -> u64 {
        self.entries.limit()
    }

    pub(crate) fn weight(&self) -> u64 {
        self.entries.weight()
    }

    /// More is kept than the limit allows, since it was lowered.
    pub(crate) fn is_over(&self) -> bool {
        self.weight() > self.limit()
    }

    /// Whether an entry of that weight can be kept. Nothing can while too much is, so that no request pays for a limit that
    /// was lowered.
    pub(crate) fn takes(&self, weight: u64) -> bool {
        weight <= self.limit() && !self.is_over()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.limit());
    }

    /// All entries, to ask the processor for their memory.
    #[inline]
    pub(crate) fn entries(&self) -> &S3Fifo<Entry> {
        &self.entries
    }

    /// Sets the place that is probably looked for next, and returns the one that was used first since the last call;
    /// `NO_PLACE` for none.
    #[inline]
    pub(crate) fn set_near(&mut self, place: u32) -> u32 {
        self.near = place;
        std::mem::replace(&mut self.used, NO_PLACE)
    }

    /// A directory that entries lie below is open.
    #[inline]
    pub(crate) fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// Compares the directory that entries lie below with its path.
    #[inline]
    pub(crate) fn check_base(&mut self, input_reads: u64) {
        if let Some(base) = self.base.take() {
            self.base = base.renewed(input_reads);
        }
    }

    /// Opens the directory that some of the entries lie below, unless it is open.
    pub(crate) fn choose_base(&mut self, input_reads: u64) {
        let step = self.entries.slots() / BASE_ENTRIES + 1;
        let places = (0..self.entries.slots() as u32).step_by(step);
        let entries = places.filter_map(|place| self.entries.at(place));
        let dir = common_dir(entries.map(|entry| &*entry.path));
        if dir != self.base.as_ref().map(BaseDir::path) {
            self.base = dir.and_then(|dir| BaseDir::open(dir, input_reads));
        }
    }

    /// Closes it.
    pub(crate) fn close_base(&mut self) {
        self.base = None;
    }

    /// Compares what is kept of a path with the disk; not again while nothing was read since (`input_reads` counts the
    /// reads).
    ///
    /// # Errors
    /// The path cannot be looked at; what was kept of it was removed.
    #[inline]
    pub(crate) fn check(
        &mut self,
        hash: u64,
        path: &[u8],
        input_reads: u64,
        call: &'static str,
    ) -> Result<Check, FileError> {
        // The hash alone tells the entry. Of two paths that have one hash, which is one case in 2^64, the look tells that
        // another file is there: comparing the paths would read memory that nothing else needs.
        let Some(place) = self.entries.find_near(hash, self.near) else {
            return Ok(Check::Unknown);
        };
        let Some(entry) = self.entries.at_mut(place) else {
            return Ok(Check::Unknown);
        };
        if entry.checked == input_reads && *entry.path == *path {
            return Ok(Check::Same(place));
        }
        // Both come while the kernel looks at the path, or the response is made: of one file among many no cache has them.
        prefetch(&*entry.opened);
        let base = self.base.as_ref();
        let from_base = base.and_then(|base| base.describe(path, input_reads, call));
        let meta = match from_base.unwrap_or_else(|| open_path::describe_followed(path, call)) {
            Ok(meta) => meta,
            Err(error) => {
                self.entries.remove(place);
                return Err(error);
            }
        };
        if meta != entry.opened.meta {
            self.entries.remove(place);
            return Ok(Check::Changed(meta));
        }
        prefetch(entry.opened.texts());
        entry.checked = input_reads;
        Ok(Check::Same(place))
    }

    /// The entry at a place, which counts as used.
    #[inline]
    pub(crate) fn use_at(&mut self, place: u32) -> Option<&mut Entry> {
        if self.used == NO_PLACE {
            self.used = place;
        }
        self.entries.use_at(place)
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<Entry> {
        self.entries.remove(place)
    }

    /// The entry at a place, which does not count as used.
    pub(crate) fn at(&mut self, place: u32) -> Option<&mut Entry> {
        self.entries.at_mut(place)
    }

    /// Keeps an entry in the place of others, if it can be kept.
    pub(crate) fn insert(&mut self, hash: u64, weight: u64, entry: Entry) {
        if self.takes(weight)
            && let Ok(place) = self.entries.insert(hash, weight, entry)
            && self.used == NO_PLACE
        {
            self.used = place;
        }
    }

    /// Drops entries beyond a limit that was lowered, at most `most`; returns true if more are beyond it.
    pub(crate) fn shrink(&mut self, most: usize) -> bool {
        for _ in 0..most {
            if self.entries.shrink().is_none() {
                return false;
            }
        }
        self.is_over()
    }

    /// Drops entries unused for a time, at most `most`; returns true if there may be more.
    pub(crate) fn expire(&mut self, now_ms: u64, unused_ms: u64, most: usize) -> bool {
        let mut gone = 0;
        for place in 0..self.entries.slots() as u32 {
            if gone == most {
                return true;
            }
            let entry = self.entries.at_mut(place);
            if entry.is_some_and(|entry| entry.used_ms + unused_ms <= now_ms) {
                self.entries.remove(place);
                gone += 1;
            }
        }
        false
    }
}

/// The part of all descriptors that the process may have which its threads keep for files.
pub const KEPT_SHARE: u64 = 8;

/// The most and the fewest files that a thread keeps open without `open_file_cache`.
pub const KEPT_MOST: u64 = 8192;
/// See [`KEPT_MOST`].
pub const KEPT_LEAST: u64 = 16;

/// The most entries whose paths are compared to find a directory that they lie below: reading all would hold others up.
const BASE_ENTRIES: usize = 256;

/// Capacity before a limit is set.
const KEPT_DEFAULT: u64 = 512;
