//! Updates of stored responses that their servers have confirmed.

use super::examples_tests::*;
use super::*;

#[test]
fn a_response_that_was_replaced_is_not_refreshed() {
    let index = index(100);
    let key = key("/a");
    let facts = facts(&key, b"");
    store(&index, key.id(), &key, b"");
    let validated = stored(&index, key.id(), &key);
    let [update, other] = [(); 2].map(|()| start(&index, key.id(), &key, OFF));
    let newer = StoredFile {
        uniq: 78,
        ..file(1)
    };
    assert_eq!(other.commit(&facts, || Some(newer)), Committed::Stored);
    let refreshed = update.refresh(&validated, &facts, 1);
    assert_eq!(refreshed, Committed::Replaced);
    assert_eq!(stored(&index, key.id(), &key).uniq, 78);
    assert_eq!(index.stats().fills, 0);
}

type Purge = fn(&Index, PurgeMode) -> Result<u64, PurgeError>;

#[test]
fn a_response_that_was_purged_before_its_update_is_not_refreshed() {
    let index = index(100);
    let key = key("/a");
    let facts = facts(&key, b"x");
    let purges: [Purge; 2] = [
        |index, mode| index.purge_tag(b"x", mode),
        |index, mode| index.purge_prefix(b"/a", mode),
    ];
    for purge in purges {
        store(&index, key.id(), &key, b"x");
        let validated = stored(&index, key.id(), &key);
        // After the lookup, and before the request to the server.
        purge(&index, PurgeMode::Hard).expect("there are few");
        let update = start(&index, key.id(), &key, OFF);
        let refreshed = update.refresh(&validated, &facts, 1);
        assert_eq!(refreshed, Committed::Purged);
        assert_eq!((index.stats().entries, index.stats().blocks), (0, 0));
        // A soft purge requests exactly such an update.
        store(&index, key.id(), &key, b"x");
        purge(&index, PurgeMode::Soft).expect("there are few");
        let validated = stored(&index, key.id(), &key);
        let [first, second] = [(); 2].map(|()| start(&index, key.id(), &key, OFF));
        let refreshed = first.refresh(&validated, &facts, 1);
        assert_eq!(refreshed, Committed::Stored);
        // Another one comes while the server answers.
        purge(&index, PurgeMode::Soft).expect("there are few");
        let refreshed = second.refresh(&validated, &facts, 1);
        assert_eq!(refreshed, Committed::Stale);
        purge_hard(&index, &key);
    }
}
