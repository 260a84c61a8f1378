//! Counts of copies in progress: the limit of a URI, and log lines about copies that are not made.

use std::sync::Arc;

use server_base::zone;

use super::{LOG_MS, MOST, Mirror, NAME, ZONE_BYTES};

/// A mirror to a URI that no other test uses.
fn mirror(uri: &str) -> Mirror {
    let copies = zone::attach(NAME, uri.as_bytes(), ZONE_BYTES, b"");
    Mirror {
        uri: uri.as_bytes().into(),
        copies: copies.unwrap_or_else(|_| panic!("all have this key")),
    }
}

#[test]
fn as_many_copies_as_the_limit_are_in_progress() {
    let mirror = mirror("/limit");
    let mut begun: Vec<_> = (0..MOST)
        .map(|n| mirror.begin(MOST, 0).unwrap_or_else(|_| panic!("copy {n}")))
        .collect();
    assert!(mirror.begin(MOST, 0).is_err(), "one above the limit");
    assert!(
        mirror.begin(MOST + 1, 0).is_ok(),
        "another location has a higher limit"
    );
    begun.pop();
    let again = mirror.begin(MOST, 0);
    assert!(again.is_ok(), "one has ended");
    drop((begun, again));
    assert!(mirror.begin(1, 0).is_ok(), "all have ended");
}

#[test]
fn a_limit_of_zero_is_none() {
    let mirror = mirror("/endless");
    let begun: Vec<_> = (0..2 * MOST).map(|_| mirror.begin(0, 0)).collect();
    assert!(begun.iter().all(Result::is_ok));
}

#[test]
fn copies_are_counted_by_uri_also_under_the_next_configuration() {
    let (old, other, new) = (mirror("/reload"), mirror("/other"), mirror("/reload"));
    let copy = old.begin(1, 0);
    assert!(copy.is_ok() && other.begin(1, 0).is_ok());
    drop(old);
    assert!(new.begin(1, 0).is_err());
    drop(copy);
    assert!(new.begin(1, 0).is_ok());
}

#[test]
fn a_line_about_skipped_copies_is_due_once_a_second() {
    let mirror = mirror("/skipped");
    let _copy = mirror.begin(1, 0);
    let skipped = |now_ms| mirror.begin(1, now_ms).err().expect("it is full");
    assert_eq!(skipped(0), Some(1), "the first");
    assert_eq!(skipped(LOG_MS - 1), None);
    assert_eq!(skipped(LOG_MS), Some(2));
    assert_eq!(skipped(LOG_MS + 1), None);
    assert_eq!(skipped(3 * LOG_MS), Some(2));
    assert_eq!(
        Arc::strong_count(&mirror.copies),
        2,
        "the mirror and its copy"
    );
}
