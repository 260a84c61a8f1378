//! Small responses in memory, shared by all threads: copies of files.
//!
//! An entry belongs to one file, whose identity and times are compared before each use, once a second. Entries that were
//! used since their last turn stay; others leave first when the limit is reached.
//!
//! Absent: the choice of responses to copy. The caller makes it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::directory::FileState;
use crate::key::EntryId;
use crate::stored_head::StoredHead;

/// Maximum length of a body in memory, bytes.
pub const MEMORY_BODY_BYTES_MAX: u64 = 64 << 10;
/// Bytes of an entry besides the texts of its head and its body.
const ENTRY_BYTES: u64 = 1024;
/// Number of parts with a lock each.
const SHARDS: usize = 16;

/// A copy of a file.
#[derive(Debug)]
pub struct MemoryEntry {
    /// All before the body.
    pub head: Arc<StoredHead>,
    /// The body.
    pub body: Box<[u8]>,
    /// The file at the time of the copy.
    pub state: FileState,
    /// Epoch of the response ([`crate::index::StoredEntry::epoch`]). A later file may have the same inode number.
    pub epoch: u64,
    /// Time of the last comparison with the file, seconds since 1970.
    pub checked_s: AtomicU32,
}

impl MemoryEntry {
    fn bytes(&self) -> u64 {
        ENTRY_BYTES + (self.head.bytes() + self.body.len()) as u64
    }
}

/// Copies of small files.
#[derive(Debug)]
pub struct Memory {
    max_bytes: AtomicU64,
    used_bytes: AtomicU64,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    entries: HashMap<EntryId, (Arc<MemoryEntry>, AtomicBool)>,
    /// Ids in the order of their turns. Some have no entry, or a second turn.
    turns: VecDeque<EntryId>,
}

impl Shard {
    /// Drops turns without an entry and second turns, once they are as many as the entries.
    fn tidy_turns(&mut self) {
        if self.turns.len() <= 2 * self.entries.len() {
            return;
        }
        let mut seen = HashSet::new();
        self.turns
            .retain(|id| self.entries.contains_key(id) && seen.insert(*id));
    }
}

impl Default for Memory {
    /// Without room.
    fn default() -> Self {
        Self {
            max_bytes: AtomicU64::new(0),
            used_bytes: AtomicU64::new(0),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl Memory {
    /// Sets the limit in bytes; 0: nothing is kept.
    pub fn set_max_bytes(&self, bytes: u64) {
        self.max_bytes.store(bytes, Ordering::Relaxed);
        for shard in &self.shards {
            self.shrink(&mut lock(shard));
        }
    }

    /// Whether a body of this length may be kept.
    #[inline]
    #[must_use]
    pub fn takes(&self, body_len: u64) -> bool {
        body_len <= MEMORY_BODY_BYTES_MAX && self.max_bytes.load(Ordering::Relaxed) > body_len
    }

    /// Returns the bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Returns the copy of an entry.
    #[must_use]
    pub fn get(&self, id: &EntryId) -> Option<Arc<MemoryEntry>> {
        if self.max_bytes.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let shard = lock(self.shard(id));
        let (entry, is_used) = shard.entries.get(id)?;
        is_used.store(true, Ordering::Relaxed);
        Some(Arc::clone(entry))
    }

    /// Keeps a copy, in the place of an earlier one.
    pub fn insert(&self, id: EntryId, entry: Arc<MemoryEntry>) {
        let mut shard = lock(self.shard(&id));
        self.used_bytes.fetch_add(entry.bytes(), Ordering::Relaxed);
        match shard.entries.insert(id, (entry, AtomicBool::new(false))) {
            Some((old, _)) => self.release(&old),
            None => {
                shard.turns.push_back(id);
                shard.tidy_turns();
            }
        }
        self.shrink(&mut shard);
    }

    /// Drops a copy.
    pub fn remove(&self, id: &EntryId) {
        let removed = lock(self.shard(id)).entries.remove(id);
        if let Some((old, _)) = removed {
            self.release(&old);
        }
    }

    fn release(&self, old: &MemoryEntry) {
        self.used_bytes.fetch_sub(old.bytes(), Ordering::Relaxed);
    }

    /// Drops entries of a shard until the limit is kept, or the shard is empty.
    fn shrink(&self, shard: &mut Shard) {
        while self.used_bytes() > self.max_bytes.load(Ordering::Relaxed) {
            let Some(id) = shard.turns.pop_front() else {
                return;
            };
            let Some((_, is_used)) = shard.entries.get(&id) else {
                continue;
            };
            if is_used.swap(false, Ordering::Relaxed) {
                shard.turns.push_back(id);
            } else if let Some((old, _)) = shard.entries.remove(&id) {
                self.release(&old);
            }
        }
    }

    fn shard(&self, id: &EntryId) -> &Mutex<Shard> {
        &self.shards[usize::from(id.0[0]) % SHARDS]
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // No operation under the lock leaves a partial change.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(bytes: usize) -> Arc<MemoryEntry> {
        Arc::new(MemoryEntry {
            head: Arc::default(),
            body: vec![0; bytes].into(),
            state: FileState::default(),
            epoch: 0,
            checked_s: AtomicU32::new(0),
        })
    }

    /// Ids of one shard.
    fn id(number: u8) -> EntryId {
        let mut id = EntryId::default();
        id.0[1] = number;
        id
    }

    #[test]
    fn unused_entries_leave_first() {
        let memory = Memory::default();
        memory.insert(id(1), entry(100));
        assert!(memory.get(&id(1)).is_none() && memory.used_bytes() == 0);
        memory.set_max_bytes(3 * (ENTRY_BYTES + 100));
        for number in 1..=3 {
            memory.insert(id(number), entry(100));
        }
        assert!(memory.get(&id(1)).is_some());
        memory.insert(id(4), entry(100));
        assert!(memory.get(&id(1)).is_some() && memory.get(&id(2)).is_none());
        assert_eq!(memory.used_bytes(), 3 * (ENTRY_BYTES + 100));
        memory.remove(&id(1));
        assert_eq!(memory.used_bytes(), 2 * (ENTRY_BYTES + 100));
        memory.insert(id(3), entry(50));
        assert_eq!(memory.used_bytes(), 2 * ENTRY_BYTES + 150);
        memory.set_max_bytes(0);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn turns_of_removed_entries_are_dropped() {
        let memory = Memory::default();
        memory.set_max_bytes(1 << 20);
        for _ in 0..1000 {
            for number in 1..=3 {
                memory.insert(id(number), entry(100));
            }
            memory.remove(&id(1));
            assert!(lock(memory.shard(&id(1))).turns.len() <= 6);
        }
        memory.insert(id(1), entry(100));
        assert_eq!(memory.used_bytes(), 3 * (ENTRY_BYTES + 100));
    }

    #[test]
    fn large_bodies_are_not_kept() {
        let memory = Memory::default();
        assert!(!memory.takes(0));
        memory.set_max_bytes(1 << 20);
        for (bytes, takes) in [
            (MEMORY_BODY_BYTES_MAX - 1, true),
            (MEMORY_BODY_BYTES_MAX, true),
            (MEMORY_BODY_BYTES_MAX + 1, false),
        ] {
            assert_eq!(memory.takes(bytes), takes);
        }
        memory.set_max_bytes(100);
        assert!(memory.takes(99) && !memory.takes(100));
    }
}
