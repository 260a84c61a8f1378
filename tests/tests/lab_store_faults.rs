//! `lab_store clickhouse:`: a server that is down, slow, full, or sends wrong responses.
//!
//! Responses are not slower, and nothing is lost within the limit of the spill directory. Log and metrics name the reason.
//! Own executable: response times are compared.

#[path = "common/lab.rs"]
mod lab;
#[path = "common/recorded.rs"]
mod recorded;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use firstbyte_tests::backend::{Backend, Step};
use firstbyte_tests::busy::check_timing;
use firstbyte_tests::clickhouse::ClickHouse;
use firstbyte_tests::port::Port;
use firstbyte_tests::{Builder, Client, Server, Signal, peer, process, run, wait_until};
use lab::{number, report, url};
use recorded::{metric, site, store_processes, visit};

/// A server that records into the database `visits` on a port.
fn recording(port: u16, parameters: &str) -> Builder {
    let store = format!(
        "lab_store clickhouse:http://127.0.0.1:{port}/visits server=edge spill=%%DIR%%/spill batch=100ms {parameters};"
    );
    site(&store, "").allow("cannot write the store")
}

/// A fake of ClickHouse that answers each request like this.
fn fake(script: fn() -> Vec<Step>) -> Backend {
    Backend::answering(move |_| script())
}

fn port_of(backend: &Backend) -> u16 {
    let name = backend.name();
    let port = name.rsplit(':').next().and_then(|port| port.parse().ok());
    port.expect("an address with a port")
}

/// Answer of ClickHouse to an insertion on a full disk.
fn full() -> Vec<Step> {
    let text =
        "Code: 243, e.displayText() = DB::Exception: Cannot reserve 1.00 MiB, not enough space";
    let length = text.len();
    vec![Step::Send(
        format!("HTTP/1.1 500 Internal Server Error\r\nContent-Length: {length}\r\n\r\n{text}")
            .into_bytes(),
    )]
}

fn nonsense() -> Vec<Step> {
    vec![
        Step::Send(b"\x16\x03\x01 no HTTP at all\0\r\n\r\n".to_vec()),
        Step::Close,
    ]
}

fn page() -> Vec<Step> {
    let text = "<html>router</html>";
    let length = text.len();
    vec![Step::Send(
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}").into_bytes(),
    )]
}

fn slow() -> Vec<Step> {
    vec![Step::Hold]
}

/// Makes the steps of a planted server.
type Steps = fn() -> Vec<Step>;

/// Faults with their planted servers; `None`: the port is closed.
const FAULTS: [(&str, Option<Steps>); 5] = [
    ("down", None),
    ("slow", Some(slow)),
    ("full", Some(full)),
    ("nonsense", Some(nonsense)),
    ("page", Some(page)),
];

/// A faulty store: its port, and the fake or the reservation that holds the port.
fn faulty(fault: Option<Steps>) -> (u16, Option<Backend>, Option<Port>) {
    match fault {
        Some(script) => {
            let backend = fake(script);
            (port_of(&backend), Some(backend), None)
        }
        None => {
            let port = Port::reserve();
            (port.number(), None, Some(port))
        }
    }
}

fn spilled_files(server: &Server) -> usize {
    let files = fs::read_dir(server.path("spill")).map(Iterator::count);
    files.unwrap_or(0)
}

/// Samples that the store process has dropped.
fn dropped(server: &Server) -> u64 {
    metric(
        server,
        "firstbyte_lab_store_samples_total{result=\"dropped\"}",
    )
}

/// A request of HTTP/1.0 on a connection of its own.
fn visit_once(server: &Server) {
    let mut client = Client::connect(server.port());
    let response = client.send("GET /f.txt HTTP/1.0\r\n\r\n").rest();
    assert!(response.ends_with(b"0123456789"));
}

/// Lines of the log about a store that cannot be written.
fn reasons(server: &Server) -> usize {
    server.error_log().matches("cannot write the store").count()
}

#[test]
fn rows_of_all_faults_wait_on_disk_and_are_reported() {
    if !peer::is_firstbyte() {
        return;
    }
    for (name, fault) in FAULTS {
        let (port, _backend, _port) = faulty(fault);
        let mut server = recording(port, "").allow("exited on signal 9").start();
        for _ in 0..20 {
            visit(&server);
        }
        wait_until(&format!("{name}: batches wait"), || {
            metric(&server, "firstbyte_lab_store_spilled_batches") > 0
                && metric(&server, "firstbyte_lab_store_spilled_bytes") > 0
        });
        // A slow server fails with its time limit, which is longer than a test.
        if name != "slow" {
            wait_until(&format!("{name}: metrics show the fault"), || {
                metric(&server, "firstbyte_lab_store_failing") == 1
                    && metric(&server, "firstbyte_lab_store_failed_writes_total") > 1
            });
            assert!(reasons(&server) >= 1, "{name}");
            assert!(
                reasons(&server) <= 3,
                "{name}: each reason once: {}",
                server.error_log()
            );
        }
        assert_eq!(dropped(&server), 0, "{name}");
        assert!(spilled_files(&server) > 0);
        // The end of the server does not wait for the store.
        server.signal(Signal::QUIT);
        assert_eq!(server.wait_for_exit(), 0, "{name}");
        assert!(
            spilled_files(&server) > 0,
            "{name}: rows outlive the server"
        );
    }
}

#[test]
fn responses_are_not_slower_while_the_store_fails() {
    if !peer::is_firstbyte() {
        return;
    }
    let healthy = site(recorded::STORE, "").start();
    for (name, fault) in FAULTS {
        let (port, _backend, _port) = faulty(fault);
        let server = recording(port, "").start();
        visit(&server);
        wait_until("batches wait", || {
            metric(&server, "firstbyte_lab_store_spilled_batches") > 0
        });
        let (first, second) = (url(&server, 1, "/f.txt"), url(&healthy, 1, "/f.txt"));
        // Each request has a connection of its own, so that each gives a row.
        let words = ["--against", &second, "--blocks", "10", "--requests", "60"];
        let words = [&[first.as_str()], &words[..], &["--connections", "2"]].concat();
        let measure = || report(&words);
        check_timing(name, Duration::from_millis(10), measure, |report| {
            for figure in report["comparison"].as_array().expect("figures") {
                assert_ne!(figure["verdict"], "second is better", "{name}: {figure}");
            }
            assert!(
                number(&report["comparison"][0]["ratio"]["value"]) > 0.5,
                "{name}"
            );
        });
    }
}

#[test]
fn full_spill_directory_drops_new_rows_and_counts_them() {
    if !peer::is_firstbyte() {
        return;
    }
    let port = Port::reserve();
    let server = recording(port.number(), "spill_size=1m")
        .allow("the spill directory has reached its limit")
        .allow("the store has dropped")
        .start();
    let spill_dropped = || metric(&server, "firstbyte_lab_store_spill_dropped_samples_total");
    wait_until("the directory is full", || {
        for _ in 0..400 {
            visit_once(&server);
        }
        spill_dropped() > 0
    });
    let bytes = metric(&server, "firstbyte_lab_store_spilled_bytes");
    assert!((1..=1 << 20).contains(&bytes), "{bytes}");
    server.wait_for_text(
        "error.log",
        "the spill directory has reached its limit of 1048576 bytes",
    );
    assert!(dropped(&server) >= 1);
    visit(&server);
}

#[test]
fn server_that_comes_back_gets_every_row_once() {
    if !peer::is_firstbyte() {
        return;
    }
    let Some(mut clickhouse) = ClickHouse::start() else {
        return;
    };
    let mut server = recording(clickhouse.port(), "").start();
    // Requests for metrics are of another version.
    let count = |clickhouse: &ClickHouse| {
        let rows = clickhouse
            .try_rows("SELECT count() FROM visits.connection WHERE protocol = 'HTTP/1.0'");
        rows.ok().and_then(|rows| rows.trim().parse::<u64>().ok())
    };
    let visit_some = |number: u64| {
        for _ in 0..number {
            visit_once(&server);
        }
    };
    visit_some(20);
    wait_until("rows arrive", || count(&clickhouse) == Some(20));
    for round in 1..=2 {
        clickhouse.kill();
        visit_some(30);
        wait_until("batches wait", || {
            metric(&server, "firstbyte_lab_store_spilled_batches") > 0
                && metric(&server, "firstbyte_lab_store_failing") == 1
        });
        clickhouse.restart();
        wait_until("all rows", || count(&clickhouse) == Some(20 + 30 * round));
        server.wait_for_text("error.log", "can be written again");
        wait_until("metrics show it", || {
            metric(&server, "firstbyte_lab_store_failing") == 0
        });
    }
    assert_eq!(dropped(&server), 0);
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    assert_eq!(count(&clickhouse), Some(80), "no row twice");
}

#[test]
fn dashboard_of_clickhouse_shows_its_rows() {
    if !peer::is_firstbyte() {
        return;
    }
    let Some(clickhouse) = ClickHouse::start() else {
        return;
    };
    let server = recording(
        clickhouse.port(),
        "user=writer password_file=%%DIR%%/password",
    )
    .file("password", "s3cret\n")
    .start();
    server.rewrite_conf(|text| {
        text.replace(
            "location = /metrics",
            "location /lab/ { lab_dashboard public; } location = /metrics",
        )
    });
    server.signal(Signal::HUP);
    wait_until("pages", || server.get("/lab/").status == 200);
    visit(&server);
    wait_until("the row is shown", || {
        server.get("/lab/servers.csv").text().contains("edge")
    });
    let url = format!("clickhouse:http://127.0.0.1:{}/visits", clickhouse.port());
    let password = server.path("password").display().to_string();
    let map = |words: &[&str]| run([&["map", "--json", "--store", &url][..], words].concat());
    let drawn = map(&["--user", "writer", "--password-file", &password]);
    assert_eq!(drawn.code, 0, "{}", drawn.stderr);
    let json: serde_json::Value = serde_json::from_str(&drawn.stdout).expect("it is JSON");
    assert!(json["requests"].as_u64() >= Some(1), "{json}");
    let refused = map(&["--user", "writer"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains(&url), "{}", refused.stderr);
    assert!(!server.error_log().contains("s3cret"));
}

#[test]
fn files_of_the_store_are_checked_at_the_start() {
    if !peer::is_firstbyte() {
        return;
    }
    let tested = |parameters: &str, prepare: fn(&Path)| {
        let server = recording(1, parameters)
            .allow("of lab_store")
            .prepare(prepare)
            .written();
        let outcome = Command::new(peer::binary())
            .args(server.arguments())
            .arg("-t")
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        (outcome.status.success(), text)
    };
    let parameters = "user=a password_file=%%DIR%%/password";
    let (ok, text) = tested(parameters, |_| {});
    assert!(
        !ok && text.contains("\"password_file\" of lab_store: cannot read"),
        "{text}"
    );
    let (ok, text) = tested(parameters, |dir| {
        fs::write(dir.join("password"), "first-line\nhunter2\n").expect("it is ours");
    });
    assert!(!ok && text.contains("must have one line"), "{text}");
    assert!(
        !text.contains("hunter2") && !text.contains("first-line"),
        "{text}"
    );
    let (ok, text) = tested(parameters, |dir| {
        fs::write(dir.join("password"), "hunter2\n").expect("it is ours");
    });
    assert!(ok, "{text}");
}

#[test]
fn store_process_that_is_killed_loses_no_batch() {
    if !peer::is_firstbyte() {
        return;
    }
    let port = Port::reserve();
    let server = recording(port.number(), "")
        .allow("exited on signal 9")
        .start();
    for _ in 0..10 {
        visit(&server);
    }
    wait_until("batches wait", || {
        metric(&server, "firstbyte_lab_store_spilled_batches") > 0
    });
    let files = spilled_files(&server);
    let [pid] = store_processes(&server)[..] else {
        panic!("one store process");
    };
    assert!(process::signal(pid, Signal::KILL));
    wait_until("another one", || {
        store_processes(&server).iter().any(|other| *other != pid)
    });
    wait_until("it knows the batches", || {
        metric(&server, "firstbyte_lab_store_spilled_batches") > 0
    });
    assert!(spilled_files(&server) >= files);
}
