//! States of files that are looked at one after the other.
//!
//! A look walks the whole path, and the files of a load lie in few directories. So where several in succession lie in one,
//! the directory is opened, and the others are looked at from there, which takes a third less. It stays open until a
//! file of another one is asked for: whoever asks keeps the looks no longer than a load. Absent: reading.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::Stamp;

/// Looks of a load.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// The directory of the last file, with the slash at its end.
    directory: Vec<u8>,
    /// How many files of it were asked for in succession.
    asked: usize,
    opened: Option<OwnedFd>,
}

impl Looks {
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
            // What is wrong with it is told of the file.
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

/// The number of a file in its directory, from 1, from which on that is open: to open and close it takes as long as it saves
/// on eight files.
const NEIGHBOURS: usize = 8;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_seen_alike_from_their_directory_and_by_their_paths() {
        let name = format!("firstbyte-looks-{}", std::process::id());
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
        let mut looks = Looks::default();
        let mut look = |name: &str| {
            let path = top.join(name);
            let seen = looks.stamp(&path).ok();
            assert_eq!(seen, Stamp::of(&path).ok(), "{name}");
            (seen, looks.opened.is_some())
        };
        for number in 0..=NEIGHBOURS {
            let (seen, is_open) = look(&file(number));
            assert!(seen.is_some());
            assert_eq!(is_open, number + 1 >= NEIGHBOURS, "{number}");
        }
        // Whatever stands for a file is seen as before.
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
        let name = format!("firstbyte-looks-{}-changed", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut looks = Looks::default();
        for len in 0..=NEIGHBOURS * 2 {
            fs::write(&path, vec![b'x'; len]).expect("a file can be written");
            assert_eq!(looks.stamp(&path).ok(), Stamp::of(&path).ok(), "{len}");
        }
        fs::remove_file(&path).expect("it was made");
        assert!(looks.stamp(&path).is_err() && looks.opened.is_some());
    }
}
