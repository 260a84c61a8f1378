//! Walks over all entries, which end purges in effect.
//!
//! ```text
//! begin_walk   None if no purge is in effect, or files are still loaded
//! walk_step    entries of up to SLOTS_A_STEP slots that a purge may concern; the caller reads the head of each
//! judge        removes the entry, makes it stale, or keeps it
//! end_walk     purges from before the walk are over
//! ```

use std::sync::atomic::Ordering;

use super::core::Index;
use super::node::Flags;
use super::purges::{PurgeFacts, PurgeMode};
use crate::key::EntryId;

/// Maximum number of entries that a step of a walk looks at under the lock of a shard.
pub const SLOTS_A_STEP: u32 = 64;

/// A walk over all entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Purges up to this epoch end with the walk.
    target: u64,
    shard: usize,
    slot: u32,
    purged: u64,
}

/// An entry that a purge may concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkEntry {
    /// Its id.
    pub id: EntryId,
    /// Epoch of its response.
    epoch: u64,
}

/// The consequence for the file of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkAction {
    /// None.
    Keep,
    /// The caller removes it.
    Remove,
    /// The caller makes it stale.
    Expire,
}

impl Walk {
    /// Returns the number of entries that were purged so far.
    #[must_use]
    pub fn purged(&self) -> u64 {
        self.purged
    }
}

impl Index {
    /// Begins a walk, if there is a reason for one. `now_ms` is monotonic ([`super::Now`]): fills that are too old no longer
    /// hold up purges, and are not stored.
    #[must_use]
    pub fn begin_walk(&self, now_ms: u64) -> Option<Walk> {
        // Loaded entries have epoch 0, so a walk before the last of them would miss some.
        if self.is_cold() || self.purges.is_empty() {
            return None;
        }
        Some(Walk {
            target: self.purges.walk_target(now_ms),
            shard: 0,
            slot: 0,
            purged: 0,
        })
    }

    /// Appends entries to be read and judged. Cached errors have no head to read, and are forgotten. Returns whether the walk
    /// goes on.
    pub fn walk_step(&self, walk: &mut Walk, entries: &mut Vec<WalkEntry>) -> bool {
        if walk.shard >= self.shards() {
            return false;
        }
        let mut shard = self.lock_at(walk.shard);
        let end = shard.table.slots().min(walk.slot + SLOTS_A_STEP);
        let mut failed = Vec::new();
        for slot in walk.slot..end {
            let node = shard.table.node_mut(slot);
            if node.epoch >= walk.target {
                continue;
            }
            if node.error > 0 && !node.exists() {
                node.clear_error();
                failed.push(node.id);
            }
            if node.exists() {
                entries.push(WalkEntry {
                    id: node.id,
                    epoch: node.epoch,
                });
            }
        }
        if end == shard.table.slots() {
            (walk.shard, walk.slot) = (walk.shard + 1, 0);
        } else {
            walk.slot = end;
        }
        drop(shard);
        for id in failed {
            let (hash, shard) = self.lock(&id);
            if let Some(slot) = shard.table.find(hash, &id) {
                self.tidy(shard, slot);
            }
        }
        true
    }

    /// Carries out purges on an entry. `facts` are `None` if its file is missing or damaged.
    pub fn judge(
        &self,
        walk: &mut Walk,
        entry: &WalkEntry,
        facts: Option<&PurgeFacts<'_>>,
    ) -> WalkAction {
        let purged = match facts {
            Some(facts) => self.check(entry.epoch, facts),
            None => Some(PurgeMode::Hard),
        };
        if let Some(facts) = facts {
            self.learn(&entry.id, &facts.main);
        }
        let (hash, mut shard) = self.lock(&entry.id);
        let Some(slot) = shard.table.find(hash, &entry.id) else {
            return WalkAction::Keep;
        };
        let node = shard.table.node_mut(slot);
        if !node.exists() || node.epoch != entry.epoch {
            return WalkAction::Keep;
        }
        if purged == Some(PurgeMode::Hard) {
            self.remove_file(shard, slot);
        } else {
            // Later purges concern it still: the check may have come before them.
            node.epoch = walk.target;
            if purged.is_some() {
                node.flags.set(Flags::STALE, true);
            }
        }
        let action = match purged {
            None => return WalkAction::Keep,
            Some(PurgeMode::Hard) => WalkAction::Remove,
            Some(PurgeMode::Soft) => WalkAction::Expire,
        };
        walk.purged += 1;
        self.counts.purged.fetch_add(1, Ordering::Relaxed);
        action
    }

    /// Ends a walk over all entries.
    pub fn end_walk(&self, walk: Walk) {
        debug_assert_eq!(walk.shard, self.shards(), "the walk is not over");
        self.purges.forget(walk.target);
    }
}
