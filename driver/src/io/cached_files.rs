//! Kept files by their paths: one pool of those whose bytes are in memory, one of those with a descriptor.
//!
//! Both are evicted by S3-FIFO (`server_base::s3_fifo`), one by bytes, the other by number, so that neither a scan over
//! many small files nor one over many large ones drives out what is used. An entry is what was found at a path and when
//! that was last compared with the disk.

use std::rc::Rc;

use server_base::files::{FileError, Meta, Opened};
use server_base::s3_fifo::S3Fifo;
use sys::prefetch::prefetch;

use super::base_dir::{BaseDir, Look, common_dir};
use super::dir_watch::Mark;
use super::open_path::{self, Found};
use super::prefetch::{NO_PLACE, PREFETCHED_FROM};

/// Limits of a thread's file cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of small files, with what an entry takes beside them.
    pub memory_bytes: u64,
    /// Descriptors.
    pub descriptors: u64,
    /// The kernel may be asked to report changes, so that files need no look.
    pub watches: bool,
}

impl Limits {
    /// Share of one thread of `threads` in a process's limits of memory, in bytes, and of descriptors.
    #[must_use]
    pub fn shared(memory_bytes: u64, descriptors: u64, threads: u64) -> Self {
        let threads = threads.max(1);
        let kept = descriptors / DESCRIPTORS_SHARE / threads;
        Self {
            memory_bytes: memory_bytes / threads,
            descriptors: kept.clamp(DESCRIPTORS_LEAST, DESCRIPTORS_MOST),
            ..Self::default()
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            descriptors: DESCRIPTORS_DEFAULT,
            watches: true,
        }
    }
}

/// Entries by path.
#[derive(Debug)]
pub(crate) struct CachedFiles {
    entries: S3Fifo<Entry>,
    /// The place that is probably looked for next.
    guess: u32,
    /// The place that was used first since `guess` was set.
    used: u32,
    /// The directory that most entries lie below, where looks at many come together.
    base: Option<BaseDir>,
    /// Changes below it are to be reported by the kernel.
    watches: bool,
    /// Looks at entries, with those that the kernel's reports spared.
    looks: u64,
}

/// Cached state of a path.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: Box<[u8]>,
    pub(crate) opened: Rc<Opened>,
    pub(crate) used_ms: u64,
    pub(crate) checked: Checked,
}

/// When an entry was last compared with the disk, in the eight bytes that its slot has for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked(u64);

impl Checked {
    /// At this count of reads.
    pub(crate) fn at(input_reads: u64) -> Self {
        Self(input_reads & !MARKED)
    }

    /// When its directory had this mark.
    fn marked(mark: Mark) -> Self {
        Self(MARKED | mark.stamp << PLACE_BITS | u64::from(mark.place))
    }

    #[inline]
    fn mark(self) -> Option<Mark> {
        let mark = Mark {
            place: (self.0 & ((1 << PLACE_BITS) - 1)) as u16,
            stamp: (self.0 & !MARKED) >> PLACE_BITS,
        };
        (self.0 & MARKED != 0).then_some(mark)
    }
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

impl CachedFiles {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            entries: S3Fifo::new(limit),
            guess: NO_PLACE,
            used: NO_PLACE,
            base: None,
            watches: false,
            looks: 0,
        }
    }

    /// Whether the kernel is asked to report changes, where many files are looked at together.
    pub(crate) fn set_watches(&mut self, watches: bool) {
        self.watches = watches;
        if !watches {
            self.end_watch();
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
        let watches = self.watches;
        *self = Self::new(self.limit());
        self.watches = watches;
    }

    /// The number of entries that need no look at this count of reads.
    #[cfg(test)]
    pub(crate) fn unlooked(&self, input_reads: u64) -> usize {
        let places = 0..self.entries.slots() as u32;
        let entries = places.filter_map(|place| self.entries.at(place));
        let marks = entries.filter_map(|entry| entry.checked.mark());
        let base = self.base.as_ref();
        marks
            .filter(|mark| base.is_some_and(|base| base.is_unchanged(*mark, input_reads)))
            .count()
    }

    /// All entries, to ask the processor for their memory.
    #[inline]
    pub(crate) fn entries(&self) -> &S3Fifo<Entry> {
        &self.entries
    }

    /// Sets the place that is probably looked for next, and returns the one that was used first since the last call;
    /// `NO_PLACE` for none.
    #[inline]
    pub(crate) fn set_guess(&mut self, place: u32) -> u32 {
        self.guess = place;
        std::mem::replace(&mut self.used, NO_PLACE)
    }

    /// A directory that entries lie below is open, or watched.
    #[inline]
    pub(crate) fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// A place is guessed for the next look-up.
    #[inline]
    pub(crate) fn has_guess(&self) -> bool {
        self.guess != NO_PLACE
    }

    /// Has the kernel report no changes below the directory.
    pub(crate) fn end_watch(&mut self) {
        if let Some(base) = &mut self.base {
            base.end_watch();
        }
    }

    /// The kernel reports changes below it.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.base.as_ref().is_some_and(BaseDir::is_watched)
    }

    /// Compares the directory that entries lie below with its path.
    #[inline]
    pub(crate) fn check_base(&mut self, input_reads: u64) {
        if let Some(base) = self.base.take() {
            self.base = base.renewed(input_reads);
        }
    }

    /// The number of looks at entries since the last call, with those that the kernel's reports spared.
    pub(crate) fn take_looks(&mut self) -> u64 {
        std::mem::take(&mut self.looks)
    }

    /// Opens the directory that some of the entries lie below, unless it is open. `looks`, `hits` and `misses` are those since the
    /// last call, of these and other entries. The kernel opens files more slowly where it reports changes, so it is to report none
    /// where most requests are misses, and does not begin to where a look serves many requests.
    pub(crate) fn choose_base(&mut self, input_reads: u64, looks: u64, hits: u64, misses: u64) {
        let step = self.entries.slots() / BASE_ENTRIES + 1;
        let places = (0..self.entries.slots() as u32).step_by(step);
        let entries = places.filter_map(|place| self.entries.at(place));
        let dir = common_dir(entries.map(|entry| &*entry.path));
        // A directory above it serves as well, and what is known of changes below that is not lost.
        let base = self.base.as_ref();
        let serves = dir.is_some_and(|dir| base.is_some_and(|base| base.has_below(dir)));
        if !serves {
            self.base = dir.and_then(|dir| BaseDir::open(dir, input_reads));
        }
        if let Some(base) = &mut self.base {
            match self.watches && hits >= misses {
                true => base.sweep_watch(looks * HITS_A_LOOK >= hits),
                false => base.end_watch(),
            }
        }
    }

    /// Closes it, and keeps its watch for a while.
    pub(crate) fn rest_base(&mut self) {
        if self.base.as_mut().is_some_and(|base| !base.rest()) {
            self.base = None;
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
        // The hash alone tells the entry where a look follows. Of two paths that have one hash, which is one case in 2^64, the
        // look tells that another file is there.
        let Some(place) = self.entries.find_near(hash, self.guess) else {
            return Ok(Check::Unknown);
        };
        let Some(entry) = self.entries.at_mut(place) else {
            return Ok(Check::Unknown);
        };
        if entry.checked == Checked::at(input_reads) && *entry.path == *path {
            return Ok(Check::Same(place));
        }
        self.looks += 1;
        // Both come while the kernel looks at the path, or the response is made: of one file among many no cache has them.
        prefetch(&*entry.opened);
        if let (Some(mark), Some(base)) = (entry.checked.mark(), &self.base)
            && base.is_unchanged(mark, input_reads)
            && *entry.path == *path
        {
            prefetch(entry.opened.texts());
            return Ok(Check::Same(place));
        }
        let base = self.base.as_mut();
        let look = base.and_then(|base| base.describe(path, input_reads, call));
        let look = look.unwrap_or_else(|| Look {
            meta: open_path::describe_followed(path, call),
            mark: None,
        });
        let meta = match look.meta {
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
        entry.checked = look.mark.map_or(Checked::at(input_reads), Checked::marked);
        Ok(Check::Same(place))
    }

    /// The place of an entry whose path leads to what was found at this count of reads; one that something else is found for is
    /// removed.
    pub(crate) fn compare(&mut self, hash: u64, found: &Meta, input_reads: u64) -> Option<u32> {
        let place = self.entries.find(hash, |_| true)?;
        let entry = self.entries.at_mut(place)?;
        if *found != entry.opened.meta {
            self.entries.remove(place);
            return None;
        }
        self.looks += 1;
        entry.checked = Checked::at(input_reads);
        Some(place)
    }

    /// Opens a path of which nothing is used.
    ///
    /// # Errors
    /// The path cannot be opened.
    #[inline]
    pub(crate) fn open(
        &self,
        hash: u64,
        path: &[u8],
        input_reads: u64,
    ) -> Result<Found, FileError> {
        // The memory that tells whether it is kept, and is to be kept, has come by the time the file is open. Of few files the
        // processor has it.
        let many = self.entries.len() >= PREFETCHED_FROM;
        let first = many.then(|| self.entries.first(hash)).flatten();
        if let Some(place) = first {
            prefetch(place);
            self.entries
                .admission(hash)
                .inspect(|ghost| prefetch(*ghost));
        }
        let base = self.base.as_ref();
        let from_base = base.and_then(|base| base.open_below(path, input_reads));
        let fd = from_base.unwrap_or_else(|| open_path::open_followed(path))?;
        if let Some(slot) = first.and_then(|place| self.entries.slot(*place)) {
            prefetch(slot);
        }
        open_path::describe_fd(fd)
    }

    /// Whether an entry is worth its place: there is room, or what it is of was asked for a while ago as well.
    pub(crate) fn admits(&mut self, hash: u64, weight: u64) -> bool {
        self.entries.admits(hash, weight)
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

/// Set where an entry is good for as long as its directory has a mark.
const MARKED: u64 = 1 << 63;
/// Bits of the place in a mark.
const PLACE_BITS: u32 = 16;

/// The part of all descriptors that the process may have which its threads keep for files.
pub const DESCRIPTORS_SHARE: u64 = 8;

/// The most and the fewest files that a thread keeps open without `open_file_cache`.
pub const DESCRIPTORS_MOST: u64 = 8192;
/// See [`DESCRIPTORS_MOST`].
pub const DESCRIPTORS_LEAST: u64 = 16;

/// The most entries whose paths are compared to find a directory that they lie below: reading all would hold others up.
const BASE_ENTRIES: usize = 256;

/// Changes begin to be reported where a look serves no more requests than this, on average.
const HITS_A_LOOK: u64 = 4;

/// Capacity before a limit is set.
const DESCRIPTORS_DEFAULT: u64 = 512;
