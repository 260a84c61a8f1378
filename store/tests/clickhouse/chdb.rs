//! The current ClickHouse, embedded. `make test-all` runs these tests.

use firstbyte_tests::chdb::Chdb;
use firstbyte_tests::wait::wait_until;

use crate::common::{check, open_samples, rows};
use crate::connected::{reader, settings, start, store_all};
use crate::http::Http;

#[test]
fn current_engine_has_the_same_results() {
    let Some(chdb) = Chdb::start() else {
        return;
    };
    let port = chdb.port();
    let seed = std::process::id().into();
    println!("seed {seed}");
    let (rows, samples) = (rows(seed), open_samples(seed));
    let (writer, reports) = start(settings(&chdb.path().join("spill")), port);
    println!("{}", reports.recv().expect("a report"));
    let store = reader(port);
    check(&store, &[], &[]);
    store_all(&writer, &rows, &samples);
    check(&store, &rows, &samples);
    for table in ["connection", "open", "rollup_hour", "rollup_day"] {
        Http::run(port, &format!("OPTIMIZE TABLE lab.{table} FINAL"));
    }
    check(&store, &rows, &samples);
    let counts = writer.counters().counts();
    assert_eq!((counts.dropped, counts.failed, counts.retries), (0, 0, 0));
}

#[test]
fn current_engine_has_the_same_experiments() {
    let Some(chdb) = Chdb::start() else {
        return;
    };
    let port = chdb.port();
    let spill = chdb.path().join("spill");
    crate::experiments::results_are_those_of_a_list(port, &spill, |text| Http::run(port, text));
    wait_until("it answers", || Http::run(port, "SELECT 1") == "1\n");
}

/// A batch that was stored is sent again, and its roll-up is lost meanwhile.
#[test]
fn current_engine_stores_a_batch_once() {
    let Some(chdb) = Chdb::start() else {
        return;
    };
    let port = chdb.port();
    crate::resent::batches_are_stored_once(port, &chdb.path().join("spill"), |text| {
        Http::run(port, text)
    });
    wait_until("it answers", || Http::run(port, "SELECT 1") == "1\n");
}
