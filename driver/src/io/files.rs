//! Cache of open files and of the bytes of small files, one per thread. The disk remains the authority.
//!
//! A path that was opened before costs one `stat`. If device, inode, size, times, mode and owner are unchanged, the
//! cached entry and its prebuilt header values are used. Otherwise the path is opened again. So a replaced, truncated
//! or re-linked file, or one with other permissions, shows on the next request.
//!
//! One `stat` serves all requests that had been received completely before it. `input_received` ends its validity. The
//! same holds for paths without a file (`negative_lookups`). If many small files are requested, the kernel reports
//! changes of their directories instead (`dir_watch`).
//!
//! The bytes of a small file are cached in place of its descriptor once its times are `SETTLED_MS` old
//! (`cached_files`). The limit per thread comes from `open_files_memory`. A younger file is read from its descriptor
//! each time: a second change within one tick of the kernel's clock would leave its times unchanged. Writes through a
//! shared mapping show when the kernel updates the times.
//!
//! Locations with `open_file_cache` follow nginx's rules instead (`open_cache`). With `disable_symlinks` the path is
//! walked each time. Absent: directio, read-ahead, maps larger than memory.

mod lookup;
mod prefetch;

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use engines::http::{FileHandle, FileRange, SharedBytes};
use server_base::files::{
    Change, FileError, Files, Keep, Meta, OpenPolicy, Opened, SymlinkMode, TempDir, TempError,
    TempFile,
};
use server_http::meters::{self, FileFigures};
use sys::page_cache;

use super::cached_files::{CachedFiles, Checked, Entry};
use super::lru::PathHash;
use super::negative_lookups::NegativeLookups;
use super::open_cache::OpenCaches;
use super::open_path::{self, Found, describe_opened, is_settled};
use super::prefetch::Prefetcher;
use super::send::read_range;

pub use super::cached_files::{DESCRIPTORS_LEAST, DESCRIPTORS_MOST, DESCRIPTORS_SHARE, Limits};

/// Cached files of one thread.
#[derive(Debug)]
pub struct FileCache {
    paths: PathHash,
    /// Files with cached bytes.
    memory: CachedFiles,
    /// Files with a descriptor, and directories.
    descriptors: CachedFiles,
    negative_lookups: NegativeLookups,
    /// Prefetches for the requests of a turn; `None` while few files are cached in memory.
    prefetcher: Option<Box<Prefetcher>>,
    /// Whether a turn since the last sweep had many requests.
    has_many: bool,
    open_caches: OpenCaches,
    now_ms: u64,
    unix_ms: u64,
    /// Number of reads of sockets. A check against the disk is valid for one number.
    input_reads: u64,
    /// Bytes read since the last read of a socket, by descriptor.
    recent: Vec<(FileHandle, SharedBytes)>,
    /// Buffer for reading files before their bytes are cached.
    scratch: Vec<u8>,
    /// Counters since the start of the thread.
    figures: FileFigures,
    /// Hits and misses at the last sweep.
    swept: (u64, u64),
    /// Hits at the last comparison with misses.
    compared: u64,
    /// Whether most of the last lookups missed.
    mostly_missed: bool,
    /// Time of the next sweep, monotonic milliseconds.
    sweep_ms: u64,
    /// Time of the next update of the metrics, monotonic milliseconds.
    publish_ms: u64,
}

impl FileCache {
    /// Makes an empty cache.
    #[must_use]
    pub fn new() -> Self {
        let limits = Limits::default();
        Self {
            paths: PathHash::new(),
            memory: CachedFiles::new(limits.memory_bytes),
            descriptors: CachedFiles::new(limits.descriptors),
            negative_lookups: NegativeLookups::default(),
            prefetcher: None,
            has_many: false,
            open_caches: OpenCaches::new(),
            now_ms: 0,
            unix_ms: 0,
            input_reads: 0,
            recent: Vec::new(),
            scratch: Vec::new(),
            figures: FileFigures::default(),
            swept: (0, 0),
            compared: 0,
            mostly_missed: false,
            sweep_ms: 0,
            publish_ms: 0,
        }
    }

    /// Applies the limits of a configuration. Cached entries stay, since they are compared with the disk. Sweeps remove
    /// the entries above the limits, and all caches of `open_file_cache`.
    pub fn configure(&mut self, limits: Limits) {
        self.memory.set_limit(limits.memory_bytes);
        self.memory.set_watches(limits.watches);
        self.descriptors.set_limit(limits.descriptors);
        self.open_caches.retire();
        self.prefetcher = None;
        self.sweep_ms = 0;
    }

    /// Sets the monotonic time and the wall clock (since 1970), both in milliseconds. Call it once per turn of the
    /// loop.
    pub fn set_now(&mut self, now_ms: u64, unix_ms: u64) {
        self.now_ms = now_ms;
        self.unix_ms = unix_ms;
    }

    /// Ends the validity of all checks against the disk, since bytes were received.
    pub fn input_received(&mut self) {
        self.input_reads += 1;
        self.recent.clear();
        self.negative_lookups.clear();
    }

    /// Returns the time of the next sweep, or `None` if there is nothing to sweep.
    #[must_use]
    pub fn sweep_due(&self) -> Option<u64> {
        let is_due = !self.is_empty() || self.memory.is_over() || self.memory.has_base();
        is_due.then_some(self.sweep_ms)
    }

    /// Sets the time. If a sweep is due, closes files unused for `UNUSED_MS` and drops entries above the limits. A
    /// sweep does a bounded part of this; if more remains, the next sweep is due at once.
    pub fn sweep(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        if now_ms < self.sweep_ms {
            return;
        }
        let more = [
            self.descriptors.expire(now_ms, UNUSED_MS, RELEASED_MAX),
            self.descriptors.shrink(RELEASED_MAX),
            self.memory.shrink(RELEASED_MAX),
            self.open_caches.sweep(now_ms, RELEASED_MAX),
        ];
        self.sweep_ms = match more.contains(&true) {
            true => now_ms,
            false => {
                self.choose_base();
                now_ms + SWEEP_MS
            }
        };
        if now_ms >= self.publish_ms || (self.figures.kept > 0 && self.is_empty()) {
            self.publish_ms = now_ms + PUBLISH_MS;
            self.publish_figures();
        }
    }

    /// Publishes the counters of the file cache to the metrics.
    fn publish_figures(&mut self) {
        self.figures.kept = (self.descriptors.len() + self.open_caches.len()) as u64;
        let (hits, misses) = self.open_caches.lookups();
        meters::files(&FileFigures {
            kept: self.figures.kept,
            hits: self.figures.hits + hits,
            misses: self.figures.misses + misses,
            memory_bytes: self.memory.weight(),
        });
    }

    /// Closes every descriptor that no request uses, to make room for connections.
    pub fn clear(&mut self) {
        self.memory.close_base();
        self.descriptors.clear();
        self.open_caches.clear();
    }

    /// Drops all cached files and buffers.
    pub fn relieve(&mut self) {
        self.clear();
        self.memory.clear();
        self.prefetcher = None;
        self.recent = Vec::new();
        self.scratch = Vec::new();
    }

    /// Returns the number of files with a descriptor, without those of `open_file_cache`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// No descriptor is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.open_caches.is_empty()
    }

    /// Returns the memory of cached files that counts towards `open_files_memory`, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.weight()
    }

    /// Caches an opened path. A settled small file is read and closed at once. Reading costs as much as sending from
    /// the descriptor.
    fn keep(&mut self, hash: u64, path: &[u8], found: Found) -> Rc<Opened> {
        self.count_miss();
        if let Some(fd) = &found.fd
            && is_settled(&found.meta, self.unix_ms)
            && let Some(opened) = self.read_for_keeping(path, fd, &found.meta)
        {
            // The bytes are read even if they are not admitted, into memory that is still in the CPU's cache.
            if self.memory.admits(hash, weight(path, found.meta.size)) {
                self.keep_in_memory(hash, path.into(), &opened);
            }
            return opened;
        }
        let opened = describe_opened(found);
        let entry = Entry {
            path: path.into(),
            opened: Rc::clone(&opened),
            used_ms: self.now_ms,
            checked: Checked::at(self.input_reads),
        };
        self.descriptors.insert(hash, 1, entry);
        opened
    }

    /// Replaces the descriptor of a settled small file with its bytes. The bytes match `meta`: `meta` was compared
    /// before the read, and a later change would give the file other times.
    fn settle(&mut self, hash: u64, place: u32, opened: &Opened) -> Rc<Opened> {
        let mut settled = opened.clone();
        settled.settled = true;
        let Some(entry) = self.descriptors.use_at(place) else {
            return Rc::new(settled);
        };
        let path = std::mem::take(&mut entry.path);
        let kept = opened.file.as_ref();
        let kept = kept.and_then(|file| self.read_for_keeping(&path, file, &opened.meta));
        if let Some(kept) = kept {
            self.descriptors.remove(place);
            self.keep_in_memory(hash, path, &kept);
            return kept;
        }
        let settled = Rc::new(settled);
        if let Some(entry) = self.descriptors.use_at(place) {
            (entry.path, entry.opened) = (path, Rc::clone(&settled));
        }
        settled
    }

    fn keep_in_memory(&mut self, hash: u64, path: Box<[u8]>, opened: &Rc<Opened>) {
        let weight = weight(&path, opened.meta.size);
        let entry = Entry {
            path,
            opened: Rc::clone(opened),
            used_ms: self.now_ms,
            checked: Checked::at(self.input_reads),
        };
        self.memory.insert(hash, weight, entry);
    }

    /// Reads a file that may be cached. Returns `None` if it is too large, or its length is not the one in `meta`.
    fn read_for_keeping(&mut self, path: &[u8], fd: impl AsFd, meta: &Meta) -> Option<Rc<Opened>> {
        if !self.may_keep(path, meta) {
            return None;
        }
        // Only the page cache is read, since a disk could delay other requests. Other bytes are read when they are
        // sent.
        let read = |out: &mut Vec<u8>| page_cache::append_cached(fd, 0, meta.size, out).ok();
        Opened::with_content(*meta, &mut self.scratch, read).map(Rc::new)
    }

    fn may_keep(&self, path: &[u8], meta: &Meta) -> bool {
        let is_small = meta.is_file && meta.size <= CONTENT_BYTES;
        is_small && self.memory.takes(weight(path, meta.size))
    }

    fn open_once(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Rc<Opened>, FileError> {
        if let Some(settings) = &policy.cache {
            return self
                .open_caches
                .open(path, &policy.symlinks, settings, self.now_ms);
        }
        if policy.symlinks.mode == SymlinkMode::Off {
            return self.open_validated(path);
        }
        open_path::open(path, &policy.symlinks).map(describe_opened)
    }

    /// Retries a call after closing cached descriptors, if it failed for lack of descriptors.
    fn with_room<T>(
        &mut self,
        mut call: impl FnMut(&mut Self) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        match call(self) {
            Err(error) if is_out_of_descriptors(error) && !self.is_empty() => {
                self.clear();
                call(self)
            }
            result => result,
        }
    }
}

/// Returns the memory of a file that counts towards `open_files_memory`, in bytes.
fn weight(path: &[u8], size: u64) -> u64 {
    ENTRY_BYTES + path.len() as u64 + size
}

/// Reads a whole small file. Returns `None` if it is empty, large, not in the page cache, or not `size` bytes long.
fn read_small(file: &FileHandle, size: u64) -> Option<SharedBytes> {
    if size == 0 || size > CONTENT_BYTES {
        return None;
    }
    let range = FileRange {
        file: Rc::clone(file),
        offset: 0,
        len: size,
    };
    let mut bytes = Vec::with_capacity(size as usize);
    // Only from the page cache, as in `read_for_keeping`.
    page_cache::append_cached(range.file.as_ref(), 0, size, &mut bytes).ok()?;
    Some(bytes.as_slice().into())
}

impl Default for FileCache {
    fn default() -> Self {
        Self::new()
    }
}

impl Files for FileCache {
    fn open(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Rc<Opened>, FileError> {
        self.with_room(|files| files.open_once(path, policy))
    }

    fn open_descriptor(
        &mut self,
        path: &[u8],
        policy: &OpenPolicy,
    ) -> Result<Rc<Opened>, FileError> {
        let opened = self.open(path, policy)?;
        if opened.file.is_some() || !opened.meta.is_file {
            return Ok(opened);
        }
        self.with_room(|_| open_path::open(path, &policy.symlinks).map(describe_opened))
    }

    fn content(&mut self, opened: &Opened) -> Option<SharedBytes> {
        if let Some(content) = opened.content() {
            return Some(content);
        }
        let file = opened.file.as_ref()?;
        if let Some((_, content)) = self
            .recent
            .iter()
            .find(|(known, _)| Rc::ptr_eq(known, file))
        {
            return Some(content.clone());
        }
        let content = read_small(file, opened.meta.size)?;
        if self.recent.len() < RECENT_MAX {
            self.recent.push((Rc::clone(file), content.clone()));
        }
        Some(content)
    }

    fn read_into(&mut self, range: &FileRange, out: &mut Vec<u8>) -> io::Result<()> {
        read_range(range, out)
    }

    fn stat(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Meta, FileError> {
        if policy.cache.is_some() {
            return self.open(path, policy).map(|opened| opened.meta);
        }
        if policy.symlinks.mode == SymlinkMode::Off {
            return self.stat_validated(path);
        }
        open_path::describe(path, &policy.symlinks, "stat()")
    }

    fn change(&mut self, change: &Change<'_>) -> Result<(), FileError> {
        // A request from the same read as this one must see the change.
        self.input_received();
        server_base::files::apply_change(change)
    }

    fn create_temp(&mut self, dir: &TempDir, mode: u32, keep: Keep) -> Result<TempFile, TempError> {
        let mut path = Vec::new();
        let made = self.with_room(|_| {
            server_base::files::create_temp(dir, mode, keep).map_err(|error| {
                path = error.path;
                error.error
            })
        });
        made.map_err(|error| TempError { error, path })
    }
}

fn is_out_of_descriptors(error: FileError) -> bool {
    error.errno == libc::EMFILE || error.errno == libc::ENFILE
}

/// Maximum number of files whose bytes are kept between two reads of sockets before they have settled.
const RECENT_MAX: usize = 8;

/// Size of the largest file with cached bytes.
pub const CONTENT_BYTES: u64 = 16 << 10;

/// Memory of a cached file besides its bytes and path, in bytes: the entry, the open file, the values of two header
/// fields, hash chain, ghost, and the allocator's overhead for three allocations.
pub const ENTRY_BYTES: u64 = 384;

/// Interval between updates of the metrics, milliseconds.
const PUBLISH_MS: u64 = 1000;
/// Time after which an unused file is closed by the next sweep, milliseconds.
pub const UNUSED_MS: u64 = 4_000;
/// Time between sweeps, milliseconds.
pub const SWEEP_MS: u64 = 1_000;
/// Maximum number of entries of each kind freed in one sweep. Closing a file takes up to a microsecond of CPU time.
pub const RELEASED_MAX: usize = 256;

#[cfg(test)]
#[path = "files_tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "files_memory_tests.rs"]
mod memory_tests;
