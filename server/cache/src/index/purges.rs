//! Purges in effect: keys, tags and prefixes of keys, each with the epoch of its latest purge.
//!
//! An epoch is the number of a purge. A response has the epoch at which its request began; purges of later epochs concern it.
//! So a purge is one insertion: no entry of it is served afterwards, by any thread, however long its removal takes. A walk
//! over all entries ([`super::Walk`]) removes them, and then the purge is forgotten.
//!
//! Absent: purges that outlive the process. A purge is final once its walk has ended.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::key::{EntryId, KEY_BYTES_MAX};
use crate::tags::{self, TAGS_BYTES_MAX};

/// Maximum number of keys with a purge in effect.
pub const PURGED_KEYS_MAX: usize = 65_536;
/// Maximum number of tags with a purge in effect.
pub const PURGED_TAGS_MAX: usize = 65_536;
/// Maximum number of prefixes with a purge in effect.
pub const PURGED_PREFIXES_MAX: usize = 1024;
/// Time after which a fill no longer holds up purges, milliseconds. Its response is not stored if a walk begins later.
pub const FILL_AGE_MAX_MS: u64 = 600_000;

/// The effect of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeMode {
    /// Entries are removed.
    Hard,
    /// Entries become stale.
    Soft,
}

/// A purge that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeError {
    /// Too many purges are in effect; the next walk ends them.
    TooMany,
    /// The tag or prefix is longer than those of any entry.
    TooLong,
}

impl fmt::Display for PurgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "too many purges are in progress",
            Self::TooLong => "the tag or prefix of the purge is too long",
        })
    }
}

/// Properties of an entry by which it is purged.
#[derive(Clone, Copy, Debug)]
pub struct PurgeFacts<'a> {
    /// The id of its key.
    pub main: EntryId,
    /// The text of its key.
    pub key: &'a [u8],
    /// Its tags ([`crate::tags::Tags::text`]).
    pub tags: &'a [u8],
}

/// The target of a purge.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    Key(EntryId),
    Tag(&'a [u8]),
    Prefix(&'a [u8]),
}

/// The latest epochs of one target; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
struct Epochs {
    hard: u64,
    soft: u64,
}

impl Epochs {
    fn add(&mut self, mode: PurgeMode, epoch: u64) {
        match mode {
            PurgeMode::Hard => self.hard = epoch,
            PurgeMode::Soft => self.soft = epoch,
        }
    }

    /// Combines the epochs of all purges that concern one entry.
    fn merge(&mut self, other: Self) {
        self.hard = self.hard.max(other.hard);
        self.soft = self.soft.max(other.soft);
    }

    /// Returns the epochs after this one; `None` without any.
    fn later(self, target: u64) -> Option<Self> {
        let later = |epoch: u64| if epoch > target { epoch } else { 0 };
        let (hard, soft) = (later(self.hard), later(self.soft));
        (hard > 0 || soft > 0).then_some(Self { hard, soft })
    }
}

#[derive(Debug, Default)]
struct Lists {
    keys: HashMap<EntryId, Epochs>,
    tags: HashMap<Box<[u8]>, Epochs>,
    prefixes: BTreeMap<Box<[u8]>, Epochs>,
}

/// All purges in effect.
#[derive(Debug, Default)]
pub(super) struct Purges {
    latest: AtomicU64,
    /// The latest epoch in the lists; 0 if they are empty.
    in_effect: AtomicU64,
    /// The latest epoch of a tag in the lists; 0 if there is none.
    newest_tag: AtomicU64,
    /// The latest epoch that a walk has ended.
    ended: AtomicU64,
    /// Read at each hit while a purge is in effect, so it is locked for writing only for one insertion or exchange.
    lists: RwLock<Lists>,
    /// Held by each change of `lists`.
    changes: Mutex<()>,
    /// Responses of fills with an earlier epoch are not stored.
    floor: AtomicU64,
    /// Number of fills in progress by their epoch and the monotonic time of their begin, milliseconds.
    fills: Mutex<BTreeMap<(u64, u64), u32>>,
}

impl Purges {
    /// Returns the epoch of the latest purge.
    pub(super) fn latest(&self) -> u64 {
        self.latest.load(Ordering::SeqCst)
    }

    /// Adds a purge, and returns its epoch. Once it returns, [`Self::check`] finds it on every thread.
    pub(super) fn add(&self, target: Target<'_>, mode: PurgeMode) -> Result<u64, PurgeError> {
        if target.is_too_long() {
            return Err(PurgeError::TooLong);
        }
        let _changes = self.lock_changes();
        let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
        let epoch = self.latest() + 1;
        let was_crowded = lists.is_crowded();
        match lists.entry(target) {
            Ok(epochs) => epochs.add(mode, epoch),
            Err(error) => {
                // The next walk ends all of them, however long a fill lasts.
                self.floor.fetch_max(epoch - 1, Ordering::SeqCst);
                return Err(error);
            }
        }
        if !was_crowded && lists.is_crowded() {
            self.floor.fetch_max(epoch, Ordering::SeqCst);
        }
        self.latest.store(epoch, Ordering::SeqCst);
        self.in_effect.store(epoch, Ordering::SeqCst);
        if matches!(target, Target::Tag(_)) {
            self.newest_tag.store(epoch, Ordering::SeqCst);
        }
        Ok(epoch)
    }

    /// Takes an epoch for a purge that is carried out at once.
    pub(super) fn take_epoch(&self) -> u64 {
        let _changes = self.lock_changes();
        self.latest.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Returns the effect of later purges on a response of this epoch.
    pub(super) fn check(&self, epoch: u64, facts: &PurgeFacts<'_>) -> Option<PurgeMode> {
        if epoch >= self.in_effect.load(Ordering::SeqCst) {
            return None;
        }
        let found = self.read_lists(|lists| lists.of(facts));
        if found.hard > epoch {
            Some(PurgeMode::Hard)
        } else if found.soft > epoch {
            Some(PurgeMode::Soft)
        } else {
            None
        }
    }

    /// Whether a purge of a tag is later than an epoch.
    pub(super) fn has_newer_tag(&self, epoch: u64) -> bool {
        self.newest_tag.load(Ordering::SeqCst) > epoch
    }

    /// Whether no purge is in effect.
    pub(super) fn is_empty(&self) -> bool {
        self.in_effect.load(Ordering::SeqCst) == 0
    }

    /// Whether a walk has ended the purge of this epoch.
    pub(super) fn has_ended(&self, epoch: u64) -> bool {
        self.ended() >= epoch
    }

    /// Returns the latest epoch that a walk has ended; 0 before the first walk.
    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Forgets purges up to an epoch. A walk has ended them.
    pub(super) fn forget(&self, target: u64) {
        let _changes = self.lock_changes();
        // Before the lists: a hit reads them first.
        self.ended.fetch_max(target, Ordering::SeqCst);
        // Up to 132,096 targets are copied: hits read the old lists meanwhile.
        let later = self.read_lists(|lists| lists.later(target));
        let old = {
            let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
            let old = std::mem::replace(&mut *lists, later);
            self.note_empty(&lists);
            old
        };
        // Freed without the lock.
        drop(old);
    }

    /// Resets the epochs of empty lists, so that hits do not read them.
    fn note_empty(&self, lists: &Lists) {
        if lists.tags.is_empty() {
            self.newest_tag.store(0, Ordering::SeqCst);
        }
        if lists.keys.is_empty() && lists.tags.is_empty() && lists.prefixes.is_empty() {
            self.in_effect.store(0, Ordering::SeqCst);
        }
    }

    /// Returns the number of targets with a purge in effect.
    pub(super) fn len(&self) -> usize {
        self.read_lists(|lists| lists.keys.len() + lists.tags.len() + lists.prefixes.len())
    }

    fn read_lists<T>(&self, f: impl FnOnce(&Lists) -> T) -> T {
        f(&self.lists.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a fill at a monotonic time, and returns its epoch.
    pub(super) fn begin_fill(&self, now_ms: u64) -> u64 {
        let mut fills = self.fills();
        let epoch = self.latest();
        *fills.entry((epoch, now_ms)).or_default() += 1;
        epoch
    }

    /// Ends a fill of this epoch that began at a monotonic time.
    pub(super) fn end_fill(&self, epoch: u64, started_ms: u64) {
        let mut fills = self.fills();
        if let Some(count) = fills.get_mut(&(epoch, started_ms)) {
            *count -= 1;
            if *count == 0 {
                fills.remove(&(epoch, started_ms));
            }
        }
    }

    /// Returns the number of fills in progress.
    pub(super) fn fills_in_progress(&self) -> u64 {
        self.fills().values().map(|count| u64::from(*count)).sum()
    }

    /// Whether the response of a fill of this epoch may not be stored: a purge could have ended that concerns it.
    pub(super) fn is_too_old(&self, epoch: u64) -> bool {
        epoch < self.floor.load(Ordering::SeqCst)
    }

    /// Returns the last epoch of purges that a walk may end, if it begins now. A fill of an earlier epoch could store its
    /// response behind the walk.
    /// Fills older than [`FILL_AGE_MAX_MS`] are refused from now on instead.
    pub(super) fn walk_target(&self, now_ms: u64) -> u64 {
        let fills = self.fills();
        let is_waited_for = |(epoch, started_ms): &(u64, u64)| {
            !self.is_too_old(*epoch) && started_ms.saturating_add(FILL_AGE_MAX_MS) > now_ms
        };
        let mut epochs = fills.keys().filter(|fill| is_waited_for(fill));
        let latest = self.latest();
        let target = epochs
            .next()
            .map_or(latest, |(epoch, _)| (*epoch).min(latest));
        // Before the walk visits an entry, so a commit behind it finds the floor.
        self.floor.fetch_max(target, Ordering::SeqCst);
        target
    }

    fn fills(&self) -> MutexGuard<'_, BTreeMap<(u64, u64), u32>> {
        self.fills.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Target<'_> {
    /// Whether no entry can have it.
    fn is_too_long(&self) -> bool {
        match self {
            Self::Key(_) => false,
            Self::Tag(tag) => tag.len() > TAGS_BYTES_MAX,
            Self::Prefix(prefix) => prefix.len() > KEY_BYTES_MAX,
        }
    }
}

impl Lists {
    /// Whether one of the lists has room for a quarter of its maximum at most.
    fn is_crowded(&self) -> bool {
        let is_crowded = |len: usize, max: usize| len >= max - max / 4;
        is_crowded(self.keys.len(), PURGED_KEYS_MAX)
            || is_crowded(self.tags.len(), PURGED_TAGS_MAX)
            || is_crowded(self.prefixes.len(), PURGED_PREFIXES_MAX)
    }

    /// Returns the purges after an epoch.
    fn later(&self, target: u64) -> Self {
        let keys = self.keys.iter();
        let tags = self.tags.iter();
        let prefixes = self.prefixes.iter();
        Self {
            keys: keys
                .filter_map(|(id, epochs)| Some((*id, epochs.later(target)?)))
                .collect(),
            tags: tags
                .filter_map(|(tag, epochs)| Some((tag.clone(), epochs.later(target)?)))
                .collect(),
            prefixes: prefixes
                .filter_map(|(prefix, epochs)| Some((prefix.clone(), epochs.later(target)?)))
                .collect(),
        }
    }

    /// Returns the epochs of a target, added if it is new.
    fn entry(&mut self, target: Target<'_>) -> Result<&mut Epochs, PurgeError> {
        match target {
            Target::Key(id) => {
                let is_full = self.keys.len() >= PURGED_KEYS_MAX && !self.keys.contains_key(&id);
                let keys = (!is_full).then_some(&mut self.keys);
                Ok(keys.ok_or(PurgeError::TooMany)?.entry(id).or_default())
            }
            Target::Tag(tag) => {
                let is_full = self.tags.len() >= PURGED_TAGS_MAX && !self.tags.contains_key(tag);
                let tags = (!is_full).then_some(&mut self.tags);
                Ok(tags
                    .ok_or(PurgeError::TooMany)?
                    .entry(tag.into())
                    .or_default())
            }
            Target::Prefix(prefix) => {
                let is_full = self.prefixes.len() >= PURGED_PREFIXES_MAX
                    && !self.prefixes.contains_key(prefix);
                let prefixes = (!is_full).then_some(&mut self.prefixes);
                let prefixes = prefixes.ok_or(PurgeError::TooMany)?;
                Ok(prefixes.entry(prefix.into()).or_default())
            }
        }
    }

    /// Returns the latest epochs of all purges that concern an entry.
    fn of(&self, facts: &PurgeFacts<'_>) -> Epochs {
        let mut found = self.keys.get(&facts.main).copied().unwrap_or_default();
        if !self.tags.is_empty() {
            for epochs in tags::iter(facts.tags).filter_map(|tag| self.tags.get(tag)) {
                found.merge(*epochs);
            }
        }
        self.merge_prefixes(facts.key, &mut found);
        found
    }

    /// Merges the epochs of all prefixes of a key, in a search for each of them, not in a comparison with all others.
    fn merge_prefixes(&self, key: &[u8], found: &mut Epochs) {
        let mut key = key;
        loop {
            let up_to_key = (Bound::Unbounded, Bound::Included(key));
            let Some((text, epochs)) = self.prefixes.range::<[u8], _>(up_to_key).next_back() else {
                return;
            };
            let same = text.iter().zip(key).take_while(|(one, other)| one == other);
            let same = same.count();
            if same == text.len() {
                found.merge(*epochs);
                let Some(shorter) = same.checked_sub(1) else {
                    return;
                };
                key = &key[..shorter];
            } else {
                // A longer prefix of the key would be greater than this text, and was found before.
                key = &key[..same];
            }
        }
    }
}

#[cfg(test)]
#[path = "purges_tests.rs"]
mod tests;
