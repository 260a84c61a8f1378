//! Runs of the periodic task of a cache, over a directory of its own, by a clock that the test sets.

use std::cell::Cell;
use std::fs::{self, File};
use std::path::PathBuf;

use conf::{Directive, Word};
use server_base::errlog::{Level, Sink};
use server_cache::index::PurgeMode;
use server_cache::key::EntryId;
use server_cache::names::Levels;

use super::*;
use crate::cache::work::LOADER_DELAY_MS;
use crate::cache::zone::CacheId;

/// The time of the wall clock, seconds since 1970.
const NOW_S: i64 = 1_700_000_000;

/// A directory with a cache, and a log.
struct Site {
    path: PathBuf,
    name: &'static str,
    log: ErrorLog,
    now_ms: Cell<u64>,
}

impl Site {
    fn new(name: &'static str) -> Self {
        let path = format!("firstbyte-upkeep-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(path);
        fs::create_dir(&path).expect("the temporary directory is writable");
        let file = File::create(path.join("log")).expect("it was made");
        Self {
            name,
            log: ErrorLog::new(vec![Sink::file(Arc::new(file), Level::Notice)]),
            path,
            now_ms: Cell::new(1000),
        }
    }

    /// The directory of the cache.
    fn cache(&self) -> PathBuf {
        self.path.join("cache")
    }

    /// The task of a configuration with these parameters.
    fn task(&self, parameters: &str) -> Maintenance {
        let mut d = Directive::synthetic("proxy_cache_path");
        let pos = d.pos;
        let words = format!("{} keys_zone={parameters}", self.cache().display());
        d.args = (words.split(' '))
            .map(|word| Word::new(word, pos, false, 0))
            .collect();
        let written = CachePath::parse(&d, <[u8]>::to_vec).expect("parameters");
        let id = CacheId {
            module: self.name,
            name: written.name.clone().into(),
            path: self.cache(),
            levels: written.levels,
        };
        Maintenance::new(&SharedCache::attach(id, written.zone_bytes), &written)
    }

    /// Runs a task at the time, and returns the pause.
    fn run(&self, task: &Maintenance) -> u64 {
        task.run_at(&|| self.now_ms.get(), NOW_S, &self.log)
    }

    fn pass(&self, ms: u64) {
        self.now_ms.set(self.now_ms.get() + ms);
    }

    fn logged(&self) -> String {
        fs::read_to_string(self.path.join("log")).expect("it was made")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Waits for the thread of the loader.
fn wait_until(condition: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !condition() {
        assert!(begin.elapsed().as_secs() < 20, "it never came true");
        std::thread::yield_now();
    }
}

fn entries_max_of(task: &Maintenance) -> u64 {
    task.shared.index.stats().entries_max
}

#[test]
fn the_directory_is_opened_by_the_first_run() {
    let site = Site::new("opened");
    fs::create_dir(site.cache()).expect("a directory");
    let task = site.task("a:1m");
    assert!(task.shared.directory().is_none());
    assert_eq!(site.run(&task), 0);
    let directory = task.shared.directory().expect("it exists");
    assert_eq!(directory.path(), site.cache());
}

#[test]
fn a_missing_directory_is_logged_once_and_tried_again() {
    let site = Site::new("missing");
    let task = site.task("a:1m");
    for _ in 0..3 {
        assert_eq!(site.run(&task), RETRY_MS);
    }
    assert!(task.shared.directory().is_none());
    let logged = site.logged();
    let path = site.cache();
    let expected = format!(
        "statvfs() \"{}\" failed (2: No such file or directory)",
        path.display()
    );
    assert_eq!(logged.matches(&expected).count(), 1, "{logged}");
    fs::create_dir(site.cache()).expect("a directory");
    site.run(&task);
    assert!(task.shared.directory().is_some());
}

#[test]
fn the_size_is_applied_once_the_configuration_is_served() {
    let site = Site::new("resized");
    fs::create_dir(site.cache()).expect("a directory");
    let first = site.task("a:1m");
    site.run(&first);
    site.run(&first);
    let second = site.task("a:2m");
    assert!(Arc::ptr_eq(&first.shared, &second.shared));
    assert_eq!(entries_max_of(&first), 8000);
    // The configuration may fail after this run.
    site.run(&second);
    assert_eq!(entries_max_of(&first), 8000);
    site.run(&second);
    assert_eq!(entries_max_of(&first), 16_000);
}

#[test]
fn files_are_loaded_after_the_start_in_steps() {
    let site = Site::new("loaded");
    fs::create_dir(site.cache()).expect("a directory");
    let levels = Levels::default();
    for n in 0..3_u8 {
        let path = levels.path(site.cache().to_string_lossy().as_bytes(), &EntryId([n; 16]));
        let path = String::from_utf8(path).expect("a path");
        fs::write(path, [0; 1000]).expect("a file");
    }
    let task = site.task("a:1m loader_files=2 loader_sleep=1h");
    site.run(&task);
    site.run(&task);
    let entries = || {
        let stats = task.shared.index.stats();
        (stats.entries, stats.is_cold)
    };
    site.pass(LOADER_DELAY_MS - 1);
    assert_eq!(site.run(&task), 1);
    assert_eq!(entries(), (0, true));
    site.pass(1);
    site.run(&task);
    wait_until(|| entries() == (2, true));
    site.run(&task);
    assert_eq!(entries(), (2, true));
    // A reload goes on with the files that are left.
    let reloaded = site.task("a:1m");
    let wake: Wake = Arc::new(|| {});
    reloaded.set_wake(&wake);
    assert_eq!(site.run(&reloaded), 0);
    site.run(&reloaded);
    wait_until(|| entries() == (3, false) && reloaded.is_woken());
    site.run(&reloaded);
    let logged = site.logged();
    let expected = format!("http file cache: {} 0.0", site.cache().display());
    assert!(
        logged.contains(&expected) && logged.contains("M, bsize: "),
        "{logged}"
    );
}

#[test]
fn a_wake_ends_the_pause() {
    let site = Site::new("woken");
    fs::create_dir(site.cache()).expect("a directory");
    let task = site.task("a:1m");
    let woken = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&woken);
    let wake: Wake = Arc::new(move || flag.store(true, Ordering::Relaxed));
    task.set_wake(&wake);
    site.run(&task);
    let pause_ms = site.run(&task);
    assert!(pause_ms >= LOADER_DELAY_MS, "there is nothing to do");
    assert!(!task.is_woken());
    let purged = task.shared.index.purge_prefix(b"/", PurgeMode::Hard);
    assert!(purged.is_ok() && woken.load(Ordering::Relaxed) && task.is_woken());
    site.run(&task);
    assert!(!task.is_woken());
}

#[test]
fn max_size_is_counted_in_blocks() {
    let site = Site::new("blocks");
    fs::create_dir(site.cache()).expect("a directory");
    let task = site.task("a:1m");
    site.run(&task);
    let directory = task.shared.directory().expect("it exists");
    let block_bytes = directory.block_bytes();
    assert_eq!(task.work_conf(directory).manager.max_blocks, u64::MAX);
    for (bytes, blocks) in [
        (2 * block_bytes - 1, 1),
        (2 * block_bytes, 2),
        (2 * block_bytes + 1, 2),
    ] {
        let task = site.task(&format!("a:1m max_size={bytes}"));
        assert_eq!(task.work_conf(directory).manager.max_blocks, blocks);
    }
}
