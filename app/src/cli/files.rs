//! Files of verbs: archives in, reports out.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lab::page::har::{self, FILE_BYTES_MAX};
use sys::os_error;

/// The pages of a HAR file.
///
/// # Errors
/// A sentence with the file's name: it cannot be read, or is no archive.
pub(super) fn archive(path: &Path) -> Result<Vec<har::Page>, String> {
    let shown = path.display();
    let cannot = |why: &str| format!("cannot read {shown}: {why}");
    let file = File::open(path).map_err(|error| cannot(&os_error(&error)))?;
    let kind = file.metadata().map_err(|error| cannot(&os_error(&error)))?;
    if kind.is_dir() {
        return Err(cannot("it is a directory"));
    }
    // One byte more, so that a file that is too large is known for one without being read whole, also where it is a device.
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| cannot(&os_error(&error)))?;
    har::read(&bytes).map_err(|fault| format!("{shown}: {fault}"))
}

/// Writes a file that an option asks for.
///
/// # Errors
/// See [`write`].
pub(super) fn written(
    path: &Option<PathBuf>,
    text: impl FnOnce() -> Result<String, String>,
) -> Result<(), String> {
    path.as_ref().map_or(Ok(()), |path| write(path, &text()?))
}

/// Writes a file; a file whose writing fails is not left behind half.
///
/// # Errors
/// A sentence with the file's name.
pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    let cannot =
        |error: io::Error| format!("cannot write {}: {}", path.display(), os_error(&error));
    let mut file = File::create(path).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(|error| {
        // Devices and pipes stay.
        if path.is_file() {
            let _ = std::fs::remove_file(path);
        }
        cannot(error)
    })
}
