//! The log files that a configuration names, each once, in the order in which they are named.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

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
