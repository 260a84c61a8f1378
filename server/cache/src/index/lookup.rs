//! Lookups of requests, and files that are found on the disk.

use std::sync::atomic::Ordering;

use super::core::Index;
use super::node::{Flags, StoredFile};
use crate::key::EntryId;

/// The state of a request's entry in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// There is a file.
    Stored(StoredEntry),
    /// The server has failed a short time ago, unless [`Index::is_error_purged`].
    Error {
        /// The status.
        status: u16,
        /// Epoch of the failure.
        epoch: u64,
    },
    /// A file may exist: the index is cold. [`Index::add_found`] adds it.
    Unseen {
        /// Without a file, the response is not stored: the entry has too few requests.
        is_scarce: bool,
    },
    /// There is no file, and too few requests to store the response.
    Scarce,
    /// There is no file.
    Absent,
}

/// An entry with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Position of its body, as a hint for the first read; 0 if it is not known.
    pub body_start: u16,
    /// Inode number of its file; 0 if it is not known.
    pub uniq: u64,
    /// Epoch of its response, for [`Index::check_hit`] ([`Self::epoch_of`]).
    pub epoch: u64,
    /// Epoch of the latest purge that a walk had ended.
    pub walked: u64,
    /// End of freshness, seconds since 1970; 0 if it is not known.
    pub valid_s: i64,
    /// Whether it is stale, whatever its file has: it was purged softly.
    pub is_stale: bool,
    /// Whether a request receives it at present.
    pub is_updating: bool,
    /// Whether the id of its key is known; else [`Index::learn`] is due.
    pub is_known: bool,
    /// Requests, this one included, up to 65,535.
    pub uses: u16,
}

impl StoredEntry {
    /// Returns the epoch of the file that was opened, with its inode number
    /// ([`crate::directory::FileIdentity::uniq`]). The file of another process has epoch 0: all purges in effect concern it.
    #[must_use]
    pub fn epoch_of(&self, uniq: u64) -> u64 {
        if self.uniq == uniq || self.uniq == 0 {
            self.epoch
        } else {
            0
        }
    }
}

/// The result of [`Index::load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The file is a new entry.
    Added,
    /// Its entry is known.
    Known,
    /// The index is full: the file is removed by the caller.
    Full,
}

impl Index {
    /// Looks up the entry of a request, and counts it. `main` is the id of its key, `id` that of the key or a variant. A
    /// response is stored from request `min_uses` on.
    pub fn look_up(&self, id: &EntryId, main: &EntryId, min_uses: u32, now_s: u32) -> Lookup {
        // Before the entry: a walk that ends in between is noticed by the check.
        let walked = self.purges.ended();
        let (hash, mut shard) = self.lock(id);
        let Some(slot) = shard.table.find(hash, id) else {
            drop(shard);
            let is_scarce = min_uses > 1;
            if is_scarce {
                self.count_first(id, main, now_s);
            }
            return self.without_file(is_scarce);
        };
        shard.table.touch(slot);
        let node = shard.table.node_mut(slot);
        node.used_s = now_s;
        node.uses = node.uses.saturating_add(1);
        if node.exists() {
            return Lookup::Stored(StoredEntry {
                body_start: node.body_start,
                uniq: node.uniq,
                epoch: node.epoch,
                walked,
                valid_s: node.valid_s,
                is_stale: node.flags.has(Flags::STALE),
                is_updating: node.fill.is_some(),
                is_known: node.flags.has(Flags::KNOWN),
                uses: node.uses,
            });
        }
        if node.error > 0 {
            if node.valid_s >= i64::from(now_s) {
                return Lookup::Error {
                    status: node.error,
                    epoch: node.epoch,
                };
            }
            node.clear_error();
        }
        let is_scarce = u32::from(node.uses) < min_uses.min(u16::MAX.into());
        self.without_file(is_scarce)
    }

    fn without_file(&self, is_scarce: bool) -> Lookup {
        match (self.is_cold(), is_scarce) {
            (true, is_scarce) => Lookup::Unseen { is_scarce },
            (false, true) => Lookup::Scarce,
            (false, false) => Lookup::Absent,
        }
    }

    /// Adds an entry that has no file, to count its requests. A full index does not count.
    fn count_first(&self, id: &EntryId, main: &EntryId, now_s: u32) {
        if let Some((mut shard, slot, is_new)) = self.entry(id, true) {
            let node = shard.table.node_mut(slot);
            node.uses = node.uses.saturating_add(1);
            node.used_s = now_s;
            node.flags.set(Flags::COUNTED, true);
            let was_unknown = node.set_known(*main, is_new);
            drop(shard);
            self.list_existing(*main, *id, was_unknown);
        }
    }

    /// Lists a variant whose entry may have been removed meanwhile.
    fn list_existing(&self, main: EntryId, id: EntryId, was_unknown: bool) {
        self.list_variant(main, id, was_unknown);
        if main != id {
            self.remove_variant(&main, &id);
        }
    }

    /// Adds the file of an entry that the cold index did not know. The caller has verified it, and has called
    /// [`Self::check_hit`] without an entry.
    pub fn add_found(&self, id: &EntryId, main: &EntryId, file: StoredFile, now_s: u32) {
        let Some((mut shard, slot, is_new)) = self.entry(id, true) else {
            return;
        };
        let node = shard.table.node_mut(slot);
        // A purge during a fill concerns the file that was found as well.
        if !node.exists() && node.not_before == 0 {
            node.uses = node.uses.max(1);
            node.used_s = now_s;
            node.epoch = 0;
            node.error = 0;
            node.flags.set(Flags::EXISTS, true);
            let was_unknown = node.set_known(*main, is_new);
            node.set_file(file);
            self.counts.add_blocks(file.blocks);
            drop(shard);
            self.list_existing(*main, *id, was_unknown);
        } else {
            // A new entry without a file is not kept.
            let was_unknown = node.set_known(*main, is_new);
            self.tidy(shard, slot);
            self.list_existing(*main, *id, was_unknown);
        }
    }

    /// Adds a file by its name alone. The id of its key is unknown, unless a request has come first.
    pub fn load(&self, id: &EntryId, blocks: u32, now_s: u32) -> Loaded {
        let Some((mut shard, slot, is_new)) = self.entry(id, false) else {
            return Loaded::Full;
        };
        let node = shard.table.node_mut(slot);
        // A purge since the begin of a fill concerns the file as well.
        if node.exists() || node.not_before > 0 {
            return Loaded::Known;
        }
        if is_new {
            node.used_s = now_s;
            self.counts.unknown.fetch_add(1, Ordering::SeqCst);
        }
        node.uses = node.uses.max(1);
        (node.error, node.valid_s, node.epoch) = (0, 0, 0);
        node.blocks = blocks;
        node.flags.set(Flags::EXISTS, true);
        self.counts.add_blocks(blocks);
        Loaded::Added
    }

    /// Sets the id of the key of an entry that was loaded.
    pub fn learn(&self, id: &EntryId, main: &EntryId) {
        let known = self.with(id, |node| node.set_known(*main, false));
        if let Some(was_unknown) = known {
            self.list_existing(*main, *id, was_unknown);
        }
    }

    /// Forgets the file of an entry, since the one that was `seen` is missing or damaged. An entry with another epoch or
    /// inode number has another file. The caller removes a damaged file by [`Self::remove_unused`].
    pub fn forget_file(&self, id: &EntryId, seen: &StoredEntry) {
        let (hash, shard) = self.lock(id);
        if let Some(slot) = shard.table.find(hash, id) {
            let node = shard.table.node(slot);
            if node.exists() && (node.epoch, node.uniq) == (seen.epoch, seen.uniq) {
                self.remove_file(shard, slot);
            }
        }
    }
}
