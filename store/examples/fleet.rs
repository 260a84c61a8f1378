//! Generates connections of 30 days in a ClickHouse server, and measures their size and the map of these days.
//!
//! `cargo run --release -p firstbyte-store --example fleet -- PORT CONNECTIONS SERVERS` uses the database `fleet` of a server at
//! 127.0.0.1. If the database has rows, it is only read. The first day is inserted in blocks of a million, which fill the roll-ups.
//! The other days are copies of it with later times. 200 countries, their 2,000 subdivisions and 5,000 network operators have
//! frequencies near Zipf's law; round-trip times are lognormal.

#[path = "../tests/clickhouse/http.rs"]
// The tests use all of it.
#[allow(dead_code)]
mod http;

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use http::Http;
use store::{
    ClickHouse, ClickHouseSettings, Dimension, Grouping, Query, Report, Retention, Store,
    Transport, Writer,
};

const DAY_S: u64 = 86_400;
const DAYS: u64 = 30;
const DATABASE: &str = "fleet";
/// Rows of an insertion.
const BLOCK: u64 = 1_000_000;

/// Makes the schema, as any server does.
fn prepare(port: u16, spill: PathBuf) {
    let settings = ClickHouseSettings {
        database: DATABASE.to_owned(),
        user: None,
        password: None,
        spill,
        spill_bytes: 1 << 20,
        batch_pause: Duration::from_secs(1),
        retention: Retention::default(),
    };
    let (send, reports) = channel();
    let connect = Box::new(move || -> Box<dyn Transport> { Box::new(Http::new(port)) });
    let writer = Writer::start_clickhouse(settings, connect, move |report| {
        println!("{report}");
        let _ = send.send(report);
    });
    let writer = writer.expect("a thread");
    while !matches!(reports.recv(), Ok(Report::Connected { .. }) | Err(_)) {}
    writer.close();
}

/// A number from 0 to below `count` with frequencies near Zipf's law, from a random column.
fn zipf(count: u32, random: u32) -> String {
    format!(
        "toUInt32(pow({}, rand({random}) / 4294967296.) - 1)",
        count + 1
    )
}

/// Rows of a day from `first` to before `end` of so many in all.
fn rows(first_s: u64, first: u64, end: u64, all: u64, servers: u64) -> String {
    let (country, subdivision, operator) = (zipf(200, 1), zipf(10, 2), zipf(25, 3));
    let normal = "(rand(4) + rand(5) + rand(6) + rand(7) - 8589934592.) / 2479700524.";
    format!(
        "INSERT INTO {DATABASE}.connection (closed_s, server, protocol, tls, country, subdivision, operator, network, \
         via_proxy, min_rtt_us, rtt_us, first_byte_us, handshake_us, handshake_kind, requests, bytes_sent, bytes_received, \
         retransmits, status_2xx, status_3xx, status_4xx, duration_ms, run, batch) \
         SELECT toUInt64({first_s} + intDiv(number * {DAY_S}, {all})), \
         concat('www', toString(rand(8) % {servers}), '.example.org'), \
         ['HTTP/2.0', 'HTTP/1.1', 'SPDY/3.1', 'HTTP/1.0'][1 + (lot >= 70) + (lot >= 95) + (lot >= 98)], 'TLSv1.3', \
         concat(substring('ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1 + intDiv(place, 26), 1), \
         substring('ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1 + place % 26, 1)) AS code, \
         concat(code, '-', toString({subdivision})), \
         concat('AS', toString(64496 + place * 25 + operator_place), ' Example ', toString(place * 25 + operator_place)), \
         concat(toString(1 + rand(9) % 223), '.', toString(rand(10) % 256), '.', toString(rand(11) % 256), '.0/24'), 0, \
         toUInt32((5000 + place * 1500) * exp(0.5 * {normal})) AS min_rtt, \
         toUInt32(min_rtt * 1.2) AS rtt, toUInt32(rtt + 700), toUInt32(min_rtt + 900), 'full', \
         1 + rand(12) % 29, 1000 + rand(13) % 999000, 300 + rand(14) % 2700, lot = 0, \
         1 + rand(15) % 19, intDiv(lot, 50), intDiv(lot, 95), 100 + rand(16) % 89900, 1, intDiv(number, {BLOCK}) \
         FROM (SELECT number, {country} AS place, {operator} AS operator_place, rand(17) % 100 AS lot \
         FROM system.numbers WHERE number >= {first} LIMIT {}) AS drawn",
        end - first
    )
}

fn run(port: u16, text: &str) {
    let begin = Instant::now();
    let mut http = Http::new(port);
    http.timeout = Duration::from_secs(3600);
    let answer = http.run_here(text);
    assert_eq!(answer, "", "{text}");
    println!("{:.1} s: {:.60}", begin.elapsed().as_secs_f64(), text);
}

fn generate(port: u16, connections: u64, servers: u64) {
    let today = SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |it| it.as_secs())
        / DAY_S;
    let first_day = today - DAYS;
    let of_day = connections / DAYS;
    let mut first = 0;
    while first < of_day {
        let end = of_day.min(first + BLOCK);
        run(port, &rows(first_day * DAY_S, first, end, of_day, servers));
        first = end;
    }
    let tables = ["connection", "rollup_hour", "rollup_day"];
    for table in tables {
        run(
            port,
            &format!("OPTIMIZE TABLE {DATABASE}.{table} PARTITION {first_day} FINAL"),
        );
    }
    // Copies fill the roll-ups themselves.
    for view in ["rollup_hour_view", "rollup_day_view"] {
        run(port, &format!("DETACH TABLE {DATABASE}.{view}"));
    }
    let columns = |table: &str| {
        let text = format!(
            "SELECT name FROM system.columns WHERE database = '{DATABASE}' AND table = '{table}' FORMAT TabSeparated"
        );
        let names = Http::run(port, &text);
        names
            .lines()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
    };
    for table in tables {
        let names = columns(table);
        for days in 1..DAYS {
            let later = |name: &String| match name.as_str() {
                "`day`" => format!("toUInt32(day + {days})"),
                "`closed_s`" => format!("closed_s + {}", days * DAY_S),
                "`start_s`" => format!("if(dimension = 3, start_s, start_s + {})", days * DAY_S),
                "`batch`" => format!("batch + {}", days * 1000),
                _ => name.clone(),
            };
            let values: Vec<String> = names.iter().map(later).collect();
            let chosen = match table {
                "connection" => format!("intDiv(closed_s, {DAY_S})"),
                _ => "day".to_owned(),
            };
            run(
                port,
                &format!(
                    "INSERT INTO {DATABASE}.{table} ({}) SELECT {} FROM {DATABASE}.{table} WHERE {chosen} = {first_day}",
                    names.join(", "),
                    values.join(", ")
                ),
            );
        }
    }
    for view in ["rollup_hour_view", "rollup_day_view"] {
        run(port, &format!("ATTACH TABLE {DATABASE}.{view}"));
    }
}

fn measure(port: u16) {
    let sizes = format!(
        "SELECT table, sum(rows), sum(bytes_on_disk), count() FROM system.parts WHERE active AND database = '{DATABASE}' \
         GROUP BY table ORDER BY table"
    );
    print!("table, rows, bytes, parts\n{}", Http::run(port, &sizes));
    let store = ClickHouse::reader(Box::new(Http::new(port)), DATABASE.to_owned(), None, None);
    let (from_s, to_s) = store.extent().expect("an answer").expect("rows");
    let kinds = [
        ("countries", Grouping::Dimension(Dimension::Country)),
        ("subdivisions", Grouping::Dimension(Dimension::Subdivision)),
        ("operators", Grouping::Dimension(Dimension::Operator)),
        ("servers", Grouping::Server),
    ];
    for (name, grouping) in kinds {
        let query = Query {
            from_s,
            to_s,
            grouping,
            ..Query::default()
        };
        let times: Vec<String> = (0..3)
            .map(|_| {
                let begin = Instant::now();
                let answer = store.answer(&query).expect("an answer");
                let time = begin.elapsed().as_secs_f64();
                let connections = answer.totals().connections;
                format!(
                    "{time:.3} s ({connections} connections in {} groups)",
                    answer.groups.len()
                )
            })
            .collect();
        println!("{name}: {}", times.join(", "));
    }
}

fn main() {
    let words: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let [port, connections, servers] = words[..] else {
        eprintln!("usage: fleet PORT CONNECTIONS SERVERS");
        std::process::exit(2);
    };
    let port = u16::try_from(port).expect("a port");
    let spill = std::env::temp_dir().join(format!("fleet-{}", std::process::id()));
    prepare(port, spill.clone());
    let _ = std::fs::remove_dir_all(spill);
    let count = Http::run(port, &format!("SELECT count() FROM {DATABASE}.connection"));
    if count == "0\n" {
        generate(port, connections, servers);
    }
    measure(port);
}
