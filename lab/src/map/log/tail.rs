//! A log that is followed: by rotation of its file by another, and by truncation behind a copy, without a lost line.
//!
//! A server writes to a renamed file until it opens its logs anew, so such a file is read on for [`RETIRED_S`]. A file that was
//! copied and truncated may have had lines since the last look; they are read of the copy. The bytes before the last place
//! identify the copy, and show a truncation also if the file has grown beyond that place again.
//!
//! Source: logrotate(8), `create`, `copytruncate`, `compress`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use sys::os_error;

use super::feed::Feed;
use super::parsers::Parsers;
use super::rotated::{is_packed, is_rotated};
use super::source::Source;

/// A followed log.
pub(super) struct Tail {
    path: PathBuf,
    /// The file of the path. `None` until it exists.
    current: Option<Open>,
    /// Files that had the path before.
    retired: Vec<(Open, Instant)>,
    /// For the first file.
    feed: Option<Feed>,
    /// Sentences about lost lines.
    lost: Vec<String>,
    /// Why the path cannot be opened now.
    trouble: Option<String>,
    /// The file of the path if another log reads it.
    foreign: Option<Id>,
    /// Its files to come are read under another name.
    is_last: bool,
}

/// Device and number of a file.
type Id = (u64, u64);

/// Files that are open in all followed logs. A file that is renamed from one log to another is read once.
pub(super) type Held = HashSet<Id>;

/// An open file.
struct Open {
    file: File,
    id: Id,
    offset: u64,
    /// The last bytes before the offset.
    mark: Vec<u8>,
    feed: Feed,
}

impl Tail {
    /// Follows the file of a path, which need not exist. If `is_last`, files that get the path later are ignored.
    pub(super) fn new(path: &Path, feed: Feed, is_last: bool) -> Self {
        Self {
            path: path.to_owned(),
            current: None,
            retired: Vec::new(),
            feed: Some(feed),
            lost: Vec::new(),
            trouble: None,
            foreign: None,
            is_last,
        }
    }

    /// Sentences about lines that are lost, or cannot be read now.
    pub(super) fn faults(&self) -> impl Iterator<Item = &String> {
        self.lost.iter().chain(&self.trouble)
    }

    /// The feed of the current file.
    pub(super) fn feed(&self) -> Option<&Feed> {
        let current = self.current.as_ref().map(|open| &open.feed);
        current.or(self.feed.as_ref())
    }

    /// Reads available data, at most a block of each file. Returns the number of lines, and whether there may be more.
    ///
    /// # Errors
    /// A file cannot be read, or its format is unknown.
    pub(super) fn step(
        &mut self,
        parsers: &mut Parsers<'_>,
        held: &mut Held,
    ) -> Result<(u64, bool), String> {
        let mut lines = self.look(parsers, held)?;
        let mut is_more = false;
        let cannot =
            |error: io::Error| format!("cannot read {}: {}", self.path.display(), os_error(&error));
        for (open, since) in &mut self.retired {
            let (count, own) = open.read(parsers, &cannot)?;
            if count > 0 {
                *since = Instant::now();
            }
            (lines, is_more) = (lines + own, is_more | (count > 0));
        }
        if let Some(open) = &mut self.current {
            if open.is_truncated().map_err(cannot)? {
                let (count, is_found) = open.rest_of_copy(&self.path, parsers)?;
                lines += count + open.feed.finish(parsers)?;
                if !is_found {
                    let name = self.path.display();
                    self.lost.push(format!(
                        "{name} was truncated, and no copy was found: its last lines may be lost"
                    ));
                }
                open.feed = open.feed.successor();
                (open.offset, open.mark) = (0, Vec::new());
            }
            let (count, own) = open.read(parsers, &cannot)?;
            (lines, is_more) = (lines + own, is_more | (count > 0));
        }
        Ok((lines, is_more))
    }

    /// Opens the file of the path if it is another, and closes old files.
    fn look(&mut self, parsers: &mut Parsers<'_>, held: &mut Held) -> Result<u64, String> {
        let mut lines = 0;
        let is_over = |since: &Instant| since.elapsed() >= Duration::from_secs(RETIRED_S);
        while let Some(at) = self.retired.iter().position(|(_, since)| is_over(since)) {
            lines += self.give_up(at, parsers, held)?;
        }
        let own = self.current.as_ref().map(|open| open.id);
        if own.is_some() && self.is_last {
            return Ok(lines);
        }
        let is_known = |id: Id, foreign| [own, foreign].contains(&Some(id));
        if identity(&self.path).is_some_and(|id| is_known(id, self.foreign)) {
            self.trouble = None;
            return Ok(lines);
        }
        let (file, id) = match opened(&self.path) {
            Ok(opened) => opened,
            // Between two files of a path there may be none.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.trouble = None;
                return Ok(lines);
            }
            Err(error) => {
                let why = format!("cannot read {}: {}", self.path.display(), os_error(&error));
                if own.is_none() {
                    return Err(why);
                }
                // A new file may get its permissions a moment later.
                self.trouble = Some(why);
                return Ok(lines);
            }
        };
        self.trouble = None;
        if is_known(id, self.foreign) {
            return Ok(lines);
        }
        if !held.insert(id) {
            self.foreign = Some(id);
            return Ok(lines);
        }
        let feed = match (&self.current, self.feed.take()) {
            (Some(open), _) => open.feed.successor(),
            (None, Some(feed)) => feed,
            (None, None) => return Ok(lines),
        };
        let open = Open {
            file,
            id,
            offset: 0,
            mark: Vec::new(),
            feed,
        };
        if let Some(before) = self.current.replace(open) {
            self.retired.push((before, Instant::now()));
        }
        if self.retired.len() > RETIRED_MAX {
            lines += self.give_up(0, parsers, held)?;
        }
        Ok(lines)
    }

    /// Closes a file that had the path before. Returns the number of lines.
    fn give_up(
        &mut self,
        at: usize,
        parsers: &mut Parsers<'_>,
        held: &mut Held,
    ) -> Result<u64, String> {
        let (mut open, _) = self.retired.remove(at);
        held.remove(&open.id);
        open.feed.finish(parsers)
    }

    /// Parses lines without an end. Returns the number of lines.
    ///
    /// # Errors
    /// The format is unknown.
    pub(super) fn finish(&mut self, parsers: &mut Parsers<'_>) -> Result<u64, String> {
        let mut lines = 0;
        let retired = self.retired.iter_mut().map(|(open, _)| open);
        for open in retired.chain(&mut self.current) {
            lines += open.feed.finish(parsers)?;
        }
        Ok(lines)
    }
}

impl Open {
    /// Reads once at the offset. Returns the numbers of bytes and of lines.
    fn read(
        &mut self,
        parsers: &mut Parsers<'_>,
        cannot: &dyn Fn(io::Error) -> String,
    ) -> Result<(usize, u64), String> {
        let room = self.feed.room();
        let count = self.file.read_at(room, self.offset).map_err(cannot)?;
        if count == 0 {
            return Ok((0, 0));
        }
        let added = &room[..count];
        let kept = MARK_BYTES.saturating_sub(count).min(self.mark.len());
        self.mark.drain(..self.mark.len() - kept);
        self.mark
            .extend_from_slice(&added[count - count.min(MARK_BYTES)..]);
        self.offset += count as u64;
        let lines = self.feed.filled(count, parsers)?;
        Ok((count, lines + self.feed.flush(parsers)?))
    }

    /// Whether the file has no longer the bytes that were read.
    fn is_truncated(&self) -> io::Result<bool> {
        let size = self.file.metadata()?.len();
        if size <= self.offset {
            return Ok(size < self.offset);
        }
        let mut now = vec![0; self.mark.len()];
        let begin = self.offset - now.len() as u64;
        Ok(match self.file.read_exact_at(&mut now, begin) {
            Ok(()) => now != self.mark,
            // It was truncated a moment ago.
            Err(_) => true,
        })
    }

    /// Reads the rest of a copy that was made before the file was truncated. Returns the number of lines, and whether there is a
    /// copy.
    fn rest_of_copy(
        &mut self,
        path: &Path,
        parsers: &mut Parsers<'_>,
    ) -> Result<(u64, bool), String> {
        // A copy that is compressed meanwhile has another name in the second list.
        let rest = (0..2).find_map(|_| copies(path).iter().find_map(|copy| self.rest_of(copy)));
        let Some(mut rest) = rest else {
            return Ok((0, false));
        };
        let mut lines = 0;
        loop {
            match rest.read(self.feed.room()) {
                Ok(count @ 1..) => lines += self.feed.filled(count, parsers)?,
                Ok(0) | Err(_) => return Ok((lines, true)),
            }
        }
    }

    /// The bytes of a copy from the offset on. `None` if it has other bytes before.
    fn rest_of(&self, copy: &Path) -> Option<Box<dyn Read>> {
        let mut bytes = Source::new(File::open(copy).ok()?).ok()?.bytes;
        let before = self.offset - self.mark.len() as u64;
        let skipped = io::copy(&mut bytes.by_ref().take(before), &mut io::sink()).ok()?;
        let mut mark = vec![0; self.mark.len()];
        bytes.read_exact(&mut mark).ok()?;
        (skipped == before && mark == self.mark).then_some(bytes)
    }
}

/// Files beside a log that may be copies of it, the latest first. A file that is being compressed is there as well, and whole.
fn copies(path: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let directory = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(bool, SystemTime, PathBuf)> = entries
        .filter(|entry| is_rotated(&entry.file_name(), name))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let is_plain = !is_packed(&entry.file_name());
            Some((is_plain, metadata.modified().ok()?, entry.path()))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found.truncate(COPIES_MAX);
    found.into_iter().map(|(.., path)| path).collect()
}

fn identity(path: &Path) -> Option<Id> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn opened(path: &Path) -> io::Result<(File, Id)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    Ok((file, (metadata.dev(), metadata.ino())))
}

/// Seconds for which a renamed file is read after its last line.
const RETIRED_S: u64 = 60;
/// Renamed files that are read; an older one is given up.
const RETIRED_MAX: usize = 8;
/// Bytes that identify a file.
const MARK_BYTES: usize = 1024;
/// Files that are compared with a truncated one.
const COPIES_MAX: usize = 8;
