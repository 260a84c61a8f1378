//! Reads directories and describes links, with the system's own calls.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{DirEntry, ELOOP, ENOENT, FileError, Meta};

/// See [`super::Files::list`].
pub(super) fn list(path: &[u8]) -> Result<Vec<DirEntry>, FileError> {
    let path = Path::new(OsStr::from_bytes(path));
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| error(&e, "opendir()"))? {
        let name = entry.map_err(|e| error(&e, "readdir()"))?.file_name();
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        entries.push(DirEntry {
            meta: describe(&path.join(&name)),
            name: name.into_vec(),
        });
    }
    Ok(entries)
}

/// See [`super::Files::entries`].
pub(super) fn entries(path: &[u8]) -> Result<Vec<DirEntry>, FileError> {
    let path = Path::new(OsStr::from_bytes(path));
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| error(&e, "opendir()"))? {
        let name = entry.map_err(|e| error(&e, "readdir()"))?.file_name();
        entries.push(DirEntry {
            meta: describe_itself(&path.join(&name)),
            name: name.into_vec(),
        });
    }
    Ok(entries)
}

/// See [`super::Files::describe`].
pub(super) fn describe_link(path: &[u8]) -> Result<Meta, FileError> {
    describe_itself(Path::new(OsStr::from_bytes(path)))
}

fn describe_itself(path: &Path) -> Result<Meta, FileError> {
    fs::symlink_metadata(path)
        .map(|m| meta(&m))
        .map_err(|e| error(&e, "lstat()"))
}

fn describe(path: &Path) -> Result<Meta, FileError> {
    match fs::metadata(path).map_err(|e| error(&e, "stat()")) {
        Err(e) if matches!(e.errno, ENOENT | ELOOP) => describe_itself(path),
        found => found.map(|m| meta(&m)),
    }
}

fn meta(m: &Metadata) -> Meta {
    Meta {
        size: m.size(),
        mtime_s: m.mtime(),
        mtime_ns: m.mtime_nsec() as u32,
        ino: m.ino(),
        dev: m.dev(),
        is_dir: m.is_dir(),
        is_file: m.is_file(),
        mode: m.mode(),
        ctime_s: m.ctime(),
        ctime_ns: m.ctime_nsec() as u32,
        uid: m.uid(),
        gid: m.gid(),
    }
}

pub(super) fn error(e: &io::Error, call: &'static str) -> FileError {
    FileError {
        errno: e.raw_os_error().unwrap_or_default(),
        call,
    }
}
