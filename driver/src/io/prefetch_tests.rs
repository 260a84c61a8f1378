//! Tests of guessed slots, with entries without files.

use std::rc::Rc;

use engines::http::Span;
use server_base::files::{Meta, Opened};

use super::super::cached_files::Checked;
use super::*;

fn head(target: &str, host: &str) -> RequestHead {
    let mut head = RequestHead::default();
    head.arena.extend_from_slice(target.as_bytes());
    head.target = Span::new(0, target.len());
    head.push(b"Host", host.as_bytes());
    head
}

/// Adds an entry; the upper half of its hash is `number`.
fn add(entries: &mut S3Fifo<Entry>, number: u32) -> u32 {
    let entry = Entry {
        path: Box::default(),
        opened: Rc::new(Opened::new(None, Meta::default())),
        used_ms: 0,
        checked: Checked::at(0),
    };
    let place = entries.insert(u64::from(number) << 32, 1, entry);
    place.expect("there is room")
}

/// A prefetcher, and entries in the first slots.
struct Turns(Prefetcher, S3Fifo<Entry>);

impl Turns {
    fn new(count: u32) -> Self {
        let mut entries = S3Fifo::new(u64::from(count));
        for number in 0..count {
            assert_eq!(add(&mut entries, number), number);
        }
        Self(Prefetcher::new(u64::MAX), entries)
    }

    /// Runs a turn of requests, each with the slot of the file that is opened for it. Returns the guesses.
    fn turn(&mut self, requests: &[(&RequestHead, u32)]) -> Vec<u32> {
        let Self(prefetcher, entries) = self;
        requests
            .iter()
            .for_each(|(head, _)| prefetcher.expect(Some(head)));
        prefetcher.prefetch_requests(requests.len(), entries);
        let guess = |(_, place): &(&RequestHead, u32)| {
            let guess = prefetcher.begin(entries);
            prefetcher.record(*place);
            guess
        };
        let guesses = requests.iter().map(guess).collect();
        prefetcher.end();
        guesses
    }
}

#[test]
fn a_request_is_for_the_file_that_was_opened_for_it_last_time() {
    let mut turns = Turns::new(10);
    let (a, b) = (head("/a/index.html", "h"), head("/b/index.html", "h"));
    assert_eq!(turns.turn(&[(&a, 7), (&b, 0)]), [NO_PLACE; 2]);
    assert_eq!(turns.turn(&[(&b, 0), (&a, 7), (&a, 7)]), [0, 7, 7]);
    assert_eq!(turns.turn(&[(&a, 8)]), [7]);
    assert_eq!(turns.turn(&[(&a, 8), (&b, 1)]), [8, 0]);
    assert_eq!(turns.turn(&[(&b, 1)]), [1]);
}

#[test]
fn a_query_makes_no_difference_and_a_host_does() {
    let mut turns = Turns::new(10);
    turns.turn(&[(&head("/f", "a"), 3)]);
    let places = turns.turn(&[
        (&head("/f?x=1", "a"), 3),
        (&head("/f?", "a"), 3),
        (&head("/f", "b"), 4),
        (&head("/g", "a"), 5),
        (&head("/ff", "a"), 6),
        (&head("", ""), 7),
    ]);
    assert_eq!(places[..2], [3, 3]);
    assert_eq!(places[2..], [NO_PLACE; 4]);
}

#[test]
fn hashes_of_similar_targets_hardly_ever_collide() {
    let mut turns = Turns::new(10_000);
    for n in 0..10_000 {
        turns.turn(&[(&head(&format!("/{:03}/{n:05}.bin", n % 1000), "h"), n)]);
    }
    let found = (0..10_000).filter(|n| {
        turns.turn(&[(&head(&format!("/{:03}/{n:05}.bin", n % 1000), "h"), *n)]) == [*n]
    });
    let found = found.count();
    assert!(found > 9_900, "{found} of 10,000 in 1,048,576 sets");
}

#[test]
fn only_the_given_number_of_requests_is_prefetched() {
    let Turns(mut prefetcher, entries) = Turns::new(10);
    let heads: Vec<RequestHead> = (0..5).map(|n| head(&format!("/{n}"), "h")).collect();
    heads.iter().for_each(|head| prefetcher.expect(Some(head)));
    (0..5).for_each(|place| {
        prefetcher.begin(&entries);
        prefetcher.record(place);
    });
    prefetcher.end();
    assert_eq!(prefetcher.requests(), 0);
    heads.iter().for_each(|head| prefetcher.expect(Some(head)));
    assert_eq!(prefetcher.requests(), 5);
    prefetcher.prefetch_requests(2, &entries);
    let begun = [(); 3].map(|()| prefetcher.begin(&entries));
    assert_eq!(begun, [0, 1, NO_PLACE]);
    // The request that has begun is not prefetched any more; later ones are.
    prefetcher.prefetch_requests(100, &entries);
    let begun = [(); 3].map(|()| prefetcher.begin(&entries));
    assert_eq!(begun, [3, 4, NO_PLACE]);
    prefetcher.record(9);
    prefetcher.prefetch_requests(1, &entries);
}

#[test]
fn a_connection_without_a_request_has_its_place_in_the_order() {
    let mut turns = Turns::new(10);
    let a = head("/a", "h");
    turns.turn(&[(&a, 7)]);
    let Turns(mut prefetcher, entries) = turns;
    prefetcher.expect(None);
    prefetcher.expect(Some(&a));
    prefetcher.prefetch_requests(2, &entries);
    assert_eq!(prefetcher.begin(&entries), NO_PLACE);
    assert_eq!(prefetcher.begin(&entries), 7);
    // No request of the next turn has begun.
    prefetcher.end();
    prefetcher.record(8);
    prefetcher.expect(Some(&a));
    prefetcher.prefetch_requests(1, &entries);
    assert_eq!(prefetcher.begin(&entries), 7);
}

#[test]
fn another_file_at_the_place_of_one_that_was_evicted_is_a_wrong_guess() {
    let mut turns = Turns::new(2);
    let (a, b) = (head("/a", "h"), head("/b", "h"));
    turns.turn(&[(&a, 0), (&b, 1)]);
    turns.1.remove(0);
    assert_eq!(turns.turn(&[(&a, NO_PLACE), (&b, 1)]), [0, 1], "empty");
    assert_eq!(add(&mut turns.1, 7), 0, "its place is taken");
    assert_eq!(turns.turn(&[(&a, 1), (&b, 1)]), [0, 1]);
    assert_eq!(turns.turn(&[(&a, 1), (&b, 1)]), [1, 1]);
}

#[test]
fn a_set_knows_the_targets_noted_last() {
    let mut turns = Turns::new(10);
    turns.0.sets = vec![[Slot::default(); WAYS]].into();
    // Some targets may share one of the 1,024 tags.
    let tag = |head: &RequestHead| turns.0.hash(head) >> (32 + PLACE_BITS);
    let mut heads: Vec<RequestHead> = (0..10).map(|n| head(&format!("/{n}"), "h")).collect();
    heads.sort_by_key(tag);
    heads.dedup_by_key(|head| tag(head));
    let [a, b, c, ..] = &heads[..] else {
        panic!("{} tags of 10 targets", heads.len());
    };
    assert_eq!(turns.turn(&[(a, 1), (b, 2)]), [NO_PLACE; 2]);
    assert_eq!(turns.turn(&[(a, 1), (b, 2)]), [1, 2]);
    // A right guess changes nothing, so `a` is still older.
    assert_eq!(turns.turn(&[(c, 3)]), [NO_PLACE]);
    assert_eq!(turns.turn(&[(a, NO_PLACE)]), [NO_PLACE]);
    assert_eq!(turns.turn(&[(b, 4), (c, 3)]), [2, 3]);
    assert_eq!(turns.turn(&[(b, 4), (c, 3)]), [4, 3]);
    assert_eq!(turns.0.sets[0].map(Slot::place), [4, 3]);
}

#[test]
fn places_of_more_bits_than_there_are_for_them_are_not_known() {
    let last = (1 << PLACE_BITS) - 2;
    for (place, is_known) in [
        (0, true),
        (last, true),
        (last + 1, false),
        (NO_PLACE, false),
    ] {
        let slot = Slot::new(1023, place);
        assert_eq!(slot.is_some(), is_known, "{place}");
        assert!(slot.is_none_or(|slot| slot.is_of(1023) && slot.place() == place));
    }
    assert_eq!(Slot::default().place(), NO_PLACE);
}

#[test]
fn the_table_grows_with_the_limit_within_bounds() {
    for (limit_bytes, sets) in [
        (0, 1 << 9),
        (1 << 19, 1 << 9),
        ((1 << 19) + BYTES_A_SET, 1 << 10),
        (64 << 20, 1 << 16),
        (1 << 30, 1 << 20),
        (u64::MAX, 1 << 20),
    ] {
        assert_eq!(Prefetcher::new(limit_bytes).sets.len(), sets);
    }
}
