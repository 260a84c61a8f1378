//! The entries of a cache in memory, shared by all threads.
//!
//! ```text
//! look_up     Stored, Error, Unseen, Scarce or Absent; counts the use
//! check       whether a purge concerns the stored response, at each hit
//! begin_fill  Started: this request receives the entry; Joined: another one does
//! FillToken   commit, commit_error, refresh; dropped, the fill has failed
//! purge_*     removes entries, or makes them stale; see `purges`
//! expire_one, evict_one, begin_walk    steps of periodic work
//! ```
//!
//! Shards have a lock each, and no lock is held over more than [`SLOTS_A_STEP`] entries or [`VARIANTS_MAX`] variants. No
//! thread waits for the lock of a shard while it holds another. The index never touches files: its callers open, name and
//! remove them. A file gets its name within [`FillToken::commit`], and is removed after its entry, within
//! [`Index::remove_unused`].
//!
//! While an index is cold, files may exist that it does not know: [`Lookup::Unseen`].
//!
//! Source: nginx documentation, `proxy_cache_path`; limits are ours.

mod core;
mod filling;
mod lookup;
mod node;
mod purge;
mod purges;
mod table;
mod variants;
mod wake;
mod walk;

pub use self::core::{ENTRIES_A_MEGABYTE, ENTRY_BYTES_MAX, Index, IndexStats, Victim, entries_max};
pub use filling::{Begin, Committed, FillLock, FillToken, Now};
pub use lookup::{Loaded, Lookup, StoredEntry};
pub use node::StoredFile;
pub use purge::PurgedKey;
pub use purges::{
    FILL_AGE_MAX_MS, PURGED_KEYS_MAX, PURGED_PREFIXES_MAX, PURGED_TAGS_MAX, PurgeError, PurgeFacts,
    PurgeMode,
};
pub use variants::VARIANTS_MAX;
pub use walk::{SLOTS_A_STEP, Walk, WalkAction, WalkEntry};

#[cfg(test)]
pub(crate) mod examples_tests;

#[cfg(test)]
mod eviction_tests;
#[cfg(test)]
mod filling_tests;
#[cfg(test)]
mod lookup_tests;
#[cfg(test)]
mod purge_order_tests;
#[cfg(test)]
mod purge_tests;
#[cfg(test)]
mod update_tests;
