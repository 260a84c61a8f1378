//! Answers of a store: maps, totals, and periods that count each connection once.

use firstbyte_tests::TempDir;
use store::{Answer, Dimension, Grouping, Histogram, Metric, Query, Retention, Stalls, Store};

use crate::rows::{DAY, NOON, file, maintain, open, row};

fn query(from_s: u64, to_s: u64) -> Query {
    Query {
        from_s,
        to_s,
        ..Query::default()
    }
}

fn counts(answer: &Answer) -> Vec<(&str, u64, u64)> {
    answer
        .groups
        .iter()
        .map(|group| {
            (
                &*group.key,
                group.totals.connections,
                group.histogram.count(),
            )
        })
        .collect()
}

#[test]
fn sqlite_is_new_enough() {
    // Earlier versions can damage a file if two processes write it.
    assert!(rusqlite::version_number() >= 3_052_000);
}

#[test]
fn rows_count_once_before_and_after_their_roll_up() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let whole = query(NOON - DAY, NOON + DAY);
    let rows = [
        row(NOON, "DE", 5000),
        row(NOON + 1, "DE", 6000),
        row(NOON, "", 9),
    ];
    store.insert(&rows).expect("it is stored");
    let before = store.answer(&whole).expect("an answer");
    assert_eq!(counts(&before), [("", 1, 1), ("DE", 2, 2)]);
    maintain(&mut store, NOON, &Retention::default());
    assert_eq!(store.answer(&whole).expect("an answer"), before);
    store
        .insert(&[row(NOON + 2, "DE", 6000)])
        .expect("it is stored");
    let after = store.answer(&whole).expect("an answer");
    assert_eq!(counts(&after), [("", 1, 1), ("DE", 3, 3)]);
    maintain(&mut store, NOON, &Retention::default());
    assert_eq!(store.answer(&whole).expect("an answer"), after);
    let mut expected = Histogram::default();
    [5000, 6000, 6000].iter().for_each(|us| expected.add(*us));
    assert_eq!(after.groups[1].histogram, expected);
    let totals = store.totals(&whole).expect("totals");
    assert_eq!(totals, after.totals());
    assert_eq!(
        (totals.connections, totals.requests, totals.bytes_sent),
        (4, 12, 4000)
    );
    assert_eq!((totals.bytes_received, totals.retransmits), (40, 4));
    let stalls = Stalls {
        delayed_ack: 4,
        retransmit: 8,
        window: 12,
    };
    assert_eq!(totals.stalls, stalls);
}

#[test]
fn dimensions_metrics_and_filters_choose() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let mut other = row(NOON, "FR", 800);
    other.server = "b.example".to_owned();
    other.protocol = "HTTP/1.1".to_owned();
    other.operator.clear();
    other.subdivision = "FR-IDF".to_owned();
    store
        .insert(&[row(NOON, "DE", 500), other])
        .expect("it is stored");
    for rolled in [false, true] {
        let base = query(NOON - DAY, NOON + DAY);
        let ask = |change: &dyn Fn(&mut Query)| {
            let mut query = base.clone();
            change(&mut query);
            store.answer(&query).expect("an answer")
        };
        let operators = ask(&|query| query.grouping = Grouping::Dimension(Dimension::Operator));
        assert_eq!(counts(&operators), [("AS64496 Example", 1, 1)], "{rolled}");
        let subdivisions =
            ask(&|query| query.grouping = Grouping::Dimension(Dimension::Subdivision));
        assert_eq!(counts(&subdivisions), [("FR-IDF", 1, 1)], "{rolled}");
        let one = ask(&|query| query.protocol = Some("HTTP/1.1".to_owned()));
        assert_eq!(counts(&one), [("FR", 1, 1)], "{rolled}");
        let one = ask(&|query| query.server = Some("a.example".to_owned()));
        assert_eq!(counts(&one), [("DE", 1, 1)], "{rolled}");
        for unknown in ["c.example", ""] {
            let none = ask(&|query| query.server = Some(unknown.to_owned()));
            assert_eq!(counts(&none), [], "{rolled}");
        }
        let rtts = ask(&|query| query.metric = Metric::Rtt);
        let median = rtts.groups[0].histogram.quantile_us(0.5);
        assert_eq!(median, Some(1000.0), "{rolled}");
        let first = ask(&|query| query.metric = Metric::FirstByte);
        assert_eq!(first.groups[0].histogram.quantile_us(0.5), Some(7.0));
        let none = ask(&|query| query.metric = Metric::Handshake);
        assert_eq!(counts(&none), [("DE", 1, 0), ("FR", 1, 0)]);
        maintain(&mut store, NOON, &Retention::default());
    }
}

#[test]
fn connections_through_a_proxy_have_no_rtt() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let mut proxied = row(NOON, "DE", 500);
    proxied.via_proxy = true;
    store
        .insert(&[proxied, row(NOON, "DE", 900)])
        .expect("it is stored");
    for _ in 0..2 {
        for (metric, count) in [
            (Metric::MinRtt, 1),
            (Metric::Rtt, 1),
            (Metric::FirstByte, 2),
        ] {
            let query = Query {
                metric,
                ..query(NOON, NOON + 60)
            };
            let answer = store.answer(&query).expect("an answer");
            assert_eq!(counts(&answer), [("DE", 2, count)], "{metric:?}");
            assert_eq!(answer.totals().via_proxy, 1);
        }
        maintain(&mut store, NOON, &Retention::default());
    }
}

/// A period at the edges of minutes, hours and days counts each connection once, from rows and from roll-ups.
#[test]
fn edges_of_periods_count_once() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let day = NOON - DAY / 2;
    let edges = [day, day + 60, day + 3600, day + DAY, day + DAY + 3660];
    let mut rows = Vec::new();
    for edge in edges {
        // Below, at and above.
        rows.extend([edge - 1, edge, edge + 1].map(|at| row(at, "DE", 5)));
    }
    store.insert(&rows).expect("they are stored");
    let later = day + DAY + 7200;
    for rolled in [false, true] {
        for from_s in edges {
            for to_s in edges {
                let found = store.totals(&query(from_s, to_s)).expect("totals");
                let within = rows
                    .iter()
                    .filter(|row| (from_s..to_s).contains(&row.closed_s));
                let expected = within.count() as u64;
                assert_eq!(found.connections, expected, "{from_s} to {to_s}, {rolled}");
            }
        }
        let answer = store.answer(&query(day - 1, later)).expect("an answer");
        assert_eq!((answer.from_s, answer.to_s), (day, later));
        // The edge of a query moves to the next minute: two adjoining periods share nothing.
        for edge in day + DAY..day + DAY + 120 {
            let count = |from_s, to_s| store.totals(&query(from_s, to_s)).expect("totals");
            let (first, second) = (count(0, edge), count(edge, later));
            let both = first.connections + second.connections;
            assert_eq!(both, rows.len() as u64, "{edge}");
        }
        maintain(&mut store, later, &Retention::default());
    }
}

#[test]
fn operators_are_read_by_whole_hours() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    store
        .insert(&[NOON - 1, NOON, NOON + 3599, NOON + 3600].map(|at| row(at, "DE", 5)))
        .expect("they are stored");
    for _ in 0..2 {
        let query = Query {
            grouping: Grouping::Dimension(Dimension::Operator),
            ..query(NOON - 60, NOON + 60)
        };
        let answer = store.answer(&query).expect("an answer");
        assert_eq!((answer.from_s, answer.to_s), (NOON, NOON + 3600));
        assert_eq!(counts(&answer), [("AS64496 Example", 2, 2)]);
        maintain(&mut store, NOON, &Retention::default());
    }
}

/// Times before 1970 + 60 s, after the year 9999, and going back: none is lost, and none spoils the others.
#[test]
fn clock_may_jump() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let times = [NOON, 1, NOON - 10 * DAY, u64::MAX, NOON + 1, 0, NOON - 1];
    for at in times {
        store.insert(&[row(at, "DE", 5)]).expect("it is stored");
        maintain(&mut store, at.min(NOON), &Retention::default());
    }
    // The roll-ups of 1970 were too old when their rows came.
    let all = store.totals(&query(0, u64::MAX)).expect("totals");
    assert_eq!(all.connections, times.len() as u64 - 2);
    let near = store.totals(&query(NOON - 60, NOON + 60)).expect("totals");
    assert_eq!(near.connections, 3);
}

#[test]
fn largest_numbers_come_back() {
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let mut large = row(NOON, "DE", u32::MAX / 2);
    large.bytes_sent = u64::MAX;
    large.requests = u32::MAX;
    large.rtt_us = Some(u32::MAX);
    large.handshake_us = Some(0);
    store
        .insert(&[large.clone(), large])
        .expect("they are stored");
    for _ in 0..2 {
        let totals = store.totals(&query(0, u64::MAX)).expect("totals");
        // SQLite's integers end there.
        assert!(totals.bytes_sent >= i64::MAX as u64);
        assert_eq!(totals.requests, 2 * u64::from(u32::MAX));
        maintain(&mut store, NOON, &Retention::default());
    }
}
