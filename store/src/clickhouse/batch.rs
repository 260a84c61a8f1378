//! Files of batches: the first line describes the batch and includes a hash of all bytes; the rows follow.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::Error;

const MAGIC: &str = "firstbyte-spill";
const VERSION: &str = "1";
/// Longest first line of a file, bytes.
const HEAD_BYTES_MAX: usize = 512;

/// Table of the rows of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Connections,
    Open,
    Visits,
    Arms,
    Settings,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Connections,
        Self::Open,
        Self::Visits,
        Self::Arms,
        Self::Settings,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Connections => "connection",
            Self::Open => "open",
            Self::Visits => "visit",
            Self::Arms => "arm_minute",
            Self::Settings => "experiment",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Description of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchHead {
    pub(super) kind: Kind,
    pub(super) rows: u64,
    /// Times of the first and of the last row, Unix seconds; both are of one UTC day.
    pub(super) first_s: u64,
    pub(super) last_s: u64,
    /// Identity of the batch: the opening of its directory, and its number since then.
    pub(super) run: u64,
    pub(super) batch: u64,
}

impl BatchHead {
    pub(super) fn new(kind: Kind, first_s: u64) -> Self {
        Self {
            kind,
            rows: 0,
            first_s,
            last_s: first_s,
            run: 0,
            batch: 0,
        }
    }

    /// Returns whether counters count its rows: connections and page views.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.kind, Kind::Connections | Kind::Visits)
    }

    /// Counts a row.
    pub(super) fn add(&mut self, time_s: u64) {
        self.rows += 1;
        self.first_s = self.first_s.min(time_s);
        self.last_s = self.last_s.max(time_s);
    }

    /// The first line without its hash.
    pub(super) fn line(&self, bytes: usize) -> String {
        let Self {
            kind,
            rows,
            first_s,
            last_s,
            run,
            batch,
        } = self;
        let kind = kind.name();
        format!("{MAGIC} {VERSION} {kind} {rows} {first_s} {last_s} {run} {batch} {bytes}")
    }

    /// Reads the first line of a file. Returns the bytes and the hash of its rows too.
    pub(super) fn parse(line: &str) -> Option<(Self, usize, u64)> {
        let mut words = line.strip_suffix('\n')?.split(' ');
        if words.next()? != MAGIC || words.next()? != VERSION {
            return None;
        }
        let kind = Kind::of(words.next()?)?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let head = Self {
            kind,
            rows: number()?,
            first_s: number()?,
            last_s: number()?,
            run: number()?,
            batch: number()?,
        };
        let bytes = usize::try_from(number()?).ok()?;
        let hash = u64::from_str_radix(words.next()?, 16).ok()?;
        words.next().is_none().then_some((head, bytes, hash))
    }
}

/// Why a batch cannot be read.
#[derive(Debug)]
pub(super) enum ReadError {
    Damaged(String),
    System(Error),
}

/// Reads a batch, and checks its hash.
pub(super) fn read(path: &Path) -> Result<(BatchHead, Vec<u8>), ReadError> {
    let damaged = |why: &str| ReadError::Damaged(why.to_owned());
    let mut content = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(damaged("the file is gone"));
        }
        read => read.map_err(|error| ReadError::System(named(path, error)))?,
    };
    let end = content
        .iter()
        .take(HEAD_BYTES_MAX)
        .position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| damaged("its first line is damaged"))? + 1;
    let line = std::str::from_utf8(&content[..end]).ok();
    let parsed = line.and_then(BatchHead::parse);
    let (head, bytes, hash) = parsed.ok_or_else(|| damaged("its first line is damaged"))?;
    let rows = content.split_off(end);
    if rows.len() != bytes {
        let why = format!("it has {} bytes of {bytes}", rows.len());
        return Err(ReadError::Damaged(why));
    }
    if hash_of(&head.line(bytes), &rows) != hash {
        return Err(damaged("its hash does not fit"));
    }
    Ok((head, rows))
}

/// Reads the first line of a batch, and checks the size of its file, which it returns.
pub(super) fn head_of(path: &Path) -> Result<(BatchHead, u64), ReadError> {
    let system = |error| ReadError::System(named(path, error));
    let file = File::open(path).map_err(system)?;
    let size = file.metadata().map_err(system)?.len();
    let mut start = Vec::with_capacity(HEAD_BYTES_MAX);
    let mut limited = file.take(HEAD_BYTES_MAX as u64);
    limited.read_to_end(&mut start).map_err(system)?;
    let end = start
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let line = std::str::from_utf8(&start[..end]).ok();
    match line.and_then(BatchHead::parse) {
        Some((head, bytes, _)) if (end + bytes) as u64 == size => Ok((head, size)),
        Some(_) => Err(ReadError::Damaged("its size does not fit".to_owned())),
        None => Err(ReadError::Damaged("its first line is damaged".to_owned())),
    }
}

pub(super) fn named(path: &Path, error: std::io::Error) -> Error {
    match Error::from(error) {
        Error::Other(why) => Error::Other(format!("{}: {why}", path.display())),
        known => known,
    }
}

/// FNV-1a with 64 bits, <http://www.isthe.com/chongo/tech/comp/fnv/>, of the first line and the rows.
pub(super) fn hash_of(line: &str, rows: &[u8]) -> u64 {
    let all = line.bytes().chain(rows.iter().copied());
    all.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
