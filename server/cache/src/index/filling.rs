//! The begin and the end of fills.

use std::sync::Arc;

use super::core::Index;
use super::lookup::StoredEntry;
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
    /// The entry has the response, which was purged softly since the request. Of an update: the caller makes the file stale.
    Stale,
    /// The file was not named. The response was purged since the request, or its fill began too long before a walk, or
    /// another fill names its own file.
    Refused,
    /// The file could not be named.
    Failed,
    /// The response was purged while the file was named: the caller removes the file by [`Index::remove_unused`]. Of an
    /// update: the stored response was purged.
    Purged,
    /// Of an update: the entry has another response by now, which is unchanged.
    Replaced,
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
    /// A fill is not joined after a purge of its key, or of any tag.
    #[must_use]
    pub fn begin_fill(
        self: &Arc<Self>,
        id: EntryId,
        key: &CacheKey,
        lock: FillLock,
        now: Now,
    ) -> Begin {
        let epoch = self.purges.begin_fill(now.mono_ms);
        let (token, was_unknown) = match self.begin_at(epoch, id, key, lock, now) {
            Ok(begun) => begun,
            Err(other) => {
                self.purges.end_fill(epoch, now.mono_ms);
                return other;
            }
        };
        if self.list_variant(key.id(), id, was_unknown) {
            return Begin::Started(token);
        }
        // Without room for the variant, its entry goes with the token.
        token.abandon();
        Begin::Full
    }

    /// Begins a fill of this epoch. Returns its token, and whether the key of the entry was unknown.
    fn begin_at(
        self: &Arc<Self>,
        epoch: u64,
        id: EntryId,
        key: &CacheKey,
        lock: FillLock,
        now: Now,
    ) -> Result<(FillToken, bool), Begin> {
        let main = key.id();
        let Some((mut shard, slot, is_new)) = self.entry(&id, true) else {
            return Err(Begin::Full);
        };
        let node = shard.table.node_mut(slot);
        if let (FillLock::Age(age_ms), Some(fill)) = (lock, &node.fill)
            && fill.started_ms().saturating_add(age_ms) > now.mono_ms
            && fill.progress().end.is_none()
            && fill.epoch() >= node.not_before
            && !self.is_purged_since(fill.epoch(), key)
        {
            return Err(Begin::Joined(Arc::clone(fill)));
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
        let was_unknown = node.set_known(main, is_new);
        drop(shard);
        let token = FillToken {
            index: Arc::clone(self),
            fill,
            id,
            main,
            is_open: true,
            is_publishing: false,
        };
        Ok((token, was_unknown))
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
    /// returns `None` if that fails. Only the lock of the path is held during its call.
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
        let index = Arc::clone(&self.index);
        let is_refused =
            || index.purges.is_too_old(epoch) || index.check(epoch, facts) == Some(PurgeMode::Hard);
        if is_refused() {
            return Committed::Refused;
        }
        // Until the entry has the file: the remover of an earlier file must not remove this one.
        let _path = index.lock_path(&self.id);
        let Some(file) = publish() else {
            return Committed::Failed;
        };
        self.close(|epoch, node| {
            // Under the lock of the entry: a later purge finds the entry as it is set here.
            let purged = index.check(epoch, facts);
            if node.not_before > epoch || is_refused() {
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

    /// Remembers until `valid_s` (seconds since 1970) that the server has failed with a status, if there is no file and
    /// no purge since the request.
    pub fn commit_error(mut self, key: &CacheKey, status: u16, valid_s: i64) {
        let index = Arc::clone(&self.index);
        self.close(|epoch, node| {
            let is_purged = node.not_before > epoch
                || index.purges.is_too_old(epoch)
                || index.is_purged_since(epoch, key);
            if !node.exists() && !is_purged {
                (node.error, node.valid_s, node.epoch) = (status, valid_s, epoch);
            }
        });
        self.fill.settle();
    }

    /// Ends an update: the server has confirmed the stored response, which is fresh until `valid_s` (seconds since 1970).
    ///
    /// `validated` is the entry with that response, `facts` are those of the response. The caller has written the new head
    /// to its file ([`crate::directory::Directory::update_header`]).
    #[must_use]
    pub fn refresh(
        mut self,
        validated: &StoredEntry,
        facts: &PurgeFacts<'_>,
        valid_s: i64,
    ) -> Committed {
        let index = Arc::clone(&self.index);
        let refreshed = self.close(|epoch, node| {
            if !node.exists() {
                return Committed::Purged;
            }
            if node.uniq != validated.uniq {
                return Committed::Replaced;
            }
            // A confirmed response may still have been purged: its server did not know about that.
            if index.check(node.epoch, facts) == Some(PurgeMode::Hard) {
                index.counts.remove_blocks(node.blocks);
                node.clear_file();
                return Committed::Purged;
            }
            let is_purged = node.not_before > epoch
                || index.purges.is_too_old(epoch)
                || index.check(epoch, facts).is_some();
            if is_purged {
                return Committed::Stale;
            }
            node.valid_s = valid_s;
            node.epoch = node.epoch.max(epoch);
            node.flags.set(Flags::STALE, false);
            Committed::Stored
        });
        self.fill.settle();
        refreshed
    }

    /// Ends a fill whose response may not be stored: each consumer sends its own request.
    pub fn abandon(mut self) {
        if self.is_open {
            self.close(|_, _| ());
            self.fill.refuse();
        }
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
        let was_unknown = node.set_known(self.main, is_new);
        drop(shard);
        index.list_variant(self.main, self.main, was_unknown);
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
        let (epoch, started_ms) = (self.fill.epoch(), self.fill.started_ms());
        self.index.purges.end_fill(epoch, started_ms);
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
