//! Open connections: minutes, sums of servers, steps, and their deletion.

use firstbyte_tests::TempDir;
use store::{Error, OpenConnections, OpenSample, Query, Retention, Sqlite, Step, Store};

use crate::rows::{DAY, NOON, file, maintain, open, row};

fn sample(at_s: u64, server: &str, protocol: &str, connections: u64) -> OpenSample {
    OpenSample {
        at_s,
        server: server.to_owned(),
        protocol: protocol.to_owned(),
        connections,
    }
}

fn query(from_s: u64, to_s: u64) -> Query {
    Query {
        from_s,
        to_s,
        ..Query::default()
    }
}

/// Begin after noon, protocol, mean and maximum.
fn found(store: &Sqlite, query: &Query, step: Step) -> Vec<(u64, String, f64, u64)> {
    let found = store.open_connections(query, step).expect("numbers");
    let short = |one: OpenConnections| (one.start_s - NOON, one.protocol, one.mean, one.max);
    found.into_iter().map(short).collect()
}

fn numbers(expected: &[(u64, &str, f64, u64)]) -> Vec<(u64, String, f64, u64)> {
    let owned = expected
        .iter()
        .map(|(at, name, mean, max)| (*at, (*name).to_owned(), *mean, *max));
    owned.collect()
}

#[test]
fn servers_add_up_and_minutes_are_averaged() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let samples = [
        // Of one minute, the largest number counts.
        sample(NOON, "a", "HTTP/2.0", 3),
        sample(NOON + 59, "a", "HTTP/2.0", 5),
        sample(NOON + 30, "a", "HTTP/2.0", 4),
        sample(NOON + 1, "b", "HTTP/2.0", 10),
        sample(NOON + 60, "a", "HTTP/2.0", 1),
        sample(NOON + 60, "a", "HTTP/1.1", 6),
        sample(NOON + 3600, "b", "SPDY/3.1", 2),
    ];
    // A commit for each: their order and number do not matter.
    for sample in samples {
        store.commit(&[], &[sample]).expect("it is stored");
    }
    let all = query(NOON, NOON + DAY);
    let by_hour = [
        (0, "HTTP/1.1", 3.0, 6),
        (0, "HTTP/2.0", 8.0, 15),
        (3600, "SPDY/3.1", 2.0, 2),
    ];
    assert_eq!(found(&store, &all, Step::Hour), numbers(&by_hour));
    let by_minute = [
        (0, "HTTP/2.0", 15.0, 15),
        (60, "HTTP/1.1", 6.0, 6),
        (60, "HTTP/2.0", 1.0, 1),
        (3600, "SPDY/3.1", 2.0, 2),
    ];
    assert_eq!(found(&store, &all, Step::Minute), numbers(&by_minute));
    let one = Query {
        server: Some("a".to_owned()),
        protocol: Some("HTTP/1.1".to_owned()),
        ..all.clone()
    };
    // The other protocol has a sample in the minute before.
    let of_one = [(0, "HTTP/1.1", 3.0, 6)];
    assert_eq!(found(&store, &one, Step::Hour), numbers(&of_one));
    for (server, protocol) in [("c", "HTTP/1.1"), ("a", "SPDY/3.1"), ("", "HTTP/1.1")] {
        let none = Query {
            server: Some(server.to_owned()),
            protocol: Some(protocol.to_owned()),
            ..all.clone()
        };
        assert_eq!(found(&store, &none, Step::Hour), []);
    }
    let by_country = Query {
        country: Some("DE".to_owned()),
        ..all
    };
    let error = store.open_connections(&by_country, Step::Hour);
    assert!(matches!(error, Err(Error::Other(_))), "{error:?}");
}

#[test]
fn ends_move_to_the_next_minute() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let samples = [0, 60, 120].map(|at| sample(NOON + at, "a", "HTTP/2.0", 1));
    store.commit(&[], &samples).expect("they are stored");
    for (from, to, count) in [
        (0, 120, 2),
        (0, 121, 3),
        (1, 120, 1),
        (1, 119, 1),
        (61, 61, 0),
        (0, 59, 1),
        (120, 60, 0),
    ] {
        let found = found(&store, &query(NOON + from, NOON + to), Step::Minute);
        assert_eq!(found.len(), count, "{from} to {to}");
    }
    let all = store.open_connections(&query(0, u64::MAX), Step::Day);
    assert_eq!(all.expect("a number")[0].mean, 1.0);
    // Connections alone have an extent.
    assert_eq!(store.extent(), Ok(None));
}

#[test]
fn old_numbers_leave_with_rows() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let samples: Vec<_> = (0..3 * DAY / 60)
        .map(|n| sample(NOON + n * 60, "a", "HTTP/2.0", n))
        .collect();
    store.commit(&[], &samples).expect("they are stored");
    let retention = Retention {
        rows_s: DAY,
        ..Retention::default()
    };
    let count = |store: &Sqlite| found(store, &query(0, u64::MAX), Step::Minute).len() as u64;
    for (now_s, left) in [
        // A clock that is not trusted.
        (0, 3 * DAY / 60),
        (NOON + DAY, 3 * DAY / 60),
        (NOON + DAY + 1, 3 * DAY / 60 - 1),
        (NOON + 3 * DAY, DAY / 60),
    ] {
        maintain(&mut store, now_s, &retention);
        assert_eq!(count(&store), left, "{now_s}");
    }
    // A clock that was wrong for a while: two days in the future remain.
    let later = [0, 60].map(|at| sample(NOON + 5 * DAY + at, "a", "HTTP/2.0", 1));
    store.commit(&[], &later).expect("they are stored");
    maintain(&mut store, NOON + 3 * DAY, &retention);
    assert_eq!(count(&store), DAY / 60 + 1);
}

/// If the file is too large, open connections leave after rows and before roll-ups.
#[test]
fn large_files_lose_old_numbers() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let samples: Vec<_> = (0..100_000)
        .map(|n| sample(NOON + n * 60, "a", "HTTP/2.0", n << 32))
        .collect();
    let rows = [row(NOON, "DE", 5)];
    store.commit(&rows, &samples).expect("they are stored");
    let retention = Retention {
        rows_s: u64::MAX,
        rollups_s: u64::MAX,
        max_bytes: 1 << 20,
    };
    maintain(&mut store, NOON + 100_000 * 60, &retention);
    let found = found(&store, &query(0, u64::MAX), Step::Minute);
    assert!((1..100_000).contains(&found.len()), "{}", found.len());
    assert_eq!(found.last().map(|last| last.0), Some(99_999 * 60));
    assert!(store.size_bytes().expect("a size") <= 1 << 20);
    let all = store.totals(&query(0, u64::MAX)).expect("totals");
    assert_eq!(all.connections, 1);
}
