//! A hash table of records in a buffer of the owner: maps a hash to the offsets of records with that hash.
//!
//! A slot has 8 bytes: a part of the hash, so that few wrong records are read, and an offset. A search begins at
//! the slot of the hash and visits neighbours in a row; at least a quarter of the slots is free. Hashes have random
//! keys, as those of the standard library: neither clients nor authors of names can choose names that share one
//! row. Absent: removal.
//!
//! Source: D. E. Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithm L.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Hashes and offsets.
#[derive(Debug, Default)]
pub(crate) struct HashTable {
    /// A power of two of slots: 0 is free; otherwise the high bits are the hash, the low bits an offset counted
    /// from 1.
    slots: Vec<u64>,
    used: usize,
    key: RandomState,
}

impl HashTable {
    /// The part of a name's hash that slots keep.
    #[inline]
    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        let mut hasher = self.key.build_hasher();
        hasher.write(name);
        hasher.finish() >> OFFSET_BITS
    }

    /// The offset of the record with this hash that `is` the one sought.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize;
        loop {
            // Some slot is free, so the search ends.
            let slot = self.slots[at & mask];
            if slot == FREE {
                return None;
            }
            if slot >> OFFSET_BITS == hash {
                let offset = (slot & OFFSET_MAX) as usize - 1;
                if is(offset) {
                    return Some(offset);
                }
            }
            at += 1;
        }
    }

    /// Adds a record that is not in the table.
    ///
    /// # Panics
    /// The offset is not below 2^36 - 1. No configuration reaches that, since records are in memory too.
    pub(crate) fn insert(&mut self, hash: u64, offset: usize) {
        let offset = offset as u64 + 1;
        assert!(offset <= OFFSET_MAX, "records have less than 64 GiB");
        if self.used >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        put(&mut self.slots, hash << OFFSET_BITS | offset);
        self.used += 1;
    }

    /// Doubles the slots. Both tables are visited from front to end, which is fast even if they exceed the cache.
    fn grow(&mut self) {
        let mut slots = vec![FREE; (self.slots.len() * 2).max(SLOTS_MIN)];
        let used = self.slots.iter().filter(|slot| **slot != FREE);
        used.for_each(|slot| put(&mut slots, *slot));
        self.slots = slots;
    }
}

/// Puts a slot at the first free place from that of its hash on.
fn put(slots: &mut [u64], slot: u64) {
    let mask = slots.len() - 1;
    let mut at = (slot >> OFFSET_BITS) as usize & mask;
    while slots[at] != FREE {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
}

const FREE: u64 = 0;
const SLOTS_MIN: usize = 4;
const OFFSET_BITS: u32 = 36;
const OFFSET_MAX: u64 = (1 << OFFSET_BITS) - 1;

#[cfg(test)]
mod tests {
    use server_base::hash::Fnv;

    use super::*;

    /// Maximum number of slots that a search for any of the names reads.
    fn longest_search(names: impl Iterator<Item = Vec<u8>>) -> usize {
        let mut table = HashTable::default();
        let names: Vec<_> = names.collect();
        for (name, offset) in names.iter().zip(0..) {
            table.insert(table.hash(name), offset);
        }
        let mask = table.slots.len() - 1;
        let searches = names.iter().zip(0_u64..).map(|(name, offset)| {
            let home = table.hash(name) as usize;
            let is = |n: &usize| table.slots[(home + n) & mask] & OFFSET_MAX == offset + 1;
            (0..=mask).find(is).expect("it was added") + 1
        });
        searches.max().unwrap_or(0)
    }

    #[test]
    fn names_chosen_for_a_hash_without_a_key_lie_in_no_row() {
        let first_of_1024 = |name: &Vec<u8>| {
            let mut fnv = Fnv::default();
            fnv.write(name);
            fnv.finish() >> OFFSET_BITS & 1023 == 0
        };
        let chosen = (0_u64..).map(|n| format!("{n:x}.example").into_bytes());
        let longest = longest_search(chosen.filter(first_of_1024).take(700));
        // A row of this length is met by chance in one of a hundred million tables.
        assert!(longest < 400, "{longest} slots");
    }

    #[test]
    fn searches_among_many_names_are_short() {
        // One more would double the slots: tables do not become fuller.
        let names = (0..3 << 16).map(|n| format!("s{n}.example").into_bytes());
        let longest = longest_search(names);
        // As above.
        assert!(longest < 1000, "{longest} slots");
    }

    #[test]
    fn records_of_one_hash_are_told_apart() {
        let mut table = HashTable::default();
        assert_eq!(table.find(7, |_| true), None);
        for offset in 0..100 {
            table.insert(7, offset);
        }
        table.insert(8, 1000);
        for sought in [0, 50, 99] {
            assert_eq!(table.find(7, |offset| offset == sought), Some(sought));
        }
        assert_eq!(table.find(7, |offset| offset == 1000), None);
        assert_eq!(table.find(8, |_| true), Some(1000));
    }

    #[test]
    fn the_last_offset_is_kept() {
        let mut table = HashTable::default();
        let last = OFFSET_MAX as usize - 1;
        table.insert(1, last);
        assert_eq!(table.find(1, |_| true), Some(last));
    }

    #[test]
    #[should_panic(expected = "less than 64 GiB")]
    fn an_offset_past_the_last_is_refused() {
        HashTable::default().insert(1, OFFSET_MAX as usize);
    }
}
