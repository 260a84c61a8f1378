//! Removes entries that are unused, and the oldest ones of a cache that is too large.
//!
//! Source: nginx documentation, `proxy_cache_path`.

use crate::index::Index;
use crate::key::EntryId;
use crate::pace::{Pace, Step};

/// Longest pause of the manager, milliseconds.
const PAUSE_MS: u64 = 10_000;
/// Pause if all old entries are in use, milliseconds.
const BUSY_MS: u64 = 1000;

/// Bounds of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagerConf {
    /// `max_size` in blocks; [`u64::MAX`] for none.
    pub max_blocks: u64,
    /// `min_free`, bytes; 0 for none.
    pub min_free_bytes: u64,
    /// `inactive`, seconds.
    pub inactive_s: u32,
    /// `manager_files`, `manager_sleep`, `manager_threshold`.
    pub pace: Pace,
}

impl Default for ManagerConf {
    /// The defaults of nginx.
    fn default() -> Self {
        Self {
            max_blocks: u64::MAX,
            min_free_bytes: 0,
            inactive_s: 600,
            pace: Pace::default(),
        }
    }
}

/// The files of a cache, as the manager sees them.
pub trait ManagedFiles {
    /// Returns the available bytes of the file system; `None` if they are not known.
    fn available_bytes(&mut self) -> Option<u64>;
    /// Removes the file of an entry, and logs an error.
    fn remove(&mut self, id: &EntryId);
}

/// Removes entries in one bounded step, and returns the milliseconds until the next. `clock` returns monotonic
/// milliseconds, `now_s` is in seconds since 1970.
pub fn manage(
    index: &Index,
    conf: &ManagerConf,
    files: &mut impl ManagedFiles,
    clock: &dyn Fn() -> u64,
    now_s: u32,
) -> u64 {
    let mut step = Step::new(conf.pace, clock);
    // Entries that requests have removed for others. One may have been stored again.
    for id in index.take_doomed(conf.pace.files.max(1) as usize) {
        index.remove_unused(&id, || files.remove(&id));
        step.count();
    }
    while let Some(victim) = index.expire_one(now_s, conf.inactive_s) {
        if victim.has_file {
            index.remove_unused(&victim.id, || files.remove(&victim.id));
        }
        if step.count() {
            return conf.pace.sleep_ms;
        }
    }
    // Their blocks still count, so other entries would be removed for them.
    if index.doomed() > 0 {
        return conf.pace.sleep_ms;
    }
    while is_too_large(index, conf, files) {
        let Some(victim) = index.evict_one() else {
            let is_empty = index.stats().entries == 0;
            return if is_empty { PAUSE_MS } else { BUSY_MS };
        };
        if victim.has_file {
            index.remove_unused(&victim.id, || files.remove(&victim.id));
        }
        if step.count() {
            return conf.pace.sleep_ms;
        }
    }
    let next_s = index.next_expiry_s(now_s, conf.inactive_s);
    next_s.map_or(PAUSE_MS, |next_s| {
        (u64::from(next_s) * 1000).clamp(BUSY_MS, PAUSE_MS)
    })
}

/// Whether the oldest entry is to be removed.
fn is_too_large(index: &Index, conf: &ManagerConf, files: &mut impl ManagedFiles) -> bool {
    if index.stats().blocks >= conf.max_blocks || index.is_crowded() {
        return true;
    }
    let is_short = |available| available <= conf.min_free_bytes;
    conf.min_free_bytes > 0 && files.available_bytes().is_some_and(is_short)
}

#[cfg(test)]
#[path = "manager_tests.rs"]
mod tests;
