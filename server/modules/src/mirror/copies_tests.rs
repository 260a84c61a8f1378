//! Counts of copies in progress: the limits of a URI and of a thread, and log lines about copies that are not made.

use std::sync::Arc;

use server_base::zone::ENTRY_BYTES;

use super::*;

/// A server.
const SERVER: u64 = 1;

fn begin(copies: &UriCopies, most: u64) -> Result<Option<CountedCopy>, Refused> {
    copies.begin(SERVER, most, 0)
}

#[test]
fn as_many_copies_as_the_limit_are_in_progress() {
    let uri = UriCopies::of(b"/limit");
    let mut begun: Vec<_> = (0..MOST)
        .map(|n| begin(&uri, MOST).unwrap_or_else(|_| panic!("copy {n}")))
        .collect();
    assert!(begin(&uri, MOST).is_err(), "one above the limit");
    assert!(
        begin(&uri, MOST + 1).is_ok(),
        "another location has a higher limit"
    );
    begun.pop();
    let again = begin(&uri, MOST);
    assert!(again.is_ok(), "one has ended");
    drop((begun, again));
    assert!(begin(&uri, 1).is_ok(), "all have ended");
}

#[test]
fn a_limit_of_zero_is_none_and_counts_nothing() {
    let uri = UriCopies::of(b"/endless");
    let begun: Vec<_> = (0..2 * THREAD_MAX).map(|_| begin(&uri, 0)).collect();
    assert!(begun.iter().all(Result::is_ok));
    assert!(begin(&uri, 1).is_ok());
}

#[test]
fn each_server_has_a_count_of_its_own_for_a_uri() {
    let (uri, other) = (UriCopies::of(b"/servers"), UriCopies::of(b"/other"));
    let copy = uri.begin(1, 1, 0);
    assert!(copy.is_ok());
    assert!(uri.begin(1, 1, 0).is_err());
    assert!(uri.begin(2, 1, 0).is_ok());
    assert!(other.begin(1, 1, 0).is_ok());
}

#[test]
fn counts_stay_under_the_next_configuration() {
    let (old, new) = (UriCopies::of(b"/reload"), UriCopies::of(b"/reload"));
    let copy = begin(&old, 1);
    assert!(copy.is_ok());
    drop(old);
    assert!(begin(&new, 1).is_err());
    drop(copy);
    assert!(begin(&new, 1).is_ok());
}

#[test]
fn copies_of_all_uris_together_have_a_limit_in_a_thread() {
    let uris: Vec<_> = (0..3)
        .map(|n| UriCopies::of(format!("/together/{n}").as_bytes()))
        .collect();
    let mut begun: Vec<_> = (0..THREAD_MAX)
        .map(|n| begin(&uris[n as usize % 2], MOST).unwrap_or_else(|_| panic!("copy {n}")))
        .collect();
    let refused = |due| Refused::OfThread(due, THREAD_MAX);
    assert_eq!(begin(&uris[2], MOST).err(), Some(refused(Some(1))));
    assert_eq!(begin(&uris[2], MOST).err(), Some(refused(None)));
    let on_purpose: Vec<_> = (0..=THREAD_MAX)
        .map(|_| begin(&uris[2], THREAD_MAX + 1))
        .collect();
    assert!(
        on_purpose.iter().all(Result::is_ok),
        "a higher limit is written"
    );
    assert!(begin(&uris[2], THREAD_MAX + 1).is_err());
    begun.pop();
    assert!(begin(&uris[1], MOST).is_ok(), "one has ended");
    drop(on_purpose);
    let other_thread = std::thread::spawn(|| begin(&UriCopies::of(b"/thread"), MOST).is_ok());
    assert!(other_thread.join().expect("no panic"));
}

#[test]
fn a_server_with_the_oldest_copy_loses_its_count_if_there_are_too_many() {
    let uri = UriCopies::of(b"/many");
    let room = ZONE_BYTES / (ENTRY_BYTES + 8);
    let first = uri.begin(0, 1, 0);
    for server in 1..room {
        assert!(uri.begin(server, 1, 0).is_ok());
    }
    assert!(uri.begin(0, 1, 0).is_err(), "it is counted still");
    for server in room..2 * room {
        assert!(uri.begin(server, 1, 0).is_ok());
    }
    let again = uri.begin(0, 1, 0);
    assert!(again.is_ok());
    drop((first, again));
    assert!(uri.begin(0, 1, 0).is_ok());
}

#[test]
fn a_line_about_refused_copies_is_due_once_a_second() {
    let uri = UriCopies::of(b"/refused");
    let _copy = begin(&uri, 1);
    let refused = |now_ms| uri.begin(SERVER, 1, now_ms).err().expect("it is full");
    for (now_ms, due) in [
        (0, Some(1)),
        (LOG_MS - 1, None),
        (LOG_MS, Some(2)),
        (LOG_MS + 1, None),
        (3 * LOG_MS, Some(2)),
    ] {
        assert_eq!(refused(now_ms), Refused::OfUri(due, 1), "{now_ms}");
    }
    assert_eq!(Arc::strong_count(&uri.0), 2, "the URI and its copy");
}
