//! Purges in effect: keys, tags and prefixes of keys, each with the epoch of its latest purge.
//!
//! An epoch is the number of a purge. A response has the epoch at which its request began; purges of later epochs concern it.
//! So a purge is one insertion: no entry of it is served afterwards, by any thread, however long its removal takes. A walk
//! over all entries ([`super::Walk`]) removes them, and then the purge is forgotten.
//!
//! Absent: purges that outlive the process. A purge is final once its walk has ended.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::key::EntryId;
use crate::tags;

/// Maximum number of keys with a purge in effect.
pub const PURGED_KEYS_MAX: usize = 65_536;
/// Maximum number of tags with a purge in effect.
pub const PURGED_TAGS_MAX: usize = 65_536;
/// Maximum number of prefixes with a purge in effect.
pub const PURGED_PREFIXES_MAX: usize = 1024;

/// The effect of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeMode {
    /// Entries are removed.
    Hard,
    /// Entries become stale.
    Soft,
}

/// Too many purges are in effect; the next walk ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPurges;

impl fmt::Display for TooManyPurges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many purges are in progress")
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

    /// Forgets epochs up to this one. Returns whether some are left.
    fn forget(&mut self, target: u64) -> bool {
        for epoch in [&mut self.hard, &mut self.soft] {
            if *epoch <= target {
                *epoch = 0;
            }
        }
        self.hard > 0 || self.soft > 0
    }
}

#[derive(Debug, Default)]
struct Lists {
    keys: HashMap<EntryId, Epochs>,
    tags: HashMap<Box<[u8]>, Epochs>,
    prefixes: Vec<(Box<[u8]>, Epochs)>,
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
    lists: RwLock<Lists>,
    /// Fills in progress by their epoch.
    fills: Mutex<BTreeMap<u64, u32>>,
}

impl Purges {
    /// Returns the epoch of the latest purge.
    pub(super) fn latest(&self) -> u64 {
        self.latest.load(Ordering::SeqCst)
    }

    /// Adds a purge, and returns its epoch. Once it returns, [`Self::check`] finds it on every thread.
    pub(super) fn add(&self, target: Target<'_>, mode: PurgeMode) -> Result<u64, TooManyPurges> {
        let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
        let epoch = self.latest() + 1;
        lists.entry(target)?.add(mode, epoch);
        self.latest.store(epoch, Ordering::SeqCst);
        self.in_effect.store(epoch, Ordering::SeqCst);
        if matches!(target, Target::Tag(_)) {
            self.newest_tag.store(epoch, Ordering::SeqCst);
        }
        Ok(epoch)
    }

    /// Takes an epoch for a purge that is carried out at once.
    pub(super) fn take_epoch(&self) -> u64 {
        let _lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
        self.latest.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Returns the effect of later purges on a response of this epoch.
    pub(super) fn check(&self, epoch: u64, facts: &PurgeFacts<'_>) -> Option<PurgeMode> {
        if epoch >= self.in_effect.load(Ordering::SeqCst) {
            return None;
        }
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        let found = lists.of(facts);
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
        self.ended.load(Ordering::SeqCst) >= epoch
    }

    /// Forgets purges up to an epoch.
    pub(super) fn forget(&self, target: u64) {
        let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
        lists.keys.retain(|_, epochs| epochs.forget(target));
        lists.tags.retain(|_, epochs| epochs.forget(target));
        lists
            .prefixes
            .retain_mut(|(_, epochs)| epochs.forget(target));
        if lists.tags.is_empty() {
            self.newest_tag.store(0, Ordering::SeqCst);
        }
        if lists.keys.is_empty() && lists.tags.is_empty() && lists.prefixes.is_empty() {
            self.in_effect.store(0, Ordering::SeqCst);
        }
        self.ended.fetch_max(target, Ordering::SeqCst);
    }

    /// Begins a fill, and returns its epoch.
    pub(super) fn begin_fill(&self) -> u64 {
        let mut fills = self.fills();
        let epoch = self.latest();
        *fills.entry(epoch).or_default() += 1;
        epoch
    }

    /// Ends a fill of this epoch.
    pub(super) fn end_fill(&self, epoch: u64) {
        let mut fills = self.fills();
        if let Some(count) = fills.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                fills.remove(&epoch);
            }
        }
    }

    /// Returns the epoch up to which a walk that begins now ends purges: an earlier fill could store a response behind it.
    pub(super) fn walk_target(&self) -> u64 {
        let fills = self.fills();
        let oldest = fills.first_key_value().map(|(epoch, _)| *epoch);
        let latest = self.latest();
        oldest.unwrap_or(latest).min(latest)
    }

    fn fills(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.fills.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lists {
    /// Returns the epochs of a target, added if it is new.
    fn entry(&mut self, target: Target<'_>) -> Result<&mut Epochs, TooManyPurges> {
        match target {
            Target::Key(id) => {
                let is_full = self.keys.len() >= PURGED_KEYS_MAX && !self.keys.contains_key(&id);
                let keys = (!is_full).then_some(&mut self.keys);
                Ok(keys.ok_or(TooManyPurges)?.entry(id).or_default())
            }
            Target::Tag(tag) => {
                let is_full = self.tags.len() >= PURGED_TAGS_MAX && !self.tags.contains_key(tag);
                let tags = (!is_full).then_some(&mut self.tags);
                Ok(tags.ok_or(TooManyPurges)?.entry(tag.into()).or_default())
            }
            Target::Prefix(prefix) => {
                let known = self.prefixes.iter().position(|(one, _)| **one == *prefix);
                if known.is_none() && self.prefixes.len() >= PURGED_PREFIXES_MAX {
                    return Err(TooManyPurges);
                }
                let at = known.unwrap_or_else(|| {
                    self.prefixes.push((prefix.into(), Epochs::default()));
                    self.prefixes.len() - 1
                });
                Ok(&mut self.prefixes[at].1)
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
        let starts = |prefix: &[u8]| facts.key.starts_with(prefix);
        for (_, epochs) in self.prefixes.iter().filter(|(prefix, _)| starts(prefix)) {
            found.merge(*epochs);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(key: &'static [u8], tags: &'static [u8]) -> PurgeFacts<'static> {
        let main = EntryId([key.len() as u8; 16]);
        PurgeFacts { main, key, tags }
    }

    #[test]
    fn purges_concern_earlier_responses_alone() {
        let purges = Purges::default();
        let (one, other) = (facts(b"/a/1", b"x\ty"), facts(b"/b", b"z"));
        assert_eq!(purges.check(0, &one), None);
        for (n, target) in [
            Target::Key(one.main),
            Target::Tag(b"y"),
            Target::Prefix(b"/a/"),
            Target::Prefix(b"/a/1"),
        ]
        .into_iter()
        .enumerate()
        {
            let epoch = purges.add(target, PurgeMode::Hard);
            assert_eq!(epoch, Ok(n as u64 + 1));
            assert_eq!(purges.check(n as u64, &one), Some(PurgeMode::Hard));
            assert_eq!(purges.check(n as u64 + 1, &one), None);
            assert_eq!(purges.check(n as u64, &other), None);
        }
        purges.forget(3);
        assert_eq!(purges.check(3, &one), Some(PurgeMode::Hard));
        assert!(!purges.is_empty());
        assert!(purges.has_ended(3) && !purges.has_ended(4));
        purges.forget(4);
        assert!(purges.is_empty());
        assert_eq!(purges.check(0, &one), None);
        let all = purges.add(Target::Prefix(b""), PurgeMode::Soft);
        assert_eq!(all, Ok(5), "epochs are never used again");
        assert_eq!(purges.check(4, &other), Some(PurgeMode::Soft));
    }

    #[test]
    fn a_hard_purge_is_stronger_than_a_later_soft_one() {
        let purges = Purges::default();
        let (one, target) = (facts(b"/a", b""), Target::Prefix(b"/"));
        let modes = [PurgeMode::Hard, PurgeMode::Soft];
        for (epoch, mode) in modes.into_iter().enumerate() {
            assert_eq!(purges.add(target, mode), Ok(epoch as u64 + 1));
        }
        assert_eq!(purges.check(0, &one), Some(PurgeMode::Hard));
        assert_eq!(purges.check(1, &one), Some(PurgeMode::Soft));
        assert_eq!(purges.check(2, &one), None);
    }

    #[test]
    fn a_walk_ends_no_purge_that_a_fill_could_pass() {
        let purges = Purges::default();
        let soft = PurgeMode::Soft;
        let first = purges.begin_fill();
        assert_eq!((first, purges.walk_target()), (0, 0));
        assert_eq!(purges.add(Target::Tag(b"a"), soft), Ok(1));
        let second = purges.begin_fill();
        assert_eq!((second, purges.walk_target()), (1, 0));
        assert!(purges.has_newer_tag(0) && !purges.has_newer_tag(1));
        purges.end_fill(first);
        assert_eq!(purges.walk_target(), 1);
        assert_eq!(purges.take_epoch(), 2);
        assert_eq!(purges.walk_target(), 1);
        assert!(!purges.has_newer_tag(1), "it was a key");
        purges.end_fill(second);
        assert_eq!(purges.walk_target(), 2);
    }

    #[test]
    fn purges_in_effect_are_limited() {
        let purges = Purges::default();
        let hard = PurgeMode::Hard;
        let text = |n: usize| n.to_string().into_bytes();
        for n in 0..PURGED_PREFIXES_MAX {
            assert!(purges.add(Target::Prefix(&text(n)), hard).is_ok());
        }
        assert_eq!(purges.add(Target::Prefix(b"x"), hard), Err(TooManyPurges));
        assert!(
            purges.add(Target::Prefix(b"0"), hard).is_ok(),
            "it is known"
        );
        for n in 0..PURGED_TAGS_MAX {
            assert!(purges.add(Target::Tag(&text(n)), hard).is_ok());
        }
        assert_eq!(purges.add(Target::Tag(b"x"), hard), Err(TooManyPurges));
        assert!(purges.add(Target::Tag(b"0"), hard).is_ok());
        let key = |n: usize| Target::Key(EntryId((n as u128).to_le_bytes()));
        for n in 0..PURGED_KEYS_MAX {
            assert!(purges.add(key(n), hard).is_ok());
        }
        assert_eq!(purges.add(key(PURGED_KEYS_MAX), hard), Err(TooManyPurges));
        assert!(purges.add(key(0), hard).is_ok());
        purges.forget(purges.latest());
        assert!(purges.add(Target::Prefix(b"x"), hard).is_ok());
    }
}
