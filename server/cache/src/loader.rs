//! Loads the names of a cache's files into its index, in bounded steps.
//!
//! As in nginx, the loader removes files shorter than a head, and files beyond `keys_zone`. It also removes names of 32
//! characters without a hash. Unlike nginx, it keeps all other names, so that a wrong path costs no data. A file in a
//! subdirectory of other `levels` is removed: no request would find it. Temporary files without a write for
//! [`TEMP_AGE_S`] are removed, too: their worker was killed.
//!
//! Absent: verification of heads, which is done when a file is opened.

use std::io;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Stat, statat};
use rustix::io::Errno;

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
    /// A path that is compared.
    path: Vec<u8>,
    counts: LoadCounts,
}

/// A directory that is read.
#[derive(Debug)]
struct Listing {
    names: Dir,
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
            path: Vec::new(),
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
            match listing.names.read() {
                None => {
                    self.directories.pop();
                    continue;
                }
                Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => continue,
                Some(entry) => {
                    let done = entry.map_err(io::Error::from);
                    let done = done.and_then(|entry| self.add(directory, index, &entry, now_s));
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
        let depth = self.directories.len();
        let Some(listing) = self.directories.last() else {
            return Ok(());
        };
        let name = entry.file_name().to_bytes();
        let kind = match entry.file_type() {
            // Some file systems have it in the metadata alone.
            FileType::Unknown => FileType::from_raw_mode(listing.describe(entry)?.st_mode),
            kind => kind,
        };
        if kind == FileType::Directory {
            if depth <= LEVELS_MAX && FileName::is_level(name) {
                let path = [&listing.below, name].concat();
                let names = directory.list(&path)?;
                let below = [&path[..], b"/"].concat();
                self.directories.push(Listing { names, below });
            } else {
                self.counts.ignored += 1;
            }
            return Ok(());
        }
        let (file, is_file) = (FileName::of(name), kind == FileType::RegularFile);
        let is_in_place = match file {
            FileName::Entry(id) => listing.has_entry(directory, &id, &mut self.path),
            _ => false,
        };
        let handling = match file {
            FileName::Foreign => Handling::Ignored,
            FileName::Broken => Handling::Removed,
            FileName::Temp if is_file && is_old(&listing.describe(entry)?, now_s) => {
                Handling::Removed
            }
            FileName::Temp => Handling::Ignored,
            FileName::Entry(id) if is_file && is_in_place => {
                load(directory, index, &id, &listing.describe(entry)?, now_s)
            }
            FileName::Entry(_) => Handling::Removed,
        };
        // Counted once it is done.
        match handling {
            Handling::Loaded => self.counts.loaded += 1,
            Handling::Ignored => self.counts.ignored += 1,
            Handling::Removed => {
                let path = [&listing.below, name].concat();
                let remove = || directory.remove_below(&path);
                let removed = match file {
                    // A request may have stored the entry meanwhile.
                    FileName::Entry(id) if is_in_place => index.remove_unused(&id, remove),
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

impl Listing {
    /// Describes a name, without following a link.
    fn describe(&self, entry: &DirEntry) -> Result<Stat, Errno> {
        statat(
            self.names.fd()?,
            entry.file_name(),
            AtFlags::SYMLINK_NOFOLLOW,
        )
    }

    /// Whether the file of an entry belongs into this directory. `path` is memory for the comparison.
    fn has_entry(&self, directory: &Directory, id: &EntryId, path: &mut Vec<u8>) -> bool {
        path.clear();
        directory.levels().append(id, path);
        let end = path.iter().rposition(|byte| *byte == b'/');
        path[..end.map_or(0, |end| end + 1)] == *self.below
    }
}

/// The handling of a file.
enum Handling {
    Loaded,
    Ignored,
    Removed,
}

/// Loads the file of an entry.
fn load(directory: &Directory, index: &Index, id: &EntryId, stat: &Stat, now_s: u32) -> Handling {
    if stat.st_size < HEADER_BYTES as i64 {
        return Handling::Removed;
    }
    let blocks = directory.blocks(stat.st_blocks.unsigned_abs());
    match index.load(id, blocks, now_s) {
        Loaded::Added => Handling::Loaded,
        Loaded::Known => Handling::Ignored,
        Loaded::Full => Handling::Removed,
    }
}

/// Whether nothing was written to a temporary file for a long time.
fn is_old(stat: &Stat, now_s: u32) -> bool {
    stat.st_mtime < i64::from(now_s) - TEMP_AGE_S
}

#[cfg(test)]
#[path = "loader_tests.rs"]
mod tests;
