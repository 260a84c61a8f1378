//! The log files that a configuration names, each once, in the order in which they are named.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::Build;

/// Paths of logs, each once.
#[derive(Debug, Default)]
pub struct LogPaths {
    list: Vec<PathBuf>,
    known: HashSet<PathBuf>,
}

impl LogPaths {
    /// Notes a log.
    pub fn add(&mut self, path: &Path) {
        if self.known.insert(path.to_path_buf()) {
            self.list.push(path.to_path_buf());
        }
    }

    /// The logs in the order in which they were noted.
    pub fn into_list(self) -> Vec<PathBuf> {
        self.list
    }
}

impl Build {
    /// Resolves a path and notes it as a log to open.
    pub fn log_path(&mut self, path: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(self.full_path(path)));
        self.log_paths.add(&path);
        path
    }

    /// The access log of a configuration that names none, noted as a log to open.
    pub fn default_access_log(&mut self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let path = self.options.access_log.clone();
        self.log_path(path.as_os_str().as_bytes())
    }
}
