//! `firstbyte bench` and `compare`: counts over every protocol, failures, and the end by a signal.
//!
//! Own executable: `bench` loads the CPUs, and some reports are compared with each other.

#[path = "common/lab.rs"]
mod lab;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use firstbyte_tests::busy::{inconclusive, worst_stall_while};
use firstbyte_tests::port::Port;
use firstbyte_tests::wait::holds_within;
use firstbyte_tests::{Outcome, Signal, TempDir, peer, process, run, wait_until};
use lab::{bench, number, report, server, url};
use serde_json::Value;

#[test]
fn every_protocol_is_counted_to_the_last_response() {
    let server = server();
    let pid = server.pid().to_string();
    for (port, protocol, name) in [
        (1, "h1", "HTTP/1.1"),
        (1, "h2", "HTTP/2"),
        (2, "spdy", "SPDY/3.1"),
        (3, "h1", "HTTP/1.1"),
        (3, "h2", "HTTP/2"),
        (3, "spdy", "SPDY/3.1"),
        (3, "auto", "HTTP/2"),
    ] {
        let url = url(&server, port, "/100.txt");
        let words = [url.as_str(), "-k", "--protocol", protocol, "--pid", &pid];
        let size = [
            "--requests",
            "1003",
            "--connections",
            "5",
            "--threads",
            "2",
            "--streams",
            "7",
        ];
        let report = report(&[&words[..], &size].concat());
        assert_eq!(report["format"], "firstbyte-bench/1");
        assert_eq!(report["conditions"]["device"], "lo");
        offloads_are_known(&report);
        let found = &report["servers"][0];
        assert_eq!(found["done"], 1003, "{url} {protocol}: {found}");
        assert_eq!(found["errors"], serde_json::json!({}), "{url} {protocol}");
        assert_eq!(found["statuses"]["2xx"], 1003);
        assert_eq!(found["status_codes"]["200"], 1003);
        assert_eq!(found["protocols"], serde_json::json!({ name: 5 }));
        assert_eq!(found["body_bytes"], 100_300);
        assert_eq!(found["times"]["service"]["n"], 1003);
        assert_eq!(found["times"]["connect"]["n"], 5);
        let handshakes = &found["times"]["handshake"]["n"];
        assert_eq!(handshakes.as_u64(), (port == 3).then_some(5), "{url}");
        let saved = number(&found["head_saved"]);
        match protocol {
            "h1" => assert!(saved == 0.0),
            // The server's header blocks of SPDY are not compressed by default.
            "spdy" => {}
            _ => assert!(saved > 0.5, "{saved}"),
        }
        assert!(number(&found["server_cpu_us"]["value"]) > 0.0, "{found}");
        assert!(number(&found["client_cpu_us"]["value"]) > 0.0, "{found}");
        assert!(
            found["server_memory_bytes"]
                .as_u64()
                .is_some_and(|bytes| bytes > 1_000_000)
        );
    }
}

/// Asserts that a tool failed with this message.
#[track_caller]
fn assert_refused(outcome: &Outcome, why: &str) {
    let said = outcome.stderr.contains(why);
    assert!(outcome.code == 1 && said, "{outcome:?}");
}

/// Their values differ from machine to machine; their presence does not.
#[track_caller]
fn offloads_are_known(report: &Value) {
    for name in ["tso", "gso", "gro"] {
        let on = &report["conditions"]["offloads"][name];
        assert!(on.is_boolean(), "{name}: {report}");
    }
}

#[test]
fn connections_are_cold_or_resumed_as_asked() {
    let server = server();
    let url = url(&server, 3, "/100.txt");
    for (connect, least) in [("cold", 0), ("resumed", 20)] {
        let report = report(&[
            &url,
            "-k",
            "--connect",
            connect,
            "--requests",
            "50",
            "--connections",
            "2",
        ]);
        let found = &report["servers"][0];
        assert_eq!(
            (&found["done"], &found["errors"]),
            (&50.into(), &serde_json::json!({}))
        );
        assert_eq!(
            found["times"]["handshake"]["n"], 50,
            "a connection for each"
        );
        let resumed = found["resumed"].as_u64().expect("a number");
        assert!(
            resumed >= least && (least > 0 || resumed == 0),
            "{connect}: {resumed}"
        );
        let (service, handshake) = (&found["times"]["service"], &found["times"]["handshake"]);
        assert!(
            number(&service["mean_ms"]) > number(&handshake["mean_ms"]),
            "{found}"
        );
    }
}

#[test]
fn mixes_bodies_and_fields_are_sent() {
    let server = server();
    let dir = TempDir::new();
    dir.write(
        "mix",
        "# two of them\n/100.txt\nPOST /echo\nHEAD /100.txt\n/missing\n",
    );
    dir.write("body", "a body");
    dir.write(
        "log",
        "- - [] \"GET /100.txt HTTP/1.1\" 200 1\n- - [] \"POST /echo HTTP/1.1\" 200 1\n",
    );
    let path = |name: &str| dir.path().join(name).display().to_string();
    for (port, protocol) in [(1, "h1"), (3, "h2"), (3, "spdy")] {
        let url = url(&server, port, "/");
        let words = [
            &url,
            "-k",
            "--protocol",
            protocol,
            "--requests",
            "40",
            "--header",
            "X-Y: z",
        ];
        let (mix, body, log) = (path("mix"), path("body"), path("log"));
        let found =
            &report(&[&words[..], &["--mix", &mix, "--body", &body]].concat())["servers"][0];
        assert_eq!(
            found["statuses"],
            serde_json::json!({"2xx": 30, "4xx": 10}),
            "{protocol}"
        );
        let codes = serde_json::json!({"200": 30, "404": 10});
        assert_eq!(found["status_codes"], codes, "{protocol}");
        assert_eq!(found["errors"], serde_json::json!({}));
        let found = &report(&[&words[..], &["--access-log", &log]].concat())["servers"][0];
        assert_eq!(
            (&found["done"], &found["body_bytes"]),
            (&40.into(), &4000.into())
        );
    }
    let missing = path("missing");
    let wrong = bench(&[&url(&server, 1, "/"), "--mix", &missing]);
    assert_refused(&wrong, "cannot read");
}

#[test]
fn failures_are_counted_by_their_kinds() {
    let server = server();
    // Below the ephemeral ports: a client port could connect to itself.
    let reserved = Port::reserve();
    let closed = reserved.number();
    let errors = |words: &[&str]| -> (i32, BTreeMap<String, u64>) {
        let outcome =
            bench(&[words, &["--requests", "10", "--connections", "2", "--json"]].concat());
        let report: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
        let errors = serde_json::from_value(report["servers"][0]["errors"].clone());
        (outcome.code, errors.expect("a map of numbers"))
    };
    let (code, found) = errors(&[&format!("http://127.0.0.1:{closed}/")]);
    assert_eq!(code, 1);
    assert!(found["connect: refused"] >= 10, "{found:?}");
    // However many requests there were to be, of however many servers.
    let both = [
        &url(&server, 1, "/"),
        "--against",
        &format!("http://127.0.0.1:{closed}/"),
    ];
    let many = [
        &both[..],
        &[
            "--requests",
            "100000",
            "--blocks",
            "50",
            "--connections",
            "2",
            "--json",
        ],
    ]
    .concat();
    let begun = Instant::now();
    let outcome = bench(&many);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("sent no response"),
        "{}",
        outcome.stderr
    );
    assert!(begun.elapsed() < Duration::from_secs(60), "it gives up");
    let tls = url(&server, 3, "/");
    let (code, found) = errors(&[&tls]);
    assert_eq!(code, 1, "nobody vouches for it: {found:?}");
    assert!(
        found.keys().all(|kind| kind.starts_with("tls: ")),
        "{found:?}"
    );
    let plain = format!("https://localhost:{}/", server.port());
    let (code, found) = errors(&[&plain, "-k"]);
    assert_eq!(code, 1, "{found:?}");
    let (code, found) = errors(&[&url(&server, 1, "/broken")]);
    assert_eq!((code, found.len()), (0, 0), "an answer is an answer");
    let (code, found) = errors(&[
        &url(&server, 1, "/"),
        "--protocol",
        "spdy",
        "--timeout",
        "2",
    ]);
    assert_eq!(code, 1, "{found:?}");
}

#[test]
fn certificates_of_an_authority_are_trusted_when_it_is_given() {
    let server = server();
    let cacert = server.path("leaf.pem").display().to_string();
    let found = report(&[
        &url(&server, 3, "/100.txt"),
        "--cacert",
        &cacert,
        "--requests",
        "5",
    ]);
    assert_eq!(found["servers"][0]["done"], 5, "{found}");
    assert_eq!(found["settings"]["insecure"], false);
}

#[test]
fn constant_rate_is_kept() {
    let server = server();
    let url = url(&server, 1, "/100.txt");
    let report = report(&[&url, "--rate", "400", "--duration", "2", "--threads", "2"]);
    let found = &report["servers"][0];
    assert_eq!(found["done"], 800, "{found}");
    assert_eq!(found["times"]["response"]["n"], 800);
    let rate = number(&found["rate"]["value"]);
    assert!((380.0..=420.0).contains(&rate), "{rate}");
}

/// Output of a bench that gets a signal and ends at once.
#[track_caller]
fn interrupted(mut bench: Child) -> Output {
    let ended = holds_within(Duration::from_secs(10), || {
        bench.try_wait().is_ok_and(|status| status.is_some())
    });
    if !ended {
        let _ = bench.kill();
    }
    let output = bench.wait_with_output().expect("it has ended");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    output
}

#[test]
fn signals_end_a_bench_with_what_was_measured() {
    let server = server();
    let url = url(&server, 1, "/100.txt");
    for signal in [Signal::INT, Signal::TERM] {
        let bench = Command::new(peer::binary())
            .args(["bench", &url, "--duration", "600", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // It blocks the signals before it opens its connections.
        let pid = bench.id();
        wait_until("it loads the server", || process::cpu_ticks(pid) > 5);
        assert_eq!(
            process::children(pid),
            Vec::<u32>::new(),
            "it starts no process"
        );
        assert!(process::signal(pid, signal));
        let output = interrupted(bench);
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(report["interrupted"], true);
        assert!(
            report["servers"][0]["done"]
                .as_u64()
                .is_some_and(|done| done > 0)
        );
    }
}

/// The handshake gets no response, so the load has not begun.
#[test]
fn signals_end_a_bench_that_still_connects() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let bench = Command::new(peer::binary())
        .args(["bench", "-k", "--duration", "600"])
        .arg(format!("https://127.0.0.1:{port}/"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let _unanswered = listener.accept().expect("it connects");
    assert!(process::signal(bench.id(), Signal::INT));
    interrupted(bench);
}

#[test]
fn reports_are_compared() {
    let server = server();
    let url = url(&server, 1, "/100.txt");
    let dir = TempDir::new();
    let path = |name: &str| dir.path().join(name).display().to_string();
    for name in ["a.json", "b.json"] {
        let outcome = bench(&[&url, "--requests", "300", "--blocks", "4", "--json"]);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        dir.write(name, outcome.stdout);
    }
    dir.write("old.json", "{\"format\": \"firstbyte-bench/0\"}");
    let compare = |first: &str, second: &str| run(["compare", &path(first), &path(second)]);
    let same = compare("a.json", "b.json");
    assert_eq!(same.code, 0, "{same:?}");
    let name = format!("{url} (A): responses a second: ");
    assert!(same.stdout.contains(&name), "{same:?}");
    let wide = same.stdout.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None, "{same:?}");
    let old = compare("a.json", "old.json");
    assert_refused(&old, "\"firstbyte-bench/0\"");
}

#[test]
fn two_servers_take_turns_and_get_a_verdict() {
    let server = server();
    let (fast, slow) = (url(&server, 1, "/100.txt"), url(&server, 3, "/100.txt"));
    let words = [
        &fast,
        "-k",
        "--against",
        &slow,
        "--connect",
        "cold",
        "--requests",
        "60",
    ];
    let words = [&words[..], &["--blocks", "6", "--warm-up", "0.05"]].concat();
    let mut found = Value::Null;
    let worst = worst_stall_while(|| found = report(&words));
    let report = found;
    assert_eq!(
        report["servers"][1]["blocks"].as_array().map(Vec::len),
        Some(6)
    );
    let rate = &report["comparison"][0];
    if rate["verdict"] == "no difference seen" && worst > STALL_MOST {
        return inconclusive(&format!("threads were kept waiting for {worst:?}"));
    }
    assert_eq!(
        (&rate["figure"], &rate["verdict"]),
        (&"rate".into(), &"first is better".into()),
        "{rate}"
    );
    assert!(
        number(&rate["ratio"]["high"]) < 1.0,
        "handshakes cost something: {rate}"
    );
}

#[test]
fn the_table_has_three_rows_for_a_server() {
    let server = server();
    let pair = format!(
        "it={},{}",
        url(&server, 3, "/100.txt"),
        url(&server, 1, "/100.txt")
    );
    let outcome = bench(&["--table", "-k", &pair, "--requests", "200", "--blocks", "2"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for row in [
        "it, HTTP/2 over TLS ",
        "it, HTTP/1.1 over TLS ",
        "it, HTTP/1.1 ",
    ] {
        assert!(
            outcome.stdout.lines().any(|line| line.starts_with(row)),
            "{row}: {outcome:?}"
        );
    }
}

#[test]
fn times_are_written_as_a_log_of_histograms() {
    let server = server();
    let dir = TempDir::new();
    let path = dir.path().join("times.hlog").display().to_string();
    let outcome = bench(&[
        &url(&server, 1, "/100.txt"),
        "--requests",
        "50",
        "--hdr",
        &path,
    ]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let log = dir.read("times.hlog");
    for part in [
        "#[Histogram log format version",
        ".service,",
        ".first_byte,",
        "HISTFAA",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

/// The server listens on this machine, and is still reached over the link.
#[test]
fn server_is_measured_through_a_link() {
    if !firstbyte_tests::via::possible() {
        return;
    }
    let server = server();
    let url = url(&server, 3, "/100.txt");
    let report = report(&[
        &url,
        "-k",
        "--protocol",
        "h2",
        "--requests",
        "20",
        "--connections",
        "2",
        "--via",
        "40ms,seed=7",
    ]);
    let found = &report["servers"][0];
    assert_eq!(found["done"], 20, "{found}");
    let least = number(&found["times"]["service"]["percentiles"]["p50"]["value"]);
    assert!((40.0..80.0).contains(&least), "{least} ms: {found}");
    let link = report["conditions"]["link"].as_str().unwrap_or_default();
    assert!(link.starts_with("emulated, 40ms,seed=7; "), "{link}");
    offloads_are_known(&report);
    // It hands over packets as they would be on a wire, so its device cannot cut segments; `lo` can.
    assert_eq!(report["conditions"]["offloads"]["tso"], false);
    let round_trip_us = report["conditions"]["round_trip_us"].as_u64();
    assert!(round_trip_us >= Some(40_000), "{round_trip_us:?}");
    let wrong = bench(&[&url, "--via", "40parsecs"]);
    assert_refused(&wrong, "40parsecs");
}

/// A block of sixty handshakes takes some hundred milliseconds: longer waits may hide the expected difference.
const STALL_MOST: Duration = Duration::from_millis(10);
