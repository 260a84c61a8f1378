//! Names of rotated logs.
//!
//! Source: logrotate(8), `dateext`, `dateformat`, `extension`, `compress`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Returns whether a name is that of a rotated file of a log: with a number or a date behind its name, or before its extension.
/// It may be compressed by a format that is read.
pub(super) fn is_rotated(name: &OsStr, log: &OsStr) -> bool {
    let (name, log) = (plain(name), log.as_bytes());
    let dot = log.iter().rposition(|byte| *byte == b'.');
    let (stem, extension) = log.split_at(dot.unwrap_or(log.len()));
    let middle = name
        .strip_prefix(stem)
        .and_then(|rest| rest.strip_suffix(extension));
    is_behind(name, log) || !stem.is_empty() && middle.is_some_and(is_number)
}

/// Returns whether a name is that of a log with a number or a date behind it.
pub(super) fn is_rotated_behind(name: &OsStr, log: &OsStr) -> bool {
    is_behind(plain(name), log.as_bytes())
}

fn is_behind(name: &[u8], log: &[u8]) -> bool {
    !log.is_empty() && name.strip_prefix(log).is_some_and(is_number)
}

/// Returns whether a name is that of a compressed file.
pub(super) fn is_packed(name: &OsStr) -> bool {
    plain(name).len() < name.len()
}

/// The name without the end of a compression.
fn plain(name: &OsStr) -> &[u8] {
    let name = name.as_bytes();
    let ends = COMPRESSED.iter();
    let mut cut = ends.filter_map(|end| name.strip_suffix(end.as_bytes()));
    cut.next().unwrap_or(name)
}

/// A separator and a number, or a date of several.
fn is_number(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"._-:".contains(byte);
    let [b'.' | b'_' | b'-', parts @ .., last] = text else {
        return false;
    };
    last.is_ascii_digit() && parts.iter().all(is_part)
}

/// Ends of names of compressed files that are read.
const COMPRESSED: [&str; 3] = [".gz", ".zst", ".zstd"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rotated_logs_have_numbers_or_dates() {
        for (name, is_any, is_end) in [
            ("a.log.1", true, true),
            ("a.log-20261129", true, true),
            ("a.log-2026-11-29_11:00", true, true),
            ("a.log.12.gz", true, true),
            ("a.log_1.zst", true, true),
            ("a.log.1.zstd", true, true),
            ("a-20261129.log", true, false),
            ("a.1.log.gz", true, false),
            ("a.log", false, false),
            ("a.log.gz", false, false),
            ("a.log1", false, false),
            ("a.log.", false, false),
            ("a.log.1.", false, false),
            ("a.log.1.xz", false, false),
            ("a.log.1.bz2", false, false),
            ("a.log.old", false, false),
            ("ab.log", false, false),
            ("a1.log", false, false),
            ("a-b.log.1", false, false),
            ("b.log.1", false, false),
        ] {
            let (name, log) = (OsStr::new(name), OsStr::new("a.log"));
            assert_eq!(is_rotated(name, log), is_any, "{name:?}");
            assert_eq!(is_rotated_behind(name, log), is_end, "{name:?}");
        }
        assert!(is_rotated(OsStr::new("a.1"), OsStr::new("a")));
        assert!(!is_rotated(OsStr::new(".1"), OsStr::new("")));
        assert!(!is_rotated(OsStr::new("-1.log"), OsStr::new(".log")));
        assert!(is_packed(OsStr::new("a.log.1.gz")) && !is_packed(OsStr::new("a.log.1")));
    }
}
