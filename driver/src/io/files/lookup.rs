//! Opening and describing paths; cached entries are compared with the disk.
//!
//! A cached path costs one `stat` and no open. An unknown path is opened. The hash table that distinguishes them is not
//! in the CPU's cache if many files are cached. So if most lookups miss, a path is opened first and compared with the
//! cache afterwards: the table's memory arrives while the kernel opens the file.

use std::hash::BuildHasher;
use std::rc::Rc;

use server_base::files::{FileError, Meta, Opened};

use super::FileCache;
use crate::io::cached_files::Check;
use crate::io::open_path::{self, Found, is_settled};

impl FileCache {
    /// Opens a path, following links.
    pub(super) fn open_validated(&mut self, path: &[u8]) -> Result<Rc<Opened>, FileError> {
        let hash = self.paths.hash_one(path);
        if self.is_probably_new() {
            return self.open_first(hash, path);
        }
        match self.open_kept(hash, path) {
            Ok(Some(opened)) => return Ok(opened),
            Ok(None) => {}
            Err(error) => {
                self.negative_lookups.record(path, error);
                return Err(error);
            }
        }
        self.open_new(hash, path, |files, found| files.keep(hash, path, found))
    }

    /// Opens a path first, and caches it unless it is cached.
    #[inline(never)] // Keeps its stack frame out of the callers.
    fn open_first(&mut self, hash: u64, path: &[u8]) -> Result<Rc<Opened>, FileError> {
        self.open_new(hash, path, |files, found| {
            let reads = files.input_reads;
            if let Some(place) = files.memory.compare(hash, &found.meta, reads)
                && let Some(opened) = files.hit_memory(place)
            {
                return opened;
            }
            if let Some(place) = files.descriptors.compare(hash, &found.meta, reads)
                && let Some(opened) = files.hit_descriptor(hash, path, place)
            {
                return opened;
            }
            files.keep(hash, path, found)
        })
    }

    /// Opens a path without a usable cache entry, unless it was missing a moment ago.
    #[inline]
    fn open_new(
        &mut self,
        hash: u64,
        path: &[u8],
        then: impl FnOnce(&mut Self, Found) -> Rc<Opened>,
    ) -> Result<Rc<Opened>, FileError> {
        if let Some(error) = self.negative_lookups.find(path, "open()") {
            return Err(error);
        }
        match self.memory.open(hash, path, self.input_reads) {
            Ok(found) => Ok(then(self, found)),
            Err(error) => {
                self.negative_lookups.record(path, error);
                Err(error)
            }
        }
    }

    /// Returns the cached entry of a path if it still matches the disk.
    fn open_kept(&mut self, hash: u64, path: &[u8]) -> Result<Option<Rc<Opened>>, FileError> {
        match self.memory.check(hash, path, self.input_reads, "open()")? {
            Check::Same(place) => return Ok(self.hit_memory(place)),
            Check::Changed(_) => return Ok(None),
            Check::Unknown => {}
        }
        let check = self
            .descriptors
            .check(hash, path, self.input_reads, "open()")?;
        Ok(match check {
            Check::Same(place) => self.hit_descriptor(hash, path, place),
            Check::Changed(_) | Check::Unknown => None,
        })
    }

    /// Uses an entry with bytes, after its comparison with the disk.
    fn hit_memory(&mut self, place: u32) -> Option<Rc<Opened>> {
        self.figures.hits += 1;
        let entry = self.memory.use_at(place)?;
        Some(Rc::clone(&entry.opened))
    }

    /// Uses an entry with a descriptor, after its comparison with the disk.
    #[inline(always)] // Nearly all calls come from one of the two callers.
    fn hit_descriptor(&mut self, hash: u64, path: &[u8], place: u32) -> Option<Rc<Opened>> {
        let entry = self.descriptors.use_at(place)?;
        self.figures.hits += 1;
        entry.used_ms = self.now_ms;
        let opened = Rc::clone(&entry.opened);
        let settles = !opened.settled && is_settled(&opened.meta, self.unix_ms);
        // There may be room again if the limit was 0 or was lowered.
        if settles || opened.settled && self.may_keep(path, &opened.meta) {
            return Some(self.settle(hash, place, &opened));
        }
        Some(opened)
    }

    /// Describes a path. For a cached path, one check serves this call and an open.
    pub(super) fn stat_validated(&mut self, path: &[u8]) -> Result<Meta, FileError> {
        let hash = self.paths.hash_one(path);
        for kept in [&mut self.memory, &mut self.descriptors] {
            match kept.check(hash, path, self.input_reads, "stat()") {
                Ok(Check::Same(place)) => {
                    if let Some(entry) = kept.at(place) {
                        return Ok(entry.opened.meta);
                    }
                }
                Ok(Check::Changed(meta)) => return Ok(meta),
                Ok(Check::Unknown) => {}
                Err(error) => {
                    self.negative_lookups.record(path, error);
                    return Err(error);
                }
            }
        }
        if let Some(error) = self.negative_lookups.find(path, "stat()") {
            return Err(error);
        }
        let result = open_path::describe_followed(path, "stat()");
        if let Err(error) = result {
            self.negative_lookups.record(path, error);
        }
        result
    }
}
