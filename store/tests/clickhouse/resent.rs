//! Batches that are sent again although ClickHouse has them, or a part of them.

use std::path::{Path, PathBuf};

use firstbyte_tests::TempDir;
use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::wait::wait_until;
use store::{Connection, Counts, Writer};

use crate::common::rows;
use crate::connected::{settings, start};
use crate::fake::{self, Response};

/// Sums of the rows and of each roll-up.
fn sums(run: &impl Fn(&str) -> String) -> Vec<String> {
    let mut found = vec![run("SELECT count(), sum(bytes_sent) FROM lab.connection")];
    for table in ["rollup_hour", "rollup_day"] {
        let text = format!(
            "SELECT sum(connections), sum(bytes_sent) FROM lab.{table} WHERE dimension = 0"
        );
        found.push(run(&text));
    }
    found
}

fn batches(spill: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(spill).expect("a directory").flatten();
    let paths = files.map(|file| file.path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "batch"))
        .collect()
}

/// Sends the batches of a directory, and closes it.
#[track_caller]
fn send(spill: &Path, port: u16) -> Counts {
    let (writer, reports) = start(settings(spill), port);
    assert!(reports.recv().is_ok());
    let counts = |writer: &Writer| writer.counters().counts();
    wait_until("they are sent", || counts(&writer).spilled_batches == 0);
    counts(&writer)
}

/// Sends the same batches several times. Before each time, one of the tables has lost them.
#[track_caller]
pub(crate) fn batches_are_stored_once(port: u16, spill: &Path, run: impl Fn(&str) -> String) {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    // Roll-ups by hour are deleted after 60 days.
    let day_s = now.expect("after 1970").as_secs() / 86_400 * 86_400 - 86_400;
    let all: Vec<Connection> = rows(5)
        .into_iter()
        .map(|row| Connection {
            closed_s: day_s + row.closed_s % 86_400,
            ..row
        })
        .collect();
    let (writer, _reports) = start(settings(spill), fake::start(Response::Bytes(Vec::new())));
    for row in &all {
        assert!(writer.offer(row.clone()));
    }
    wait_until("they are spilled", || {
        writer.counters().counts().queued == 0
    });
    writer.close();
    let copies: Vec<(PathBuf, Vec<u8>)> = batches(spill)
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(&path).expect("a file")))
        .collect();
    assert!(!copies.is_empty());
    send(spill, port);
    let expected = sums(&run);
    let bytes: u64 = all.iter().map(|row| row.bytes_sent).sum();
    let line = format!("{}\t{bytes}\n", all.len());
    assert_eq!(expected, [line.clone(), line.clone(), line]);
    let day = day_s / 86_400;
    for lost in [None, Some("rollup_hour"), Some("rollup_day")] {
        if let Some(table) = lost {
            let dropped = run(&format!("ALTER TABLE lab.{table} DROP PARTITION {day}"));
            assert_eq!(dropped, "");
            assert_ne!(sums(&run), expected);
        }
        for (path, bytes) in &copies {
            std::fs::write(path, bytes).expect("it is written");
        }
        let counts = send(spill, port);
        assert_eq!(sums(&run), expected, "{lost:?}");
        assert_eq!(counts.retries, copies.len() as u64);
    }
}

#[test]
fn batches_are_stored_once_in_each_table() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    batches_are_stored_once(server.port(), dir.path(), |text| server.rows(text));
}

/// Each batch is one part of each table, however many keys it has.
#[test]
fn batches_are_single_parts() {
    const ROWS: u32 = 50_000;
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let mut settings = settings(dir.path());
    // One batch.
    settings.batch_pause = std::time::Duration::from_secs(3600);
    let (writer, reports) = start(settings, server.port());
    assert!(reports.recv().is_ok());
    for table in ["connection", "rollup_hour", "rollup_day"] {
        let stopped = server.rows(&format!("SYSTEM STOP MERGES lab.{table}"));
        assert_eq!(stopped, "");
    }
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let day_s = now.expect("after 1970").as_secs() / 86_400 * 86_400 - 86_400;
    for n in 0..ROWS {
        let row = Connection {
            closed_s: day_s + u64::from(n),
            subdivision: format!("DE-{n}"),
            operator: format!("AS{n}"),
            min_rtt_us: Some(n),
            ..Connection::default()
        };
        assert!(writer.offer(row));
    }
    wait_until("it is stored", || {
        writer.counters().counts().written == u64::from(ROWS)
    });
    let parts = "SELECT table, count() FROM system.parts WHERE database = 'lab' AND active \
                 AND table IN ('connection', 'rollup_hour', 'rollup_day') GROUP BY table ORDER BY table";
    assert_eq!(
        server.rows(parts),
        "connection\t1\nrollup_day\t1\nrollup_hour\t1\n"
    );
}
