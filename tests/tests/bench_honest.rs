//! Figures of `firstbyte bench` claim no more than the measurement: rates, ends of intervals, warnings, and no winner
//! between single runs.
//!
//! Own executable: measurements need the CPUs.

#[path = "common/lab.rs"]
mod lab;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use firstbyte_tests::answers::serve;
use firstbyte_tests::wait::pause;
use firstbyte_tests::{TempDir, run};
use lab::{bench, number, report, server, url};
use serde_json::Value;

/// A server with exponential times of a mean in milliseconds.
fn exponential(mean_ms: f64) -> String {
    let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(1)));
    let wait = move || {
        let share = random.lock().expect("nobody panics").f64().max(1e-9);
        pause(Duration::from_secs_f64(-share.ln() * mean_ms / 1000.0));
    };
    format!("http://{}/", serve(wait))
}

/// Ten connections to a server with response times of 0.3 s: the last response comes half a second after the others.
#[test]
fn rate_of_a_closed_loop_does_not_count_the_wait_for_the_last_response() {
    for size in [["--duration", "1"], ["--requests", "20"]] {
        let url = exponential(300.0);
        let found = &report(&[&[url.as_str()][..], &size].concat())["servers"][0];
        // Each connection has a request in progress at any time, so the rate follows from the mean time (Little's law).
        let due = 10.0 * 1000.0 / number(&found["times"]["service"]["mean_ms"]);
        let rate = number(&found["rate"]["value"]);
        assert!((rate / due - 1.0).abs() < 0.05, "{size:?}: {rate} of {due}");
        let by_the_last = number(&found["done"]) / number(&found["elapsed_s"]);
        assert!(by_the_last < 0.95 * due, "{size:?}: {by_the_last} of {due}");
    }
}

#[test]
fn end_that_no_sample_supports_is_null() {
    let url = exponential(0.1);
    for (requests, ends) in [("367", [true, false]), ("368", [true, true])] {
        let found = report(&[&url, "--requests", requests]);
        let p99 = &found["servers"][0]["times"]["service"]["percentiles"]["p99"];
        let known = ["low", "high"].map(|end| p99[end].is_number());
        assert_eq!(known, ends, "{requests}: {p99}");
    }
    let text = bench(&[&url, "--requests", "100"]).stdout;
    assert!(text.contains("*: n too small for this end"), "{text}");
    assert!(text.contains("95 %: of this run alone"), "{text}");
    let text = bench(&[&url, "--requests", "100", "--blocks", "2"]).stdout;
    assert!(
        text.contains("95 %: from the differences between 2 runs"),
        "{text}"
    );
}

#[test]
fn single_runs_have_no_winner() {
    let dir = TempDir::new();
    for (name, mean_ms) in [("slow.json", 20.0), ("fast.json", 1.0)] {
        let outcome = bench(&[&exponential(mean_ms), "--requests", "200", "--json"]);
        dir.write(name, outcome.stdout);
    }
    let path = |name: &str| dir.path().join(name).display().to_string();
    let text = run(["compare", &path("slow.json"), &path("fast.json")]).stdout;
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    assert!(
        text.contains("no verdict from one run each: measure both with --blocks 10"),
        "{text}"
    );
    assert!(!text.contains("is better"), "{text}");
    let json = run(["compare", "--json", &path("slow.json"), &path("fast.json")]).stdout;
    let figures: Value = serde_json::from_str(&json).expect("it is JSON");
    for figure in figures.as_array().expect("figures") {
        assert_eq!(figure["verdict"], "not compared: one run each");
        assert_eq!(figure["ratio"]["low"], Value::Null, "{figure}");
    }
    let against = report(&[
        &exponential(20.0),
        "--against",
        &exponential(1.0),
        "--blocks",
        "1",
        "--requests",
        "50",
    ]);
    assert_eq!(
        against["comparison"][0]["verdict"],
        "not compared: one run each"
    );
}

/// The warnings of a report as one text.
fn warnings(report: &Value) -> String {
    report["warnings"].to_string()
}

#[test]
fn rate_that_was_not_reached_is_warned_of() {
    let url = exponential(20.0);
    let words = [
        url.as_str(),
        "--connections",
        "2",
        "--duration",
        "1",
        "--rate",
    ];
    let found = report(&[&words[..], &["1000"]].concat());
    let text = warnings(&found);
    assert!(
        text.contains("requests a second were sent instead of 1000"),
        "{text}"
    );
    assert!(text.contains("the rate was not reached"), "{text}");
    let server = &found["servers"][0];
    let (sent, rate) = (
        number(&server["sent_rate"]),
        number(&server["rate"]["value"]),
    );
    assert!(
        sent < 200.0 && (rate / sent - 1.0).abs() < 0.05,
        "{sent} {rate}"
    );
    let reached = report(&[&words[..], &["10"]].concat());
    let text = warnings(&reached);
    assert!(!text.contains("not reached"), "{text}");
    let rate = number(&reached["servers"][0]["rate"]["value"]);
    assert!((rate - 10.0).abs() < 0.2, "{rate}");
}

#[test]
fn errors_and_other_statuses_are_warned_of() {
    let server = server();
    let (good, bad) = (url(&server, 1, "/100.txt"), url(&server, 1, "/broken"));
    let found = report(&[&bad, "--requests", "20"]);
    assert_eq!(
        found["servers"][0]["status_codes"],
        serde_json::json!({ "500": 20 })
    );
    let text = warnings(&found);
    assert!(
        text.contains("every response was an error (500: 20)"),
        "{text}"
    );
    let size = ["--requests", "40", "--blocks", "4"];
    let both = report(&[&[good.as_str(), "--against", &bad][..], &size].concat());
    assert!(
        warnings(&both).contains("answered with different statuses"),
        "{both}"
    );
    for figure in both["comparison"].as_array().expect("figures") {
        assert_eq!(figure["verdict"], "not compared: other statuses");
    }
    let same = report(&[&[good.as_str(), "--against", &good][..], &size].concat());
    assert!(!warnings(&same).contains("statuses"), "{same}");
}

#[test]
fn process_that_does_not_exist_is_an_error() {
    let server = server();
    let url = url(&server, 1, "/100.txt");
    let outcome = bench(&[&url, "--requests", "5", "--pid", "4294967295"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        outcome
            .stderr
            .contains("--pid 4294967295: there is no such process"),
        "{outcome:?}"
    );
}

#[test]
fn lines_of_a_log_that_are_passed_over_are_counted() {
    let server = server();
    let dir = TempDir::new();
    let line = |request: &str| format!("- - [] \"{request}\" 200 1\n");
    let lines = ["GET /100.txt HTTP/1.1", "POST /echo HTTP/1.1", "\\x16\\x03"].map(line);
    dir.write("log", lines.concat());
    let log = dir.path().join("log").display().to_string();
    let url = url(&server, 1, "/");
    let words = [url.as_str(), "--access-log", &log, "--requests", "5"];
    assert_eq!(report(&words)["settings"]["passed_over"], 2);
    let text = bench(&words).stdout;
    assert!(
        text.contains("2 other lines of the access log passed over"),
        "{text}"
    );
}

#[test]
fn server_of_http_1_0_is_called_so() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // The request comes in one packet.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let found = report(&[&url, "--requests", "20", "--connections", "1"]);
    let server = &found["servers"][0];
    assert_eq!(server["done"], 20, "{server}");
    assert_eq!(server["errors"], serde_json::json!({}));
    let protocols = server["protocols"].as_object().expect("protocols");
    assert_eq!(protocols.keys().collect::<Vec<_>>(), ["HTTP/1.0"]);
}
