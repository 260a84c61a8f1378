//! Entries that are removed for others, or unused; memory of an entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::examples_tests::*;
use super::*;
use crate::key::EntryId;

#[test]
fn keys_zone_is_a_number_of_entries() {
    for (bytes, entries) in [
        (1 << 20, 8000),
        (10 << 20, 80_000),
        (8192, 62),
        (0, 0),
        (125 << 20, 1_000_000),
    ] {
        assert_eq!(entries_max(bytes), entries);
    }
    assert_eq!(entries_max(u64::MAX), 140_737_488_355_327_999);
}

#[test]
fn the_oldest_entry_makes_room_at_the_limit() {
    let index = index(3);
    for text in ["/1", "/2", "/3"] {
        store_key(&index, text);
    }
    assert!(!index.is_crowded() && index.take_doomed(9).is_empty());
    let one = key("/1");
    stored(&index, one.id(), &one);
    store_key(&index, "/4");
    let stats = index.stats();
    assert_eq!((stats.entries, stats.evicted, stats.doomed), (3, 1, 1));
    assert_eq!(stats.blocks, 4, "its file is not removed yet");
    assert!(index.is_crowded(), "the manager makes more room");
    assert_eq!(index.take_doomed(9), [key("/2").id()]);
    assert!(index.take_doomed(9).is_empty());
    assert_eq!(index.stats().blocks, 3);
    assert!(!index.has_file(&key("/2").id()) && index.has_file(&one.id()));
    index.set_entries_max(2);
    assert!(index.is_crowded());
    let victim = index.evict_one();
    let expected = Victim {
        id: key("/3").id(),
        has_file: true,
        blocks: 1,
    };
    assert_eq!(victim, Some(expected));
    assert!(!index.is_crowded());
}

#[test]
fn shards_share_the_limit_and_the_order_of_seconds() {
    let index = index(20_000);
    let text = |n: u32| format!("/{n}");
    for n in 0..20_000 {
        let key = key(&text(n));
        let now = Now {
            unix_s: NOW_S + n,
            ..NOW
        };
        let Begin::Started(token) = index.begin_fill(key.id(), &key, OFF, now) else {
            panic!("there is room for {n}");
        };
        assert_eq!(
            token.commit(&facts(&key, b""), || Some(file(1))),
            Committed::Stored
        );
    }
    assert_eq!(index.stats().entries, 20_000);
    for n in 0..100 {
        let id = key(&text(n)).id();
        assert_eq!(index.evict_one().map(|victim| victim.id), Some(id));
    }
    assert_eq!(index.next_expiry_s(NOW_S + 200, 600), Some(500));
    assert_eq!(index.expire_one(NOW_S + 699, 600), None);
    let first = index.expire_one(NOW_S + 700, 600).map(|victim| victim.id);
    assert_eq!(first, Some(key(&text(100)).id()));
    let mut expired = 1;
    while index.expire_one(NOW_S + 1000, 600).is_some() {
        expired += 1;
    }
    assert_eq!(expired, 301);
    let stats = index.stats();
    assert_eq!(
        (stats.expired, stats.evicted, stats.entries),
        (301, 100, 19_599)
    );
}

#[test]
fn an_entry_that_is_received_is_kept() {
    let index = index(100);
    let key = key("/a");
    store(&index, key.id(), &key, b"");
    let update = start(&index, key.id(), &key, OFF);
    assert_eq!(index.evict_one(), None);
    assert_eq!(index.expire_one(NOW_S + 10_000, 600), None);
    assert_eq!(index.next_expiry_s(NOW_S + 10_000, 600), Some(600));
    drop(update);
    assert!(index.evict_one().is_some());
    assert_eq!(index.next_expiry_s(NOW_S, 600), None);
}

#[test]
fn a_million_entries_have_160_bytes_each() {
    const ENTRIES: u64 = 1_000_000;
    let index = Index::new(ENTRIES);
    let id = |n: u64| {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        EntryId((u128::from(mixed) << 64 | u128::from(n)).to_le_bytes())
    };
    for n in 0..ENTRIES {
        assert_eq!(index.load(&id(n), 1, NOW_S), Loaded::Added);
    }
    assert_eq!(index.load(&id(ENTRIES), 1, NOW_S), Loaded::Full);
    let bytes = index.memory_bytes() as u64 / ENTRIES;
    assert!(bytes <= ENTRY_BYTES_MAX as u64, "{bytes} bytes");
    // As many keys have a variant.
    for n in (0..ENTRIES).step_by(2) {
        index.learn(&id(n), &id(n));
        index.learn(&id(n + 1), &id(n));
    }
    assert_eq!(index.counts.unknown.load(Ordering::Relaxed), 0);
    let bytes = index.memory_bytes() as u64 / ENTRIES;
    assert!(
        bytes <= ENTRY_BYTES_MAX as u64,
        "{bytes} bytes with variants"
    );
}

#[test]
fn a_new_entry_replaces_two_at_most() {
    let index = index(100);
    for n in 0..100 {
        store_key(&index, &format!("/{n}"));
    }
    index.set_entries_max(50);
    let key = key("/new");
    let begin = || index.begin_fill(key.id(), &key, OFF, NOW);
    for _ in 0..25 {
        let before = index.stats().entries;
        assert!(matches!(begin(), Begin::Full));
        assert_eq!(index.stats().entries, before - 2);
    }
    assert!(matches!(begin(), Begin::Started(_)));
}

#[test]
fn a_file_that_was_stored_again_is_not_removed() {
    let index = index(100);
    let key = key("/a");
    store_key(&index, "/a");
    let victim = index.evict_one().expect("it is not in use");
    assert_eq!(index.remove_unused(&victim.id, || 1), Some(1));
    // Stored again between the removal of the entry and that of its file.
    store_key(&index, "/a");
    assert_eq!(
        index.remove_unused(&victim.id, || unreachable!()),
        None::<()>
    );
    purge_hard(&index, &key);
    // The file gets its name meanwhile.
    let has_started = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut remover = None;
        let token = start(&index, key.id(), &key, OFF);
        let committed = token.commit(&facts(&key, b""), || {
            remover = Some(scope.spawn(|| {
                has_started.store(true, Ordering::SeqCst);
                index.remove_unused(&key.id(), || ())
            }));
            while !has_started.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            // It would remove the file now, but for the lock of the path.
            for _ in 0..1000 {
                std::thread::yield_now();
            }
            Some(file(1))
        });
        assert_eq!(committed, Committed::Stored);
        let removed = remover.map(|remover| remover.join().expect("it cannot fail"));
        assert_eq!(removed, Some(None));
    });
    assert!(index.has_file(&key.id()));
}

#[test]
fn periodic_work_is_woken_once_for_many_files() {
    let wakes = Arc::new(AtomicU64::new(0));
    let index = index(10);
    let counter = Arc::clone(&wakes);
    index.set_work_wake(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let woken = || wakes.swap(0, Ordering::SeqCst);
    for n in 0..10 {
        store_key(&index, &format!("/{n}"));
    }
    assert_eq!(woken(), 0, "it is not full");
    for n in 10..20 {
        store_key(&index, &format!("/{n}"));
    }
    assert_eq!(woken(), 2, "for the first file, and for the full index");
    index.take_doomed(9);
    store_key(&index, "/20");
    assert_eq!(woken(), 0, "one file was left");
    index.take_doomed(9);
    store_key(&index, "/21");
    assert_eq!(woken(), 1);
    index
        .purge_tag(b"x", PurgeMode::Hard)
        .expect("there are few");
    index
        .purge_prefix(b"x", PurgeMode::Hard)
        .expect("there are few");
    assert_eq!(woken(), 2);
    purge_hard(&index, &key("/21"));
    assert_eq!(woken(), 0, "no walk is needed");
}
