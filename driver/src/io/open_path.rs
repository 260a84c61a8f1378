//! Opening and describing one path, with and without symbolic links.
//!
//! With `disable_symlinks` the path is walked by component. Each component is opened relative to the one before, so
//! none can be swapped between check and use. A link to a directory fails with ENOTDIR, a link to a file with ELOOP, as
//! in nginx on Linux. Source: nginx documentation, `disable_symlinks`; openat(2).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use server_base::files::{FileError, Meta, Opened, SymlinkMode, Symlinks};
use sys::retry;

/// An opened path, and its metadata from fstat(2).
pub(crate) struct Found {
    /// The descriptor; `None` for a directory.
    pub(crate) fd: Option<OwnedFd>,
    pub(crate) meta: Meta,
}

/// Converts the result of stat(2).
pub(crate) fn meta_of(stat: &Stat) -> Meta {
    let file_type = FileType::from_raw_mode(stat.st_mode);
    Meta {
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime_s: stat.st_mtime,
        mtime_ns: nanoseconds(stat.st_mtime_nsec),
        ino: stat.st_ino,
        dev: stat.st_dev,
        is_dir: file_type == FileType::Directory,
        is_file: file_type == FileType::RegularFile,
        mode: stat.st_mode,
        ctime_s: stat.st_ctime,
        ctime_ns: nanoseconds(stat.st_ctime_nsec),
        uid: stat.st_uid,
        gid: stat.st_gid,
    }
}

/// Whether a file's last change is old enough that any later change alters its times.
pub(crate) fn is_settled(meta: &Meta, unix_ms: u64) -> bool {
    let newest_s = meta.mtime_s.max(meta.ctime_s);
    u64::try_from(newest_s)
        .is_ok_and(|s| s.saturating_mul(1000).saturating_add(SETTLED_MS) <= unix_ms)
}

/// Adds prebuilt header values to an opened path.
pub(crate) fn describe_opened(found: Found) -> Rc<Opened> {
    Rc::new(Opened::new(found.fd.map(Rc::new), found.meta))
}

/// Opens `path` for reading and describes it; a directory is only described.
pub(crate) fn open(path: &[u8], symlinks: &Symlinks) -> Result<Found, FileError> {
    describe_fd(open_fd(path, symlinks)?)
}

/// Opens `path` for reading relative to an open directory, following links.
pub(crate) fn open_below(dir: impl AsFd, path: &[u8]) -> Result<OwnedFd, FileError> {
    open_file_at(dir.as_fd(), path, READ).map_err(failed("open()"))
}

/// Describes an open descriptor.
pub(crate) fn describe_fd(fd: OwnedFd) -> Result<Found, FileError> {
    let stat = rustix::fs::fstat(&fd).map_err(failed("fstat()"))?;
    let meta = meta_of(&stat);
    let fd = (!meta.is_dir).then_some(fd);
    Ok(Found { fd, meta })
}

/// Describes `path`; `call` is the name used in an error.
pub(crate) fn describe(
    path: &[u8],
    symlinks: &Symlinks,
    call: &'static str,
) -> Result<Meta, FileError> {
    if symlinks.mode != SymlinkMode::Off {
        return open(path, symlinks).map(|found| found.meta);
    }
    describe_followed(path, call)
}

/// Describes `path`, following links.
pub(crate) fn describe_followed(path: &[u8], call: &'static str) -> Result<Meta, FileError> {
    let stat = retry(|| rustix::fs::stat(path)).map_err(failed(call))?;
    Ok(meta_of(&stat))
}

/// Opens `path` for reading, following links.
#[inline]
pub(crate) fn open_followed(path: &[u8]) -> Result<OwnedFd, FileError> {
    retry(|| rustix::fs::open(path, READ, Mode::empty())).map_err(failed("open()"))
}

fn open_fd(path: &[u8], symlinks: &Symlinks) -> Result<OwnedFd, FileError> {
    match symlinks.mode {
        SymlinkMode::Off => open_followed(path),
        SymlinkMode::On => walk(path, symlinks.from, open_no_link),
        SymlinkMode::IfNotOwner => walk(path, symlinks.from, open_same_owner),
    }
}

type OpenAt = fn(BorrowedFd<'_>, &[u8], OFlags) -> Result<OwnedFd, Errno>;

fn walk(path: &[u8], from: usize, open_at: OpenAt) -> Result<OwnedFd, FileError> {
    let (start, rest) = start_of(path, from)?;
    let mut at = start;
    let mut names = rest.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let here = at.as_ref().map_or(CWD, AsFd::as_fd);
        if names.peek().is_none() {
            // A trailing slash means the directory itself.
            let fd = match name {
                b"" => open_file_at(here, b".", READ),
                name => open_at(here, name, READ),
            };
            return fd.map_err(failed("openat()"));
        }
        if !name.is_empty() {
            at = Some(open_at(here, name, SEARCH).map_err(failed("openat()"))?);
        }
    }
    Err(FileError {
        errno: Errno::NOENT.raw_os_error(),
        call: "openat()",
    })
}

/// Returns the directory where the walk starts, and the rest of the path.
fn start_of(path: &[u8], from: usize) -> Result<(Option<OwnedFd>, &[u8]), FileError> {
    if from > 0 && path.get(from) == Some(&b'/') {
        let fd = retry(|| rustix::fs::open(&path[..from], SEARCH, Mode::empty()))
            .map_err(failed("open()"))?;
        return Ok((Some(fd), &path[from + 1..]));
    }
    match path.strip_prefix(b"/") {
        Some(rest) => {
            let fd = retry(|| rustix::fs::open("/", SEARCH, Mode::empty()))
                .map_err(failed("openat()"))?;
            Ok((Some(fd), rest))
        }
        None => Ok((None, path)),
    }
}

fn open_file_at(at: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    retry(|| rustix::fs::openat(at, name, flags, Mode::empty()))
}

fn open_no_link(at: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    open_file_at(at, name, flags | OFlags::NOFOLLOW)
}

/// Opens through a link, and compares the owners of the link and of the opened file. They are compared even if the name
/// is no link now, because it may have been one at the open.
fn open_same_owner(at: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let fd = open_file_at(at, name, flags)?;
    let link = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let target = rustix::fs::fstat(&fd)?;
    if link.st_uid == target.st_uid {
        Ok(fd)
    } else {
        Err(Errno::LOOP)
    }
}

pub(crate) fn failed(call: &'static str) -> impl Fn(Errno) -> FileError {
    move |errno| FileError {
        errno: errno.raw_os_error(),
        call,
    }
}

fn nanoseconds(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or(0)
}

/// Non-blocking, so that opening a FIFO does not wait for a writer.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
/// For lookups relative to the descriptor of a directory.
pub(crate) const SEARCH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Age from which on every further change alters a file's times, even on file systems with a resolution of a second.
/// Milliseconds.
pub(crate) const SETTLED_MS: u64 = 3000;
