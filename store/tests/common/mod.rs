//! A set of rows, all kinds of queries, and their results from a plain list of the rows.
//!
//! [`check`] compares an engine with the list. Engines that pass it return the same results for the same rows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use store::{
    Answer, Connection, Dimension, Error, Group, Grouping, HandshakeKind, Histogram, Metric,
    Network, NetworkGroup, Networks, OpenConnections, OpenSample, Prefixes, Query, Stalls, Step,
    Store, TEXT_BYTES_MAX, Totals,
};

const DAY: u64 = 86_400;
/// Begin of a day in 2026.
pub(crate) const BEGIN: u64 = 20_500 * DAY;
/// Time of all rows.
const DAYS: u64 = 3;
/// Number of rows.
const ROWS: usize = 1_000;
/// Number of samples of open connections.
const OPEN: usize = 1_500;

const PROTOCOLS: [&str; 4] = ["HTTP/2.0", "HTTP/1.1", "SPDY/3.1", "HTTP/1.0"];
pub(crate) const SERVERS: [&str; 3] = ["a.example", "b.example", "it's \\ \"c\"\t\n{x:String} ?1"];
const COUNTRIES: [&str; 5] = ["DE", "US", "FR", "';", ""];
const SUBDIVISIONS: [&str; 6] = ["DE-BY", "DE-HH", "US-CA", "DE", "", "'; DROP TABLE x; --"];
const OPERATORS: [&str; 6] = [
    "AS64496 Example",
    "AS64497 \u{e9}\u{1f600}",
    "",
    "%_\\%",
    "null",
    "\\N",
];

/// Returns 1,000 random rows of three days, many of them at the ends of minutes, hours and days.
pub(crate) fn rows(seed: u64) -> Vec<Connection> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..ROWS).map(|n| row(&mut random, n)).collect()
}

fn row(random: &mut fastrand::Rng, n: usize) -> Connection {
    let at_s = BEGIN + random.u64(0..DAYS * DAY);
    let length = [1, 60, 3600, DAY][random.usize(0..4)];
    // At the begin of a second, minute, hour or day, or a second before.
    let closed_s = at_s / length * length + u64::from(random.bool()) * (length - 1);
    let mut time =
        |share: u8| (random.u8(0..4) < share).then(|| random.u32(..) >> random.u32(0..32));
    let (min_rtt_us, rtt_us, handshake_us, first_byte_us) = (time(3), time(3), time(2), time(3));
    let country = random.choice(COUNTRIES).expect("a country");
    let operator = random.choice(OPERATORS).expect("an operator");
    let client = match random.u8(0..5) {
        0 => None,
        1 | 2 => Some([192, 0, random.u8(0..4), random.u8(..)].into()),
        3 => Some(std::net::Ipv6Addr::new(0x2001, 0xdb8, random.u16(0..3), 1, 0, 0, 0, 7).into()),
        _ => Some([198, 51, 100, random.u8(..)].into()),
    };
    let mut text = |of: &[&str]| of[random.usize(0..of.len())].to_owned();
    Connection {
        closed_s,
        server: text(&SERVERS),
        protocol: text(&PROTOCOLS),
        tls: text(&["TLSv1.3", "TLSv1.2", ""]),
        subdivision: text(&SUBDIVISIONS),
        network: client.map(|client| Network::of(client, Prefixes::default())),
        country: country.as_bytes().try_into().ok(),
        // One in a hundred is cut.
        operator: match n % 100 {
            0 => "\u{e9}".repeat(TEXT_BYTES_MAX),
            _ => operator.to_owned(),
        },
        via_proxy: random.u8(0..8) == 0,
        min_rtt_us,
        rtt_us,
        retransmits: random.u32(0..5),
        bytes_sent: random.u64(0..1 << 40),
        bytes_received: random.u64(0..1 << 20),
        requests: random.u32(0..1000),
        statuses: [(); 4].map(|()| random.u32(0..300)),
        duration_ms: random.u64(0..1 << 33),
        handshake_us,
        handshake_kind: HandshakeKind::ALL[random.usize(0..4)],
        first_byte_us,
        stalls: Stalls {
            delayed_ack: random.u64(0..3),
            retransmit: random.u64(0..3),
            window: random.u64(0..3),
        },
    }
}

/// Returns random samples of open connections of the same days, several of some minutes.
pub(crate) fn open_samples(seed: u64) -> Vec<OpenSample> {
    let mut random = fastrand::Rng::with_seed(seed ^ 1);
    let sample = |_| OpenSample {
        // Few minutes in an hour: their samples meet.
        at_s: BEGIN + random.u64(0..DAYS * 24) * 3600 + random.u64(0..7) * 60 + random.u64(0..60),
        server: SERVERS[random.usize(0..3)].to_owned(),
        protocol: PROTOCOLS[random.usize(0..3)].to_owned(),
        connections: random.u64(0..1000),
    };
    (0..OPEN).map(sample).collect()
}

/// Returns queries of all groupings, filters and kinds of periods. Each grouping has each metric.
pub(crate) fn all_queries() -> Vec<Query> {
    let dimensions = Dimension::ALL.map(Grouping::Dimension);
    let steps = Step::ALL.map(Grouping::Time);
    let groupings = dimensions
        .into_iter()
        .chain([Grouping::Protocol, Grouping::Server])
        .chain(steps);
    let noon = BEGIN + DAY / 2;
    let periods = [
        (0, u64::MAX),
        (BEGIN, BEGIN + DAYS * DAY),
        (noon + 61, noon + DAY + 3661),
        (noon - 1, noon + 59),
        (noon + 3540, noon + DAY + 7260),
        (noon + 60, noon + 120),
        (noon + 1, noon + 1),
        (noon + 3600, noon),
        (0, BEGIN),
    ];
    let name = |name: &str| Some(name.to_owned());
    let filters = [
        (None, None, None),
        (name("HTTP/2.0"), None, None),
        (None, name(SERVERS[2]), None),
        (None, None, name("DE")),
        (None, None, name("")),
        (None, None, name("';")),
        (name("SPDY/3.1"), name("b.example"), name("US")),
        (name("HTTP/3"), None, None),
        (None, name(""), None),
        (None, None, name("XX")),
        (name("' OR 1 = 1 --"), name("\\"), None),
    ];
    let mut queries = Vec::new();
    for grouping in groupings {
        for (from_s, to_s) in periods {
            for (protocol, server, country) in filters.clone() {
                queries.push(Query {
                    from_s,
                    to_s,
                    grouping,
                    metric: Metric::ALL[queries.len() % 4],
                    protocol,
                    server,
                    country,
                });
            }
        }
    }
    queries
}

/// Compares the results of all queries with those of a list. Nothing that the store had is deleted.
///
/// # Panics
/// If a result differs.
#[track_caller]
pub(crate) fn check(store: &dyn Store, rows: &[Connection], open: &[OpenSample]) {
    for query in all_queries() {
        let answer = store.answer(&query);
        let totals = store.totals(&query);
        if query.check().is_err() {
            assert!(
                matches!(answer, Err(Error::Other(_))),
                "{query:?}: {answer:?}"
            );
            assert!(
                matches!(totals, Err(Error::Other(_))),
                "{query:?}: {totals:?}"
            );
        } else {
            let expected = answer_of(rows, &query);
            let answer = answer.unwrap_or_else(|error| panic!("{query:?}: {error}"));
            assert_eq!(answer, expected, "{query:?}");
            assert_eq!(totals, Ok(expected.totals()), "{query:?}");
        }
        // Neither depends on the grouping.
        if query.grouping == Grouping::Time(Step::Day) {
            for limit in [0, 1, 3, usize::MAX] {
                let found = store.networks(&query, limit);
                assert_eq!(found, Ok(networks_of(rows, &query, limit)), "{query:?}");
            }
            for step in Step::ALL {
                let found = store.open_connections(&query, step);
                match query.country {
                    None => assert_eq!(found, Ok(open_of(open, &query, step)), "{query:?}"),
                    Some(_) => assert!(matches!(found, Err(Error::Other(_))), "{query:?}"),
                }
            }
        }
    }
    assert_eq!(store.extent(), Ok(extent_of(rows)));
}

/// Returns the period that is read for a query.
fn period_of(query: &Query, length: u64) -> Range<u64> {
    let whole = |at: u64| {
        let later = at.saturating_add(length - 1);
        later - later % length
    };
    whole(query.from_s)..whole(query.to_s)
}

fn text(name: &str) -> String {
    name[..name.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}

fn country_of(row: &Connection) -> String {
    let code = row.country.unwrap_or_default();
    String::from_utf8_lossy(&code).trim_matches('\0').to_owned()
}

/// Returns whether a row passes the filters, that by country apart.
fn passes(row: &Connection, query: &Query) -> bool {
    let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|it| it == found);
    is(&query.protocol, &row.protocol) && is(&query.server, &row.server)
}

/// Returns the key of a row; `None` if it is in no group.
fn key_of(row: &Connection, query: &Query) -> Option<String> {
    let country = country_of(row);
    let wanted = query.country.as_ref();
    let key = match query.grouping {
        Grouping::Dimension(Dimension::Subdivision) => {
            let key = text(&row.subdivision);
            let is_wanted = wanted.is_none_or(|code| key.starts_with(&format!("{code}-")));
            return (is_wanted && !key.is_empty()).then_some(key);
        }
        Grouping::Dimension(Dimension::Operator) => {
            return Some(text(&row.operator)).filter(|key| !key.is_empty());
        }
        Grouping::Dimension(Dimension::Country) => country.clone(),
        Grouping::Protocol => row.protocol.clone(),
        Grouping::Server => row.server.clone(),
        Grouping::Time(step) => (row.closed_s / step.seconds() * step.seconds()).to_string(),
    };
    wanted.is_none_or(|code| *code == country).then_some(key)
}

fn totals_of(row: &Connection) -> Totals {
    Totals {
        connections: 1,
        requests: row.requests.into(),
        bytes_sent: row.bytes_sent,
        bytes_received: row.bytes_received,
        retransmits: row.retransmits.into(),
        via_proxy: row.via_proxy.into(),
        stalls: row.stalls,
        statuses: row.statuses.map(u64::from),
        duration_ms: row.duration_ms,
    }
}

fn time_of(row: &Connection, metric: Metric) -> Option<u32> {
    match metric {
        Metric::MinRtt => row.min_rtt_us.filter(|_| !row.via_proxy),
        Metric::Rtt => row.rtt_us.filter(|_| !row.via_proxy),
        Metric::FirstByte => row.first_byte_us,
        Metric::Handshake => row.handshake_us,
    }
}

/// Returns the groups of the rows within a period, sorted by key.
pub(crate) fn groups_of(rows: &[Connection], query: &Query, period: Range<u64>) -> Vec<Group> {
    let mut groups: BTreeMap<String, (Totals, Histogram)> = BTreeMap::new();
    for row in rows {
        if !period.contains(&row.closed_s) || !passes(row, query) {
            continue;
        }
        let Some(key) = key_of(row, query) else {
            continue;
        };
        let group = groups.entry(key).or_default();
        group.0.merge(&totals_of(row));
        if let Some(us) = time_of(row, query.metric) {
            group.1.add(u64::from(us));
        }
    }
    let groups = groups.into_iter();
    let named = groups.map(|(key, (totals, histogram))| Group {
        key,
        totals,
        histogram,
    });
    named.collect()
}

fn answer_of(rows: &[Connection], query: &Query) -> Answer {
    let by_minute = !matches!(
        query.grouping,
        Grouping::Dimension(Dimension::Subdivision | Dimension::Operator)
    );
    let period = period_of(query, if by_minute { 60 } else { 3600 });
    Answer {
        from_s: period.start,
        to_s: period.end,
        groups: groups_of(rows, query, period),
    }
}

fn networks_of(rows: &[Connection], query: &Query, limit: usize) -> Networks {
    let period = period_of(query, 60);
    let mut networks: BTreeMap<String, Totals> = BTreeMap::new();
    let mut connections = 0;
    for row in rows {
        let wanted = query.country.as_ref();
        let is_wanted = wanted.is_none_or(|code| *code == country_of(row));
        if period.contains(&row.closed_s) && passes(row, query) && is_wanted {
            let name = row.network.map_or(String::new(), |it| it.to_string());
            networks.entry(name).or_default().merge(&totals_of(row));
            connections += 1;
        }
    }
    let mut groups: Vec<NetworkGroup> = networks
        .into_iter()
        .map(|(network, totals)| NetworkGroup { network, totals })
        .collect();
    // The order of names remains among equals.
    groups.sort_by_key(|group| std::cmp::Reverse(group.totals.connections));
    groups.truncate(limit);
    Networks {
        groups,
        connections,
        is_cut: false,
    }
}

fn open_of(samples: &[OpenSample], query: &Query, step: Step) -> Vec<OpenConnections> {
    let period = period_of(query, 60);
    // The largest number of a minute, protocol and server.
    let mut largest: BTreeMap<(u64, &str, &str), u64> = BTreeMap::new();
    for sample in samples {
        let minute_s = sample.at_s / 60 * 60;
        let wanted = query.server.as_ref();
        if period.contains(&minute_s) && wanted.is_none_or(|server| *server == sample.server) {
            let own = largest
                .entry((minute_s, &sample.protocol, &sample.server))
                .or_default();
            *own = sample.connections.max(*own);
        }
    }
    let mut minutes: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut sums: BTreeMap<(u64, &str), BTreeMap<u64, u64>> = BTreeMap::new();
    for ((minute_s, protocol, _), connections) in largest {
        let start_s = minute_s / step.seconds() * step.seconds();
        minutes.entry(start_s).or_default().insert(minute_s);
        let of_protocol = sums.entry((start_s, protocol)).or_default();
        *of_protocol.entry(minute_s).or_default() += connections;
    }
    let wanted = query.protocol.as_deref();
    let found = sums
        .into_iter()
        .filter(|((_, protocol), _)| wanted.is_none_or(|it| it == *protocol))
        .map(|((start_s, protocol), numbers)| OpenConnections {
            start_s,
            protocol: protocol.to_owned(),
            mean: numbers.values().sum::<u64>() as f64 / minutes[&start_s].len() as f64,
            max: numbers.values().copied().max().unwrap_or_default(),
        });
    found.collect()
}

fn extent_of(rows: &[Connection]) -> Option<(u64, u64)> {
    let minutes = || rows.iter().map(|row| row.closed_s / 60 * 60);
    Some((minutes().min()?, minutes().max()? + 60))
}
