//! Conditions of `--fail-if` and levels of `--fail-on`, in all verbs that support them: exit status 2, and a sentence
//! for each.

use crate::lab::{server, url};
use firstbyte_tests::{Outcome, TempDir, peer, run};
use serde_json::json;

#[track_caller]
fn assert_ended(outcome: &Outcome, code: i32, told: &str) {
    assert_eq!(outcome.code, code, "{outcome:?}");
    assert!(outcome.stderr.contains(told), "{told}: {outcome:?}");
}

#[test]
fn a_bench_fails_by_rate_percentiles_and_statuses() {
    let server = server();
    let (page, missing) = (url(&server, 1, "/100.txt"), url(&server, 1, "/missing"));
    let broken = url(&server, 1, "/broken");
    let not_measured = "was not measured";
    for (url, condition, code, told) in [
        (&page, "errors>0", 0, ""),
        (&page, "rate<1", 0, ""),
        (&page, "rate>=1", 2, "rate is "),
        (&page, "p99>0.000001", 2, "p99 is "),
        (&page, "p98>0.000001", 2, "p98 is "),
        (&page, "p95>0.000001", 2, "p95 is "),
        (&page, "p95<=60000", 2, "p95 is "),
        (&page, "p12.5>60000", 0, ""),
        (&page, "cpu>1", 2, not_measured),
        (&page, "status.2xx<100", 0, ""),
        (&page, "status.200<101", 2, "status.200 is 100, below 101"),
        (&page, "status.4xx>0", 0, ""),
        (&missing, "status.4xx>0", 2, "status.4xx is 100, above 0"),
        (&missing, "status.404>99", 2, "status.404 is 100, above 99"),
        (&missing, "status.404>100", 0, ""),
        (&missing, "status.403>0", 0, ""),
        (&missing, "errors>0", 0, ""),
        (&broken, "status.5xx>0", 2, "status.5xx is 100, above 0"),
        (&page, "p100>1", 1, "expected one of"),
        (&page, "status.44>1", 1, "expected one of"),
        (&page, "p99>nan", 1, "invalid condition"),
    ] {
        let outcome = run(["bench", url, "--requests", "100", "--fail-if", condition]);
        assert_ended(&outcome, code, told);
    }
    let both = ["--fail-if", "status.200>0", "--fail-if", "p95>0.000001"];
    let outcome = run([
        &["bench", &page, "--requests", "50", "--blocks", "2"],
        &both[..],
    ]
    .concat());
    assert_ended(&outcome, 2, "status.200 is 100, above 0\n");
    assert_ended(&outcome, 2, "p95 is ");
    assert!(!outcome.stdout.is_empty(), "the report is printed");
    let words = [
        "bench",
        &page,
        "--against",
        &missing,
        "--requests",
        "20",
        "--blocks",
        "2",
    ];
    let outcome = run([&words[..], &["--fail-if", "status.404>0"]].concat());
    assert_ended(
        &outcome,
        2,
        &format!("{missing}: status.404 is 40, above 0"),
    );
}

#[test]
fn a_page_has_budgets() {
    let server = server();
    let (page, missing) = (url(&server, 1, "/100.txt"), url(&server, 1, "/missing"));
    for (url, condition, code, told) in [
        (&page, "requests>1", 0, ""),
        (&page, "requests>=1", 2, "requests is 1, at or above 1"),
        (&page, "bytes>99", 2, "bytes is "),
        (&page, "bytes>1e6", 0, ""),
        (&page, "first_byte>0.000001", 2, "first_byte is "),
        (&page, "first_byte_ms>60000", 0, ""),
        (&page, "load>0.000001", 2, "load is "),
        (&page, "load>60000", 0, ""),
        (&page, "first_paint>1", 2, "first_paint was not measured"),
        (
            &page,
            "warm.load>60000",
            2,
            "warm view: warm.load was not measured",
        ),
        (&page, "status.404>0", 0, ""),
        (&missing, "status.404>0", 2, "status.404 is 1, above 0"),
        (&missing, "status.4xx>1", 0, ""),
        (&page, "p99>1", 1, "expected one of first_byte, first_paint"),
        (&page, "load", 1, "expected one such as \"load>500\""),
    ] {
        let outcome = run(["waterfall", "--wire", url, "--fail-if", condition]);
        assert_ended(&outcome, code, told);
        assert_eq!(outcome.stdout.is_empty(), code == 1, "{outcome:?}");
    }
    let warm = ["waterfall", "--wire", "--warm", &page, "--fail-if"];
    for (condition, code) in [("warm.load>60000", 0), ("warm.load>0.000001", 2)] {
        assert_ended(&run([&warm[..], &[condition]].concat()), code, "");
    }
}

/// Files have budgets, too; a figure missing in one of two runs counts as not measured.
#[test]
fn a_file_has_budgets() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let entry = |page: &str, status: u16| {
        json!({
            "pageref": page, "startedDateTime": "2026-01-01T00:00:00.000Z", "time": 30,
            "request": { "method": "GET", "url": "http://site.test/", "headers": [] },
            "response": { "status": status, "headers": [], "headersSize": 100, "bodySize": 900, "content": {} },
            "timings": { "send": 0, "wait": 20, "receive": 10 },
        })
    };
    let page = |id: &str, timings: serde_json::Value| json!({ "id": id, "startedDateTime": "2026-01-01T00:00:00.000Z", "title": "t", "pageTimings": timings });
    let pages = [
        page("a", json!({ "onLoad": 100, "onContentLoad": 50 })),
        page("b", json!({ "onLoad": 300 })),
    ];
    let log = json!({ "log": { "pages": pages, "entries": [entry("a", 200), entry("b", 503)] } });
    let file = dir.path().join("a.har").display().to_string();
    dir.write("a.har", log.to_string());
    for (condition, code, told) in [
        ("load>200", 0, ""),
        (
            "load>=200",
            2,
            "http://site.test/: load is 200, at or above 200",
        ),
        ("load>199", 2, "load is 200, above 199"),
        (
            "dom_content_loaded>1000",
            2,
            "dom_content_loaded was not measured",
        ),
        ("bytes>=1000", 2, "bytes is 1000, at or above 1000"),
        ("status.5xx>0", 2, "status.5xx is 0.500, above 0"),
    ] {
        assert_ended(
            &run(["waterfall", &file, "--fail-if", condition]),
            code,
            told,
        );
    }
    let words = ["waterfall", "compare", &file, &file, "--fail-if", "load>1"];
    assert_ended(&run(words), 1, "--fail-if cannot be used in a comparison");
}

/// The configuration of the test has findings; their levels are read from the report.
#[test]
fn a_diagnosis_fails_from_its_level_on() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = server();
    let conf = server.path("nginx.conf").display().to_string();
    let levels = ["note", "warn", "bad"];
    let report = firstbyte_tests::report("doctor", &["-c", &conf, "--fail-on", "never"]);
    let found = report["findings"].as_array().expect("a list");
    let worst = found
        .iter()
        .filter_map(|one| levels.iter().position(|level| one["severity"] == *level));
    let worst = worst.max().expect("this configuration has a finding");
    for (at, level) in levels.iter().enumerate() {
        let code = if at <= worst { 2 } else { 0 };
        assert_ended(&run(["doctor", "-c", &conf, "--fail-on", level]), code, "");
    }
    let bad = if worst == 2 { 2 } else { 0 };
    assert_eq!(run(["doctor", "-c", &conf]).code, bad, "the default is bad");
    assert_ended(
        &run(["doctor", "-c", &conf, "--fail-on", "x"]),
        1,
        "possible values: note, warn, bad, never",
    );
}
