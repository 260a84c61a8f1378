//! Tests of lookups from an open directory, on real directories and links.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::dir_watch::tests::is_watchable;
use super::super::files::tests::Dir;
use super::super::open_path::describe_followed;
use super::*;

fn common<'a>(paths: &[&'a str]) -> Option<&'a str> {
    let paths = paths.iter().map(|path| path.as_bytes());
    common_dir(paths).map(|dir| std::str::from_utf8(dir).expect("text"))
}

#[test]
fn the_common_directory_is_the_deepest_of_all_paths() {
    assert_eq!(common(&[]), None);
    assert_eq!(common(&["/w/a/f"]), Some("/w/a"));
    assert_eq!(common(&["/w/a/f", "/w/a/g"]), Some("/w/a"));
    assert_eq!(common(&["/w/a/f", "/w/a/f2"]), Some("/w/a"));
    assert_eq!(common(&["/w/a/f", "/w/ab/f"]), Some("/w"));
    assert_eq!(common(&["/w/a", "/w/a/f"]), Some("/w"));
    assert_eq!(common(&["/w/a", "/x/a"]), None, "the root");
    assert_eq!(common(&["/w"]), None, "the root");
    assert_eq!(common(&["/w//a", "/w//b"]), Some("/w/"));
    assert_eq!(common(&["w/a", "w/b"]), None, "it is not absolute");
    assert_eq!(common(&["/w/a", ""]), None);
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[test]
fn a_lookup_from_the_directory_equals_one_by_the_full_path() {
    let dir = Dir::new();
    fs::create_dir(dir.0.join("d")).expect("a directory");
    dir.file("d/f", "text");
    symlink("f", dir.0.join("d/link")).expect("link");
    symlink("../d/./f", dir.0.join("d/up")).expect("link");
    symlink(dir.0.join("d/f"), dir.0.join("d/absolute")).expect("link");
    symlink("loop", dir.0.join("d/loop")).expect("link");
    symlink("gone", dir.0.join("d/dangling")).expect("link");
    let mut base = BaseDir::open(bytes(&dir.0), 1).expect("it can be opened");
    let long = "n".repeat(300);
    let names = [
        "d",
        "d/",
        "d/.",
        "d/..",
        "d/f",
        "d/f/",
        "d/f/x",
        "d/link",
        "d/up",
        "d/absolute",
        "d/loop",
        "d/dangling",
        "d/none",
        "none",
        &long,
    ];
    let is_watchable = is_watchable(&dir.0);
    // The last rounds are under a watch. Only files reached through directories alone have marks.
    let mut marked = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    for reads in 1.. {
        for name in names {
            let path = dir.0.join(name);
            let found = base.describe(bytes(&path), reads, "stat()");
            let found = found.unwrap_or_else(|| panic!("{name} lies below"));
            let expected = describe_followed(bytes(&path), "stat()");
            assert_eq!(found.meta, expected, "{name}");
            marked.extend(found.mark.map(|_| name));
        }
        if !marked.is_empty() || !is_watchable || Instant::now() > until {
            break;
        }
        base.sweep_watch(true);
        std::thread::yield_now();
        base = base.renewed(reads + 1).expect("it is there");
    }
    let expected: &[&str] = match is_watchable {
        true => &["d/f"],
        false => &[],
    };
    assert_eq!(marked, expected);
    let reads = base.valid_at;
    let path = dir.0.to_str().expect("text");
    for elsewhere in [
        path.to_owned(),
        format!("{path}/"),
        format!("{path}//d/f"),
        format!("{path}x/f"),
        "/".to_owned(),
        "d/f".to_owned(),
        String::new(),
    ] {
        let found = base.describe(elsewhere.as_bytes(), reads, "stat()");
        assert!(found.is_none(), "{elsewhere}");
    }
    let file = dir.0.join("d/f");
    let found = base.describe(bytes(&file), reads + 1, "stat()");
    assert!(found.is_none(), "more was read");
}

/// The directory is replaced by another one, a link, another link and a file. Each change shows after the next read.
#[test]
fn a_directory_that_was_replaced_is_opened_anew() {
    let dir = Dir::new();
    let root = dir.0.join("root");
    let size = |base: &mut BaseDir, reads| {
        let found = base.describe(bytes(&root.join("f")), reads, "stat()");
        found.expect("it is valid").meta.map(|meta| meta.size)
    };
    for (name, text) in [("one", "1"), ("two", "22"), ("three", "333")] {
        fs::create_dir(dir.0.join(name)).expect("a directory");
        dir.file(&format!("{name}/f"), text);
    }
    fs::rename(dir.0.join("one"), &root).expect("rename");
    let mut base = BaseDir::open(bytes(&root), 1).expect("it can be opened");
    assert_eq!(size(&mut base, 1), Ok(1));
    fs::rename(&root, dir.0.join("old")).expect("rename");
    fs::rename(dir.0.join("two"), &root).expect("rename");
    let mut base = base.renewed(2).expect("a directory");
    assert_eq!(size(&mut base, 2), Ok(2));
    fs::rename(&root, dir.0.join("old-two")).expect("rename");
    symlink("three", &root).expect("link");
    let mut base = base.renewed(3).expect("a directory");
    assert_eq!(size(&mut base, 3), Ok(3));
    fs::remove_file(&root).expect("remove");
    symlink("old", &root).expect("link");
    let mut base = base.renewed(4).expect("a directory");
    assert_eq!(size(&mut base, 4), Ok(1));
    let mut base = base.renewed(4).expect("a directory");
    fs::remove_file(&root).expect("remove");
    assert_eq!(size(&mut base, 4), Ok(1), "nothing more was read");
    assert!(base.renewed(5).is_none(), "nothing is there");
    fs::write(&root, "a file").expect("write");
    assert!(BaseDir::open(bytes(&root), 5).is_none(), "no directory");
}

/// Marks end after the same number of sweeps, after turns with many requests or with few.
#[test]
fn marks_expire_in_sweeps_of_both_kinds() {
    let dir = Dir::new();
    let path = dir.file("f", "text");
    if !is_watchable(&dir.0) {
        return;
    }
    for is_busy in [true, false] {
        let mut base = BaseDir::open(bytes(&dir.0), 1).expect("it can be opened");
        base.sweep_watch(true);
        let until = Instant::now() + Duration::from_secs(10);
        let mut reads = 1;
        let mark = loop {
            let look = base.describe(bytes(&path), reads, "stat()").expect("below");
            if let Some(mark) = look.mark {
                break mark;
            }
            assert!(Instant::now() < until);
            reads += 1;
            base = base.renewed(reads).expect("it is there");
        };
        for sweep in 0..=SWEEPS_UNTIL_EXPIRY {
            assert!(base.is_unchanged(mark, reads), "{is_busy}: {sweep}");
            match is_busy {
                true => base.sweep_watch(true),
                false => assert!(base.rest()),
            }
            reads += 1;
            base = base.renewed(reads).expect("it is there");
        }
        assert!(!base.is_unchanged(mark, reads), "{is_busy}");
    }
}
