//! Retention: whole days are dropped by one of the servers, and readers know the begins of the stored times.

use firstbyte_tests::TempDir;
use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::wait::wait_until;
use store::{Connection, OpenSample, Query, Retention, Store};

use crate::connected::{reader, settings, start, store_all};

const DAY: u64 = 86_400;

#[test]
fn old_days_are_dropped_and_periods_move() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let today = day_of_now();
    let at = |days_ago: u64| (today - days_ago) * DAY + DAY / 2 + 61;
    // Around the limits of rows (10 days), of hours (60 days) and of days (90 days).
    let ages = [0, 9, 10, 12, 59, 60, 62, 89, 90, 92];
    let rows: Vec<Connection> = ages
        .into_iter()
        .map(|days_ago| Connection {
            closed_s: at(days_ago),
            ..Connection::default()
        })
        .collect();
    let open: Vec<OpenSample> = ages
        .into_iter()
        .map(|days_ago| OpenSample {
            at_s: at(days_ago),
            ..OpenSample::default()
        })
        .collect();
    let dir = TempDir::new();
    // Its retention is a thousand years, but hours are kept for 60 days. It has looked before the rows come.
    let (writer, reports) = start(settings(dir.path()), server.port());
    assert!(reports.recv().is_ok());
    store_all(&writer, &rows, &open);
    writer.close();
    let mut limited = settings(dir.path());
    limited.retention = Retention {
        rows_s: 10 * DAY,
        rollups_s: 90 * DAY,
        ..Retention::default()
    };
    let (writer, _reports) = start(limited, server.port());
    let counters = writer.counters();
    // The day of the limit may pass meanwhile: its row is deleted or not.
    let deleted = || counters.counts().deleted_rows;
    wait_until("old rows are deleted", || deleted() >= 7);
    let days = |table: &str, chosen: &str| {
        let text = format!("SELECT count() FROM lab.{table} WHERE {chosen}");
        server.rows(&text).trim().parse::<u64>().expect("a number")
    };
    wait_until("old days are dropped", || {
        days("rollup_day", "dimension = 0") <= 9 && days("open", "1") <= 9
    });
    let stored = [
        days("connection", "1"),
        days("rollup_hour", "dimension = 0"),
        days("rollup_day", "dimension = 0"),
        days("open", "1"),
    ];
    if day_of_now() != today {
        return firstbyte_tests::skip::skip("a day has passed meanwhile");
    }
    // Days at the limit stay.
    assert_eq!((stored, deleted()), ([3, 6, 9, 9], 7));
    let store = reader(server.port());
    let period = |from_s, to_s| Query {
        from_s,
        to_s,
        ..Query::default()
    };
    let answer = |from_s, to_s| store.answer(&period(from_s, to_s)).expect("an answer");
    // By minutes, by hours and by days.
    for (days_ago, length) in [
        (9, 60),
        (10, 60),
        (12, 3600),
        (60, 3600),
        (62, DAY),
        (90, DAY),
    ] {
        let found = answer(at(days_ago) - length, at(days_ago));
        assert_eq!(found.from_s % length, 0, "{days_ago}");
        assert_eq!(found.totals().connections, 1, "{days_ago}");
        assert!(found.from_s >= at(days_ago) - length, "{days_ago}");
    }
    assert_eq!(answer(0, u64::MAX).totals().connections, 9);
    let extent = store.extent().expect("an extent").expect("rows");
    assert_eq!(extent, ((today - 90) * DAY, at(0) / 60 * 60 + 60));
    // A second server has nothing to do.
    let other = TempDir::new();
    let mut again = settings(other.path());
    again.retention.rows_s = 10 * DAY;
    let (second, reports) = start(again, server.port());
    assert!(reports.recv().is_ok());
    drop(second);
    assert_eq!(days("connection", "1"), 3);
    assert_eq!(counters.counts().failed, 0);
}

/// Today, in days since 1970.
fn day_of_now() -> u64 {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    now.expect("after 1970").as_secs() / DAY
}
