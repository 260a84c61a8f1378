//! The pid file: how `-s` and init scripts find the supervisor.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use server_core::errlog::Level;

use super::Reported;
use crate::console::Console;

/// Writes this process's number to `path`.
///
/// # Errors
/// The file cannot be written, which has been reported.
pub(crate) fn write(path: &Path, console: &Console) -> Result<(), Reported> {
    let mut options = OpenOptions::new();
    let opened = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(MODE)
        .open(path);
    let written = opened.and_then(|mut file| writeln!(file, "{}", std::process::id()));
    reported(written, path, console)
}

/// Finds out whether `path` could be written, and leaves its content.
///
/// # Errors
/// It cannot, which has been reported.
pub(crate) fn test(path: &Path, console: &Console) -> Result<(), Reported> {
    let mut options = OpenOptions::new();
    let opened = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .open(path);
    reported(opened.map(drop), path, console)
}

/// Removes the file.
pub(crate) fn remove(path: &Path, console: &Console) {
    if let Err(error) = fs::remove_file(path) {
        console.failed(
            Level::Alert,
            format_args!("unlink() \"{}\"", path.display()),
            &error,
        );
    }
}

fn reported(result: io::Result<()>, path: &Path, console: &Console) -> Result<(), Reported> {
    result.map_err(|error| {
        console.failed(
            Level::Emerg,
            format_args!("open() \"{}\"", path.display()),
            &error,
        );
        Reported
    })
}

const MODE: u32 = 0o644;
