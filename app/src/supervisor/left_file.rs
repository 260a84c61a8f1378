//! Files of UNIX-domain sockets that the predecessor, which started this process, may still need.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use server_base::listen::ListenAddr;

use super::inherit::Inheritance;
use super::listeners::{Listener, Origin};

/// The file of a UNIX-domain socket that the predecessor may still need: path, device and inode.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftFile(PathBuf, u64, u64);

impl LeftFile {
    /// Returns the file in its present state; `None` if it does not exist.
    pub(super) fn of(path: PathBuf) -> Option<Self> {
        let metadata = fs::symlink_metadata(&path).ok()?;
        Some(Self(path, metadata.dev(), metadata.ino()))
    }

    /// Returns its path, unless the path has another file now.
    pub(super) fn path(&self) -> Option<&PathBuf> {
        let now = Self::of(self.0.clone());
        (now.as_ref() == Some(self)).then_some(&self.0)
    }
}

/// Returns the files of inherited sockets that the configuration no longer uses.
pub(super) fn unclaimed(inherited: &Inheritance, claimed: &[Listener]) -> Vec<LeftFile> {
    let unclaimed = inherited.listeners.iter().filter(|listener| {
        listener.origin() == Origin::Predecessor
            && claimed.iter().all(|other| other.addr() != listener.addr())
    });
    let paths = unclaimed.filter_map(|listener| match listener.addr() {
        ListenAddr::Unix(path) => Some(path.clone()),
        ListenAddr::Inet(_) => None,
    });
    paths.filter_map(LeftFile::of).collect()
}
