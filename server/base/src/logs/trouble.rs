//! Log files that cannot be written.
//!
//! Writes to a full file system are slow, so such a file is tried once a second. The error is reported once a minute. Writable
//! files are not stored here and cost one lookup in an empty table. Source: nginx 1.31.4, its behaviour on a full disk.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Files that could not be written.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    files: HashMap<PathBuf, Trouble>,
    /// Failures that wait to be reported.
    failures: Vec<(PathBuf, Error)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    /// No attempt before this time.
    full_until_ms: u64,
    /// Time before which no further error is reported.
    told_until_ms: u64,
}

impl Troubles {
    /// Writes bytes to a file, unless its disk was full a moment ago.
    #[inline]
    pub(super) fn put(&mut self, path: &Path, mut file: &File, bytes: &[u8], now_ms: u64) {
        if !self.files.is_empty() && self.is_full(path, now_ms) {
            return;
        }
        if let Err(error) = file.write_all(bytes) {
            self.failed(path, error, now_ms);
        }
    }

    /// Makes every file be tried at its next line.
    pub(super) fn try_again(&mut self) {
        for trouble in self.files.values_mut() {
            trouble.full_until_ms = 0;
        }
    }

    /// Takes the write failures that have not been reported.
    pub(super) fn take_failures(&mut self) -> Vec<(PathBuf, Error)> {
        std::mem::take(&mut self.failures)
    }

    fn is_full(&self, path: &Path, now_ms: u64) -> bool {
        let trouble = self.files.get(path);
        trouble.is_some_and(|trouble| now_ms < trouble.full_until_ms)
    }

    #[cold]
    fn failed(&mut self, path: &Path, error: Error, now_ms: u64) {
        if self.files.len() >= FILES_MAX && !self.files.contains_key(path) {
            self.files.retain(|_, t| now_ms < t.told_until_ms);
            if self.files.len() >= FILES_MAX {
                return;
            }
        }
        let trouble = self.files.entry(path.to_path_buf()).or_default();
        if error.kind() == ErrorKind::StorageFull {
            trouble.full_until_ms = now_ms + FULL_MS;
        }
        if now_ms >= trouble.told_until_ms {
            trouble.told_until_ms = now_ms + TOLD_MS;
            self.failures.push((path.to_path_buf(), error));
        }
    }
}

/// Time that a full disk is not tried, milliseconds.
const FULL_MS: u64 = 1000;
/// Minimum time between two reports of errors of one file, milliseconds.
const TOLD_MS: u64 = 60_000;
/// Most files with tracked failures; failures of further files are not reported.
const FILES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> File {
        let full = File::options().write(true).open("/dev/full");
        full.expect("Linux has it")
    }

    /// A file that shows which lines were written.
    fn file(name: &str) -> (PathBuf, File) {
        let name = format!("firstbyte-trouble-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).expect("the temporary directory is writable");
        (path, file)
    }

    #[test]
    fn a_full_disk_is_tried_after_a_second_and_told_after_a_minute() {
        let (path, seen) = file("full");
        let mut troubles = Troubles::default();
        let mut now_ms = 5;
        let mut fail = |troubles: &mut Troubles, after_ms| {
            now_ms += after_ms;
            troubles.put(&path, &full(), b"lost", now_ms);
            troubles.put(&path, &seen, b"not tried", now_ms + FULL_MS - 1);
            troubles.take_failures().len()
        };
        assert_eq!(fail(&mut troubles, 0), 1);
        assert_eq!(fail(&mut troubles, FULL_MS), 0);
        assert_eq!(fail(&mut troubles, TOLD_MS - FULL_MS - 1), 0);
        assert_eq!(fail(&mut troubles, FULL_MS), 1);
        troubles.try_again();
        troubles.put(&path, &seen, b"tried", now_ms);
        let text = std::fs::read_to_string(&path);
        let _ = std::fs::remove_file(&path);
        assert_eq!(text.expect("the file was made above"), "tried");
    }

    #[test]
    fn other_errors_are_told_and_do_not_stop_writing() {
        let (path, seen) = file("others");
        let read_only = File::open(&path).expect("the file was made above");
        let mut troubles = Troubles::default();
        troubles.put(&path, &read_only, b"lost", 1);
        troubles.put(&path, &seen, b"tried", 1);
        let failures = troubles.take_failures();
        assert!(matches!(&failures[..], [(_, error)] if error.raw_os_error() == Some(9)));
        let text = std::fs::read_to_string(&path);
        let _ = std::fs::remove_file(&path);
        assert_eq!(text.expect("the file was made above"), "tried");
    }

    #[test]
    fn files_that_are_known_are_bounded() {
        let mut troubles = Troubles::default();
        let full = full();
        let mut fail = |n: usize, now_ms| {
            troubles.put(Path::new(&n.to_string()), &full, b"x", now_ms);
            (troubles.files.len(), troubles.take_failures().len())
        };
        for n in 0..FILES_MAX {
            assert_eq!(fail(n, 0), (n + 1, 1));
        }
        assert_eq!(fail(FILES_MAX, 0), (FILES_MAX, 0));
        assert_eq!(fail(FILES_MAX, TOLD_MS), (1, 1), "those of old make room");
    }
}
