//! A map from paths to values that knows the least recently used one.
//!
//! Values are stored in slots linked in the order of use. Lookup, insertion and removal of the oldest value need no
//! search. Slots are reused, so a full map allocates only for new paths.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;

/// Values by path, in order of use.
#[derive(Debug)]
pub(crate) struct Lru<V> {
    places: HashMap<Rc<[u8]>, usize, PathHash>,
    slots: Vec<Slot<V>>,
    free: Vec<usize>,
    newest: usize,
    oldest: usize,
}

#[derive(Debug)]
struct Slot<V> {
    path: Rc<[u8]>,
    value: Option<V>,
    newer: usize,
    older: usize,
}

impl<V> Lru<V> {
    pub(crate) fn new() -> Self {
        Self {
            places: HashMap::with_hasher(PathHash::new()),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the value of `path` and makes it the newest.
    pub(crate) fn get(&mut self, path: &[u8]) -> Option<&mut V> {
        let place = *self.places.get(path)?;
        if self.newest != place {
            self.unlink(place);
            self.link_newest(place);
        }
        self.slots[place].value.as_mut()
    }

    /// Inserts `value` as the newest, and replaces an existing value of `path`.
    pub(crate) fn insert(&mut self, path: &[u8], value: V) {
        if let Some(old) = self.get(path) {
            *old = value;
            return;
        }
        let path: Rc<[u8]> = path.into();
        let slot = Slot {
            path: Rc::clone(&path),
            value: Some(value),
            newer: NONE,
            older: NONE,
        };
        let place = if let Some(place) = self.free.pop() {
            self.slots[place] = slot;
            place
        } else {
            self.slots.push(slot);
            self.slots.len() - 1
        };
        self.places.insert(path, place);
        self.link_newest(place);
    }

    pub(crate) fn remove(&mut self, path: &[u8]) -> Option<V> {
        let place = self.places.remove(path)?;
        self.unlink(place);
        self.free.push(place);
        self.slots[place].value.take()
    }

    /// Returns the least recently used value.
    pub(crate) fn oldest(&self) -> Option<&V> {
        self.slots.get(self.oldest)?.value.as_ref()
    }

    pub(crate) fn remove_oldest(&mut self) -> Option<V> {
        let path = Rc::clone(&self.slots.get(self.oldest)?.path);
        self.remove(&path)
    }

    fn unlink(&mut self, place: usize) {
        let (newer, older) = (self.slots[place].newer, self.slots[place].older);
        match self.slots.get_mut(newer) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, place: usize) {
        let older = std::mem::replace(&mut self.newest, place);
        self.slots[place].newer = NONE;
        self.slots[place].older = older;
        match self.slots.get_mut(older) {
            Some(slot) => slot.newer = place,
            None => self.oldest = place,
        }
    }
}

/// Hashes paths a word at a time, from a random seed. Only paths of existing files are cached, so clients cannot choose
/// the keys freely. Targets, which clients choose, only lead to guesses (`prefetch`).
#[derive(Debug, Clone)]
pub(crate) struct PathHash(u64);

impl PathHash {
    pub(crate) fn new() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for PathHash {
    type Hasher = PathHasher;

    fn build_hasher(&self) -> PathHasher {
        PathHasher(self.0)
    }
}

pub(crate) struct PathHasher(u64);

impl PathHasher {
    /// Mixes a word in: folds the halves of a 128-bit product. Each bit of the word affects bits on both sides of it,
    /// so the next word does not cancel the difference.
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * FACTOR;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// An odd number with irregular bits: 2^64 divided by the golden ratio.
const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for PathHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// No slot has this number.
const NONE: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_goes_first() {
        let mut lru = Lru::new();
        for (path, value) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
            lru.insert(path, value);
        }
        assert_eq!(lru.get(b"a"), Some(&mut 1));
        lru.insert(b"b", 20);
        assert_eq!(lru.oldest(), Some(&3));
        assert_eq!(lru.remove_oldest(), Some(3));
        assert_eq!(lru.remove(b"a"), Some(1));
        assert_eq!(lru.remove(b"a"), None);
        lru.insert(b"d", 4);
        assert_eq!(
            (lru.remove_oldest(), lru.remove_oldest()),
            (Some(20), Some(4))
        );
        assert_eq!((lru.remove_oldest(), lru.len()), (None, 0));
        lru.insert(b"e", 5);
        assert_eq!(lru.oldest(), Some(&5));
    }

    /// The digits are at the end of one eight-byte word and at the start of the next.
    #[test]
    fn paths_that_differ_in_digits_have_different_hashes() {
        let hash = PathHash::new();
        for prefix in (0..8).map(|len| "/srv/www".to_owned() + &"x".repeat(len)) {
            let paths = (0..10_000).map(|n| format!("{prefix}/{n}"));
            let mut hashes: Vec<u64> = paths.map(|path| hash.hash_one(path.as_bytes())).collect();
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), 10_000, "{prefix}");
        }
    }
}
