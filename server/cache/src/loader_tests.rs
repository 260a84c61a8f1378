//! The loader over real directories.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

use super::*;
use crate::names::Levels;

/// A directory that is removed at the end.
struct Temp(PathBuf);

impl Temp {
    fn new(name: &str) -> Self {
        let path = format!("firstbyte-loader-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(path);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    fn write(&self, below: &str, len: usize) {
        let path = self.0.join(below);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, vec![1; len]).expect("there is space");
    }

    fn has(&self, below: &str) -> bool {
        self.0.join(below).symlink_metadata().is_ok()
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// No temporary file is old at this time.
const NOW_S: u32 = 1_700_000_000;

const A: &str = "b7f54b2df7773722d382f4809d65029c";

fn levels(text: &str) -> Levels {
    Levels::parse(text.as_bytes()).expect("levels")
}

fn load(temp: &Temp, text: &str, index: &Index) -> LoadCounts {
    let directory = Directory::open(&temp.0, levels(text)).expect("it exists");
    let mut loader = Loader::new(&directory).expect("it exists");
    let pace = Pace::default();
    while loader.step(&directory, index, pace, &|| 0, NOW_S) != LoadStep::Done {}
    loader.counts().clone()
}

#[test]
fn entries_are_loaded_and_broken_files_removed() {
    let temp = Temp::new("files");
    let entry = format!("c/29/{A}");
    let kept = [
        entry,
        format!("c/29/{A}.0000000017"),
        "README".to_owned(),
        "c/29/README".to_owned(),
        format!("c/{A}.gz"),
        format!("temp/{A}"),
        format!("other/29/{A}"),
        format!("c/29/a/b/{A}"),
    ];
    let removed = [
        // Other levels, a short file, a name of other characters, upper case.
        A.to_owned(),
        format!("c/{A}"),
        format!("d/29/{A}"),
        "e/34/0000000000000000000000000000034e".to_owned(),
        "c/29/README-------------------------."
            .chars()
            .take(37)
            .collect(),
        format!("c/29/{}", A.to_uppercase()),
    ];
    for name in kept.iter().chain(&removed) {
        let is_short = name.starts_with("e/");
        temp.write(name, if is_short { 335 } else { 336 });
    }
    let link = "f/00/0000000000000000000000000000000f";
    fs::create_dir_all(temp.0.join("f/00")).expect("a directory");
    symlink("/dev/null", temp.0.join(link)).expect("a link");
    let index = Index::new(100);
    let counts = load(&temp, "1:2", &index);
    for name in &kept {
        assert!(temp.has(name), "{name}");
    }
    for name in removed.iter().map(String::as_str).chain([link]) {
        assert!(!temp.has(name), "{name}");
    }
    assert_eq!((counts.loaded, counts.errors), (1, 0));
    assert_eq!(counts.removed, 6 + u64::from(!temp.has(link)));
    assert!(index.has_file(&EntryId::parse(A.as_bytes()).expect("a name")));
    assert!(!index.is_cold());
    let stats = index.stats();
    assert_eq!(stats.entries, 1);
    assert!(stats.blocks >= 1, "{} blocks", stats.blocks);
}

#[test]
fn old_temporary_files_are_removed() {
    let temp = Temp::new("temp");
    temp.write(&format!("c/{A}.0000000001"), 0);
    let path = temp.0.join(format!("c/{A}.0000000001"));
    let mtime = fs::metadata(&path).expect("it was written").mtime();
    let directory = Directory::open(&temp.0, levels("1")).expect("it exists");
    for (age_s, is_left) in [(TEMP_AGE_S, true), (TEMP_AGE_S + 1, false)] {
        let mut loader = Loader::new(&directory).expect("it exists");
        let now_s = u32::try_from(mtime + age_s).expect("it is before 2106");
        let index = Index::new(100);
        loader.step(&directory, &index, Pace::default(), &|| 0, now_s);
        assert_eq!(path.exists(), is_left, "{age_s}");
    }
}

#[test]
fn files_beyond_keys_zone_are_removed() {
    let temp = Temp::new("full");
    let name = |n: u32| format!("{n:032x}");
    for n in 0..5 {
        temp.write(&name(n), 400);
    }
    let directory = Directory::open(&temp.0, Levels::default()).expect("it exists");
    let mut loader = Loader::new(&directory).expect("it exists");
    let index = Index::new(3);
    let step = loader.step(&directory, &index, Pace::default(), &|| 0, NOW_S);
    assert_eq!(step, LoadStep::Done);
    let counts = loader.counts();
    assert_eq!((counts.loaded, counts.removed), (3, 2));
    assert_eq!((0..5).filter(|n| temp.has(&name(*n))).count(), 3);
    assert!(index.is_crowded());
}

#[test]
fn a_step_has_bounds() {
    let temp = Temp::new("pace");
    for n in 0..10 {
        temp.write(&format!("{n:x}/{n:032x}"), 400);
    }
    let directory = Directory::open(&temp.0, levels("1")).expect("it exists");
    let index = Index::new(100);
    let pace = Pace {
        files: 6,
        sleep_ms: 7,
        threshold_ms: 100,
    };
    let mut loader = Loader::new(&directory).expect("it exists");
    let mut steps = 0;
    while loader.step(&directory, &index, pace, &|| 0, NOW_S) == LoadStep::Again(7) {
        assert!(index.is_cold());
        steps += 1;
    }
    assert_eq!(
        (steps, index.stats().entries),
        (3, 10),
        "ten files in ten directories"
    );
    // A slow disk ends a step by time.
    let now = Cell::new(0);
    let clock = || {
        now.set(now.get() + 60);
        now.get()
    };
    let mut loader = Loader::new(&directory).expect("it exists");
    let mut steps = 0;
    while loader.step(&directory, &index, pace, &clock, NOW_S) != LoadStep::Done {
        steps += 1;
    }
    assert_eq!(steps, 10, "two names each");
}

#[test]
fn a_missing_directory_is_an_error() {
    let temp = Temp::new("missing");
    let directory = Directory::open(&temp.0, Levels::default()).expect("it exists");
    fs::remove_dir_all(&temp.0).expect("it exists");
    assert!(Loader::new(&directory).is_err());
    assert!(Directory::open(&temp.0, Levels::default()).is_err());
}

#[test]
fn a_file_that_a_request_has_stored_is_not_removed() {
    use crate::index::examples_tests as examples;
    let temp = Temp::new("stored");
    let key = examples::key("/a");
    let name = String::from_utf8(key.id().name().to_vec()).expect("digits");
    let index = std::sync::Arc::new(Index::new(100));
    examples::store(&index, key.id(), &key, b"");
    // The loader has seen an earlier file of this name.
    temp.write(&name, 335);
    let directory = Directory::open(&temp.0, Levels::default()).expect("it exists");
    let mut loader = Loader::new(&directory).expect("it exists");
    loader.step(&directory, &index, Pace::default(), &|| 0, NOW_S);
    assert!(temp.has(&name));
    assert_eq!((loader.counts().removed, loader.counts().ignored), (0, 1));
}
