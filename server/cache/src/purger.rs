//! Carries out purges by tag and prefix: reads the heads of all earlier files, in bounded steps.
//!
//! Purged entries are no longer served before this work begins; it frees their space, and makes the purge outlive the
//! process.

use crate::directory::Directory;
use crate::index::{Index, PurgeFacts, Walk, WalkAction, WalkEntry};
use crate::key::entry_id;
use crate::pace::{Pace, Step};

/// The purger of a cache.
#[derive(Debug, Default)]
pub struct Purger {
    walk: Option<Walk>,
    entries: Vec<WalkEntry>,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeStep {
    /// There is nothing to do.
    Idle,
    /// Another step is due after this number of milliseconds.
    Again(u64),
    /// All entries were visited; the number of purged ones.
    Done(u64),
}

impl Purger {
    /// Purges entries up to the bounds of a pace. `clock` returns monotonic milliseconds, `now_s` is in seconds since 1970.
    /// `failed` is called for a file that cannot be removed or changed.
    pub fn step(
        &mut self,
        index: &Index,
        directory: &Directory,
        pace: Pace,
        clock: &dyn Fn() -> u64,
        now_s: i64,
        mut failed: impl FnMut(std::io::Error),
    ) -> PurgeStep {
        if self.walk.is_none() {
            self.walk = index.begin_walk();
        }
        let Some(walk) = &mut self.walk else {
            return PurgeStep::Idle;
        };
        let mut step = Step::new(pace, clock);
        loop {
            while let Some(entry) = self.entries.pop() {
                let action = judge(index, directory, walk, &entry);
                let done = match action {
                    WalkAction::Keep => Ok(true),
                    WalkAction::Remove => directory.remove(&entry.id),
                    WalkAction::Expire => directory.expire(&entry.id, now_s),
                };
                if let Err(error) = done {
                    failed(error);
                }
                if step.count() {
                    return PurgeStep::Again(pace.sleep_ms);
                }
            }
            if !index.walk_step(walk, &mut self.entries) {
                let purged = walk.purged();
                index.end_walk(*walk);
                self.walk = None;
                return PurgeStep::Done(purged);
            }
            if step.is_late() {
                return PurgeStep::Again(pace.sleep_ms);
            }
        }
    }
}

/// Reads the head of an entry, and decides about it.
fn judge(index: &Index, directory: &Directory, walk: &mut Walk, entry: &WalkEntry) -> WalkAction {
    let start = directory.read_start(&entry.id).ok();
    let prefix = start.as_ref().and_then(|start| start.parse().ok());
    let facts = prefix.map(|prefix| PurgeFacts {
        main: entry_id(prefix.key),
        key: prefix.key,
        tags: prefix.notes.tags,
    });
    index.judge(walk, entry, facts.as_ref())
}

#[cfg(test)]
#[path = "purger_tests.rs"]
mod tests;
