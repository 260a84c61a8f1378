//! Random rows, maintenances and queries, compared with a list of all rows.

use firstbyte_tests::TempDir;
use store::{Connection, Dimension, Grouping, Metric, Query, Retention, Step, Store};

use crate::common::groups_of;
use crate::rows::{DAY, NOON, file, maintain, open, row};

const ROUNDS: u64 = 40;
const SERVERS: [&str; 2] = ["a.example", "b.example"];
/// Hours and minutes of steps may be deleted.
const GROUPINGS: [Grouping; 6] = [
    Grouping::Dimension(Dimension::Country),
    Grouping::Dimension(Dimension::Subdivision),
    Grouping::Dimension(Dimension::Operator),
    Grouping::Protocol,
    Grouping::Server,
    Grouping::Time(Step::Day),
];
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
        grouping: GROUPINGS[random.usize(0..GROUPINGS.len())],
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

#[test]
fn answers_are_those_of_all_rows() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    let mut rows: Vec<Connection> = Vec::new();
    // Roll-ups of all rows stay, even if the rows are deleted.
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
            let expected = groups_of(&rows, &query, period);
            assert_eq!(
                answer.groups, expected,
                "seed {seed}, round {round}: {query:?}"
            );
        }
    }
    assert!(rows.len() > 100);
}
