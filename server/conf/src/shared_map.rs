//! A hash map in insertion order; copies share unchanged chunks of entries.
//!
//! Entries are stored in chunks. A copy references the same chunks, and a change copies one chunk. So an earlier state of
//! twenty thousand files costs a hundred references, and comparing two states skips shared chunks. Lookups in insertion order
//! find each entry next to the last one. Absent: removal of a single entry, and sharing between maps that are no copies.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Entries in the order in which they were added.
type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// A hash map; see the module.
#[derive(Debug, Clone)]
pub(crate) struct SharedMap<K, V> {
    /// The numbers of the entries by key, from 0.
    numbers: Arc<HashMap<K, usize>>,
    /// [`ENTRIES`] in each but the last one.
    chunks: Vec<Chunk<K, V>>,
}

/// A change of an entry, or none.
pub(crate) enum Revision<V> {
    /// It stays as it is.
    Keep,
    /// It gets this value.
    Set(V),
    /// Remove it.
    Remove,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self {
            numbers: Arc::default(),
            chunks: Vec::new(),
        }
    }
}

impl<K, V> SharedMap<K, V> {
    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The entries in the order in which their keys were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter());
        all.map(|(key, value)| (key, value))
    }

    /// The entries of the chunks that are not the same in `other`. All that the maps have not in common is among them.
    pub(crate) fn unshared<'m>(&'m self, other: &'m Self) -> impl Iterator<Item = (&'m K, &'m V)> {
        let others = other.chunks.iter().map(Some).chain(std::iter::repeat(None));
        let own = self.chunks.iter().zip(others);
        let own = own.filter(|(own, other)| !other.is_some_and(|other| Arc::ptr_eq(own, other)));
        let all = own.flat_map(|(chunk, _)| chunk.iter());
        all.map(|(key, value)| (key, value))
    }

    /// The entry of a number.
    fn entry(&self, number: usize) -> Option<&(K, V)> {
        self.chunks.get(number / ENTRIES)?.get(number % ENTRIES)
    }
}

impl<K: Hash + Eq, V> SharedMap<K, V> {
    /// The entry of a key.
    pub(crate) fn get_key_value<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (key, value) = self.entry(*self.numbers.get(key)?)?;
        Some((key, value))
    }

    /// The value of a key.
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The value of a key that is expected at the number `next`, which becomes that of the entry after it.
    pub(crate) fn get_next<Q: Hash + Eq + ?Sized>(&self, next: &mut usize, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let expected = self.entry(*next).filter(|(known, _)| known.borrow() == key);
        let (_, value) = match expected {
            Some(expected) => expected,
            None => {
                *next = *self.numbers.get(key)?;
                self.entry(*next)?
            }
        };
        *next += 1;
        Some(value)
    }
}

impl<K: Hash + Eq + Clone, V: Clone> SharedMap<K, V> {
    /// The value of a key, for a change of this copy only.
    pub(crate) fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let number = *self.numbers.get(key)?;
        let chunk = self.chunks.get_mut(number / ENTRIES)?;
        let (_, value) = Arc::make_mut(chunk).get_mut(number % ENTRIES)?;
        Some(value)
    }

    /// Adds an entry, or replaces the value of one that is there; the key of that stays.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if let Some(known) = self.get_mut(&key) {
            *known = value;
            return;
        }
        let number = self.numbers.len();
        Arc::make_mut(&mut self.numbers).insert(key.clone(), number);
        match self.chunks.get_mut(number / ENTRIES) {
            Some(chunk) => Arc::make_mut(chunk).push((key, value)),
            None => self.chunks.push(Arc::new(vec![(key, value)])),
        }
    }

    /// Returns a copy with each entry kept, replaced or removed as `revise` returns. If none is removed, unchanged chunks are
    /// shared.
    pub(crate) fn revise(&self, mut revise: impl FnMut(&K, &V) -> Revision<V>) -> Self {
        let mut revised = self.clone();
        let mut removed = Vec::new();
        for (number, (key, value)) in self.iter().enumerate() {
            match revise(key, value) {
                Revision::Keep => {}
                Revision::Set(value) => {
                    let chunk = Arc::make_mut(&mut revised.chunks[number / ENTRIES]);
                    chunk[number % ENTRIES].1 = value;
                }
                Revision::Remove => removed.push(number),
            }
        }
        if removed.is_empty() {
            return revised;
        }
        let mut removed = removed.into_iter().peekable();
        let all = revised.iter().enumerate();
        let left = all.filter(|(number, _)| removed.next_if_eq(number).is_none());
        left.map(|(_, (key, value))| (key.clone(), value.clone()))
            .collect()
    }
}

/// Of several entries with one key the last counts.
impl<K: Hash + Eq + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// Entries of a chunk: a change copies as many, a copy of twenty thousand takes a hundred references.
const ENTRIES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u32 = ENTRIES as u32;

    fn keys<'m>(entries: impl Iterator<Item = (&'m u32, &'m u32)>) -> Vec<u32> {
        entries.map(|(key, _)| *key).collect()
    }

    fn sorted<'m>(entries: impl Iterator<Item = (&'m u32, &'m u32)>) -> Vec<(u32, u32)> {
        let mut all: Vec<_> = entries.map(|(key, value)| (*key, *value)).collect();
        all.sort_unstable();
        all
    }

    fn is_sound(map: &SharedMap<u32, u32>) -> bool {
        let numbers = map.iter().enumerate();
        let mut numbers = numbers.map(|(number, (key, _))| map.numbers.get(key) == Some(&number));
        let full = map.chunks.iter().rev().skip(1);
        let last = map.chunks.last();
        numbers.all(|is_known| is_known)
            && map.numbers.len() == map.iter().count()
            && full.into_iter().all(|chunk| chunk.len() == ENTRIES)
            && last.is_none_or(|last| (1..=ENTRIES).contains(&last.len()))
    }

    #[test]
    fn it_holds_what_a_map_of_the_library_holds() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let entries = random.u32(0..2000);
            let known = (0..entries).map(|_| (random.u32(0..3000), random.u32(..)));
            let known: Vec<_> = known.collect();
            let mut map: SharedMap<u32, u32> = known.iter().copied().collect();
            let mut model: HashMap<u32, u32> = known.into_iter().collect();
            let (before, model_before) = (map.clone(), model.clone());
            let mut next = 0;
            for _ in 0..2000 {
                let (key, value) = (random.u32(0..3000), random.u32(..));
                if random.bool() {
                    map.insert(key, value);
                    model.insert(key, value);
                } else if let Some(known) = model.get_mut(&key) {
                    *known = value;
                    *map.get_mut(&key).expect("it is in both") = value;
                } else {
                    assert_eq!(map.get(&key).copied(), map.get_mut(&key).copied());
                    assert_eq!(map.get(&key), None);
                }
                assert_eq!(map.get_next(&mut next, &key), model.get(&key));
            }
            assert!(is_sound(&map) && is_sound(&before), "seed {seed}");
            assert_eq!(sorted(map.iter()), sorted(model.iter()), "seed {seed}");
            let (before, model_before) = (sorted(before.iter()), sorted(model_before.iter()));
            assert_eq!(before, model_before, "a copy is as it was");
            assert_eq!(map.is_empty(), model.is_empty());
        }
    }

    #[test]
    fn a_full_chunk_takes_no_entry_more() {
        let mut map: SharedMap<u32, u32> = (0..CHUNK - 1).map(|key| (key, 0)).collect();
        for (key, chunks) in [(7, 1), (CHUNK - 1, 1), (CHUNK, 2)] {
            let (before, was_known) = (map.clone(), map.get(&key).is_some());
            map.insert(key, 1);
            assert_eq!(map.chunks.len(), chunks, "{key}");
            assert!(is_sound(&map) && is_sound(&before));
            let then = was_known.then_some(&0);
            assert_eq!((map.get(&key), before.get(&key)), (Some(&1), then));
        }
    }

    #[test]
    fn entries_are_found_in_their_order_and_in_any_other() {
        let map: SharedMap<u32, u32> = (0..1000).map(|key| (key * 7 % 1000, key)).collect();
        let mut next = 0;
        for key in 0..1000 {
            assert_eq!(map.get_next(&mut next, &(key * 7 % 1000)), Some(&key));
            assert_eq!(next, key as usize + 1);
        }
        assert_eq!((map.get_next(&mut next, &1000), next), (None, 1000));
        assert_eq!((map.get_next(&mut next, &7), next), (Some(&1), 2));
        assert_eq!((map.get_next(&mut next, &7), next), (Some(&1), 2));
    }

    #[test]
    fn a_revised_map_shares_what_stayed() {
        let map: SharedMap<u32, u32> = (0..1000).map(|key| (key, 0)).collect();
        let set = |at| {
            move |key: &u32, _: &u32| match *key == at {
                true => Revision::Set(1),
                false => Revision::Keep,
            }
        };
        let revised = map.revise(set(CHUNK));
        assert!(is_sound(&revised));
        assert_eq!((revised.get(&CHUNK), map.get(&CHUNK)), (Some(&1), Some(&0)));
        let second: Vec<_> = (CHUNK..2 * CHUNK).collect();
        assert_eq!(keys(revised.unshared(&map)), second);
        assert_eq!(keys(map.unshared(&revised)), second);
        assert_eq!(map.unshared(&map.clone()).count(), 0);
        let fewer = revised.revise(|key, _| match key {
            3 => Revision::Set(2),
            4 | 999 => Revision::Remove,
            _ => Revision::Keep,
        });
        assert!(is_sound(&fewer));
        let left: Vec<_> = (0..999).filter(|key| *key != 4).collect();
        assert_eq!(keys(fewer.iter()), left);
        let values = [3, CHUNK, 4, 5].map(|key| fewer.get(&key).copied());
        assert_eq!(values, [Some(2), Some(1), None, Some(0)]);
        let none = map.revise(|_, _| Revision::Remove);
        assert!(none.is_empty() && is_sound(&none) && none.get(&3).is_none());
        let empty = SharedMap::default();
        assert_eq!(map.unshared(&empty).count(), 1000, "nothing is shared");
        assert_eq!((empty.unshared(&map).count(), empty.get(&3)), (0, None));
    }
}
