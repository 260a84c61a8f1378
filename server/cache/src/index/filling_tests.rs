//! Fills of entries: producers, results, purges meanwhile.

use super::examples_tests::*;
use super::*;
use crate::fill::FillEnd;
use crate::key::CacheKey;

const AGE: FillLock = FillLock::Age(5000);

#[test]
fn later_requests_join_a_fill_until_it_is_old() {
    let index = index(100);
    let key = key("/a");
    let token = start(&index, key.id(), &key, AGE);
    let at = |mono_ms, lock| {
        let now = Now {
            mono_ms: NOW.mono_ms + mono_ms,
            ..NOW
        };
        index.begin_fill(key.id(), &key, lock, now)
    };
    for mono_ms in [0, 4999] {
        match at(mono_ms, AGE) {
            Begin::Joined(fill) => assert!(std::sync::Arc::ptr_eq(&fill, token.fill())),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(at(0, OFF), Begin::Started(_)));
    let Begin::Started(second) = at(5000, AGE) else {
        panic!("the first one is old");
    };
    // Both may be stored; the last one stays.
    let facts = facts(&key, b"");
    assert_eq!(second.commit(&facts, || Some(file(2))), Committed::Stored);
    assert_eq!(token.commit(&facts, || Some(file(5))), Committed::Stored);
    assert_eq!(index.stats().blocks, 5);
    // A fill that its producer has given up is not joined.
    let given_up = start(&index, key.id(), &key, AGE);
    given_up.fill().fail();
    drop(start(&index, key.id(), &key, AGE));
}

#[test]
fn a_fill_without_a_result_leaves_nothing() {
    let index = index(100);
    let key = key("/a");
    let token = start(&index, key.id(), &key, AGE);
    let fill = std::sync::Arc::clone(token.fill());
    assert_eq!(index.stats().entries, 1);
    drop(token);
    assert_eq!(fill.progress().end, Some(FillEnd::Failed));
    assert_eq!(index.stats().entries, 0);
    assert!(matches!(
        index.begin_fill(key.id(), &key, AGE, NOW),
        Begin::Started(_)
    ));
}

#[test]
fn consumers_learn_how_a_fill_ended() {
    let index = index(100);
    let key = key("/a");
    type Close = fn(FillToken, &CacheKey);
    let ends: [(Close, FillEnd); 5] = [
        (|token, _| drop(token), FillEnd::Failed),
        (
            |token, key| token.commit_error(key, 504, 9),
            FillEnd::Settled,
        ),
        (|token, _| token.abandon(), FillEnd::NotStorable),
        (
            |token, key| {
                assert_eq!(
                    token.commit(&facts(key, b""), || Some(file(1))),
                    Committed::Stored
                )
            },
            FillEnd::Done,
        ),
        (
            |token, key| {
                assert_eq!(
                    token.refresh(&VALIDATED, &facts(key, b""), 9),
                    Committed::Stored
                )
            },
            FillEnd::Settled,
        ),
    ];
    for (close, end) in ends {
        let token = start(&index, key.id(), &key, OFF);
        let fill = std::sync::Arc::clone(token.fill());
        close(token, &key);
        assert_eq!(fill.progress().end, Some(end));
    }
}

#[test]
fn a_response_requested_before_a_purge_of_its_key_is_not_stored() {
    let index = index(100);
    let key = key("/a");
    for mode in [PurgeMode::Hard, PurgeMode::Soft] {
        let old = start(&index, key.id(), &key, AGE);
        let purged = index.purge_key(&key, mode).expect("there are few");
        assert_eq!(purged.entries, 0);
        // A later request does not join it.
        let newer = start(&index, key.id(), &key, AGE);
        assert_eq!(
            old.commit(&facts(&key, b""), || unreachable!()),
            Committed::Refused
        );
        assert_eq!(look_up(&index, key.id(), &key), Lookup::Absent);
        assert_eq!(
            newer.commit(&facts(&key, b""), || Some(file(1))),
            Committed::Stored
        );
        assert!(!stored(&index, key.id(), &key).is_stale);
        index
            .purge_key(&key, PurgeMode::Hard)
            .expect("there are few");
        assert_eq!(index.stats().entries, 0);
    }
}

#[test]
fn a_response_requested_before_a_purge_of_its_tag_is_not_stored() {
    let index = index(100);
    let key = key("/a/b");
    let facts = facts(&key, b"x\ty");
    for (mode, result) in [
        (PurgeMode::Hard, Committed::Refused),
        (PurgeMode::Soft, Committed::Stale),
    ] {
        let by_tag = start(&index, key.id(), &key, AGE);
        index.purge_tag(b"y", mode).expect("there are few");
        // Its tags are not known, so that no later request joins it.
        let by_prefix = start(&index, key.id(), &key, AGE);
        index.purge_prefix(b"/a/", mode).expect("there are few");
        let newest = start(&index, key.id(), &key, AGE);
        assert_eq!(by_tag.commit(&facts, || Some(file(1))), result);
        assert_eq!(by_prefix.commit(&facts, || Some(file(1))), result);
        let is_stored = matches!(look_up(&index, key.id(), &key), Lookup::Stored(_));
        assert_eq!(is_stored, mode == PurgeMode::Soft);
        if is_stored {
            assert!(stored(&index, key.id(), &key).is_stale);
        }
        assert_eq!(newest.commit(&facts, || Some(file(1))), Committed::Stored);
        assert!(!stored(&index, key.id(), &key).is_stale);
        index
            .purge_key(&key, PurgeMode::Hard)
            .expect("there are few");
    }
    // Purges of others do not matter.
    let token = start(&index, key.id(), &key, AGE);
    index
        .purge_prefix(b"/b", PurgeMode::Hard)
        .expect("there are few");
    let joined = index.begin_fill(key.id(), &key, AGE, NOW);
    assert!(matches!(joined, Begin::Joined(_)));
    assert_eq!(token.commit(&facts, || Some(file(1))), Committed::Stored);
}

#[test]
fn a_validated_entry_is_fresh_unless_it_was_purged() {
    let index = index(100);
    let key = key("/a");
    store(&index, key.id(), &key, b"");
    index
        .purge_key(&key, PurgeMode::Soft)
        .expect("there are few");
    assert!(stored(&index, key.id(), &key).is_stale);
    let update = start(&index, key.id(), &key, AGE);
    let facts = facts(&key, b"");
    assert_eq!(update.refresh(&VALIDATED, &facts, 1), Committed::Stored);
    assert!(!stored(&index, key.id(), &key).is_stale);
    for (mode, result) in [
        (PurgeMode::Soft, Committed::Stale),
        (PurgeMode::Hard, Committed::Purged),
    ] {
        let update = start(&index, key.id(), &key, AGE);
        let purged = index.purge_key(&key, mode).expect("there are few");
        assert_eq!(purged.entries, 1);
        assert_eq!(update.refresh(&VALIDATED, &facts, 1), result);
    }
    assert_eq!(index.stats().entries, 0);
}

#[test]
fn a_response_with_another_vary_is_stored_under_its_key() {
    let index = index(100);
    let key = key("/a");
    let mut token = start(&index, variant(1), &key, AGE);
    assert!(token.move_to_main() && token.id() == key.id());
    assert!(token.move_to_main(), "a second time changes nothing");
    assert_eq!(look_up(&index, variant(1), &key), Lookup::Absent);
    assert_eq!(index.stats().entries, 1);
    assert!(matches!(
        index.begin_fill(key.id(), &key, AGE, NOW),
        Begin::Joined(_)
    ));
    assert_eq!(
        token.commit(&facts(&key, b""), || Some(file(1))),
        Committed::Stored
    );
    assert!(matches!(look_up(&index, key.id(), &key), Lookup::Stored(_)));
    // A purge before the move concerns it, too.
    let mut token = start(&index, variant(1), &key, AGE);
    index
        .purge_key(&key, PurgeMode::Hard)
        .expect("there are few");
    assert!(token.move_to_main());
    assert_eq!(
        token.commit(&facts(&key, b""), || unreachable!()),
        Committed::Refused
    );
    assert_eq!(index.stats().entries, 0);
}

#[test]
fn a_full_index_stores_nothing_new() {
    let index = index(2);
    let (one, two, three) = (key("/1"), key("/2"), key("/3"));
    let first = start(&index, one.id(), &one, OFF);
    let mut second = start(&index, variant(2), &two, OFF);
    // Entries in use are not replaced.
    assert!(matches!(
        index.begin_fill(three.id(), &three, OFF, NOW),
        Begin::Full
    ));
    assert!(!second.move_to_main());
    assert_eq!(
        first.commit(&facts(&one, b""), || Some(file(1))),
        Committed::Stored
    );
    assert!(second.move_to_main(), "the oldest one is replaced");
    assert_eq!(index.take_doomed(9), [one.id()]);
}

#[test]
fn a_key_has_64_variants() {
    let index = index(1000);
    let key = key("/a");
    let times = |n: u8| u32::from(n) + NOW_S;
    let look_up = |n: u8, now_s| index.look_up(&variant(n), &key.id(), 1, now_s);
    store(&index, key.id(), &key, b"");
    for n in 0..VARIANTS_MAX as u8 {
        store(&index, variant(n), &key, b"");
        assert!(matches!(look_up(n, times(n)), Lookup::Stored(_)));
    }
    assert_eq!(
        index.stats().entries,
        65,
        "the first response is none of them"
    );
    // The variant used least recently makes room.
    look_up(0, times(200));
    let token = start(&index, variant(100), &key, OFF);
    assert_eq!(index.stats().entries, 65);
    assert_eq!(look_up(1, times(201)), Lookup::Absent);
    assert_eq!(index.take_doomed(9), [variant(1)]);
    assert_eq!(
        token.commit(&facts(&key, b""), || Some(file(1))),
        Committed::Stored
    );
    let purged = index
        .purge_key(&key, PurgeMode::Hard)
        .expect("there are few");
    assert_eq!((purged.entries, purged.ids.len()), (65, 65));
    assert_eq!((index.stats().entries, index.stats().blocks), (0, 0));
    let again = index
        .purge_key(&key, PurgeMode::Hard)
        .expect("there are few");
    assert_eq!(
        (again.entries, again.ids.len()),
        (0, 1),
        "all are forgotten"
    );
    // Variants that are received are not replaced.
    let begin = |n: u8| index.begin_fill(variant(n), &key, OFF, NOW);
    let all: Vec<Begin> = (0..VARIANTS_MAX as u8).map(begin).collect();
    assert!(all.iter().all(|begun| matches!(begun, Begin::Started(_))));
    assert!(matches!(begin(100), Begin::Full));
    assert_eq!(index.stats().entries, 64);
}

#[test]
fn a_file_is_named_by_one_fill_at_a_time() {
    let index = index(100);
    let key = key("/a");
    let facts = facts(&key, b"x");
    store(&index, key.id(), &key, b"x");
    let purges: [fn(&Index, &CacheKey); 2] = [
        |index, key| assert!(index.purge_key(key, PurgeMode::Hard).is_ok()),
        |index, _| assert!(index.purge_tag(b"x", PurgeMode::Hard).is_ok()),
    ];
    for purge in purges {
        let [first, second, third] = [(); 3].map(|()| start(&index, key.id(), &key, OFF));
        let failed = first.commit(&facts, || None);
        assert_eq!(failed, Committed::Failed);
        // A purge comes while the file is named; and a later fill, which would replace the file.
        let committed = second.commit(&facts, || {
            purge(&index, &key);
            let later = start(&index, key.id(), &key, OFF);
            assert_eq!(later.commit(&facts, || unreachable!()), Committed::Refused);
            Some(file(3))
        });
        assert_eq!(committed, Committed::Purged);
        assert_eq!(look_up(&index, key.id(), &key), Lookup::Absent);
        drop(third);
        assert_eq!((index.stats().entries, index.stats().blocks), (0, 0));
        store(&index, key.id(), &key, b"x");
        assert_eq!(index.stats().blocks, 1);
    }
}

#[test]
fn one_of_many_waiting_requests_follows_a_failed_one() {
    let index = index(100);
    let key = key("/a");
    let token = start(&index, key.id(), &key, AGE);
    let begin = || index.begin_fill(key.id(), &key, AGE, NOW);
    let waiting: Vec<Begin> = (0..10).map(|_| begin()).collect();
    assert!(
        waiting
            .iter()
            .all(|begun| matches!(begun, Begin::Joined(_)))
    );
    drop(token);
    let again: Vec<Begin> = (0..10).map(|_| begin()).collect();
    let started = |begun: &&Begin| matches!(begun, Begin::Started(_));
    assert_eq!(again.iter().filter(started).count(), 1);
    assert_eq!(index.stats().fills, 1);
    drop(again);
    assert_eq!(index.stats().fills, 0);
}
