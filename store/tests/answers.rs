//! Answers of a store: maps, totals, and periods that count each connection once.

use std::time::Duration;

use firstbyte_tests::TempDir;
use store::{
    Connection, Dimension, Histogram, MapAnswer, Metric, Network, Prefixes, Query, Retention,
    Sqlite, Stalls, Store,
};

const DAY: u64 = 86_400;
/// Begin of a day in 2026.
const NOON: u64 = 20_500 * DAY + DAY / 2;

fn row(closed_s: u64, country: &str, min_rtt_us: u32) -> Connection {
    let bytes = country.as_bytes();
    Connection {
        closed_s,
        server: "a.example".to_owned(),
        protocol: "HTTP/2.0".to_owned(),
        tls: "TLSv1.3".to_owned(),
        network: Some(Network::of([192, 0, 2, 1].into(), Prefixes::default())),
        country: bytes.try_into().ok(),
        operator: "AS64496 Example".to_owned(),
        min_rtt_us: Some(min_rtt_us),
        rtt_us: Some(min_rtt_us * 2),
        bytes_sent: 1000,
        bytes_received: 10,
        requests: 3,
        retransmits: 1,
        first_byte_us: Some(7),
        stalls: Stalls {
            delayed_ack: 1,
            retransmit: 2,
            window: 3,
        },
        ..Connection::default()
    }
}

fn open(dir: &TempDir) -> Sqlite {
    let opened = Sqlite::open(&dir.path().join("store")).expect("it opens");
    assert_eq!(opened.moved_aside, None);
    opened.store
}

fn roll(store: &mut Sqlite, now_s: u64) {
    let limit = Duration::from_secs(60);
    let done = store.maintain(now_s, &Retention::default(), limit);
    assert!(!done.expect("roll-ups").more);
}

fn query(from_s: u64, to_s: u64) -> Query {
    Query {
        from_s,
        to_s,
        ..Query::default()
    }
}

fn counts(answer: &MapAnswer) -> Vec<(&str, u64, u64)> {
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
    let mut store = open(&dir);
    let whole = query(NOON - DAY, NOON + DAY);
    let rows = [
        row(NOON, "DE", 5000),
        row(NOON + 1, "DE", 6000),
        row(NOON, "", 9),
    ];
    store.insert(&rows).expect("it is stored");
    let before = store.map(&whole).expect("an answer");
    assert_eq!(counts(&before), [("", 1, 1), ("DE", 2, 2)]);
    roll(&mut store, NOON);
    assert_eq!(store.map(&whole).expect("an answer"), before);
    store
        .insert(&[row(NOON + 2, "DE", 6000)])
        .expect("it is stored");
    let after = store.map(&whole).expect("an answer");
    assert_eq!(counts(&after), [("", 1, 1), ("DE", 3, 3)]);
    roll(&mut store, NOON);
    assert_eq!(store.map(&whole).expect("an answer"), after);
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
    let mut store = open(&dir);
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
            store.map(&query).expect("an answer")
        };
        let operators = ask(&|query| query.dimension = Dimension::Operator);
        assert_eq!(counts(&operators), [("AS64496 Example", 1, 1)], "{rolled}");
        let subdivisions = ask(&|query| query.dimension = Dimension::Subdivision);
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
        roll(&mut store, NOON);
    }
}

#[test]
fn connections_through_a_proxy_have_no_rtt() {
    let dir = TempDir::new();
    let mut store = open(&dir);
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
            let answer = store.map(&query).expect("an answer");
            assert_eq!(counts(&answer), [("DE", 2, count)], "{metric:?}");
            assert_eq!(answer.totals().via_proxy, 1);
        }
        roll(&mut store, NOON);
    }
}
