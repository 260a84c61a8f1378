//! `kill -9` of a process that writes: the file opens, and at most the last second is lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::time::{Duration, SystemTime};

use firstbyte_tests::TempDir;
use firstbyte_tests::busy::worst_wait_while;
use firstbyte_tests::wait::pause;
use store::Settings;

use crate::rows::{NOON, child, child_argument, file, open, row, start, totals};

/// Processes that are killed.
const KILLS: u32 = 100;
/// Time of a kill after the store is open; one in four is killed as long after its start.
const LIFE_MS: std::ops::Range<u64> = 0..100;
/// Rows in the queue at most.
const QUEUED_MAX: u64 = 300;

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_millis() as u64
}

/// Offers numbered rows until it is killed. The number of a row is its count of bytes.
///
/// It prints `written N`: all rows before N are stored; and `offered N MS`: row N was offered at this time.
#[test]
fn child_writes_until_it_is_killed() {
    let Some(argument) = child_argument() else {
        return;
    };
    let words: Vec<&str> = argument.split(' ').collect();
    let [path, first, gap_us, commit_ms] = words[..] else {
        panic!("{argument}")
    };
    let first: u64 = first.parse().expect("a number");
    let gap = Duration::from_micros(gap_us.parse().expect("a number"));
    let mut settings = Settings::new(&PathBuf::from(path));
    settings.commit_pause = Duration::from_millis(commit_ms.parse().expect("a number"));
    let (writer, reports) = start(settings);
    let mut out = std::io::stdout().lock();
    reports.recv().expect("it opens");
    writeln!(out, "open").expect("a pipe");
    let mut told = 0;
    for n in first.. {
        let mut next = row(NOON + n / 1000, "DE", 1000);
        next.bytes_sent = n;
        assert!(writer.offer(next));
        // Small commits: a process meets many of them.
        while writer.counters().counts().queued > QUEUED_MAX {
            pause(Duration::from_millis(1));
        }
        let written = writer.counters().counts().written;
        if written > told {
            told = written;
            writeln!(out, "written {}", first + told).expect("a pipe");
        }
        if !gap.is_zero() {
            writeln!(out, "offered {n} {}", now_ms()).expect("a pipe");
            out.flush().expect("a pipe");
            pause(gap);
        }
    }
}

/// A process that writes, and its output.
struct Writing {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Writing {
    fn begin(path: &Path, first: u64, gap_us: u64, commit_ms: u64) -> Self {
        let argument = format!("{} {first} {gap_us} {commit_ms}", path.display());
        let mut child = child("kills::child_writes_until_it_is_killed", &argument, &[])
            .spawn()
            .expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, out }
    }

    /// Its next line, without those of the test harness.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            let length = self.out.read_line(&mut line).expect("a pipe");
            let is_ours = ["open", "written ", "offered "]
                .iter()
                .any(|word| line.starts_with(word));
            if length == 0 || is_ours {
                return line.trim_end_matches('\n').to_owned();
            }
        }
    }

    /// Kills it, and returns its other lines.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("it runs");
        let mut text = String::new();
        self.out.read_to_string(&mut text).expect("a pipe");
        self.child.wait().expect("its end");
        // The last line may be cut.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(str::to_owned).collect()
    }
}

/// Number after the last row, after a check that none is missing since `first`.
fn end_of_rows(path: &Path, first: u64) -> u64 {
    let db = rusqlite::Connection::open(path).expect("it opens");
    let sql =
        "SELECT count(*), min(bytes_sent), max(bytes_sent) FROM connection WHERE bytes_sent >= ?1";
    let (count, least, most): (i64, Option<i64>, Option<i64>) = db
        .query_row(sql, [first as i64], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .expect("it can be read");
    let end = first as i64 + count;
    if count > 0 {
        assert_eq!((least, most), (Some(first as i64), Some(end - 1)));
    }
    end as u64
}

/// Whole lines of a killed process with this word before them.
fn told(lines: &[String], word: &str) -> Vec<Vec<u64>> {
    let numbers = |line: &String| {
        let rest = line.strip_prefix(word)?;
        Some(
            rest.split_whitespace()
                .map(|n| n.parse().expect("a number"))
                .collect(),
        )
    };
    lines.iter().filter_map(numbers).collect()
}

#[test]
fn killed_processes_leave_whole_stores() {
    let dir = TempDir::new();
    let path = file(&dir);
    let seed = now_ms();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut next, mut commits) = (0, 0);
    for round in 0..KILLS {
        let mut process = Writing::begin(&path, next, 0, 5);
        if round % 4 > 0 {
            assert_eq!(process.line(), "open");
        }
        pause(Duration::from_millis(random.u64(LIFE_MS)));
        let lines = process.kill();
        let stored = match Path::exists(&path) {
            true => {
                // It rolls nothing up: the next process has to.
                drop(open(&path));
                end_of_rows(&path, next)
            }
            false => 0,
        };
        for acknowledged in told(&lines, "written ") {
            commits += 1;
            assert!(
                stored >= acknowledged[0],
                "{round}: {stored} of {acknowledged:?}"
            );
        }
        next = stored;
        if path.exists() {
            assert_eq!(
                totals(&path).connections,
                next,
                "{round}: each row counts once"
            );
        }
    }
    assert!(
        next > 0 && commits > KILLS / 10,
        "{next} rows, {commits} commits"
    );
    let db = rusqlite::Connection::open(&path).expect("it opens");
    let whole: String = db
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("a check");
    assert_eq!(whole, "ok");
}

/// With the settings of a server, rows that are older than a second are stored.
#[test]
fn last_second_alone_is_lost() {
    let dir = TempDir::new();
    let path = file(&dir);
    let standard = Settings::new(&path).commit_pause.as_millis() as u64;
    let mut process = Writing::begin(&path, 0, 2000, standard);
    assert_eq!(process.line(), "open");
    let waited = worst_wait_while(process.child.id(), || pause(Duration::from_millis(2300)));
    let killed_ms = now_ms();
    let lines = process.kill();
    let stored = end_of_rows(&path, 0);
    let limit_ms = 1000 + waited.as_millis() as u64;
    let offered = told(&lines, "offered ");
    assert!(offered.len() > 10, "{offered:?}");
    for row in &offered {
        let (number, age_ms) = (row[0], killed_ms.saturating_sub(row[1]));
        assert!(
            number < stored || age_ms <= limit_ms,
            "row {number} of {stored} was {age_ms} ms old, threads waited for {waited:?}"
        );
    }
    assert!(stored > 0);
}
