//! Every query of a random set of rows: the results are those of SQLite.

use firstbyte_tests::TempDir;
use firstbyte_tests::clickhouse::ClickHouse;

use store::Store;

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
