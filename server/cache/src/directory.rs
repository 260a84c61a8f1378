//! The directory of a cache: the only file of this crate with input and output.
//!
//! A file gets its name when it is whole ([`Directory::publish`]). Later only its binary head changes, in place, as in
//! nginx. Several processes may use a directory: each file is verified when it is opened, and may be missing.
//!
//! Absent: bodies, which requests write and send themselves; temporary files, which `server_base::files` creates, except
//! for copies.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Dir, Mode, OFlags, statvfs};

use crate::disk::{HEADER_BYTES, Header, Invalid, Prefix, parse_unknown};
use crate::key::EntryId;
use crate::names::{Levels, temp_path};

/// The first read of a file, bytes.
const READ_BYTES: usize = 4096;
/// Names that are tried for a temporary file.
const TEMP_TRIES: u32 = 100;
/// Unit of the sizes that the system reports for files, bytes.
const SYSTEM_BLOCK_BYTES: u64 = 512;

/// The directory of a cache.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    levels: Levels,
    block_bytes: u64,
}

/// The begin of a file.
#[derive(Debug, Default)]
pub struct FileStart {
    bytes: Vec<u8>,
    identity: FileIdentity,
}

/// Distinguishes a file from others that have had its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its inode number.
    pub uniq: u64,
    /// Its length, bytes.
    pub len: u64,
}

/// Identity and times of a file: all that differs after a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    identity: FileIdentity,
    changed_s: i64,
    changed_ns: i64,
}

impl FileState {
    /// Returns the state of a file with this metadata.
    #[must_use]
    pub fn of(meta: &Metadata) -> Self {
        Self {
            identity: FileIdentity::of(meta),
            changed_s: meta.ctime(),
            changed_ns: meta.ctime_nsec(),
        }
    }
}

impl FileIdentity {
    /// Returns the identity of a file with this metadata.
    #[must_use]
    pub fn of(meta: &Metadata) -> Self {
        Self {
            uniq: meta.ino(),
            len: meta.size(),
        }
    }
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
        PathBuf::from(OsString::from_vec(self.path_bytes(id)))
    }

    /// Returns the path of an entry, as bytes.
    #[must_use]
    pub fn path_bytes(&self, id: &EntryId) -> Vec<u8> {
        self.levels.path(self.path.as_os_str().as_bytes(), id)
    }

    /// Returns the path of the subdirectory of an entry.
    #[must_use]
    pub fn parent_bytes(&self, id: &EntryId) -> Vec<u8> {
        let mut path = self.path_bytes(id);
        let end = path.iter().rposition(|byte| *byte == b'/');
        path.truncate(end.unwrap_or(0));
        path
    }

    /// Creates the subdirectories of an entry.
    ///
    /// # Errors
    /// A directory cannot be created.
    pub fn create_parents(&self, id: &EntryId) -> io::Result<()> {
        self.create_parent(&self.path_of(id))
    }

    /// Returns the blocks of a file with this size on the disk, in units of 512 bytes (`st_blocks` of stat(2)).
    #[must_use]
    pub fn blocks(&self, units: u64) -> u32 {
        let bytes = units.saturating_mul(SYSTEM_BLOCK_BYTES);
        u32::try_from(bytes.div_ceil(self.block_bytes)).unwrap_or(u32::MAX)
    }

    /// Returns the size of an open file on the disk, in blocks; 0 if it cannot be described.
    pub fn blocks_of(&self, file: impl AsFd) -> u32 {
        let units = rustix::fs::fstat(file).map_or(0, |stat| stat.st_blocks);
        self.blocks(units.unsigned_abs())
    }

    /// Returns the bytes that are available to files of the worker.
    ///
    /// # Errors
    /// The file system cannot be described.
    pub fn available_bytes(&self) -> io::Result<u64> {
        let all = statvfs(&self.path)?;
        Ok(all.f_bavail.saturating_mul(all.f_frsize))
    }

    /// Moves a whole file, opened as `file`, to the path of an entry, and returns its metadata. Subdirectories are created. A
    /// file on another file system is copied first, as in nginx.
    ///
    /// # Errors
    /// The file cannot be renamed or copied.
    pub fn publish(&self, temp: &Path, file: &File, id: &EntryId) -> io::Result<Metadata> {
        // Of the descriptor: another process may replace the file as soon as it has its name.
        let meta = file.metadata()?;
        match self.rename(temp, id) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let meta = self.publish_copy(temp, id)?;
                fs::remove_file(temp)?;
                Ok(meta)
            }
            renamed => renamed.map(|()| meta),
        }
    }

    fn rename(&self, temp: &Path, id: &EntryId) -> io::Result<()> {
        let path = self.path_of(id);
        match fs::rename(temp, &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_parent(&path)?;
                fs::rename(temp, &path)
            }
            renamed => renamed,
        }
    }

    fn create_parent(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap_or(&self.path);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(parent)
    }

    /// Copies a file to a temporary one beside the path of an entry, and renames the copy. Returns its metadata.
    fn publish_copy(&self, source: &Path, id: &EntryId) -> io::Result<Metadata> {
        let path = self.path_of(id);
        self.create_parent(&path)?;
        let (temp, mut copy) = create_temp(&path)?;
        let copied = File::open(source)
            .and_then(|mut source| io::copy(&mut source, &mut copy))
            .and_then(|_| copy.metadata())
            .and_then(|meta| fs::rename(&temp, &path).map(|()| meta));
        if copied.is_err() {
            let _ = fs::remove_file(&temp);
        }
        copied
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
        self.open_entry(id, 0).map(|(_, start)| start)
    }

    /// Opens the file of an entry for a hit, and reads all before its body. `body_start` is the expected length of that
    /// ([`crate::index::StoredEntry::body_start`]), 0 if it is not known.
    ///
    /// The file may be that of another process: purges are checked with the epoch of its inode number
    /// ([`crate::index::StoredEntry::epoch_of`]).
    ///
    /// # Errors
    /// The file is missing or cannot be read.
    pub fn open_entry(&self, id: &EntryId, body_start: u16) -> io::Result<(File, FileStart)> {
        let file = File::open(self.path_of(id))?;
        let identity = FileIdentity::of(&file.metadata()?);
        let start = FileStart::read(&file, identity, body_start)?;
        Ok((file, start))
    }

    /// Returns the state of the file of an entry.
    ///
    /// # Errors
    /// The file is missing.
    pub fn state(&self, id: &EntryId) -> io::Result<FileState> {
        fs::metadata(self.path_of(id)).map(|meta| FileState::of(&meta))
    }

    /// Replaces the binary head of the file that was `validated` by a newer one. Returns whether it was done: the file may
    /// have been replaced since, by another response with equal times and lengths of its head.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn update_header(
        &self,
        id: &EntryId,
        validated: FileIdentity,
        newer: &Header<'_>,
    ) -> io::Result<bool> {
        self.change_header(id, |identity, old| {
            let bytes = newer.encode().ok();
            bytes.filter(|_| identity == validated && old.may_update(newer))
        })
    }

    /// Makes the file of an entry stale from `now_s` on, seconds since 1970; with `seen`, only that file. Returns whether it
    /// was done or needless.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn expire(&self, id: &EntryId, seen: Option<FileIdentity>, now_s: i64) -> io::Result<bool> {
        self.change_header(id, |identity, old| {
            if seen.is_some_and(|seen| seen != identity) {
                return None;
            }
            let valid_s = old.valid_s.min(now_s - 1);
            Header { valid_s, ..*old }.encode().ok()
        })
    }

    fn change_header(
        &self,
        id: &EntryId,
        change: impl FnOnce(FileIdentity, &Header<'_>) -> Option<[u8; HEADER_BYTES]>,
    ) -> io::Result<bool> {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path_of(id));
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let identity = FileIdentity::of(&file.metadata()?);
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        let Ok(old) = Header::parse(&bytes) else {
            return Ok(false);
        };
        let Some(newer) = change(identity, &old) else {
            return Ok(false);
        };
        file.write_all_at(&newer, 0)?;
        Ok(true)
    }

    /// Reads the names of a subdirectory, a path below this directory; the directory itself if it is empty.
    pub(crate) fn list(&self, below: &[u8]) -> io::Result<Dir> {
        let path = self.path.join(OsStr::from_bytes(below));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Dir::new(rustix::fs::open(&path, flags, Mode::empty())?)?)
    }

    /// Removes a file by its path below this directory.
    pub(crate) fn remove_below(&self, below: &[u8]) -> io::Result<bool> {
        exists(fs::remove_file(self.path.join(OsStr::from_bytes(below))))
    }
}

/// Creates a temporary file for an entry with this path.
fn create_temp(path: &Path) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut tries = 0;
    loop {
        // Other processes begin at other numbers.
        let number = std::process::id().wrapping_mul(1 << 12);
        let number = number.wrapping_add(NUMBER.fetch_add(1, Ordering::Relaxed));
        let temp = temp_path(path.as_os_str().as_bytes(), number);
        let temp = PathBuf::from(OsStr::from_bytes(&temp));
        tries += 1;
        match options.open(&temp) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TEMP_TRIES => {}
            opened => return opened.map(|file| (temp, file)),
        }
    }
}

/// Reads bytes at a position until the buffer is full.
fn read_exact_at(file: BorrowedFd<'_>, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *buffer, at))? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => {
                buffer = &mut buffer[len..];
                at += len as u64;
            }
        }
    }
    Ok(())
}

/// Returns whether the file of a finished operation existed.
fn exists(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true),
    }
}

impl FileStart {
    /// Reads all before the body of a file with this identity. `body_start` is that of [`Directory::open_entry`].
    ///
    /// # Errors
    /// The file cannot be read, or is shorter.
    pub fn read(file: impl AsFd, identity: FileIdentity, body_start: u16) -> io::Result<Self> {
        let len = usize::try_from(identity.len).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        let mut needed = match usize::from(body_start) {
            0 => READ_BYTES,
            len => len.max(HEADER_BYTES),
        };
        loop {
            let (at, end) = (bytes.len(), len.min(needed));
            if end <= at {
                return Ok(Self { bytes, identity });
            }
            bytes.resize(end, 0);
            read_exact_at(file.as_fd(), &mut bytes[at..], at as u64)?;
            // A damaged file is noticed when it is parsed.
            let header = Header::parse(&bytes);
            needed = header.map_or(0, |header| usize::from(header.body_start));
        }
    }

    /// Returns the bytes that were read: all before the body, and possibly a part of the body.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Parses it.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn parse(&self) -> Result<Prefix<'_>, Invalid> {
        parse_unknown(&self.bytes, self.identity.len)
    }

    /// Returns the identity of its file.
    #[must_use]
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
