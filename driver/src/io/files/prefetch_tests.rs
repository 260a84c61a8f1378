//! Tests of prefetching files before their requests are answered.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use engines::http::Span;
use server_base::files::{FileError, Files, OpenPolicy, Opened};

use super::super::memory_tests::later;
use super::super::tests::{Dir, unix_ms};
use super::super::{ENTRY_BYTES, Limits, SWEEP_MS};
use super::*;
use crate::io::dir_watch::tests::is_watchable;

/// Makes the head of a request for this file.
fn head(number: usize) -> RequestHead {
    let mut head = RequestHead::default();
    head.arena = format!("/{number}").into_bytes();
    head.target = Span::new(0, head.arena.len());
    head
}

fn open(cache: &mut FileCache, path: &Path) -> Result<Rc<Opened>, FileError> {
    cache.open(path.as_os_str().as_bytes(), &OpenPolicy::default())
}

/// Runs a turn: `expected` are prefetched, then `asked` are opened.
fn turn(cache: &mut FileCache, dir: &Path, expected: &[usize], asked: &[usize]) -> Vec<String> {
    cache.input_received();
    for number in expected {
        cache.expect(Some(&head(*number)));
    }
    let mut texts = Vec::new();
    for (at, number) in asked.iter().enumerate() {
        if at % 32 == 0 {
            cache.prefetch_requests(32);
        }
        cache.begin_expected();
        texts.push(match open(cache, &dir.join(number.to_string())) {
            Ok(opened) => {
                let content = cache.content(&opened).expect("a small file");
                String::from_utf8(content.to_vec()).expect("text")
            }
            Err(error) => error.errno.to_string(),
        });
        cache.end_expected();
    }
    cache.end_turn();
    texts
}

/// Two trees with the same files, and a link to one of them.
struct Trees {
    dir: Dir,
    /// Content of the files of each tree, by number.
    texts: [Vec<Option<String>>; 2],
    current: usize,
}

impl Trees {
    fn new(files: usize) -> Self {
        let dir = Dir::new();
        let texts = ["a", "b"].map(|tree| {
            fs::create_dir(dir.0.join(tree)).expect("a directory");
            let texts = (0..files).map(|n| Some(format!("{tree}{n}")));
            texts.collect::<Vec<_>>()
        });
        let mut trees = Self {
            dir,
            texts,
            current: 1,
        };
        for tree in 0..2 {
            (0..files).for_each(|n| trees.write(tree, n));
        }
        trees.switch();
        trees
    }

    fn root(&self) -> PathBuf {
        self.dir.0.join("current")
    }

    /// Writes a file anew with its text, as another inode.
    fn write(&self, tree: usize, number: usize) {
        let path = self.dir.0.join(["a", "b"][tree]).join(number.to_string());
        let beside = self.dir.0.join("beside");
        match &self.texts[tree][number] {
            Some(text) => fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)),
            None => fs::remove_file(path),
        }
        .expect("it is writable");
    }

    fn switch(&mut self) {
        self.current ^= 1;
        let beside = self.dir.0.join("link");
        symlink(["a", "b"][self.current], &beside).expect("link");
        fs::rename(beside, self.root()).expect("rename");
    }

    fn expected(&self, number: usize) -> String {
        let text = self.texts[self.current][number].clone();
        text.unwrap_or_else(|| libc::ENOENT.to_string())
    }
}

#[test]
fn requests_are_looked_up_from_a_number_of_kept_files_on() {
    let trees = Trees::new(PREFETCHED_FROM);
    let mut cache = later(64 << 20);
    let all: Vec<usize> = (0..PREFETCHED_FROM).collect();
    turn(&mut cache, &trees.root(), &[], &all[1..]);
    assert!(!cache.prefetches());
    turn(&mut cache, &trees.root(), &[], &all[..1]);
    assert!(cache.prefetches());
    cache.configure(Limits::default());
    assert!(!cache.prefetches(), "the limit may be another one");
    turn(&mut cache, &trees.root(), &[], &all[..1]);
    assert!(cache.prefetches());
    cache.relieve();
    turn(&mut cache, &trees.root(), &[], &all[..1]);
    assert!(!cache.prefetches());
}

/// Files and the link to their tree change between turns. Guesses are right and wrong, and the common directory is
/// opened and closed. Each open returns the state on disk.
#[test]
fn opened_files_match_the_disk_whatever_was_prefetched() {
    let files = 600;
    let mut trees = Trees::new(files);
    // The second limit has room for a part of the files.
    for limit in [64 << 20, 250_000] {
        let mut cache = later(limit);
        // Other tests of this process need descriptors, too.
        cache.configure(Limits {
            memory_bytes: limit,
            descriptors: 64,
            watches: true,
        });
        let mut seed = 18_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let all: Vec<usize> = (0..files).collect();
        turn(&mut cache, &trees.root(), &[], &all);
        let (mut now_ms, mut with_base) = (1, 0);
        for round in 0..400 {
            let number = random(files);
            match random(8) {
                0 => trees.switch(),
                1 | 2 => {
                    let tree = random(2);
                    let text = &mut trees.texts[tree][number];
                    *text = match text.take() {
                        Some(_) if random(4) == 0 => None,
                        text => Some(text.unwrap_or_default() + "x"),
                    };
                    trees.write(tree, number);
                }
                3 => {
                    now_ms += SWEEP_MS;
                    cache.set_now(now_ms, unix_ms() + 10_000);
                    cache.sweep(now_ms);
                }
                _ => {}
            }
            let count = random(3 * BASE_FROM) + 1;
            let mut asked: Vec<usize> = (0..count).map(|_| random(files)).collect();
            asked[0] = number;
            let mut expected = asked.clone();
            if random(3) == 0 {
                let at = random(count);
                expected[at] = random(files);
                expected.truncate(random(count) + 1);
            }
            with_base += usize::from(cache.memory.has_base());
            let texts = turn(&mut cache, &trees.root(), &expected, &asked);
            let on_disk: Vec<String> = asked.iter().map(|n| trees.expected(*n)).collect();
            assert_eq!(texts, on_disk, "round {round}, limit {limit}");
        }
        assert!(cache.prefetches() && with_base > 50, "{with_base}");
    }
}

#[test]
fn the_directory_is_open_while_many_requests_come_together() {
    let trees = Trees::new(PREFETCHED_FROM);
    let mut cache = later(64 << 20);
    cache.configure(Limits {
        watches: false,
        ..Limits::default()
    });
    let all: Vec<usize> = (0..PREFETCHED_FROM).collect();
    turn(&mut cache, &trees.root(), &[], &all);
    let mut now_ms = SWEEP_MS;
    let mut sweep_after = |cache: &mut FileCache, requests: &[usize]| {
        turn(cache, &trees.root(), requests, requests);
        now_ms += SWEEP_MS;
        cache.sweep(now_ms);
        (cache.memory.has_base(), cache.sweep_due().is_some())
    };
    assert_eq!(
        sweep_after(&mut cache, &all[..BASE_FROM - 1]),
        (false, false)
    );
    assert_eq!(sweep_after(&mut cache, &all[..BASE_FROM]), (true, true));
    assert_eq!(sweep_after(&mut cache, &all[..BASE_FROM]), (true, true));
    assert_eq!(
        sweep_after(&mut cache, &all[..BASE_FROM - 1]),
        (false, false)
    );
    assert_eq!(sweep_after(&mut cache, &all[..BASE_FROM]), (true, true));
    cache.clear();
    assert!(!cache.memory.has_base(), "its descriptor was needed");
}

/// Files opened before their cache lookup match the disk, and cached entries are used.
#[test]
fn files_are_opened_first_if_most_are_new() {
    let mut trees = Trees::new(2 * PREFETCHED_FROM);
    let limit = PREFETCHED_FROM as u64 * 2 * ENTRY_BYTES;
    let mut cache = later(limit);
    let all: Vec<usize> = (0..2 * PREFETCHED_FROM).collect();
    turn(&mut cache, &trees.root(), &[], &all[..PREFETCHED_FROM]);
    assert!(cache.mostly_missed && cache.is_probably_new());
    let big = trees.root().join("big");
    fs::write(&big, [b'x'; super::super::CONTENT_BYTES as usize + 1]).expect("write");
    let opened = open(&mut cache, &big).expect("it is there");
    for round in 0..3 {
        let hits = cache.figures.hits;
        let again = open(&mut cache, &big).expect("it is there");
        let fd = |opened: &Opened| opened.file.as_ref().map(Rc::as_ptr);
        assert_eq!(fd(&again), fd(&opened), "its descriptor is kept");
        for text in [Some("changed"), None, Some("new")] {
            trees.texts[trees.current][7] = text.map(str::to_owned);
            trees.write(trees.current, 7);
            let asked = [5, 7, 6, 7];
            let expected = asked.map(|n| trees.expected(n));
            assert_eq!(turn(&mut cache, &trees.root(), &[], &asked), expected);
        }
        assert_eq!(cache.figures.hits - hits, 1 + 3 * 2 + 2, "round {round}");
    }
    assert!(cache.mostly_missed && cache.is_probably_new());
    for _ in 0..4 {
        turn(&mut cache, &trees.root(), &[], &all[10..300]);
    }
    cache.sweep(SWEEP_MS);
    assert!(!cache.mostly_missed, "most are kept");
}

#[test]
fn the_watch_of_directories_ends_if_most_files_are_new() {
    let dir = Dir::new();
    if !is_watchable(&dir.0) {
        return;
    }
    let folders = Folders::new(&dir.0, 2 * PREFETCHED_FROM);
    let mut cache = later(64 << 20);
    let ask = |cache: &mut FileCache, numbers: std::ops::Range<usize>| {
        cache.input_received();
        for number in numbers {
            cache.expect(Some(&head(number)));
            open(cache, &folders.path(number)).expect("it is there");
        }
        cache.prefetch_requests(BASE_FROM);
        cache.end_turn();
    };
    ask(&mut cache, 0..PREFETCHED_FROM);
    for _ in 0..2 {
        ask(&mut cache, 0..PREFETCHED_FROM);
    }
    cache.sweep(SWEEP_MS);
    assert!(cache.memory.is_watched() && !cache.mostly_missed);
    // These hits count until the first comparison after them.
    let compared = MISSES_COMPARED as usize;
    ask(&mut cache, PREFETCHED_FROM..PREFETCHED_FROM + compared);
    assert!(cache.memory.is_watched());
    let last = PREFETCHED_FROM + 2 * compared - 1;
    ask(&mut cache, PREFETCHED_FROM + compared..last);
    assert!(cache.memory.is_watched());
    ask(&mut cache, last..last + 1);
    assert!(cache.mostly_missed && !cache.memory.is_watched());
}

#[test]
fn the_watch_of_directories_begins_if_lookups_serve_few_requests() {
    let dir = Dir::new();
    if !is_watchable(&dir.0) {
        return;
    }
    let folders = Folders::new(&dir.0, PREFETCHED_FROM);
    // Requests of a turn: four for each of four files, and `extra` more, which need no further lookup.
    for (extra, begins) in [(0, true), (1, false)] {
        let mut cache = later(64 << 20);
        let ask = |cache: &mut FileCache, numbers: &[usize]| {
            cache.input_received();
            for number in numbers {
                cache.expect(Some(&head(*number)));
            }
            cache.prefetch_requests(numbers.len());
            for number in numbers {
                open(cache, &folders.path(*number)).expect("it is there");
            }
            cache.end_turn();
        };
        let all: Vec<usize> = (0..PREFETCHED_FROM).collect();
        ask(&mut cache, &all);
        cache.sweep(0);
        assert!(!cache.memory.is_watched(), "nothing was kept");
        cache.sweep(SWEEP_MS);
        let few: Vec<usize> = (0..16 + extra).map(|at| at % 4).collect();
        ask(&mut cache, &few);
        cache.sweep(2 * SWEEP_MS);
        assert_eq!(cache.memory.is_watched(), begins, "{extra} more");
        ask(&mut cache, &all);
        cache.sweep(3 * SWEEP_MS);
        assert!(cache.memory.is_watched());
        ask(&mut cache, &[0; 64]);
        cache.sweep(4 * SWEEP_MS);
        assert!(cache.memory.is_watched(), "what has begun goes on");
    }
}

/// Files in several directories change in all ways between turns. Every change is noticed, and unchanged files are not
/// checked.
#[test]
fn files_in_watched_directories_are_as_on_the_disk() {
    let dir = Dir::new();
    if !is_watchable(&dir.0) {
        return;
    }
    let mut folders = Folders::new(&dir.0, PREFETCHED_FROM + 100);
    let mut cache = later(64 << 20);
    let mut now_ms = 1;
    let mut rounds = 0;
    for replaced in 0..3 {
        let mut unlooked = 0;
        while unlooked < 10 * folders.texts.len() {
            rounds += 1;
            assert!(
                rounds < 20_000,
                "{replaced} folders replaced, {unlooked} unlooked"
            );
            let changed = folders.change();
            let mut asked = folders.some(BASE_FROM + 4);
            asked[rounds % BASE_FROM] = changed;
            cache.input_received();
            asked.iter().for_each(|n| cache.expect(Some(&head(*n))));
            cache.prefetch_requests(asked.len());
            unlooked += cache.memory.unlooked(cache.input_reads);
            for number in asked {
                cache.begin_expected();
                let opened = open(&mut cache, &folders.path(number)).expect("it is there");
                let content = cache.content(&opened).expect("a small file");
                assert_eq!(
                    content.as_ref(),
                    folders.texts[number].as_bytes(),
                    "round {rounds}"
                );
                cache.end_expected();
            }
            cache.end_turn();
            if rounds % 20 == 0 {
                now_ms += SWEEP_MS;
                cache.set_now(now_ms, unix_ms() + 10_000);
                cache.sweep(now_ms);
                std::thread::yield_now();
            }
        }
        folders.replace(replaced);
    }
}

/// Ten folders with files, and their texts by number.
struct Folders<'a> {
    dir: &'a Path,
    texts: Vec<String>,
    seed: u64,
}

impl<'a> Folders<'a> {
    fn new(dir: &'a Path, files: usize) -> Self {
        let mut folders = Self {
            dir,
            texts: Vec::new(),
            seed: 18,
        };
        for number in 0..files {
            let path = folders.path(number);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a directory");
            folders.texts.push(number.to_string());
            fs::write(path, &folders.texts[number]).expect("write");
        }
        folders
    }

    fn path(&self, number: usize) -> PathBuf {
        self.dir.join(format!("{}/{number}", number % 10))
    }

    fn random(&mut self, below: usize) -> usize {
        let seed = self.seed.wrapping_mul(6_364_136_223_846_793_005);
        self.seed = seed.wrapping_add(1);
        (self.seed >> 33) as usize % below
    }

    fn some(&mut self, count: usize) -> Vec<usize> {
        let files = self.texts.len();
        (0..count).map(|_| self.random(files)).collect()
    }

    /// Changes at most one file; returns its number.
    fn change(&mut self) -> usize {
        let number = self.random(self.texts.len());
        let (path, way) = (self.path(number), self.random(5));
        let mut text = self.texts[number].clone() + "x";
        match way {
            0 => fs::write(&path, &text),
            1 => {
                let beside = self.dir.join("beside");
                fs::write(&beside, &text).and_then(|()| fs::rename(&beside, &path))
            }
            2 => fs::remove_file(&path).and_then(|()| fs::write(&path, &text)),
            3 => {
                let file = fs::File::options().append(true).open(&path);
                file.and_then(|mut file| file.write_all(b"x"))
            }
            _ => {
                text.pop();
                Ok(())
            }
        }
        .expect("it is writable");
        self.texts[number] = text;
        number
    }

    /// Replaces a folder with a copy.
    fn replace(&self, number: usize) {
        let (folder, old) = (self.dir.join(number.to_string()), self.dir.join("old"));
        fs::rename(&folder, &old).expect("rename");
        fs::create_dir(&folder).expect("a directory");
        for entry in fs::read_dir(&old).expect("it is there") {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), folder.join(entry.file_name())).expect("copy");
        }
        fs::remove_dir_all(&old).expect("remove");
    }
}
