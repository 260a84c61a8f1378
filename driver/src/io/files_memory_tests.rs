//! Tests of cached bytes of files.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use server_base::files::TEXTS_BYTES;

use super::tests::{Dir, content, open, unix_ms};
use super::*;

/// Makes a cache with a clock so late that new files have settled.
pub(super) fn later(memory_bytes: u64) -> FileCache {
    let mut cache = FileCache::new();
    cache.configure(Limits {
        memory_bytes,
        ..Limits::default()
    });
    cache.set_now(1, unix_ms() + 10_000);
    cache
}

#[test]
fn files_are_kept_up_to_the_limit_one_byte_below_and_not_one_above() {
    let dir = Dir::new();
    let path = dir.file("f", "12345678");
    let weight = ENTRY_BYTES + path.as_os_str().len() as u64 + 8;
    for (limit, kept) in [
        (weight + 1, true),
        (weight, true),
        (weight - 1, false),
        (0, false),
    ] {
        let mut cache = later(limit);
        let opened = open(&mut cache, &path).expect("open");
        assert_eq!(opened.content().is_some(), kept, "{limit}");
        assert_eq!(cache.memory_bytes(), if kept { weight } else { 0 });
        assert_eq!(cache.len(), usize::from(!kept), "else its descriptor is");
        assert_eq!(cache.content(&opened).as_deref(), Some(&b"12345678"[..]));
        assert!(open(&mut cache, &path).expect("open").settled);
    }
    let mut cache = later(2 * weight - 1);
    let other = dir.file("g", "12345678");
    open(&mut cache, &path).expect("open");
    open(&mut cache, &other).expect("open");
    assert_eq!(cache.memory_bytes(), weight, "there is room for one");
}

#[test]
fn a_file_is_kept_in_memory_up_to_its_size_limit() {
    let dir = Dir::new();
    let mut cache = later(64 << 20);
    for (size, kept) in [
        (CONTENT_BYTES - 1, true),
        (CONTENT_BYTES, true),
        (CONTENT_BYTES + 1, false),
        (0, true),
    ] {
        let path = dir.file(&size.to_string(), &"x".repeat(size as usize));
        let opened = open(&mut cache, &path).expect("open");
        assert_eq!(opened.content().is_some(), kept, "{size}");
        assert_eq!(opened.file.is_none(), kept, "{size}");
        let with = cache.open_descriptor(path.as_os_str().as_bytes(), &OpenPolicy::default());
        assert_eq!(content(&with.expect("open")).len(), size as usize);
    }
}

#[test]
fn a_cached_file_takes_no_more_memory_than_its_weight() {
    // A slot has 40 bytes beside its entry, a chain and two ghosts 24, and the allocator adds 16 to each piece.
    let slot = size_of::<Entry>() + 40 + 24;
    let opened = 16 + size_of::<Opened>();
    let texts = 16 + TEXTS_BYTES;
    let pieces = 3 * 16 + 16;
    let all = (slot + opened + texts + pieces) as u64;
    assert!(all <= ENTRY_BYTES, "{all}");
}

#[test]
fn kept_bytes_end_with_any_change_of_the_file() {
    let dir = Dir::new();
    let path = dir.file("f", "text");
    let text = |cache: &mut FileCache| {
        let opened = open(cache, &path).expect("open");
        let bytes = cache.content(&opened).expect("it is small");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut cache = later(1 << 20);
    assert_eq!(text(&mut cache), "text");
    let changes: [(&dyn Fn(), &str); 4] = [
        (&|| fs::write(&path, "next").expect("write"), "next"),
        (
            &|| fs::rename(dir.file("new", "many"), &path).expect("rename"),
            "many",
        ),
        (
            &|| {
                let file = fs::File::options().write(true).open(&path);
                file.and_then(|file| file.set_len(2)).expect("truncate");
            },
            "ma",
        ),
        (&|| fs::write(&path, "").expect("write"), ""),
    ];
    for (change, expected) in changes {
        change();
        assert_eq!(text(&mut cache), expected);
        assert_eq!(text(&mut cache), expected);
    }
    fs::remove_file(&path).expect("remove");
    assert!(
        open(&mut cache, &path)
            .expect_err("it is gone")
            .is_missing()
    );
    assert_eq!(cache.memory_bytes(), 0);
    dir.file("f", "back");
    assert_eq!(text(&mut cache), "back");
}

#[test]
fn a_scan_over_many_files_leaves_those_in_use() {
    let dir = Dir::new();
    let hot: Vec<PathBuf> = (0..20).map(|n| dir.file(&format!("hot{n}"), "x")).collect();
    let weight = ENTRY_BYTES + hot[0].as_os_str().len() as u64 + 1;
    let mut cache = later(40 * weight);
    for _ in 0..3 {
        hot.iter()
            .for_each(|path| _ = open(&mut cache, path).expect("open"));
    }
    let path = dir.file("scanned", "x");
    for n in 0..1000 {
        let link = dir.0.join(format!("link{n}"));
        symlink(&path, &link).expect("link");
        open(&mut cache, &link).expect("open");
    }
    let misses = cache.figures.misses;
    hot.iter()
        .for_each(|path| _ = open(&mut cache, path).expect("open"));
    assert_eq!(cache.figures.misses, misses);
}

#[test]
fn a_missing_path_is_looked_up_once_until_more_is_received() {
    let dir = Dir::new();
    let path = dir.0.join("late");
    let bytes = path.as_os_str().as_bytes();
    let policy = OpenPolicy::default();
    let mut cache = FileCache::new();
    cache.input_received();
    let error = cache.stat(bytes, &policy).expect_err("missing");
    assert_eq!((error.errno, error.call), (libc::ENOENT, "stat()"));
    fs::write(&path, "x").expect("write");
    let error = cache
        .open(bytes, &policy)
        .expect_err("these requests came before");
    assert_eq!((error.errno, error.call), (libc::ENOENT, "open()"));
    cache.input_received();
    assert_eq!(cache.open(bytes, &policy).expect("there").meta.size, 1);
    fs::write(&path, "xyz").expect("write");
    assert_eq!(cache.stat(bytes, &policy).expect("there").size, 1);
    cache.input_received();
    assert_eq!(cache.stat(bytes, &policy).expect("there").size, 3);
    fs::remove_file(&path).expect("remove");
    cache.input_received();
    assert!(cache.open(bytes, &policy).expect_err("gone").is_missing());
}

#[test]
fn a_file_opened_with_the_cache_off_is_cached_later() {
    let dir = Dir::new();
    let path = dir.file("f", "text");
    let mut cache = later(0);
    assert_eq!(
        open(&mut cache, &path).expect("open").content().as_deref(),
        None
    );
    assert!(open(&mut cache, &path).expect("open").settled);
    cache.configure(Limits::default());
    let opened = open(&mut cache, &path).expect("open");
    assert_eq!(opened.content().as_deref(), Some(&b"text"[..]));
    assert_eq!(cache.len(), 0);
}
