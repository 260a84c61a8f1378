//! Temporary files: numbered, in hashed subdirectories, made with the rights of the worker.
//!
//! Source: nginx documentation, `client_body_temp_path`.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::listing::error;
use super::{EEXIST, ENOENT, FileError};

/// A directory for temporary files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempDir {
    /// Its path.
    pub path: Vec<u8>,
    /// Number of digits of a file's number that name the subdirectory at each level, from the last digit on; 0 for no
    /// level.
    pub levels: [u8; 3],
}

/// The lifetime of a temporary file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// No longer than it takes to make it.
    Nameless,
    /// While the file is used.
    WhileUsed,
    /// For ever.
    Always,
}

/// A temporary file that is being written.
#[derive(Debug)]
pub struct TempFile {
    /// The name it has, or had.
    pub path: Vec<u8>,
    /// The file.
    pub file: File,
    /// Bytes written.
    pub len: u64,
    /// It is removed when it is no longer used.
    remove: bool,
}

impl TempFile {
    /// A file that has no name to take care of.
    #[must_use]
    pub fn unnamed(path: Vec<u8>, file: File) -> Self {
        Self {
            path,
            file,
            len: 0,
            remove: false,
        }
    }

    /// Writes at the end.
    ///
    /// # Errors
    /// Those of the system, a full disk above all.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let written = self.file.write_all_at(bytes, self.len);
        written.map_err(|e| error(&e, "pwrite()"))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// The file has been given another name: there is nothing left to remove.
    pub fn renamed(&mut self) {
        self.remove = false;
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if self.remove {
            let _ = fs::remove_file(Path::new(OsStr::from_bytes(&self.path)));
        }
    }
}

/// Makes a temporary file, and the subdirectories on the way to it.
///
/// # Errors
/// The system's error number and call.
pub fn create(dir: &TempDir, mode: u32, keep: Keep) -> Result<TempFile, FileError> {
    let mut number = next_number();
    for _ in 0..ATTEMPTS {
        let path = dir.name(number);
        match open_new(&path, mode) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                number = NUMBER.fetch_add(STRIDE, Ordering::Relaxed);
            }
            Err(e) if e.raw_os_error() == Some(ENOENT) && dir.levels[0] > 0 => {
                dir.make_levels(number)?;
                let file = open_new(&path, mode).map_err(|e| error(&e, "open()"))?;
                return kept(path, file, keep);
            }
            Err(e) => return Err(error(&e, "open()")),
            Ok(file) => return kept(path, file, keep),
        }
    }
    Err(FileError {
        errno: EEXIST,
        call: "open()",
    })
}

fn open_new(path: &[u8], mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(mode);
    options.open(Path::new(OsStr::from_bytes(path)))
}

fn kept(path: Vec<u8>, file: File, keep: Keep) -> Result<TempFile, FileError> {
    if keep == Keep::Nameless {
        let removed = fs::remove_file(Path::new(OsStr::from_bytes(&path)));
        removed.map_err(|e| error(&e, "unlink()"))?;
    }
    let mut temp = TempFile::unnamed(path, file);
    temp.remove = keep == Keep::WhileUsed;
    Ok(temp)
}

impl TempDir {
    /// The subdirectories of a file, without the last slash; and the file itself.
    fn parts(&self, number: u32) -> (Vec<Vec<u8>>, Vec<u8>) {
        let digits = format!("{number:010}").into_bytes();
        let (mut path, mut end, mut levels) = (self.path.clone(), digits.len(), Vec::new());
        for level in self.levels.iter().take_while(|level| **level > 0) {
            let start = end.saturating_sub(usize::from(*level));
            path.push(b'/');
            path.extend_from_slice(&digits[start..end]);
            levels.push(path.clone());
            end = start;
        }
        path.push(b'/');
        path.extend_from_slice(&digits);
        (levels, path)
    }

    fn name(&self, number: u32) -> Vec<u8> {
        self.parts(number).1
    }

    fn make_levels(&self, number: u32) -> Result<(), FileError> {
        for path in self.parts(number).0 {
            let made = DirBuilder::new()
                .mode(0o700)
                .create(Path::new(OsStr::from_bytes(&path)));
            match made {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(error(&e, "mkdir()"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns the number of the next temporary file, unique in the process.
pub(super) fn next_number() -> u32 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

static NUMBER: AtomicU32 = AtomicU32::new(1);

/// The step to the next number where one is taken: files of an earlier process may lie there close together.
const STRIDE: u32 = 123_456;
/// Numbers tried for one file.
const ATTEMPTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_the_last_digits() {
        let dir = |levels| TempDir {
            path: b"/t".to_vec(),
            levels,
        };
        assert_eq!(dir([0; 3]).name(42), b"/t/0000000042");
        assert_eq!(dir([1, 2, 0]).name(1_234_567), b"/t/7/56/0001234567");
        assert_eq!(dir([1, 2, 3]).name(1_234_567), b"/t/7/56/234/0001234567");
        assert_eq!(dir([3, 3, 3]).name(9), b"/t/009/000/000/0000000009");
    }
}
