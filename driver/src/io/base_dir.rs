//! The open common directory of cached files: a lookup from there walks through fewer directories.
//!
//! Such a lookup equals one by the full path if the directory's path still leads to the open directory. This is checked
//! once for all requests that were read together, after the read. So a replaced directory or link on the path shows on
//! the next request, as with full paths. The check also reads the kernel's reports of changes below the directory
//! (`dir_watch`). A file is not checked if its directory has no report.
//!
//! Absent: several directories. Files elsewhere are checked by their full paths.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, Stat};
use server_base::files::{FileError, Meta};
use sys::retry;

use super::dir_watch::{DirId, DirWatch, Mark};
use super::open_path::{self, SEARCH, failed, meta_of};

/// A directory, and the last time its path led to it.
#[derive(Debug)]
pub(crate) struct BaseDir {
    /// Path without a trailing slash.
    path: Box<[u8]>,
    /// `None` while it is closed.
    dir: Option<OwnedFd>,
    id: DirId,
    /// Count of reads at the last check of the path.
    valid_at: u64,
    /// Watched directories below it.
    watch: Option<DirWatch>,
    /// Sweeps until the watch may begin, or until its marks expire.
    sweeps: u32,
    /// Sweeps since the last turn with many requests.
    idle: u32,
}

/// Result of a lookup of a path.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) meta: Result<Meta, FileError>,
    /// State of the file's directory for which `meta` is valid, if the kernel reports its changes.
    pub(crate) mark: Option<Mark>,
}

fn id_of(stat: &Stat) -> DirId {
    DirId {
        dev: stat.st_dev,
        ino: stat.st_ino,
    }
}

impl BaseDir {
    /// Opens the directory at an absolute path; `None` if that fails. Lookups from it are valid while `input_reads` is
    /// unchanged.
    pub(crate) fn open(path: &[u8], input_reads: u64) -> Option<Self> {
        let dir = retry(|| rustix::fs::open(path, SEARCH, Mode::empty())).ok()?;
        let id = id_of(&rustix::fs::fstat(&dir).ok()?);
        Some(Self {
            path: path.into(),
            dir: Some(dir),
            id,
            valid_at: input_reads,
            watch: None,
            sweeps: 0,
            idle: 0,
        })
    }

    /// Whether `dir` is this directory or is below it.
    pub(crate) fn has_below(&self, dir: &[u8]) -> bool {
        let rest = dir.strip_prefix(&*self.path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    /// Checks once per count of reads that the path still leads to the open directory. Opens the new directory if it
    /// does not. Returns `None` if there is no directory at the path.
    pub(crate) fn renewed(mut self, input_reads: u64) -> Option<Self> {
        if self.valid_at == input_reads {
            return Some(self);
        }
        if self.dir.is_none() {
            let opened = Self::open(&self.path, input_reads)?;
            if opened.id != self.id {
                return Some(opened);
            }
            self.dir = opened.dir;
        } else {
            let found = retry(|| rustix::fs::stat(&*self.path)).ok()?;
            if id_of(&found) != self.id {
                return Self::open(&self.path, input_reads);
            }
        }
        self.valid_at = input_reads;
        if let (Some(watch), Some(dir)) = (&mut self.watch, &self.dir) {
            if watch.update() {
                watch.exchange(dir);
            } else {
                (self.watch, self.sweeps) = (None, SWEEPS_UNTIL_AGAIN);
            }
        }
        Some(self)
    }

    /// Continues the watch of directories, or begins one if `begins` is set and the kernel can report changes. Call it
    /// in each sweep after a turn with many requests.
    pub(crate) fn sweep_watch(&mut self, begins: bool) {
        self.idle = 0;
        self.expire();
        if begins && self.watch.is_none() && self.sweeps == 0 {
            self.watch = self.dir.as_ref().and_then(DirWatch::begin);
            self.sweeps = SWEEPS_UNTIL_EXPIRY;
        }
    }

    /// Closes the directory and continues its watch for a while. Call it in each sweep without a turn of many requests.
    /// Returns false if no watch remains, so that `self` can be dropped.
    pub(crate) fn rest(&mut self) -> bool {
        self.idle += 1;
        self.expire();
        (self.dir, self.valid_at) = (None, NEVER);
        // Reads events in each sweep. Otherwise there could be too many for one read.
        let watch = self.watch.as_mut();
        self.idle <= SWEEPS_IDLE && watch.is_some_and(DirWatch::update)
    }

    /// Makes all marks old after every [`SWEEPS_UNTIL_EXPIRY`] sweeps, so that files are checked again.
    fn expire(&mut self) {
        match &mut self.watch {
            Some(watch) if self.sweeps == 0 => {
                watch.expire();
                self.sweeps = SWEEPS_UNTIL_EXPIRY;
            }
            _ => self.sweeps = self.sweeps.saturating_sub(1),
        }
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Ends the watch: every file is checked before its use.
    pub(crate) fn end_watch(&mut self) {
        if self.watch.take().is_some() {
            self.sweeps = SWEEPS_UNTIL_AGAIN;
        }
        self.idle = 0;
    }

    /// Whether a file is unchanged since the lookup that returned `mark`. False if input was read since the last check
    /// of the directory.
    #[inline]
    pub(crate) fn is_unchanged(&self, mark: Mark, input_reads: u64) -> bool {
        let watch = self.watch.as_ref();
        self.valid_at == input_reads && watch.is_some_and(|watch| watch.is_unchanged(mark))
    }

    /// Describes a path below the directory, following links. Returns `None` for another path, or if input was read
    /// since the last check of the directory.
    #[inline]
    pub(crate) fn describe(
        &mut self,
        path: &[u8],
        input_reads: u64,
        call: &'static str,
    ) -> Option<Look> {
        let below = self.below(path, input_reads)?;
        let dir = self.dir.as_ref()?;
        if let Some(watch) = &mut self.watch
            && let Some((meta, mark)) = watch.describe(dir, below)
        {
            return Some(Look {
                meta: Ok(meta),
                mark,
            });
        }
        let stat = retry(|| rustix::fs::statat(dir, below, AtFlags::empty()));
        Some(Look {
            meta: stat.map(|stat| meta_of(&stat)).map_err(failed(call)),
            mark: None,
        })
    }

    /// Opens a path below the directory, following links; `None` as for [`Self::describe`].
    pub(crate) fn open_below(
        &self,
        path: &[u8],
        input_reads: u64,
    ) -> Option<Result<OwnedFd, FileError>> {
        let below = self.below(path, input_reads)?;
        Some(open_path::open_below(self.dir.as_ref()?, below))
    }

    /// Returns the part of a path after the directory, if the directory was checked at this count of reads.
    #[inline]
    fn below<'a>(&self, path: &'a [u8], input_reads: u64) -> Option<&'a [u8]> {
        if self.valid_at != input_reads {
            return None;
        }
        let below = path.strip_prefix(&*self.path)?.strip_prefix(b"/")?;
        (!below.is_empty() && !below.starts_with(b"/")).then_some(below)
    }
}

/// Returns the deepest directory that contains all paths; `None` if it is the root, or a path is not absolute.
pub(crate) fn common_dir<'a>(mut paths: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    let mut common = paths.next()?;
    for path in paths {
        let equal = common.iter().zip(path).take_while(|(a, b)| a == b).count();
        common = &common[..equal];
    }
    let end = common.iter().rposition(|byte| *byte == b'/')?;
    (end > 0 && common[0] == b'/').then_some(&common[..end])
}

/// Sweeps after which the marks of a watch expire.
const SWEEPS_UNTIL_EXPIRY: u32 = 9;
/// Sweeps until a watch may begin after another one ended early.
const SWEEPS_UNTIL_AGAIN: u32 = 8;
/// Sweeps without many requests after which a watch ends.
const SWEEPS_IDLE: u32 = 60;
/// No count of reads has this value.
const NEVER: u64 = u64::MAX;

#[cfg(test)]
#[path = "base_dir_tests.rs"]
mod tests;
