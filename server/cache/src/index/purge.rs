//! Purges by key, tag and prefix.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::Index;
use super::lookup::StoredEntry;
use super::node::Flags;
use super::purges::{PurgeError, PurgeFacts, PurgeMode, Target};
use crate::key::{CacheKey, EntryId};

/// The result of [`Index::purge_key`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgedKey {
    /// Number of entries that had a file.
    pub entries: u64,
    /// Entries of the key, the first one and its variants. After a hard purge the caller removes their files, after a
    /// soft one it makes them stale ([`Index::remove_unused`]). A file may be missing.
    pub ids: Vec<EntryId>,
}

impl Index {
    /// Sets the function that wakes manager and purger, from any thread: files wait for their removal, the index is full, or
    /// a purge waits for a walk. Without it, they notice that after their pause.
    ///
    /// It is called once for many files, and must return at once.
    pub fn set_work_wake(&self, notify: impl Fn() + Send + Sync + 'static) {
        self.work.set(Arc::new(notify));
    }

    /// Ends the pause of periodic work.
    pub fn wake_work(&self) {
        self.work.wake();
    }

    /// Purges the entries of a key. Responses that are received at present are not stored.
    ///
    /// # Errors
    /// Entries were loaded without their keys, and too many purges wait for a walk.
    pub fn purge_key(&self, key: &CacheKey, mode: PurgeMode) -> Result<PurgedKey, PurgeError> {
        let main = key.id();
        // Variants that were loaded are found by the walk alone.
        let is_unsure = self.is_cold() || self.counts.unknown.load(Ordering::SeqCst) > 0;
        let epoch = if is_unsure {
            self.add_purge(Target::Key(main), mode)?
        } else {
            self.purges.take_epoch()
        };
        let mut ids = vec![main];
        {
            let (_, shard) = self.lock(&main);
            ids.append(&mut shard.variants_of(&main));
        }
        let purged = ids.iter().filter(|id| self.purge_one(id, mode, epoch));
        let entries = purged.count() as u64;
        self.counts.purged.fetch_add(entries, Ordering::Relaxed);
        Ok(PurgedKey { entries, ids })
    }

    /// Purges one entry. Returns whether it had a file.
    pub(super) fn purge_one(&self, id: &EntryId, mode: PurgeMode, epoch: u64) -> bool {
        let (hash, mut shard) = self.lock(id);
        let Some(slot) = shard.table.find(hash, id) else {
            return false;
        };
        let node = shard.table.node_mut(slot);
        let had_file = node.exists();
        // Another purge with a later epoch may have come first.
        node.not_before = node.not_before.max(epoch);
        node.error = 0;
        // Later requests begin another fill.
        node.fill = None;
        match mode {
            PurgeMode::Hard => self.remove_file(shard, slot),
            PurgeMode::Soft => {
                node.flags.set(Flags::STALE, had_file);
                self.tidy(shard, slot);
            }
        }
        had_file
    }

    /// Purges the entries with a tag. Returns the epoch of the purge; entries are removed by the next walk.
    ///
    /// # Errors
    /// Too many purges wait for a walk, or the tag is longer than [`crate::tags::TAGS_BYTES_MAX`].
    pub fn purge_tag(&self, tag: &[u8], mode: PurgeMode) -> Result<u64, PurgeError> {
        self.add_purge(Target::Tag(tag), mode)
    }

    /// Purges the entries of all keys with a prefix, which may be empty. Returns the epoch of the purge;
    /// entries are removed by the next walk.
    ///
    /// # Errors
    /// Too many purges wait for a walk, or the prefix is longer than [`crate::key::KEY_BYTES_MAX`].
    pub fn purge_prefix(&self, prefix: &[u8], mode: PurgeMode) -> Result<u64, PurgeError> {
        self.add_purge(Target::Prefix(prefix), mode)
    }

    fn add_purge(&self, target: Target<'_>, mode: PurgeMode) -> Result<u64, PurgeError> {
        let added = self.purges.add(target, mode);
        // A refused purge has to wait for the walk as well.
        self.work.wake();
        added
    }

    /// Whether all entries of a purge with this epoch were removed.
    #[must_use]
    pub fn has_purge_ended(&self, epoch: u64) -> bool {
        self.purges.has_ended(epoch)
    }

    /// Returns the effect of purges on a stored response: to be called for each hit, after its head was read.
    ///
    /// `entry` comes from the lookup; `None`: the index did not know the file. `uniq` is the inode number of the file. If a
    /// walk has ended since the lookup, an entry from before its purges counts as purged: the walk may have removed it.
    #[must_use]
    pub fn check_hit(
        &self,
        entry: Option<&StoredEntry>,
        uniq: u64,
        facts: &PurgeFacts<'_>,
    ) -> Option<PurgeMode> {
        // The index does not know a file only before the first walk.
        let (epoch, seen) = entry.map_or((0, 0), |entry| (entry.epoch_of(uniq), entry.walked));
        let found = self.check(epoch, facts);
        // After the lists, since a purge leaves them behind the walk.
        let walked = self.purges.ended();
        match walked != seen && epoch < walked {
            true => Some(PurgeMode::Hard),
            false => found,
        }
    }

    /// Returns the effect of purges on a response of this epoch.
    pub(super) fn check(&self, epoch: u64, facts: &PurgeFacts<'_>) -> Option<PurgeMode> {
        self.purges.check(epoch, facts)
    }

    /// Whether a purge may concern an error that was looked up ([`super::Lookup::Error`]). A walk that has ended since the
    /// failure may have removed it.
    #[must_use]
    pub fn is_error_purged(&self, epoch: u64, key: &CacheKey) -> bool {
        // The lists first, since a purge leaves them behind the walk.
        self.is_purged_since(epoch, key) || self.purges.has_ended(epoch + 1)
    }

    /// Whether a purge later than an epoch may concern a response of a key with unknown tags: any purge of a tag may.
    pub(super) fn is_purged_since(&self, epoch: u64, key: &CacheKey) -> bool {
        let facts = PurgeFacts {
            main: key.id(),
            key: key.text(),
            tags: b"",
        };
        self.check(epoch, &facts).is_some() || self.purges.has_newer_tag(epoch)
    }
}
