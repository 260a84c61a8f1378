//! The writer's queue and its patience: full, locked, read-only and damaged stores.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use firstbyte_tests::skip::skip;
use firstbyte_tests::{TempDir, wait_until};
use store::{Counts, Report, Settings, Writer};

use crate::rows::{NOON, child, child_argument, file, open, row, start, succeeds, totals};

/// Offers rows, and returns the number of those that were taken.
fn offer(writer: &Writer, count: u64) -> u64 {
    let taken = (0..count).filter(|n| writer.offer(row(NOON + n, "DE", 5)));
    taken.count() as u64
}

fn counts(writer: &Writer) -> Counts {
    writer.counters().counts()
}

/// Closes a writer, and returns its last figures and its reports.
fn close(writer: Writer, reports: Receiver<Report>) -> (Counts, Vec<String>) {
    let counters = std::sync::Arc::clone(writer.counters());
    writer.close();
    let reports = reports.iter().map(|report| report.to_string()).collect();
    (counters.counts(), reports)
}

/// Settings with a short pause before commits.
fn quick(path: &Path) -> Settings {
    let mut settings = Settings::new(path);
    settings.commit_pause = Duration::from_millis(1);
    settings
}

#[test]
fn rows_are_stored_at_the_latest_at_the_end() {
    let dir = TempDir::new();
    let mut settings = Settings::new(&file(&dir));
    settings.commit_pause = Duration::from_secs(3600);
    let (writer, reports) = start(settings);
    assert_eq!(offer(&writer, 10), 10);
    let (counts, reports) = close(writer, reports);
    assert_eq!((counts.written, counts.queued, counts.dropped), (10, 0, 0));
    assert_eq!(totals(&file(&dir)).connections, 10);
    assert_eq!(reports, [format!("store {} is open", file(&dir).display())]);
}

/// While another process holds the lock, offers return at once; each row is stored, or dropped and counted.
#[test]
fn full_queue_drops_and_counts() {
    const QUEUE: usize = 100;
    let dir = TempDir::new();
    drop(open(&file(&dir)));
    let mut settings = quick(&file(&dir));
    settings.queue_rows = QUEUE;
    let (writer, reports) = start(settings);
    wait_until("it is open", || reports.try_recv().is_ok());
    let lock = rusqlite::Connection::open(file(&dir)).expect("it opens");
    lock.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    assert!(writer.offer(row(NOON, "DE", 5)));
    wait_until("a failure", || counts(&writer).failed > 0);
    let begin = Instant::now();
    let taken = 1 + offer(&writer, 12_000);
    // A wait for the lock would take two seconds.
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    let now = counts(&writer);
    assert_eq!(now.dropped, 12_001 - taken);
    assert!(now.dropped > 0 && now.failing, "{now:?}");
    lock.execute_batch("ROLLBACK").expect("the lock is free");
    wait_until("recovery", || counts(&writer).written == taken);
    wait_until("recovery", || !counts(&writer).failing);
    let (counts, reports) = close(writer, reports);
    assert_eq!((counts.written, counts.queued), (taken, 0));
    assert_eq!(totals(&file(&dir)).connections, taken);
    let all = reports.join("\n");
    let wanted = "cannot write the store: another process holds the lock of the store";
    assert_eq!(all.matches(wanted).count(), 1, "{all}");
    assert_eq!(all.matches("can be written again").count(), 1, "{all}");
    let dropped = |line: &String| {
        let rows = line.strip_prefix("the store has dropped ")?;
        rows.split(' ').next()?.parse::<u64>().ok()
    };
    let dropped: u64 = reports.iter().filter_map(dropped).sum();
    assert_eq!(dropped, counts.dropped, "{all}");
}

/// The queue has room for exactly so many rows.
#[test]
fn queue_ends_at_its_limit() {
    let dir = TempDir::new();
    // The thread waits two seconds for this lock before it takes the first row.
    let lock = std::fs::File::open(dir.path()).expect("a directory");
    lock.lock().expect("a lock");
    let mut settings = quick(&file(&dir));
    settings.queue_rows = 5;
    let (writer, reports) = start(settings);
    assert_eq!(offer(&writer, 5), 5);
    assert_eq!((counts(&writer).queued, counts(&writer).dropped), (5, 0));
    assert_eq!(offer(&writer, 1), 0);
    assert_eq!((counts(&writer).queued, counts(&writer).dropped), (5, 1));
    drop(lock);
    wait_until("the rows are stored", || counts(&writer).written == 5);
    let (counts, reports) = close(writer, reports);
    assert_eq!((counts.written, counts.dropped), (5, 1));
    assert!(
        reports.contains(&"the store has dropped 1 connections".to_owned()),
        "{reports:?}"
    );
}

#[test]
fn file_of_another_program_is_reported_once_and_waited_for() {
    let dir = TempDir::new();
    std::fs::write(file(&dir), "a text").expect("it is written");
    let (writer, reports) = start(quick(&file(&dir)));
    assert_eq!(offer(&writer, 3), 3);
    wait_until("several tries", || counts(&writer).failed >= 3);
    assert_eq!(counts(&writer).written, 0);
    std::fs::remove_file(file(&dir)).expect("it is removed");
    wait_until("the rows are stored", || counts(&writer).written == 3);
    let (_, reports) = close(writer, reports);
    let foreign = reports
        .iter()
        .filter(|line| line.contains("is no store of firstbyte"));
    // Once at the start, and once at the first commit.
    assert_eq!(foreign.count(), 2, "{reports:?}");
    assert_eq!(totals(&file(&dir)).connections, 3);
}

#[test]
fn rows_that_cannot_be_stored_at_the_end_are_counted() {
    let dir = TempDir::new();
    std::fs::write(file(&dir), "a text").expect("it is written");
    let (writer, reports) = start(quick(&file(&dir)));
    // More than one commit has.
    assert_eq!(offer(&writer, 20_000), 20_000);
    let (counts, reports) = close(writer, reports);
    assert_eq!(
        (counts.written, counts.dropped, counts.queued),
        (0, 20_000, 0)
    );
    assert!(
        reports.contains(&"the store has dropped 20000 connections".to_owned()),
        "{reports:?}"
    );
}

/// A file that is moved or removed while it is open: the rows after it are in a new one.
#[test]
fn moved_file_is_made_anew() {
    let dir = TempDir::new();
    let (writer, reports) = start(quick(&file(&dir)));
    assert_eq!(offer(&writer, 3), 3);
    wait_until("the rows are stored", || counts(&writer).written == 3);
    for suffix in ["", "-wal", "-shm"] {
        let name = |base: &str| dir.path().join(format!("{base}{suffix}"));
        std::fs::rename(name("visitors.db"), name("old.db")).expect("it is moved");
    }
    assert_eq!(offer(&writer, 4), 4);
    wait_until("the rows are stored", || counts(&writer).written == 7);
    close(writer, reports);
    assert_eq!(totals(&file(&dir)).connections, 4);
    assert_eq!(totals(&dir.path().join("old.db")).connections, 3);
}

/// Damage that a commit meets: the file is moved aside, and the rows are stored in the new one.
#[test]
fn damage_at_a_commit_loses_no_row() {
    let dir = TempDir::new();
    let path = file(&dir);
    let (writer, reports) = start(quick(&path));
    assert_eq!(offer(&writer, 3), 3);
    wait_until("the rows are stored", || counts(&writer).written == 3);
    let db = rusqlite::Connection::open(&path).expect("it opens");
    db.execute_batch("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'no SQL' WHERE name = 'connection'; PRAGMA schema_version = 1000;")
        .expect("damage");
    assert_eq!(offer(&writer, 4), 4);
    wait_until("the rows are stored", || counts(&writer).written == 7);
    let (counts, reports) = close(writer, reports);
    assert_eq!((counts.moved_aside, counts.dropped), (1, 0));
    assert!(
        reports
            .iter()
            .any(|line| line.contains("the store was damaged and is now")),
        "{reports:?}"
    );
    assert_eq!(totals(&path).connections, 4);
}

/// Runs a program of the system.
fn run(words: &[&str]) -> bool {
    let status = Command::new(words[0]).args(&words[1..]).status();
    status.is_ok_and(|status| status.success())
}

/// Fills a small file system, empties it again, and makes it read-only for a while.
#[test]
fn child_meets_a_full_disk() {
    let Some(argument) = child_argument() else {
        return;
    };
    let small = PathBuf::from(&argument);
    let path = small.join("visitors.db");
    let (writer, reports) = start(quick(&path));
    assert_eq!(offer(&writer, 100), 100);
    wait_until("the rows are stored", || counts(&writer).written == 100);
    // It takes the rest of the room.
    let ballast = small.join("ballast");
    let _ = std::fs::write(&ballast, vec![1; 16 << 20]);
    let mut taken = 100;
    wait_until("a full disk", || {
        taken += offer(&writer, 100);
        counts(&writer).failing
    });
    let stored = counts(&writer).written;
    assert!(totals_within(&small, stored), "stored rows stay");
    std::fs::remove_file(&ballast).expect("it is removed");
    wait_until("recovery", || counts(&writer).written == taken);
    let (last, lines) = close(writer, reports);
    assert_eq!((last.written, last.dropped), (taken, 0));
    assert!(
        lines.join("\n").contains("cannot write the store: "),
        "{lines:?}"
    );
    assert!(
        lines.join("\n").contains("can be written again"),
        "{lines:?}"
    );
    assert_eq!(totals(&path).connections, taken);

    assert!(run(&["mount", "-o", "remount,ro", &argument]));
    assert_eq!(totals(&path).connections, taken, "it can still be read");
    let (writer, reports) = start(quick(&path));
    assert_eq!(offer(&writer, 10), 10);
    wait_until("failures", || counts(&writer).failed >= 2);
    assert_eq!(counts(&writer).written, 0);
    assert!(run(&["mount", "-o", "remount,rw", &argument]));
    wait_until("recovery", || counts(&writer).written == 10);
    let (_, lines) = close(writer, reports);
    assert!(lines.join("\n").contains("read-only"), "{lines:?}");
    assert_eq!(totals(&path).connections, taken + 10);
}

/// Whether a store on a full disk still has its rows. A reader needs no room.
fn totals_within(small: &Path, rows: u64) -> bool {
    totals(&small.join("visitors.db")).connections >= rows
}

#[test]
fn full_and_read_only_disks_lose_nothing_stored() {
    if !run(&["unshare", "--mount", "true"]) {
        skip("nothing can be mounted here");
        return;
    }
    let dir = TempDir::new();
    let small = dir.path().display().to_string();
    let mount = "mount -t tmpfs -o size=8m small \"$0\" && exec \"$@\"";
    let before = ["unshare", "--mount", "sh", "-c", mount, &small];
    let process = child("writing::child_meets_a_full_disk", &small, &before);
    succeeds({ process }.spawn().expect("it starts"));
}
