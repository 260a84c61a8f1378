//! Damaged files are moved aside, never deleted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::clock::wall_s;
use crate::error::Error;

/// Most files of that name attempted within one second.
const TRIES_MAX: u32 = 100;

/// A damaged file that has a new name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedAside {
    /// Its new path: the old one with `.damaged-YYYYMMDD-HHMMSS`, UTC.
    pub to: PathBuf,
    /// SQLite's description of the damage.
    pub reason: String,
}

/// Renames a store and its write-ahead log.
pub(super) fn move_aside(path: &Path, reason: &str) -> Result<MovedAside, Error> {
    let to = free_name(path, wall_s())?;
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(with(path, suffix), with(&to, suffix)) {
            Err(error) if suffix.is_empty() || error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(MovedAside {
        to,
        reason: reason.to_owned(),
    })
}

fn free_name(path: &Path, now_s: u64) -> Result<PathBuf, Error> {
    let first = with(path, &format!(".damaged-{}", stamp(now_s)));
    let later = (1..TRIES_MAX).map(|n| with(&first, &format!("-{n}")));
    std::iter::once(first.clone())
        .chain(later)
        .find(|name| fs::symlink_metadata(name).is_err())
        .ok_or_else(|| Error::Other(format!("{} and its successors exist", first.display())))
}

/// Appends to the last name of a path.
pub(super) fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes a Unix time as `YYYYMMDD-HHMMSS`.
fn stamp(at_s: u64) -> String {
    let (mut day, second) = (at_s / 86_400, at_s % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}{month:02}{:02}-{hour:02}{minute:02}{:02}",
        day + 1,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_735_689_599), "20241231-235959");
        assert_eq!(stamp(1_735_689_600), "20250101-000000");
        assert_eq!(stamp(4_107_542_399), "21000228-235959");
        assert_eq!(stamp(4_107_542_400), "21000301-000000");
    }
}
