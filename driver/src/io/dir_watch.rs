//! Watches directories below a base by inotify, so that files in them need no check.
//!
//! A file that was compared with the disk is unchanged while its directory has no event. Its path must lead to it
//! through watched directories only. The kernel queues an event before the changing system call returns. So the events
//! read after a request ([`DirWatch::update`]) include every change made before the request was sent.
//!
//! Nothing is trusted where inotify does not report everything: network file systems, symbolic links, mount points,
//! files with several names, unreadable directories. `/proc/thread-self/mountinfo` reports mounts. Nothing is trusted
//! after a mount, after a move or removal of a watched directory, or after [`EVENTS_MOST`] events at once. The owner
//! starts again later.
//!
//! The remaining errors are bounded in time, since the owner lets marks expire ([`DirWatch::expire`]). They concern a
//! file written by another name that it has or had, or without a name (the kernel's NFS server). They also concern
//! writes in progress through a shared mapping or io_submit(2).
//!
//! Adding a watch visits all entries that the kernel has cached below a directory. Closing waits for other CPUs. A
//! separate thread does both. Meanwhile a lookup of an uncached name in that directory waits, so large directories are
//! excluded ([`DIR_BYTES_MOST`]). Absent: directories without requests, and more than [`DIRS_MOST`].
//!
//! Source: inotify(7), statx(2), openat2(2), proc_pid_mountinfo(5).

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxAttributes, StatxFlags,
};
use rustix::io::Errno;
use server_base::files::Meta;
use server_base::offload::{Full, Work};
use sys::{retry, schedule};

use super::open_path::SEARCH;
use crate::pool::{Limits, Pool};

/// Watched directories of one thread.
#[derive(Debug)]
pub(crate) struct DirWatch {
    /// `None` after it was handed to the thread that closes it.
    notify: Option<Arc<OwnedFd>>,
    mounts: OwnedFd,
    /// Directories by their paths below the base; the base itself has the empty path.
    dirs: HashMap<Box<[u8]>, DirState>,
    /// Indices of stamps by watch descriptor.
    places: HashMap<i32, u16>,
    /// Stamp of each trusted directory. It changes with each event.
    stamps: Vec<u64>,
    /// Directories to be watched.
    wanted: Vec<Box<[u8]>>,
    /// Results of the background thread; `pending` counts the directories that it still has.
    added: Receiver<Added>,
    sender: Sender<Added>,
    pending: usize,
}

/// Watched state of a directory.
#[derive(Clone, Copy, Debug)]
enum DirState {
    /// A watch was requested.
    Wanted,
    /// A watch with this descriptor is on the directory with this identity. The path was not checked since.
    Added(i32, DirId),
    /// All directories on the path are watched, too. The value is the index of its stamp.
    Relied(u16),
    /// It cannot be trusted.
    Refused,
}

/// Identity of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirId {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
}

/// Result of an attempt to watch a directory.
struct Added {
    dir: Box<[u8]>,
    watch: Option<(i32, DirId)>,
}

/// A state of a directory. Files checked in this state are unchanged while the directory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) place: u16,
    pub(crate) stamp: u64,
}

impl DirWatch {
    /// Begins watching below a directory. Returns `None` on other than local file systems, or if the kernel refuses.
    pub(crate) fn begin(base: &OwnedFd) -> Option<Self> {
        if !has_all_events(base) {
            return None;
        }
        let notify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = rustix::fs::open("/proc/thread-self/mountinfo", flags, Mode::empty()).ok()?;
        let (sender, added) = channel();
        Some(Self {
            notify: Some(Arc::new(notify)),
            mounts,
            dirs: HashMap::new(),
            places: HashMap::new(),
            stamps: Vec::new(),
            wanted: Vec::new(),
            added,
            sender,
            pending: 0,
        })
    }

    /// Reads the events since the last call. Returns false if nothing can be trusted any more; then it must be dropped.
    #[inline]
    pub(crate) fn update(&mut self) -> bool {
        let Some(notify) = &self.notify else {
            return false;
        };
        let mut fds = [
            PollFd::new(&**notify, PollFlags::IN),
            PollFd::new(&self.mounts, PollFlags::PRI),
        ];
        match retry(|| poll(&mut fds, Some(&Timespec::default()))) {
            Ok(0) => true,
            Ok(_) => fds[1].revents().is_empty() && self.read_events(),
            Err(_) => false,
        }
    }

    /// Reads queued events. Returns false if one invalidates everything, or there are too many.
    #[cold]
    fn read_events(&mut self) -> bool {
        let Some(notify) = &self.notify else {
            return false;
        };
        let mut space = [MaybeUninit::uninit(); READ_BYTES];
        let mut events = inotify::Reader::new(&**notify, &mut space);
        for _ in 0..EVENTS_MOST {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(error) => return error == Errno::AGAIN,
            };
            let kind = event.events();
            let moves = kind.contains(ReadFlags::ISDIR) && kind.intersects(OF_WAYS);
            if moves || kind.intersects(OF_WATCHES) {
                return false;
            }
            if let Some(place) = self.places.get(&event.wd()) {
                self.stamps[usize::from(*place)] = next_stamp();
            }
        }
        false
    }

    /// Collects the watches that were added, and submits the directories that are wanted.
    #[inline]
    pub(crate) fn exchange(&mut self, base: &OwnedFd) {
        if self.pending > 0 {
            self.take_added();
        }
        if self.pending == 0 && !self.wanted.is_empty() {
            self.submit_wanted(base);
        }
    }

    #[cold]
    fn take_added(&mut self) {
        for Added { dir, watch } in self.added.try_iter().take(TAKEN_MOST) {
            self.pending -= 1;
            let state = watch.map_or(DirState::Refused, |(watch, id)| DirState::Added(watch, id));
            self.dirs.insert(dir, state);
        }
    }

    #[cold]
    fn submit_wanted(&mut self, base: &OwnedFd) {
        let (Some(notify), Ok(base)) = (&self.notify, base.try_clone()) else {
            return;
        };
        let (notify, sender) = (Arc::downgrade(notify), self.sender.clone());
        let wanted = std::mem::take(&mut self.wanted);
        let count = wanted.len();
        let work = move || {
            for dir in wanted {
                let watch = notify
                    .upgrade()
                    .and_then(|notify| add(&notify, &base, &dir));
                if sender.send(Added { dir, watch }).is_err() {
                    // The owner was dropped.
                    return;
                }
            }
        };
        if in_background(Box::new(work)).is_ok() {
            self.pending = count;
        }
    }

    /// Describes a file by its path below the base. Returns the mark of its directory if the file has one name. Returns
    /// `None` if the path is not trusted, or there is no regular file.
    pub(crate) fn describe(
        &mut self,
        base: &OwnedFd,
        below: &[u8],
    ) -> Option<(Meta, Option<Mark>)> {
        let (dir, name) = split(below);
        if !is_name(name) {
            return None;
        }
        let place = self.rely_on(base, dir)?;
        let stamp = *self.stamps.get(usize::from(place))?;
        let found = look(base, below)?;
        let is_file = FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
        let mark = Mark { place, stamp };
        is_file.then(|| (meta_of(&found), (found.stx_nlink == 1).then_some(mark)))
    }

    /// Whether a directory has had no event since `mark` was returned.
    #[inline]
    pub(crate) fn is_unchanged(&self, mark: Mark) -> bool {
        self.stamps.get(usize::from(mark.place)) == Some(&mark.stamp)
    }

    /// Makes all marks old. Refused directories may be tried again.
    pub(crate) fn expire(&mut self) {
        let stamp = next_stamp();
        self.stamps.fill(stamp);
        self.dirs
            .retain(|_, state| !matches!(state, DirState::Refused));
    }

    /// Returns the index of a directory's stamp; `None` if it is not trusted, or not yet.
    fn rely_on(&mut self, base: &OwnedFd, dir: &[u8]) -> Option<u16> {
        match self.dirs.get(dir).copied() {
            Some(DirState::Relied(place)) => Some(place),
            Some(DirState::Added(watch, id)) => {
                let state = self.confirm(base, dir, watch, id);
                self.dirs.insert(dir.into(), state);
                match state {
                    DirState::Relied(place) => Some(place),
                    _ => None,
                }
            }
            Some(DirState::Wanted | DirState::Refused) => None,
            None => {
                self.want(dir);
                None
            }
        }
    }

    /// Returns the next state of a directory that has a watch. It is trusted if its path leads to it while the whole
    /// path is watched.
    fn confirm(&mut self, base: &OwnedFd, dir: &[u8], watch: i32, id: DirId) -> DirState {
        if !dir.is_empty() {
            let parent = split(dir).0;
            if self.rely_on(base, parent).is_none() {
                return match self.dirs.get(parent) {
                    Some(DirState::Refused) => DirState::Refused,
                    _ => DirState::Added(watch, id),
                };
            }
            if look(base, dir).map(|found| id_of(&found)) != Some(id) {
                return DirState::Refused;
            }
        }
        // A directory may have two names. The events of its watch are counted for the first name only.
        let Ok(place) = u16::try_from(self.stamps.len()) else {
            return DirState::Refused;
        };
        if self.places.contains_key(&watch) {
            return DirState::Refused;
        }
        self.stamps.push(next_stamp());
        self.places.insert(watch, place);
        DirState::Relied(place)
    }

    /// Requests watches for a directory and those on its path, top-down. Refuses a deep path, or one with `.` or `..`.
    fn want(&mut self, dir: &[u8]) {
        let (parent, name) = split(dir);
        let is_plain = dir.is_empty() || is_name(name);
        let depth = dir.iter().filter(|byte| **byte == b'/').count();
        if !is_plain || depth >= DEPTH_MOST {
            if self.dirs.len() < DIRS_MOST {
                self.dirs.insert(dir.into(), DirState::Refused);
            }
            return;
        }
        if !dir.is_empty() && !self.dirs.contains_key(parent) {
            self.want(parent);
        }
        if self.dirs.len() < DIRS_MOST {
            self.dirs.insert(dir.into(), DirState::Wanted);
            self.wanted.push(dir.into());
        }
    }
}

impl Drop for DirWatch {
    fn drop(&mut self) {
        if let Some(notify) = self.notify.take() {
            let _ = in_background(Box::new(move || drop(notify)));
        }
    }
}

/// Watches a directory below the base. Returns `None` if its path has links or leads to another mount, or if the kernel
/// refuses.
fn add(notify: &OwnedFd, base: &OwnedFd, dir: &[u8]) -> Option<(i32, DirId)> {
    let opened = match dir {
        b"" => base.try_clone().ok()?,
        dir => {
            let plain = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            rustix::fs::openat2(base, dir, SEARCH, Mode::empty(), plain).ok()?
        }
    };
    let flags = AtFlags::EMPTY_PATH;
    let found = rustix::fs::statx(&opened, "", flags, StatxFlags::BASIC_STATS).ok()?;
    if found.stx_size > DIR_BYTES_MOST {
        return None;
    }
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let watch = inotify::add_watch(notify, path, CHANGES | WatchFlags::ONLYDIR);
    Some((watch.ok()?, id_of(&found)))
}

/// Describes a path without following a link. Returns `None` if nothing is there, if it is a mount point, or if the
/// kernel does not report mount points.
fn look(base: &OwnedFd, path: &[u8]) -> Option<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let found = retry(|| rustix::fs::statx(base, path, flags, StatxFlags::BASIC_STATS)).ok()?;
    let is_told = found
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT);
    let is_mounted = found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    (is_told && !is_mounted).then_some(found)
}

fn id_of(found: &Statx) -> DirId {
    DirId {
        dev: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        ino: found.stx_ino,
    }
}

fn meta_of(found: &Statx) -> Meta {
    let mode = u32::from(found.stx_mode);
    let file_type = FileType::from_raw_mode(mode);
    Meta {
        size: found.stx_size,
        mtime_s: found.stx_mtime.tv_sec,
        mtime_ns: found.stx_mtime.tv_nsec,
        ino: found.stx_ino,
        dev: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        is_dir: file_type == FileType::Directory,
        is_file: file_type == FileType::RegularFile,
        mode,
        ctime_s: found.stx_ctime.tv_sec,
        ctime_ns: found.stx_ctime.tv_nsec,
        uid: found.stx_uid,
        gid: found.stx_gid,
    }
}

/// Whether all changes of the file system go through this kernel.
fn has_all_events(base: &OwnedFd) -> bool {
    rustix::fs::fstatfs(base).is_ok_and(|found| LOCAL.contains(&(found.f_type as u32)))
}

/// Splits a path into its directory (empty if there is none) and its last component.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Whether a component of a path names an entry of a directory.
fn is_name(component: &[u8]) -> bool {
    !matches!(component, b"" | b"." | b"..")
}

/// Returns a stamp that no directory had before.
fn next_stamp() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Runs work on the thread that adds and closes watches; if it cannot be started, on the calling thread
/// ([`Pool::submit`]).
fn in_background(work: Work) -> Result<(), Full> {
    static POOL: Pool = Pool::new();
    let limits = Limits {
        threads: 1,
        waiting: WORK_MAX,
    };
    POOL.submit(work, limits, || {
        let serve = || {
            let _ = schedule::run_in_background(NICENESS);
            POOL.serve();
        };
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(serve)
            .is_ok()
    })
}

/// Changes of a directory and its entries to be reported.
///
/// CLOSE_WRITE is included: it is the only report of writes by io_submit(2), through a shared mapping, or by splice(2)
/// before Linux 6.4.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);
/// Events of a subdirectory after which paths through it may lead elsewhere, or nowhere. A directory that was removed
/// while it is open has no event of its own until it is closed.
const OF_WAYS: ReadFlags = ReadFlags::ATTRIB
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);
/// Events after which a watch reports nothing more.
const OF_WATCHES: ReadFlags = ReadFlags::DELETE_SELF
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::IGNORED)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::QUEUE_OVERFLOW);

/// File systems written by this machine only (statfs(2)): ext2 to ext4, XFS, Btrfs, F2FS, tmpfs. Overlay is excluded:
/// its lower layers may be written directly.
const LOCAL: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// Maximum number of directories that a thread watches: a quarter of a user's default limit on a small machine.
const DIRS_MOST: usize = 2048;
/// Size of the largest watched directory, bytes. On ext4 it has about 20,000 entries, which are visited in a
/// millisecond.
const DIR_BYTES_MOST: u64 = 1 << 20;
/// This number of events is too many for one read: it would delay requests.
const EVENTS_MOST: usize = 1024;
/// Maximum number of results collected at once, for the same reason.
const TAKEN_MOST: usize = 256;
/// Maximum number of directories on the path of a file. Each one is checked.
const DEPTH_MOST: usize = 32;
/// Size of the buffer for events, bytes. The longest event has 272 bytes.
const READ_BYTES: usize = 8192;
/// Maximum number of waiting tasks, besides the one in progress.
const WORK_MAX: usize = 1024;
/// Nice value of the thread, relative to serving threads.
const NICENESS: i32 = 5;

#[cfg(test)]
#[path = "dir_watch_tests.rs"]
pub(crate) mod tests;
