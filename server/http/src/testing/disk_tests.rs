//! A disk in memory, and files without names.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use engines::http::{Chunk, FileRange, SharedBytes};
use server_base::files::{
    Change, FileError, Files, Keep, Meta, OpenPolicy, Opened, TempDir, TempError, TempFile,
};

/// A file with these bytes and no name.
pub(crate) fn file_of(bytes: &[u8]) -> Chunk {
    let file = nameless();
    file.write_all_at(bytes, 0)
        .expect("the temporary directory is writable");
    Chunk::File(FileRange {
        file: Rc::new(file.into()),
        offset: 0,
        len: bytes.len() as u64,
    })
}

/// A file for reading and writing that no other process can open.
pub(super) fn nameless() -> File {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("firstbyte-core-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options
        .open(&path)
        .expect("the temporary directory is writable");
    fs::remove_file(path).expect("the file was made above");
    file
}

/// A disk with nothing on it, on which temporary files can be made.
#[derive(Default)]
pub(crate) struct Disk {
    /// Temporary files made so far, and the error of the next ones.
    pub(crate) temps: Vec<(u32, Keep)>,
    pub(crate) fault: Option<FileError>,
    /// Writes to temporary files fail for want of room.
    pub(crate) is_full: bool,
    /// Changes so far, and results of those to come, in order. Changes after these succeed.
    pub(crate) changes: Vec<String>,
    pub(crate) outcomes: VecDeque<Result<(), FileError>>,
}

impl Files for Disk {
    fn open(&mut self, _: &[u8], _: &OpenPolicy) -> Result<Rc<Opened>, FileError> {
        Err(MISSING)
    }

    fn content(&mut self, opened: &Opened) -> Option<SharedBytes> {
        opened.content()
    }

    fn stat(&mut self, _: &[u8], _: &OpenPolicy) -> Result<Meta, FileError> {
        Err(MISSING)
    }

    fn change(&mut self, change: &Change<'_>) -> Result<(), FileError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.changes.push(match change {
            Change::Rename { from, to } => format!("{} -> {}", text(from), text(to)),
            Change::Copy { from, to, .. } => format!("{} => {}", text(from), text(to)),
            Change::Mode { path, mode } => format!("{} {mode:o}", text(path)),
            Change::MakeDir { path, mode } => format!("{}/ {mode:o}", text(path)),
            Change::Modified { path, time_s } => format!("{} at {time_s}", text(path)),
            other => format!("{other:?}"),
        });
        self.outcomes.pop_front().unwrap_or(Ok(()))
    }

    fn create_temp(&mut self, _: &TempDir, mode: u32, keep: Keep) -> Result<TempFile, TempError> {
        if let Some(error) = self.fault {
            let path = b"/temp/1".to_vec();
            return Err(TempError { error, path });
        }
        self.temps.push((mode, keep));
        let file = if self.is_full {
            let full = OpenOptions::new().read(true).write(true).open("/dev/full");
            full.expect("every system has it")
        } else {
            nameless()
        };
        Ok(TempFile::unnamed(b"/temp/1".to_vec(), file))
    }
}

const MISSING: FileError = FileError {
    errno: server_base::files::ENOENT,
    call: "open()",
};
