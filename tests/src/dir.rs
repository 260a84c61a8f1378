//! A directory that lives as long as a test.
//!
//! Its mode lets another user (the worker's) enter, since tests run as root start their worker
//! as `nobody`. `FIRSTBYTE_TESTS_KEEP=1` leaves the directories for a look afterwards.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Numbers the directories of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A fresh directory, removed when dropped.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Makes the directory, readable by everyone.
    ///
    /// # Panics
    /// When the system's temporary directory cannot be written.
    #[must_use]
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("firstbyte-test.{}.{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // A directory left by a killed run of the same process id would mix with this one.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the temporary directory is writable");
        set_mode(&path, 0o755);
        Self { path }
    }

    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file below it, making the folders on the way; whatever the umask, others may read.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        let parent = path.parent().expect("a joined path has a parent");
        fs::create_dir_all(parent).expect("a folder of the test can be made");
        fs::write(&path, content).expect("a file of the test can be written");
        set_mode(&path, 0o644);
        let mut folder = parent;
        while folder.starts_with(&self.path) {
            set_mode(folder, 0o755);
            folder = folder.parent().expect("below the root there is a parent");
        }
    }

    /// The text of a file below it, or nothing while it is not there; bytes that are not UTF-8
    /// are replaced.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.path.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Default for TempDir {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if std::env::var_os("FIRSTBYTE_TESTS_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Sets the permission bits of a file or folder.
///
/// # Panics
/// When they cannot be set.
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode can be set");
}

/// Replaces a file as a deployment does: written beside it, renamed over it.
///
/// # Panics
/// When the directory is not writable.
pub fn replace(path: &Path, content: &[u8]) {
    let beside = path.with_extension("new");
    fs::write(&beside, content).expect("the test's directory is writable");
    set_mode(&beside, 0o644);
    fs::rename(&beside, path).expect("a rename within a folder succeeds");
}

/// Replaces a link by one that leads elsewhere.
///
/// # Panics
/// When the directory is not writable.
pub fn relink(target: &str, link: &Path) {
    let beside = link.with_extension("link");
    symlink(target, &beside).expect("a link can be made");
    fs::rename(&beside, link).expect("a rename within a folder succeeds");
}
