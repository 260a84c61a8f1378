//! A map from names to indexes that is filled once and then only looked up, with ten names or a million.
//!
//! All names are in one buffer, each followed by its index. A name costs its bytes and no allocation of its own; a
//! lookup reads one slot of the table and one record. Absent: removal.

use crate::hash_table::HashTable;
use crate::string_pool::Records;

/// Names with an index each.
#[derive(Debug, Default)]
pub(crate) struct NameMap {
    table: HashTable,
    /// A name, then its index.
    records: Records,
    /// The lengths of names, a bit each; those of [`LENGTHS`] - 1 bytes and more have the last.
    lengths: u64,
    /// Bytes of the longest name.
    longest: usize,
}

impl NameMap {
    /// Whether there is no name.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lengths == 0
    }

    /// The index of a name.
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<usize> {
        // A host with many labels is looked up once for each label. A name of a length that no entry has is not
        // hashed: otherwise a long host would cost the square of its length.
        if self.lengths & length_bit(name.len()) == 0 || name.len() > self.longest {
            return None;
        }
        self.index(self.table.hash(name), name)
    }

    fn index(&self, hash: u64, name: &[u8]) -> Option<usize> {
        let is = |offset| self.records.text(offset).0 == name;
        let offset = self.table.find(hash, is)?;
        let (_, end) = self.records.text(offset);
        Some(self.records.number(end).0)
    }

    /// Adds a name; false if it is there already.
    pub(crate) fn insert(&mut self, name: &[u8], index: usize) -> bool {
        let hash = self.table.hash(name);
        if self.index(hash, name).is_some() {
            return false;
        }
        self.lengths |= length_bit(name.len());
        self.longest = self.longest.max(name.len());
        let offset = self.records.push(name);
        self.records.push_number(index);
        self.table.insert(hash, offset);
        true
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.records.shrink();
    }
}

fn length_bit(len: usize) -> u64 {
    1 << len.min(LENGTHS - 1)
}

const LENGTHS: usize = 64;

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
    fn names_of_all_lengths_are_found() {
        let mut map = NameMap::default();
        let name = |len: usize| vec![b'a'; len];
        for len in (1..300).step_by(2) {
            assert!(map.insert(&name(len), len));
        }
        for len in 0..400 {
            let expected = (len % 2 == 1 && len < 300).then_some(len);
            assert_eq!(map.get(&name(len)), expected, "{len}");
        }
    }
}
