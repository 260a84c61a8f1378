//! Files that the server makes, and the folders it makes them in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The permissions of a file.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).expect("it was made");
    metadata.permissions().mode() & 0o777
}

/// Makes a folder in which everybody may make files.
///
/// # Panics
/// When it cannot be made.
pub fn everybodys(dir: &Path, name: &str) {
    let path = dir.join(name);
    fs::create_dir_all(&path).expect("a folder");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("its mode");
}
