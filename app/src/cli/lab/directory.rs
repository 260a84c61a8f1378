//! A private directory that is removed at the end, for the pid file and the socket of the store process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A new directory that belongs to the user of this process alone.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    /// Makes it below the system's directory for temporary files.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn new() -> io::Result<Self> {
        let pid = std::process::id();
        let mut result = Err(io::ErrorKind::AlreadyExists.into());
        for n in 0..TRIES {
            let path = std::env::temp_dir().join(format!("firstbyte-lab-{pid}-{n}"));
            // A directory or a link of another user is not touched.
            result = DirBuilder::new()
                .mode(0o700)
                .create(&path)
                .map(|()| Self(path));
            let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
            if !result.as_ref().is_err_and(is_taken) {
                break;
            }
        }
        result
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The system empties its directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Number of names that are tried.
const TRIES: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn directory_is_private_and_removed() {
        let (first, second) = (Directory::new(), Directory::new());
        let (first, second) = (first.expect("a directory"), second.expect("another one"));
        assert_ne!(first.path(), second.path());
        let mode = fs::metadata(first.path())
            .expect("it exists")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = first.path().to_owned();
        fs::write(path.join("file"), "text").expect("it is ours");
        drop(first);
        assert!(!path.exists());
    }
}
