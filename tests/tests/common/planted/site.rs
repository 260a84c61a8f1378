//! A site without faults other than those planted by a test, and the doctor's diagnosis of it.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use firstbyte_tests::busy::check_timing;
use firstbyte_tests::{Server, peer, run};
use serde_json::Value;

use crate::tls_client::{self, Leaf};

/// A server without findings. A test changes one line of it.
const HEALTHY: &str = "
    keepalive_timeout 75s; keepalive_requests 1000;
    gzip on; gzip_comp_level 6; brotli on; brotli_comp_level 6; zstd off;
    ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve auto;
    ssl_certificate site.pem; ssl_certificate_key site.key;
    ssl_certificate_compression on; ssl_early_data on;
    ssl_session_cache shared:tls:1m; ssl_session_tickets on;
    server {
        listen 127.0.0.1:%%PORT%% ssl; http2 on; server_name localhost;
        add_header Strict-Transport-Security max-age=31536000;
        root html;
        location /answer { return 200 hello; }
    }
    server { listen 127.0.0.1:%%PORT2%%; return 301 https://localhost:%%PORT%%$request_uri; }
    server { listen 127.0.0.1:%%PORT3%%; root html; }
";

/// A healthy server but for these texts, each of which takes the place of another; and its certificates.
pub(crate) fn planted(changes: &[(&str, &str)], leaf: &Leaf) -> Server {
    let mut text = HEALTHY.to_owned();
    for (before, after) in changes {
        assert!(text.contains(before), "{before}");
        text = text.replace(before, after);
    }
    Server::http(&text)
        .bytes("site.pem", leaf.certificate.as_bytes())
        .bytes("site.key", leaf.key.as_bytes())
        .file("html/index.html", &page())
        .file("html/repeated.html", &page().repeat(3))
        .start()
}

pub(crate) fn with(changes: &[(&str, &str)]) -> Server {
    planted(changes, &tls_client::site("localhost"))
}

/// A page of 46 KB, of words by chance from a list of fixed ones, as text is. Three of them in a row are for gzip three times as
/// much, since it looks back 32 KB, and for Brotli one.
fn page() -> String {
    let mut random = fastrand::Rng::with_seed(20);
    let mut text = "<!doctype html><title>A page</title>\n".to_owned();
    for _ in 0..600 {
        let words: Vec<String> = (0..6)
            .map(|_| format!("{:x}", u64::from(random.u16(..4000)) * 2_654_435))
            .collect();
        let _ = writeln!(text, "<p class=\"line\">{}</p>", words.join(" "));
    }
    text
}

pub(crate) fn https(server: &Server, path: &str) -> String {
    format!("https://localhost:{}{path}", server.port_number(1))
}

/// The doctor's diagnosis of a URL; its status has to fit the findings.
#[track_caller]
pub(crate) fn diagnosis(url: &str) -> Value {
    diagnosis_by(Command::new(peer::binary()), url, &[])
}

/// The diagnosis by a command that is given the words of the doctor.
#[track_caller]
pub(crate) fn diagnosis_by(mut command: Command, url: &str, more: &[&str]) -> Value {
    let output = command
        .args(["doctor", url, "--insecure", "--json"])
        .args(more)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(found["format"], "firstbyte-doctor/1");
    let bad = findings(&found).iter().any(|one| one["severity"] == "bad");
    let expected = if bad { 2 } else { 0 };
    assert_eq!(output.status.code(), Some(expected), "{output:?}");
    let notes = &found["conditions"]["notes"];
    println!("{url}: notes {notes}");
    for one in findings(&found) {
        println!("  {} {}: {}", one["severity"], one["code"], one["title"]);
    }
    found
}

pub(crate) fn findings(diagnosis: &Value) -> &[Value] {
    diagnosis["findings"].as_array().map_or(&[], Vec::as_slice)
}

/// The first finding of a URL is of this code and severity, and passes a further check with its diagnosis.
pub(crate) fn finds(url: &str, code: &str, severity: &str, check: impl Fn(&Value, &Value)) {
    examined(url, |diagnosis| {
        check(&first(diagnosis, code, severity), diagnosis);
    });
}

/// Judges the diagnosis of a URL on a machine that has time for it.
pub(crate) fn examined(url: &str, judge: impl Fn(&Value)) {
    check_timing(url, BUSY, || diagnosis(url), judge);
}

/// A thread that is kept from running for so long makes responses late.
pub(crate) const BUSY: Duration = Duration::from_millis(30);

/// The first finding, which has to be of this code and severity, with something that mends it.
#[track_caller]
pub(crate) fn first(diagnosis: &Value, code: &str, severity: &str) -> Value {
    let found = findings(diagnosis).first().cloned().unwrap_or_default();
    assert_eq!(found["code"], code, "{diagnosis:#}");
    assert_eq!(found["severity"], severity, "{found:#}");
    let has_evidence = found["evidence"]
        .as_object()
        .is_some_and(|all| !all.is_empty());
    assert!(
        has_evidence && mend_lines(&found).next().is_some(),
        "{found:#}"
    );
    assert_directives_are_taken(&found);
    found
}

fn mend_lines(finding: &Value) -> impl Iterator<Item = &str> {
    let lines = finding["mend"].as_array().into_iter().flatten();
    lines.filter_map(Value::as_str)
}

/// The advice of a finding, which has to be in the language of this server.
#[track_caller]
fn assert_directives_are_taken(finding: &Value) {
    for line in mend_lines(finding) {
        let text = format!(
            "server {{ listen 127.0.0.1:%%PORT%%; {} }}",
            directives(line)
        );
        let server = Server::http(&text).written();
        let mut words = server.arguments();
        words.push("-t".to_owned());
        let outcome = run(&words);
        let is_said = outcome.stderr.contains("duplicate");
        assert!(outcome.code == 0 && !is_said, "{line}: {text}: {outcome:?}");
    }
}

/// The directives in a line that mends something for firstbyte: each ends with a semicolon, words may be before it.
fn directives(line: &str) -> String {
    let own = line
        .split_once("firstbyte")
        .and_then(|(_, rest)| rest.split_once(": "));
    let statements = own.map_or("", |(_, rest)| {
        rest.rsplit_once(';').map_or("", |(all, _)| all)
    });
    let statements = statements.split(';').map(|one| {
        let one = one.rsplit(": ").next().unwrap_or_default();
        let one = one.trim_start_matches([' ', ',']);
        let one = one.strip_prefix("or ").unwrap_or(one);
        one.strip_prefix("and ").unwrap_or(one)
    });
    // An ellipsis marks existing content.
    let whole = statements.filter(|one| !one.is_empty() && !one.contains("..."));
    whole.map(|one| format!("{one}; ")).collect()
}

pub(crate) fn mends(finding: &Value, what: &str) -> bool {
    mend_lines(finding).any(|line| line.contains(what))
}

/// The findings above a note.
pub(crate) fn above_note(diagnosis: &Value) -> Vec<&Value> {
    let all = findings(diagnosis).iter();
    all.filter(|one| one["severity"] != "note").collect()
}

/// Waits for `time`. The loop continues if parking ends early.
pub(crate) fn pause(time: Duration) {
    let from = Instant::now();
    while let Some(left) = time.checked_sub(from.elapsed()) {
        thread::park_timeout(left);
    }
}
