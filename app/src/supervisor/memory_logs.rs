//! Error logs in memory, and their copies in a file.
//!
//! The supervisor holds each ring that its worker uses, so that the worker's last messages survive it. Rings are saved
//! beside the first error log that is a file, with `.memory` added to its name: when a worker is lost, when it reports
//! a panic, and on USR1. Source: nginx documentation, `error_log`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use server_base::errlog::{Level, MemoryBuffer, Printable};
use sys::process;

use crate::console::{Console, Logged};

/// The rings of one generation.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryLogs {
    files: Vec<(MemoryBuffer, Arc<File>)>,
}

impl MemoryLogs {
    /// Makes an empty ring for each buffer.
    ///
    /// # Errors
    /// There is no memory, which has been reported.
    pub(crate) fn open(buffers: &[MemoryBuffer], console: &Console) -> Result<Self, Logged> {
        let mut files = Vec::new();
        for buffer in buffers {
            let made = process::memory_file("error_log").and_then(|fd| {
                let file = File::from(fd);
                buffer.clear(&file)?;
                Ok(file)
            });
            let file =
                made.map_err(|error| console.fatal(format_args!("memfd_create()"), &error))?;
            files.push((buffer.clone(), Arc::new(file)));
        }
        Ok(Self { files })
    }

    /// Files of the rings, with the key of each among the logs of a bundle.
    pub(crate) fn files_by_key(&self) -> impl Iterator<Item = (PathBuf, &File)> {
        let files = self.files.iter();
        files.map(|(buffer, file)| (buffer.key(), &**file))
    }

    /// Writes all rings to the file beside `log`, in place of an earlier copy.
    pub(crate) fn save(&self, log: Option<&Path>, console: &Console) {
        if self.files.is_empty() {
            return;
        }
        let Some(log) = log else {
            return console.notice(format_args!(
                "no error log is a file: the logs in memory are not saved"
            ));
        };
        let mut name = log.as_os_str().to_owned();
        name.push(SUFFIX);
        let path = PathBuf::from(name);
        let shown = Printable::path(&path);
        match self.write(&path) {
            Ok(()) => console.notice(format_args!("logs in memory were saved to \"{shown}\"")),
            Err(error) => {
                console.failed(Level::Alert, format_args!("saving \"{shown}\""), &error);
            }
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        // Removed and created again, so that another user's link is not followed.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(MODE);
        let mut out = options.open(path)?;
        for (buffer, file) in &self.files {
            out.write_all(&buffer.read(file)?)?;
        }
        Ok(())
    }

    /// Empties every ring for the next worker.
    pub(crate) fn clear(&self, console: &Console) {
        for (buffer, file) in &self.files {
            if let Err(error) = buffer.clear(file) {
                console.failed(Level::Alert, format_args!("ftruncate()"), &error);
            }
        }
    }
}

/// Suffix of the error log's name.
const SUFFIX: &str = ".memory";
/// Debugging messages show cookies and passwords.
const MODE: u32 = 0o600;
