//! Data files: files that directives name besides texts of the configuration, such as a database of a hundred megabytes.
//!
//! A [`Source`](crate::Source) opens them once; the bytes are read from the descriptor, which can be handed to another
//! process. Files are read, not mapped: one that is written over in place would end a process that has it mapped.
//! Absent: writing.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

use crate::regular;

/// An open data file; cheap to clone.
#[derive(Debug, Clone)]
pub struct DataFile(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Disk(Arc<File>),
    Memory(Arc<[u8]>),
}

/// Identifies the state of a file. Two states are equal if times and sizes show no change of the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// Modification time, seconds since 1970.
    pub mtime_s: i64,
    mtime_ns: i64,
    /// Time of the last change of content or metadata; no process can set it back.
    ctime_s: i64,
    ctime_ns: i64,
    dev: u64,
    ino: u64,
    size: u64,
    /// Time when the state was read, seconds since 1970.
    seen_s: i64,
}

impl PartialEq for Stamp {
    fn eq(&self, other: &Self) -> bool {
        self.state() == other.state()
    }
}

impl Eq for Stamp {}

impl DataFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// The I/O error; `InvalidInput` for a path that is neither a regular file nor a directory.
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
    /// The I/O error; `FileTooLarge` past [`DATA_BYTES_MAX`].
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
        // The file may have been truncated meanwhile.
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The state of the file; `None` for one of memory, which never changes.
    ///
    /// # Errors
    /// The I/O error.
    pub fn stamp(&self) -> io::Result<Option<Stamp>> {
        self.file()
            .map(|file| Ok(file.metadata()?.into()))
            .transpose()
    }
}

impl Stamp {
    /// The fields that change with the bytes, and not with rights or the number of links.
    fn state(&self) -> (i64, i64, [u64; 3]) {
        (self.mtime_s, self.mtime_ns, [self.dev, self.ino, self.size])
    }

    /// Returns whether the file is certain to have the content that it had in the state `then`. Modification times can be set
    /// back, but not the time of the last change. A second change within one tick of the file system's clock may not change any
    /// time. So a state counts only if it was old enough when it was read.
    #[must_use]
    pub fn is_unchanged(self, then: Self) -> bool {
        let changed = |stamp: Self| (stamp.ctime_s, stamp.ctime_ns);
        let settled = then.ctime_s.saturating_add(SETTLED_S) <= then.seen_s;
        self == then && changed(self) == changed(then) && settled
    }

    /// The state of the file that has this path now.
    ///
    /// # Errors
    /// The I/O error.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(rustix::fs::stat(path)?.into())
    }
}

impl From<Stat> for Stamp {
    fn from(stat: Stat) -> Self {
        Self {
            mtime_s: stat.st_mtime,
            mtime_ns: nanoseconds(stat.st_mtime_nsec),
            ctime_s: stat.st_ctime,
            ctime_ns: nanoseconds(stat.st_ctime_nsec),
            dev: stat.st_dev,
            ino: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            seen_s: now_s(),
        }
    }
}

impl From<Metadata> for Stamp {
    fn from(meta: Metadata) -> Self {
        Self {
            mtime_s: meta.mtime(),
            mtime_ns: meta.mtime_nsec(),
            ctime_s: meta.ctime(),
            ctime_ns: meta.ctime_nsec(),
            dev: meta.dev(),
            ino: meta.ino(),
            size: meta.size(),
            seen_s: now_s(),
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

/// Nanoseconds of a time, which types differ in.
fn nanoseconds(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(0)
}

/// Reads the wall clock, which file systems set their times by; seconds since 1970.
#[must_use]
pub fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}

/// How old a state must be, seconds: more than a tick of any file system's clock; the coarsest has two seconds.
const SETTLED_S: i64 = 3;

/// Larger files are refused: no database known has half of it.
pub const DATA_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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

    /// A state that is old enough.
    fn settled() -> Stamp {
        Stamp {
            mtime_s: 1000,
            mtime_ns: 1,
            ctime_s: 1001,
            ctime_ns: 2,
            dev: 3,
            ino: 4,
            size: 5,
            seen_s: 1001 + SETTLED_S,
        }
    }

    #[test]
    fn each_kind_of_change_is_seen() {
        let then = settled();
        let later = Stamp {
            seen_s: 5000,
            ..then
        };
        assert!(later.is_unchanged(then), "only time has passed");
        let changes: [fn(&mut Stamp); 7] = [
            |now| now.mtime_s += 1,
            |now| now.mtime_ns += 1,
            |now| now.dev += 1,
            |now| now.ino += 1,
            |now| now.size += 1,
            // These two can be those of a change of rights, too.
            |now| now.ctime_s += 1,
            |now| now.ctime_ns += 1,
        ];
        for (n, change) in changes.into_iter().enumerate() {
            let mut now = later;
            change(&mut now);
            assert!(!now.is_unchanged(then), "change {n}");
            assert_eq!(now == then, n >= 5, "change {n}");
        }
    }

    #[test]
    fn a_young_state_counts_for_nothing() {
        let then = settled();
        for (seen_s, counts) in [(then.seen_s, true), (then.seen_s - 1, false), (0, false)] {
            let young = Stamp { seen_s, ..then };
            assert_eq!(then.is_unchanged(young), counts, "{seen_s}");
            assert_eq!(then, young, "the state is equal all the same");
        }
    }

    #[test]
    fn a_time_that_is_set_back_hides_no_change() {
        let place = Temporary::new("set-back", b"one");
        let now = |path: &Path| Stamp {
            // As if the state were old.
            seen_s: i64::MAX,
            ..Stamp::of(path).expect("it is there")
        };
        let before = now(&place.0);
        let time = fs::metadata(&place.0).and_then(|meta| meta.modified());
        let time = time.expect("it has one");
        // Until the clock of the file system has moved on.
        while now(&place.0).is_unchanged(before) {
            fs::write(&place.0, b"two").expect("it can be written");
            let file = File::options().write(true).open(&place.0);
            file.and_then(|file| file.set_modified(time))
                .expect("its time can be set");
        }
        assert_eq!(
            now(&place.0),
            before,
            "all but one of its times are as before"
        );
    }
}
