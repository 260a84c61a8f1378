//! Watched files, which are reloaded without HUP: finds new contents for `ReloadStep::Renew`.
//!
//! Once a second the state of each file is compared with its state when it was read. A change counts if two checks
//! found the same state, so that no file is read while it is written. Files that belong together (a certificate and its
//! key) are loaded together: until they match, the generation keeps the old bytes, and the reason is logged once for
//! each state. The next generation has the loaded text of the configuration, even if that has changed on the disk.
//! Connections stay.
//!
//! Absent: inotify. The replaced object is mostly a link, or a directory above it; a check of the path covers these,
//! too.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use conf::Stamp;
use server_base::errlog::Level;
use server_base::watch::Watch;

use super::open::{FileContents, OpenConfig};
use crate::console::Console;

/// Results of earlier looks.
#[derive(Debug, Default)]
pub(super) struct FileWatcher {
    due: Option<Instant>,
    /// The generation that the rest is about.
    generation: u64,
    /// The states of the last look; none for a file that is not there.
    seen: HashMap<PathBuf, Option<Stamp>>,
    /// States of files that could not be loaded, which were logged.
    refused: HashMap<PathBuf, Option<Stamp>>,
}

/// The bytes of files that have changed.
type Changes = HashMap<PathBuf, (Option<Stamp>, io::Result<Vec<u8>>)>;

impl FileWatcher {
    /// Returns the time of the next check; `None` if this generation has no watched files.
    pub(super) fn due(&self, generation: &OpenConfig) -> Option<Instant> {
        let watches = !generation.watches.is_empty();
        watches.then(|| self.due.unwrap_or_else(|| Instant::now() + LOOK_EVERY))
    }

    /// Whether it is time to look; if so, the next look is planned.
    pub(super) fn is_due(&mut self, generation: &OpenConfig, now: Instant) -> bool {
        let due = self.due(generation);
        let is_due = due.is_some_and(|due| due <= now);
        self.due = if is_due { Some(now + LOOK_EVERY) } else { due };
        is_due
    }

    /// New contents of files, in the order of their paths. Contents that cannot be served are logged.
    pub(super) fn news(
        &mut self,
        current: &mut OpenConfig,
        console: &Console,
    ) -> Vec<FileContents> {
        let mut changes = self.changed_files(current);
        for fault in self.sift(current, &mut changes) {
            report(&fault, console);
        }
        let mut news = Vec::new();
        for (path, (stamp, bytes)) in changes {
            let (Some(stamp), Ok(bytes)) = (stamp, bytes) else {
                continue;
            };
            match current.file(&path) {
                Some((known, _)) if known == bytes => current.restamp(&path, stamp),
                _ => news.push((path, stamp, bytes)),
            }
        }
        news.sort_by(|a, b| a.0.cmp(&b.0));
        news
    }

    /// Logs why new contents cannot be served, and ignores them until the files change again.
    pub(super) fn refuse(&mut self, news: &[FileContents], why: &str, console: &Console) {
        let states = news
            .iter()
            .map(|(path, stamp, _)| (path.clone(), Some(*stamp)));
        self.refused.extend(states);
        report(why, console);
    }

    /// Returns the files of a generation that changed before the last check and not since. If all of them were refused
    /// in this state, returns none.
    fn changed_files(&mut self, generation: &OpenConfig) -> Changes {
        if self.generation != generation.number {
            self.generation = generation.number;
            self.refused.clear();
        }
        let mut changes = Changes::new();
        let mut is_new = false;
        let mut now = HashMap::new();
        for watch in &generation.watches {
            for path in watch.paths() {
                now.entry(path.clone())
                    .or_insert_with(|| Stamp::of(path).ok());
            }
        }
        let before = std::mem::replace(&mut self.seen, now);
        for (path, stamp) in &self.seen {
            let known = generation.file(path).and_then(|(_, stamp)| stamp);
            if *stamp == known || before.get(path) != Some(stamp) {
                continue;
            }
            is_new |= self.refused.get(path) != Some(stamp);
            let bytes = read(path);
            if Stamp::of(path).ok() == *stamp {
                changes.insert(path.clone(), (*stamp, bytes));
            }
        }
        match is_new {
            true => changes,
            false => Changes::new(),
        }
    }

    /// Returns whether a file is changing now, so that the next check decides. A refused file counts with its old
    /// bytes.
    fn is_moving(&self, path: &Path, generation: &OpenConfig, changes: &Changes) -> bool {
        let known = generation.file(path).and_then(|(_, stamp)| stamp);
        let seen = self.seen.get(path).copied().flatten();
        let is_refused = self.refused.get(path) == Some(&seen);
        seen != known && !is_refused && !changes.contains_key(path)
    }

    /// Drops changes that cannot be served; returns their errors that were not logged yet.
    fn sift(&mut self, generation: &OpenConfig, changes: &mut Changes) -> Vec<String> {
        let mut faults = Vec::new();
        let has = |changes: &Changes, watch: &dyn Watch| {
            watch.paths().iter().any(|path| changes.contains_key(path))
        };
        // A dropped file may belong to another watch, which is then checked again.
        loop {
            let candidates = generation.watches.iter();
            let mut candidates = candidates.filter(|watch| has(changes, watch.as_ref()));
            let refused = candidates.find_map(|watch| {
                let moves = |path: &PathBuf| self.is_moving(path, generation, changes);
                if watch.paths().iter().any(moves) {
                    return Some((watch, None));
                }
                let why = watch
                    .check(&|path| bytes(path, generation, changes))
                    .err()?;
                Some((watch, Some(why)))
            });
            let Some((watch, why)) = refused else {
                return faults;
            };
            let mut is_told = true;
            for path in watch.paths() {
                if let Some((stamp, _)) = changes.remove(path)
                    && why.is_some()
                {
                    is_told &= self.refused.insert(path.clone(), stamp) == Some(stamp);
                }
            }
            faults.extend(why.filter(|_| !is_told));
        }
    }
}

fn report(why: &str, console: &Console) {
    let text = format_args!("{why}, the previous content stays in use");
    console.report(Level::Error, text);
}

/// Reads a regular file. Others are refused, since the supervisor must not wait for a pipe.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
        return Err(io::Error::from_raw_os_error(EINVAL));
    }
    std::fs::read(path)
}

/// Contents of a file with these changes.
fn bytes(path: &Path, generation: &OpenConfig, changes: &Changes) -> io::Result<Vec<u8>> {
    match changes.get(path) {
        Some((_, Ok(bytes))) => Ok(bytes.clone()),
        Some((_, Err(error))) => Err(match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => error.kind().into(),
        }),
        None => match generation.file(path) {
            Some((bytes, _)) => Ok(bytes.to_vec()),
            None => Err(io::ErrorKind::NotFound.into()),
        },
    }
}

/// Invalid argument.
const EINVAL: i32 = 22;

/// Largest watched file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Interval between checks of files. A change is loaded at the second check, within twice this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
