//! Users of access logs, with the mean of a value of each: how much users differ decides the size of an experiment.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read};
use std::sync::Arc;

use super::cutter::{Block, Cutter};
use super::detect::detect;
use super::line::{Field, LineFormat};
use super::source::{Source, open};
use super::{Input, names};
use crate::stats::sequence::Summary;

/// Values of users.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Users {
    /// Means of the users' values.
    pub values: Summary,
    /// Lines without empty ones.
    pub lines: u64,
    /// Lines without a user or without a value.
    pub skipped: u64,
}

/// Reads logs to their ends, with the value that `field` names. Of more than 4 million users, the first ones count.
///
/// # Errors
/// A log cannot be read, or its format is unknown.
pub fn users(inputs: &[Input], field: &Field) -> Result<Users, String> {
    let mut found = Found::default();
    for input in inputs {
        found.log(input, field)?;
    }
    let mut users = found.users;
    for (sum, count) in found.sums.values() {
        users.values.push(sum / f64::from(*count));
    }
    Ok(users)
}

/// Sums of users by the hash of their names: two of 4 million users share one by a chance of 10^-6.
#[derive(Default)]
struct Found {
    users: Users,
    sums: HashMap<u64, (f64, u32)>,
    hashes: RandomState,
}

impl Found {
    fn log(&mut self, input: &Input, field: &Field) -> Result<(), String> {
        let name = input.name();
        let cannot = |why: &dyn std::fmt::Display| format!("cannot read {name}: {why}");
        let path = input.path.as_deref();
        // Standard input has a name of its own in the system.
        let file = open(path.unwrap_or_else(|| "/dev/stdin".as_ref()))?;
        let mut source = Source::new(file).map_err(|error| cannot(&error))?;
        let mut formats = input.formats.clone();
        let mut cutter = Cutter::default();
        loop {
            let taken = match source.bytes.read(cutter.room()) {
                Ok(0) => break,
                Ok(count) => {
                    cutter.filled(count);
                    cutter.is_full().then(|| cutter.take(Block::default()))
                }
                // A pipe has nothing yet.
                Err(error) if is_early(error.kind()) => None,
                Err(error) => return Err(cannot(&error)),
            };
            if let Some(Ok(block)) = taken {
                self.block(
                    block.bytes(),
                    formats_of(&mut formats, block.bytes(), &name, field)?,
                );
            }
        }
        if let Ok(rest) = cutter.finish(Block::default()) {
            self.block(
                rest.bytes(),
                formats_of(&mut formats, rest.bytes(), &name, field)?,
            );
        }
        Ok(())
    }

    fn block(&mut self, block: &[u8], formats: &[LineFormat]) {
        for line in block.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            self.users.lines += 1;
            match formats.iter().find_map(|format| format.user(line)) {
                Some((user, value)) => self.count(user, value),
                None => self.users.skipped += 1,
            }
        }
    }

    fn count(&mut self, user: &[u8], value: f64) {
        let hash = self.hashes.hash_one(user);
        let is_full = self.sums.len() >= USERS_MAX;
        if is_full && !self.sums.contains_key(&hash) {
            self.users.skipped += 1;
            return;
        }
        let (sum, count) = self.sums.entry(hash).or_default();
        *sum += value;
        *count = count.saturating_add(1);
    }
}

fn is_early(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The formats of a log; those that are unknown are detected by the first block.
fn formats_of<'f>(
    formats: &'f mut Option<Arc<Vec<LineFormat>>>,
    block: &[u8],
    name: &str,
    field: &Field,
) -> Result<&'f [LineFormat], String> {
    if formats.is_none() {
        let found = detect(block, field).ok_or_else(|| {
            let known = names();
            format!("{name}: no known format with these fields; --format names the format of the log: its text, or one of {known}")
        })?;
        *formats = Some(Arc::new(vec![found]));
    }
    Ok(formats.as_deref().map_or(&[], Vec::as_slice))
}

/// Users with values; 200 MB of memory.
const USERS_MAX: usize = 4_000_000;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use firstbyte_tests::TempDir;

    use super::*;
    use crate::map::log::{Format, format_named};

    fn field(user: &str) -> Field {
        let field = Field::of_name(user).and_then(|field| field.with_value("$request_time"));
        field.expect("they are names")
    }

    fn read(path: &Path, format: Option<&str>, user: &str) -> Result<Users, String> {
        let field = field(user);
        let compiled = format.map(|text| {
            let format = Format::of_option(text).expect("it is a format");
            LineFormat::compile("x", &format, &field).map(|format| Arc::new(vec![format]))
        });
        let input = Input {
            path: Some(path.to_owned()),
            formats: compiled.transpose()?,
        };
        users(&[input], &field)
    }

    #[test]
    fn each_user_counts_once() {
        let dir = TempDir::new();
        let path = dir.path().join("a.log");
        dir.write(
            "a.log",
            "a 1.0\nb 2.0\na 3.0\n\nc -\nd x\nline\nc 0.000\r\n- 1.0\nb 4.0",
        );
        let found =
            read(&path, Some("$cookie_uid $request_time"), "cookie_uid").expect("it is read");
        let mut values = found.values;
        assert_eq!((values.n(), found.lines, found.skipped), (3, 9, 4));
        // Means are 2, 3 and 0.
        assert!((values.mean() - 5.0 / 3.0).abs() < 1e-12);
        values.push(5.0 / 3.0);
        assert!((values.variance() - 14.0 / 9.0).abs() < 1e-9, "{values:?}");
    }

    #[test]
    fn lines_of_json_are_detected() {
        let dir = TempDir::new();
        let lines = (0..30_000).map(|n| {
            format!(
                "{{\"remote_addr\":\"192.0.2.{}\",\"request_time\":{}.5}}\n",
                n % 100,
                n % 2
            )
        });
        dir.write("a.log", lines.collect::<String>());
        let path = dir.path().join("a.log");
        let found = read(&path, None, "remote_addr").expect("it is read");
        assert_eq!(
            (found.values.n(), found.lines, found.skipped),
            (100, 30_000, 0)
        );
        assert!((found.values.mean() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn formats_without_the_value_are_refused() {
        let dir = TempDir::new();
        dir.write(
            "a.log",
            "192.0.2.1 - - [29/Nov/2026:11:00:00 +0000] \"GET / HTTP/1.1\" 200 6\n",
        );
        let path = dir.path().join("a.log");
        let why = read(&path, None, "remote_addr").expect_err("common has no time");
        assert!(why.contains("no known format with these fields"), "{why}");
        let why = read(&path, Some("$remote_addr $status"), "remote_addr");
        let why = why.expect_err("it has no time");
        assert_eq!(why, "the format \"x\" has no $request_time");
        let why = read(Path::new("/none/at/all"), None, "remote_addr").expect_err("no file");
        assert!(why.contains("cannot read /none/at/all"), "{why}");
        assert!(Field::default().with_value("a-b").is_err());
        let combined = format_named("combined", &field("remote_addr")).expect("it has a name");
        assert!(combined.is_err());
    }
}
