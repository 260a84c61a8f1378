//! Purges beside other purges, slow fills, and requests that name the keys of loaded entries.

use std::sync::Arc;

use super::core::DOOMED_MAX;
use super::examples_tests::*;
use super::*;

#[test]
fn an_earlier_purge_does_not_undo_a_later_one() {
    let index = index(100);
    let key = key("/a");
    for _ in 0..6 {
        purge_hard(&index, &key);
    }
    // Begun at epoch 6.
    let token = start(&index, key.id(), &key, OFF);
    for epoch in [7, 6] {
        index.purge_one(&key.id(), PurgeMode::Hard, epoch);
    }
    let committed = token.commit(&facts(&key, b""), || unreachable!());
    assert_eq!(committed, Committed::Refused);
}

#[test]
fn a_variant_is_unknown_until_it_is_listed() {
    let index = Arc::new(Index::new(100));
    let key = key("/a");
    index.load(&variant(1), 1, NOW_S);
    index.set_loaded();
    // A request has named the key, and has not listed the variant yet.
    let was_unknown = index.with(&variant(1), |node| node.set_known(key.id(), false));
    assert_eq!(was_unknown, Some(true));
    let purged = index
        .purge_key(&key, PurgeMode::Hard)
        .expect("there are few");
    assert_eq!(purged.ids, [key.id()]);
    let entry = stored(&index, variant(1), &key);
    let found = index.check(entry.epoch, &facts(&key, b""));
    assert_eq!(found, Some(PurgeMode::Hard));
    index.list_variant(key.id(), variant(1), true);
    let purged = index
        .purge_key(&key, PurgeMode::Hard)
        .expect("there are few");
    assert_eq!(purged.ids, [key.id(), variant(1)]);
    assert_eq!(index.stats().purges, 1, "nothing is unknown any more");
}

#[test]
fn a_counted_request_lists_its_variant() {
    let index = index(100);
    let key = key("/a");
    index.look_up(&variant(1), &key.id(), 2, NOW_S);
    let purged = index
        .purge_key(&key, PurgeMode::Hard)
        .expect("there are few");
    assert_eq!(purged.ids, [key.id(), variant(1)]);
}

#[test]
fn a_fill_that_lasts_too_long_is_not_stored() {
    let index = index(100);
    let key = key("/a");
    store_key(&index, "/b");
    let epoch = |index: &Index| {
        let purged = index.purge_tag(b"x", PurgeMode::Hard);
        purged.expect("there are few")
    };
    let walk = |age_ms: u64| {
        let begun = index.begin_walk(NOW.mono_ms + age_ms);
        let mut walk = begun.expect("a purge is in effect");
        let mut entries = Vec::new();
        while index.walk_step(&mut walk, &mut entries) {}
        index.end_walk(walk);
    };
    // One whose file has its name when the walk begins, and one that ends later.
    for is_publishing in [false, true] {
        let token = start(&index, key.id(), &key, OFF);
        let purge = epoch(&index);
        walk(FILL_AGE_MAX_MS - 1);
        assert!(!index.has_purge_ended(purge));
        // Only the purge that has ended concerns it.
        let facts = facts(&key, b"y");
        let committed = if is_publishing {
            let late = token.commit(&facts, || {
                walk(FILL_AGE_MAX_MS);
                Some(file(1))
            });
            assert_eq!(late, Committed::Purged);
            late
        } else {
            walk(FILL_AGE_MAX_MS);
            token.commit(&facts, || unreachable!())
        };
        assert_ne!(committed, Committed::Stored);
        assert!(index.has_purge_ended(purge) && !index.has_file(&key.id()));
    }
    store_key(&index, "/a");
    assert!(index.has_file(&key.id()), "later fills are stored");
}

#[test]
fn variants_wait_for_the_removal_of_files() {
    let index = index(1000);
    let key = key("/a");
    for n in 0..VARIANTS_MAX as u8 {
        store(&index, variant(n), &key, b"");
    }
    let doom = || {
        index.doom(Victim {
            id: variant(200),
            has_file: true,
            blocks: 1,
        });
    };
    let begin = || index.begin_fill(variant(100), &key, OFF, NOW);
    (1..DOOMED_MAX).for_each(|_| doom());
    assert!(matches!(begin(), Begin::Started(_)));
    assert_eq!(index.doomed(), DOOMED_MAX);
    // One variant was replaced.
    store(&index, variant(101), &key, b"");
    assert!(matches!(begin(), Begin::Full));
    assert_eq!(index.doomed(), DOOMED_MAX);
    index.take_doomed(1);
    assert!(matches!(begin(), Begin::Started(_)));
}
