//! Lint warnings, which `-t` prints in addition to errors.
//!
//! They are for the caller, so they go to standard error only, not to the error log. As nginx's warnings, they are
//! printed before the error that ended a load. A directive that is not built does not suppress them: a trap is one in
//! any server that reads the file. `-q` prints errors only.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{DataFile, Disk, Memory, Source};
use server_http::LoadOptions;

use crate::console;

/// Prints the warnings for the configuration recorded in `record`.
pub(crate) fn print(options: &LoadOptions, record: &Memory) {
    let source = ReplaySource {
        record: record.clone(),
    };
    let Ok(report) = lint::check(source, &options.conf_path, options.globals.as_deref()) else {
        return;
    };
    for warning in report.rendered() {
        console::say(format_args!("[warn] {warning}"));
    }
}

/// Replays recorded files; files after an error come from the disk.
struct ReplaySource {
    record: Memory,
}

impl Source for ReplaySource {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.record
            .read(path)
            .or_else(|_| Disk::default().read(path))
    }

    fn read_text(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        let known = self.record.read_text(path);
        known.or_else(|_| Disk::default().read_text(path))
    }

    fn glob(&mut self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        match self.record.glob_result(pattern) {
            Some(paths) => Ok(paths.to_vec()),
            None => Disk::default().glob(pattern),
        }
    }

    fn addresses(&mut self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.record.addresses(host)
    }

    fn open(&mut self, path: &Path) -> io::Result<DataFile> {
        self.record
            .open(path)
            .or_else(|_| Disk::default().open(path))
    }
}
