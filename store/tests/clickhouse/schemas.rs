//! Schemas: made by several servers at once, newer ones, and lost tables.

use std::time::{Duration, SystemTime};

use firstbyte_tests::TempDir;
use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::wait::{holds_within, wait_until};
use store::{Report, Store};

use crate::common::rows;
use crate::connected::{reader, settings, start, store_all};

#[test]
fn servers_that_start_at_once_make_one_schema() {
    const SERVERS: usize = 6;
    let Some(server) = ClickHouse::start() else {
        return;
    };
    // Roll-ups by hour are deleted after 60 days.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_s = now.expect("after 1970").as_secs();
    let mut all = rows(11);
    all.iter_mut().for_each(|row| row.closed_s = now_s);
    let dirs: Vec<TempDir> = (0..SERVERS).map(|_| TempDir::new()).collect();
    let writers: Vec<_> = dirs
        .iter()
        .map(|dir| start(settings(dir.path()), server.port()))
        .collect();
    for (writer, _) in &writers {
        for row in &all[..100] {
            assert!(writer.offer(row.clone()));
        }
    }
    for (writer, _) in &writers {
        let done = holds_within(Duration::from_secs(60), || {
            writer.counters().counts().written == 100
        });
        assert!(done, "{:?}", writer.counters().last_error());
    }
    let expected = format!("{}\n", SERVERS * 100);
    for count in [
        "count() FROM lab.connection",
        "sum(connections) FROM lab.rollup_hour WHERE dimension = 0",
        "sum(connections) FROM lab.rollup_day WHERE dimension = 0",
    ] {
        assert_eq!(server.rows(&format!("SELECT {count}")), expected, "{count}");
    }
    assert_eq!(
        server.rows("SELECT DISTINCT version FROM lab.schema"),
        "2\n"
    );
}

#[test]
fn newer_schema_stays_and_is_named() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let (writer, reports) = start(settings(dir.path()), server.port());
    assert!(matches!(reports.recv(), Ok(Report::Connected { .. })));
    writer.close();
    let newer = server.rows("INSERT INTO lab.schema SELECT 3, 0");
    assert_eq!(newer, "");
    let wanted = "lab is a store of a newer firstbyte: its schema has version 3";
    let error = reader(server.port()).extent().expect_err("it is newer");
    assert_eq!(error.to_string(), wanted);
    let (writer, reports) = start(settings(dir.path()), server.port());
    assert!(writer.offer(rows(1).remove(0)));
    let line = reports.recv().expect("a report").to_string();
    assert!(line.contains(wanted), "{line}");
    wait_until("the row waits", || {
        writer.counters().counts().spilled_rows == 1
    });
    assert_eq!(server.rows("SELECT count() FROM lab.connection"), "0\n");
}

#[test]
fn lost_tables_are_named() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let (writer, reports) = start(settings(dir.path()), server.port());
    let all = rows(3);
    store_all(&writer, &all[..10], &[]);
    let store = reader(server.port());
    assert!(store.extent().expect("an extent").is_some());
    assert_eq!(server.rows("DROP TABLE lab.rollup_day"), "");
    let error = store.extent().expect_err("it is lost").to_string();
    assert!(error.contains("rollup_day"), "{error}");
    let error = store.extent().expect_err("it is lost").to_string();
    let wanted = "the database lab of ClickHouse has lost rollup_day";
    assert_eq!(error, wanted);
    assert!(writer.offer(all[10].clone()));
    let mut lines = reports.iter().map(|report| report.to_string());
    assert!(
        lines.any(|line| line.contains("lost rollup_day")),
        "it is reported"
    );
    assert_eq!(writer.counters().counts().dropped, 0);
}

#[test]
fn store_that_nobody_has_written_is_named() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let error = reader(server.port()).extent().expect_err("there is none");
    let wanted = "the database lab of ClickHouse has no store: no server has written to it";
    assert_eq!(error.to_string(), wanted);
}
