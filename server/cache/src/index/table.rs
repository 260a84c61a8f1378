//! Entries of a shard: a hash table and the order of use.
//!
//! The table is a linear hash: it grows by one bucket with each entry, so no operation moves all entries under the lock.
//! Slots are in chunks that never move. Freed slots are used again; their memory is kept, since `keys_zone` bounds it.

use super::node::{Flags, NIL, Node};
use crate::key::EntryId;

/// Slots of a chunk.
const CHUNK: usize = 128;

/// Entries with a hash of their own choice, which the caller computes.
#[derive(Debug)]
pub(super) struct Table {
    chunks: Vec<Box<[Node]>>,
    /// The first slot of each bucket.
    heads: Vec<u32>,
    free: u32,
    newest: u32,
    oldest: u32,
    len: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            heads: vec![NIL],
            free: NIL,
            newest: NIL,
            oldest: NIL,
            len: 0,
        }
    }

    /// Number of slots, with and without entries.
    pub(super) fn slots(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    pub(super) fn node(&self, slot: u32) -> &Node {
        &self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    pub(super) fn node_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    /// Returns the slot of an entry.
    pub(super) fn find(&self, hash: u64, id: &EntryId) -> Option<u32> {
        let mut slot = self.heads[self.bucket(hash)];
        while slot != NIL {
            let node = self.node(slot);
            if node.id == *id {
                return Some(slot);
            }
            slot = node.chain;
        }
        None
    }

    /// Adds an entry, as the one used last; the id must be new. `hash_of` is that of any entry.
    pub(super) fn insert(&mut self, id: EntryId, hash_of: impl Fn(&EntryId) -> u64) -> u32 {
        if self.free == NIL {
            self.add_chunk();
        }
        let slot = self.free;
        self.free = self.node(slot).chain;
        let bucket = self.bucket(hash_of(&id));
        let chain = self.heads[bucket];
        let node = self.node_mut(slot);
        *node = Node::vacant(chain);
        node.id = id;
        node.flags = Flags::USED;
        self.heads[bucket] = slot;
        self.len += 1;
        self.link(slot);
        if self.len > self.heads.len() {
            self.split(hash_of);
        }
        slot
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, slot: u32, hash: u64) -> Node {
        self.unlink(slot);
        let bucket = self.bucket(hash);
        let next = self.node(slot).chain;
        if self.heads[bucket] == slot {
            self.heads[bucket] = next;
        } else {
            let mut before = self.heads[bucket];
            while self.node(before).chain != slot {
                before = self.node(before).chain;
            }
            self.node_mut(before).chain = next;
        }
        let vacant = Node::vacant(self.free);
        self.free = slot;
        self.len -= 1;
        std::mem::replace(self.node_mut(slot), vacant)
    }

    /// Makes an entry the one used last.
    pub(super) fn touch(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    /// Returns the slot of the entry used least recently.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NIL).then_some(self.oldest)
    }

    fn link(&mut self, slot: u32) {
        let older = self.newest;
        let node = self.node_mut(slot);
        (node.newer, node.older) = (NIL, older);
        match older {
            NIL => self.oldest = slot,
            older => self.node_mut(older).newer = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = (self.node(slot).newer, self.node(slot).older);
        match newer {
            NIL => self.newest = older,
            newer => self.node_mut(newer).older = older,
        }
        match older {
            NIL => self.oldest = newer,
            older => self.node_mut(older).newer = newer,
        }
    }

    /// Returns the bucket of a hash, a number below the next power of two. A bucket that does not exist yet is part of
    /// another one, which is returned.
    fn bucket(&self, hash: u64) -> usize {
        let buckets = self.heads.len();
        let mask = buckets.next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < buckets {
            bucket
        } else {
            bucket & (mask >> 1)
        }
    }

    /// Adds a bucket, with entries of the bucket at half its number.
    fn split(&mut self, hash_of: impl Fn(&EntryId) -> u64) {
        let added = self.heads.len();
        let source = added - (added + 1).next_power_of_two() / 2;
        let mut slot = std::mem::replace(&mut self.heads[source], NIL);
        self.heads.push(NIL);
        while slot != NIL {
            let (id, next) = (self.node(slot).id, self.node(slot).chain);
            let bucket = self.bucket(hash_of(&id));
            let first = std::mem::replace(&mut self.heads[bucket], slot);
            self.node_mut(slot).chain = first;
            slot = next;
        }
    }

    fn add_chunk(&mut self) {
        let first = self.slots();
        let last = first + CHUNK as u32 - 1;
        let chain = |slot| if slot == last { NIL } else { slot + 1 };
        let nodes = (first..=last).map(|slot| Node::vacant(chain(slot)));
        self.chunks.push(nodes.collect());
        self.free = first;
    }

    /// Returns the bytes of its memory.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Box<[Node]>>()
            + self.chunks.len() * CHUNK * size_of::<Node>()
            + self.heads.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use super::*;

    fn id(n: u32) -> EntryId {
        let mut id = EntryId::default();
        id.0[..4].copy_from_slice(&n.to_le_bytes());
        id
    }

    /// Hashes collide by fours.
    fn hash_of(id: &EntryId) -> u64 {
        u64::from(id.0[0] / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
    }

    fn order(table: &Table) -> Vec<EntryId> {
        let mut found = Vec::new();
        let mut slot = table.oldest;
        while slot != NIL {
            found.push(table.node(slot).id);
            slot = table.node(slot).newer;
        }
        found
    }

    #[test]
    fn a_table_is_a_map_with_an_order() {
        let mut rng = fastrand::Rng::with_seed(52);
        let mut table = Table::new();
        let mut order_of: VecDeque<EntryId> = VecDeque::new();
        let mut slots: HashMap<EntryId, u32> = HashMap::new();
        for step in 0..30_000 {
            let id = id(rng.u32(..300));
            let found = table.find(hash_of(&id), &id);
            assert_eq!(found, slots.get(&id).copied(), "step {step}");
            match found {
                None => {
                    slots.insert(id, table.insert(id, hash_of));
                    order_of.push_back(id);
                }
                Some(slot) if rng.bool() => {
                    table.touch(slot);
                    order_of.retain(|other| *other != id);
                    order_of.push_back(id);
                }
                Some(slot) => {
                    assert_eq!(table.remove(slot, hash_of(&id)).id, id);
                    slots.remove(&id);
                    order_of.retain(|other| *other != id);
                }
            }
            assert_eq!(table.len, slots.len());
            let oldest = table.oldest().map(|slot| table.node(slot).id);
            assert_eq!(oldest, order_of.front().copied());
            if step % 1000 == 0 {
                assert_eq!(order(&table), Vec::from(order_of.clone()));
            }
        }
        assert!(table.slots() <= 3 * 128, "freed slots are used again");
    }
}
