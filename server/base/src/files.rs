//! The file system as servers see it: a trait that the driver implements.
//!
//! The core opens no files itself, so that descriptors can be cached per thread and the simulator can replace the file system.
//! An implementation may cache descriptors, but must notice a file that was replaced, truncated, re-permitted or re-linked on
//! the next call (unless `open_file_cache` is on).

mod change;
mod listing;
mod opened;
mod temp;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use engines::http::{FileRange, SharedBytes};

pub use change::{Change, apply as apply_change, set_umask};
pub use opened::{Opened, TEXTS_BYTES};
pub use temp::{Keep, TempDir, TempError, TempFile, create as create_temp};

/// Metadata of a path: everything that differs after a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meta {
    /// Size in bytes.
    pub size: u64,
    /// Modification time, seconds since 1970.
    pub mtime_s: i64,
    /// Nanoseconds of the modification time.
    pub mtime_ns: u32,
    /// Inode number.
    pub ino: u64,
    /// Device number.
    pub dev: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Whether it is a regular file.
    pub is_file: bool,
    /// Type and permission bits.
    pub mode: u32,
    /// Time of the last change of bytes or metadata, seconds since 1970.
    pub ctime_s: i64,
    /// Nanoseconds of that time.
    pub ctime_ns: u32,
    /// Number of the owner.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
}

/// Why a path could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileError {
    /// The error number of the system.
    pub errno: i32,
    /// The system call that failed, as nginx names it in the log.
    pub call: &'static str,
}

impl FileError {
    /// Whether the file does not exist in the sense that answers 404.
    pub fn is_missing(self) -> bool {
        matches!(self.errno, ENOENT | ENOTDIR | ENAMETOOLONG)
    }

    /// Whether access is denied in the sense that answers 403.
    pub fn is_forbidden(self) -> bool {
        matches!(self.errno, EACCES | EPERM | ELOOP | EMLINK)
    }
}

/// `disable_symlinks`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symlinks {
    /// The rule.
    pub mode: SymlinkMode,
    /// Length of the path's prefix in which links are allowed (`from=`), bytes.
    pub from: usize,
}

/// Which symbolic links are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SymlinkMode {
    /// Links are followed.
    #[default]
    Off,
    /// Any link in the path is refused.
    On,
    /// A link is refused if its owner differs from its target's owner.
    IfNotOwner,
}

/// `open_file_cache` and its companions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFileCache {
    /// Maximum number of elements.
    pub max: usize,
    /// Drop an element not used for this long, milliseconds.
    pub inactive_ms: u64,
    /// Check an element again after this long, milliseconds.
    pub valid_ms: u64,
    /// Uses within `inactive` for a descriptor to stay open.
    pub min_uses: u32,
    /// Whether errors are cached.
    pub errors: bool,
}

/// Options of a path lookup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenPolicy {
    /// Symbolic link rule.
    pub symlinks: Symlinks,
    /// nginx's cache, if the location has one.
    pub cache: Option<OpenFileCache>,
}

/// The file system as servers see it.
pub trait Files {
    /// Opens a path for reading (a directory is only described).
    ///
    /// # Errors
    /// The system's error number and call.
    fn open(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Rc<Opened>, FileError>;

    /// Opens a path for a caller that reads through a descriptor: a regular file has one.
    ///
    /// # Errors
    /// The system's error number and call.
    fn open_descriptor(
        &mut self,
        path: &[u8],
        policy: &OpenPolicy,
    ) -> Result<Rc<Opened>, FileError> {
        self.open(path, policy)
    }

    /// The current bytes of a small file; `None` if the file is better sent from its descriptor.
    fn content(&mut self, opened: &Opened) -> Option<SharedBytes>;

    /// Reads the range of a file for a stage that changes the body.
    ///
    /// # Errors The file cannot be read, or is shorter than the range.
    fn read(&mut self, range: &FileRange) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_into(range, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends the range of a file to a buffer, which is unchanged after an error.
    ///
    /// # Errors
    /// See [`Files::read`].
    fn read_into(&mut self, range: &FileRange, out: &mut Vec<u8>) -> std::io::Result<()> {
        let file = File::from(range.file.try_clone()?);
        let before = out.len();
        out.resize(before + range.len as usize, 0);
        let read = file.read_exact_at(&mut out[before..], range.offset);
        if read.is_err() {
            out.truncate(before);
        }
        read
    }

    /// Describes a path without opening it.
    ///
    /// # Errors
    /// The system's error number and call.
    fn stat(&mut self, path: &[u8], policy: &OpenPolicy) -> Result<Meta, FileError>;

    /// Reads a directory, names that begin with a dot left out, in no order. Links are followed; a dangling link is described
    /// itself.
    ///
    /// # Errors
    /// The system's error number and call.
    fn list(&mut self, path: &[u8]) -> Result<Vec<DirEntry>, FileError> {
        listing::list(path)
    }

    /// Reads a directory, names that begin with a dot as well, but not `.` and `..`; in no order. Links are described
    /// themselves.
    ///
    /// # Errors
    /// The system's error number and call.
    fn entries(&mut self, path: &[u8]) -> Result<Vec<DirEntry>, FileError> {
        listing::entries(path)
    }

    /// Describes a path without following a final link.
    ///
    /// # Errors
    /// The system's error number and call.
    fn describe(&mut self, path: &[u8]) -> Result<Meta, FileError> {
        listing::describe_link(path)
    }

    /// Changes the file system; later calls see the change. By default it is refused.
    ///
    /// # Errors
    /// The system's error number and call.
    fn change(&mut self, change: &Change<'_>) -> Result<(), FileError> {
        Err(FileError {
            errno: EROFS,
            call: change.call().0,
        })
    }

    /// Creates a temporary file. By default it is refused.
    ///
    /// # Errors
    /// The system's error number and call, with the name of the file.
    fn create_temp(&mut self, dir: &TempDir, _: u32, _: Keep) -> Result<TempFile, TempError> {
        Err(TempError {
            error: FileError {
                errno: EROFS,
                call: "open()",
            },
            path: dir.path.clone(),
        })
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// The metadata, or the error of reading it.
    pub meta: Result<Meta, FileError>,
}

/// Operation not permitted.
pub const EPERM: i32 = 1;
/// No such file or directory.
pub const ENOENT: i32 = 2;
/// Input or output error.
pub const EIO: i32 = 5;
/// Permission denied.
pub const EACCES: i32 = 13;
/// Not a directory.
pub const ENOTDIR: i32 = 20;
/// Cross-device link: a file cannot be renamed to another file system.
pub const EXDEV: i32 = 18;
/// Is a directory.
pub const EISDIR: i32 = 21;
/// No space left on device.
pub const ENOSPC: i32 = 28;
/// Read-only file system.
pub const EROFS: i32 = 30;
/// File exists.
pub const EEXIST: i32 = 17;
/// Too many links: the error of `O_NOFOLLOW` on some systems.
pub const EMLINK: i32 = 31;
/// File name too long.
pub const ENAMETOOLONG: i32 = 36;
/// Too many levels of symbolic links.
pub const ELOOP: i32 = 40;
