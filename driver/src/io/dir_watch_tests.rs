//! Tests of reported changes, on real directories, links and mounts.

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant, UNIX_EPOCH};

use firstbyte_tests::skip::skip;
use rustix::fs::Timespec as FileTime;
use rustix::fs::{CWD, Timestamps};

use super::super::files::tests::Dir;
use super::*;

fn open_dir(path: &Path) -> OwnedFd {
    rustix::fs::open(path, SEARCH, Mode::empty()).expect("a directory")
}

/// Returns whether the kernel reports changes there. If not, the test is reported as skipped.
pub(crate) fn is_watchable(path: &Path) -> bool {
    let is_watchable = DirWatch::begin(&open_dir(path)).is_some();
    if !is_watchable {
        skip(&format!(
            "changes below {} are not reported",
            path.display()
        ));
    }
    is_watchable
}

/// A description of a change, and the function that makes it to a path.
type Change = (&'static str, fn(&Path));

/// Locked by the test that mounts, since a mount ends the watches of other tests.
static MOUNTS: RwLock<()> = RwLock::new(());

/// A directory with files in `a/b`, and its watch.
struct Watched {
    dir: Dir,
    base: OwnedFd,
    watch: DirWatch,
    _no_mounts: Option<RwLockReadGuard<'static, ()>>,
}

impl Watched {
    /// Returns `None` if the directory cannot be watched.
    fn new() -> Option<Self> {
        let no_mounts = MOUNTS.read().unwrap_or_else(PoisonError::into_inner);
        let watched = Self::among_mounts()?;
        Some(Self {
            _no_mounts: Some(no_mounts),
            ..watched
        })
    }

    fn among_mounts() -> Option<Self> {
        let dir = Dir::new();
        fs::create_dir_all(dir.0.join("a/b")).expect("directories");
        dir.file("top", "top");
        dir.file("a/b/f", "text");
        dir.file("a/b/g", "text");
        if !is_watchable(&dir.0) {
            return None;
        }
        let base = open_dir(&dir.0);
        let watch = DirWatch::begin(&base)?;
        Some(Self {
            dir,
            base,
            watch,
            _no_mounts: None,
        })
    }

    /// Returns the mark of a file once its directory is watched.
    fn mark(&mut self, below: &str) -> Option<Mark> {
        assert!(self.watch.update());
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let found = self.watch.describe(&self.base, below.as_bytes());
            let is_settled = self.watch.wanted.is_empty() && self.watch.pending == 0;
            if found.is_some() || is_settled {
                return found.and_then(|(_, mark)| mark);
            }
            assert!(Instant::now() < until, "{below}");
            assert!(self.watch.update());
            self.watch.exchange(&self.base);
            std::thread::yield_now();
        }
    }

    /// Returns whether a change is reported for `a/b/f`.
    fn is_reported(&mut self, what: &str, change: impl FnOnce(&Path)) -> bool {
        let mark = self.mark("a/b/f").unwrap_or_else(|| panic!("{what}"));
        assert!(
            self.watch.update() && self.watch.is_unchanged(mark),
            "{what}"
        );
        change(&self.dir.0);
        assert!(self.watch.update(), "{what}");
        !self.watch.is_unchanged(mark)
    }
}

#[test]
fn each_change_of_a_file_is_reported() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    let changes: [Change; 11] = [
        ("written anew", |f| fs::write(f, "text").expect("write")),
        ("written in place", |f| {
            let file = fs::File::options().write(true).open(f);
            file.and_then(|mut file| file.write_all(b"T"))
                .expect("write");
        }),
        ("appended to", |f| {
            let file = fs::File::options().append(true).open(f);
            file.and_then(|mut file| file.write_all(b"x"))
                .expect("write");
        }),
        ("cut", |f| {
            let file = fs::File::options().write(true).open(f);
            file.and_then(|file| file.set_len(1)).expect("truncate");
        }),
        ("copied over", |f| {
            fs::copy(f.with_file_name("g"), f).expect("copy");
        }),
        ("its mode", |f| {
            fs::set_permissions(f, fs::Permissions::from_mode(0o600)).expect("chmod");
        }),
        ("its time", |f| {
            let file = fs::File::options()
                .write(true)
                .open(f)
                .expect("it is there");
            file.set_modified(UNIX_EPOCH).expect("utimes");
        }),
        ("its time, by its path", |f| {
            let time = FileTime {
                tv_sec: 1,
                tv_nsec: 0,
            };
            let times = Timestamps {
                last_access: time,
                last_modification: time,
            };
            rustix::fs::utimensat(CWD, f, &times, AtFlags::empty()).expect("utimes");
        }),
        ("replaced", |f| {
            let beside = f.with_file_name("beside");
            fs::write(&beside, "text").expect("write");
            fs::rename(beside, f).expect("rename");
        }),
        ("replaced from elsewhere", |f| {
            let top = f.ancestors().nth(3).expect("it is deep").join("new");
            fs::write(&top, "text").expect("write");
            fs::rename(top, f).expect("rename");
        }),
        ("removed", |f| fs::remove_file(f).expect("remove")),
    ];
    for (what, change) in changes {
        assert!(
            watched.is_reported(what, |dir| change(&dir.join("a/b/f"))),
            "{what}"
        );
    }
    assert_eq!(watched.mark("a/b/f"), None, "it is gone");
    watched.dir.file("a/b/f", "again");
    assert!(!watched.is_reported("elsewhere", |dir| {
        fs::write(dir.join("a/x"), "").expect("write")
    }));
    assert!(!watched.is_reported("read", |dir| {
        fs::read(dir.join("a/b/f")).expect("read");
    }));
    let mark = watched.mark("a/b/f").expect("it is watched");
    watched.watch.expire();
    assert!(!watched.watch.is_unchanged(mark), "it was too long ago");
}

/// The file is written through a descriptor that was opened before the watch.
#[test]
fn a_write_through_an_open_descriptor_is_reported() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    let path = watched.dir.0.join("a/b/f");
    let file = fs::File::options().append(true).open(path);
    let mut file = file.expect("it is there");
    for _ in 0..3 {
        assert!(watched.is_reported("written", |_| file.write_all(b"x").expect("write")));
    }
}

#[test]
fn only_plain_files_that_are_reached_through_directories_are_relied_on() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    let dir = watched.dir.0.clone();
    symlink("b", dir.join("a/link")).expect("link");
    symlink("f", dir.join("a/b/to-f")).expect("link");
    symlink("gone", dir.join("a/b/dangling")).expect("link");
    fs::hard_link(dir.join("a/b/g"), dir.join("g2")).expect("link");
    for relied in ["top", "a/b/f"] {
        assert!(watched.mark(relied).is_some(), "{relied}");
    }
    for other in [
        "",
        "a",
        "a/b",
        "a/b/",
        "a/b/none",
        "a/link/f",
        "a/b/to-f",
        "a/b/dangling",
        "a/b/g",
        "g2",
        "a//b/f",
        "a/./b/f",
        "a/b/../b/f",
        "./top",
        "../top",
        "none/f",
        "top/f",
    ] {
        assert_eq!(watched.mark(other), None, "{other}");
    }
}

#[test]
fn a_directory_that_moves_or_goes_makes_all_unknown() {
    let changes: [Change; 7] = [
        ("moved", |dir| {
            fs::rename(dir.join("a/b"), dir.join("c")).expect("rename")
        }),
        ("its parent moved", |dir| {
            fs::rename(dir.join("a"), dir.join("c")).expect("rename")
        }),
        ("moved away and another one put there", |dir| {
            fs::create_dir(dir.join("c")).expect("a directory");
            fs::rename(dir.join("a/b"), dir.join("d")).expect("rename");
            fs::rename(dir.join("c"), dir.join("a/b")).expect("rename");
        }),
        ("removed", |dir| {
            fs::remove_dir_all(dir.join("a/b")).expect("remove")
        }),
        ("removed with its parent", |dir| {
            fs::remove_dir_all(dir.join("a")).expect("remove")
        }),
        ("its mode", |dir| {
            fs::set_permissions(dir.join("a"), fs::Permissions::from_mode(0o711)).expect("chmod");
        }),
        ("removed and made anew", |dir| {
            fs::remove_dir_all(dir.join("a/b")).expect("remove");
            fs::create_dir(dir.join("a/b")).expect("a directory");
        }),
    ];
    for (what, change) in changes {
        // The kernel reports the end of a directory only when neither it nor a file in it is open.
        for held in [None, Some("a/b"), Some("a/b/g")] {
            let Some(mut watched) = Watched::new() else {
                return;
            };
            let held = held.map(|path| fs::File::open(watched.dir.0.join(path)).expect("open"));
            assert!(watched.mark("a/b/f").is_some(), "{what}");
            change(&watched.dir.0);
            assert!(!watched.watch.update(), "{what}, held: {held:?}");
        }
    }
}

/// For unreported writes, such as those through a shared mapping, this is the only event.
#[test]
fn the_end_of_writing_is_reported() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    let path = watched.dir.0.join("a/b/f");
    let file = fs::File::options().read(true).write(true).open(path);
    let file = file.expect("it is there");
    assert!(watched.is_reported("closed", |_| drop(file)));
}

#[test]
fn paths_are_relied_on_up_to_a_depth() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    for (depth, relied) in [(DEPTH_MOST, true), (DEPTH_MOST + 1, false)] {
        let folder = vec!["d"; depth].join("/");
        fs::create_dir_all(watched.dir.0.join(&folder)).expect("directories");
        let file = format!("{folder}/f");
        watched.dir.file(&file, "");
        assert_eq!(watched.mark(&file).is_some(), relied, "{depth}");
    }
}

#[test]
fn a_large_directory_is_not_watched() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    let folder = watched.dir.0.join("large");
    fs::create_dir(&folder).expect("a directory");
    let size = || fs::metadata(&folder).expect("it is there").len();
    let mut number = 0;
    while size() <= DIR_BYTES_MOST && number < 6000 {
        fs::write(folder.join(format!("{number:0>250}")), "").expect("write");
        number += 1;
    }
    if size() <= DIR_BYTES_MOST {
        let bytes = size();
        return skip(&format!(
            "here a directory of {number} entries has {bytes} bytes"
        ));
    }
    assert_eq!(watched.mark(&format!("large/{:0>250}", 1)), None);
    assert!(watched.mark("a/b/f").is_some());
}

#[test]
fn refused_directories_are_tried_again_when_marks_expire() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    let dir = watched.dir.0.clone();
    symlink("b", dir.join("a/c")).expect("link");
    assert_eq!(watched.mark("a/c/f"), None);
    fs::remove_file(dir.join("a/c")).expect("remove");
    fs::create_dir(dir.join("a/c")).expect("a directory");
    fs::write(dir.join("a/c/f"), "").expect("write");
    assert_eq!(watched.mark("a/c/f"), None);
    watched.watch.expire();
    assert!(watched.mark("a/c/f").is_some());
}

/// The directory is replaced while the watch is being added, before its path is checked.
#[test]
fn a_watch_on_a_directory_that_its_path_no_longer_leads_to_is_not_relied_on() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    assert!(watched.mark("top").is_some());
    assert!(watched.watch.describe(&watched.base, b"a/b/f").is_none());
    watched.watch.exchange(&watched.base);
    while watched.watch.pending > 0 {
        std::thread::yield_now();
        watched.watch.exchange(&watched.base);
    }
    assert!(matches!(
        watched.watch.dirs.get(&b"a/b"[..]),
        Some(DirState::Added(..))
    ));
    let dir = watched.dir.0.clone();
    fs::rename(dir.join("a/b"), dir.join("old")).expect("rename");
    fs::create_dir(dir.join("a/b")).expect("a directory");
    fs::write(dir.join("a/b/f"), "other").expect("write");
    assert!(watched.watch.describe(&watched.base, b"a/b/f").is_none());
    assert!(!watched.watch.update());
}

#[test]
fn one_event_less_than_are_too_many_leaves_it_in_force() {
    for (events, stays) in [(EVENTS_MOST - 1, true), (EVENTS_MOST, false)] {
        let Some(mut watched) = Watched::new() else {
            return;
        };
        let mark = watched.mark("top").expect("it is watched");
        let path = watched.dir.0.join("top");
        let file = fs::File::options().append(true).open(&path);
        let mut file = file.expect("it is there");
        for n in 0..events {
            // Two equal events in a row would be merged.
            match n % 2 {
                0 => file.write_all(b"x").expect("write"),
                _ => fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("chmod"),
            }
        }
        assert_eq!(watched.watch.update(), stays, "{events}");
        assert!(!stays || !watched.watch.is_unchanged(mark), "{events}");
    }
}

#[test]
fn directories_are_watched_up_to_a_number() {
    let Some(mut watched) = Watched::new() else {
        return;
    };
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    let limit: usize = limit.map_or(0, |text| text.trim().parse().unwrap_or(0));
    if limit < 4 * DIRS_MOST {
        eprintln!("inconclusive: a user may watch {limit} directories");
        return;
    }
    // The base counts, too.
    for n in 1..=DIRS_MOST {
        let folder = watched.dir.0.join(n.to_string());
        fs::create_dir(&folder).expect("a directory");
        fs::write(folder.join("f"), "").expect("write");
    }
    for n in 1..=DIRS_MOST {
        assert!(
            watched
                .watch
                .describe(&watched.base, format!("{n}/f").as_bytes())
                .is_none()
        );
    }
    for (n, relied) in [(DIRS_MOST - 1, true), (DIRS_MOST, false)] {
        assert_eq!(watched.mark(&format!("{n}/f")).is_some(), relied, "{n}");
    }
}

/// Unmounts at the end.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn mount_points_are_not_trusted_and_a_mount_ends_the_watch() {
    let _alone = MOUNTS.write().unwrap_or_else(PoisonError::into_inner);
    for (from, to) in [("a/b", "a"), ("top", "a/b/f")] {
        let Some(mut watched) = Watched::among_mounts() else {
            return;
        };
        assert!(watched.mark("a/b/f").is_some());
        let (from, to) = (watched.dir.0.join(from), watched.dir.0.join(to));
        if rustix::mount::mount_bind(&from, &to).is_err() {
            return skip("mounting is not allowed here");
        }
        let mounted = Mounted(&to);
        assert!(!watched.watch.update(), "{}", to.display());
        watched.watch = DirWatch::begin(&watched.base).expect("it can be watched");
        assert_eq!(watched.mark("a/b/f"), None, "{}", to.display());
        assert_eq!(watched.mark("a/f"), None, "{}", to.display());
        assert!(watched.mark("top").is_some());
        drop(mounted);
        assert!(!watched.watch.update(), "{}", to.display());
    }
}

#[test]
fn file_systems_of_the_kernel_itself_are_not_relied_on() {
    for path in ["/proc", "/sys"] {
        if let Ok(dir) = rustix::fs::open(path, SEARCH, Mode::empty()) {
            assert!(DirWatch::begin(&dir).is_none(), "{path}");
        }
    }
}
