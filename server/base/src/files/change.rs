//! Changes of the file system, made with the system's own calls.
//!
//! A copy is written beside its target and renamed to it, so readers see the old file or the new one, never a part. Absent:
//! owners and extended attributes. As in nginx, copies have bytes, mode and time of their source.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use super::FileError;
use super::listing::error;
use super::temp;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Renames a file or directory, and replaces a file of the new name.
    Rename {
        /// The current name.
        from: &'a [u8],
        /// The new name.
        to: &'a [u8],
    },
    /// Creates or replaces a file with bytes, mode and time of another.
    Copy {
        /// The path of the regular file to copy.
        from: &'a [u8],
        /// The name of the copy.
        to: &'a [u8],
        /// Permission bits of the copy.
        mode: u32,
        /// Its modification time, seconds since 1970.
        modified_s: i64,
    },
    /// Removes a file, a link or a special file.
    Remove(&'a [u8]),
    /// Makes a directory.
    MakeDir {
        /// Its name.
        path: &'a [u8],
        /// Its permission bits, before the umask.
        mode: u32,
    },
    /// Removes an empty directory.
    RemoveDir(&'a [u8]),
    /// Sets permission bits.
    Mode {
        /// Whose.
        path: &'a [u8],
        /// The bits.
        mode: u32,
    },
    /// Sets the modification time.
    Modified {
        /// Whose.
        path: &'a [u8],
        /// Seconds since 1970.
        time_s: i64,
    },
}

impl Change<'_> {
    /// The system call that a failure is logged with, and the path it is about.
    #[must_use]
    pub fn call(&self) -> (&'static str, &[u8]) {
        match *self {
            Self::Rename { from, .. } => ("rename()", from),
            Self::Copy { from, .. } => ("copy", from),
            Self::Remove(path) => ("unlink()", path),
            Self::MakeDir { path, .. } => ("mkdir()", path),
            Self::RemoveDir(path) => ("rmdir()", path),
            Self::Mode { path, .. } => ("chmod()", path),
            Self::Modified { path, .. } => ("utimes()", path),
        }
    }
}

/// Applies a change.
///
/// # Errors
/// The system's error number and call.
pub fn apply(change: &Change<'_>) -> Result<(), FileError> {
    let named = |e: io::Error| error(&e, change.call().0);
    match *change {
        Change::Rename { from, to } => fs::rename(path(from), path(to)).map_err(named),
        Change::Copy {
            from,
            to,
            mode,
            modified_s,
        } => copy(from, to, mode, modified_s),
        Change::Remove(name) => fs::remove_file(path(name)).map_err(named),
        Change::MakeDir { path: name, mode } => {
            let made = DirBuilder::new().mode(mode).create(path(name));
            made.and_then(|()| match beyond_umask(mode) {
                Some(mode) => fs::set_permissions(path(name), mode),
                None => Ok(()),
            })
            .map_err(named)
        }
        Change::RemoveDir(name) => fs::remove_dir(path(name)).map_err(named),
        Change::Mode { path: name, mode } => {
            fs::set_permissions(path(name), Permissions::from_mode(mode)).map_err(named)
        }
        Change::Modified { path: name, time_s } => {
            let file = File::open(path(name)).map_err(named)?;
            file.set_modified(time(time_s)).map_err(named)
        }
    }
}

/// Sets the umask for files of WebDAV, for a process with a stricter umask of its own.
pub fn set_umask(umask: u32) {
    UMASK.store(umask & PERMISSIONS, Ordering::Relaxed);
}

/// The mode to set for a new file, if the process's umask has removed requested permissions.
fn beyond_umask(mode: u32) -> Option<Permissions> {
    let umask = UMASK.load(Ordering::Relaxed);
    let wanted = mode & !umask;
    (umask != OWN_UMASK && wanted & OTHERS_WRITE != 0).then(|| Permissions::from_mode(wanted))
}

static UMASK: AtomicU32 = AtomicU32::new(OWN_UMASK);
/// No other umask is set: the process's own applies.
const OWN_UMASK: u32 = u32::MAX;
/// Permission bits that a stricter umask removes.
const OTHERS_WRITE: u32 = 0o022;

fn copy(from: &[u8], to: &[u8], mode: u32, modified_s: i64) -> Result<(), FileError> {
    // Opening a pipe without a writer must not block the thread; pipes are not copied.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(path(from));
    let mut source = opened.map_err(|e| error(&e, "open()"))?;
    if !source.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(FileError {
            errno: EINVAL,
            call: "open()",
        });
    }
    let name = [to, format!(".{:010}", temp::next_number()).as_bytes()].concat();
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode & PERMISSIONS)
        .open(path(&name))
        .map_err(|e| error(&e, "open()"))?;
    let written = io::copy(&mut source, &mut target)
        .map_err(|e| error(&e, "write()"))
        .and_then(|_| match beyond_umask(mode & PERMISSIONS) {
            Some(mode) => target
                .set_permissions(mode)
                .map_err(|e| error(&e, "chmod()")),
            None => Ok(()),
        })
        .and_then(|_| {
            let set = target.set_modified(time(modified_s));
            set.map_err(|e| error(&e, "utimes()"))
        })
        .and_then(|()| {
            let renamed = fs::rename(path(&name), path(to));
            renamed.map_err(|e| error(&e, "rename()"))
        });
    if written.is_err() {
        let _ = fs::remove_file(path(&name));
    }
    written
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn time(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let moment = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    moment.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Opening does not wait.
const O_NONBLOCK: i32 = 0o4000;
/// Invalid argument.
const EINVAL: i32 = 22;
/// The bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o7777;
