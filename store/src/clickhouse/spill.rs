//! Batches that wait on disk until ClickHouse has them.
//!
//! Each batch is one file. It is written under another name, synchronized and renamed, so a killed process never
//! leaves a partial file.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::batch::{BatchHead, ReadError, hash_of, head_of, named};
use super::random::random;
use crate::error::Error;

/// Modes of the directory and its files: batches have networks of clients.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const SUFFIX: &str = ".batch";
/// Digits of the number in a name.
const NUMBER_DIGITS: usize = 20;
const UNFINISHED: &str = ".tmp";
const DAMAGED: &str = ".damaged";

/// A file of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    number: u64,
    bytes: u64,
    pub(super) rows: u64,
    /// Whether ClickHouse may have it already.
    pub(super) attempted: bool,
}

/// A damaged file that has a new name.
#[derive(Debug)]
pub(super) struct Damaged {
    pub(super) to: PathBuf,
    pub(super) reason: String,
}

/// An open directory of batches. Dropping it releases its lock.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    _lock: File,
    /// Largest sum of the sizes of files, bytes.
    limit: u64,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    rows: u64,
    run: u64,
    next_batch: u64,
    next_number: u64,
}

impl Spill {
    /// Opens a directory, and makes it if there is none. Damaged files in it get new names.
    ///
    /// # Errors
    /// Another process has it open, or it cannot be read and written.
    pub(super) fn open(directory: &Path, limit: u64) -> Result<(Self, Vec<Damaged>), Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(directory)
            .map_err(|error| named(directory, error))?;
        let lock = lock(directory)?;
        let mut spill = Self {
            directory: directory.to_owned(),
            _lock: lock,
            limit,
            waiting: VecDeque::new(),
            bytes: 0,
            rows: 0,
            run: random(),
            next_batch: 1,
            next_number: 1,
        };
        let damaged = spill.find()?;
        Ok((spill, damaged))
    }

    /// Finds the files of former processes.
    fn find(&mut self) -> Result<Vec<Damaged>, Error> {
        let mut numbers = Vec::new();
        let listed =
            fs::read_dir(&self.directory).map_err(|error| named(&self.directory, error))?;
        for entry in listed {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                continue;
            };
            // Other files are not ours: the directory may be shared.
            if name.strip_suffix(UNFINISHED).and_then(number_of).is_some() {
                fs::remove_file(entry.path())?;
            } else {
                numbers.extend(name.strip_suffix(SUFFIX).and_then(number_of));
            }
        }
        numbers.sort_unstable();
        self.next_number = numbers.last().map_or(1, |last| last + 1);
        let mut damaged = Vec::new();
        for number in numbers {
            match head_of(&self.path(number)) {
                Ok((head, bytes)) => self.push(Waiting {
                    number,
                    bytes,
                    rows: head.rows,
                    attempted: true,
                }),
                Err(ReadError::Damaged(reason)) => damaged.push(self.rename(number, reason)?),
                Err(ReadError::System(error)) => return Err(error),
            }
        }
        Ok(damaged)
    }

    /// Stores a batch as the last one. Returns whether it fits within the limit.
    ///
    /// # Errors
    /// If the file cannot be written; it does not exist then.
    pub(super) fn put(&mut self, head: &mut BatchHead, rows: &str) -> Result<bool, Error> {
        (head.run, head.batch) = (self.run, self.next_batch);
        let line = head.line(rows.len());
        let hash = hash_of(&line, rows.as_bytes());
        let line = format!("{line} {hash:016x}\n");
        let bytes = (line.len() + rows.len()) as u64;
        if self.bytes.saturating_add(bytes) > self.limit {
            return Ok(false);
        }
        let number = self.next_number;
        let path = self.path(number);
        let unfinished = self.directory.join(format!("{number:020}{UNFINISHED}"));
        let written = write(&unfinished, &path, &[line.as_bytes(), rows.as_bytes()]);
        if let Err(error) = written {
            // It takes room that the next try needs.
            let _ = fs::remove_file(&unfinished);
            return Err(named(&self.directory, error));
        }
        self.next_number += 1;
        self.next_batch += 1;
        self.push(Waiting {
            number,
            bytes,
            rows: head.rows,
            attempted: false,
        });
        Ok(true)
    }

    fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.rows += waiting.rows;
        self.waiting.push_back(waiting);
    }

    /// The oldest batch.
    pub(super) fn first(&self) -> Option<Waiting> {
        self.waiting.front().copied()
    }

    /// Path of a batch.
    pub(super) fn path_of(&self, waiting: &Waiting) -> PathBuf {
        self.path(waiting.number)
    }

    /// Notes that ClickHouse may have the oldest batch.
    pub(super) fn note_attempt(&mut self) {
        if let Some(first) = self.waiting.front_mut() {
            first.attempted = true;
        }
    }

    /// Deletes the oldest batch: ClickHouse has it.
    pub(super) fn delete_first(&mut self) -> Result<(), Error> {
        if let Some(first) = self.waiting.front() {
            match fs::remove_file(self.path(first.number)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(named(&self.directory, error));
                }
                _ => self.pop(),
            }
        }
        Ok(())
    }

    /// Renames the oldest batch, since it cannot be sent.
    pub(super) fn move_first_aside(&mut self, reason: String) -> Result<Option<Damaged>, Error> {
        let Some(first) = self.waiting.front() else {
            return Ok(None);
        };
        let damaged = self.rename(first.number, reason)?;
        self.pop();
        Ok(Some(damaged))
    }

    fn pop(&mut self) {
        if let Some(first) = self.waiting.pop_front() {
            self.bytes -= first.bytes;
            self.rows -= first.rows;
        }
    }

    fn rename(&self, number: u64, reason: String) -> Result<Damaged, Error> {
        let from = self.path(number);
        // Numbers begin anew in an empty directory.
        let to = self
            .directory
            .join(format!("{number:020}-{:016x}{DAMAGED}", random()));
        match fs::rename(&from, &to) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(named(&from, error)),
            _ => Ok(Damaged { to, reason }),
        }
    }

    /// Numbers of batches, of their rows and of their bytes.
    pub(super) fn sizes(&self) -> (u64, u64, u64) {
        (self.waiting.len() as u64, self.rows, self.bytes)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:020}{SUFFIX}"))
    }
}

fn write(unfinished: &Path, path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(unfinished)?;
    for part in parts {
        file.write_all(part)?;
    }
    // After a loss of power the name must not lead to an empty file.
    file.sync_data()?;
    fs::rename(unfinished, path)
}

fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join("lock");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(&path)
        .map_err(|error| named(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Other(format!(
            "another process uses the spill directory {}",
            directory.display()
        ))),
        Err(TryLockError::Error(error)) => Err(named(&path, error)),
    }
}

/// Returns the number at the start of a batch's name; `None` for names of other files.
fn number_of(name: &str) -> Option<u64> {
    let is_whole = name.len() == NUMBER_DIGITS && name.bytes().all(|byte| byte.is_ascii_digit());
    // No number follows the largest one.
    let number = name.parse().ok().filter(|number| *number < u64::MAX);
    number.filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::super::batch::{Kind, read};
    use super::*;
    use firstbyte_tests::TempDir;

    const ROWS: &str = "1\ta\n2\tb\n";

    fn open(dir: &TempDir, limit: u64) -> Spill {
        let (spill, damaged) = Spill::open(dir.path(), limit).expect("it opens");
        assert!(damaged.is_empty(), "{damaged:?}");
        spill
    }

    fn put(spill: &mut Spill, rows: &str) -> bool {
        let mut head = BatchHead::new(Kind::Connections, 7);
        head.add(7);
        head.add(9);
        spill.put(&mut head, rows).expect("it is written")
    }

    #[test]
    fn batches_survive_a_restart_in_their_order() {
        let dir = TempDir::new();
        let mut spill = open(&dir, 1 << 20);
        assert!(put(&mut spill, ROWS) && put(&mut spill, "3\tc\n"));
        let first = spill.first().expect("a batch");
        let before = read(&spill.path_of(&first)).expect("a batch");
        let sizes = spill.sizes();
        drop(spill);
        fs::write(dir.path().join("00000000000000000009.tmp"), "half").expect("a file");
        let mut spill = open(&dir, 1 << 20);
        assert_eq!(spill.sizes(), sizes);
        let first = spill.first().expect("a batch");
        assert!(first.attempted);
        let (head, rows) = read(&spill.path_of(&first)).expect("a batch");
        assert_eq!((head, rows.clone()), before);
        assert_eq!(rows, ROWS.as_bytes());
        assert_eq!((head.rows, head.first_s, head.last_s), (2, 7, 9));
        // A new opening numbers its batches under its own run.
        assert!(put(&mut spill, ROWS));
        spill.delete_first().expect("it is deleted");
        spill.delete_first().expect("it is deleted");
        let third = spill.first().expect("a batch");
        assert!(!third.attempted);
        let (later, _) = read(&spill.path_of(&third)).expect("a batch");
        assert_ne!((later.run, later.batch), (head.run, head.batch));
        spill.delete_first().expect("it is deleted");
        assert_eq!((spill.first(), spill.sizes()), (None, (0, 0, 0)));
    }

    /// Names of other lengths, without digits, and the largest number.
    #[test]
    fn files_of_others_stay() {
        let dir = TempDir::new();
        let theirs = [
            "7.batch",
            "a.tmp",
            "7.tmp",
            "+0000000000000000001.batch",
            "0000000000000000000a.tmp",
            "18446744073709551615.batch",
            "000000000000000000001.tmp",
        ];
        let own = "00000000000000000001.tmp";
        for name in theirs.iter().chain([&own]) {
            dir.write(name, "text");
        }
        assert_eq!(open(&dir, 1 << 20).first(), None);
        for name in theirs {
            assert!(dir.path().join(name).is_file(), "{name}");
        }
        assert!(!dir.path().join(own).exists(), "an unfinished batch");
    }

    #[test]
    fn limit_is_the_sum_of_all_files() {
        // One file with these numbers has so many bytes.
        let put_one = |spill: &mut Spill| {
            (spill.run, spill.next_batch) = (1, 1);
            put(spill, ROWS)
        };
        let dir = TempDir::new();
        let mut spill = open(&dir, u64::MAX);
        assert!(put_one(&mut spill));
        let size = spill.sizes().2;
        for (limit, fits) in [(2 * size - 1, 1), (2 * size, 2), (2 * size + 1, 2)] {
            let dir = TempDir::new();
            let mut spill = open(&dir, limit);
            let stored = [
                put_one(&mut spill),
                put_one(&mut spill),
                put_one(&mut spill),
            ];
            assert_eq!(stored, [true, fits == 2, false], "{limit}");
            assert_eq!(spill.sizes(), (fits, 2 * fits, fits * size));
            // Room that is free again is used.
            spill.delete_first().expect("it is deleted");
            assert!(put_one(&mut spill));
        }
    }

    #[test]
    fn damaged_files_are_moved_aside() {
        type Damage = fn(&mut Vec<u8>);
        let damages: [Damage; 6] = [
            |bytes| bytes.truncate(bytes.len() - 1),
            |bytes| bytes.push(b'x'),
            |bytes| bytes.clear(),
            |bytes| bytes[0] ^= 1,
            |bytes| bytes.insert(16, b'9'),
            |bytes| *bytes = vec![b'x'; 10_000],
        ];
        for damage in damages {
            let dir = TempDir::new();
            let mut spill = open(&dir, 1 << 20);
            assert!(put(&mut spill, ROWS) && put(&mut spill, ROWS));
            let path = spill.path_of(&spill.first().expect("a batch"));
            drop(spill);
            let mut bytes = fs::read(&path).expect("a file");
            damage(&mut bytes);
            fs::write(&path, bytes).expect("it is written");
            let (spill, damaged) = Spill::open(dir.path(), 1 << 20).expect("it opens");
            assert_eq!(damaged.len(), 1);
            assert!(damaged[0].to.exists() && !path.exists());
            assert_eq!(spill.sizes().0, 1);
        }
    }

    #[test]
    fn changed_rows_are_found_when_they_are_read() {
        let dir = TempDir::new();
        let mut spill = open(&dir, 1 << 20);
        assert!(put(&mut spill, ROWS));
        let path = spill.path_of(&spill.first().expect("a batch"));
        let mut bytes = fs::read(&path).expect("a file");
        *bytes.last_mut().expect("bytes") ^= 1;
        fs::write(&path, bytes).expect("it is written");
        assert!(matches!(read(&path), Err(ReadError::Damaged(_))));
        let aside = spill
            .move_first_aside("why".to_owned())
            .expect("it is moved");
        assert!(aside.expect("a file").to.exists());
        assert_eq!(spill.sizes(), (0, 0, 0));
    }

    #[test]
    fn second_opening_is_an_error() {
        let dir = TempDir::new();
        let spill = open(&dir, 1 << 20);
        let error = Spill::open(dir.path(), 1 << 20).expect_err("it is locked");
        let text = error.to_string();
        assert!(
            text.contains("another process uses the spill directory"),
            "{text}"
        );
        drop(spill);
        open(&dir, 1 << 20);
    }
}
