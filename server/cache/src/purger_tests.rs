//! Purges over real files, and changes of files in place.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::disk::{Header, Notes, encode};
use crate::index::examples_tests::*;
use crate::index::{Committed, PurgeMode, StoredFile};
use crate::key::CacheKey;
use crate::names::{Levels, temp_path};

struct Site {
    path: PathBuf,
    directory: Directory,
    index: Arc<Index>,
}

impl Site {
    fn new(name: &str) -> Self {
        let path = format!("firstbyte-purger-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(path);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary directory");
        let levels = Levels::parse(b"1:2").expect("levels");
        let directory = Directory::open(&path, levels).expect("it exists");
        Self {
            path,
            directory,
            index: index(1000),
        }
    }

    /// Stores a response as a request does.
    fn store(&self, key: &CacheKey, tags: &[u8]) {
        let token = start(&self.index, key.id(), key, OFF);
        let notes = Notes {
            tags,
            body_len: Some(4),
            ..Notes::default()
        };
        let header = Header {
            valid_s: i64::from(NOW_S) + 60,
            last_modified_s: -1,
            ..Header::default()
        };
        // Longer than the first read.
        let head = [&b"HTTP/1.1 200 OK\r\nX: "[..], &[b'x'; 5000], b"\r\n\r\n"].concat();
        let mut bytes = encode(&header, key, &head, Some(&notes)).expect("it is short");
        let body_start = bytes.len() as u16;
        bytes.extend_from_slice(b"body");
        let temp = temp_path(self.path.join("file").as_os_str().as_encoded_bytes(), 1);
        let temp = PathBuf::from(String::from_utf8(temp).expect("a name"));
        fs::write(&temp, bytes).expect("there is space");
        let meta = self
            .directory
            .publish(&temp, &fs::File::open(&temp).expect("it exists"), &key.id())
            .expect("one directory");
        let file = StoredFile {
            blocks: self.directory.blocks(meta.blocks()),
            body_start,
            ..StoredFile::default()
        };
        assert_eq!(
            token.commit(&facts(key, tags), || Some(file)),
            Committed::Stored
        );
    }

    fn valid_s(&self, key: &CacheKey) -> Option<i64> {
        let start = self.directory.read_start(&key.id()).ok()?;
        let prefix = start.parse().expect("it is whole");
        assert_eq!(prefix.body_len, 4);
        Some(prefix.header.valid_s)
    }

    fn purge(&self, pace: Pace) -> (u32, u64) {
        let mut purger = Purger::default();
        let mut steps = 1;
        loop {
            let (index, directory) = (&self.index, &self.directory);
            let fail = |error: io::Error| panic!("{error}");
            match purger.step(index, directory, pace, &|| 0, NOW_S.into(), fail) {
                PurgeStep::Done(purged) => return (steps, purged),
                PurgeStep::Again(ms) => assert_eq!(ms, pace.sleep_ms),
                PurgeStep::Idle => panic!("there is a purge"),
            }
            steps += 1;
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[test]
fn files_of_purged_entries_are_removed_or_made_stale() {
    let site = Site::new("files");
    let all: Vec<CacheKey> = (0..60).map(|n| key(&format!("/{}/{n}", n % 3))).collect();
    for (n, key) in all.iter().enumerate() {
        site.store(key, if n % 5 == 0 { b"a\tfive" } else { b"a" });
    }
    site.index
        .purge_tag(b"five", PurgeMode::Hard)
        .expect("there are few");
    site.index
        .purge_prefix(b"/1/", PurgeMode::Soft)
        .expect("there are few");
    // One file is missing, and one damaged.
    fs::remove_file(site.directory.path_of(&all[2].id())).expect("it exists");
    fs::write(site.directory.path_of(&all[3].id()), b"short").expect("it exists");
    let pace = Pace {
        files: 25,
        ..Pace::default()
    };
    assert_eq!(site.purge(pace), (3, 12 + 16 + 2));
    for (n, key) in all.iter().enumerate() {
        let is_removed = n % 5 == 0 || n == 2 || n == 3;
        let valid_s = i64::from(NOW_S) + if n % 3 == 1 { -1 } else { 60 };
        assert_eq!(site.valid_s(key), (!is_removed).then_some(valid_s), "{n}");
        assert_eq!(site.index.has_file(&key.id()), !is_removed, "{n}");
    }
    let idle = Purger::default().step(&site.index, &site.directory, pace, &|| 0, 0, drop);
    assert_eq!(idle, PurgeStep::Idle);
}

#[test]
fn a_step_ends_by_its_time() {
    let site = Site::new("time");
    for n in 0..3 {
        site.store(&key(&format!("/{n}")), b"");
    }
    site.index
        .purge_prefix(b"/", PurgeMode::Hard)
        .expect("there are few");
    let pace = Pace {
        threshold_ms: 0,
        ..Pace::default()
    };
    let (steps, purged) = site.purge(pace);
    assert!(steps > 3 && purged == 3, "{steps} steps, {purged} purged");
}

#[test]
fn a_head_is_replaced_unless_the_file_was() {
    let site = Site::new("update");
    let (one, missing) = (key("/a"), key("/b"));
    site.store(&one, b"");
    let start = site.directory.read_start(&one.id()).expect("it exists");
    let old = start.parse().expect("it is whole").header;
    let newer = Header {
        valid_s: 123,
        ..old
    };
    let seen = start.identity();
    let update = |key: &CacheKey, header| site.directory.update_header(&key.id(), seen, header);
    assert!(update(&one, &newer).expect("it is written"));
    assert_eq!(site.valid_s(&one), Some(123));
    let other = Header {
        last_modified_s: 5,
        ..newer
    };
    assert!(!update(&one, &other).expect("it is read"));
    assert!(!update(&missing, &newer).expect("it is missing"));
    // Another response, without validators, with a head of the same length. The first one still has its descriptor.
    let (_open, _) = site.directory.open_entry(&one.id(), 0).expect("it exists");
    site.store(&one, b"");
    assert!(!update(&one, &newer).expect("it is read"));
    assert_eq!(site.valid_s(&one), Some(i64::from(NOW_S) + 60));
    assert!(site.directory.remove(&one.id()).expect("it exists"));
    assert!(!site.directory.remove(&one.id()).expect("it is missing"));
    assert!(site.directory.available_bytes().expect("it exists") > 0);
    assert!(site.directory.block_bytes() >= 512);
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone() {
    let site = Site::new("unreadable");
    let all = ["/a", "/b", "/c"].map(key);
    for key in &all {
        site.store(key, b"");
    }
    let epoch = site.index.purge_prefix(b"/a", PurgeMode::Hard);
    let epoch = epoch.expect("there are few");
    // Reading fails as it does without descriptors.
    let path = site.directory.path_of(&all[1].id());
    let (kept, pace) = (site.path.join("kept"), Pace::default());
    fs::rename(&path, &kept).expect("it exists");
    std::os::unix::fs::symlink(&path, &path).expect("a loop");
    let mut purger = Purger::default();
    let mut errors = 0;
    let mut step = || {
        let (index, directory) = (&site.index, &site.directory);
        let step = purger.step(index, directory, pace, &|| 0, NOW_S.into(), |_| errors += 1);
        (step, std::mem::take(&mut errors))
    };
    for _ in 0..3 {
        assert_eq!(step(), (PurgeStep::Again(1000), 1));
        assert!(site.index.has_file(&all[1].id()));
        assert!(!site.index.has_purge_ended(epoch));
    }
    assert!(!site.index.has_file(&all[0].id()), "others were purged");
    fs::rename(&kept, &path).expect("it exists");
    assert_eq!(step(), (PurgeStep::Done(1), 0));
    assert!(site.index.has_purge_ended(epoch));
    assert_eq!(site.valid_s(&all[1]), Some(i64::from(NOW_S) + 60));
}
