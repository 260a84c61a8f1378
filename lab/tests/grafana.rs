//! Every query of the dashboard for Grafana, in ClickHouse 18.16, over rows that the store's client wrote.
//!
//! Grafana replaces variables as text; `replaced` does the same. Without clickhouse-server the tests are skipped.

use std::time::{Duration, SystemTime};

use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::wait_until;
use lab::client::Url;
use lab::fetch::{HttpClient, HttpClientSettings};
use serde_json::Value;
use store::{
    ClickHouseSettings, Connection, HttpRequest, OpenSample, Retention, Stalls, Transport, Writer,
};

const DASHBOARD: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../packaging/grafana/firstbyte.json"
);
const HOUR_S: u64 = 3600;
/// Connections in each hour of each server and country.
const ROWS: u64 = 5;
const HOURS: u64 = 3;
const SERVERS: [&str; 2] = ["a.example.org", "it's \"b\""];
const COUNTRIES: [[u8; 2]; 2] = [*b"DE", *b"US"];

fn dashboard() -> Value {
    let text = std::fs::read_to_string(DASHBOARD).expect("the dashboard is there");
    serde_json::from_str(&text).expect("it is JSON")
}

fn client(server: &ClickHouse) -> HttpClient {
    let url = Url::parse(&format!("http://127.0.0.1:{}/", server.port()));
    HttpClient::new(HttpClientSettings::new(&url.expect("a URL")))
}

/// A whole hour of yesterday, Unix seconds.
fn begin_s() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let day_s = 24 * HOUR_S;
    (now.expect("after 1970").as_secs() / day_s - 1) * day_s + 6 * HOUR_S
}

fn row(at_s: u64, server: &str, country: [u8; 2], n: u64) -> Connection {
    Connection {
        closed_s: at_s + n,
        server: server.to_owned(),
        protocol: ["HTTP/1.1", "HTTP/2.0"][(n % 2) as usize].to_owned(),
        country: Some(country),
        subdivision: format!("{}-X", String::from_utf8_lossy(&country)),
        operator: "AS64496 Example".to_owned(),
        min_rtt_us: Some(20_000),
        rtt_us: Some(30_000),
        first_byte_us: Some(40_000),
        handshake_us: Some(50_000),
        requests: 4,
        statuses: [1, 1, 1, 1],
        bytes_sent: 1000,
        bytes_received: 100,
        stalls: Stalls {
            delayed_ack: 1,
            ..Stalls::default()
        },
        ..Connection::default()
    }
}

/// Writes rows with the client of the store; returns their number.
fn fill(server: &ClickHouse, database: &str) -> u64 {
    let settings = ClickHouseSettings {
        database: database.to_owned(),
        user: Some("writer".to_owned()),
        password: Some("s3cret".to_owned()),
        spill: server.path().join(format!("spill-{database}")),
        spill_bytes: 1 << 24,
        batch_pause: Duration::from_millis(100),
        retention: Retention::default(),
    };
    let url = Url::parse(&format!("http://127.0.0.1:{}/", server.port())).expect("a URL");
    let connect = Box::new(move || -> Box<dyn Transport> {
        Box::new(HttpClient::new(HttpClientSettings::new(&url)))
    });
    let writer = Writer::start_clickhouse(settings, connect, |_| {}).expect("a thread");
    let mut written = 0;
    for hour in 0..HOURS {
        let at_s = begin_s() + hour * HOUR_S;
        for name in SERVERS {
            for country in COUNTRIES {
                for n in 0..ROWS {
                    assert!(writer.offer(row(at_s, name, country, n)));
                    written += 1;
                }
            }
            for minute in 0..3 {
                assert!(writer.offer_open(OpenSample {
                    at_s: at_s + minute * 60,
                    server: name.to_owned(),
                    protocol: "HTTP/2.0".to_owned(),
                    connections: 7,
                }));
            }
        }
    }
    wait_until("all rows are stored", || {
        let counts = writer.counters().counts();
        counts.written == written && counts.spilled_batches == 0 && counts.queued == 0
    });
    written
}

/// Values of the variables of the dashboard.
#[derive(Clone, Copy)]
struct DashboardVariables<'a> {
    database: &'a str,
    rollup: &'a str,
    metric: &'a str,
    server: &'a str,
    protocol: &'a str,
    country: &'a str,
}

const ALL: DashboardVariables<'_> = DashboardVariables {
    database: "firstbyte",
    rollup: "hour",
    metric: "min_rtt",
    server: "all",
    protocol: "all",
    country: "all",
};

/// A query with its variables replaced as Grafana does.
fn replaced(query: &str, choice: DashboardVariables<'_>) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "\\'"));
    let replacements = [
        ("${database}", choice.database.to_owned()),
        ("${rollup}", choice.rollup.to_owned()),
        ("${metric}", choice.metric.to_owned()),
        ("${server:singlequote}", quoted(choice.server)),
        ("${protocol:singlequote}", quoted(choice.protocol)),
        ("${country:singlequote}", quoted(choice.country)),
        ("${__from:date:seconds}", begin_s().to_string()),
        (
            "${__to:date:seconds}",
            (begin_s() + HOURS * HOUR_S).to_string(),
        ),
        ("$__interval_ms", "60000".to_owned()),
    ];
    let query = replacements
        .iter()
        .fold(query.to_owned(), |query, (name, value)| {
            query.replace(name, value)
        });
    assert!(!query.contains('$'), "an unknown variable: {query}");
    query
}

/// Rows of a query by the names of their columns, as the reader without rights to write gets them.
fn rows(client: &mut HttpClient, query: &str) -> Vec<serde_json::Map<String, Value>> {
    let text = format!("{query} FORMAT JSON");
    let request = HttpRequest {
        method: "POST",
        target: "/?wait_end_of_query=1",
        headers: &[("X-ClickHouse-User", "reader")],
        body: text.as_bytes(),
    };
    let response = client.send(&request).expect("a response");
    let text = String::from_utf8_lossy(&response.body);
    assert_eq!(response.status, 200, "{query}: {text}");
    let answer: Value = serde_json::from_str(&text).expect("it is JSON");
    let rows = answer["data"].as_array().expect("rows").iter();
    rows.map(|row| row.as_object().expect("columns").clone())
        .collect()
}

fn number(value: &Value) -> f64 {
    // ClickHouse writes numbers of 64 bits as texts.
    let text = value.as_str().map(str::to_owned);
    let text = text.unwrap_or_else(|| value.to_string());
    text.parse().expect("a number")
}

/// Queries by the titles of their panels.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let each = panels.flat_map(|panel| {
        let title = panel["title"].as_str().expect("a title");
        let targets = panel["targets"].as_array().expect("targets").iter();
        targets.map(move |target| {
            let text = target["rawSql"].as_str().expect("a query");
            (title.to_owned(), text.to_owned())
        })
    });
    each.collect()
}

fn query_of(dashboard: &Value, title: &str) -> String {
    let mut all = queries(dashboard).into_iter();
    all.find(|(name, _)| name == title).expect("a panel").1
}

#[test]
fn every_query_has_rows() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    fill(&server, "firstbyte");
    let (dashboard, mut client) = (dashboard(), client(&server));
    let all = queries(&dashboard);
    assert!(all.len() > 15);
    for (title, query) in &all {
        for rollup in ["hour", "day"] {
            for metric in ["min_rtt", "rtt", "first_byte", "handshake"] {
                for (name, country) in [("all", "all"), (SERVERS[1], "DE")] {
                    let choice = DashboardVariables {
                        rollup,
                        metric,
                        server: name,
                        country,
                        protocol: if name == "all" { "all" } else { "HTTP/2.0" },
                        ..ALL
                    };
                    let found = rows(&mut client, &replaced(query, choice));
                    assert!(!found.is_empty(), "{title}, {rollup}, {metric}, {name}");
                }
            }
        }
    }
    let variables = dashboard["templating"]["list"].as_array();
    let mut choices = Vec::new();
    for variable in variables.expect("variables") {
        if let Some(query) = variable["definition"].as_str() {
            let found = rows(&mut client, &replaced(query, ALL));
            let found = found
                .iter()
                .map(|row| row["choice"].as_str().expect("a text"));
            choices.push(found.map(str::to_owned).collect::<Vec<_>>());
        }
    }
    assert_eq!(choices[0], ["all", SERVERS[0], SERVERS[1]]);
    assert_eq!(choices[1], ["all", "HTTP/1.1", "HTTP/2.0"]);
    assert_eq!(choices[2], ["all", "DE", "US"]);
}

#[test]
fn figures_are_those_of_the_rows() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    // A name that needs its quotes.
    let choice = DashboardVariables {
        database: "first-byte",
        ..ALL
    };
    let written = fill(&server, choice.database);
    let (dashboard, mut client) = (dashboard(), client(&server));
    let mut value = |title: &str, choice| {
        let query = replaced(&query_of(&dashboard, title), choice);
        number(&rows(&mut client, &query)[0]["value"])
    };
    assert_eq!(value("Connections", choice), written as f64);
    assert_eq!(value("Requests", choice), written as f64 * 4.0);
    assert_eq!(value("Responses 5xx", choice), 0.25);
    assert_eq!(value("Stalled requests", choice), 0.25);
    // Buckets are within 3 % of the time.
    let median = value("Median first byte", choice);
    assert!((median - 40.0).abs() < 40.0 * 0.03, "{median}");
    let one_server = DashboardVariables {
        server: SERVERS[1],
        ..choice
    };
    assert_eq!(value("Connections", one_server), written as f64 / 2.0);
    // A name that would choose all if it were no text.
    let hostile = DashboardVariables {
        server: "x' OR 1 = 1 OR 'x",
        ..choice
    };
    assert_eq!(value("Connections", hostile), 0.0);
    let countries = replaced(&query_of(&dashboard, "Countries"), choice);
    for row in rows(&mut client, &countries) {
        assert_eq!(number(&row["Connections"]), written as f64 / 2.0);
        assert!((number(&row["Median"]) - 20.0).abs() < 20.0 * 0.03);
    }
    let open = replaced(&query_of(&dashboard, "Open connections"), choice);
    for row in rows(&mut client, &open) {
        assert_eq!(number(&row["open"]), 14.0);
    }
    let statuses = replaced(&query_of(&dashboard, "Responses by status"), choice);
    let statuses = rows(&mut client, &statuses);
    assert_eq!(statuses.len() as u64, HOURS);
    let a_second = (ROWS * 4) as f64 / HOUR_S as f64;
    assert!((number(&statuses[0]["5xx"]) - a_second).abs() < 1e-9);
}

#[test]
fn panels_have_places_and_numbers_of_their_own() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut taken = std::collections::HashSet::new();
    let mut numbers = std::collections::HashSet::new();
    for panel in panels {
        assert!(numbers.insert(panel["id"].as_u64().expect("a number")));
        assert_eq!(panel["datasource"]["uid"], "${datasource}");
        let place = |name: &str| panel["gridPos"][name].as_u64().expect("a number");
        let (x, y, w, h) = (place("x"), place("y"), place("w"), place("h"));
        assert!(x + w <= 24);
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{} overlaps", panel["title"]);
        }
    }
}
