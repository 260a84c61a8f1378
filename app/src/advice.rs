//! Warnings of the lint, which `-t` prints besides errors.
//!
//! They are for the caller, and so go to standard error alone, not into the error log. They come before the error
//! that a load ended with, as nginx's warnings do, and are there also when that was a directive which is not built:
//! a trap is one in any server that reads the file. `-q` asks for errors only.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{DataFile, Disk, Memory, Source};
use server_http::LoadOptions;

use crate::console;

/// Prints the warnings about the configuration of which `record` was read.
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

/// Replays files as they were read before; the rest (behind an error) comes from the disk.
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
        match self.record.globbed(pattern) {
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
