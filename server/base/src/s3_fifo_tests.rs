//! Tests of S3-FIFO.

use super::*;

/// Numbers as values, with a hash that spreads them.
struct Numbers(S3Fifo<u64>);

fn hash(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Numbers {
    fn new(limit: u64) -> Self {
        Self(S3Fifo::new(limit))
    }

    fn has(&self, number: u64) -> bool {
        self.0
            .find(hash(number), |known| *known == number)
            .is_some()
    }

    /// Uses a number, or puts it in.
    fn request(&mut self, number: u64) -> bool {
        match self.0.find(hash(number), |known| *known == number) {
            Some(place) => self.0.use_at(place).is_some(),
            None => {
                let _ = self.0.insert(hash(number), 1, number);
                false
            }
        }
    }

    #[track_caller]
    fn check(&self) {
        let (mut values, mut weight) = (0, 0);
        for (queue, in_main) in [(&self.0.small, false), (&self.0.main, true)] {
            let (mut place, mut newer, mut own) = (queue.newest, NONE, 0);
            while let Some(slot) = self.0.slots.get(place as usize) {
                assert_eq!((slot.newer, slot.packed.in_main()), (newer, in_main));
                let value = slot.value.as_ref().expect("a linked slot has a value");
                assert!(self.has(*value), "{value} is found");
                (newer, place) = (place, slot.older);
                values += 1;
                own += slot.packed.weight();
            }
            assert_eq!((queue.oldest, queue.weight), (newer, own));
            weight += own;
        }
        assert_eq!((values, weight), (self.0.len(), self.0.weight()));
    }
}

#[test]
fn weights_are_kept_at_the_limit_one_below_and_one_above() {
    for (weight, kept) in [(99, 1), (100, 1), (101, 0)] {
        let mut cache = S3Fifo::new(100);
        assert_eq!(cache.insert(1, weight, "x").is_ok(), kept == 1, "{weight}");
        assert_eq!((cache.len(), cache.weight()), (kept, weight * kept as u64));
    }
    let mut numbers = Numbers::new(10);
    (0..10).for_each(|n| assert!(!numbers.request(n)));
    assert_eq!(numbers.0.weight(), 10);
    assert!((0..10).all(|n| numbers.has(n)));
    numbers.request(10);
    assert_eq!(
        (numbers.0.weight(), numbers.has(0), numbers.has(10)),
        (10, false, true)
    );
    numbers.check();
}

#[test]
fn a_scan_leaves_what_is_used_where_it_is() {
    let mut numbers = Numbers::new(1000);
    let hot = 0..800;
    for _ in 0..3 {
        hot.clone().for_each(|n| _ = numbers.request(n));
    }
    assert_eq!(numbers.0.main.weight, 800);
    (10_000..1_010_000).for_each(|n| assert!(!numbers.request(n)));
    hot.into_iter().for_each(|n| assert!(numbers.has(n)));
    assert_eq!(numbers.0.weight(), 1000);
    numbers.check();
}

#[test]
fn what_comes_back_soon_after_its_eviction_stays() {
    let mut numbers = Numbers::new(100);
    (0..150).for_each(|n| _ = numbers.request(n));
    assert!(!numbers.has(20));
    numbers.request(20);
    let place = numbers
        .0
        .find(hash(20), |n| *n == 20)
        .expect("it was put in");
    assert!(numbers.0.slots[place as usize].packed.in_main());
    (1000..1150).for_each(|n| _ = numbers.request(n));
    assert!(numbers.has(20), "a ghost returns to the main queue");
    // The ghost list drops a hash after as many evictions as there are values.
    assert!(!numbers.has(0));
    numbers.request(0);
    let place = numbers.0.find(hash(0), |n| *n == 0).expect("it was put in");
    assert!(!numbers.0.slots[place as usize].packed.in_main());
}

#[test]
fn main_queue_evicts_what_is_not_used_any_more() {
    let mut numbers = Numbers::new(100);
    for _ in 0..3 {
        (0..90).for_each(|n| _ = numbers.request(n));
    }
    for round in 1..10 {
        for _ in 0..3 {
            (round * 1000..round * 1000 + 90).for_each(|n| _ = numbers.request(n));
        }
        numbers.check();
    }
    assert!(!(0..90).any(|n| numbers.has(n)), "the first ones have gone");
}

#[test]
fn an_eviction_looks_at_no_more_values_than_its_bound() {
    let mut numbers = Numbers::new(10_000);
    for _ in 0..4 {
        (0..10_000).for_each(|n| _ = numbers.request(n));
    }
    // All are used; one must go all the same, and few were moved for it.
    let used = |numbers: &Numbers| {
        numbers
            .0
            .slots
            .iter()
            .filter(|slot| slot.packed.uses() > 0)
            .count()
    };
    assert_eq!(used(&numbers), 10_000);
    numbers.request(10_000);
    assert_eq!((numbers.0.weight(), numbers.0.len()), (10_000, 10_000));
    assert_eq!(used(&numbers), 10_000 - LOOKS_MAX);
    assert!(!numbers.has(LOOKS_MAX as u64 - 1) && numbers.has(LOOKS_MAX as u64));
    numbers.check();
}

#[test]
fn a_smaller_limit_is_reached_value_by_value() {
    let mut numbers = Numbers::new(100);
    (0..100).for_each(|n| _ = numbers.request(n));
    numbers.0.set_limit(97);
    let evicted = std::iter::from_fn(|| numbers.0.shrink()).count();
    assert_eq!((evicted, numbers.0.len()), (3, 97));
    numbers.0.set_limit(0);
    while numbers.0.shrink().is_some() {}
    assert!(numbers.0.is_empty());
    assert!(!numbers.request(1) && !numbers.has(1), "0 keeps nothing");
    numbers.check();
}

#[test]
fn random_use_keeps_queues_and_chains_whole() {
    let mut numbers = Numbers::new(200);
    let (mut seed, mut hits) = (18_u64, 0);
    for step in 0..50_000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = (seed >> 33) % 400;
        // Half of all requests are for a tenth of the values.
        let number = if seed >> 63 == 0 { number % 40 } else { number };
        hits += u32::from(numbers.request(number));
        if number.is_multiple_of(7)
            && let Some(place) = numbers.0.find(hash(number), |known| *known == number)
        {
            assert_eq!(numbers.0.remove(place), Some(number));
        }
        if step % 500 == 0 {
            numbers.check();
        }
    }
    assert!(hits > 25_000, "{hits}");
}

#[test]
fn weight_uses_and_queue_share_a_word() {
    // A value of 40 bytes of which some tell that there is none, as a box does.
    assert_eq!(size_of::<Slot<(Box<u8>, [u64; 4])>>(), 64);
    for (weight, in_main) in [
        (0, false),
        (1, true),
        (WEIGHT_MAX, false),
        (WEIGHT_MAX, true),
    ] {
        let mut packed = Packed::new(weight, in_main);
        for uses in [0, 1, USES_MAX, 0] {
            packed.set_uses(uses);
            let found = (packed.weight(), packed.uses(), packed.in_main());
            assert_eq!(found, (u64::from(weight), uses, in_main));
        }
    }
}

#[test]
fn the_heaviest_value_is_kept_and_one_that_is_heavier_by_one_is_not() {
    let mut cache = S3Fifo::new(u64::MAX / 2);
    assert_eq!(cache.insert(1, u64::from(WEIGHT_MAX) + 1, 1), Err(1));
    assert_eq!(cache.insert(1, u64::from(WEIGHT_MAX), 1), Ok(0));
    assert_eq!(cache.weight(), u64::from(WEIGHT_MAX));
}

#[test]
fn a_place_nearby_is_taken_for_a_value_of_its_hash_alone() {
    let mut numbers = Numbers::new(10);
    let places = [1_u64, 2].map(|n| {
        let place = numbers.0.insert(hash(n), 1, n);
        place.expect("there is room")
    });
    let cache = &mut numbers.0;
    for near in [places[0], places[1], 2, NONE] {
        assert_eq!(cache.find_near(hash(1), near), Some(places[0]));
        assert_eq!(cache.find_near(hash(3), near), None);
    }
    assert_eq!(cache.at(places[0]), Some(&1));
    cache.remove(places[0]);
    assert_eq!(cache.find_near(hash(1), places[0]), None, "it is empty");
    assert_eq!((cache.at(places[0]), cache.at(2)), (None, None));
    assert!(cache.slot(places[0]).is_some() && cache.slot(2).is_none());
    assert_eq!(cache.first(hash(2)), Some(&places[1]));
    assert_eq!(Numbers::new(10).0.first(hash(2)), None, "no chains");
}

#[test]
fn a_value_is_admitted_where_there_is_room_or_when_it_comes_again() {
    let mut cache = Numbers::new(10);
    for number in 0..10 {
        assert!(cache.0.admits(hash(number), 1), "there is room");
        cache.request(number);
    }
    assert!(!cache.0.admits(hash(100), 1), "it is full");
    assert!(!cache.0.admits(hash(101), 1));
    assert!(
        !cache.0.admits(hash(102), 11),
        "it is heavier than the limit"
    );
    assert!(cache.0.admits(hash(100), 1), "it came before");
    assert!(cache.0.admits(hash(100), 1), "it was not inserted");
    cache.request(100);
    cache.check();
    let place = cache.0.find(hash(100), |_| true).expect("it is in");
    assert!(cache.0.slots[place as usize].packed.in_main());
    cache.0.remove(place);
    assert!(cache.0.admits(hash(102), 1), "there is room again");
    // Of the last ten that were turned away each is known, and none before them.
    let mut cache = Numbers::new(10);
    assert!((0..10).all(|number| !cache.request(number)));
    assert!((200..211).all(|number| !cache.0.admits(hash(number), 1)));
    let known = (200..211).filter(|number| cache.0.ghosts.contains(hash(*number)));
    // Two may share a place of the table.
    assert!(known.clone().all(|number| number > 200) && known.count() >= 5);
}

/// A cache full of unused heavy values admits light values that are requested in turn, even if they exceed the ghost list.
#[test]
fn values_of_which_more_come_than_are_remembered_are_taken_up() {
    let mut cache = S3Fifo::new(64_000);
    for number in 0..4_000_u64 {
        assert!(cache.admits(hash(number), 16));
        for _ in 0..2 {
            match cache.find(hash(number), |_| true) {
                Some(place) => assert!(cache.use_at(place).is_some()),
                None => assert!(cache.insert(hash(number), 16, number).is_ok()),
            }
        }
    }
    let light = 10_000..15_000;
    for _ in 0..200 {
        for number in light.clone() {
            match cache.find(hash(number), |_| true) {
                Some(place) => assert!(cache.use_at(place).is_some()),
                None if cache.admits(hash(number), 1) => {
                    assert!(cache.insert(hash(number), 1, number).is_ok());
                }
                None => {}
            }
        }
    }
    let known = light.filter(|number| cache.find(hash(*number), |_| true).is_some());
    assert!(known.count() > 4_500);
}
