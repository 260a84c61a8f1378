//! Open files of one thread: the descriptor is kept, the file on disk stays the truth.
//!
//! A path that was opened before costs one `stat`: when device, inode, size, times, mode and owner
//! are what they were, the kept descriptor and its prebuilt header values serve again; anything else
//! opens anew, so a replaced, truncated, re-permitted or re-linked file shows on the next request.
//! One `stat` serves every request that had been received whole when it was made: `input_received` says that more
//! has come in and ends its validity.
//!
//! A small file that has not changed for `SETTLED_MS` keeps its bytes with the descriptor, under the same check; a
//! younger one is read each time, since a second change within the clock's tick would leave its times as they are.
//! What is written through a shared mapping shows when the kernel updates the times. A location
//! with `open_file_cache` goes by nginx's rules instead (`open_cache`), one with `disable_symlinks`
//! walks the path each time. Absent: directio, read-ahead, bigger-than-memory maps.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use engines::http::{FileHandle, FileRange, http_date};
use server_base::files::{
    Change, FileError, Files, Keep, Meta, OpenPolicy, Opened, SymlinkMode, TempDir, TempFile,
};
use server_http::meters::{self, FileFigures};

use super::lru::Lru;
use super::open_cache::OpenCaches;
use super::open_path::{self, Found, Identity};
use super::send::read_range;

/// The files of one thread.
#[derive(Debug)]
pub struct FileCache {
    entries: Lru<Entry>,
    open_caches: OpenCaches,
    now_ms: u64,
    unix_ms: u64,
    /// Counts reads of sockets.
    heard: u64,
    /// Bytes read since the last read of a socket, by descriptor.
    recent: Vec<(FileHandle, Rc<[u8]>)>,
    /// Counted since the thread began.
    figures: FileFigures,
    /// When the figures are told to the metrics again.
    tell_ms: u64,
}

#[derive(Debug)]
struct Entry {
    identity: Identity,
    opened: Rc<Opened>,
    used_ms: u64,
    /// Value of `heard` when `identity` was last compared with the disk.
    checked: u64,
}

impl FileCache {
    /// Makes an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: Lru::new(),
            open_caches: OpenCaches::new(),
            now_ms: 0,
            unix_ms: 0,
            heard: 0,
            recent: Vec::new(),
            figures: FileFigures::default(),
            tell_ms: 0,
        }
    }

    /// Tells the time, milliseconds that never go back, and the wall clock's, milliseconds since 1970; call it once a
    /// turn of the loop.
    pub fn set_now(&mut self, now_ms: u64, unix_ms: u64) {
        self.now_ms = now_ms;
        self.unix_ms = unix_ms;
    }

    /// Something was received: what was compared with the disk before must be compared again.
    pub fn input_received(&mut self) {
        self.heard += 1;
        self.recent.clear();
    }

    /// Sets the time and closes what was not used for `UNUSED_MS`; call it about once a second.
    pub fn sweep(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        while self
            .entries
            .oldest()
            .is_some_and(|entry| entry.used_ms + UNUSED_MS <= now_ms)
        {
            self.entries.remove_oldest();
        }
        self.open_caches.sweep(now_ms);
        if now_ms >= self.tell_ms || (self.figures.kept > 0 && self.is_empty()) {
            self.tell_ms = now_ms + TELL_MS;
            self.tell();
        }
    }

    /// Tells the metrics what the files are at.
    fn tell(&mut self) {
        self.figures.kept = (self.entries.len() + self.open_caches.len()) as u64;
        let (hits, misses) = self.open_caches.lookups();
        meters::files(&FileFigures {
            kept: self.figures.kept,
            hits: self.figures.hits + hits,
            misses: self.figures.misses + misses,
        });
    }

    /// Closes every descriptor that no request uses, to make room for connections.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.open_caches.clear();
    }

    /// The number of kept files, those of `open_file_cache` not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No file is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.open_caches.is_empty()
    }

    fn open_validated(
        &mut self,
        path: &[u8],
        policy: &OpenPolicy,
    ) -> Result<Rc<Opened>, FileError> {
        if let Some(entry) = self.entries.get(path) {
            if entry.checked == self.heard {
                self.figures.hits += 1;
                entry.used_ms = self.now_ms;
                return Ok(Rc::clone(&entry.opened));
            }
            match open_path::describe(path, &policy.symlinks, "open()") {
                Ok(identity) if identity == entry.identity => {
                    self.figures.hits += 1;
                    entry.used_ms = self.now_ms;
                    entry.checked = self.heard;
                    if !entry.opened.settled && identity.is_settled(self.unix_ms) {
                        entry.settle();
                    }
                    return Ok(Rc::clone(&entry.opened));
                }
                Ok(_) => {}
                Err(error) => {
                    self.entries.remove(path);
                    return Err(error);
                }
            }
        }
        match open_path::open(path, &policy.symlinks) {
            Ok(found) => Ok(self.keep(path, found)),
            Err(error) => {
                self.entries.remove(path);
                Err(error)
            }
        }
    }

    fn keep(&mut self, path: &[u8], found: Found) -> Rc<Opened> {
        self.figures.misses += 1;
        let identity = found.identity;
        let opened = describe_opened(found);
        let entry = Entry {
            identity,
            opened: Rc::clone(&opened),
            used_ms: self.now_ms,
            checked: self.heard,
        };
        if self.entries.len() >= FILE_CACHE_MAX {
            self.entries.remove_oldest();
        }
        self.entries.insert(path, entry);
        opened
    }

    fn open_once(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Rc<Opened>, FileError> {
        if let Some(settings) = &policy.cache {
            return self
                .open_caches
                .open(path, &policy.symlinks, settings, self.now_ms);
        }
        if policy.symlinks.mode == SymlinkMode::Off {
            return self.open_validated(path, policy);
        }
        open_path::open(path, &policy.symlinks).map(describe_opened)
    }
}

impl Entry {
    /// Keeps the bytes of a small file. They are what the identity describes: it was compared before this read, and a
    /// change after it gives another identity.
    fn settle(&mut self) {
        let mut opened = Opened::clone(&self.opened);
        opened.settled = true;
        if let Some(file) = &opened.file {
            opened.content = read_small(file, self.identity.meta.size);
        }
        self.opened = Rc::new(opened);
    }
}

/// Reads a small file whole; `None` if it is not small, empty, or not as long as was said.
fn read_small(file: &FileHandle, size: u64) -> Option<Rc<[u8]>> {
    if size == 0 || size > CONTENT_BYTES {
        return None;
    }
    let range = FileRange {
        file: Rc::clone(file),
        offset: 0,
        len: size,
    };
    let mut bytes = Vec::with_capacity(size as usize);
    read_range(&range, &mut bytes).ok()?;
    Some(bytes.into())
}

impl Default for FileCache {
    fn default() -> Self {
        Self::new()
    }
}

impl Files for FileCache {
    fn open(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Rc<Opened>, FileError> {
        match self.open_once(path, policy) {
            Err(error) if is_out_of_descriptors(error) && !self.is_empty() => {
                self.clear();
                self.open_once(path, policy)
            }
            result => result,
        }
    }

    fn content(&mut self, opened: &Opened) -> Option<Rc<[u8]>> {
        if let Some(content) = &opened.content {
            return Some(Rc::clone(content));
        }
        let file = opened.file.as_ref()?;
        if let Some((_, content)) = self
            .recent
            .iter()
            .find(|(known, _)| Rc::ptr_eq(known, file))
        {
            return Some(Rc::clone(content));
        }
        let content = read_small(file, opened.meta.size)?;
        if self.recent.len() < RECENT_MAX {
            self.recent.push((Rc::clone(file), Rc::clone(&content)));
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
        open_path::describe(path, &policy.symlinks, "stat()").map(|identity| identity.meta)
    }

    fn change(&mut self, change: &Change<'_>) -> Result<(), FileError> {
        // What was found before is not what is found after it, by a request that came in the same read.
        self.input_received();
        server_base::files::apply_change(change)
    }

    fn create_temp(&mut self, dir: &TempDir, mode: u32, keep: Keep) -> Result<TempFile, FileError> {
        match server_base::files::create_temp(dir, mode, keep) {
            Err(error) if is_out_of_descriptors(error) && !self.is_empty() => {
                self.clear();
                server_base::files::create_temp(dir, mode, keep)
            }
            result => result,
        }
    }
}

fn is_out_of_descriptors(error: FileError) -> bool {
    error.errno == libc::EMFILE || error.errno == libc::ENFILE
}

/// Adds the header values to what was found.
pub(crate) fn describe_opened(found: Found) -> Rc<Opened> {
    opened_with(found.fd.map(Rc::new), found.identity.meta)
}

/// The values of a descriptor that is open already.
pub(crate) fn opened_with(file: Option<Rc<OwnedFd>>, meta: Meta) -> Rc<Opened> {
    let etag = format!("\"{:x}-{:x}\"", meta.mtime_s, meta.size);
    Rc::new(Opened {
        file,
        meta,
        content: None,
        settled: false,
        etag: etag.into_bytes().into(),
        last_modified: Rc::from(http_date(meta.mtime_s).as_slice()),
    })
}

/// The most files a thread keeps open without `open_file_cache`.
pub const FILE_CACHE_MAX: usize = 512;

/// Files whose bytes are kept between two reads of sockets without having settled.
const RECENT_MAX: usize = 8;

/// The largest file whose bytes are kept.
pub const CONTENT_BYTES: u64 = 16 << 10;

/// How often the metrics are told.
const TELL_MS: u64 = 1000;

/// A kept file that was not used for this long is closed.
pub const UNUSED_MS: u64 = 5_000;

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
