//! Which of the files that a configuration watches have changed, and what of that can be served by.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use conf::Stamp;
use server_base::watch::Watch;

use super::open::OpenConfig;

/// Results of earlier looks.
#[derive(Debug, Default)]
pub(super) struct FileWatcher {
    pub(super) due: Option<Instant>,
    /// The generation that the rest is about.
    generation: u64,
    /// The states of the last look; none for a file that is not there.
    seen: HashMap<PathBuf, Option<Stamp>>,
    /// States of files that could not be loaded, which were logged.
    pub(super) refused: HashMap<PathBuf, Option<Stamp>>,
}

/// The bytes of files that have changed.
#[derive(Default)]
pub(super) struct Changes(pub(super) HashMap<PathBuf, (Option<Stamp>, io::Result<Vec<u8>>)>);

impl FileWatcher {
    /// When files are to be looked at again, if any of this generation are.
    pub(super) fn due(&self, generation: &OpenConfig) -> Option<Instant> {
        let watches = !generation.watches.is_empty();
        watches.then(|| self.due.unwrap_or_else(|| Instant::now() + LOOK_EVERY))
    }

    /// Looks at the files of a generation; returns those that have changed and stay as they are now, unless all of them
    /// were refused in this state.
    pub(super) fn look(&mut self, generation: &OpenConfig) -> Changes {
        if self.generation != generation.number {
            self.generation = generation.number;
            self.refused.clear();
        }
        let mut changes = Changes::default();
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
                changes.0.insert(path.clone(), (*stamp, bytes));
            }
        }
        match is_new {
            true => changes,
            false => Changes::default(),
        }
    }

    /// Whether a file changes at this time: the next look will tell. One that was refused counts with the bytes it had.
    fn is_moving(&self, path: &Path, generation: &OpenConfig, changes: &Changes) -> bool {
        let known = generation.file(path).and_then(|(_, stamp)| stamp);
        let seen = self.seen.get(path).copied().flatten();
        let is_refused = self.refused.get(path) == Some(&seen);
        seen != known && !is_refused && !changes.0.contains_key(path)
    }

    /// Keeps the changes that can be served; returns the errors of the rest that were not logged yet.
    pub(super) fn sift(&mut self, generation: &OpenConfig, changes: &mut Changes) -> Vec<String> {
        let mut faults = Vec::new();
        let has = |changes: &Changes, watch: &dyn Watch| {
            watch
                .paths()
                .iter()
                .any(|path| changes.0.contains_key(path))
        };
        // What is taken back may be part of something else, too, which then has to be looked at again.
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
                if let Some((stamp, _)) = changes.0.remove(path)
                    && why.is_some()
                {
                    is_told &= self.refused.insert(path.clone(), stamp) == Some(stamp);
                }
            }
            faults.extend(why.filter(|_| !is_told));
        }
    }
}

/// The bytes of a file. Anything else is refused, since the supervisor must not wait for a pipe.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
        return Err(io::Error::from_raw_os_error(EINVAL));
    }
    std::fs::read(path)
}

/// Contents of a file with these changes.
fn bytes(path: &Path, generation: &OpenConfig, changes: &Changes) -> io::Result<Vec<u8>> {
    match changes.0.get(path) {
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

/// Interval between looks at files. A change is loaded at the second look, within twice this time.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
