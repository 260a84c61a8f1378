//! The directory that kept files lie below, opened: a look at a file from there walks through fewer directories.
//!
//! Such a look finds what one by the whole path finds if the directory's own path leads to the directory that is open. That is
//! compared once for all requests that were read together, after they were read, so a directory or link on the way that was
//! replaced shows on the next request, as it does without this.
//!
//! Absent: several directories. Files that lie elsewhere are looked at by their whole paths.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, Stat};
use server_base::files::{FileError, Meta};
use sys::retry;

use super::open_path::{SEARCH, failed, meta_of};

/// An open directory, and when its path led to it.
#[derive(Debug)]
pub(crate) struct BaseDir {
    /// Its path without a slash at the end.
    path: Box<[u8]>,
    dir: OwnedFd,
    id: DirId,
    /// The count of reads at which its path led to it.
    valid_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DirId {
    dev: u64,
    ino: u64,
}

impl DirId {
    fn of(stat: &Stat) -> Self {
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
        }
    }
}

impl BaseDir {
    /// Opens the directory at an absolute path; `None` where that fails. Its path leads to it while nothing more is read
    /// (`input_reads`).
    pub(crate) fn open(path: &[u8], input_reads: u64) -> Option<Self> {
        let dir = retry(|| rustix::fs::open(path, SEARCH, Mode::empty())).ok()?;
        let id = DirId::of(&rustix::fs::fstat(&dir).ok()?);
        Some(Self {
            path: path.into(),
            dir,
            id,
            valid_at: input_reads,
        })
    }

    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Compares the directory with what its path leads to, once at each count of reads; opens that if it is another one.
    /// `None` if it leads to no directory.
    pub(crate) fn renewed(mut self, input_reads: u64) -> Option<Self> {
        if self.valid_at == input_reads {
            return Some(self);
        }
        let found = retry(|| rustix::fs::stat(&*self.path)).ok()?;
        if DirId::of(&found) != self.id {
            return Self::open(&self.path, input_reads);
        }
        self.valid_at = input_reads;
        Some(self)
    }

    /// Describes a path below the directory, links followed; `None` for another path, and where more was read since the
    /// directory was compared.
    #[inline]
    pub(crate) fn describe(
        &self,
        path: &[u8],
        input_reads: u64,
        call: &'static str,
    ) -> Option<Result<Meta, FileError>> {
        if self.valid_at != input_reads {
            return None;
        }
        let below = path.strip_prefix(&*self.path)?.strip_prefix(b"/")?;
        if below.is_empty() || below.starts_with(b"/") {
            return None;
        }
        let stat = retry(|| rustix::fs::statat(&self.dir, below, AtFlags::empty()));
        Some(stat.map(|stat| meta_of(&stat)).map_err(failed(call)))
    }
}

/// The deepest directory that all paths lie below; `None` if that is the root, or a path is not absolute.
pub(crate) fn common_dir<'a>(mut paths: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    let mut common = paths.next()?;
    for path in paths {
        let equal = common.iter().zip(path).take_while(|(a, b)| a == b).count();
        common = &common[..equal];
    }
    let end = common.iter().rposition(|byte| *byte == b'/')?;
    (end > 0 && common[0] == b'/').then_some(&common[..end])
}

#[cfg(test)]
#[path = "base_dir_tests.rs"]
mod tests;
