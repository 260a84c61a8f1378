//! The dynamic table: the latest fields, within a size. Source: RFC 7541 sections 2.3.2 and 4.

use std::collections::VecDeque;

use super::ENTRY_OVERHEAD_BYTES;

/// The entries, the latest first, each with its user's note, and the bytes they count.
#[derive(Clone, Debug)]
pub(super) struct Table<N> {
    entries: VecDeque<Entry<N>>,
    size_bytes: usize,
    max_bytes: usize,
    /// Entries ever added.
    added: u64,
}

/// Name and value in one piece of memory.
#[derive(Clone, Debug)]
pub(super) struct Entry<N> {
    text: Box<[u8]>,
    name_len: usize,
    pub(super) note: N,
}

impl<N> Entry<N> {
    #[inline]
    pub(super) fn name(&self) -> &[u8] {
        &self.text[..self.name_len]
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        &self.text[self.name_len..]
    }

    /// Name, value and note.
    #[inline]
    pub(super) fn parts(&mut self) -> (&[u8], &[u8], &mut N) {
        let (name, value) = self.text.split_at(self.name_len);
        (name, value, &mut self.note)
    }

    fn size_bytes(&self) -> usize {
        self.text.len() + ENTRY_OVERHEAD_BYTES
    }
}

impl<N> Table<N> {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            size_bytes: 0,
            max_bytes,
            added: 0,
        }
    }

    /// Size of the entries (RFC 7541 section 4.1), bytes: about their memory.
    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Changes the size and evicts entries that no longer fit.
    pub(super) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        self.evict(0);
    }

    /// Adds an entry; one larger than the table empties it (RFC 7541 section 4.4).
    pub(super) fn add(&mut self, name: &[u8], value: &[u8], note: N) {
        let needed = name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        // The name may refer to an entry about to be evicted: it is copied first.
        let text = (needed <= self.max_bytes).then(|| [name, value].concat().into_boxed_slice());
        self.evict(needed);
        let Some(text) = text else { return };
        self.size_bytes += needed;
        self.added += 1;
        self.entries.push_front(Entry {
            text,
            name_len: name.len(),
            note,
        });
    }

    /// The entry of an index; 0 is the latest.
    #[inline]
    pub(super) fn at(&self, index: usize) -> Option<&Entry<N>> {
        self.entries.get(index)
    }

    /// Returns an entry, mutable for its note.
    #[inline]
    pub(super) fn at_mut(&mut self, index: usize) -> Option<&mut Entry<N>> {
        self.entries.get_mut(index)
    }

    /// Number of entries ever added.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Panics if the table contradicts itself; for tests and fuzzing.
    pub(super) fn check_invariants(&self) {
        let sum: usize = self.entries.iter().map(Entry::size_bytes).sum();
        assert_eq!(sum, self.size_bytes, "entries are counted wrongly");
        assert!(sum <= self.max_bytes, "the table is larger than allowed");
    }

    fn evict(&mut self, room_bytes: usize) {
        while self.size_bytes + room_bytes > self.max_bytes {
            let Some(oldest) = self.entries.pop_back() else {
                return;
            };
            self.size_bytes -= oldest.size_bytes();
        }
    }
}
