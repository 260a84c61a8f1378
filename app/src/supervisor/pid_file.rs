//! The pid file: how `-s` and init scripts find the supervisor.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use server_base::errlog::{Level, Printable};

use crate::console::{Console, Logged};

/// Writes this process's number to `path`.
///
/// # Errors
/// The file cannot be written, which has been reported.
pub(crate) fn write(path: &Path, console: &Console) -> Result<(), Logged> {
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
pub(crate) fn test(path: &Path, console: &Console) -> Result<(), Logged> {
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
            format_args!("unlink() \"{}\"", Printable::path(path)),
            &error,
        );
    }
}

/// The name that the file has while another supervisor, started by this one, has taken its place.
fn oldbin(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OLDBIN);
    PathBuf::from(name)
}

/// Renames the file at `path` to `.oldbin`.
///
/// # Errors
/// The system's, which has been reported with `when` at its end.
pub(crate) fn set_aside(
    path: &Path,
    when: fmt::Arguments<'_>,
    console: &Console,
) -> Result<PathBuf, Logged> {
    let oldbin = oldbin(path);
    let what = format_args!("{} to {}", Printable::path(path), Printable::path(&oldbin));
    renamed(fs::rename(path, &oldbin), what, when, console)?;
    Ok(oldbin)
}

/// Renames `.oldbin` back to `path`; a failure is reported with `when` at its end.
pub(crate) fn put_back(oldbin: &Path, path: &Path, when: fmt::Arguments<'_>, console: &Console) {
    let what = format_args!(
        "{} back to {}",
        Printable::path(oldbin),
        Printable::path(path)
    );
    // Reported; there is nothing else to be done.
    let _ = renamed(fs::rename(oldbin, path), what, when, console);
}

/// `rename() A to B failed before executing ... (2: No such file or directory)`, as nginx words it.
fn renamed(
    result: io::Result<()>,
    what: fmt::Arguments<'_>,
    when: fmt::Arguments<'_>,
    console: &Console,
) -> Result<(), Logged> {
    result.map_err(|error| {
        let reason = conf::os_error(&error);
        console.report(
            Level::Alert,
            format_args!("rename() {what} failed {when} ({reason})"),
        );
        Logged
    })
}

fn reported(result: io::Result<()>, path: &Path, console: &Console) -> Result<(), Logged> {
    result.map_err(|error| {
        console.fatal(format_args!("open() \"{}\"", Printable::path(path)), &error)
    })
}

const MODE: u32 = 0o644;

/// Suffix that nginx adds to the name.
const OLDBIN: &str = ".oldbin";
