//! Loads the names of a cache's files into its index, in bounded steps.
//!
//! As in nginx, the loader removes three kinds of files: files shorter than a head, names of 32 characters that are no hash,
//! and files beyond `keys_zone`. Unlike nginx, it leaves files and directories alone that no cache names, so that a wrong path
//! costs no data. A file in a subdirectory of other `levels` is removed: no request would find it. So is a temporary file
//! that nothing was written to for [`TEMP_AGE_S`]: its worker was killed.
//!
//! Absent: verification of heads, which is done when a file is opened.

use std::fs::{DirEntry, Metadata, ReadDir};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use crate::directory::Directory;
use crate::disk::HEADER_BYTES;
use crate::index::{Index, Loaded};
use crate::key::EntryId;
use crate::names::{FileName, LEVELS_MAX};
use crate::pace::{Pace, Step};

/// Age of an unused temporary file, seconds.
pub const TEMP_AGE_S: i64 = 86_400;

/// A walk over the files of a directory.
#[derive(Debug)]
pub struct Loader {
    directories: Vec<Listing>,
    counts: LoadCounts,
}

/// A directory that is read.
#[derive(Debug)]
struct Listing {
    names: ReadDir,
    /// Its path below that of the cache, with a slash at its end; empty for that of the cache.
    below: Vec<u8>,
}

/// Numbers of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// New entries of the index.
    pub loaded: u64,
    /// Removed files.
    pub removed: u64,
    /// Other files and directories.
    pub ignored: u64,
    /// Failed operations.
    pub errors: u64,
    /// Text of the first error.
    pub first_error: Option<String>,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    /// Another step is due after this number of milliseconds.
    Again(u64),
    /// All files are loaded, and the index is no longer cold.
    Done,
}

impl Loader {
    /// Begins to load a directory.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn new(directory: &Directory) -> io::Result<Self> {
        Ok(Self {
            directories: vec![Listing {
                names: directory.list(b"")?,
                below: Vec::new(),
            }],
            counts: LoadCounts::default(),
        })
    }

    /// Returns the numbers so far.
    #[must_use]
    pub fn counts(&self) -> &LoadCounts {
        &self.counts
    }

    /// Loads files up to the bounds of a pace. `clock` returns monotonic milliseconds, `now_s` is in seconds since 1970.
    pub fn step(
        &mut self,
        directory: &Directory,
        index: &Index,
        pace: Pace,
        clock: &dyn Fn() -> u64,
        now_s: u32,
    ) -> LoadStep {
        let mut step = Step::new(pace, clock);
        while let Some(listing) = self.directories.last_mut() {
            match listing.names.next() {
                None => {
                    self.directories.pop();
                    continue;
                }
                Some(entry) => {
                    let done = entry.and_then(|entry| self.add(directory, index, &entry, now_s));
                    self.note(done);
                }
            }
            if step.count() {
                return LoadStep::Again(pace.sleep_ms);
            }
        }
        index.set_loaded();
        LoadStep::Done
    }

    fn note(&mut self, done: io::Result<()>) {
        // A file may vanish between its name and its metadata.
        if let Err(error) = done
            && error.kind() != io::ErrorKind::NotFound
        {
            self.counts.errors += 1;
            let text = || error.to_string();
            self.counts.first_error.get_or_insert_with(text);
        }
    }

    /// Loads a name of the innermost directory.
    fn add(
        &mut self,
        directory: &Directory,
        index: &Index,
        entry: &DirEntry,
        now_s: u32,
    ) -> io::Result<()> {
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let name = name.as_bytes();
        let depth = self.directories.len();
        let below = self
            .directories
            .last()
            .map_or(&b""[..], |listing| &listing.below[..]);
        let path = [below, name].concat();
        if kind.is_dir() {
            if depth <= LEVELS_MAX && FileName::is_level(name) {
                let names = directory.list(&path)?;
                let below = [&path[..], b"/"].concat();
                self.directories.push(Listing { names, below });
            } else {
                self.counts.ignored += 1;
            }
            return Ok(());
        }
        let file = FileName::of(name);
        let handling = match file {
            FileName::Foreign => Handling::Ignored,
            FileName::Broken => Handling::Removed,
            FileName::Temp if kind.is_file() && is_old(entry, now_s)? => Handling::Removed,
            FileName::Temp => Handling::Ignored,
            FileName::Entry(id) if kind.is_file() && is_at(directory, &id, &path) => {
                let meta = entry.metadata()?;
                load(directory, index, &id, &meta, now_s)
            }
            FileName::Entry(_) => Handling::Removed,
        };
        // Counted once it is done.
        match handling {
            Handling::Loaded => self.counts.loaded += 1,
            Handling::Ignored => self.counts.ignored += 1,
            Handling::Removed => {
                let remove = || directory.remove_below(&path);
                let removed = match file {
                    // A request may have stored the entry meanwhile.
                    FileName::Entry(id) if is_at(directory, &id, &path) => {
                        index.remove_unused(&id, remove)
                    }
                    _ => Some(remove()),
                };
                match removed {
                    Some(removed) => {
                        removed?;
                        self.counts.removed += 1;
                    }
                    None => self.counts.ignored += 1,
                }
            }
        }
        Ok(())
    }
}

/// The handling of a file.
enum Handling {
    Loaded,
    Ignored,
    Removed,
}

/// Loads the file of an entry.
fn load(
    directory: &Directory,
    index: &Index,
    id: &EntryId,
    meta: &Metadata,
    now_s: u32,
) -> Handling {
    if meta.size() < HEADER_BYTES as u64 {
        return Handling::Removed;
    }
    match index.load(id, directory.blocks(meta), now_s) {
        Loaded::Added => Handling::Loaded,
        Loaded::Known => Handling::Ignored,
        Loaded::Full => Handling::Removed,
    }
}

/// Whether nothing was written to a temporary file for a long time.
fn is_old(entry: &DirEntry, now_s: u32) -> io::Result<bool> {
    Ok(entry.metadata()?.mtime() < i64::from(now_s) - TEMP_AGE_S)
}

/// Whether an entry has this path below the directory.
fn is_at(directory: &Directory, id: &EntryId, path: &[u8]) -> bool {
    let mut expected = Vec::with_capacity(path.len());
    directory.levels().append(id, &mut expected);
    expected == path
}

#[cfg(test)]
#[path = "loader_tests.rs"]
mod tests;
