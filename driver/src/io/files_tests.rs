//! Tests of the file cache on real files in a directory of their own.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use engines::http::FileRange;
use server_base::files::{OpenFileCache, Symlinks};

use super::*;

/// A directory that is removed with its content.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("firstbyte-files-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("write");
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn open(cache: &mut FileCache, path: &Path) -> Result<Rc<Opened>, FileError> {
    cache.input_received();
    cache.open(path.as_os_str().as_bytes(), &OpenPolicy::default())
}

pub(super) fn content(opened: &Opened) -> String {
    let file = opened.file.clone().expect("a file");
    let range = FileRange {
        file,
        offset: 0,
        len: opened.meta.size,
    };
    let mut bytes = Vec::new();
    read_range(&range, &mut bytes).expect("read");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn unchanged_file_is_the_same_descriptor() {
    let dir = Dir::new();
    let path = dir.file("a", "hello");
    let mut cache = FileCache::new();
    let first = open(&mut cache, &path).expect("open");
    let second = open(&mut cache, &path).expect("open");
    assert!(Rc::ptr_eq(&first, &second));
    let mtime = first.meta.mtime_s;
    assert_eq!(&first.etag()[..], format!("\"{mtime:x}-5\"").as_bytes());
    assert_eq!(first.last_modified().len(), 29);
}

#[test]
fn replaced_truncated_and_retargeted_files_show_on_the_next_open() {
    let dir = Dir::new();
    let path = dir.file("a", "old");
    let other = dir.file("b", "other");
    let link = dir.0.join("link");
    symlink(&path, &link).expect("link");
    let mut cache = FileCache::new();
    assert_eq!(content(&open(&mut cache, &link).expect("open")), "old");
    let replacement = dir.file("new", "new");
    fs::rename(replacement, &path).expect("rename");
    assert_eq!(content(&open(&mut cache, &path).expect("open")), "new");
    assert_eq!(content(&open(&mut cache, &link).expect("open")), "new");
    fs::File::options()
        .write(true)
        .open(&path)
        .expect("open")
        .set_len(1)
        .expect("truncate");
    assert_eq!(content(&open(&mut cache, &link).expect("open")), "n");
    fs::remove_file(&link).expect("remove");
    symlink(&other, &link).expect("link");
    assert_eq!(content(&open(&mut cache, &link).expect("open")), "other");
    fs::remove_file(&link).expect("remove");
    let error = open(&mut cache, &link).expect_err("gone");
    assert_eq!((error.errno, error.call), (libc::ENOENT, "open()"));
    assert!(error.is_missing());
}

#[test]
fn changed_mode_opens_anew() {
    let dir = Dir::new();
    let path = dir.file("a", "x");
    let mut cache = FileCache::new();
    let first = open(&mut cache, &path).expect("open");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
    let second = open(&mut cache, &path).expect("open");
    assert!(!Rc::ptr_eq(&first, &second));
    assert_eq!(second.meta.mode & 0o777, 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).expect("chmod");
    if !sys::identity::is_root() {
        let error = open(&mut cache, &path).expect_err("no right to read");
        assert!(error.is_forbidden());
    }
}

#[test]
fn directory_is_described_and_not_held_open() {
    let dir = Dir::new();
    let mut cache = FileCache::new();
    let opened = open(&mut cache, &dir.0).expect("open");
    assert!(opened.meta.is_dir && opened.file.is_none());
    let below = dir.file("a", "x").join("b");
    assert_eq!(
        open(&mut cache, &below).expect_err("below a file").errno,
        libc::ENOTDIR
    );
    let long = dir.0.join("n".repeat(300));
    assert_eq!(
        open(&mut cache, &long).expect_err("too long").errno,
        libc::ENAMETOOLONG
    );
}

fn with_descriptors(descriptors: u64) -> FileCache {
    let mut cache = FileCache::new();
    cache.configure(Limits {
        descriptors,
        ..Limits::default()
    });
    cache
}

#[test]
fn descriptors_are_bounded_and_swept() {
    let dir = Dir::new();
    let mut cache = with_descriptors(100);
    let paths: Vec<PathBuf> = (0..=100).map(|i| dir.file(&i.to_string(), "x")).collect();
    for path in &paths[..100] {
        open(&mut cache, path).expect("open");
    }
    assert_eq!(cache.len(), 100);
    open(&mut cache, &paths[100]).expect("open");
    assert_eq!(cache.len(), 100);
    cache.set_now(1_000, 0);
    open(&mut cache, &paths[1]).expect("open");
    cache.sweep(UNUSED_MS - 1);
    assert_eq!(cache.len(), 100);
    assert_eq!(cache.sweep_due(), Some(UNUSED_MS - 1 + SWEEP_MS));
    cache.sweep(UNUSED_MS - 1 + SWEEP_MS);
    assert_eq!(cache.len(), 1);
    cache.sweep(UNUSED_MS - 1 + 2 * SWEEP_MS);
    assert!(cache.is_empty());
    assert_eq!(cache.sweep_due(), None);
}

#[test]
fn a_sweep_closes_a_bounded_number_and_the_next_one_goes_on() {
    let dir = Dir::new();
    let path = dir.file("f", "x");
    let mut cache = with_descriptors(2 * RELEASED_MAX as u64);
    for link in 0..=RELEASED_MAX {
        let link = dir.0.join(link.to_string());
        symlink(&path, &link).expect("link");
        open(&mut cache, &link).expect("open");
    }
    cache.sweep(UNUSED_MS);
    assert_eq!((cache.len(), cache.sweep_due()), (1, Some(UNUSED_MS)));
    cache.sweep(UNUSED_MS);
    assert!(cache.is_empty());
}

#[test]
fn a_lowered_limit_closes_piece_by_piece_and_keeps_the_rest_over_a_reload() {
    let dir = Dir::new();
    let path = dir.file("f", "x");
    let mut cache = with_descriptors(2 * RELEASED_MAX as u64);
    for link in 0..2 * RELEASED_MAX {
        let link = dir.0.join(link.to_string());
        symlink(&path, &link).expect("link");
        open(&mut cache, &link).expect("open");
    }
    cache.configure(Limits {
        descriptors: 100,
        ..Limits::default()
    });
    assert_eq!(cache.len(), 2 * RELEASED_MAX);
    open(&mut cache, &path).expect("what cannot be kept is opened all the same");
    cache.sweep(1);
    assert_eq!((cache.len(), cache.sweep_due()), (RELEASED_MAX, Some(1)));
    cache.sweep(1);
    assert_eq!((cache.len(), cache.sweep_due()), (100, Some(1 + SWEEP_MS)));
}

#[test]
fn a_thread_keeps_its_share_of_memory_and_descriptors() {
    let share = |descriptors, threads| Limits::shared(64 << 20, descriptors, threads).descriptors;
    assert_eq!(Limits::shared(64 << 20, 20_000, 2).memory_bytes, 32 << 20);
    assert_eq!(Limits::shared(1, 20_000, 0).memory_bytes, 1);
    assert_eq!((share(20_000, 1), share(20_000, 2)), (2500, 1250));
    assert_eq!(
        share(DESCRIPTORS_MOST * DESCRIPTORS_SHARE + DESCRIPTORS_SHARE, 1),
        DESCRIPTORS_MOST
    );
    assert_eq!(
        share(DESCRIPTORS_MOST * DESCRIPTORS_SHARE - 1, 1),
        DESCRIPTORS_MOST - 1
    );
    assert_eq!(
        share(DESCRIPTORS_LEAST * DESCRIPTORS_SHARE - 1, 1),
        DESCRIPTORS_LEAST
    );
}

fn without_links(mode: SymlinkMode, from: usize) -> OpenPolicy {
    OpenPolicy {
        symlinks: Symlinks { mode, from },
        cache: None,
    }
}

#[test]
fn links_are_refused_by_policy() {
    let dir = Dir::new();
    let file = dir.file("file", "x");
    let link = dir.0.join("link");
    symlink(&file, &link).expect("link");
    let inner = dir.0.join("inner");
    symlink(&dir.0, &inner).expect("link");
    let mut cache = FileCache::new();
    let on = without_links(SymlinkMode::On, 0);
    let mut try_open = |path: &Path, policy: &OpenPolicy| {
        cache
            .open(path.as_os_str().as_bytes(), policy)
            .map(|opened| content(&opened))
    };
    assert_eq!(try_open(&file, &on).expect("no link"), "x");
    let error = try_open(&link, &on).expect_err("a link");
    assert_eq!((error.errno, error.call), (libc::ELOOP, "openat()"));
    assert_eq!(
        try_open(&inner.join("file"), &on)
            .expect_err("a link")
            .errno,
        libc::ENOTDIR
    );
    let prefix = inner.as_os_str().len();
    let below = without_links(SymlinkMode::On, prefix);
    assert_eq!(try_open(&inner.join("file"), &below).expect("allowed"), "x");
    let owner = without_links(SymlinkMode::IfNotOwner, 0);
    assert_eq!(try_open(&link, &owner).expect("same owner"), "x");
    let slash = cache
        .open(format!("{}/", dir.0.display()).as_bytes(), &on)
        .expect("open");
    assert!(slash.meta.is_dir);
}

fn cached(max: usize, min_uses: u32, errors: bool) -> OpenPolicy {
    let settings = OpenFileCache {
        max,
        inactive_ms: 10_000,
        valid_ms: 1_000,
        min_uses,
        errors,
    };
    OpenPolicy {
        symlinks: Symlinks::default(),
        cache: Some(settings),
    }
}

#[test]
fn open_file_cache_trusts_an_element_while_it_is_valid() {
    let dir = Dir::new();
    let path = dir.file("a", "old");
    let name = path.as_os_str().as_bytes();
    let policy = cached(10, 1, false);
    let mut cache = FileCache::new();
    cache.set_now(0, 0);
    cache.open(name, &policy).expect("open");
    let replacement = dir.file("b", "newer");
    fs::rename(replacement, &path).expect("rename");
    cache.set_now(999, 0);
    assert_eq!(content(&cache.open(name, &policy).expect("open")), "old");
    cache.set_now(1_000, 0);
    assert_eq!(content(&cache.open(name, &policy).expect("open")), "newer");
    assert_eq!(cache.stat(name, &policy).expect("stat").size, 5);
}

#[test]
fn open_file_cache_renews_size_on_the_same_descriptor() {
    let dir = Dir::new();
    let path = dir.file("a", "old");
    let name = path.as_os_str().as_bytes();
    let policy = cached(10, 1, false);
    let mut cache = FileCache::new();
    let first = cache.open(name, &policy).expect("open");
    fs::write(&path, "longer").expect("write");
    cache.set_now(5_000, 0);
    let second = cache.open(name, &policy).expect("open");
    let same = first.file.as_ref().zip(second.file.as_ref());
    assert!(same.is_some_and(|(first, second)| Rc::ptr_eq(first, second)));
    assert_eq!(content(&second), "longer");
}

#[test]
fn open_file_cache_keeps_errors_only_if_configured() {
    let dir = Dir::new();
    let path = dir.0.join("later");
    let name = path.as_os_str().as_bytes();
    let mut cache = FileCache::new();
    for errors in [false, true] {
        let policy = cached(10, 1, errors);
        let error = cache.open(name, &policy).expect_err("missing");
        assert!(error.is_missing());
        fs::write(&path, "x").expect("write");
        assert_eq!(cache.open(name, &policy).is_err(), errors);
        cache.clear();
        fs::remove_file(&path).expect("remove");
    }
}

#[test]
fn open_file_cache_closes_below_min_uses_and_evicts_at_max() {
    let dir = Dir::new();
    let (one, two) = (dir.file("1", "x"), dir.file("2", "x"));
    let policy = cached(1, 2, false);
    let mut cache = FileCache::new();
    let mut open = |path: &Path| {
        cache
            .open(path.as_os_str().as_bytes(), &policy)
            .expect("open")
    };
    let first = Rc::downgrade(&open(&one));
    assert!(first.upgrade().is_none(), "one use does not keep it open");
    let second = Rc::downgrade(&open(&one));
    assert!(second.upgrade().is_some(), "two uses do");
    open(&two);
    assert!(second.upgrade().is_none(), "one element at most");
}

#[test]
fn open_file_cache_drops_inactive_elements() {
    let dir = Dir::new();
    let path = dir.file("a", "x");
    let policy = cached(10, 1, false);
    let mut cache = FileCache::new();
    let opened = cache
        .open(path.as_os_str().as_bytes(), &policy)
        .expect("open");
    let weak = Rc::downgrade(&opened);
    drop(opened);
    cache.sweep(10_000);
    assert!(weak.upgrade().is_some());
    cache.sweep(11_000);
    assert!(weak.upgrade().is_none());
}

#[test]
fn one_look_serves_until_more_is_received() {
    let dir = Dir::new();
    let path = dir.file("f", "old");
    let mut cache = FileCache::new();
    let first = open(&mut cache, &path).expect("open");
    fs::remove_file(&path).expect("remove");
    dir.file("f", "newer");
    let path_bytes = path.as_os_str().as_bytes();
    let same = cache
        .open(path_bytes, &OpenPolicy::default())
        .expect("known");
    assert!(
        Rc::ptr_eq(&first, &same),
        "these requests came before the change"
    );
    let next = open(&mut cache, &path).expect("open");
    assert_eq!(next.meta.size, 5);
}

#[test]
fn a_settled_file_keeps_its_bytes_and_a_young_one_does_not() {
    let dir = Dir::new();
    let path = dir.file("f", "text");
    let mut cache = FileCache::new();
    cache.set_now(1, unix_ms());
    open(&mut cache, &path).expect("open");
    assert_eq!(
        open(&mut cache, &path).expect("open").content().as_deref(),
        None
    );
    assert_eq!((cache.len(), cache.memory_bytes()), (1, 0));
    cache.set_now(2, unix_ms() + 10_000);
    let settled = open(&mut cache, &path).expect("open");
    assert_eq!(settled.content().as_deref(), Some(&b"text"[..]));
    assert!(settled.file.is_none() && settled.settled);
    let weight = ENTRY_BYTES + path.as_os_str().len() as u64 + 4;
    assert_eq!((cache.len(), cache.memory_bytes()), (0, weight));
    assert!(Rc::ptr_eq(
        &settled,
        &open(&mut cache, &path).expect("open")
    ));
}

pub(super) fn unix_ms() -> u64 {
    std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |d| d.as_millis() as u64)
}

/// Data derived from a file's bytes may be kept with the descriptor of a settled file.
#[test]
fn a_file_that_changes_after_it_has_settled_comes_with_another_descriptor() {
    let dir = Dir::new();
    let large = "x".repeat(CONTENT_BYTES as usize + 1);
    let path = dir.file("f", &large);
    let unix_ms = unix_ms();
    let mut cache = FileCache::new();
    cache.set_now(1, unix_ms);
    let young = open(&mut cache, &path).expect("open");
    assert!(!young.settled);
    cache.set_now(2, unix_ms + 10_000);
    let settled = open(&mut cache, &path).expect("open");
    assert!(settled.settled && settled.content().is_none());
    let handle = |opened: &Opened| opened.file.clone().expect("a file is opened");
    assert!(Rc::ptr_eq(&handle(&young), &handle(&settled)));
    fs::write(&path, large.replace('x', "y")).expect("write");
    let changed = open(&mut cache, &path).expect("open");
    assert!(!Rc::ptr_eq(&handle(&settled), &handle(&changed)));
    let mut bytes = b"read: ".to_vec();
    let range = FileRange {
        file: handle(&changed),
        offset: 0,
        len: 2,
    };
    cache.read_into(&range, &mut bytes).expect("it is longer");
    assert_eq!(bytes, b"read: yy");
}
