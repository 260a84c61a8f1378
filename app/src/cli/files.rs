//! Files of verbs: archives in, reports out.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lab::page::har::{self, FILE_BYTES_MAX};
use sys::os_error;

/// Reads the pages of a HAR file.
///
/// # Errors
/// A sentence with the name of the file: it cannot be read, or is not a HAR file.
pub(super) fn archive(path: &Path) -> Result<Vec<har::Page>, String> {
    let shown = path.display();
    let cannot = |why: &str| format!("cannot read {shown}: {why}");
    let file = File::open(path).map_err(|error| cannot(&os_error(&error)))?;
    let kind = file.metadata().map_err(|error| cannot(&os_error(&error)))?;
    if kind.is_dir() {
        return Err(cannot("it is a directory"));
    }
    // One byte more shows that a file is too large, without a read to its end; a device may have none.
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| cannot(&os_error(&error)))?;
    har::read(&bytes).map_err(|fault| format!("{shown}: {fault}"))
}

/// Writes a file if its option is set.
///
/// # Errors
/// See [`write`].
pub(super) fn written(
    path: &Option<PathBuf>,
    text: impl FnOnce() -> Result<String, String>,
) -> Result<(), String> {
    path.as_ref().map_or(Ok(()), |path| write(path, &text()?))
}

/// Writes a file. A regular file is replaced by a complete new one, so readers never see a part of it, and a failure
/// leaves the old one. Devices and pipes are written directly.
///
/// # Errors
/// A sentence with the name of the file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    put(path, text)
        .map_err(|error| format!("cannot write {}: {}", path.display(), os_error(&error)))
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    // The new file replaces the target of a symbolic link, not the link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Some((new, mut file)) = beside(&target) else {
        return File::create(path)?.write_all(text.as_bytes());
    };
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| std::fs::rename(&new, &target));
    if written.is_err() {
        // The error of the writing matters more.
        let _ = std::fs::remove_file(&new);
    }
    written
}

/// Creates a file that can replace the one at `path`: in its directory, with its mode. Returns `None` if the path must
/// be written in place: it is a device, a pipe, a file with other links or another owner, or its directory is not
/// writable.
fn beside(path: &Path) -> Option<(PathBuf, File)> {
    let old = std::fs::metadata(path).ok();
    if old
        .as_ref()
        .is_some_and(|old| !old.is_file() || old.nlink() > 1)
    {
        return None;
    }
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}.tmp", std::process::id()));
    let new = path.with_file_name(name);
    let file = File::options()
        .write(true)
        .create_new(true)
        .open(&new)
        .ok()?;
    let fits = || {
        let Some(old) = &old else {
            return true;
        };
        let made = file.metadata();
        let is_alike = made.is_ok_and(|made| (made.uid(), made.gid()) == (old.uid(), old.gid()));
        is_alike && file.set_permissions(old.permissions()).is_ok()
    };
    if fits() {
        return Some((new, file));
    }
    let _ = std::fs::remove_file(&new);
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn directory(name: &str) -> PathBuf {
        let name = format!("firstbyte-files-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        path
    }

    #[test]
    fn a_file_is_replaced_when_the_new_one_is_whole() {
        let at = directory("replaced");
        let path = at.join("report.html");
        write(&path, "one").expect("it is written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("a mode");
        let reader = File::open(&path).expect("it is there");
        let link = at.join("link.html");
        symlink(&path, &link).expect("a link");
        write(&link, "two").expect("it is written");
        assert_eq!(io::read_to_string(reader).expect("it is read"), "one");
        assert_eq!(std::fs::read_to_string(&path).expect("it is read"), "two");
        assert!(link.is_symlink());
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let names = std::fs::read_dir(&at).expect("a directory").count();
        assert_eq!(names, 2, "nothing else is left");
        std::fs::remove_dir_all(&at).expect("it is removed");
    }

    #[test]
    fn other_links_of_a_file_and_devices_are_written_in_place() {
        let at = directory("in-place");
        let (path, other) = (at.join("a"), at.join("b"));
        write(&path, "a longer text").expect("it is written");
        std::fs::hard_link(&path, &other).expect("a link");
        write(&path, "two").expect("it is written");
        assert_eq!(std::fs::read_to_string(&other).expect("it is read"), "two");
        write(Path::new("/dev/null"), "three").expect("it is written");
        assert!(!Path::new("/dev/null").is_file());
        let error = write(Path::new("/dev/full"), "four").expect_err("it is full");
        assert_eq!(error, "cannot write /dev/full: 28: No space left on device");
        let missing = at.join("none/at/all");
        let error = write(&missing, "five").expect_err("no directory");
        assert!(error.ends_with("2: No such file or directory"), "{error}");
        std::fs::remove_dir_all(&at).expect("it is removed");
    }
}
