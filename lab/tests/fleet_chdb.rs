//! The client of the store beside the current ClickHouse, embedded: every query has the results of a list of the rows.
//!
//! `make test-all` runs this test.

#[path = "../../store/tests/common/mod.rs"]
mod common;

use std::sync::mpsc::channel;
use std::time::Duration;

use common::{check, open_samples, rows};
use firstbyte_tests::chdb::Chdb;
use firstbyte_tests::wait_until;
use lab::client::Url;
use lab::fetch::{HttpClient, HttpClientSettings};
use store::{ClickHouse, ClickHouseSettings, Report, Retention, Transport, Writer};

const YEARS_S: u64 = 1000 * 366 * 86_400;

#[test]
fn current_engine_has_the_same_results_by_this_client() {
    let Some(chdb) = Chdb::start() else {
        return;
    };
    let url = format!("http://127.0.0.1:{}/", chdb.port());
    let url = Url::parse(&url).expect("a URL");
    let client =
        move || -> Box<dyn Transport> { Box::new(HttpClient::new(HttpClientSettings::new(&url))) };
    let reader = ClickHouse::reader(client(), "lab".to_owned(), None, None);
    let settings = ClickHouseSettings {
        database: "lab".to_owned(),
        user: None,
        password: None,
        spill: chdb.path().join("spill"),
        spill_bytes: 1 << 30,
        batch_pause: Duration::from_millis(50),
        retention: Retention {
            rows_s: YEARS_S,
            rollups_s: YEARS_S,
            ..Retention::default()
        },
    };
    let (send, reports) = channel();
    let report = move |report: Report| {
        // The test may have ended.
        let _ = send.send(report);
    };
    let writer = Writer::start_clickhouse(settings, Box::new(client), report).expect("a thread");
    println!("{}", reports.recv().expect("a report"));
    let seed = std::process::id().into();
    println!("seed {seed}");
    let (rows, samples) = (rows(seed), open_samples(seed));
    for row in &rows {
        assert!(writer.offer(row.clone()));
    }
    for sample in &samples {
        assert!(writer.offer_open(sample.clone()));
    }
    wait_until("all rows are stored", || {
        let counts = writer.counters().counts();
        counts.written == rows.len() as u64 && counts.spilled_batches == 0
    });
    check(&reader, &rows, &samples);
    let counts = writer.counters().counts();
    assert_eq!((counts.dropped, counts.failed, counts.retries), (0, 0, 0));
}
