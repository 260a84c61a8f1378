//! Entries for tests of the index and of periodic work.

use std::sync::Arc;

use super::*;
use crate::key::{CacheKey, EntryId};

/// A time in seconds since 1970.
pub(crate) const NOW_S: u32 = 1_800_000_000;
/// [`NOW_S`] with a monotonic time.
pub(crate) const NOW: Now = Now {
    mono_ms: 5000,
    unix_s: NOW_S,
};
/// No request waits for another.
pub(crate) const OFF: FillLock = FillLock::Off;

pub(crate) fn key(text: &str) -> CacheKey {
    CacheKey::new(text.as_bytes()).expect("it is short")
}

/// An index that knows all its files.
pub(crate) fn index(entries_max: u64) -> Arc<Index> {
    let index = Arc::new(Index::new(entries_max));
    index.set_loaded();
    index
}

pub(crate) fn file(blocks: u32) -> StoredFile {
    StoredFile {
        blocks,
        uniq: 77,
        body_start: 400,
        valid_s: i64::from(NOW_S) + 60,
    }
}

/// The entry of [`file`] that an update validates.
pub(crate) const VALIDATED: StoredEntry = StoredEntry {
    body_start: 400,
    uniq: 77,
    epoch: 0,
    walked: 0,
    valid_s: NOW_S as i64 + 60,
    is_stale: false,
    is_updating: false,
    is_known: true,
    uses: 1,
};

pub(crate) fn facts<'a>(key: &'a CacheKey, tags: &'a [u8]) -> PurgeFacts<'a> {
    PurgeFacts {
        main: key.id(),
        key: key.text(),
        tags,
    }
}

/// Begins a fill that no other request has begun.
pub(crate) fn start(index: &Arc<Index>, id: EntryId, key: &CacheKey, lock: FillLock) -> FillToken {
    match index.begin_fill(id, key, lock, NOW) {
        Begin::Started(token) => token,
        other => panic!("{other:?}"),
    }
}

/// Stores an entry of one block.
pub(crate) fn store(index: &Arc<Index>, id: EntryId, key: &CacheKey, tags: &[u8]) {
    let token = start(index, id, key, OFF);
    let stored = token.commit(&facts(key, tags), || Some(file(1)));
    assert_eq!(stored, Committed::Stored);
}

/// Stores the entry of a key.
pub(crate) fn store_key(index: &Arc<Index>, text: &str) {
    let key = key(text);
    store(index, key.id(), &key, b"");
}

/// Looks up an entry that is stored from its first request on.
pub(crate) fn look_up(index: &Index, id: EntryId, key: &CacheKey) -> Lookup {
    index.look_up(&id, &key.id(), 1, NOW_S)
}

/// Removes an entry and its file from the index.
pub(crate) fn purge_hard(index: &Index, key: &CacheKey) {
    let purged = index.purge_key(key, PurgeMode::Hard);
    purged.expect("there are few");
}

/// Looks up an entry that has a file.
pub(crate) fn stored(index: &Index, id: EntryId, key: &CacheKey) -> StoredEntry {
    match look_up(index, id, key) {
        Lookup::Stored(entry) => entry,
        other => panic!("{other:?}"),
    }
}

/// The id of a variant.
pub(crate) fn variant(n: u8) -> EntryId {
    EntryId([n ^ 0xa5; 16])
}
