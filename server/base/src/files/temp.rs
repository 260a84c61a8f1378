//! Temporary files: numbered, in hashed subdirectories, made with the rights of the worker.
//!
//! Source: nginx documentation, `client_body_temp_path`.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use engines::http::FileHandle;
use rustix::io::{Errno, pwrite};

use super::listing::error;
use super::{EEXIST, EIO, ENOENT, FileError};

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
    /// Removed at once after the creation.
    Nameless,
    /// Removed at the end of its use.
    WhileUsed,
    /// Never removed.
    Always,
}

/// A temporary file that is being written.
#[derive(Debug)]
pub struct TempFile {
    /// The name it has, or had.
    pub path: Vec<u8>,
    /// The file. Ranges of a body that are sent share this descriptor.
    pub file: FileHandle,
    /// Bytes written.
    pub len: u64,
    /// Removes its name at the end of its use, if it has one to remove.
    name: Option<Rc<RemovedName>>,
}

/// The name of a file, removed when the last owner is dropped.
#[derive(Debug)]
struct RemovedName {
    path: Vec<u8>,
    is_renamed: Cell<bool>,
}

impl TempFile {
    /// A file without a name to remove.
    #[must_use]
    pub fn unnamed(path: Vec<u8>, file: File) -> Self {
        Self {
            path,
            file: Rc::new(OwnedFd::from(file)),
            len: 0,
            name: None,
        }
    }

    /// A second owner of a file that is written whole. Its name is removed with the last owner.
    #[must_use]
    pub fn share(&self) -> Self {
        Self {
            path: self.path.clone(),
            file: Rc::clone(&self.file),
            len: self.len,
            name: self.name.clone(),
        }
    }

    /// Writes at the end.
    ///
    /// # Errors
    /// Those of the system, a full disk above all.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = self.len + (bytes.len() - rest.len()) as u64;
            match pwrite(&self.file, rest, at) {
                Ok(0) => return Err(failed("pwrite()", EIO)),
                Ok(n) => rest = &rest[n..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("pwrite()", errno.raw_os_error())),
            }
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// The file was renamed and is not removed.
    pub fn renamed(&mut self) {
        if let Some(name) = &self.name {
            name.is_renamed.set(true);
        }
    }
}

impl Drop for RemovedName {
    fn drop(&mut self) {
        if !self.is_renamed.get() {
            let _ = fs::remove_file(Path::new(OsStr::from_bytes(&self.path)));
        }
    }
}

/// The error of creating a temporary file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempError {
    /// The error number and the call.
    pub error: FileError,
    /// The file or directory that the call named.
    pub path: Vec<u8>,
}

/// Creates a temporary file and its missing subdirectories.
///
/// # Errors
/// The system's error number and call, with the name of the file.
pub fn create(dir: &TempDir, mode: u32, keep: Keep) -> Result<TempFile, TempError> {
    let mut number = next_number();
    for _ in 0..ATTEMPTS {
        let path = dir.name(number);
        match open_new(&path, mode) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                number = NUMBER.fetch_add(STRIDE, Ordering::Relaxed);
            }
            Err(e) if e.raw_os_error() == Some(ENOENT) && dir.levels[0] > 0 => {
                dir.make_levels(number)?;
                return match open_new(&path, mode) {
                    Ok(file) => temp_file(path, file, keep),
                    Err(e) => Err(temp_error(&e, "open()", path)),
                };
            }
            Err(e) => return Err(temp_error(&e, "open()", path)),
            Ok(file) => return temp_file(path, file, keep),
        }
    }
    Err(TempError {
        error: failed("open()", EEXIST),
        path: dir.name(number),
    })
}

fn temp_error(e: &io::Error, call: &'static str, path: Vec<u8>) -> TempError {
    TempError {
        error: error(e, call),
        path,
    }
}

fn failed(call: &'static str, errno: i32) -> FileError {
    FileError { errno, call }
}

fn open_new(path: &[u8], mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(mode);
    options.open(Path::new(OsStr::from_bytes(path)))
}

fn temp_file(path: Vec<u8>, file: File, keep: Keep) -> Result<TempFile, TempError> {
    if keep == Keep::Nameless
        && let Err(e) = fs::remove_file(Path::new(OsStr::from_bytes(&path)))
    {
        return Err(temp_error(&e, "unlink()", path));
    }
    let name = (keep == Keep::WhileUsed).then(|| {
        Rc::new(RemovedName {
            path: path.clone(),
            is_renamed: Cell::new(false),
        })
    });
    let mut temp = TempFile::unnamed(path, file);
    temp.name = name;
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

    fn make_levels(&self, number: u32) -> Result<(), TempError> {
        for path in self.parts(number).0 {
            let made = DirBuilder::new()
                .mode(0o700)
                .create(Path::new(OsStr::from_bytes(&path)));
            match made {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(temp_error(&e, "mkdir()", path));
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

/// The step to the next number if one is taken: files of an earlier process may have adjacent numbers.
const STRIDE: u32 = 123_456;
/// Numbers tried for one file.
const ATTEMPTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_file_is_written_by_pieces_and_shares_its_descriptor() {
        let dir = TempDir {
            path: std::env::temp_dir().into_os_string().into_vec(),
            levels: [0; 3],
        };
        let mut temp = create(&dir, 0o600, Keep::Nameless).expect("it can be made");
        for piece in [&b"one"[..], b"", b"two"] {
            temp.append(piece).expect("there is room");
        }
        assert_eq!((temp.len, Rc::strong_count(&temp.file)), (6, 1));
        let read = File::from(temp.file.try_clone().expect("a descriptor"));
        let mut text = [0; 7];
        assert_eq!(read.read_at(&mut text, 0).expect("it can be read"), 6);
        assert_eq!(&text, b"onetwo\0");
    }

    #[test]
    fn a_name_is_removed_with_its_last_owner_unless_the_file_was_renamed() {
        let dir = TempDir {
            path: std::env::temp_dir().into_os_string().into_vec(),
            levels: [0; 3],
        };
        for is_renamed in [false, true] {
            let mut temp = create(&dir, 0o600, Keep::WhileUsed).expect("it can be made");
            temp.append(b"text").expect("there is room");
            let (place, shared) = (temp.path.clone(), temp.share());
            let place = Path::new(OsStr::from_bytes(&place));
            assert_eq!((shared.len, &shared.path), (4, &temp.path));
            if is_renamed {
                temp.renamed();
            }
            drop(temp);
            assert!(place.exists(), "it has another owner");
            drop(shared);
            assert_eq!(place.exists(), is_renamed);
            let _ = fs::remove_file(place);
        }
    }

    #[test]
    fn an_error_names_the_file() {
        let of = |path: &[u8], levels| {
            let path = path.to_vec();
            let made = create(&TempDir { path, levels }, 0o600, Keep::Nameless);
            let TempError { error, path } = made.expect_err("it is no directory");
            (error.call, String::from_utf8(path).expect("text"))
        };
        let (call, path) = of(b"/dev/null", [0; 3]);
        assert!(
            call == "open()" && path.starts_with("/dev/null/0"),
            "{path}"
        );
        let (call, path) = of(b"/dev/null", [1, 0, 0]);
        assert!(call == "open()" && path.len() == "/dev/null/1/0000000001".len());
        let (call, path) = of(b"/proc/no/such", [1, 0, 0]);
        assert!(call == "mkdir()" && path.len() == "/proc/no/such/1".len());
    }

    #[test]
    fn a_full_disk_leaves_the_length_as_it_was() {
        let full = OpenOptions::new().write(true).open("/dev/full");
        let mut temp = TempFile::unnamed(Vec::new(), full.expect("every system has it"));
        let error = temp.append(b"text").expect_err("it is full");
        assert_eq!((error.call, error.errno, temp.len), ("pwrite()", 28, 0));
    }

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
