//! Open files of one thread: the descriptor is kept, the file on disk stays the truth.
//!
//! A path that was opened before costs one `stat`: when device, inode, size, times, mode and owner
//! are what they were, the kept descriptor and its prebuilt header values serve again; anything else
//! opens anew, so a replaced, truncated, re-permitted or re-linked file shows on the next request.
//! What is written into the same file shows anyway, since the descriptor is that file. A location
//! with `open_file_cache` goes by nginx's rules instead (`open_cache`), one with `disable_symlinks`
//! walks the path each time. Absent: directio, read-ahead, bigger-than-memory maps.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use engines::http::http_date;
use server_core::{FileError, Files, Meta, OpenPolicy, Opened, SymlinkMode};

use super::lru::Lru;
use super::open_cache::OpenCaches;
use super::open_path::{self, Found, Identity};

/// The files of one thread.
#[derive(Debug)]
pub struct FileCache {
    entries: Lru<Entry>,
    open_caches: OpenCaches,
    now_ms: u64,
}

#[derive(Debug)]
struct Entry {
    identity: Identity,
    opened: Rc<Opened>,
    used_ms: u64,
}

impl FileCache {
    /// Makes an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: Lru::new(),
            open_caches: OpenCaches::new(),
            now_ms: 0,
        }
    }

    /// Tells the time, milliseconds that never go back; call it once a turn.
    pub fn set_now(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
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
        self.len() == 0
    }

    fn open_validated(
        &mut self,
        path: &[u8],
        policy: &OpenPolicy,
    ) -> Result<Rc<Opened>, FileError> {
        if let Some(entry) = self.entries.get(path) {
            match open_path::describe(path, &policy.symlinks, "open()") {
                Ok(identity) if identity == entry.identity => {
                    entry.used_ms = self.now_ms;
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
        let identity = found.identity;
        let opened = describe_opened(found);
        let entry = Entry {
            identity,
            opened: Rc::clone(&opened),
            used_ms: self.now_ms,
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

    fn stat(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Meta, FileError> {
        if policy.cache.is_some() {
            return self.open(path, policy).map(|opened| opened.meta);
        }
        open_path::describe(path, &policy.symlinks, "stat()").map(|identity| identity.meta)
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
        etag: etag.into_bytes().into(),
        last_modified: Rc::from(http_date(meta.mtime_s).as_slice()),
    })
}

/// The most files a thread keeps open without `open_file_cache`.
pub const FILE_CACHE_MAX: usize = 512;

/// A kept file that was not used for this long is closed.
pub const UNUSED_MS: u64 = 5_000;

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
