//! Two processes on one file: both work. Readers follow their path.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use firstbyte_tests::skip::skip;
use firstbyte_tests::{TempDir, wait_until};
use store::{Query, Settings, SqliteReader, Step, Store};

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

/// A reader that is open for long shows the file that has its path.
#[test]
fn readers_follow_their_path() {
    let dir = TempDir::new();
    let path = file(&dir);
    assert!(SqliteReader::open(&path).is_err());
    let stored = |count: u64| {
        let mut store = open(&path);
        let rows: Vec<_> = (0..count).map(|n| row(NOON + n, "DE", 5)).collect();
        store.insert(&rows).expect("they are stored");
    };
    stored(1);
    let reader = SqliteReader::open(&path).expect("it opens");
    let always = Query {
        to_s: u64::MAX,
        ..Query::default()
    };
    let count = || reader.totals(&always).map(|totals| totals.connections);
    assert_eq!(count(), Ok(1));
    stored(2);
    assert_eq!(count(), Ok(3));
    // A writer moves a damaged file aside.
    let opened = open(&path).replace("a test").expect("a new file");
    assert_eq!(count(), Ok(0));
    drop(opened);
    stored(5);
    assert_eq!(count(), Ok(5));
    for suffix in ["", "-wal", "-shm"] {
        // Without readers, some are gone.
        let _ = std::fs::remove_file(dir.path().join(format!("visitors.db{suffix}")));
    }
    assert!(count().is_err());
    assert!(reader.extent().is_err());
    stored(7);
    assert_eq!(count(), Ok(7));
    let all = reader.answer(&always).expect("an answer");
    assert_eq!(all.totals().connections, 7);
    let networks = reader.networks(&always, 9).expect("networks");
    assert_eq!(networks.connections, 7);
    let open = reader.open_connections(&always, Step::Day);
    assert_eq!(open, Ok(Vec::new()));
    assert_eq!(reader.extent(), Ok(Some((NOON, NOON + 60))));
}
