//! The begin and the end of fills.

use std::sync::Arc;

use super::core::Index;
use super::node::{Flags, Node, StoredFile};
use super::purges::{PurgeFacts, PurgeMode};
use crate::fill::Fill;
use crate::key::{CacheKey, EntryId};

/// The current time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic, milliseconds.
    pub mono_ms: u64,
    /// Seconds since 1970.
    pub unix_s: u32,
}

/// Whether a request joins a fill in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillLock {
    /// It receives the entry itself.
    Off,
    /// It joins a fill that began less than this number of milliseconds ago (`proxy_cache_lock_age`).
    Age(u64),
}

/// The result of [`Index::begin_fill`].
#[derive(Debug)]
pub enum Begin {
    /// This request receives the entry.
    Started(FillToken),
    /// Another request receives it.
    Joined(Arc<Fill>),
    /// The index is full, or all variants of the key are received at present: the response is not stored.
    Full,
}

/// The result of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// The entry has the response.
    Stored,
    /// The entry has the response, which was purged softly since the request.
    Stale,
    /// The file was not named: the response was purged since the request, or another fill names its own file.
    Refused,
    /// The file could not be named.
    Failed,
    /// The response was purged while the file was named: the caller removes the file. Of an update: the stored response is
    /// gone.
    Purged,
}

/// The right to fill an entry. Dropped, the fill has failed.
#[derive(Debug)]
pub struct FillToken {
    index: Arc<Index>,
    fill: Arc<Fill>,
    id: EntryId,
    main: EntryId,
    is_open: bool,
    is_publishing: bool,
}

impl Index {
    /// Begins to receive the entry `id` of a key, before its request is sent; or joins the request that does so already.
    ///
    /// A fill that began before a purge of the key is not joined, nor one that began before any purge of a tag.
    #[must_use]
    pub fn begin_fill(
        self: &Arc<Self>,
        id: EntryId,
        key: &CacheKey,
        lock: FillLock,
        now: Now,
    ) -> Begin {
        let epoch = self.purges.begin_fill();
        let begun = self.begin_at(epoch, id, key, lock, now);
        if !matches!(begun, Begin::Started(_)) {
            self.purges.end_fill(epoch);
            return begun;
        }
        // Without room for the variant, its entry goes with the token.
        if self.add_variant(key.id(), id) {
            begun
        } else {
            Begin::Full
        }
    }

    fn begin_at(
        self: &Arc<Self>,
        epoch: u64,
        id: EntryId,
        key: &CacheKey,
        lock: FillLock,
        now: Now,
    ) -> Begin {
        let main = key.id();
        let Some((mut shard, slot, is_new)) = self.entry(&id, true) else {
            return Begin::Full;
        };
        let node = shard.table.node_mut(slot);
        if let (FillLock::Age(age_ms), Some(fill)) = (lock, &node.fill)
            && fill.started_ms().saturating_add(age_ms) > now.mono_ms
            && fill.progress().end.is_none()
            && fill.epoch() >= node.not_before
            && self.may_join(fill, key)
        {
            return Begin::Joined(Arc::clone(fill));
        }
        let fill = Arc::new(Fill::new(epoch, now.mono_ms));
        // Requests without a lock leave the fill that others may join.
        if lock != FillLock::Off || node.fill.is_none() {
            node.fill = Some(Arc::clone(&fill));
        }
        node.fills += 1;
        node.used_s = now.unix_s;
        if is_new {
            node.uses = 1;
        }
        self.set_known(node, main, is_new);
        drop(shard);
        Begin::Started(FillToken {
            index: Arc::clone(self),
            fill,
            id,
            main,
            is_open: true,
            is_publishing: false,
        })
    }

    /// Whether no purge since the begin of a fill concerns its response. Its tags are not known yet.
    fn may_join(&self, fill: &Fill, key: &CacheKey) -> bool {
        let facts = PurgeFacts {
            main: key.id(),
            key: key.text(),
            tags: b"",
        };
        self.check(fill.epoch(), &facts).is_none() && !self.purges.has_newer_tag(fill.epoch())
    }
}

impl FillToken {
    /// Returns the fill, for its producer.
    #[must_use]
    pub fn fill(&self) -> &Arc<Fill> {
        &self.fill
    }

    /// Returns the id of the entry that the response will have.
    #[must_use]
    pub fn id(&self) -> EntryId {
        self.id
    }

    /// Stores a response with a whole file, and ends the fill. `publish` renames the file to the path of [`Self::id`], and
    /// returns `None` if that fails. No lock is held during its call.
    #[must_use]
    pub fn commit(
        mut self,
        facts: &PurgeFacts<'_>,
        publish: impl FnOnce() -> Option<StoredFile>,
    ) -> Committed {
        let committed = self.store(facts, publish);
        // Consumers that read a purged response have begun before the purge.
        self.fill.finish();
        committed
    }

    fn store(
        &mut self,
        facts: &PurgeFacts<'_>,
        publish: impl FnOnce() -> Option<StoredFile>,
    ) -> Committed {
        // A purged response must not replace the file of a later one, even for a moment. So no other fill names a file of
        // this entry until the name was given and purges were looked at again.
        let epoch = self.fill.epoch();
        let may_publish = self.index.with(&self.id, |node| {
            let may = node.not_before <= epoch && !node.flags.has(Flags::PUBLISHING);
            if may {
                node.flags.set(Flags::PUBLISHING, true);
            }
            may
        });
        if may_publish != Some(true) {
            return Committed::Refused;
        }
        self.is_publishing = true;
        if self.index.check(epoch, facts) == Some(PurgeMode::Hard) {
            return Committed::Refused;
        }
        let Some(file) = publish() else {
            return Committed::Failed;
        };
        let index = Arc::clone(&self.index);
        self.close(|epoch, node| {
            // Under the lock of the entry: a later purge finds the entry as it is set here.
            let purged = index.check(epoch, facts);
            if node.not_before > epoch || purged == Some(PurgeMode::Hard) {
                index.counts.remove_blocks(std::mem::take(&mut node.blocks));
                node.clear_file();
                return Committed::Purged;
            }
            index.counts.add_blocks(file.blocks);
            index.counts.remove_blocks(node.blocks);
            node.set_file(file);
            node.epoch = epoch;
            node.error = 0;
            node.flags.set(Flags::EXISTS, true);
            node.flags.set(Flags::STALE, purged.is_some());
            match purged {
                Some(_) => Committed::Stale,
                None => Committed::Stored,
            }
        })
    }

    /// Remembers for `valid_s` (seconds since 1970) that the server has failed with a status, if there is no file.
    pub fn commit_error(mut self, status: u16, valid_s: i64) {
        self.close(|epoch, node| {
            if !node.exists() && node.not_before <= epoch {
                (node.error, node.valid_s) = (status, valid_s);
            }
        });
        self.fill.settle();
    }

    /// Ends an update: the server has confirmed the stored response, which is fresh until `valid_s` (seconds since 1970).
    #[must_use]
    pub fn refresh(mut self, valid_s: i64) -> Committed {
        let refreshed = self.close(|epoch, node| {
            if !node.exists() {
                Committed::Purged
            } else if node.not_before > epoch {
                Committed::Stale
            } else {
                node.valid_s = valid_s;
                node.epoch = epoch;
                node.flags.set(Flags::STALE, false);
                Committed::Stored
            }
        });
        self.fill.settle();
        refreshed
    }

    /// Moves the fill of a variant to the key itself: the response has another `Vary`, or none. Returns whether the index
    /// has room; otherwise the response must not be stored.
    #[must_use]
    pub fn move_to_main(&mut self) -> bool {
        if self.id == self.main {
            return true;
        }
        let index = Arc::clone(&self.index);
        let Some((mut shard, slot, is_new)) = index.entry(&self.main, true) else {
            return false;
        };
        let node = shard.table.node_mut(slot);
        node.fills += 1;
        if node.fill.is_none() {
            node.fill = Some(Arc::clone(&self.fill));
        }
        index.set_known(node, self.main, is_new);
        drop(shard);
        let not_before = self.leave(|_, node| node.not_before);
        self.id = self.main;
        index.with(&self.main, |node| {
            node.not_before = node.not_before.max(not_before);
        });
        true
    }

    /// Ends the right to fill the entry, and then the time in which purges must wait for this fill.
    fn close<T>(&mut self, f: impl FnOnce(u64, &mut Node) -> T) -> T {
        let result = self.leave(f);
        self.is_open = false;
        self.index.purges.end_fill(self.fill.epoch());
        result
    }

    /// Runs `f` on the entry, and leaves it.
    fn leave<T>(&self, f: impl FnOnce(u64, &mut Node) -> T) -> T {
        let (hash, mut shard) = self.index.lock(&self.id);
        let slot = shard.table.find(hash, &self.id);
        let slot = slot.expect("an entry with a fill is not removed");
        let node = shard.table.node_mut(slot);
        let result = f(self.fill.epoch(), node);
        if self.is_publishing {
            node.flags.set(Flags::PUBLISHING, false);
        }
        node.fills -= 1;
        let is_own = |fill: &mut Arc<Fill>| Arc::ptr_eq(fill, &self.fill);
        node.fill.take_if(is_own);
        self.index.tidy(shard, slot);
        result
    }
}

impl Drop for FillToken {
    fn drop(&mut self) {
        if self.is_open {
            self.close(|_, _| ());
            self.fill.fail();
        }
    }
}
