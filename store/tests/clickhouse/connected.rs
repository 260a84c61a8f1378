//! Writers and readers of a server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use store::{
    ClickHouse, ClickHouseSettings, Connection, ExperimentRows, OpenSample, Report, Retention,
    Transport, Writer,
};

use crate::http::Http;

pub(crate) const DATABASE: &str = "lab";
const YEARS_S: u64 = 1000 * 366 * 86_400;

/// Settings of a quick writer that deletes nothing.
pub(crate) fn settings(spill: &Path) -> ClickHouseSettings {
    ClickHouseSettings {
        database: DATABASE.to_owned(),
        user: None,
        password: None,
        spill: spill.to_owned(),
        spill_bytes: 1 << 30,
        batch_pause: Duration::from_millis(50),
        retention: Retention {
            rows_s: YEARS_S,
            rollups_s: YEARS_S,
            ..Retention::default()
        },
    }
}

/// Starts a writer, and returns its reports.
pub(crate) fn start(settings: ClickHouseSettings, port: u16) -> (Writer, Receiver<Report>) {
    start_with(settings, &Arc::new(port.into()), Duration::from_secs(30))
}

/// Starts a writer with a client that waits for so long. Its server may change.
pub(crate) fn start_with(
    settings: ClickHouseSettings,
    port: &Arc<AtomicU16>,
    timeout: Duration,
) -> (Writer, Receiver<Report>) {
    let (send, reports) = channel();
    let report = move |report| {
        // The test may have ended.
        let _ = send.send(report);
    };
    let port = Arc::clone(port);
    let connect = Box::new(move || -> Box<dyn Transport> {
        let port = Arc::clone(&port);
        Box::new(Http { port, timeout })
    });
    let writer = Writer::start_clickhouse(settings, connect, report).expect("a thread");
    (writer, reports)
}

pub(crate) fn reader(port: u16) -> ClickHouse {
    ClickHouse::reader(Box::new(Http::new(port)), DATABASE.to_owned(), None, None)
}

/// Offers all rows, and waits until the server has them.
#[track_caller]
pub(crate) fn store_all(writer: &Writer, rows: &[Connection], open: &[OpenSample]) {
    let before = writer.counters().counts().written;
    for row in rows {
        assert!(writer.offer(row.clone()));
    }
    for sample in open {
        assert!(writer.offer_open(sample.clone()));
    }
    firstbyte_tests::wait::wait_until("all rows are stored", || {
        let counts = writer.counters().counts();
        counts.written == before + rows.len() as u64 && counts.spilled_batches == 0
    });
}

/// Offers rows of experiments, page views last, and waits until the server has all.
#[track_caller]
pub(crate) fn store_experiments(writer: &Writer, rows: &ExperimentRows) {
    let before = writer.counters().counts().written;
    for (since_s, settings) in &rows.settings {
        assert!(writer.offer_settings(*since_s, settings.clone()));
    }
    for figures in &rows.arms {
        assert!(writer.offer_arm(figures.clone()));
    }
    for visit in &rows.visits {
        assert!(writer.offer_visit(visit.clone()));
    }
    firstbyte_tests::wait::wait_until("all rows are stored", || {
        let counts = writer.counters().counts();
        counts.written == before + rows.visits.len() as u64 && counts.spilled_batches == 0
    });
}
