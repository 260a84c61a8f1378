//! A server that records its connections, and rows of its store as Python's sqlite3 reads them.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::process::Command;
use std::time::Duration;

use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Builder, Server, process};
use serde_json::Value;

/// Prints the rows of a query as a JSON array of objects.
const READER: &str = "import json, sqlite3, sys
db = sqlite3.connect(f\"file:{sys.argv[1]}?mode=ro\", uri=True, timeout=20)
db.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in db.execute(sys.argv[2])]))";

pub(crate) fn site(lines: &str, server: &str) -> Builder {
    plain_site(
        lines,
        &format!("{server} location = /metrics {{ metrics; }}"),
    )
}

/// A site without metrics.
pub(crate) fn plain_site(lines: &str, server: &str) -> Builder {
    let http = format!(
        "rtt_map on; {lines} access_log off; http2 on;
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; {server} }}"
    );
    Server::http(&http)
        .file("html/f.txt", "0123456789")
        .allow("rtt_map records no countries")
}

pub(crate) const STORE: &str = "lab_store sqlite:%%DIR%%/lab/store.db server=edge;";

/// Rows of the store of a server; none while there is no table.
pub(crate) fn rows(server: &Server, query: &str) -> Vec<Value> {
    let file = server.path("lab/store.db");
    let read = Command::new("python3")
        .args(["-c", READER, &file.display().to_string(), query])
        .output()
        .expect("python3 runs");
    match serde_json::from_slice(&read.stdout) {
        Ok(Value::Array(rows)) => rows,
        _ => Vec::new(),
    }
}

/// Prints the number of connections once it has reached a number, or after a time in seconds.
const WAITER: &str = "import sqlite3, sys, time
path, number, until = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
while True:
    count = 0
    try:
        db = sqlite3.connect(f\"file:{path}?mode=ro\", uri=True, timeout=20)
        count = db.execute('SELECT count(*) FROM connections').fetchone()[0]
        db.close()
    except sqlite3.OperationalError:
        pass
    if count >= number or time.monotonic() > until:
        print(count)
        break
    time.sleep(0.03)";

/// Returns the number of connections in a file of a server once it has reached a number, or after a limit.
fn counted(server: &Server, file: &str, number: u64, limit: Duration) -> u64 {
    let waited = Command::new("python3")
        .args(["-c", WAITER, &server.path(file).display().to_string()])
        .args([number.to_string(), limit.as_secs_f64().to_string()])
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&waited.stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("{waited:?}"))
}

pub(crate) fn count(server: &Server) -> u64 {
    counted(server, "lab/store.db", 0, Duration::ZERO)
}

#[track_caller]
pub(crate) fn wait_for_rows(server: &Server, number: u64) {
    wait_for_rows_of(server, "lab/store.db", number);
}

/// Waits until a store has exactly this number of connections.
#[track_caller]
pub(crate) fn wait_for_rows_of(server: &Server, file: &str, number: u64) {
    assert_eq!(counted(server, file, number, DEADLINE), number, "{file}");
}

/// A request on a connection of its own.
pub(crate) fn visit(server: &Server) {
    assert_eq!(server.get("/f.txt").text(), "0123456789");
}

pub(crate) fn metric(server: &Server, sample: &str) -> u64 {
    let page = server.get("/metrics").text();
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().expect("a number"))
}

/// Processes of a server by the begin of their title.
pub(crate) fn children(server: &Server, title: &str) -> Vec<u32> {
    let is_it = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| line.starts_with(title))
    };
    let all = process::children(server.pid());
    all.into_iter().filter(is_it).collect()
}

pub(crate) fn store_processes(server: &Server) -> Vec<u32> {
    children(server, "firstbyte: store process")
}
