//! A table from names to indexes that is filled once and then only looked up: of a million names as of ten.
//!
//! All names lie in one buffer behind each other, so that a name costs its bytes and no allocation of its own; places in the
//! table are 4 bytes. Absent: removing, and resistance to chosen keys, since whoever writes the configuration chooses them.

use std::hash::Hasher;

use server_base::hash::Fnv;

/// Names with an index each.
#[derive(Debug, Default)]
pub(crate) struct NameMap {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The entries by their hashes, each as its number from 1; 0 is a free place. As many as a power of two says, of which a
    /// quarter at least are free.
    places: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    start: usize,
    len: u32,
    value: u32,
    hash: u32,
}

impl NameMap {
    /// Whether there is no name.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The index of a name.
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<usize> {
        // An empty table has no place to begin at.
        if self.entries.is_empty() {
            return None;
        }
        let hash = hash(name);
        let mut at = hash as usize;
        loop {
            // One place at least is free, so the search ends.
            let number = self.places[at & (self.places.len() - 1)];
            let entry = self.entries.get((number as usize).wrapping_sub(1))?;
            if entry.hash == hash && self.name(entry) == name {
                return Some(entry.value as usize);
            }
            at += 1;
        }
    }

    /// Adds a name; false if it is there already.
    ///
    /// # Panics
    /// The index or the number of names is not below 2^32, for which no configuration has room.
    pub(crate) fn insert(&mut self, name: &[u8], value: usize) -> bool {
        if self.get(name).is_some() {
            return false;
        }
        let short = |n: usize| u32::try_from(n).expect("texts have fewer than 2^32 bytes");
        self.entries.push(Entry {
            start: self.bytes.len(),
            len: short(name.len()),
            value: short(value),
            hash: hash(name),
        });
        self.bytes.extend_from_slice(name);
        let number = short(self.entries.len());
        if self.entries.len() > self.places.len() / 4 * 3 {
            self.grow();
        } else {
            place(&mut self.places, hash(name), number);
        }
        true
    }

    fn grow(&mut self) {
        let count = (self.places.len() * 2).max(PLACES_MIN);
        let mut places = vec![0; count];
        for (entry, number) in self.entries.iter().zip(1..) {
            place(&mut places, entry.hash, number);
        }
        self.places = places;
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.start..entry.start + entry.len as usize]
    }

    /// Gives back what was reserved for more names.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.entries.shrink_to_fit();
    }
}

/// Puts an entry's number at the first free place from that of its hash on.
fn place(places: &mut [u32], hash: u32, number: u32) {
    let mask = places.len() - 1;
    let mut at = hash as usize & mask;
    while places[at] != 0 {
        at = (at + 1) & mask;
    }
    places[at] = number;
}

fn hash(name: &[u8]) -> u32 {
    let mut fnv = Fnv::default();
    fnv.write(name);
    let hash = fnv.finish();
    // The upper half has what the last bytes did to the lower one.
    (hash ^ (hash >> 32)) as u32
}

const PLACES_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_index_and_no_other_has_one() {
        let mut map = NameMap::default();
        assert!(map.is_empty());
        assert_eq!(map.get(b"n1"), None);
        let name = |n: usize| format!("n{n}").into_bytes();
        for n in 0..10_000 {
            assert!(map.insert(&name(n), n * 2));
            assert!(!map.insert(&name(n / 2), 1), "{n}");
        }
        map.shrink();
        for n in 0..10_000 {
            assert_eq!(map.get(&name(n)), Some(n * 2));
            assert_eq!(map.get(&name(n + 10_000)), None);
        }
        assert!(!map.is_empty());
    }

    #[test]
    fn the_empty_name_is_one() {
        let mut map = NameMap::default();
        assert!(map.insert(b"", 7));
        assert_eq!(map.get(b""), Some(7));
        assert_eq!(map.get(b"a"), None);
    }

    #[test]
    fn names_of_one_hash_are_told_apart() {
        // Two names whose hashes are equal are found by trying; the birthday of 32 bits is near 80,000.
        let mut seen = std::collections::HashMap::new();
        let names = (0..1_000_000u32).map(|n| n.to_string().into_bytes());
        let pair = names.into_iter().find_map(|name| {
            let other = seen.insert(hash(&name), name.clone());
            other.map(|other| (name, other))
        });
        let (one, other) = pair.expect("a million names have two of one hash");
        let mut map = NameMap::default();
        assert!(map.insert(&one, 1) && map.insert(&other, 2));
        assert_eq!((map.get(&one), map.get(&other)), (Some(1), Some(2)));
    }
}
