//! Two servers of ClickHouse as shards: writers know one each, and a reader sees both through the tables of docs/fleet.md.
//!
//! Without clickhouse-server the test is skipped.

use std::time::{Duration, SystemTime};

use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::wait_until;
use lab::client::Url;
use lab::fetch::{HttpClient, HttpClientSettings};
use store::{
    ClickHouseSettings, Connection, Grouping, OpenSample, Query, Retention, Step, Store, Transport,
    Writer,
};

const ROWS: u64 = 40;
const TABLES: [&str; 9] = [
    "schema",
    "connection",
    "open",
    "kept",
    "rollup_hour",
    "rollup_day",
    "visit",
    "arm_minute",
    "experiment",
];

fn connect(port: u16) -> Box<dyn Transport> {
    let url = Url::parse(&format!("http://127.0.0.1:{port}/")).expect("a URL");
    Box::new(HttpClient::new(HttpClientSettings::new(&url)))
}

/// Two hours ago, Unix seconds.
fn begin_s() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_s = now.expect("after 1970").as_secs();
    now_s - now_s % 3600 - 7200
}

fn fill(shard: &ClickHouse, server: &str) {
    let settings = ClickHouseSettings {
        database: "firstbyte".to_owned(),
        user: Some("writer".to_owned()),
        password: Some("s3cret".to_owned()),
        spill: shard.path().join("spill"),
        spill_bytes: 1 << 24,
        batch_pause: Duration::from_millis(100),
        retention: Retention::default(),
    };
    let port = shard.port();
    let writer = Writer::start_clickhouse(settings, Box::new(move || connect(port)), |_| {});
    let writer = writer.expect("a thread");
    for n in 0..ROWS {
        assert!(writer.offer(Connection {
            // More than an hour, so that an answer has roll-ups and rows.
            closed_s: begin_s() + n * 200,
            server: server.to_owned(),
            protocol: "HTTP/2.0".to_owned(),
            country: Some(*b"DE"),
            min_rtt_us: Some(20_000 + n as u32),
            requests: 2,
            ..Connection::default()
        }));
    }
    assert!(writer.offer_open(OpenSample {
        at_s: begin_s(),
        server: server.to_owned(),
        protocol: "HTTP/2.0".to_owned(),
        connections: 5,
    }));
    wait_until("all rows are stored", || {
        let counts = writer.counters().counts();
        counts.written == ROWS && counts.spilled_batches == 0 && counts.queued == 0
    });
}

#[test]
fn reader_of_a_cluster_sees_the_rows_of_all_shards() {
    let (Some(mut first), Some(second)) = (ClickHouse::start(), ClickHouse::start()) else {
        return;
    };
    fill(&first, "a.example.org");
    fill(&second, "b.example.org");
    let shard = |shard: &ClickHouse| {
        let port = shard.native_port();
        format!("<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>")
    };
    let cluster = format!(
        "<yandex><remote_servers><fleet>{}{}</fleet></remote_servers></yandex>",
        shard(&first),
        shard(&second)
    );
    let folder = first.path().join("config.d");
    std::fs::create_dir(&folder).expect("a new folder");
    std::fs::write(folder.join("cluster.xml"), cluster).expect("it is ours");
    first.restart();
    let _ = first.rows("CREATE DATABASE firstbyte_all");
    for table in TABLES {
        let _ = first.rows(&format!(
            "CREATE TABLE firstbyte_all.{table} AS firstbyte.{table} \
             ENGINE = Distributed(fleet, firstbyte, {table})"
        ));
    }
    for view in ["rollup_hour_view", "rollup_day_view"] {
        let _ = first.rows(&format!(
            "CREATE VIEW firstbyte_all.{view} AS SELECT * FROM firstbyte_all.{}",
            view.trim_end_matches("_view")
        ));
    }
    let store = |database: &str| {
        let database = database.to_owned();
        store::ClickHouse::reader(connect(first.port()), database, None, None)
    };
    let all = Query {
        to_s: u64::MAX,
        ..Query::default()
    };
    let one = store("firstbyte").totals(&all).expect("rows");
    assert_eq!(one.connections, ROWS);
    let reader = store("firstbyte_all");
    let both = reader.totals(&all).expect("rows of both");
    assert_eq!((both.connections, both.requests), (2 * ROWS, 4 * ROWS));
    let by_server = reader.answer(&Query {
        grouping: Grouping::Server,
        ..all.clone()
    });
    let groups = by_server.expect("rows of both").groups;
    let names: Vec<&str> = groups.iter().map(|group| group.key.as_str()).collect();
    assert_eq!(names, ["a.example.org", "b.example.org"]);
    assert!(groups.iter().all(|group| group.totals.connections == ROWS));
    // Whole minutes within hours: roll-ups in the middle, and rows at both ends.
    let part = Query {
        from_s: begin_s() + 1800,
        to_s: begin_s() + 7020,
        ..Query::default()
    };
    let expected = (0..ROWS).filter(|n| (1800..7020).contains(&(n * 200)));
    let found = reader.totals(&part).expect("rows of both").connections;
    assert_eq!(found, 2 * expected.count() as u64);
    let networks = reader.networks(&all, 10).expect("rows of both");
    assert_eq!(networks.connections, 2 * ROWS);
    let open = reader
        .open_connections(&all, Step::Minute)
        .expect("samples");
    assert_eq!((open.len(), open[0].max), (1, 10));
    let extent = reader.extent().expect("rows of both").expect("not empty");
    assert_eq!(extent.0, begin_s());
}
