//! Lists of the variants of each key, for purges and a limit.
//!
//! A list belongs to the shard of its key; its variants may belong to others.

use std::sync::atomic::Ordering;

use super::core::{DOOMED_MAX, Index, Shard};
use crate::key::{EntryId, ID_BYTES};

/// Maximum number of variants of a key besides the first; another one replaces that used least recently.
pub const VARIANTS_MAX: usize = 64;

impl Index {
    /// Lists a variant whose key has become known. Returns whether there is room ([`Self::add_variant`]).
    ///
    /// `was_unknown` is the result of `set_known`. Only a variant in its list may leave the count of unknown ones: a
    /// purge of the key finds it by one of them.
    pub(super) fn list_variant(&self, main: EntryId, id: EntryId, was_unknown: bool) -> bool {
        let has_room = self.add_variant(main, id);
        if was_unknown {
            self.counts.unknown.fetch_sub(1, Ordering::SeqCst);
        }
        has_room
    }

    /// Adds a variant to the list of its key. Beyond [`VARIANTS_MAX`], the variant used least recently is removed.
    /// Returns whether there is room: if all others are received at present, or too many files wait for their removal,
    /// there is none.
    pub(super) fn add_variant(&self, main: EntryId, id: EntryId) -> bool {
        if main == id {
            return true;
        }
        let all = {
            let (_, mut shard) = self.lock(&main);
            if !shard.variants.insert((main, id)) {
                return true;
            }
            shard.variants_of(&main)
        };
        if all.len() <= VARIANTS_MAX {
            return true;
        }
        if self.doomed() >= DOOMED_MAX {
            return false;
        }
        let others = all.into_iter().filter(|other| *other != id);
        let used = others.filter_map(|id| {
            let used_s = self.with(&id, |node| (node.fills == 0).then_some(node.used_s))??;
            Some((used_s, id))
        });
        let Some((_, oldest)) = used.min() else {
            return false;
        };
        let (hash, shard) = self.lock(&oldest);
        if let Some(slot) = shard.table.find(hash, &oldest)
            && shard.table.node(slot).fills == 0
        {
            let victim = self.remove(shard, slot);
            self.counts.evicted.fetch_add(1, Ordering::Relaxed);
            self.doom(victim);
        }
        true
    }

    /// Removes a variant from the list of its key, unless its entry was added again meanwhile.
    pub(super) fn remove_variant(&self, main: &EntryId, id: &EntryId) {
        let hash = self.hash(id);
        let (at, at_main) = (self.shard_of(hash), self.shard_of(self.hash(main)));
        loop {
            let mut shard = self.lock_at(at_main);
            let exists = if at == at_main {
                shard.table.find(hash, id).is_some()
            } else {
                // Both locks are needed: a purge in between would miss the variant. To wait for the second one could be to
                // wait for a thread that waits for the first.
                let Some(other) = self.try_lock_at(at) else {
                    drop(shard);
                    std::hint::spin_loop();
                    continue;
                };
                other.table.find(hash, id).is_some()
            };
            if !exists {
                shard.variants.remove(&(*main, *id));
            }
            return;
        }
    }
}

impl Shard {
    /// Returns the variants of a key.
    pub(super) fn variants_of(&self, main: &EntryId) -> Vec<EntryId> {
        let all = (*main, EntryId([0; ID_BYTES]))..=(*main, EntryId([0xff; ID_BYTES]));
        self.variants.range(all).map(|(_, id)| *id).collect()
    }
}
