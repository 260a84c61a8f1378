//! Two processes on one file: both work.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use firstbyte_tests::skip::skip;
use firstbyte_tests::{TempDir, wait_until};
use store::{Query, Settings, Store};

use crate::rows::{NOON, child, child_argument, file, open, row, start, succeeds, totals};

const ROWS: u64 = 20_000;

/// Writes rows under the name of a server.
#[test]
fn child_writes_as_a_server() {
    let Some(argument) = child_argument() else {
        return;
    };
    let (name, path) = argument.split_once(' ').expect("a name and a path");
    let mut settings = Settings::new(&PathBuf::from(path));
    settings.commit_pause = std::time::Duration::from_millis(1);
    let (writer, reports) = start(settings);
    for n in 0..ROWS {
        let mut row = row(NOON + n, "DE", 1000);
        row.server = name.to_owned();
        assert!(writer.offer(row), "the queue has room");
        if n % 1000 == 0 {
            // Several commits, so that the processes meet.
            wait_until("a commit", || writer.counters().counts().written == n + 1);
        }
    }
    let counters = std::sync::Arc::clone(writer.counters());
    writer.close();
    let counts = counters.counts();
    assert_eq!(
        (counts.written, counts.dropped, counts.queued),
        (ROWS, 0, 0)
    );
    for report in reports {
        // A machine with other work may hold the lock for longer than a try waits; the rows are kept.
        let text = report.to_string();
        let is_fine = !text.contains("cannot") || text.contains("holds the lock");
        assert!(is_fine, "{text}");
    }
}

#[test]
fn two_servers_share_a_file() {
    let dir = TempDir::new();
    let path = file(&dir);
    let processes = ["a.example", "b.example"].map(|name| {
        let argument = format!("{name} {}", path.display());
        child("processes::child_writes_as_a_server", &argument, &[])
            .spawn()
            .expect("it starts")
    });
    processes.into_iter().for_each(succeeds);
    assert_eq!(totals(&path).connections, 2 * ROWS);
    let store = open(&path);
    for name in ["a.example", "b.example"] {
        let query = Query {
            to_s: u64::MAX,
            server: Some(name.to_owned()),
            ..Query::default()
        };
        assert_eq!(store.totals(&query).expect("totals").connections, ROWS);
    }
}

/// A reader sees whole commits while another process writes.
#[test]
fn readers_do_not_wait() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    store.insert(&[row(NOON, "DE", 1)]).expect("it is stored");
    let db = rusqlite::Connection::open(&path).expect("it opens");
    db.execute_batch("BEGIN IMMEDIATE; DELETE FROM connection;")
        .expect("a lock");
    assert_eq!(totals(&path).connections, 1);
    db.execute_batch("COMMIT").expect("a commit");
    assert_eq!(totals(&path).connections, 0);
}

/// Locks of this process on a file.
fn locks(path: &Path) -> usize {
    let inode = std::fs::metadata(path).expect("a file").ino();
    let (file, process) = (format!(":{inode}"), std::process::id().to_string());
    let all = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let is_ours = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&&*process) && words.iter().any(|word| word.ends_with(&file))
    };
    all.lines().filter(is_ours).count()
}

/// Locks of POSIX end when a process closes any descriptor of the file. An opening must keep those of another store of its
/// process. Without them another process removes the log, as the last user of the file.
#[test]
fn openings_leave_the_locks_of_their_process() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    store.insert(&[row(NOON, "DE", 1)]).expect("it is stored");
    let before = locks(&path);
    if before == 0 {
        skip("/proc/locks does not show the locks of this process");
        return;
    }
    assert_eq!(totals(&path).connections, 1);
    assert_eq!(locks(&path), before, "after a reader");
    drop(open(&path));
    assert_eq!(locks(&path), before, "after a writer");
}
