//! Purges in effect: epochs, walks, limits.

use super::*;

fn facts(key: &'static [u8], tags: &'static [u8]) -> PurgeFacts<'static> {
    let main = EntryId([key.len() as u8; 16]);
    PurgeFacts { main, key, tags }
}

#[test]
fn purges_concern_earlier_responses_alone() {
    let purges = Purges::default();
    let (one, other) = (facts(b"/a/1", b"x\ty"), facts(b"/b", b"z"));
    assert_eq!(purges.check(0, &one), None);
    for (n, target) in [
        Target::Key(one.main),
        Target::Tag(b"y"),
        Target::Prefix(b"/a/"),
        Target::Prefix(b"/a/1"),
    ]
    .into_iter()
    .enumerate()
    {
        let epoch = purges.add(target, PurgeMode::Hard);
        assert_eq!(epoch, Ok(n as u64 + 1));
        assert_eq!(purges.check(n as u64, &one), Some(PurgeMode::Hard));
        assert_eq!(purges.check(n as u64 + 1, &one), None);
        assert_eq!(purges.check(n as u64, &other), None);
    }
    purges.forget(3);
    assert_eq!(purges.check(3, &one), Some(PurgeMode::Hard));
    assert!(!purges.is_empty());
    assert!(purges.has_ended(3) && !purges.has_ended(4));
    purges.forget(4);
    assert!(purges.is_empty());
    assert_eq!(purges.check(0, &one), None);
    let all = purges.add(Target::Prefix(b""), PurgeMode::Soft);
    assert_eq!(all, Ok(5), "epochs are never used again");
    assert_eq!(purges.check(4, &other), Some(PurgeMode::Soft));
}

#[test]
fn a_hard_purge_is_stronger_than_a_later_soft_one() {
    let purges = Purges::default();
    let (one, target) = (facts(b"/a", b""), Target::Prefix(b"/"));
    let modes = [PurgeMode::Hard, PurgeMode::Soft];
    for (epoch, mode) in modes.into_iter().enumerate() {
        assert_eq!(purges.add(target, mode), Ok(epoch as u64 + 1));
    }
    assert_eq!(purges.check(0, &one), Some(PurgeMode::Hard));
    assert_eq!(purges.check(1, &one), Some(PurgeMode::Soft));
    assert_eq!(purges.check(2, &one), None);
}

#[test]
fn a_walk_ends_no_purge_that_a_fill_could_pass() {
    let purges = Purges::default();
    let soft = PurgeMode::Soft;
    let first = purges.begin_fill(0);
    assert_eq!((first, purges.walk_target(0)), (0, 0));
    assert_eq!(purges.add(Target::Tag(b"a"), soft), Ok(1));
    let second = purges.begin_fill(0);
    assert_eq!((second, purges.walk_target(0)), (1, 0));
    assert!(purges.has_newer_tag(0) && !purges.has_newer_tag(1));
    purges.end_fill(first, 0);
    assert_eq!(purges.walk_target(0), 1);
    assert_eq!(purges.take_epoch(), 2);
    assert_eq!(purges.walk_target(0), 1);
    assert!(!purges.has_newer_tag(1), "it was a key");
    purges.end_fill(second, 0);
    assert_eq!(purges.walk_target(0), 2);
}

#[test]
fn purges_in_effect_are_limited() {
    let purges = Purges::default();
    let hard = PurgeMode::Hard;
    let text = |n: usize| n.to_string().into_bytes();
    for n in 0..PURGED_PREFIXES_MAX {
        assert!(purges.add(Target::Prefix(&text(n)), hard).is_ok());
    }
    assert_eq!(
        purges.add(Target::Prefix(b"x"), hard),
        Err(PurgeError::TooMany)
    );
    assert!(
        purges.add(Target::Prefix(b"0"), hard).is_ok(),
        "it is known"
    );
    for n in 0..PURGED_TAGS_MAX {
        assert!(purges.add(Target::Tag(&text(n)), hard).is_ok());
    }
    assert_eq!(
        purges.add(Target::Tag(b"x"), hard),
        Err(PurgeError::TooMany)
    );
    assert!(purges.add(Target::Tag(b"0"), hard).is_ok());
    let key = |n: usize| Target::Key(EntryId((n as u128).to_le_bytes()));
    for n in 0..PURGED_KEYS_MAX {
        assert!(purges.add(key(n), hard).is_ok());
    }
    assert_eq!(
        purges.add(key(PURGED_KEYS_MAX), hard),
        Err(PurgeError::TooMany)
    );
    assert!(purges.add(key(0), hard).is_ok());
    purges.forget(purges.latest());
    assert!(purges.add(Target::Prefix(b"x"), hard).is_ok());
}

#[test]
fn a_fill_that_is_too_old_holds_up_no_purge() {
    let purges = Purges::default();
    let old = purges.begin_fill(1000);
    assert_eq!(purges.add(Target::Tag(b"a"), PurgeMode::Hard), Ok(1));
    let newer = purges.begin_fill(2000);
    for (age_ms, target) in [(FILL_AGE_MAX_MS - 1, 0), (FILL_AGE_MAX_MS, 1)] {
        assert_eq!(purges.walk_target(1000 + age_ms), target);
        assert_eq!(purges.is_too_old(old), target == 1);
    }
    assert!(!purges.is_too_old(newer));
    assert_eq!(purges.fills_in_progress(), 2);
}

#[test]
fn fills_give_way_to_lists_that_are_nearly_full() {
    let purges = Purges::default();
    let add = |n: usize| purges.add(Target::Prefix(n.to_string().as_bytes()), PurgeMode::Hard);
    let fill = purges.begin_fill(0);
    let crowded = PURGED_PREFIXES_MAX - PURGED_PREFIXES_MAX / 4;
    for n in 1..crowded {
        assert!(add(n).is_ok());
    }
    assert_eq!(purges.walk_target(0), fill);
    assert!(!purges.is_too_old(fill));
    assert!(add(crowded).is_ok());
    assert!(purges.is_too_old(fill));
    assert_eq!(purges.walk_target(0), crowded as u64);
    // A later fill is refused once the list is full.
    let later = purges.begin_fill(0);
    for n in crowded..PURGED_PREFIXES_MAX {
        assert!(add(n + 1).is_ok());
    }
    assert!(!purges.is_too_old(later));
    assert_eq!(add(0), Err(PurgeError::TooMany));
    assert!(purges.is_too_old(later));
    purges.forget(purges.walk_target(0));
    assert!(add(0).is_ok());
}

#[test]
fn targets_longer_than_those_of_an_entry_are_refused() {
    let purges = Purges::default();
    let text = vec![b'a'; KEY_BYTES_MAX + 1];
    let hard = PurgeMode::Hard;
    for (len, is_added) in [(-1, true), (0, true), (1, false)] {
        let tag = &text[..TAGS_BYTES_MAX.saturating_add_signed(len)];
        let prefix = &text[..KEY_BYTES_MAX.saturating_add_signed(len)];
        for target in [Target::Tag(tag), Target::Prefix(prefix)] {
            let added = purges.add(target, hard).map(|_| ());
            let expected = is_added.then_some(()).ok_or(PurgeError::TooLong);
            assert_eq!(added, expected, "{len}");
        }
    }
    assert_eq!(purges.len(), 4);
}

#[test]
fn hits_are_verified_while_purges_are_forgotten() {
    let purges = Purges::default();
    assert_eq!(purges.add(Target::Prefix(b"/a"), PurgeMode::Hard), Ok(1));
    // The lists are locked by hits alone; these would wait for ever for a lock to write.
    purges.read_lists(|lists| {
        assert_eq!(lists.later(0).prefixes.len(), 1);
        assert_eq!(lists.later(1).prefixes.len(), 0);
        assert_eq!(purges.take_epoch(), 2);
    });
    purges.forget(1);
    assert!(purges.is_empty());
}

#[test]
fn all_prefixes_of_a_key_are_found() {
    let mut rng = fastrand::Rng::with_seed(16);
    let mut text = |max: usize| -> Vec<u8> {
        let len = rng.usize(..=max);
        (0..len).map(|_| rng.u8(b'a'..=b'b')).collect()
    };
    for _ in 0..200 {
        let purges = Purges::default();
        let all: Vec<Vec<u8>> = (0..20).map(|_| text(5)).collect();
        for prefix in &all {
            let added = purges.add(Target::Prefix(prefix), PurgeMode::Hard);
            added.expect("there are few");
        }
        for _ in 0..20 {
            let key = text(7);
            let facts = PurgeFacts {
                main: EntryId::default(),
                key: &key,
                tags: b"",
            };
            let latest = all.iter().rposition(|prefix| key.starts_with(prefix));
            let expected = latest.map_or(0, |at| at as u64 + 1);
            let found = purges.read_lists(|lists| lists.of(&facts).hard);
            assert_eq!(found, expected, "{key:?} {all:?}");
        }
    }
}
