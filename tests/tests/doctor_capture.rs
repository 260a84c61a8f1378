//! `firstbyte doctor` of files: captures made over a link, HAR files of pages, configurations.
//!
//! Captures are skipped with a message without links or curl. Own executable: captures contain delays of milliseconds.

#[path = "common/lab.rs"]
mod lab;
#[allow(dead_code, reason = "the doctor's other tests use the rest")]
#[path = "common/planted/mod.rs"]
mod planted;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::fs;
use std::path::Path;
use std::process::Command;

use firstbyte_tests::busy::inconclusive;
use firstbyte_tests::skip::skip_outside_ci;
use firstbyte_tests::via::{possible, skipped};
use firstbyte_tests::{Outcome, TempDir, peer, run};
use planted::{Fault, Planted, Protocol};
use serde_json::{Value, json};

/// Attempts to make a capture while the link is on time.
const ATTEMPTS: usize = 5;

fn possible_with_curl() -> bool {
    let found = Command::new("curl").arg("--version").output();
    possible() && (found.is_ok() || skipped("there is no curl"))
}

fn doctor(words: &[&str]) -> Outcome {
    run(["doctor"].iter().chain(words))
}

/// The diagnosis of a file; its exit status must agree.
#[track_caller]
fn diagnosis(option: &str, file: &Path) -> Value {
    let outcome = doctor(&[option, &file.display().to_string(), "--json"]);
    let found: Value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    assert_eq!(found["format"], "firstbyte-doctor/1");
    let is_bad = above_note(&found).any(|one| one["severity"] == "bad");
    assert_eq!(outcome.code, if is_bad { 2 } else { 0 }, "{outcome:?}");
    found
}

fn above_note(found: &Value) -> impl Iterator<Item = &Value> {
    let all = found["findings"].as_array().expect("a list").iter();
    all.filter(|one| one["severity"] != "note")
}

fn codes(found: &Value) -> Vec<&str> {
    above_note(found)
        .filter_map(|one| one["code"].as_str())
        .collect()
}

/// Makes a capture of a client's requests over a link of 50 ms; whether the link was on time.
fn captured(dir: &TempDir, hold_ms: u32, client: &[String]) -> bool {
    let (pcap, report) = (shown(dir, "a.pcap"), shown(dir, "via.json"));
    let spec = format!("50ms,delack={hold_ms}ms");
    let mut words = vec!["via", &spec, "--pcap", &pcap, "--json", &report, "--quiet"];
    // The last word of a client is a URL; its port may be one of those that are the client's own.
    let port = client.last().and_then(|url| url.rsplit(':').next());
    let port = port.and_then(|rest| rest.split('/').next());
    words.extend(["--port", port.expect("a port"), "--"]);
    words.extend(client.iter().map(String::as_str));
    let outcome = run(&words);
    assert_eq!(outcome.code, 0, "{words:?}: {outcome:?}");
    let report = fs::read_to_string(&report).expect("it was written");
    let report: Value = serde_json::from_str(&report).expect("it is JSON");
    report["late"]["beyond_limit"] == 0 && report["uncaptured"] == 0
}

/// The words of curl for some URLs on one connection.
fn curl(option: &str, urls: &[String]) -> Vec<String> {
    let own = [
        "curl",
        "--silent",
        "--show-error",
        "--insecure",
        "--max-time",
        "30",
        option,
    ];
    let urls = urls.iter().flat_map(|url| ["--output", "/dev/null", url]);
    own.into_iter().chain(urls).map(ToOwned::to_owned).collect()
}

/// The words of a client of this program, which sends three requests one after the other.
fn bench(protocol: &str, url: &str) -> Vec<String> {
    let program = peer::binary();
    let program = program.to_str().expect("a path in UTF-8");
    let words = [
        program,
        "bench",
        "--protocol",
        protocol,
        "--requests",
        "3",
        "--connections",
        "1",
    ];
    words
        .into_iter()
        .chain(["--insecure", url])
        .map(ToOwned::to_owned)
        .collect()
}

fn shown(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

/// The diagnosis of a capture with a link that was on time; `None` if the machine is too busy.
fn examined(hold_ms: u32, client: &[String]) -> Option<Value> {
    for _ in 0..ATTEMPTS {
        let dir = TempDir::new();
        if captured(&dir, hold_ms, client) {
            return Some(diagnosis("--pcap", &dir.path().join("a.pcap")));
        }
    }
    inconclusive("the link was late in each capture");
    None
}

/// Asserts that the first finding is a stall with this cost, and returns its requests.
#[track_caller]
fn assert_stalls(found: &Value, hold_ms: u32) -> Vec<u64> {
    let stall = &found["findings"][0];
    assert_eq!(stall["code"], "delayed-ack-stall", "{found:#}");
    assert_eq!(stall["severity"], "bad");
    let lost = stall["lost_ms"].as_f64().expect("a number");
    let expected = f64::from(hold_ms + 50);
    assert!(
        (expected - 2.0..expected + 10.0).contains(&lost),
        "{found:#}"
    );
    let examples = stall["evidence"]["examples"].as_array().expect("a list");
    let requests = examples.iter().filter_map(|one| one["request"].as_u64());
    let mut requests: Vec<u64> = requests.collect();
    requests.sort_unstable();
    requests
}

#[test]
fn withheld_ends_are_named_from_a_capture_with_their_packets() {
    if !possible_with_curl() {
        return;
    }
    for (protocol, hold_ms) in [
        (Protocol::Http1, 200),
        (Protocol::Http1, 40),
        (Protocol::Http1Tls, 200),
        (Protocol::Http1Tls, 40),
    ] {
        let planted = Planted::serve(protocol, Fault::Withholds(1300));
        let urls = ["/100", "/700", "/1300", "/1400"].map(|path| planted.url(path));
        let Some(found) = examined(hold_ms, &curl("--http1.1", &urls)) else {
            continue;
        };
        assert_eq!(
            assert_stalls(&found, hold_ms),
            [1, 2, 3],
            "{protocol:?}: {found:#}"
        );
        if protocol == Protocol::Http1 {
            let examples = found["findings"][0]["evidence"]["examples"].as_array();
            let examples = examples.expect("a list").iter();
            let mut lines: Vec<&str> = examples
                .filter_map(|one| one["request_line"].as_str())
                .collect();
            lines.sort_unstable();
            assert_eq!(lines, ["GET /100", "GET /1300", "GET /700"]);
        }
    }
}

/// The diagnosis of a capture of curl with these ciphers and the keys that it has written; `None` if it writes none, or
/// the machine is too busy.
fn opened(ciphers: &[&str], urls: &[String]) -> Option<Value> {
    let dir = TempDir::new();
    let keys = shown(&dir, "keys");
    let mut client = vec!["env".to_owned(), format!("SSLKEYLOGFILE={keys}")];
    client.extend(curl("--http1.1", urls));
    // Before the URLs, each of which has an option.
    let place = client.len() - 3 * urls.len();
    client.splice(place..place, ciphers.iter().map(|word| (*word).to_owned()));
    if !(0..ATTEMPTS).any(|_| captured(&dir, 40, &client)) {
        inconclusive("the link was late in each capture");
        return None;
    }
    if !Path::new(&keys).exists() {
        skipped("curl writes no keys");
        return None;
    }
    let outcome = doctor(&[
        "--pcap",
        &shown(&dir, "a.pcap"),
        "--keylog",
        &keys,
        "--json",
    ]);
    let found = serde_json::from_str(&outcome.stdout);
    Some(found.unwrap_or_else(|error| panic!("{error}: {outcome:?}")))
}

#[test]
fn keys_of_tls_1_3_name_the_requests() {
    if !possible_with_curl() {
        return;
    }
    for cipher in [
        "AES_128_GCM_SHA256",
        "AES_256_GCM_SHA384",
        "CHACHA20_POLY1305_SHA256",
    ] {
        let planted = Planted::serve(Protocol::Http1Tls, Fault::Withholds(1300));
        let urls = ["/100", "/1300"].map(|path| planted.url(path));
        let cipher = format!("TLS_{cipher}");
        let Some(found) = opened(&["--tls13-ciphers", &cipher], &urls) else {
            continue;
        };
        assert_eq!(
            found["measured"]["decrypted_connections"], 1,
            "{cipher}: {found:#}"
        );
        assert_eq!(assert_stalls(&found, 40), [1, 2]);
        let examples = found["findings"][0]["evidence"]["examples"]
            .as_array()
            .expect("a list");
        let lines = examples
            .iter()
            .filter_map(|one| one["request_line"].as_str());
        let mut lines: Vec<&str> = lines.collect();
        lines.sort_unstable();
        assert_eq!(lines, ["GET /100", "GET /1300"], "{cipher}: {found:#}");
    }
}

#[test]
fn keys_of_tls_1_2_open_every_cipher() {
    if !possible_with_curl() {
        return;
    }
    let server = lab::server();
    let urls = [lab::url(&server, 3, "/100.txt")];
    for cipher in [
        "AES128-GCM-SHA256",
        "AES256-GCM-SHA384",
        "CHACHA20-POLY1305",
    ] {
        let ciphers = format!("ECDHE-ECDSA-{cipher}:ECDHE-RSA-{cipher}");
        let words = ["--tls-max", "1.2", "--ciphers", &ciphers];
        if let Some(found) = opened(&words, &urls) {
            assert_eq!(
                found["measured"]["decrypted_connections"], 1,
                "{cipher}: {found:#}"
            );
        }
    }
}

#[test]
fn withheld_ends_are_named_over_streams_at_the_sizes_that_stall() {
    if !possible() {
        return;
    }
    for protocol in [Protocol::Http2, Protocol::Spdy] {
        let planted = Planted::serve(protocol, Fault::Withholds(1300));
        for (hold_ms, path, stalls) in [
            (200, "/100", true),
            (40, "/1300", true),
            (200, "/1400", false),
        ] {
            let Some(found) = examined(hold_ms, &bench(protocol.name(), &planted.url(path))) else {
                continue;
            };
            if !stalls {
                assert_eq!(codes(&found), [""; 0], "{protocol:?} {path}: {found:#}");
                continue;
            }
            let requests = assert_stalls(&found, hold_ms);
            // The first response may be acknowledged together with the client's settings.
            assert!(requests.len() >= 2, "{protocol:?} {path}: {found:#}");
        }
    }
}

#[test]
fn this_servers_captures_are_healthy() {
    if !possible_with_curl() {
        return;
    }
    let server = lab::server();
    for (port, option) in [(1, "--http1.1"), (3, "--http1.1"), (3, "--http2")] {
        let urls = ["/100.txt", "/echo", "/", "/100.txt"].map(|path| lab::url(&server, port, path));
        if let Some(found) = examined(40, &curl(option, &urls)) {
            assert_eq!(codes(&found), [""; 0], "{port} {option}: {found:#}");
        }
    }
    for (port, protocol) in [(1, "h2"), (2, "spdy"), (3, "spdy")] {
        let url = lab::url(&server, port, "/100.txt");
        if let Some(found) = examined(40, &bench(protocol, &url)) {
            assert_eq!(codes(&found), [""; 0], "{port} {protocol}: {found:#}");
        }
    }
}

#[test]
fn captures_open_in_tshark() {
    if !possible_with_curl() {
        return;
    }
    if Command::new("tshark").arg("--version").output().is_err() {
        return skip_outside_ci("tshark is not installed");
    }
    let planted = Planted::serve(Protocol::Http1, Fault::None);
    let dir = TempDir::new();
    captured(&dir, 40, &curl("--http1.1", &[planted.url("/100")]));
    let output = Command::new("tshark")
        .args([
            "-r",
            &shown(&dir, "a.pcap"),
            "-T",
            "fields",
            "-e",
            "frame.number",
        ])
        .output()
        .expect("it starts");
    let numbers = String::from_utf8_lossy(&output.stdout).lines().count();
    let found = diagnosis("--pcap", &dir.path().join("a.pcap"));
    assert_eq!(found["measured"]["packets"], numbers, "{output:?}");
}

#[test]
fn a_configuration_is_judged_without_traffic() {
    let dir = TempDir::new();
    let conf = |http: &str| {
        dir.write("nginx.conf", format!("events {{}}\nhttp {{\n{http}\n}}\n"));
        diagnosis("-c", &dir.path().join("nginx.conf"))
    };
    let sound = "gzip on; gzip_types text/css text/javascript;";
    let found = conf(&format!("{sound} server {{ listen 80; }}"));
    assert_eq!(codes(&found), [""; 0], "{found:#}");
    let found = conf(&format!(
        "{sound}\ntcp_nodelay off;\nserver {{ listen 80; }}"
    ));
    assert_eq!(codes(&found), ["delayed-ack-stall"]);
    let lines = &found["findings"][0]["evidence"]["lines"];
    assert_eq!(*lines, json!([format!("{}:4", shown(&dir, "nginx.conf"))]));
    // A chain with the same certificate many times.
    let leaf = lab::leaf("localhost");
    dir.write("k.pem", &leaf.key);
    let tls = "listen 443 ssl; http2 on; ssl_certificate chain.pem; ssl_certificate_key k.pem;";
    for (copies, expected) in [(1, &[""; 0][..]), (80, &["chain-over-window"])] {
        dir.write("chain.pem", leaf.certificate.repeat(copies));
        let found = conf(&format!("{sound} server {{ {tls} }}"));
        assert_eq!(codes(&found), expected, "{found:#}");
    }
}

/// The error of `-t` comes first; findings of the text follow if it is whole.
#[test]
fn a_configuration_that_does_not_load_is_refused_as_by_a_test() {
    let dir = TempDir::new();
    let path = shown(&dir, "nginx.conf");
    for (http, error, has_findings) in [
        (
            "include missing.conf;",
            "(2: No such file or directory)",
            false,
        ),
        ("gzip on", "directive \"gzip\" is not terminated by", false),
        (
            "no_such_directive on;",
            "unknown directive \"no_such_directive\"",
            true,
        ),
        (
            "server { listen 80; root; }",
            "invalid number of arguments in \"root\" directive",
            true,
        ),
        (
            "server { listen 443 ssl; ssl_certificate none.pem; ssl_certificate_key k; }",
            "cannot load certificate",
            true,
        ),
    ] {
        dir.write(
            "nginx.conf",
            format!("events {{}}\nhttp {{\ntcp_nodelay off; {http}\nserver {{ listen 80; }}\n}}\n"),
        );
        let tested = run(["-t", "-e", &shown(&dir, "error.log"), "-c", &path]);
        assert_eq!(tested.code, 1, "{tested:?}");
        let outcome = doctor(&["-c", &path]);
        assert_eq!(outcome.code, 1, "{outcome:?}");
        // The line of -t with the error, its file and line; warnings of -t are not the doctor's.
        let mut lines = tested.stderr.lines();
        let first = lines.find(|line| line.starts_with("nginx: [emerg]"));
        let first = first.expect("an error");
        assert!(first.contains(error), "{tested:?}");
        assert_eq!(outcome.stderr.lines().next(), Some(first), "{outcome:?}");
        let last = "firstbyte doctor: the configuration does not load\n";
        assert!(outcome.stderr.ends_with(last), "{outcome:?}");
        assert_eq!(
            outcome.stdout.contains("delayed-ack-stall"),
            has_findings,
            "{outcome:?}"
        );
    }
}

/// An archive of one page; its only response is this text, uncompressed.
fn archive(bytes: usize) -> String {
    json!({"log": {"version": "1.2", "creator": {"name": "t", "version": "1"},
        "pages": [{"id": "p", "startedDateTime": "2026-01-01T00:00:00.000Z", "title": "t", "pageTimings": {}}],
        "entries": [{"pageref": "p", "startedDateTime": "2026-01-01T00:00:00.000Z", "time": 70,
            "request": {"method": "GET", "url": "https://h/a.css", "httpVersion": "h2", "cookies": [],
                "headers": [{"name": "accept-encoding", "value": "gzip"}], "queryString": [],
                "headersSize": -1, "bodySize": 0},
            "response": {"status": 200, "statusText": "", "httpVersion": "h2", "cookies": [], "headers": [],
                "content": {"size": bytes, "mimeType": "text/css"}, "redirectURL": "",
                "headersSize": 100, "bodySize": bytes},
            "cache": {}, "timings": {"send": 0, "wait": 60, "receive": 10}}]}})
    .to_string()
}

#[test]
fn an_archive_is_judged() {
    let dir = TempDir::new();
    for (bytes, expected) in [(50_000, &["no-compression"][..]), (500, &[])] {
        dir.write("a.har", archive(bytes));
        let found = diagnosis("--har", &dir.path().join("a.har"));
        assert_eq!(codes(&found), expected, "{found:#}");
        assert_eq!(found["protocol"], "h2");
    }
}

#[test]
fn files_that_are_none_end_with_a_sentence() {
    let dir = TempDir::new();
    dir.write("text", "this is no capture");
    dir.write("short", "\u{1}");
    dir.write("open.conf", "http {");
    for (option, file, why) in [
        (
            "--pcap",
            "text",
            "the file is no capture: it is neither pcap nor pcapng",
        ),
        ("--pcap", "short", "too short to be a capture"),
        ("--pcap", "missing", "No such file"),
        ("--pcap", "", "it is a directory"),
        ("--har", "text", "text: "),
        ("--har", "missing", "No such file"),
        ("--har", "", "it is a directory"),
        ("-c", "open.conf", "unexpected end of file"),
        ("-c", "missing", "(2: No such file or directory)"),
        ("-c", "", "(21: Is a directory)"),
    ] {
        let outcome = doctor(&[option, &shown(&dir, file)]);
        assert_eq!(outcome.code, 1, "{option} {file}: {outcome:?}");
        assert!(outcome.stderr.contains(why), "{option} {file}: {outcome:?}");
        assert_eq!(outcome.stdout, "");
    }
    for words in [
        &["--pcap", "a", "http://h/"][..],
        &["--pcap", "a", "--har", "b"],
        &[],
    ] {
        assert_eq!(doctor(words).code, 1, "{words:?}");
    }
}
