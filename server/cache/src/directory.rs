//! The directory of a cache: the only file of this crate with input and output.
//!
//! A file gets its name when it is whole ([`Directory::publish`]). Later only its binary head changes, in place, as in
//! nginx. Several processes may use a directory: each file is verified when it is opened, and may be missing.
//!
//! Absent: bodies, which requests write and send themselves; temporary files, which `server_base::files` creates.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, ReadDir};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use crate::disk::{HEADER_BYTES, Header, Invalid, Prefix, parse_unknown};
use crate::key::EntryId;
use crate::names::Levels;

/// The first read of a file, bytes.
const READ_BYTES: usize = 4096;
/// Unit of the sizes that the system reports for files, bytes.
const SYSTEM_BLOCK_BYTES: u64 = 512;

/// The directory of a cache.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    levels: Levels,
    block_bytes: u64,
}

/// The begin of a file, for periodic work.
#[derive(Debug)]
pub struct FileStart {
    bytes: Vec<u8>,
    len: u64,
}

impl Directory {
    /// Opens a directory, which exists.
    ///
    /// # Errors
    /// The file system cannot be described.
    pub fn open(path: impl Into<PathBuf>, levels: Levels) -> io::Result<Self> {
        let path = path.into();
        let block_bytes = statvfs(&path)?.f_bsize.max(SYSTEM_BLOCK_BYTES);
        Ok(Self {
            path,
            levels,
            block_bytes,
        })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its levels of subdirectories.
    #[must_use]
    pub fn levels(&self) -> Levels {
        self.levels
    }

    /// Returns the bytes of a block, in which sizes are counted.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Returns the path of an entry.
    #[must_use]
    pub fn path_of(&self, id: &EntryId) -> PathBuf {
        let path = self.levels.path(self.path.as_os_str().as_bytes(), id);
        PathBuf::from(OsStr::from_bytes(&path))
    }

    /// Returns the size of a file on the disk, in blocks.
    #[must_use]
    pub fn blocks(&self, meta: &Metadata) -> u32 {
        let bytes = meta.blocks() * SYSTEM_BLOCK_BYTES;
        u32::try_from(bytes.div_ceil(self.block_bytes)).unwrap_or(u32::MAX)
    }

    /// Returns the bytes that are available to files of the worker.
    ///
    /// # Errors
    /// The file system cannot be described.
    pub fn available_bytes(&self) -> io::Result<u64> {
        let all = statvfs(&self.path)?;
        Ok(all.f_bavail.saturating_mul(all.f_frsize))
    }

    /// Renames a whole file to the path of an entry, and returns its metadata. Subdirectories are created.
    ///
    /// # Errors
    /// The file cannot be renamed, or is on another file system.
    pub fn publish(&self, temp: &Path, id: &EntryId) -> io::Result<Metadata> {
        let path = self.path_of(id);
        match fs::rename(temp, &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().unwrap_or(&self.path);
                let mut builder = DirBuilder::new();
                builder.recursive(true).mode(0o700).create(parent)?;
                fs::rename(temp, &path)?;
            }
            renamed => renamed?,
        }
        fs::symlink_metadata(&path)
    }

    /// Removes the file of an entry. Returns whether it existed.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn remove(&self, id: &EntryId) -> io::Result<bool> {
        exists(fs::remove_file(self.path_of(id)))
    }

    /// Reads the begin of a file, up to its body.
    ///
    /// # Errors
    /// The file is missing or cannot be read.
    pub fn read_start(&self, id: &EntryId) -> io::Result<FileStart> {
        let file = File::open(self.path_of(id))?;
        let len = file.metadata()?.len();
        let mut bytes = Vec::new();
        let mut needed = READ_BYTES;
        loop {
            let at = bytes.len();
            let end = usize::try_from(len).unwrap_or(usize::MAX).min(needed);
            bytes.resize(end.max(at), 0);
            file.read_exact_at(&mut bytes[at..], at as u64)?;
            match parse_unknown(&bytes, len) {
                Err(Invalid::Incomplete { needed: more }) if more > bytes.len() && at < end => {
                    needed = more;
                }
                _ => return Ok(FileStart { bytes, len }),
            }
        }
    }

    /// Replaces the binary head of a file by that of a validated response. Returns whether it was done: another process may
    /// have replaced the file.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn update_header(&self, id: &EntryId, newer: &Header<'_>) -> io::Result<bool> {
        self.change_header(id, |old| {
            let bytes = newer.encode().ok();
            bytes.filter(|_| old.may_update(newer))
        })
    }

    /// Makes the file of an entry stale from `now_s` on, seconds since 1970. Returns whether it was done or needless.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn expire(&self, id: &EntryId, now_s: i64) -> io::Result<bool> {
        self.change_header(id, |old| {
            let valid_s = old.valid_s.min(now_s - 1);
            Header { valid_s, ..*old }.encode().ok()
        })
    }

    fn change_header(
        &self,
        id: &EntryId,
        change: impl FnOnce(&Header<'_>) -> Option<[u8; HEADER_BYTES]>,
    ) -> io::Result<bool> {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path_of(id));
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        let Ok(old) = Header::parse(&bytes) else {
            return Ok(false);
        };
        let Some(newer) = change(&old) else {
            return Ok(false);
        };
        file.write_all_at(&newer, 0)?;
        Ok(true)
    }

    /// Reads the names of a subdirectory, a path below this directory; the directory itself if it is empty.
    pub(crate) fn list(&self, below: &[u8]) -> io::Result<ReadDir> {
        fs::read_dir(self.path.join(OsStr::from_bytes(below)))
    }

    /// Removes a file by its path below this directory.
    pub(crate) fn remove_below(&self, below: &[u8]) -> io::Result<bool> {
        exists(fs::remove_file(self.path.join(OsStr::from_bytes(below))))
    }
}

/// Returns whether the file of a finished operation existed.
fn exists(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true),
    }
}

impl FileStart {
    /// Parses it.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn parse(&self) -> Result<Prefix<'_>, Invalid> {
        parse_unknown(&self.bytes, self.len)
    }
}
