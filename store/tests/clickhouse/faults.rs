//! Wrong responses and missing servers: one line in the log without the password, and no row is lost within the limit.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firstbyte_tests::TempDir;
use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::wait::wait_until;
use store::{Connection, Report, Store};

use crate::common::rows;
use crate::connected::{reader, settings, start, start_with, store_all};
use crate::fake::{self, Response};

const PASSWORD: &str = "s3cret";
/// Longest line of a report, characters.
const LINE_CHARS_MAX: usize = 400;

/// Each fault by its name, with the part of the line that names it.
fn faults() -> Vec<(&'static str, Response, &'static str)> {
    let clickhouse = "X-ClickHouse-Server-Display-Name: x\r\n";
    let error = |text: &str| Response::http("500 Internal Server Error", clickhouse, text);
    let html = "<html>\n<head><title>502 Bad Gateway</title></head>\n</html>\n";
    let cut = b"HTTP/1.1 200 OK\r\nX-ClickHouse-Server-Display-Name: x\r\nContent-Length: 100\r\n\r\nhalf";
    let long = format!("Code: 1, {PASSWORD} ").repeat((10 << 20) / 15);
    vec![
        (
            "full disk",
            error(
                "Code: 243, e.displayText() = DB::Exception: Cannot reserve 1.00 MiB, not enough space",
            ),
            "status 500: Code: 243, e.displayText() = DB::Exception: Cannot reserve 1.00 MiB",
        ),
        (
            "user without rights",
            error(
                "Code: 164, e.displayText() = DB::Exception: Cannot insert into table in readonly mode",
            ),
            "readonly mode",
        ),
        (
            "wrong password",
            error(&format!(
                "Code: 193, e.displayText() = DB::Exception: Wrong password {PASSWORD}\n for user"
            )),
            "Wrong password *** for user",
        ),
        (
            "page of a proxy",
            Response::http("502 Bad Gateway", "", html),
            "status 502: <html> <head>",
        ),
        (
            "page with status 200",
            Response::http("200 OK", "", html),
            "the response is not of ClickHouse: <html>",
        ),
        (
            "empty page with status 200",
            Response::http("200 OK", "", ""),
            "the response is not of ClickHouse: (empty)",
        ),
        (
            "nonsense with status 200",
            Response::http("200 OK", clickhouse, "x\0\n\u{7}y"),
            "the version of the schema is no number",
        ),
        (
            "binary nonsense",
            Response::http("200 OK", clickhouse, [0xff, 0xfe, 0]),
            "not UTF-8",
        ),
        (
            "no HTTP",
            Response::Bytes(b"\x00\x01\x02\r\n\r\n".to_vec()),
            "ClickHouse: ",
        ),
        (
            "closed connection",
            Response::Bytes(Vec::new()),
            "ClickHouse: ",
        ),
        ("cut body", Response::Bytes(cut.to_vec()), "ClickHouse: "),
        ("error of 10 MB", error(&long), "status 500: Code: 1, ***"),
        ("no response", Response::Nothing, "ClickHouse: "),
    ]
}

#[test]
fn faults_are_reported_and_lose_nothing() {
    let server = ClickHouse::start();
    let all: Vec<Connection> = rows(7).into_iter().take(20).collect();
    let mut stored = 0;
    for (name, response, line) in faults() {
        let dir = TempDir::new();
        let mut settings = settings(dir.path());
        settings.user = Some("writer".to_owned());
        settings.password = Some(PASSWORD.to_owned());
        let port = Arc::new(fake::start(response).into());
        let (writer, reports) = start_with(settings, &port, Duration::from_millis(300));
        for row in &all {
            assert!(writer.offer(row.clone()));
        }
        let counts = || writer.counters().counts();
        wait_until(name, || counts().failed >= 2 && counts().spilled_rows == 20);
        assert!(counts().failing, "{name}");
        assert_eq!((counts().written, counts().dropped), (0, 0), "{name}");
        let lines: Vec<String> = reports
            .try_iter()
            .map(|report| report.to_string())
            .collect();
        // Each reason is reported once.
        assert_eq!(lines.len(), 1, "{name}: {lines:?}");
        let error = writer.counters().last_error().expect("an error");
        for text in [&lines[0], &error] {
            assert!(text.contains(line), "{name}: {text}");
            assert!(!text.contains(PASSWORD), "{name}: {text}");
            assert!(!text.contains(char::is_control), "{name}: {text}");
            assert!(text.chars().count() <= LINE_CHARS_MAX, "{name}: {text}");
        }
        let Some(server) = &server else {
            continue;
        };
        port.store(server.port(), Ordering::Relaxed);
        stored += 20;
        wait_until(name, || counts().written == 20 && !counts().failing);
        let count = server.rows("SELECT count() FROM lab.connection");
        assert_eq!(count, format!("{stored}\n"), "{name}");
        let recovered = reports
            .try_iter()
            .any(|it| matches!(it, Report::Recovered { .. }));
        assert!(recovered, "{name}");
    }
}

#[test]
fn readers_report_faults() {
    for (name, response, _) in faults() {
        if matches!(response, Response::Nothing) {
            continue;
        }
        let store = reader(fake::start(response));
        let error = store.extent().expect_err(name).to_string();
        assert!(!error.contains(char::is_control), "{name}: {error}");
        assert!(error.chars().count() <= LINE_CHARS_MAX, "{name}: {error}");
    }
}

/// Users of a real server: a wrong password, and one who may only read.
#[test]
fn users_without_rights_are_reported() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    for (user, password, line) in [
        ("writer", Some("other-secret"), "Wrong password"),
        ("reader", None, "readonly"),
        ("nobody", None, "nobody"),
    ] {
        let dir = TempDir::new();
        let mut settings = settings(dir.path());
        settings.user = Some(user.to_owned());
        settings.password = password.map(str::to_owned);
        let (writer, reports) = start(settings, server.port());
        assert!(writer.offer(rows(7).remove(0)));
        let report = reports.recv().expect("a report").to_string();
        assert!(report.contains(line), "{user}: {report}");
        assert!(!report.contains("other-secret"), "{report}");
        let counts = || writer.counters().counts();
        wait_until("the row waits", || counts().spilled_rows == 1);
        assert_eq!((counts().written, counts().dropped), (0, 0), "{user}");
    }
    let dir = TempDir::new();
    let mut settings = settings(dir.path());
    settings.user = Some("writer".to_owned());
    settings.password = Some(PASSWORD.to_owned());
    let (writer, _reports) = start(settings, server.port());
    store_all(&writer, &rows(7)[..5], &[]);
}

/// Rows of a batch that is refused are not all rows.
#[test]
fn unreadable_batches_are_moved_aside() {
    let Some(server) = ClickHouse::start() else {
        return;
    };
    let dir = TempDir::new();
    // Nobody listens there.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("an address").port();
    drop(closed);
    let (writer, reports) = start(settings(dir.path()), port);
    let all = rows(7);
    for row in &all[..10] {
        assert!(writer.offer(row.clone()));
    }
    wait_until("a spilled batch", || {
        writer.counters().counts().queued == 0 && writer.counters().counts().failed > 0
    });
    writer.close();
    drop(reports);
    let batches = |suffix: &str| {
        let files = std::fs::read_dir(dir.path())
            .expect("a directory")
            .flatten();
        let mut paths: Vec<_> = files
            .map(|file| file.path())
            .filter(|path| path.to_string_lossy().ends_with(suffix))
            .collect();
        paths.sort();
        paths
    };
    let spilled = batches(".batch");
    // The first loses its end, and of the second a byte changes. The rest is whole.
    assert!(spilled.len() >= 2, "rows of {} days", spilled.len());
    let bytes = std::fs::read(&spilled[0]).expect("a file");
    std::fs::write(&spilled[0], &bytes[..bytes.len() / 2]).expect("it is written");
    let mut bytes = std::fs::read(&spilled[1]).expect("a file");
    *bytes.last_mut().expect("a byte") ^= 1;
    std::fs::write(&spilled[1], bytes).expect("it is written");
    let (writer, reports) = start(settings(dir.path()), server.port());
    let counts = || writer.counters().counts();
    wait_until("both are aside", || {
        counts().moved_aside == 2 && counts().spilled_batches == 0
    });
    assert_eq!(batches(".damaged").len(), 2);
    assert_eq!(counts().batches_sent, spilled.len() as u64 - 2);
    let lines: Vec<String> = reports
        .try_iter()
        .map(|report| report.to_string())
        .collect();
    let aside = lines.iter().filter(|line| line.contains(".damaged: "));
    assert_eq!(aside.count(), 2, "{lines:?}");
}

/// A server that is down: batches are spilled up to the limit, and later ones are dropped and counted.
#[test]
fn full_spill_directory_drops_and_counts() {
    let dir = TempDir::new();
    let mut limited = settings(dir.path());
    limited.spill_bytes = 20_000;
    let port = fake::start(Response::Bytes(Vec::new()));
    let (writer, reports) = start(limited, port);
    let counts = || writer.counters().counts();
    let mut offered = 0;
    wait_until("the directory is full", || {
        let row = Connection {
            closed_s: 1_800_000_000,
            ..Connection::default()
        };
        assert!(writer.offer(row));
        offered += 1;
        wait_until("it is spilled or dropped", || counts().queued == 0);
        counts().spill_dropped >= 3
    });
    let full = counts();
    assert!(
        full.spilled_bytes <= 20_000 && full.spilled_bytes > 19_000,
        "{full:?}"
    );
    assert_eq!(full.dropped, full.spill_dropped);
    assert_eq!(full.spilled_rows + full.dropped, offered);
    writer.close();
    let lines: Vec<String> = reports.iter().map(|report| report.to_string()).collect();
    let of_limit = lines
        .iter()
        .filter(|line| line.contains("its limit of 20000 bytes"));
    assert_eq!(of_limit.count(), 1, "{lines:?}");
    let dropped = format!("the store has dropped {} connections", full.dropped);
    let reported: u64 = lines
        .iter()
        .filter_map(|line| {
            line.strip_prefix("the store has dropped ")?
                .split(' ')
                .next()?
                .parse::<u64>()
                .ok()
        })
        .sum();
    assert_eq!(reported, full.dropped, "{lines:?}, {dropped}");
}

#[test]
fn second_writer_of_a_directory_reports_the_first() {
    let dir = TempDir::new();
    let port = fake::start(Response::Nothing);
    let (first, _reports) = start_with(
        settings(dir.path()),
        &Arc::new(port.into()),
        Duration::from_millis(100),
    );
    wait_until("it is open", || first.counters().counts().failed > 0);
    let (second, reports) = start(settings(dir.path()), port);
    let line = reports.recv().expect("a report").to_string();
    let wanted = format!(
        "another process uses the spill directory {}",
        dir.path().display()
    );
    assert!(line.contains(&wanted), "{line}");
    assert!(second.offer(Connection::default()));
    first.close();
    // The lock is free as soon as the first one has given up its request.
    wait_until("the second has the directory", || {
        second.counters().counts().spilled_rows == 1
    });
}
