//! Carries out purges by tag and prefix: reads the heads of all earlier files, in bounded steps.
//!
//! Purged entries are no longer served before this work begins; it frees their space, and makes the purge outlive the
//! process.

use std::io;

use crate::directory::{Directory, FileIdentity};
use crate::index::{Index, PurgeFacts, Walk, WalkAction, WalkEntry};
use crate::key::{EntryId, entry_id};
use crate::pace::{Pace, Step};

/// Maximum number of entries whose files cannot be read, before the walk waits for them.
pub const UNREADABLE_MAX: usize = 64;
/// Pause after a file that cannot be read, milliseconds.
const UNREADABLE_MS: u64 = 1000;

/// The purger of a cache.
#[derive(Debug, Default)]
pub struct Purger {
    walk: Option<Walk>,
    entries: Vec<WalkEntry>,
    /// Entries that are read again.
    unreadable: Vec<WalkEntry>,
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
    /// `failed` is called for a file that cannot be read, removed or changed. A file that cannot be read is left alone, and
    /// read again: a purge ends once all files were read.
    pub fn step(
        &mut self,
        index: &Index,
        directory: &Directory,
        pace: Pace,
        clock: &dyn Fn() -> u64,
        now_s: i64,
        mut failed: impl FnMut(io::Error),
    ) -> PurgeStep {
        if self.walk.is_none() {
            self.walk = index.begin_walk(clock());
        }
        let Some(walk) = &mut self.walk else {
            return PurgeStep::Idle;
        };
        let mut step = Step::new(pace, clock);
        // Long: one walk over entries, with the places where a step may end.
        loop {
            while let Some(entry) = self.entries.pop() {
                match judge(index, directory, walk, &entry) {
                    Ok((action, seen)) => {
                        let id = &entry.id;
                        if let Err(error) = carry_out(action, seen, index, directory, id, now_s) {
                            failed(error);
                        }
                    }
                    Err(error) => {
                        self.unreadable.push(entry);
                        failed(error);
                        return PurgeStep::Again(pace.sleep_ms.max(UNREADABLE_MS));
                    }
                }
                if step.count() {
                    return PurgeStep::Again(pace.sleep_ms);
                }
            }
            let is_waiting = self.unreadable.len() >= UNREADABLE_MAX;
            if is_waiting || !index.walk_step(walk, &mut self.entries) {
                if !self.unreadable.is_empty() {
                    std::mem::swap(&mut self.entries, &mut self.unreadable);
                    continue;
                }
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

/// Reads the head of an entry, and decides about it. A missing or damaged file is purged.
fn judge(
    index: &Index,
    directory: &Directory,
    walk: &mut Walk,
    entry: &WalkEntry,
) -> io::Result<(WalkAction, Option<FileIdentity>)> {
    let start = match directory.read_start(&entry.id) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        start => Some(start?),
    };
    let prefix = start.as_ref().and_then(|start| start.parse().ok());
    let facts = prefix.map(|prefix| PurgeFacts {
        main: entry_id(prefix.key),
        key: prefix.key,
        tags: prefix.notes.tags,
    });
    let action = index.judge(walk, entry, facts.as_ref());
    Ok((action, start.map(|start| start.identity())))
}

fn carry_out(
    action: WalkAction,
    seen: Option<FileIdentity>,
    index: &Index,
    directory: &Directory,
    id: &EntryId,
    now_s: i64,
) -> io::Result<()> {
    match action {
        WalkAction::Keep => {}
        WalkAction::Remove => {
            let removed = index.remove_unused(id, || directory.remove(id));
            removed.transpose()?;
        }
        WalkAction::Expire => {
            // The file of a later response is fresh.
            directory.expire(id, seen, now_s)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "purger_tests.rs"]
mod tests;
