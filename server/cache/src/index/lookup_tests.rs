//! Lookups: files, errors, counted requests, cold indexes.

use super::examples_tests::*;
use super::*;

#[test]
fn an_entry_is_found_as_it_was_stored() {
    let index = index(100);
    let key = key("/a");
    assert_eq!(look_up(&index, key.id(), &key), Lookup::Absent);
    assert_eq!(index.stats().entries, 0, "a lookup alone adds nothing");
    let token = start(&index, key.id(), &key, OFF);
    assert_eq!(look_up(&index, key.id(), &key), Lookup::Absent);
    assert_eq!(
        token.commit(&facts(&key, b""), || Some(file(3))),
        Committed::Stored
    );
    let expected = StoredEntry {
        body_start: 400,
        uniq: 77,
        epoch: 0,
        walked: 0,
        valid_s: i64::from(NOW_S) + 60,
        is_stale: false,
        is_updating: false,
        is_known: true,
        uses: 3,
    };
    assert_eq!(stored(&index, key.id(), &key), expected);
    let stats = index.stats();
    assert_eq!((stats.entries, stats.blocks, stats.is_cold), (1, 3, false));
    let update = start(&index, key.id(), &key, OFF);
    assert!(stored(&index, key.id(), &key).is_updating);
    drop(update);
    let after = stored(&index, key.id(), &key);
    assert_eq!((after.is_updating, after.uses), (false, 5));
}

#[test]
fn requests_are_counted_up_to_min_uses() {
    let index = index(100);
    let key = key("/a");
    let look_up = || index.look_up(&key.id(), &key.id(), 3, NOW_S);
    assert_eq!([look_up(), look_up()], [Lookup::Scarce, Lookup::Scarce]);
    assert_eq!(look_up(), Lookup::Absent);
    drop(start(&index, key.id(), &key, OFF));
    assert_eq!(
        look_up(),
        Lookup::Absent,
        "the count outlives a failed fill"
    );
    assert_eq!(index.stats().entries, 1);
}

#[test]
fn an_error_is_remembered_for_its_time() {
    let index = index(100);
    let key = key("/a");
    let end = i64::from(NOW_S) + 10;
    start(&index, key.id(), &key, OFF).commit_error(&key, 502, end);
    let at = |now_s| index.look_up(&key.id(), &key.id(), 1, now_s);
    let error = Lookup::Error {
        status: 502,
        epoch: 0,
    };
    assert_eq!(at(NOW_S), error);
    assert_eq!(at(NOW_S + 10), error);
    assert_eq!(at(NOW_S + 11), Lookup::Absent);
    assert_eq!(at(NOW_S), Lookup::Absent, "it was forgotten");
    store(&index, key.id(), &key, b"");
    start(&index, key.id(), &key, OFF).commit_error(&key, 502, end);
    assert!(matches!(at(NOW_S), Lookup::Stored(_)), "the file is better");
}

#[test]
fn a_cold_index_sends_requests_to_the_disk() {
    let index = std::sync::Arc::new(Index::new(100));
    let (one, two) = (key("/a"), key("/b"));
    let unseen = |is_scarce| Lookup::Unseen { is_scarce };
    assert_eq!(look_up(&index, one.id(), &one), unseen(false));
    assert_eq!(index.look_up(&one.id(), &one.id(), 2, NOW_S), unseen(true));
    index.add_found(&one.id(), &one.id(), file(2), NOW_S);
    let found = stored(&index, one.id(), &one);
    assert_eq!(
        (found.epoch, found.body_start, found.is_known),
        (0, 400, true)
    );
    assert_eq!(index.load(&one.id(), 2, NOW_S), Loaded::Known);
    assert_eq!(index.load(&two.id(), 5, NOW_S), Loaded::Added);
    assert_eq!(index.stats().blocks, 7);
    let loaded = stored(&index, two.id(), &two);
    assert_eq!(
        (loaded.body_start, loaded.is_known, loaded.uses),
        (0, false, 2)
    );
    index.learn(&two.id(), &two.id());
    assert!(stored(&index, two.id(), &two).is_known);
    index.set_loaded();
    let other = key("/c");
    assert_eq!(look_up(&index, other.id(), &other), Lookup::Absent);
}

#[test]
fn a_missing_file_is_forgotten_unless_it_was_replaced() {
    let index = index(100);
    let key = key("/a");
    store(&index, key.id(), &key, b"");
    assert_eq!(index.purge_tag(b"x", PurgeMode::Hard), Ok(1));
    let seen = stored(&index, key.id(), &key);
    store(&index, key.id(), &key, b"");
    index.forget_file(&key.id(), &seen);
    let newer = stored(&index, key.id(), &key);
    assert_eq!((seen.epoch, newer.epoch), (0, 1));
    // Replaced without a purge.
    let other = StoredEntry { uniq: 78, ..newer };
    index.forget_file(&key.id(), &other);
    assert!(index.has_file(&key.id()));
    index.forget_file(&key.id(), &newer);
    assert_eq!(look_up(&index, key.id(), &key), Lookup::Absent);
    let stats = index.stats();
    assert_eq!((stats.entries, stats.blocks), (0, 0));
}

type Purge = fn(&Index) -> Result<u64, PurgeError>;

#[test]
fn a_purge_concerns_an_earlier_error() {
    let index = index(100);
    let key = key("/a/b");
    let end = i64::from(NOW_S) + 10;
    let fail = || start(&index, key.id(), &key, OFF);
    let is_failed = || match look_up(&index, key.id(), &key) {
        Lookup::Error { epoch, .. } => !index.is_error_purged(epoch, &key),
        _ => false,
    };
    let purges: [Purge; 2] = [
        |index| index.purge_prefix(b"/a", PurgeMode::Soft),
        // The tags of a response that was not received are not known.
        |index| index.purge_tag(b"x", PurgeMode::Hard),
    ];
    for purge in purges {
        fail().commit_error(&key, 502, end);
        assert!(is_failed());
        let later = fail();
        purge(&index).expect("there are few");
        assert!(!is_failed());
        later.commit_error(&key, 503, end);
        assert!(!is_failed(), "its request came before the purge");
        fail().commit_error(&key, 504, end);
        assert!(is_failed());
        // The walk has no head to read.
        let mut walk = index.begin_walk(NOW.mono_ms).expect("a purge is in effect");
        let mut entries = Vec::new();
        while index.walk_step(&mut walk, &mut entries) {}
        index.end_walk(walk);
        assert!(entries.is_empty() && is_failed());
        purge_hard(&index, &key);
    }
    fail().commit_error(&key, 502, end);
    let Lookup::Error { epoch: found, .. } = look_up(&index, key.id(), &key) else {
        panic!("it is stored");
    };
    index
        .purge_prefix(b"/", PurgeMode::Hard)
        .expect("there are few");
    let mut walk = index.begin_walk(NOW.mono_ms).expect("a purge is in effect");
    while index.walk_step(&mut walk, &mut Vec::new()) {}
    index.end_walk(walk);
    assert_eq!(index.stats().entries, 0, "the walk forgets the error");
    assert!(
        index.is_error_purged(found, &key),
        "it was looked up before"
    );
}

#[test]
fn a_file_is_loaded_for_an_entry_that_requests_have_added() {
    let index = std::sync::Arc::new(Index::new(100));
    let [counted, filled, purged] = ["/a", "/b", "/c"].map(key);
    let unseen = Lookup::Unseen { is_scarce: true };
    let count = index.look_up(&counted.id(), &counted.id(), 2, NOW_S);
    assert_eq!(count, unseen);
    let token = start(&index, filled.id(), &filled, OFF);
    let other = start(&index, purged.id(), &purged, OFF);
    purge_hard(&index, &purged);
    for (key, loaded) in [
        (&counted, Loaded::Added),
        (&filled, Loaded::Added),
        (&purged, Loaded::Known),
    ] {
        assert_eq!(index.load(&key.id(), 3, NOW_S), loaded);
        assert_eq!(index.has_file(&key.id()), loaded == Loaded::Added);
    }
    drop((token, other));
    let stats = index.stats();
    assert_eq!((stats.entries, stats.blocks), (2, 6));
    assert_eq!(stored(&index, filled.id(), &filled).epoch, 0);
}

#[test]
fn a_file_of_another_process_has_no_epoch() {
    let index = index(100);
    let key = key("/a");
    index
        .purge_prefix(b"/a", PurgeMode::Hard)
        .expect("there are few");
    store(&index, key.id(), &key, b"");
    let entry = stored(&index, key.id(), &key);
    let found = |uniq| index.check(entry.epoch_of(uniq), &facts(&key, b""));
    assert_eq!(found(77), None);
    assert_eq!(found(78), Some(PurgeMode::Hard));
    let loaded = StoredEntry { uniq: 0, ..entry };
    assert_eq!(loaded.epoch_of(78), entry.epoch, "it was not known");
}

#[test]
fn a_purged_error_leaves_no_entry() {
    let index = index(100);
    let key = key("/a");
    for mode in [PurgeMode::Soft, PurgeMode::Hard] {
        let end = i64::from(NOW_S) + 10;
        start(&index, key.id(), &key, OFF).commit_error(&key, 502, end);
        index.purge_key(&key, mode).expect("there are few");
        assert_eq!(index.stats().entries, 0);
    }
}
