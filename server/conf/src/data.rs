//! Data files: what a directive names that is no text of the configuration, such as a database of a hundred megabytes.
//!
//! A [`Source`](crate::Source) opens them once; whoever needs the bytes reads them from the descriptor, which can be
//! handed to another process. Files are read, not mapped: one that is written over in place would end a process that
//! has it mapped. Absent: writing.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use crate::regular;

/// An open data file; cheap to clone.
#[derive(Debug, Clone)]
pub struct DataFile(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Disk(Arc<File>),
    Memory(Arc<[u8]>),
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Modification time, seconds since 1970.
    pub mtime_s: i64,
    mtime_ns: i64,
    dev: u64,
    ino: u64,
    size: u64,
}

impl DataFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// What the system says; `InvalidInput` for what is neither a regular file nor a directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        regular::open(path, DATA_BYTES_MAX).map(Self::from)
    }

    /// The descriptor, unless the file is one of memory.
    pub fn file(&self) -> Option<&File> {
        match &self.0 {
            Inner::Disk(file) => Some(file),
            Inner::Memory(_) => None,
        }
    }

    /// All of its bytes. The descriptor's own position is neither used nor changed, since processes may share it.
    ///
    /// # Errors
    /// What the system says; `FileTooLarge` past [`DATA_BYTES_MAX`].
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let file = match &self.0 {
            Inner::Disk(file) => file,
            Inner::Memory(bytes) => return Ok(bytes.to_vec()),
        };
        let size = file.metadata()?.len();
        regular::fits(size, DATA_BYTES_MAX)?;
        let mut bytes = vec![0; size as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // It may have become shorter meanwhile.
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The state of the file; `None` for one of memory, which never changes.
    ///
    /// # Errors
    /// What the system says.
    pub fn stamp(&self) -> io::Result<Option<Stamp>> {
        self.file()
            .map(|file| Ok(file.metadata()?.into()))
            .transpose()
    }
}

impl Stamp {
    /// Whether an object that was read from a file in the state `then` may stand for what the file has now: by nginx's rule
    /// it may while the file has its inode and the second of its time. Fractions of the second tell more; a time without a
    /// fraction, as tools set it that keep times, is compared by the second alone.
    #[must_use]
    pub fn is_inherited(self, then: Self) -> bool {
        let fraction = self.mtime_ns == then.mtime_ns || self.mtime_ns == 0;
        (self.dev, self.ino, self.mtime_s) == (then.dev, then.ino, then.mtime_s) && fraction
    }

    /// The state of the file that has this path now.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(fs::metadata(path)?.into())
    }
}

impl From<Metadata> for Stamp {
    fn from(meta: Metadata) -> Self {
        Self {
            mtime_s: meta.mtime(),
            mtime_ns: meta.mtime_nsec(),
            dev: meta.dev(),
            ino: meta.ino(),
            size: meta.size(),
        }
    }
}

impl From<File> for DataFile {
    fn from(file: File) -> Self {
        Self(Inner::Disk(Arc::new(file)))
    }
}

impl From<&[u8]> for DataFile {
    fn from(bytes: &[u8]) -> Self {
        Self(Inner::Memory(bytes.into()))
    }
}

/// Larger files are refused: no database known has half of it.
pub const DATA_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A file of the temporary directory that goes with its owner.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let name = format!("firstbyte-data-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, bytes).expect("the temporary directory is writable");
            Self(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_can_be_read_twice() {
        let place = Temporary::new("twice", b"\0\xffbytes");
        let data = DataFile::open(&place.0).expect("it is there");
        let other = data.clone();
        assert_eq!(data.read().expect("it can be read"), b"\0\xffbytes");
        assert_eq!(other.read().expect("it can be read"), b"\0\xffbytes");
        let memory = DataFile::from(b"\x01".as_slice());
        assert_eq!(memory.read().expect("it is memory"), b"\x01");
        assert!(memory.file().is_none() && memory.stamp().is_ok_and(|stamp| stamp.is_none()));
    }

    #[test]
    fn a_replaced_file_has_another_stamp() {
        let place = Temporary::new("stamp", b"one");
        let data = DataFile::open(&place.0).expect("it is there");
        let stamp = data.stamp().expect("it is open");
        assert_eq!(stamp, Stamp::of(&place.0).ok());
        let other = Temporary::new("stamp-new", b"longer");
        fs::rename(&other.0, &place.0).expect("both are in one directory");
        assert_ne!(stamp, Stamp::of(&place.0).ok());
        assert_eq!(stamp, data.stamp().expect("it is open"));
        assert_eq!(data.read().expect("it can be read"), b"one");
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let said = |path: &str| DataFile::open(Path::new(path)).expect_err("it is refused");
        assert_eq!(said("/").raw_os_error(), Some(regular::EISDIR));
        assert_eq!(said("/dev/zero").to_string(), "not a regular file");
        assert_eq!(said("/none/at/all").raw_os_error(), Some(2));
    }

    #[test]
    fn a_file_past_the_limit_is_refused() {
        let place = Temporary::new("large", b"");
        let file = File::options()
            .write(true)
            .open(&place.0)
            .expect("it was made above");
        file.set_len(DATA_BYTES_MAX).expect("a hole takes no room");
        DataFile::open(&place.0).expect("at the limit");
        file.set_len(DATA_BYTES_MAX + 1)
            .expect("a hole takes no room");
        let error = DataFile::open(&place.0).expect_err("one past the limit");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
