//! A sorted map whose copies share what they have in common.
//!
//! The entries lie in chunks, and a copy has the same chunks: it takes a reference to each, and a change copies one. So to
//! keep an earlier state of twenty thousand files costs a hundred references, and two states are compared where they
//! differ. Absent: removal of one entry, and any sharing between maps that were not copied from each other.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;

/// Entries in the order of their keys, never none.
type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// A sorted map; see the module.
#[derive(Debug, Clone)]
pub(crate) struct SharedMap<K, V> {
    chunks: Vec<Chunk<K, V>>,
}

/// A change of an entry, or none.
pub(crate) enum Revision<V> {
    /// It stays as it is.
    Keep,
    /// It gets this value.
    Set(V),
    /// It goes.
    Remove,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<K, V> SharedMap<K, V> {
    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The entries in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter());
        all.map(|(key, value)| (key, value))
    }

    /// The entries that do not lie in a chunk of `other`, in the order of their keys. All that the maps have not in common
    /// is among them.
    pub(crate) fn unshared<'m>(&'m self, other: &Self) -> impl Iterator<Item = (&'m K, &'m V)> {
        let others: HashSet<_> = other.chunks.iter().map(Arc::as_ptr).collect();
        let own = self.chunks.iter();
        let own = own.filter(move |chunk| !others.contains(&Arc::as_ptr(chunk)));
        let all = own.flat_map(|chunk| chunk.iter());
        all.map(|(key, value)| (key, value))
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// The chunk that has this key, if any has: the last one that does not begin after it.
    fn chunk<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let before = |chunk: &Chunk<K, V>| chunk[0].0.borrow() <= key;
        self.chunks.partition_point(before).saturating_sub(1)
    }

    /// The entry of a key.
    pub(crate) fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let chunk = self.chunks.get(self.chunk(key))?;
        let at = chunk.binary_search_by(|(known, _)| known.borrow().cmp(key));
        let (key, value) = &chunk[at.ok()?];
        Some((key, value))
    }

    /// The value of a key.
    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// The value of a key, to be changed in this copy alone.
    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let index = self.chunk(key);
        let chunk = self.chunks.get_mut(index)?;
        let at = chunk.binary_search_by(|(known, _)| known.borrow().cmp(key));
        let at = at.ok()?;
        Some(&mut Arc::make_mut(chunk)[at].1)
    }

    /// Adds an entry, or replaces the value of one that is there; the key of that stays.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let index = self.chunk(&key);
        let Some(chunk) = self.chunks.get_mut(index) else {
            return self.chunks.push(Arc::new(vec![(key, value)]));
        };
        let chunk = Arc::make_mut(chunk);
        match chunk.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => chunk[at].1 = value,
            Err(at) => {
                chunk.insert(at, (key, value));
                if chunk.len() > ENTRIES_MAX {
                    let rest = chunk.split_off(chunk.len() / 2);
                    self.chunks.insert(index + 1, Arc::new(rest));
                }
            }
        }
    }

    /// A map of the same keys; each entry becomes what `revise` says. Chunks in which all stay are shared.
    pub(crate) fn revised(&self, mut revise: impl FnMut(&K, &V) -> Revision<V>) -> Self {
        let revised = self.chunks.iter().map(|chunk| {
            let mut changes = Vec::new();
            for (at, (key, value)) in chunk.iter().enumerate() {
                match revise(key, value) {
                    Revision::Keep => {}
                    Revision::Set(value) => changes.push((at, Some(value))),
                    Revision::Remove => changes.push((at, None)),
                }
            }
            if changes.is_empty() {
                return Arc::clone(chunk);
            }
            let mut own = Vec::clone(chunk);
            // From the end, so that what is removed moves none that is still to be changed.
            for (at, change) in changes.into_iter().rev() {
                match change {
                    Some(value) => own[at].1 = value,
                    None => drop(own.remove(at)),
                }
            }
            Arc::new(own)
        });
        Self {
            chunks: revised.filter(|chunk| !chunk.is_empty()).collect(),
        }
    }
}

/// Of several entries with one key the last counts.
impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut all: Vec<_> = entries.into_iter().collect();
        // The sort is stable: the last of equal ones comes first when they are turned round.
        all.reverse();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.dedup_by(|(later, _), (kept, _)| later == kept);
        let mut all = all.into_iter().peekable();
        let mut chunks = Vec::new();
        while all.peek().is_some() {
            chunks.push(Arc::new(all.by_ref().take(ENTRIES_MAX).collect()));
        }
        Self { chunks }
    }
}

/// Most entries of a chunk: a change copies as many, a copy of twenty thousand takes a hundred references.
const ENTRIES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn is_sound(map: &SharedMap<u32, u32>) -> bool {
        let sizes = map.chunks.iter().map(|chunk| chunk.len());
        let keys: Vec<_> = map.iter().map(|(key, _)| *key).collect();
        sizes.clone().all(|size| (1..=ENTRIES_MAX).contains(&size)) && keys.is_sorted()
    }

    #[test]
    fn it_holds_what_a_map_of_the_library_holds() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let entries = random.u32(0..2000);
            let known = (0..entries).map(|_| (random.u32(0..3000), random.u32(..)));
            let known: Vec<_> = known.collect();
            let mut map: SharedMap<u32, u32> = known.iter().copied().collect();
            let mut model: BTreeMap<u32, u32> = known.into_iter().collect();
            let (before, model_before) = (map.clone(), model.clone());
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
            }
            assert!(is_sound(&map) && is_sound(&before));
            assert!(map.iter().eq(model.iter()), "seed {seed}");
            assert!(before.iter().eq(model_before.iter()), "a copy is as it was");
            assert_eq!(map.is_empty(), model.is_empty());
        }
    }

    #[test]
    fn a_chunk_is_split_when_it_has_one_entry_too_many() {
        let mut map: SharedMap<u32, u32> = (0..ENTRIES_MAX as u32).map(|key| (key, 0)).collect();
        assert_eq!(map.chunks.len(), 1);
        map.insert(7, 1);
        assert_eq!(map.chunks.len(), 1, "no entry more");
        map.insert(ENTRIES_MAX as u32, 0);
        assert_eq!((map.chunks.len(), map.iter().count()), (2, ENTRIES_MAX + 1));
        assert!(is_sound(&map));
        let one_more: SharedMap<u32, u32> = map.iter().map(|(key, value)| (*key, *value)).collect();
        assert_eq!(one_more.chunks.len(), 2);
    }

    #[test]
    fn a_revised_map_shares_what_stayed() {
        let map: SharedMap<u32, u32> = (0..1000).map(|key| (key, 0)).collect();
        let revised = map.revised(|key, _| match key {
            3 => Revision::Set(1),
            4 | 512..=767 => Revision::Remove,
            _ => Revision::Keep,
        });
        assert!(is_sound(&revised));
        assert_eq!(revised.iter().count(), 1000 - 1 - 256);
        assert_eq!((revised.get(&3), revised.get(&4)), (Some(&1), None));
        assert_eq!(revised.get(&5), Some(&0));
        let keys = |own: &SharedMap<u32, u32>, other| -> Vec<u32> {
            own.unshared(other).map(|(key, _)| *key).collect()
        };
        let first = (0..256).filter(|key| *key != 4);
        assert_eq!(keys(&revised, &map), first.collect::<Vec<_>>());
        let gone = (0..256).chain(512..768);
        assert_eq!(keys(&map, &revised), gone.collect::<Vec<_>>());
        assert_eq!(keys(&map, &map.clone()), [0; 0]);
        let none = map.revised(|_, _| Revision::Remove);
        assert!(none.is_empty());
    }
}
