//! `firstbyte bench` and `compare`: what is counted over every protocol, what fails, the end by a signal, and the page.
//!
//! What takes long is ignored here and run by `make test-all`.

mod tls_client;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use firstbyte_tests::wait::holds_within;
use firstbyte_tests::{Outcome, Server, Signal, TempDir, peer, process, run, wait_until};
use serde_json::Value;
use tls_client::site;

/// Speaks everything: ports 1 plain HTTP/1.1 and HTTP/2, 2 plain SPDY, 3 TLS.
fn server() -> Server {
    let leaf = site("localhost");
    let text = "x".repeat(100);
    Server::http(
        "keepalive_requests 1000000;
         server {
            listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%% spdy; listen 127.0.0.1:%%PORT3%% ssl spdy;
            http2 on; ssl_certificate leaf.pem; ssl_certificate_key leaf.key;
            ssl_session_tickets on; root html;
            location /echo { return 200 $request_method; }
            location /broken { return 500; }
         }",
    )
    .bytes("leaf.pem", leaf.certificate.as_bytes())
    .bytes("leaf.key", leaf.key.as_bytes())
    .file("html/100.txt", &text)
    .start()
}

fn url(server: &Server, port: usize, path: &str) -> String {
    let scheme = if port == 3 { "https" } else { "http" };
    format!("{scheme}://localhost:{}{path}", server.port_number(port))
}

fn bench(words: &[&str]) -> Outcome {
    run(["bench"].iter().chain(words))
}

/// The report of a bench that must have gone well.
#[track_caller]
fn report(words: &[&str]) -> Value {
    let outcome = bench(&[words, &["--json"]].concat());
    assert_eq!(outcome.code, 0, "{words:?}: {outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("it is JSON")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

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
        let found = &report["servers"][0];
        assert_eq!(found["done"], 1003, "{url} {protocol}: {found}");
        assert_eq!(found["errors"], serde_json::json!({}), "{url} {protocol}");
        assert_eq!(found["statuses"]["2xx"], 1003);
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
        assert_eq!(found["errors"], serde_json::json!({}));
        let found = &report(&[&words[..], &["--access-log", &log]].concat())["servers"][0];
        assert_eq!(
            (&found["done"], &found["body_bytes"]),
            (&40.into(), &4000.into())
        );
    }
    let missing = path("missing");
    let wrong = bench(&[&url(&server, 1, "/"), "--mix", &missing]);
    assert!(
        wrong.code == 1 && wrong.stderr.contains("cannot read"),
        "{wrong:?}"
    );
}

#[test]
fn failures_are_counted_by_their_kinds() {
    let server = server();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = listener.local_addr().expect("bound").port();
    drop(listener);
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
    let h2 = format!("http://localhost:{}/", server.port_number(2));
    let (code, found) = errors(&[&h2, "--protocol", "h2", "--timeout", "2"]);
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
fn thresholds_decide_the_exit_status() {
    let server = server();
    let url = url(&server, 1, "/100.txt");
    let code = |condition: &str| bench(&[&url, "--requests", "100", "--fail-if", condition]).code;
    assert_eq!(code("errors>0"), 0);
    assert_eq!(code("rate<1"), 0);
    assert_eq!(code("rate>1"), 2);
    assert_eq!(code("p99>0.000001"), 2);
    assert_eq!(code("cpu>1"), 2, "what was not measured is no success");
    assert_eq!(code("p98>1"), 1);
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

/// A server that is frozen for 1 s in 6 s at 500 requests a second makes 500 of 3,000 requests wait, evenly from 0 to 1 s.
#[test]
#[ignore = "takes 6 s of a quiet machine"]
fn requests_that_a_frozen_server_keeps_waiting_are_not_left_out() {
    let server = server();
    let url = url(&server, 1, "/100.txt");
    let words = ["bench", &url, "--rate", "500", "--duration", "6", "--json"];
    let bench = Command::new(peer::binary())
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    let workers = server.workers();
    thread::sleep(Duration::from_millis(2500));
    workers
        .iter()
        .for_each(|worker| assert!(process::signal(*worker, Signal::STOP)));
    thread::sleep(Duration::from_millis(1000));
    workers
        .iter()
        .for_each(|worker| assert!(process::signal(*worker, Signal::CONT)));
    let output = bench.wait_with_output().expect("it ends");
    assert!(began.elapsed() > Duration::from_secs(5));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let found = &report["servers"][0];
    let response = &found["times"]["response"];
    for (what, found, expected) in [
        ("p90", &response["percentiles"]["p90"]["value"], 400.0),
        ("p99", &response["percentiles"]["p99"]["value"], 940.0),
        ("mean", &response["mean_ms"], 83.3),
    ] {
        let found = number(found);
        let off = (found - expected).abs() / expected;
        assert!(
            off < 0.1,
            "{what} is {found} ms where {expected} ms are due"
        );
    }
    assert_eq!(found["done"], 3000);
    let service = &found["times"]["service"]["percentiles"]["p90"]["value"];
    assert!(
        number(service) < 100.0,
        "what a client that waits would have told: {service} ms"
    );
}

#[test]
fn signals_end_a_bench_with_what_was_measured() {
    let server = server();
    let url = url(&server, 1, "/100.txt");
    for signal in [Signal::INT, Signal::TERM] {
        let mut bench = Command::new(peer::binary())
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
        let ended = holds_within(Duration::from_secs(10), || {
            bench.try_wait().is_ok_and(|status| status.is_some())
        });
        if !ended {
            let _ = bench.kill();
        }
        let output = bench.wait_with_output().expect("it has ended");
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(report["interrupted"], true);
        assert!(
            report["servers"][0]["done"]
                .as_u64()
                .is_some_and(|done| done > 0)
        );
    }
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
    assert!(same.stdout.contains("responses a second: "), "{same:?}");
    let old = compare("a.json", "old.json");
    assert!(
        old.code == 1 && old.stderr.contains("\"firstbyte-bench/0\""),
        "{old:?}"
    );
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
    let report = report(&[&words[..], &["--blocks", "6", "--warm-up", "0.05"]].concat());
    assert_eq!(
        report["servers"][1]["blocks"].as_array().map(Vec::len),
        Some(6)
    );
    let rate = &report["comparison"][0];
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

/// The page in Chromium: at the width of a telephone, light and dark, without a word on the console.
#[test]
fn page_is_readable_in_a_browser() {
    let found = Command::new("chromium").arg("--version").output();
    if found.is_err() {
        let required = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!required, "Chromium is not installed: run .ci/setup");
        let _ = std::io::stderr().write_all(b"\nskipped: Chromium is not installed\n");
        return;
    }
    let server = server();
    let dir = TempDir::new();
    let path = dir.path().join("report.html").display().to_string();
    let (one, other) = (url(&server, 1, "/100.txt"), url(&server, 3, "/100.txt"));
    let words = [
        &one,
        "-k",
        "--against",
        &other,
        "--duration",
        "0.3",
        "--blocks",
        "2",
    ];
    let outcome = bench(&[&words[..], &["--html", &path]].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let page = fs::read_to_string(&path).expect("it was written");
    assert!(
        !page.contains("http-equiv") && !page.contains("<script"),
        "it needs nothing else"
    );
    let framed = page.replace('&', "&amp;").replace('"', "&quot;");
    dir.write("frame.html", format!("{FRAME_BEFORE}{framed}{FRAME_AFTER}"));
    for (scheme, ground) in [("1", "rgb(255, 255, 255)"), ("0", "rgb(15, 20, 25)")] {
        let output = Command::new("chromium")
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args(["--no-first-run", "--enable-logging=stderr", "--dump-dom"])
            .arg(format!(
                "--user-data-dir={}",
                dir.path().join("profile").display()
            ))
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .arg(format!(
                "file://{}",
                dir.path().join("frame.html").display()
            ))
            .output()
            .expect("Chromium starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains(":CONSOLE"), "{said}");
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let result = dom
            .split("data-result=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let result = result.unwrap_or_else(|| panic!("the frame was not measured: {said}"));
        let parts: Vec<&str> = result.split('|').collect();
        assert_eq!(parts[0], "fits", "{result}");
        assert_eq!(parts[1], ground, "{result}");
        assert_ne!(parts[1], parts[2], "text and ground differ: {result}");
        assert!(
            parts[3].parse::<u32>().is_ok_and(|drawings| drawings >= 3),
            "{result}"
        );
    }
}

const FRAME_BEFORE: &str = "<!DOCTYPE html><meta charset=utf-8><title>frame</title><body>\
    <iframe id=frame width=360 height=640 style=\"border:0\" srcdoc=\"";

const FRAME_AFTER: &str = "\"></iframe><script>
    const frame = document.getElementById('frame');
    const measure = () => {
        const page = frame.contentDocument, style = frame.contentWindow.getComputedStyle(page.body);
        const fits = page.documentElement.scrollWidth <= 360 && parseFloat(style.fontSize) >= 14;
        document.body.dataset.result = [fits ? 'fits' : 'wide ' + page.documentElement.scrollWidth,
            style.backgroundColor, style.color, page.querySelectorAll('svg').length].join('|');
    };
    frame.addEventListener('load', measure);
    if (frame.contentDocument.readyState === 'complete' && frame.contentDocument.body.childElementCount) measure();
    </script>";

/// One server against itself, 200 times.
#[test]
#[ignore = "takes minutes"]
fn one_server_against_itself_is_seldom_called_different() {
    let server = server();
    let url = url(&server, 1, "/100.txt");
    let mut winners = 0;
    for seed in 0..200 {
        let seed = seed.to_string();
        let words = [
            &url,
            "--against",
            &url,
            "--requests",
            "300",
            "--blocks",
            "8",
            "--seed",
            &seed,
        ];
        let report = report(&words);
        winners += u32::from(report["comparison"][0]["verdict"] != "no difference seen");
    }
    assert!(winners <= 10, "{winners} of 200");
}
