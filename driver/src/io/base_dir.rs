//! The directory that kept files lie below, opened: a look at a file from there walks through fewer directories.
//!
//! Such a look finds what one by the whole path finds if the directory's own path leads to the directory that is open. That is
//! compared once for all requests that were read together, after they were read, so a directory or link on the way that was
//! replaced shows on the next request, as it does without this. Then the kernel's reports are taken in of what changed below the
//! directory (`dir_watch`): a file in a directory without a report is not looked at.
//!
//! Absent: several directories. Files that lie elsewhere are looked at by their whole paths.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, Stat};
use server_base::files::{FileError, Meta};
use sys::retry;

use super::dir_watch::{DirId, DirWatch, Mark};
use super::open_path::{self, SEARCH, failed, meta_of};

/// A directory, and when its path led to it.
#[derive(Debug)]
pub(crate) struct BaseDir {
    /// Its path without a slash at the end.
    path: Box<[u8]>,
    /// `None` while there are no looks from there.
    dir: Option<OwnedFd>,
    id: DirId,
    /// The count of reads at which its path led to it.
    valid_at: u64,
    /// Watched directories below it.
    watch: Option<DirWatch>,
    /// In how many sweeps its watch begins, or its marks expire.
    sweeps: u32,
    /// Sweeps since there were many looks.
    idle: u32,
}

/// Result of a look at a path.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) meta: Result<Meta, FileError>,
    /// The state of the file's directory in which that holds, if the kernel reports its changes.
    pub(crate) mark: Option<Mark>,
}

fn id_of(stat: &Stat) -> DirId {
    DirId {
        dev: stat.st_dev,
        ino: stat.st_ino,
    }
}

impl BaseDir {
    /// Opens the directory at an absolute path; `None` where that fails. Its path leads to it while nothing more is read
    /// (`input_reads`).
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

    /// Whether it is this directory, or one above it.
    pub(crate) fn has_below(&self, dir: &[u8]) -> bool {
        let rest = dir.strip_prefix(&*self.path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    /// Compares the directory with what its path leads to, once at each count of reads; opens that if it is another one.
    /// `None` if it leads to no directory.
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

    /// Has the kernel go on to report changes below the directory, or begin to where `begins` says so, if it can; call it in each
    /// sweep with many requests since the last.
    pub(crate) fn sweep_watch(&mut self, begins: bool) {
        self.idle = 0;
        self.expire();
        if begins && self.watch.is_none() && self.sweeps == 0 {
            self.watch = self.dir.as_ref().and_then(DirWatch::begin);
            self.sweeps = SWEEPS_UNTIL_EXPIRY;
        }
    }

    /// Closes the directory; call it in each sweep with few looks since the last, or none. False where nothing is lost with the
    /// rest.
    pub(crate) fn rest(&mut self) -> bool {
        self.idle += 1;
        self.expire();
        (self.dir, self.valid_at) = (None, NEVER);
        // Events do not wait until there are more of them than can be taken in.
        let watch = self.watch.as_mut();
        self.idle <= SWEEPS_IDLE && watch.is_some_and(DirWatch::update)
    }

    /// Has files looked at again that were not for as many sweeps.
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

    /// Looks at every file before its use from now on.
    pub(crate) fn end_watch(&mut self) {
        if self.watch.take().is_some() {
            self.sweeps = SWEEPS_UNTIL_AGAIN;
        }
        self.idle = 0;
    }

    /// Whether a file is unchanged since a look that gave this mark; false where more was read since the directory was compared.
    #[inline]
    pub(crate) fn is_unchanged(&self, mark: Mark, input_reads: u64) -> bool {
        let watch = self.watch.as_ref();
        self.valid_at == input_reads && watch.is_some_and(|watch| watch.is_unchanged(mark))
    }

    /// Looks at a path below the directory, links followed; `None` for another path, and where more was read since the
    /// directory was compared.
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

    /// Opens a path below the directory, links followed; `None` as for [`Self::describe`].
    pub(crate) fn open_below(
        &self,
        path: &[u8],
        input_reads: u64,
    ) -> Option<Result<OwnedFd, FileError>> {
        let below = self.below(path, input_reads)?;
        Some(open_path::open_below(self.dir.as_ref()?, below))
    }

    /// The part of a path behind the directory.
    #[inline]
    fn below<'a>(&self, path: &'a [u8], input_reads: u64) -> Option<&'a [u8]> {
        if self.valid_at != input_reads {
            return None;
        }
        let below = path.strip_prefix(&*self.path)?.strip_prefix(b"/")?;
        (!below.is_empty() && !below.starts_with(b"/")).then_some(below)
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

/// Sweeps for which a watch's marks are good.
const SWEEPS_UNTIL_EXPIRY: u32 = 9;
/// Sweeps until a watch begins again after one that ended before its time.
const SWEEPS_UNTIL_AGAIN: u32 = 8;
/// Sweeps without many looks until a watch ends.
const SWEEPS_IDLE: u32 = 60;
/// No count of reads.
const NEVER: u64 = u64::MAX;

#[cfg(test)]
#[path = "base_dir_tests.rs"]
mod tests;
