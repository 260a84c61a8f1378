//! The pid file: how `-s` and init scripts find the supervisor.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use server_base::errlog::{Level, Printable};

use crate::console::{Console, Logged};

/// Writes the pid of this process to `path`. The file is renamed when it is complete, so no reader sees a part of it.
///
/// # Errors
/// The file cannot be written, which has been reported.
pub(crate) fn write(path: &Path, console: &Console) -> Result<(), Logged> {
    let text = format!("{}\n", std::process::id());
    let written = match is_replaceable(path) && replace(path, &text).is_ok() {
        true => Ok(()),
        false => overwrite(path, &text),
    };
    report(written, path, console)
}

/// Returns whether a rename may replace the file: it does not exist, or is regular and has no second name.
fn is_replaceable(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.is_file() && metadata.nlink() == 1,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Writes a file beside `path` and renames it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&name)?;
    let named = file
        .write_all(text.as_bytes())
        .and_then(|()| fs::rename(&name, path));
    if named.is_err() {
        // The error of the rename counts.
        let _ = fs::remove_file(&name);
    }
    named
}

/// Overwrites the file at `path`. A longer file is truncated afterwards, so that it is never empty.
fn overwrite(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let opened = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .open(path);
    let mut file = opened?;
    file.write_all(text.as_bytes())?;
    match file.metadata()?.is_file() {
        true => file.set_len(text.len() as u64),
        false => Ok(()),
    }
}

/// Finds out whether `path` could be written, and leaves its content; a file that was not there is removed.
///
/// # Errors
/// It cannot, which has been reported.
pub(crate) fn test(path: &Path, console: &Console) -> Result<(), Logged> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let made = options.clone().create_new(true).mode(MODE).open(path);
    let result = match made {
        Ok(_) => fs::remove_file(path),
        // The file is opened with create nevertheless: the name may be a link to a missing file.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options
            .create(true)
            .truncate(false)
            .mode(MODE)
            .open(path)
            .map(drop),
        Err(error) => Err(error),
    };
    report(result, path, console)
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

/// Returns the name of the file while a successor started by this process serves.
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
    report_rename(fs::rename(path, &oldbin), what, when, console)?;
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
    let _ = report_rename(fs::rename(oldbin, path), what, when, console);
}

/// `rename() A to B failed before executing ... (2: No such file or directory)`, as nginx words it.
fn report_rename(
    result: io::Result<()>,
    what: fmt::Arguments<'_>,
    when: fmt::Arguments<'_>,
    console: &Console,
) -> Result<(), Logged> {
    result.map_err(|error| {
        let reason = sys::os_error(&error);
        console.report(
            Level::Alert,
            format_args!("rename() {what} failed {when} ({reason})"),
        );
        Logged
    })
}

fn report(result: io::Result<()>, path: &Path, console: &Console) -> Result<(), Logged> {
    result.map_err(|error| {
        console.fatal(format_args!("open() \"{}\"", Printable::path(path)), &error)
    })
}

const MODE: u32 = 0o644;

/// Suffix that nginx adds to the name.
const OLDBIN: &str = ".oldbin";
