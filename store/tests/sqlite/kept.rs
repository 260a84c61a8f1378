//! Retention by age and by size, at its limits.

use std::path::Path;

use firstbyte_tests::TempDir;
use store::{
    Connection, Grouping, HOURS_KEPT_S, MAX_BYTES_LEAST, MINUTES_KEPT_S, Query, Retention, Step,
    Store,
};

use crate::rows::{DAY, NOON, file, maintain, open, row};

/// Numbers of rows, and of roll-ups of countries by minute, hour and day.
fn counts(path: &Path) -> [i64; 4] {
    let db = rusqlite::Connection::open(path).expect("it opens");
    let count = |sql: &str| db.query_row(sql, [], |row| row.get(0)).expect("a count");
    let rollups = |resolution| {
        count(&format!(
            "SELECT count(*) FROM rollup WHERE dimension = 0 AND resolution = {resolution}"
        ))
    };
    [
        count("SELECT count(*) FROM connection"),
        rollups(0),
        rollups(1),
        rollups(2),
    ]
}

fn used(path: &Path) -> u64 {
    std::fs::metadata(path).expect("a file").len()
}

#[test]
fn rows_and_roll_ups_end_at_their_age() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    let retention = Retention {
        rows_s: DAY,
        rollups_s: 100 * DAY,
        ..Retention::default()
    };
    store.insert(&[row(NOON, "DE", 5)]).expect("it is stored");
    let day = NOON - DAY / 2;
    let steps = [
        (NOON + DAY, [1, 1, 1, 1]),
        (NOON + DAY + 1, [0, 1, 1, 1]),
        // Roll-ups by minute are deleted by whole hours, roll-ups by hour by whole days.
        (NOON + MINUTES_KEPT_S + 3599, [0, 1, 1, 1]),
        (NOON + MINUTES_KEPT_S + 3600, [0, 0, 1, 1]),
        (day + HOURS_KEPT_S + DAY - 1, [0, 0, 1, 1]),
        (day + HOURS_KEPT_S + DAY, [0, 0, 0, 1]),
        (day + 101 * DAY - 1, [0, 0, 0, 1]),
        (day + 101 * DAY, [0, 0, 0, 0]),
    ];
    for (now_s, expected) in steps {
        maintain(&mut store, now_s, &retention);
        assert_eq!(counts(&path), expected, "{}", now_s - NOON);
        let always = Query {
            to_s: u64::MAX,
            ..Query::default()
        };
        let found = store.totals(&always).expect("totals").connections;
        assert_eq!(found, u64::from(expected[3] > 0), "{}", now_s - NOON);
        let extent = match expected {
            [_, 1, ..] => Some((NOON, NOON + 60)),
            [_, _, 1, _] => Some((NOON, NOON + 3600)),
            [.., 1] => Some((day, day + DAY)),
            _ => None,
        };
        assert_eq!(store.extent(), Ok(extent), "{}", now_s - NOON);
    }
}

/// Steps and ends of old times are as long as the roll-ups that are left.
#[test]
fn steps_become_coarser_with_age() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let begin = NOON - DAY / 2;
    // Twice in two hours of an old day, of a day without minutes, and of the last day.
    let days = [0, 100, 149];
    let times = days.map(|day| begin + day * DAY);
    let rows: Vec<_> = times
        .iter()
        .flat_map(|day| [3661, 3721, 7265].map(|at| row(day + at, "DE", 5)))
        .collect();
    store.insert(&rows).expect("they are stored");
    maintain(&mut store, begin + 150 * DAY, &Retention::default());
    let keys = |step: Step| -> Vec<(u64, u64)> {
        let answer = store.answer(&Query {
            to_s: u64::MAX,
            grouping: Grouping::Time(step),
            ..Query::default()
        });
        let groups = answer.expect("an answer").groups.into_iter();
        let number = |key: &str| key.parse::<u64>().expect("a number");
        groups
            .map(|group| (number(&group.key) - begin, group.totals.connections))
            .collect()
    };
    let (hours, last) = (100 * DAY, 149 * DAY);
    let by_minute = [
        (0, 3),
        (hours + 3600, 2),
        (hours + 7200, 1),
        (last + 3660, 1),
        (last + 3720, 1),
        (last + 7260, 1),
    ];
    assert_eq!(keys(Step::Minute), by_minute);
    let by_hour = [
        (0, 3),
        (hours + 3600, 2),
        (hours + 7200, 1),
        (last + 3600, 2),
        (last + 7200, 1),
    ];
    assert_eq!(keys(Step::Hour), by_hour);
    assert_eq!(keys(Step::Day), [(0, 3), (hours, 3), (last, 3)]);
    assert_eq!(store.extent(), Ok(Some((begin, begin + last + 7320))));
}

#[test]
fn short_retention_ends_all_roll_ups() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    let retention = Retention {
        rows_s: 60,
        rollups_s: 3600,
        ..Retention::default()
    };
    store.insert(&[row(NOON, "DE", 5)]).expect("it is stored");
    maintain(&mut store, NOON + DAY, &retention);
    assert_eq!(counts(&path), [0, 0, 0, 0]);
}

/// A clock that was ahead for a while keeps its rows no longer than the rows after them.
#[test]
fn rows_of_a_wrong_clock_leave_with_their_neighbours() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    let retention = Retention {
        rows_s: DAY,
        ..Retention::default()
    };
    let times = [NOON + 1000 * DAY, NOON, NOON + 10];
    store
        .insert(&times.map(|at| row(at, "DE", 5)))
        .expect("they are stored");
    maintain(&mut store, NOON + DAY + 5, &retention);
    assert_eq!(counts(&path)[0], 1);
    // A clock that goes back deletes nothing.
    maintain(&mut store, 0, &retention);
    assert_eq!(counts(&path)[0], 1);
}

#[test]
fn connections_after_a_wrong_clock_are_counted() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    let retention = Retention::default();
    maintain(&mut store, NOON + 4000 * DAY, &retention);
    store.insert(&[row(NOON, "DE", 5)]).expect("it is stored");
    maintain(&mut store, NOON, &retention);
    let query = Query {
        from_s: NOON - DAY,
        to_s: NOON + DAY,
        ..Query::default()
    };
    let totals = store.totals(&query).expect("it can be read");
    assert_eq!(totals.connections, 1);
}

#[test]
fn numbers_of_deleted_rows_are_not_used_again() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    let retention = Retention {
        rows_s: 0,
        ..Retention::default()
    };
    for round in 1..=3 {
        store.insert(&[row(NOON, "DE", 5)]).expect("it is stored");
        maintain(&mut store, NOON + 1, &retention);
        assert_eq!(counts(&path)[0], 0);
        let always = Query {
            to_s: u64::MAX,
            ..Query::default()
        };
        let found = store.totals(&always).expect("totals").connections;
        assert_eq!(found, round);
    }
}

/// Rows of one day with networks of their own.
fn rows(count: u32) -> Vec<Connection> {
    let rows = (0..count).map(|n| {
        let mut row = row(NOON + u64::from(n / 100), "DE", 1000 + n);
        row.bytes_sent = u64::MAX - u64::from(n);
        row
    });
    rows.collect()
}

#[test]
fn file_ends_at_its_size() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    let retention = Retention {
        rows_s: 1000 * DAY,
        max_bytes: 2 << 20,
        ..Retention::default()
    };
    for _ in 0..5 {
        store.insert(&rows(20_000)).expect("they are stored");
        maintain(&mut store, NOON + 1000, &retention);
        let size = store.size_bytes().expect("a size");
        assert!(size <= retention.max_bytes, "{size}");
        // No more is deleted than necessary: a step has 5,000 rows.
        assert!(size > retention.max_bytes / 2, "{size}");
    }
    let [rows, ..] = counts(&path);
    assert!((1..40_000).contains(&rows), "{rows}");
    let always = Query {
        to_s: u64::MAX,
        ..Query::default()
    };
    let found = store.totals(&always).expect("totals").connections;
    assert_eq!(found, 100_000, "roll-ups have room");
    drop(store);
    assert!(used(&path) <= retention.max_bytes);
}

#[test]
fn roll_ups_are_deleted_if_no_row_is_left() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    let mut rows = Vec::new();
    for n in 0..30_000u32 {
        let mut row = row(NOON + u64::from(n % 7200), "DE", 1000 + n);
        row.operator = format!("AS{n} {}", "x".repeat(20));
        rows.push(row);
    }
    store.insert(&rows).expect("they are stored");
    let least = Retention {
        max_bytes: 0,
        ..Retention::default()
    };
    let limit = std::time::Duration::from_secs(60);
    let done = store.maintain(NOON + 7200, &least, limit);
    assert!(!done.expect("a maintenance").more);
    let [rows, minutes, hours, _] = counts(&path);
    assert_eq!((rows, minutes, hours), (0, 0, 0));
    // Names stay.
    let size = store.size_bytes().expect("a size");
    assert!(
        size > MAX_BYTES_LEAST && size < 4 * MAX_BYTES_LEAST,
        "{size}"
    );
    store
        .insert(&[row(NOON + 5 * DAY, "DE", 5)])
        .expect("it is stored");
    let found = store.totals(&Query {
        from_s: NOON + 4 * DAY,
        to_s: u64::MAX,
        ..Query::default()
    });
    assert_eq!(found.expect("totals").connections, 1);
}

#[test]
fn file_shrinks_after_rows_have_left() {
    let dir = TempDir::new();
    let path = file(&dir);
    let mut store = open(&path);
    store.insert(&rows(50_000)).expect("they are stored");
    maintain(&mut store, NOON + 1000, &Retention::default());
    let before = store.size_bytes().expect("a size");
    let retention = Retention {
        rows_s: 0,
        ..Retention::default()
    };
    maintain(&mut store, NOON + 1000, &retention);
    let after = store.size_bytes().expect("a size");
    assert!(after < before / 4, "{before} to {after}");
}
