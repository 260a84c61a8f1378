//! Shards, counts, and the removal of entries.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::node::{Flags, NIL, Node};
use super::purges::Purges;
use super::table::Table;
use super::wake::WorkWake;
use crate::key::EntryId;

/// Entries for each megabyte of `keys_zone` (nginx documentation, `proxy_cache_path`).
pub const ENTRIES_A_MEGABYTE: u64 = 8000;
/// Maximum bytes of memory for an entry.
pub const ENTRY_BYTES_MAX: usize = 160;

/// Entries for which a further shard is worth while.
const SHARD_ENTRIES: u64 = 1024;
const SHARDS_MAX: u64 = 64;
/// Entries in use that are passed over for another victim.
const TRIES: usize = 20;
/// Entries that one new entry may replace: after a reload with a smaller `keys_zone`, the manager removes the others.
const EVICTIONS_A_MISS: usize = 2;
/// Locks of paths.
const PATH_LOCKS: usize = 64;
/// Maximum number of files that wait for their removal.
pub(super) const DOOMED_MAX: usize = 65_536;

/// Returns the number of entries of a `keys_zone` of this size.
#[must_use]
pub fn entries_max(keys_zone_bytes: u64) -> u64 {
    let entries = (u128::from(keys_zone_bytes) * u128::from(ENTRIES_A_MEGABYTE)) >> 20;
    u64::try_from(entries).unwrap_or(u64::MAX)
}

/// The entries of a cache.
#[derive(Debug)]
pub struct Index {
    shards: Box<[Mutex<Shard>]>,
    /// Secret numbers, so that clients cannot choose keys of one bucket.
    mix: [u64; 2],
    pub(super) purges: Purges,
    pub(super) counts: Counts,
    pub(super) work: WorkWake,
    is_cold: AtomicBool,
    doomed: Mutex<Vec<Victim>>,
    /// A file gets its name, or is removed, under the lock of its path.
    paths: Box<[Mutex<()>]>,
}

/// Numbers of entries and events.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) entries: AtomicU64,
    pub(super) entries_max: AtomicU64,
    /// The manager keeps fewer entries, once the maximum was reached.
    pub(super) watermark: AtomicU64,
    /// Blocks of all files.
    pub(super) blocks: AtomicU64,
    /// Entries with an unknown key.
    pub(super) unknown: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) purged: AtomicU64,
}

impl Counts {
    pub(super) fn add_blocks(&self, blocks: u32) {
        self.blocks.fetch_add(blocks.into(), Ordering::Relaxed);
    }

    pub(super) fn remove_blocks(&self, blocks: u32) {
        self.blocks.fetch_sub(blocks.into(), Ordering::Relaxed);
    }
}

/// A part of the index.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) table: Table,
    /// Variants of keys that belong to this shard: id of the key, id of the variant, which may belong to another.
    pub(super) variants: BTreeSet<(EntryId, EntryId)>,
}

/// An entry that was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its id.
    pub id: EntryId,
    /// Whether it had a file, which its caller removes by [`Index::remove_unused`].
    pub has_file: bool,
    /// Size of its file, blocks.
    pub blocks: u32,
}

/// Numbers for the API and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Entries.
    pub entries: u64,
    /// Maximum number of entries.
    pub entries_max: u64,
    /// Blocks of all files, with those that wait for their removal.
    pub blocks: u64,
    /// Files that wait for their removal by the manager.
    pub doomed: u64,
    /// Fills in progress.
    pub fills: u64,
    /// Targets of purges in effect: keys, tags and prefixes.
    pub purges: u64,
    /// Whether files are still loaded.
    pub is_cold: bool,
    /// Entries removed for others.
    pub evicted: u64,
    /// Entries removed after `inactive`.
    pub expired: u64,
    /// Entries purged.
    pub purged: u64,
}

impl Index {
    /// An empty index for a number of entries ([`entries_max`]), at least 1. It is cold until [`Self::set_loaded`].
    #[must_use]
    pub fn new(entries_max: u64) -> Self {
        let entries_max = entries_max.max(1);
        let shards = (entries_max / SHARD_ENTRIES).clamp(1, SHARDS_MAX);
        let shards = 1 << shards.ilog2();
        let shard = |_| {
            Mutex::new(Shard {
                table: Table::new(),
                variants: BTreeSet::new(),
            })
        };
        let random = RandomState::new();
        Self {
            shards: (0..shards).map(shard).collect(),
            mix: [random.hash_one(1), random.hash_one(2)],
            purges: Purges::default(),
            counts: Counts {
                entries_max: AtomicU64::new(entries_max),
                watermark: AtomicU64::new(u64::MAX),
                ..Counts::default()
            },
            work: WorkWake::default(),
            is_cold: AtomicBool::new(true),
            doomed: Mutex::default(),
            paths: (0..PATH_LOCKS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Whether files may exist that the index does not know.
    #[must_use]
    pub fn is_cold(&self) -> bool {
        self.is_cold.load(Ordering::Acquire)
    }

    /// All files are known from now on.
    pub fn set_loaded(&self) {
        self.is_cold.store(false, Ordering::Release);
    }

    /// Changes the maximum number of entries. The manager removes the oldest ones beyond it.
    pub fn set_entries_max(&self, entries_max: u64) {
        let counts = &self.counts;
        counts
            .entries_max
            .store(entries_max.max(1), Ordering::Relaxed);
        counts.watermark.store(u64::MAX, Ordering::Relaxed);
    }

    /// Returns the numbers of the index.
    #[must_use]
    pub fn stats(&self) -> IndexStats {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        IndexStats {
            entries: of(&counts.entries),
            entries_max: of(&counts.entries_max),
            blocks: of(&counts.blocks),
            doomed: self.doomed() as u64,
            fills: self.purges.fills_in_progress(),
            purges: self.purges.len() as u64,
            is_cold: self.is_cold(),
            evicted: of(&counts.evicted),
            expired: of(&counts.expired),
            purged: of(&counts.purged),
        }
    }

    /// Whether the manager has to remove entries for their number.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        let counts = &self.counts;
        let entries = counts.entries.load(Ordering::Relaxed);
        entries >= counts.watermark.load(Ordering::Relaxed)
            || entries > counts.entries_max.load(Ordering::Relaxed)
    }

    /// Removes an entry that no request has used for `inactive_s` seconds.
    pub fn expire_one(&self, now_s: u32, inactive_s: u32) -> Option<Victim> {
        for at in 0..self.shards.len() {
            let mut shard = self.lock_at(at);
            for _ in 0..TRIES {
                let Some(slot) = shard.table.oldest() else {
                    break;
                };
                let node = shard.table.node_mut(slot);
                if node.used_s.saturating_add(inactive_s) > now_s {
                    break;
                }
                if node.fills > 0 {
                    // It is received, however long that takes.
                    node.used_s = now_s;
                    shard.table.touch(slot);
                    continue;
                }
                let victim = self.remove(shard, slot);
                self.counts.expired.fetch_add(1, Ordering::Relaxed);
                return Some(victim);
            }
        }
        None
    }

    /// Returns the seconds until [`Self::expire_one`] has something to do; `None` without entries.
    #[must_use]
    pub fn next_expiry_s(&self, now_s: u32, inactive_s: u32) -> Option<u32> {
        let oldest = (0..self.shards.len()).filter_map(|at| {
            let shard = self.lock_at(at);
            let slot = shard.table.oldest()?;
            Some(shard.table.node(slot).used_s)
        });
        let end = oldest.min()?.saturating_add(inactive_s);
        Some(end.saturating_sub(now_s))
    }

    /// Removes the entry used least recently. `None` if there is none, or many of the oldest are received.
    pub fn evict_one(&self) -> Option<Victim> {
        let all = 0..self.shards.len();
        let found = all.filter_map(|at| {
            let shard = self.lock_at(at);
            let slot = shard.evictable()?;
            Some((shard.table.node(slot).used_s, at))
        });
        let (_, at) = found.min()?;
        let shard = self.lock_at(at);
        // The shard may have changed since.
        let slot = shard.evictable()?;
        let victim = self.remove(shard, slot);
        self.counts.evicted.fetch_add(1, Ordering::Relaxed);
        Some(victim)
    }

    /// Takes up to `max` entries that were removed for others by requests. The caller removes their files by
    /// [`Self::remove_unused`].
    pub fn take_doomed(&self, max: usize) -> Vec<EntryId> {
        let taken = {
            let mut doomed = self.doomed.lock().unwrap_or_else(PoisonError::into_inner);
            let left = doomed.len().saturating_sub(max);
            doomed.split_off(left)
        };
        let ids = taken.into_iter().map(|victim| {
            self.counts.remove_blocks(victim.blocks);
            victim.id
        });
        ids.collect()
    }

    /// Calls `remove`, which removes the file of an entry, unless the entry has a file again. A fill that names a file of
    /// this entry waits meanwhile.
    pub fn remove_unused<T>(&self, id: &EntryId, remove: impl FnOnce() -> T) -> Option<T> {
        let _path = self.lock_path(id);
        (!self.has_file(id)).then(remove)
    }

    /// Locks the path of an entry, for as long as its file is named or removed. No lock of a shard is held at its call.
    pub(super) fn lock_path(&self, id: &EntryId) -> MutexGuard<'_, ()> {
        let at = self.hash(id) as usize % self.paths.len();
        self.paths[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an entry has a file.
    #[must_use]
    pub fn has_file(&self, id: &EntryId) -> bool {
        let (hash, shard) = self.lock(id);
        let slot = shard.table.find(hash, id);
        slot.is_some_and(|slot| shard.table.node(slot).exists())
    }

    /// Locks the shard of an id, and returns the hash for its table.
    pub(super) fn lock(&self, id: &EntryId) -> (u64, MutexGuard<'_, Shard>) {
        let hash = self.hash(id);
        (hash, self.lock_at(self.shard_of(hash)))
    }

    /// Returns the number of a shard, of bits that its table does not use.
    pub(super) fn shard_of(&self, hash: u64) -> usize {
        (hash >> 48) as usize % self.shards.len()
    }

    pub(super) fn lock_at(&self, at: usize) -> MutexGuard<'_, Shard> {
        // No operation under the lock panics between two changes that belong together.
        self.shards[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks a shard, if no other thread has it locked.
    pub(super) fn try_lock_at(&self, at: usize) -> Option<MutexGuard<'_, Shard>> {
        match self.shards[at].try_lock() {
            Ok(shard) => Some(shard),
            Err(TryLockError::Poisoned(shard)) => Some(shard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn shards(&self) -> usize {
        self.shards.len()
    }

    pub(super) fn hash(&self, id: &EntryId) -> u64 {
        let id = u128::from_le_bytes(id.0);
        let (low, high) = (id as u64 ^ self.mix[0], (id >> 64) as u64 ^ self.mix[1]);
        let product = u128::from(low) * u128::from(high);
        product as u64 ^ (product >> 64) as u64
    }

    /// Runs `f` on an entry, if it exists.
    pub(super) fn with<T>(&self, id: &EntryId, f: impl FnOnce(&mut Node) -> T) -> Option<T> {
        let (hash, mut shard) = self.lock(id);
        let slot = shard.table.find(hash, id)?;
        Some(f(shard.table.node_mut(slot)))
    }

    /// Locks the shard of an id, and returns the slot of its entry, which is added if it is new. `None` if the index is
    /// full.
    pub(super) fn entry(
        &self,
        id: &EntryId,
        may_evict: bool,
    ) -> Option<(MutexGuard<'_, Shard>, u32, bool)> {
        let (hash, shard) = self.lock(id);
        if let Some(slot) = shard.table.find(hash, id) {
            return Some((shard, slot, false));
        }
        // Other shards are locked for a victim.
        drop(shard);
        if !self.reserve(may_evict) {
            return None;
        }
        let (hash, mut shard) = self.lock(id);
        if let Some(slot) = shard.table.find(hash, id) {
            self.counts.entries.fetch_sub(1, Ordering::Relaxed);
            return Some((shard, slot, false));
        }
        let slot = shard.table.insert(*id, |id| self.hash(id));
        Some((shard, slot, true))
    }

    /// Counts a new entry, in place of an old one if the index is full.
    fn reserve(&self, may_evict: bool) -> bool {
        let counts = &self.counts;
        for evictions in 0..=EVICTIONS_A_MISS {
            let entries = counts.entries.fetch_add(1, Ordering::Relaxed);
            if entries < counts.entries_max.load(Ordering::Relaxed) {
                return true;
            }
            counts.entries.fetch_sub(1, Ordering::Relaxed);
            // As in nginx, the manager then keeps an eighth free.
            let watermark = entries - entries / 8;
            if counts.watermark.swap(watermark, Ordering::Relaxed) == u64::MAX {
                self.work.wake();
            }
            // The locks of all shards are taken for each victim.
            if !may_evict || evictions == EVICTIONS_A_MISS || self.doomed() >= DOOMED_MAX {
                return false;
            }
            let Some(victim) = self.evict_one() else {
                return false;
            };
            self.doom(victim);
        }
        false
    }

    /// Adds a removed entry to the list of files to remove. Its blocks count until it is taken from there.
    pub(super) fn doom(&self, victim: Victim) {
        if victim.has_file {
            self.counts.add_blocks(victim.blocks);
            let is_first = {
                let mut doomed = self.doomed.lock().unwrap_or_else(PoisonError::into_inner);
                doomed.push(victim);
                doomed.len() == 1
            };
            if is_first {
                self.work.wake();
            }
        }
    }

    /// Returns the number of files that wait for their removal.
    #[must_use]
    pub fn doomed(&self) -> usize {
        let doomed = self.doomed.lock().unwrap_or_else(PoisonError::into_inner);
        doomed.len()
    }

    /// Removes the entry of a slot, with all that belongs to it.
    pub(super) fn remove(&self, mut shard: MutexGuard<'_, Shard>, slot: u32) -> Victim {
        let hash = self.hash(&shard.table.node(slot).id);
        let node = shard.table.remove(slot, hash);
        drop(shard);
        self.counts.entries.fetch_sub(1, Ordering::Relaxed);
        self.counts.remove_blocks(node.blocks);
        if !node.flags.has(Flags::KNOWN) {
            self.counts.unknown.fetch_sub(1, Ordering::SeqCst);
        } else if node.main != node.id {
            self.remove_variant(&node.main, &node.id);
        }
        Victim {
            id: node.id,
            has_file: node.exists(),
            blocks: node.blocks,
        }
    }

    /// Marks the file of an entry as removed, and the entry too, if nothing else is left of it.
    pub(super) fn remove_file(&self, mut shard: MutexGuard<'_, Shard>, slot: u32) {
        let node = shard.table.node_mut(slot);
        self.counts.remove_blocks(node.blocks);
        node.clear_file();
        self.tidy(shard, slot);
    }

    /// Removes an entry if nothing is left of it.
    pub(super) fn tidy(&self, shard: MutexGuard<'_, Shard>, slot: u32) {
        if shard.table.node(slot).is_empty() {
            self.remove(shard, slot);
        }
    }
}

impl Shard {
    /// Returns the slot of the oldest entry that may be removed.
    fn evictable(&self) -> Option<u32> {
        let mut slot = self.table.oldest()?;
        for _ in 0..TRIES {
            let node = self.table.node(slot);
            if node.fills == 0 {
                return Some(slot);
            }
            slot = node.newer;
            if slot == NIL {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
impl Index {
    /// Returns the bytes of all tables; sets of variants are estimated.
    pub(super) fn memory_bytes(&self) -> usize {
        let of = |at| {
            let shard = self.lock_at(at);
            // A leaf of a B-tree has 11 places, of which two thirds are used.
            let variant = (size_of::<(EntryId, EntryId)>() + 3) * 3 / 2;
            shard.table.memory_bytes() + shard.variants.len() * variant
        };
        (0..self.shards.len()).map(of).sum()
    }
}
