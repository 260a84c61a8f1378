//! Random rows, maintenances and queries, compared with a list of all rows.

use std::collections::BTreeMap;

use firstbyte_tests::TempDir;
use store::{Connection, Dimension, Grouping, Histogram, Metric, Query, Retention, Store};

use crate::rows::{DAY, NOON, file, maintain, open, row};

const ROUNDS: u64 = 40;
const SERVERS: [&str; 2] = ["a.example", "b.example"];
const PROTOCOLS: [&str; 3] = ["HTTP/1.1", "HTTP/2.0", "SPDY/3.1"];

fn random_row(random: &mut fastrand::Rng) -> Connection {
    let closed_s = NOON + random.u64(0..3 * DAY);
    let mut row = row(
        closed_s,
        ["DE", "FR", ""][random.usize(0..3)],
        random.u32(1..1_000_000),
    );
    row.server = SERVERS[random.usize(0..2)].to_owned();
    row.protocol = PROTOCOLS[random.usize(0..3)].to_owned();
    row.operator = ["AS1", "AS2", ""][random.usize(0..3)].to_owned();
    row.subdivision = ["DE-BY", ""][random.usize(0..2)].to_owned();
    row.via_proxy = random.u8(0..8) == 0;
    row.handshake_us = random.bool().then(|| random.u32(..));
    row.bytes_sent = random.u64(0..1 << 40);
    row
}

fn random_query(random: &mut fastrand::Rng) -> Query {
    // Half of the ends are whole minutes.
    let end = |random: &mut fastrand::Rng| {
        let at = NOON - 3600 + random.u64(0..3 * DAY + 7200);
        if random.bool() { at - at % 60 } else { at }
    };
    let (from_s, to_s) = (end(random), end(random));
    Query {
        from_s: from_s.min(to_s),
        to_s: from_s.max(to_s),
        grouping: Grouping::Dimension(Dimension::ALL[random.usize(0..3)]),
        metric: Metric::ALL[random.usize(0..4)],
        protocol: random
            .bool()
            .then(|| PROTOCOLS[random.usize(0..3)].to_owned()),
        server: random
            .bool()
            .then(|| SERVERS[random.usize(0..2)].to_owned()),
        country: None,
    }
}

fn time(row: &Connection, metric: Metric) -> Option<u32> {
    match metric {
        Metric::MinRtt => row.min_rtt_us.filter(|_| !row.via_proxy),
        Metric::Rtt => row.rtt_us.filter(|_| !row.via_proxy),
        Metric::FirstByte => row.first_byte_us,
        Metric::Handshake => row.handshake_us,
    }
}

/// Counts, bytes and histograms by key, of the rows that a query chooses.
fn expected(
    rows: &[Connection],
    query: &Query,
    period: std::ops::Range<u64>,
) -> BTreeMap<String, (u64, u64, Histogram)> {
    let mut groups = BTreeMap::new();
    for row in rows {
        let key = match query.grouping {
            Grouping::Dimension(Dimension::Country) => row.country.map_or(String::new(), |code| {
                String::from_utf8_lossy(&code).into_owned()
            }),
            Grouping::Dimension(Dimension::Subdivision) => row.subdivision.clone(),
            Grouping::Dimension(Dimension::Operator) => row.operator.clone(),
            _ => continue,
        };
        let is_chosen = period.contains(&row.closed_s)
            && query
                .protocol
                .as_ref()
                .is_none_or(|name| *name == row.protocol)
            && query.server.as_ref().is_none_or(|name| *name == row.server)
            && (query.grouping == Grouping::default() || !key.is_empty());
        if is_chosen {
            let group: &mut (u64, u64, Histogram) = groups.entry(key).or_default();
            group.0 += 1;
            group.1 += row.bytes_sent;
            if let Some(us) = time(row, query.metric) {
                group.2.add(u64::from(us));
            }
        }
    }
    groups
}

#[test]
fn answers_are_those_of_all_rows() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let mut rows: Vec<Connection> = Vec::new();
    // Roll-ups of all rows stay, whatever happens to the rows.
    let retention = Retention {
        rows_s: DAY,
        ..Retention::default()
    };
    for round in 0..ROUNDS {
        let more: Vec<_> = (0..random.usize(0..60))
            .map(|_| random_row(&mut random))
            .collect();
        store.insert(&more).expect("they are stored");
        rows.extend(more);
        if random.bool() {
            // By then, minutes and some hours have no roll-ups by minute any more.
            maintain(&mut store, NOON + round * 3 * DAY / ROUNDS, &retention);
        }
        for _ in 0..20 {
            let query = random_query(&mut random);
            let answer = store.answer(&query).expect("an answer");
            let period = answer.from_s..answer.to_s.max(answer.from_s);
            assert!(answer.from_s >= query.from_s && answer.to_s >= query.to_s);
            let wanted = expected(&rows, &query, period);
            let groups = answer.groups.into_iter();
            let found: BTreeMap<_, _> = groups
                .map(|group| {
                    let totals = group.totals;
                    (
                        group.key,
                        (totals.connections, totals.bytes_sent, group.histogram),
                    )
                })
                .collect();
            assert_eq!(found, wanted, "seed {seed}, round {round}: {query:?}");
        }
    }
    assert!(rows.len() > 100);
}
