//! A map for keys that mostly arrive in order: lists of addresses are sorted files.

use std::collections::BTreeMap;

/// Entries by key: a list as long as keys arrive in order, then a tree.
pub(super) enum Ordered<K, V> {
    /// In the order of the keys.
    List(Vec<(K, V)>),
    Tree(BTreeMap<K, V>),
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<K: Ord, V> Ordered<K, V> {
    /// Sets the value of a key; returns the earlier one.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Self::List(list) = self
            && list.last().is_none_or(|(last, _)| *last < key)
        {
            list.push((key, value));
            return None;
        }
        self.tree().insert(key, value)
    }

    /// Removes a key; returns its value.
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.tree().remove(key)
    }

    /// The entries as a tree.
    pub(super) fn tree(&mut self) -> &mut BTreeMap<K, V> {
        if let Self::List(list) = self {
            *self = Self::Tree(std::mem::take(list).into_iter().collect());
        }
        match self {
            Self::Tree(tree) => tree,
            Self::List(_) => unreachable!("it has just been made a tree"),
        }
    }

    /// Hands each entry to `f`, in the order of the keys.
    pub(super) fn for_each(self, mut f: impl FnMut(K, V)) {
        match self {
            Self::List(list) => list.into_iter().for_each(|(key, value)| f(key, value)),
            Self::Tree(tree) => tree.into_iter().for_each(|(key, value)| f(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_a_tree_in_whatever_order_they_come() {
        let steps: [&[u32]; 4] = [&[1, 2, 3], &[1, 2, 2, 3], &[3, 1, 2], &[1, 3, 2, 4, 3]];
        for keys in steps {
            let (mut ordered, mut tree) = (Ordered::default(), BTreeMap::new());
            for (value, key) in keys.iter().enumerate() {
                assert_eq!(ordered.insert(*key, value), tree.insert(*key, value));
            }
            assert_eq!(ordered.remove(&2), tree.remove(&2));
            assert_eq!(ordered.remove(&9), None);
            assert_eq!(ordered.insert(2, 77), tree.insert(2, 77));
            let mut entries = Vec::new();
            ordered.for_each(|key, value| entries.push((key, value)));
            assert!(entries.into_iter().eq(tree), "{keys:?}");
        }
    }

    #[test]
    fn entries_in_order_are_a_list() {
        let mut ordered = Ordered::default();
        assert!((0..10).all(|n| ordered.insert(n, n).is_none()));
        assert!(matches!(ordered, Ordered::List(_)));
        ordered.insert(5, 0);
        assert!(matches!(ordered, Ordered::Tree(_)));
    }
}
