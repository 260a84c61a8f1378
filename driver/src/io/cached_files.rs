//! Cached files by path: a pool of files with bytes in memory, and a pool of files with a descriptor.
//!
//! Both are evicted by S3-FIFO (`server_base::s3_fifo`), one by bytes, the other by number. So a scan of many small or
//! many large files does not evict popular ones. An entry is the state of a path and its last comparison with the disk.

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
    /// Bytes of small files, with the overhead of their entries.
    pub memory_bytes: u64,
    /// Number of descriptors.
    pub descriptors: u64,
    /// Whether the kernel may be asked to report changes, so that files need no check.
    pub watches: bool,
}

impl Limits {
    /// Returns the share of one of `threads` in a process's limits of memory (bytes) and descriptors.
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
    /// The slot that is probably used next.
    guess: u32,
    /// The first slot that was used since `guess` was set.
    used: u32,
    /// The common directory of most entries, while many lookups come together.
    base: Option<BaseDir>,
    /// Whether the kernel may report changes below `base`.
    watches: bool,
    /// Number of lookups of entries, including those saved by the kernel's reports.
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

/// Time of an entry's last comparison with the disk, in eight bytes: a count of reads, or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked(u64);

impl Checked {
    /// Checked at this count of reads.
    pub(crate) fn at(input_reads: u64) -> Self {
        Self(input_reads & !MARKED)
    }

    /// Checked when the directory had this mark.
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

/// Result of checking a path.
pub(crate) enum Check {
    /// The path has no entry.
    Unknown,
    /// The entry in this slot matches the disk.
    Same(u32),
    /// The disk has another state. The entry was removed.
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

    /// Sets whether the kernel may be asked to report changes, if many files are checked together.
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

    /// Whether the entries exceed a limit that was lowered.
    pub(crate) fn is_over(&self) -> bool {
        self.weight() > self.limit()
    }

    /// Whether an entry of this weight can be cached. If the limit was lowered, none is until sweeps have removed the
    /// excess. So no request pays for the eviction.
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

    /// Returns the number of entries that need no check at this count of reads.
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

    /// Returns all entries, to prefetch their memory.
    #[inline]
    pub(crate) fn entries(&self) -> &S3Fifo<Entry> {
        &self.entries
    }

    /// Sets the slot that is probably used next. Returns the first slot used since the last call, or `NO_PLACE`.
    #[inline]
    pub(crate) fn set_guess(&mut self, place: u32) -> u32 {
        self.guess = place;
        std::mem::replace(&mut self.used, NO_PLACE)
    }

    /// Whether a common directory is open or watched.
    #[inline]
    pub(crate) fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// Whether a slot was guessed for the next lookup.
    #[inline]
    pub(crate) fn has_guess(&self) -> bool {
        self.guess != NO_PLACE
    }

    /// Ends the kernel's reports of changes.
    pub(crate) fn end_watch(&mut self) {
        if let Some(base) = &mut self.base {
            base.end_watch();
        }
    }

    /// Whether the kernel reports changes below the common directory.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.base.as_ref().is_some_and(BaseDir::is_watched)
    }

    /// Checks the path of the common directory.
    #[inline]
    pub(crate) fn check_base(&mut self, input_reads: u64) {
        if let Some(base) = self.base.take() {
            self.base = base.renewed(input_reads);
        }
    }

    /// Returns the number of lookups since the last call, including those saved by the kernel's reports.
    pub(crate) fn take_looks(&mut self) -> u64 {
        std::mem::take(&mut self.looks)
    }

    /// Opens the common directory of a sample of entries, unless it is open. `looks`, `hits` and `misses` are counts of
    /// both pools since the last call. The kernel opens files more slowly in watched directories. So no watch runs
    /// while most requests are misses. None begins while one lookup serves many requests.
    pub(crate) fn choose_base(&mut self, input_reads: u64, looks: u64, hits: u64, misses: u64) {
        let step = self.entries.slots() / BASE_ENTRIES + 1;
        let places = (0..self.entries.slots() as u32).step_by(step);
        let entries = places.filter_map(|place| self.entries.at(place));
        let dir = common_dir(entries.map(|entry| &*entry.path));
        // A directory above it serves as well. Keeping it preserves the recorded changes below it.
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

    /// Closes the common directory, and keeps its watch for a while.
    pub(crate) fn rest_base(&mut self) {
        if self.base.as_mut().is_some_and(|base| !base.rest()) {
            self.base = None;
        }
    }

    /// Closes the common directory and ends its watch.
    pub(crate) fn close_base(&mut self) {
        self.base = None;
    }

    /// Compares the entry of a path with the disk, once per count of reads (`input_reads`).
    ///
    /// # Errors
    /// The path cannot be described. Its entry was removed.
    #[inline]
    pub(crate) fn check(
        &mut self,
        hash: u64,
        path: &[u8],
        input_reads: u64,
        call: &'static str,
    ) -> Result<Check, FileError> {
        // The hash alone selects the entry if a check of the path follows. If two paths have the same hash (1 in 2^64),
        // the check finds another file.
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
        // Prefetched while the kernel describes the path, or the response is built. With many files, neither is in the
        // CPU's cache.
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

    /// Returns the slot of an entry that matches `found`, which was found at this count of reads. Removes an entry that
    /// does not match.
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

    /// Opens a path without a usable entry.
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
        // Prefetches the memory for the table lookup and for the admission, while the kernel opens the file. With few
        // files, the CPU's cache has it.
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

    /// Whether to admit an entry: there is room, or its hash was requested recently (`S3Fifo::admits`).
    pub(crate) fn admits(&mut self, hash: u64, weight: u64) -> bool {
        self.entries.admits(hash, weight)
    }

    /// Returns the entry in a slot and counts a use.
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

    /// Returns the entry in a slot without counting a use.
    pub(crate) fn at(&mut self, place: u32) -> Option<&mut Entry> {
        self.entries.at_mut(place)
    }

    /// Inserts an entry if [`Self::takes`] allows it; evicts others.
    pub(crate) fn insert(&mut self, hash: u64, weight: u64, entry: Entry) {
        if self.takes(weight)
            && let Ok(place) = self.entries.insert(hash, weight, entry)
            && self.used == NO_PLACE
        {
            self.used = place;
        }
    }

    /// Drops at most `most` entries above a lowered limit. Returns true if more remain.
    pub(crate) fn shrink(&mut self, most: usize) -> bool {
        for _ in 0..most {
            if self.entries.shrink().is_none() {
                return false;
            }
        }
        self.is_over()
    }

    /// Drops at most `most` entries that were unused for `unused_ms`. Returns true if there may be more.
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

/// Set if the entry is valid for as long as its directory has a mark.
const MARKED: u64 = 1 << 63;
/// Bits of the slot number in a mark.
const PLACE_BITS: u32 = 16;

/// Divisor of the process's descriptor limit: files of all threads get one eighth.
pub const DESCRIPTORS_SHARE: u64 = 8;

/// Maximum and minimum number of files that a thread keeps open without `open_file_cache`.
pub const DESCRIPTORS_MOST: u64 = 8192;
/// See [`DESCRIPTORS_MOST`].
pub const DESCRIPTORS_LEAST: u64 = 16;

/// Maximum number of entries compared for the common directory. Reading all of them would delay requests.
const BASE_ENTRIES: usize = 256;

/// A watch begins only if a lookup serves at most this many requests on average.
const HITS_A_LOOK: u64 = 4;

/// Number of descriptors before a limit is set.
const DESCRIPTORS_DEFAULT: u64 = 512;
