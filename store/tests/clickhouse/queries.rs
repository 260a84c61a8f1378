//! Every query of a random set of rows: the results are those of SQLite.

use firstbyte_tests::TempDir;
use firstbyte_tests::clickhouse::ClickHouse;

use store::{NETWORK_ROWS_MAX, Query, Store};

use crate::common::{check, open_samples, rows};
use crate::connected::{reader, settings, start, store_all};

#[test]
fn results_are_those_of_a_list() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let seed = std::process::id().into();
    println!("seed {seed}");
    let (rows, samples) = (rows(seed), open_samples(seed));
    let dir = TempDir::new();
    let (writer, reports) = start(settings(&dir.path().join("spill")), server.port());
    // An empty store has a schema as soon as a writer has connected.
    assert!(reports.recv().is_ok());
    let store = reader(server.port());
    assert_eq!(store.extent(), Ok(None));
    let (first, second) = rows.split_at(rows.len() / 2);
    store_all(&writer, first, &samples);
    store_all(&writer, second, &[]);
    check(&store, &rows, &samples);
    for table in ["connection", "open", "rollup_hour", "rollup_day"] {
        let merged = server.rows(&format!("OPTIMIZE TABLE lab.{table} FINAL"));
        assert_eq!(merged, "");
    }
    check(&store, &rows, &samples);
    let counts = writer.counters().counts();
    assert_eq!((counts.dropped, counts.failed, counts.retries), (0, 0, 0));
}

/// Networks are counted from the rows of the newest hours with so many rows, at the limit, one below and one above.
#[test]
fn networks_are_counted_from_the_newest_hours() {
    const HOUR: u64 = 3600;
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    let (_writer, reports) = start(settings(dir.path()), server.port());
    assert!(reports.recv().is_ok());
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let begin = now.expect("after 1970").as_secs() / 86_400 * 86_400 - 86_400;
    let insert = |hour: u64, rows: u64| {
        let at = begin + hour * HOUR;
        let text = format!(
            "INSERT INTO lab.connection (closed_s, network) SELECT toUInt64({at}), '192.0.2.0/24' FROM numbers({rows})"
        );
        assert_eq!(server.rows(&text), "");
    };
    let query = Query {
        from_s: begin,
        to_s: begin + 10 * HOUR,
        ..Query::default()
    };
    let store = reader(server.port());
    let half = NETWORK_ROWS_MAX / 2;
    insert(2, half);
    insert(1, half - 1);
    for (more, connections, is_cut) in [
        (0, NETWORK_ROWS_MAX - 1, false),
        (1, NETWORK_ROWS_MAX, false),
        (1, half, true),
    ] {
        if more > 0 {
            insert(1, more);
        }
        let found = store.networks(&query, 3).expect("networks");
        assert_eq!((found.connections, found.is_cut), (connections, is_cut));
        assert_eq!(found.groups.len(), 1);
        assert_eq!(found.groups[0].totals.connections, connections);
    }
    // The newest hour is read whole.
    insert(3, NETWORK_ROWS_MAX + 1);
    let found = store.networks(&query, 3).expect("networks");
    assert_eq!(
        (found.connections, found.is_cut),
        (NETWORK_ROWS_MAX + 1, true)
    );
}
