//! Reads states of files (`stat`) with a cached directory descriptor.
//!
//! A `stat` resolves the whole path, and the files of a configuration are in few directories. After several files of one
//! directory in succession the directory is opened, and further states are read relative to it, which takes a third less time.
//! The descriptor stays open until a file of another directory is requested, so a cache must not outlive a load. Absent:
//! reading.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::Stamp;

/// The last directory of a load.
#[derive(Debug, Default)]
pub(crate) struct DirectoryCache {
    /// The directory of the last file, with the slash at its end.
    directory: Vec<u8>,
    /// Successive requests for files of this directory.
    asked: usize,
    opened: Option<OwnedFd>,
}

impl DirectoryCache {
    /// The state of the file that has this path.
    ///
    /// # Errors
    /// The I/O error.
    pub(crate) fn stamp(&mut self, path: &Path) -> io::Result<Stamp> {
        let bytes = path.as_os_str().as_bytes();
        let slash = bytes.iter().rposition(|byte| *byte == b'/');
        let Some((directory, name)) = slash.map(|at| bytes.split_at(at + 1)) else {
            return Stamp::of(path);
        };
        if *directory != *self.directory {
            directory.clone_into(&mut self.directory);
            (self.asked, self.opened) = (0, None);
        }
        self.asked += 1;
        if self.asked == NEIGHBOURS {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            // An error of the directory is reported by the `stat` of the file.
            self.opened = rustix::fs::open(directory, flags, Mode::empty()).ok();
        }
        match &self.opened {
            Some(opened) if !name.is_empty() => {
                let name = OsStr::from_bytes(name);
                Ok(rustix::fs::statat(opened, name, AtFlags::empty())?.into())
            }
            _ => Stamp::of(path),
        }
    }
}

/// Successive files of one directory before it is opened. Opening and closing it costs the time saved on eight files.
const NEIGHBOURS: usize = 8;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_seen_alike_from_their_directory_and_by_their_paths() {
        let name = format!("firstbyte-directories-{}", std::process::id());
        let top = std::env::temp_dir().join(name);
        for directory in ["one", "two"] {
            fs::create_dir_all(top.join(directory)).expect("a directory can be made");
        }
        let file = |number: usize| format!("one/{number}");
        for number in 0..=NEIGHBOURS {
            let text = vec![b'x'; number];
            fs::write(top.join(file(number)), text).expect("a file can be written");
        }
        symlink("../one/5", top.join("two/link")).expect("a link can be made");
        let mut cache = DirectoryCache::default();
        let mut look = |name: &str| {
            let path = top.join(name);
            let seen = cache.stamp(&path).ok();
            assert_eq!(seen, Stamp::of(&path).ok(), "{name}");
            (seen, cache.opened.is_some())
        };
        for number in 0..=NEIGHBOURS {
            let (seen, is_open) = look(&file(number));
            assert!(seen.is_some());
            assert_eq!(is_open, number + 1 >= NEIGHBOURS, "{number}");
        }
        // Special names and links have the same state both ways.
        for name in [
            "one/none",
            "one/",
            "one/.",
            "one/..",
            "one/../two/link",
            "one",
        ] {
            look(name);
        }
        assert_eq!(
            look("one/none"),
            (None, false),
            "another directory was between"
        );
        for _ in 0..=NEIGHBOURS {
            assert!(look("two/link").0.is_some());
        }
        assert!(look("two/link").1);
        // A directory that cannot be opened has no files.
        for _ in 0..=NEIGHBOURS {
            assert_eq!(look("four/file"), (None, false));
        }
        fs::remove_dir_all(&top).expect("it was made");
    }

    #[test]
    fn a_change_is_seen_at_once() {
        let name = format!("firstbyte-directories-{}-changed", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut cache = DirectoryCache::default();
        for len in 0..=NEIGHBOURS * 2 {
            fs::write(&path, vec![b'x'; len]).expect("a file can be written");
            assert_eq!(cache.stamp(&path).ok(), Stamp::of(&path).ok(), "{len}");
        }
        fs::remove_file(&path).expect("it was made");
        assert!(cache.stamp(&path).is_err() && cache.opened.is_some());
    }
}
