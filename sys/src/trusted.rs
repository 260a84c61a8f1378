//! Safe paths for root: links of other users are not followed.
//!
//! The owner of a directory on the way can replace its contents. A link of another user could name any file of the
//! system, and operations by its path would affect that file with root's rights. So a path is walked one directory
//! at a time, each opened below the one before, and only links of root or of this process's user are followed.
//! Absent: checks of mounts; only root can make them. Source: path_resolution(7), openat(2).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Opens a directory.
///
/// # Errors
/// `ELOOP` if a link of another user is on the way; those of opening a directory.
pub fn open_directory(path: &Path) -> io::Result<File> {
    let found = walk(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(found, ".", flags, Mode::empty())?;
    Ok(File::from(directory))
}

/// Whether a path is the only name of this open file, and passes no link of another user.
#[must_use]
pub fn names(path: &Path, file: impl AsFd) -> bool {
    let both = walk(path).and_then(|found| {
        let stat = rustix::fs::fstat(file.as_fd())?;
        Ok((stat, rustix::fs::fstat(found)?))
    });
    both.is_ok_and(|(opened, found)| {
        (opened.st_dev, opened.st_ino, opened.st_nlink) == (found.st_dev, found.st_ino, 1)
    })
}

/// Opens the object at a path, with `O_PATH`.
fn walk(path: &Path) -> io::Result<OwnedFd> {
    let mut left: VecDeque<OsString> = names_of(path).collect();
    let mut at = start(path)?;
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = rustix::fs::openat(&at, &name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&next)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            at = next;
            continue;
        }
        links += 1;
        let own = rustix::process::geteuid().as_raw();
        if links > LINKS_MAX || (stat.st_uid != 0 && stat.st_uid != own) {
            return Err(Errno::LOOP.into());
        }
        // An empty name refers to the open link itself.
        let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes()));
        if target.is_absolute() {
            at = start(target)?;
        }
        for name in names_of(target).collect::<Vec<_>>().into_iter().rev() {
            left.push_front(name);
        }
    }
    Ok(at)
}

fn start(path: &Path) -> io::Result<OwnedFd> {
    let from = if path.is_absolute() { "/" } else { "." };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, from, flags, Mode::empty())?)
}

fn names_of(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

/// As many as the kernel follows.
const LINKS_MAX: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, lchown, symlink};

    #[test]
    fn own_links_are_followed_and_those_of_others_are_not() {
        let dir = std::env::temp_dir().join(format!("firstbyte-trusted.{}", std::process::id()));
        fs::create_dir_all(dir.join("real/deep")).expect("a folder");
        fs::write(dir.join("real/log"), "").expect("a file");
        let link = |to: &str, name: &str| symlink(to, dir.join(name)).expect("a link");
        link("real", "linked");
        link("linked/../real/log", "log");
        link("again", "again");
        let file = File::open(dir.join("real/log")).expect("it is there");
        for good in ["real/log", "linked/log", "log", "real/deep/../log"] {
            assert!(names(&dir.join(good), &file), "{good}");
        }
        for bad in ["again", "none", "real", "real/log/more"] {
            assert!(!names(&dir.join(bad), &file), "{bad}");
        }
        let deep = open_directory(&dir.join("linked/deep")).expect("a directory");
        let inode = |file: &File| file.metadata().expect("it is open").ino();
        let same = File::open(dir.join("real/deep")).expect("the same");
        assert_eq!(inode(&deep), inode(&same));
        open_directory(&dir.join("log")).expect_err("no directory");
        if rustix::process::geteuid().is_root() {
            lchown(dir.join("linked"), Some(65_534), None).expect("root may");
            assert!(!names(&dir.join("linked/log"), &file));
            assert!(!names(&dir.join("log"), &file), "a link to a link");
            let refused = open_directory(&dir.join("linked/deep")).expect_err("another's link");
            assert_eq!(refused.raw_os_error(), Some(libc::ELOOP));
        }
        fs::hard_link(dir.join("real/log"), dir.join("second")).expect("another name");
        assert!(!names(&dir.join("real/log"), &file), "it has two names");
        fs::remove_dir_all(dir).expect("it was made above");
    }
}
