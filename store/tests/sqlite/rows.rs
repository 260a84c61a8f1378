//! Rows, stores and child processes of the tests.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use firstbyte_tests::TempDir;
use store::{
    Connection, Network, Prefixes, Query, Report, Retention, Settings, Sqlite, Stalls, Store,
    Totals, Writer,
};

pub(crate) const DAY: u64 = 86_400;
/// Noon of a day in 2026.
pub(crate) const NOON: u64 = 20_500 * DAY + DAY / 2;
/// Variable that makes a test the child of another one; its value is the child's argument.
const CHILD: &str = "FIRSTBYTE_STORE_CHILD";

/// A row with all fields but `subdivision` and `handshake_us`.
pub(crate) fn row(closed_s: u64, country: &str, min_rtt_us: u32) -> Connection {
    Connection {
        closed_s,
        server: "a.example".to_owned(),
        protocol: "HTTP/2.0".to_owned(),
        tls: "TLSv1.3".to_owned(),
        network: Some(Network::of([192, 0, 2, 1].into(), Prefixes::default())),
        country: country.as_bytes().try_into().ok(),
        operator: "AS64496 Example".to_owned(),
        min_rtt_us: Some(min_rtt_us),
        rtt_us: Some(min_rtt_us * 2),
        bytes_sent: 1000,
        bytes_received: 10,
        requests: 3,
        retransmits: 1,
        first_byte_us: Some(7),
        stalls: Stalls {
            delayed_ack: 1,
            retransmit: 2,
            window: 3,
        },
        ..Connection::default()
    }
}

/// Path of the store of a test.
pub(crate) fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("visitors.db")
}

/// Opens a store that is whole, or makes it.
#[track_caller]
pub(crate) fn open(path: &Path) -> Sqlite {
    let opened = Sqlite::open(path).expect("it opens");
    assert_eq!(opened.moved_aside, None);
    opened.store
}

/// Rolls up all rows, and deletes rows beyond the retention time.
#[track_caller]
pub(crate) fn maintain(store: &mut Sqlite, now_s: u64, retention: &Retention) {
    let limit = Duration::from_secs(60);
    let done = store.maintain(now_s, retention, limit);
    assert!(!done.expect("a maintenance").more);
}

/// Sums of all times.
#[track_caller]
pub(crate) fn totals(path: &Path) -> Totals {
    let store = Sqlite::open_to_read(path).expect("it opens");
    let always = Query {
        to_s: u64::MAX,
        ..Query::default()
    };
    store.totals(&always).expect("totals")
}

/// Starts a writer, and returns its reports.
pub(crate) fn start(settings: Settings) -> (Writer, Receiver<Report>) {
    let (send, reports) = channel();
    let report = move |report| {
        // The test may have ended.
        let _ = send.send(report);
    };
    let writer = Writer::start(settings, report).expect("a thread");
    (writer, reports)
}

/// Returns the argument if this test is a child process.
pub(crate) fn child_argument() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// A command that runs a test of this program as a child process.
pub(crate) fn child(test: &str, argument: &str, before: &[&str]) -> Command {
    let this = std::env::current_exe().expect("this program");
    let mut words = before
        .iter()
        .map(std::ffi::OsStr::new)
        .chain([this.as_os_str()]);
    let mut command = Command::new(words.next().expect("a program"));
    command
        .args(words)
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, argument)
        .stdout(Stdio::piped());
    command
}

/// Waits for a child process, which must succeed.
#[track_caller]
pub(crate) fn succeeds(child: Child) {
    let done = child.wait_with_output().expect("its end");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stdout)
    );
}
