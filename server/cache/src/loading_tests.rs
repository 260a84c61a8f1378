//! Threads that load real directories.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;

use super::*;
use crate::key::EntryId;
use crate::names::Levels;

/// Maximum time of a step of a test.
const DEADLINE: Duration = Duration::from_secs(20);

/// A directory with files, which is removed at the end.
struct Site {
    path: PathBuf,
    directory: Directory,
    index: Arc<Index>,
}

impl Site {
    fn new(name: &str, files: u8) -> Self {
        let path = format!("firstbyte-loading-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(path);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary directory");
        let directory = Directory::open(&path, Levels::default()).expect("it exists");
        for n in 0..files {
            fs::write(directory.path_of(&EntryId([n; 16])), [0; 1000]).expect("there is space");
        }
        let index = Arc::new(Index::new(100));
        Self {
            path,
            directory,
            index,
        }
    }

    fn start(&self, files: u32, sleep_ms: u64) -> LoadingThread {
        let pace = Pace {
            files,
            sleep_ms,
            ..Pace::default()
        };
        let loader = Loader::new(&self.directory).expect("it exists");
        let directory = self.directory.clone();
        LoadingThread::start(loader, directory, &self.index, pace, 1_700_000_000)
            .expect("there are few threads")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < DEADLINE, "it never came true");
        thread::yield_now();
    }
}

#[test]
fn the_end_wakes_periodic_work() {
    let site = Site::new("end", 5);
    let (send, woken) = mpsc::channel();
    site.index.set_work_wake(move || {
        let _ = send.send(());
    });
    let thread = site.start(2, 1);
    woken.recv_timeout(DEADLINE).expect("the load has ended");
    let counts = thread.counts().expect("it has ended");
    assert_eq!((counts.loaded, counts.errors), (5, 0));
    assert!(!site.index.is_cold());
}

#[test]
fn other_bounds_end_a_pause() {
    let site = Site::new("bounds", 5);
    let hour_ms = 3_600_000;
    let thread = site.start(2, hour_ms);
    let entries = || site.index.stats().entries;
    wait_until(|| entries() == 2);
    thread.set_pace(Pace {
        files: 2,
        sleep_ms: hour_ms,
        ..Pace::default()
    });
    assert!(thread.counts().is_none());
    thread.set_pace(Pace::default());
    wait_until(|| thread.counts().is_some());
    assert_eq!(entries(), 5);
}

#[test]
fn the_thread_ends_with_its_cache() {
    let site = Site::new("cache", 5);
    let thread = site.start(1, 1);
    let (index, shared) = (Arc::downgrade(&site.index), Arc::downgrade(&thread.0));
    drop((thread, site));
    wait_until(|| index.upgrade().is_none() && shared.upgrade().is_none());
}
