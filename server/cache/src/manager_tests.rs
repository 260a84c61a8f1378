//! The manager's steps.

use std::cell::Cell;

use super::*;
use crate::index::examples_tests::*;

/// Files that are only counted.
#[derive(Default)]
struct Files {
    removed: Vec<EntryId>,
    available_bytes: Option<u64>,
    /// Bytes that the removal of a file makes available.
    file_bytes: u64,
}

impl ManagedFiles for Files {
    fn available_bytes(&mut self) -> Option<u64> {
        self.available_bytes
    }

    fn remove(&mut self, id: &EntryId) {
        self.removed.push(*id);
        if let Some(available) = &mut self.available_bytes {
            *available += self.file_bytes;
        }
    }
}

fn ids(range: std::ops::Range<u32>) -> Vec<EntryId> {
    range.map(|n| key(&format!("/{n}")).id()).collect()
}

fn stored(entries: u32) -> std::sync::Arc<Index> {
    let index = index(1000);
    for n in 0..entries {
        store_key(&index, &format!("/{n}"));
    }
    index
}

fn run(index: &Index, conf: &ManagerConf, files: &mut Files, now_s: u32) -> u64 {
    manage(index, conf, files, &|| 0, now_s)
}

#[test]
fn unused_entries_are_removed_in_steps() {
    let index = stored(250);
    let (conf, mut files) = (ManagerConf::default(), Files::default());
    assert_eq!(run(&index, &conf, &mut files, NOW_S), 10_000);
    assert_eq!(run(&index, &conf, &mut files, NOW_S + 595), 5000);
    assert!(files.removed.is_empty());
    assert_eq!(run(&index, &conf, &mut files, NOW_S + 600), 50);
    assert_eq!(files.removed, ids(0..100));
    assert_eq!(run(&index, &conf, &mut files, NOW_S + 600), 50);
    assert_eq!(run(&index, &conf, &mut files, NOW_S + 600), 10_000);
    assert_eq!(files.removed, ids(0..250));
}

#[test]
fn the_oldest_entries_are_removed_beyond_max_size() {
    let index = stored(10);
    let conf = ManagerConf {
        max_blocks: 7,
        ..ManagerConf::default()
    };
    let mut files = Files::default();
    assert_eq!(run(&index, &conf, &mut files, NOW_S), 10_000);
    assert_eq!(files.removed, ids(0..4), "6 blocks are fewer than 7");
}

#[test]
fn the_oldest_entries_are_removed_for_free_space() {
    let index = stored(10);
    let conf = ManagerConf {
        min_free_bytes: 1000,
        ..ManagerConf::default()
    };
    let mut files = Files {
        available_bytes: Some(900),
        file_bytes: 50,
        ..Files::default()
    };
    assert_eq!(run(&index, &conf, &mut files, NOW_S), 10_000);
    assert_eq!(
        files.removed,
        ids(0..3),
        "1000 bytes are not enough, 1050 are"
    );
    files.available_bytes = None;
    run(&index, &conf, &mut files, NOW_S);
    assert_eq!(files.removed.len(), 3, "it is not known");
    files.available_bytes = Some(0);
    files.file_bytes = 0;
    assert_eq!(run(&index, &conf, &mut files, NOW_S), 10_000);
    assert_eq!(index.stats().entries, 0, "nothing is left to remove");
}

#[test]
fn a_full_index_gets_an_eighth_of_room() {
    let index = index(80);
    for n in 0..85 {
        store_key(&index, &format!("/{n}"));
    }
    let mut files = Files::default();
    run(&index, &ManagerConf::default(), &mut files, NOW_S);
    assert_eq!(index.stats().entries, 69);
    files.removed.sort_unstable();
    let mut expected = ids(0..16);
    expected.sort_unstable();
    assert_eq!(files.removed, expected, "those that requests replaced, too");
}

#[test]
fn a_replaced_entry_that_came_back_keeps_its_file() {
    let index = index(1);
    store_key(&index, "/0");
    store_key(&index, "/1");
    store_key(&index, "/0");
    index.set_entries_max(100);
    let mut files = Files::default();
    run(&index, &ManagerConf::default(), &mut files, NOW_S);
    assert_eq!(files.removed, ids(1..2));
}

#[test]
fn a_step_ends_by_its_time() {
    let index = stored(10);
    let now = Cell::new(0);
    let clock = || {
        now.set(now.get() + 90);
        now.get()
    };
    let mut files = Files::default();
    let conf = ManagerConf::default();
    assert_eq!(manage(&index, &conf, &mut files, &clock, NOW_S + 600), 50);
    assert_eq!(files.removed.len(), 3);
}

#[test]
fn entries_in_use_are_left_alone() {
    let index = stored(1);
    let key = key("/0");
    let update = start(&index, key.id(), &key, OFF);
    let conf = ManagerConf {
        max_blocks: 0,
        ..ManagerConf::default()
    };
    let mut files = Files::default();
    assert_eq!(run(&index, &conf, &mut files, NOW_S), 1000);
    assert!(files.removed.is_empty());
    drop(update);
    assert_eq!(run(&index, &conf, &mut files, NOW_S), 10_000);
    assert_eq!(files.removed, ids(0..1));
}

#[test]
fn files_that_requests_have_replaced_are_removed_without_a_long_pause() {
    let index = index(100);
    for n in 0..350 {
        store_key(&index, &format!("/{n}"));
    }
    index.set_entries_max(1000);
    assert_eq!((index.stats().doomed, index.stats().blocks), (250, 350));
    let conf = ManagerConf {
        max_blocks: 101,
        ..ManagerConf::default()
    };
    let mut files = Files::default();
    let pauses = [(); 3].map(|()| run(&index, &conf, &mut files, NOW_S));
    assert_eq!(pauses, [50, 50, 10_000]);
    assert_eq!(files.removed.len(), 250);
    let stats = index.stats();
    assert_eq!((stats.entries, stats.doomed, stats.blocks), (100, 0, 100));
}
