//! The current ClickHouse: the package chdb of PyPI, behind `chdb_server.py`. `make test-all` installs it and sets `LAB_LONG`.

use std::path::Path;
use std::process::Command;

use firstbyte_tests::TempDir;
use firstbyte_tests::port::Port;
use firstbyte_tests::programs::Program;
use firstbyte_tests::skip::skip;
use firstbyte_tests::wait::wait_until;

use crate::common::{check, open_samples, rows};
use crate::connected::{reader, settings, start, store_all};
use crate::http::Http;

/// Package as `.ci/setup all` installs it.
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/chdb");

/// An embedded ClickHouse behind a port.
struct Chdb {
    port: Port,
    _program: Program,
    dir: TempDir,
}

impl Chdb {
    /// Starts it. If it is not installed, or the test is too long, the test is reported as skipped.
    fn start() -> Option<Self> {
        if std::env::var_os("LAB_LONG").is_none() {
            skip("LAB_LONG is not set");
            return None;
        }
        if !Path::new(PACKAGE).join("chdb").is_dir() {
            skip("chdb is not installed: run .ci/setup all");
            return None;
        }
        let (dir, port) = (TempDir::new(), Port::reserve());
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/clickhouse/chdb_server.py"
        );
        let mut command = Command::new("python3");
        command
            .args([script, &port.number().to_string()])
            .arg(dir.path())
            .env("PYTHONPATH", PACKAGE)
            .env("TZ", "UTC");
        let program = Program::start(&dir, "chdb", &mut command).accepting(port.number());
        Some(Self {
            port,
            _program: program,
            dir,
        })
    }
}

#[test]
fn current_engine_has_the_same_results() {
    let Some(chdb) = Chdb::start() else {
        return;
    };
    let port = chdb.port.number();
    let seed = std::process::id().into();
    println!("seed {seed}");
    let (rows, samples) = (rows(seed), open_samples(seed));
    let (writer, reports) = start(settings(&chdb.dir.path().join("spill")), port);
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

/// A batch that was stored is sent again, and its roll-up is lost meanwhile.
#[test]
fn current_engine_stores_a_batch_once() {
    let Some(chdb) = Chdb::start() else {
        return;
    };
    let port = chdb.port.number();
    crate::resent::batches_are_stored_once(port, &chdb.dir.path().join("spill"), |text| {
        Http::run(port, text)
    });
    wait_until("it answers", || Http::run(port, "SELECT 1") == "1\n");
}
