//! The browser's directory: its profile, its home and its temporary files, gone when it is.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory that only its owner may enter, removed when it is dropped.
pub(super) struct Profile {
    path: PathBuf,
}

impl Profile {
    /// Makes the directory, with the preferences of a new profile.
    pub(super) fn create(preferences: &str) -> io::Result<Self> {
        let profile = Self {
            path: fresh(&base(std::env::temp_dir()))?,
        };
        for name in [HOME, TEMPORARY] {
            directory(&profile.path.join(name))?;
        }
        let default = profile.data().join("Default");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&default)?;
        fs::write(default.join("Preferences"), preferences)?;
        // Authorities that the user has added are trusted as in the user's own browser.
        if let Some(home) = std::env::var_os("HOME") {
            let own = Path::new(&home).join(AUTHORITIES);
            if own.is_dir() {
                std::os::unix::fs::symlink(own, profile.home().join(AUTHORITIES))?;
            }
        }
        Ok(profile)
    }

    /// All that the browser may write.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its profile.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join("profile")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.path.join(HOME)
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.path.join(TEMPORARY)
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // A process that is about to end may make a file while the directory is emptied.
        for _ in 0..REMOVALS {
            match fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {}
                _ => return,
            }
        }
    }
}

/// Returns the directory for temporary files, unless its path is too long for the names of the browser's sockets.
fn base(usual: PathBuf) -> PathBuf {
    if usual.as_os_str().len() <= BASE_BYTES_MAX {
        usual
    } else {
        PathBuf::from("/tmp")
    }
}

/// Creates a directory with a random name.
fn fresh(base: &Path) -> io::Result<PathBuf> {
    let mut last = io::Error::from(ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let path = base.join(format!("firstbyte-browser.{:010x}", random()? >> 24));
        match directory(&path) {
            Ok(()) => return Ok(path),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    sys::random::fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

const HOME: &str = "home";
const TEMPORARY: &str = "tmp";
/// Directory with the user's own certificate authorities for Chromium on Linux, below the home directory.
const AUTHORITIES: &str = ".pki";
/// A socket's path has 107 bytes: ours and the browser's names need 75.
const BASE_BYTES_MAX: usize = 32;
const ATTEMPTS: usize = 8;
const REMOVALS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn directory_is_private_and_goes_with_its_owner() {
        let profile = Profile::create("{}").expect("a directory");
        let path = profile.path().to_owned();
        let mode = fs::metadata(&path).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        let preferences = profile.data().join("Default/Preferences");
        assert_eq!(fs::read_to_string(preferences).expect("written"), "{}");
        fs::write(profile.temporary().join("left"), "x").expect("it may");
        drop(profile);
        assert!(!path.exists());
    }

    #[test]
    fn long_paths_leave_room_for_sockets() {
        let at_limit = PathBuf::from("/".repeat(BASE_BYTES_MAX));
        assert_eq!(base(at_limit.clone()), at_limit);
        let past = PathBuf::from("/".repeat(BASE_BYTES_MAX + 1));
        assert_eq!(base(past), Path::new("/tmp"));
    }
}
