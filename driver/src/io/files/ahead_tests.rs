//! Tests of files that are looked up ahead of their requests.

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
use super::super::{Limits, SWEEP_MS};
use super::*;
use crate::io::dir_watch::tests::is_watchable;

/// The head of a request for the file with this number.
fn head(number: usize) -> RequestHead {
    let mut head = RequestHead::default();
    head.arena = format!("/{number}").into_bytes();
    head.target = Span::new(0, head.arena.len());
    head
}

fn open(cache: &mut FileCache, path: &Path) -> Result<Rc<Opened>, FileError> {
    cache.open(path.as_os_str().as_bytes(), &OpenPolicy::default())
}

/// A turn of requests for files: those that are expected, and those that are asked for then.
fn turn(cache: &mut FileCache, dir: &Path, expected: &[usize], asked: &[usize]) -> Vec<String> {
    cache.input_received();
    for number in expected {
        cache.expect(Some(&head(*number)));
    }
    let mut texts = Vec::new();
    for (at, number) in asked.iter().enumerate() {
        if at % 32 == 0 {
            cache.look_up(32);
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

    /// Makes a file anew with its text, by another inode.
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
    let trees = Trees::new(LOOKED_UP_FROM);
    let mut cache = later(64 << 20);
    let all: Vec<usize> = (0..LOOKED_UP_FROM).collect();
    turn(&mut cache, &trees.root(), &[], &all[1..]);
    assert!(!cache.looks_ahead());
    turn(&mut cache, &trees.root(), &[], &all[..1]);
    assert!(cache.looks_ahead());
    cache.configure(Limits::default());
    assert!(!cache.looks_ahead(), "the limit may be another one");
    turn(&mut cache, &trees.root(), &[], &all[..1]);
    assert!(cache.looks_ahead());
    cache.relieve();
    turn(&mut cache, &trees.root(), &[], &all[..1]);
    assert!(!cache.looks_ahead());
}

/// Files and the link to their tree change between turns, guesses are right and wrong, the directory is chosen and closed: what
/// is opened is what is on disk.
#[test]
fn what_is_opened_is_what_is_on_disk_whatever_was_expected() {
    let files = 600;
    let mut trees = Trees::new(files);
    // The second has room for a part of the files.
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
        assert!(cache.looks_ahead() && with_base > 50, "{with_base}");
    }
}

#[test]
fn the_directory_is_open_while_many_requests_come_together() {
    let trees = Trees::new(LOOKED_UP_FROM);
    let mut cache = later(64 << 20);
    cache.configure(Limits {
        watches: false,
        ..Limits::default()
    });
    let all: Vec<usize> = (0..LOOKED_UP_FROM).collect();
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

/// Files in several directories are changed in all ways between turns; no report is missed, and where there is none a file is not
/// looked at.
#[test]
fn files_in_watched_directories_are_as_on_the_disk() {
    let dir = Dir::new();
    if !is_watchable(&dir.0) {
        return;
    }
    let files = LOOKED_UP_FROM + 100;
    let mut texts = Vec::new();
    for number in 0..files {
        let folder = dir.0.join((number % 10).to_string());
        fs::create_dir_all(&folder).expect("a directory");
        texts.push(format!("{number}"));
        fs::write(folder.join(number.to_string()), &texts[number]).expect("write");
    }
    let path = |number: usize| dir.0.join(format!("{}/{number}", number % 10));
    let mut cache = later(64 << 20);
    let mut now_ms = 1;
    let mut seed = 18_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let (mut marked, mut rounds) = (0, 0);
    while marked < 20 * files && rounds < 4000 {
        rounds += 1;
        let changed = random(files);
        let at = path(changed);
        texts[changed] += "x";
        let text = &texts[changed];
        match random(6) {
            0 => fs::write(&at, text),
            1 => {
                let beside = dir.0.join("beside");
                fs::write(&beside, text).and_then(|()| fs::rename(&beside, &at))
            }
            2 => fs::remove_file(&at).and_then(|()| fs::write(&at, text)),
            3 => {
                let file = fs::File::options().append(true).open(&at);
                file.and_then(|mut file| file.write_all(b"x"))
            }
            4 if rounds % 100 == 0 => {
                // The folder goes, and one with the same files takes its place.
                let folder = at.parent().expect("a folder");
                let old = dir.0.join("old");
                fs::rename(folder, &old).expect("rename");
                fs::create_dir(folder).expect("a directory");
                for entry in fs::read_dir(&old).expect("it is there") {
                    let entry = entry.expect("an entry");
                    let copy = folder.join(entry.file_name());
                    fs::copy(entry.path(), copy).expect("copy");
                }
                fs::write(&at, text).expect("write");
                fs::remove_dir_all(&old)
            }
            _ => {
                texts[changed].pop();
                Ok(())
            }
        }
        .expect("it is writable");
        cache.input_received();
        let mut asked: Vec<usize> = (0..BASE_FROM + 4).map(|_| random(files)).collect();
        asked[random(BASE_FROM)] = changed;
        asked.iter().for_each(|n| cache.expect(Some(&head(*n))));
        cache.look_up(asked.len());
        for number in asked {
            cache.begin_expected();
            let opened = open(&mut cache, &path(number)).expect("it is there");
            let content = cache.content(&opened).expect("a small file");
            assert_eq!(content.as_ref(), texts[number].as_bytes(), "round {rounds}");
            cache.end_expected();
        }
        cache.end_turn();
        if rounds % 20 == 0 {
            now_ms += SWEEP_MS;
            cache.set_now(now_ms, unix_ms() + 10_000);
            cache.sweep(now_ms);
            std::thread::yield_now();
        }
        marked += cache.memory.marked();
    }
    assert!(marked > files, "{marked} after {rounds} rounds");
}
