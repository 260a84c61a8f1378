//! `firstbyte waterfall` of HAR files: known figures, written files, comparisons, and unreadable input.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use firstbyte_tests::busy::Waits;
use firstbyte_tests::{Outcome, TempDir, peer, report, run};
use serde_json::{Value, json};

/// An entry of a page; its first request is sent at 09:00:00.
fn entry(path: &str, start_ms: u32, connection: &str, timings: Value) -> Value {
    json!({
        "pageref": "page_1",
        "startedDateTime": format!("2026-11-23T09:00:{:02}.{:03}Z", start_ms / 1000, start_ms % 1000),
        "time": 0,
        "request": {
            "method": "GET", "url": format!("https://site.test{path}"), "httpVersion": "HTTP/1.1",
            "cookies": [], "headers": [{ "name": "Accept", "value": "*/*" }], "queryString": [],
            "headersSize": -1, "bodySize": -1,
        },
        "response": {
            "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [], "headers": [],
            "content": { "size": 2000, "mimeType": "text/html" }, "redirectURL": "",
            "headersSize": 100, "bodySize": 1000,
        },
        "cache": {},
        "timings": timings,
        "connection": connection,
    })
}

fn timings(blocked: f64, wait: f64, receive: f64) -> Value {
    json!({ "blocked": blocked, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": wait, "receive": receive })
}

fn archive(entries: &[Value], load_ms: f64) -> Value {
    json!({ "log": {
        "version": "1.2",
        "creator": { "name": "WebInspector", "version": "537.36" },
        "pages": [{
            "id": "page_1", "startedDateTime": "2026-11-23T09:00:00.000Z", "title": "https://site.test/",
            "pageTimings": { "onContentLoad": 200, "onLoad": load_ms },
        }],
        "entries": entries,
    } })
}

/// A document over a connection with 50 ms for TCP and 50 ms for TLS, then two style sheets over it, one after the
/// other. The second one stalls by a held acknowledgement.
fn known() -> Value {
    let opening = json!({ "blocked": 0, "dns": 10, "connect": 100, "ssl": 50, "send": 0, "wait": 80, "receive": 10 });
    let mut document = entry("/", 0, "7", opening);
    document["response"]["headers"] = json!([{ "name": "Server-Timing", "value": "app;dur=20" }]);
    let mut stalled = entry("/b.css", 200, "7", timings(65.0, 50.0, 250.0));
    stalled["_chunks"] = json!([{ "ts": 315, "bytes": 1400 }, { "ts": 565, "bytes": 100 }]);
    let styles = [entry("/a.css", 200, "7", timings(0.0, 50.0, 15.0)), stalled];
    let all: Vec<Value> = std::iter::once(document).chain(styles).collect();
    archive(&all, 570.0)
}

fn put(dir: &TempDir, name: &str, value: &Value) -> String {
    let path = dir.path().join(name);
    fs::write(&path, value.to_string()).expect("it is written");
    path.display().to_string()
}

fn waterfall(words: &[&str]) -> Outcome {
    run(["waterfall"].iter().chain(words))
}

#[track_caller]
fn assert_refused(words: &[&str], why: &str) {
    let outcome = waterfall(words);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (1, ""),
        "{words:?}: {outcome:?}"
    );
    assert!(
        outcome.stderr.contains(why),
        "{words:?}: {}, not {why}",
        outcome.stderr
    );
}

#[test]
fn figures_of_a_known_page_are_right() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let file = put(&dir, "known.har", &known());
    let report = report("waterfall", &[&file]);
    assert_eq!(report["format"], "firstbyte-waterfall/1");
    let cold = &report["cold"];
    assert_eq!((&cold["runs"], &report["warm"]), (&json!(1), &Value::Null));
    assert_eq!(cold["figures"]["load_ms"]["value"], 570.0);
    assert_eq!(cold["figures"]["first_byte_ms"]["value"], 190.0);
    assert_eq!(cold["figures"]["bytes"]["value"], 3300.0);
    let visit = &cold["visit"];
    // 80 ms of waiting: 50 for the round trip, as the connection took, 20 by the server's own account.
    let wait = json!({ "queue_ms": 0.0, "round_trip_ms": 50.0, "server_ms": 20.0, "unexplained_ms": 10.0 });
    assert_eq!(visit["resources"][0]["wait"], wait);
    let staircase = json!({
        "score": 0.5, "starts": 2, "depth": 1, "steps": [{ "resource": 2, "behind": 1, "queued_ms": 65.0 }],
    });
    assert_eq!(visit["staircase"], staircase);
    let stall = json!({
        "resource": 2, "from_ms": 315.0, "to_ms": 565.0, "rest_bytes": 100, "cause": "delayed acknowledgement",
    });
    assert_eq!(visit["stalls"], json!([stall]));
    let connection = &visit["connections"][0];
    assert_eq!(
        (&connection["id"], &connection["resources"]),
        (&json!(7), &json!([0, 1, 2]))
    );
    assert_eq!(visit["critical_path"], json!([1, 2]));
}

#[test]
fn the_text_has_every_resource_and_no_line_is_wider_than_a_terminal() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let outcome = waterfall(&[&put(&dir, "known.har", &known())]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for what in ["a.css", "b.css", "delayed acknowledgement"] {
        assert!(outcome.stdout.contains(what), "{what}: {}", outcome.stdout);
    }
    let wide = outcome
        .stdout
        .lines()
        .find(|line| line.chars().count() > 100);
    assert_eq!(wide, None);
}

#[test]
fn an_archive_that_is_written_has_the_same_analysis() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let (first, second) = (
        put(&dir, "known.har", &known()),
        dir.path().join("again.har"),
    );
    let second = second.display().to_string();
    let of_first = report("waterfall", &[&first, "--har", &second]);
    let of_second = report("waterfall", &[&second]);
    assert_eq!(of_first, of_second);
    let archive: Value =
        serde_json::from_str(&fs::read_to_string(second).expect("it is there")).expect("JSON");
    assert_eq!(archive["log"]["creator"]["name"], "firstbyte");
    assert_eq!(archive["log"]["entries"][0]["timings"]["connect"], 100.0);
}

#[test]
fn pictures_are_written() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let (known, html, svg) = (
        put(&dir, "k.har", &known()),
        dir.path().join("a.html"),
        dir.path().join("a.svg"),
    );
    let words = [
        "--html",
        html.to_str().expect("text"),
        "--svg",
        svg.to_str().expect("text"),
    ];
    for targets in [&[known.as_str()][..], &["compare", &known, &known]] {
        let outcome = waterfall(&[targets, &words].concat());
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let page = fs::read_to_string(&html).expect("it is there");
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("b.css"));
        let picture = fs::read_to_string(&svg).expect("it is there");
        assert!(picture.contains("<svg") && picture.contains("b.css"));
        fs::remove_file(&html).expect("it is there");
        fs::remove_file(&svg).expect("it is there");
    }
}

#[test]
fn runs_in_one_file_are_one_page_with_intervals() {
    if !peer::is_firstbyte() {
        return;
    }
    let runs = |loads: &[f64]| {
        let mut all = known();
        let (page, entries) = (
            all["log"]["pages"][0].clone(),
            all["log"]["entries"].clone(),
        );
        (all["log"]["pages"], all["log"]["entries"]) = (json!([]), json!([]));
        for (n, load_ms) in loads.iter().enumerate() {
            let (mut page, mut entries) = (page.clone(), entries.clone());
            page["id"] = json!(format!("run {n}"));
            page["pageTimings"]["onLoad"] = json!(load_ms);
            for entry in entries.as_array_mut().expect("a list") {
                entry["pageref"] = page["id"].clone();
                all["log"]["entries"]
                    .as_array_mut()
                    .expect("a list")
                    .push(entry.clone());
            }
            all["log"]["pages"]
                .as_array_mut()
                .expect("a list")
                .push(page);
        }
        all
    };
    let dir = TempDir::new();
    let before = put(
        &dir,
        "before.har",
        &runs(&[601.0, 599.0, 600.0, 602.0, 598.0]),
    );
    let after = put(&dir, "after.har", &runs(&[501.0, 499.0, 500.0]));
    let found = report("waterfall", &[&before]);
    assert_eq!(
        (&found["cold"]["runs"], &found["cold"]["shown"]),
        (&json!(5), &json!(3))
    );
    let load = &found["cold"]["figures"]["load_ms"];
    assert_eq!((&load["value"], &load["n"]), (&json!(600.0), &json!(5)));
    assert!(
        load["low"]
            .as_f64()
            .is_some_and(|low| low > 597.0 && low < 600.0),
        "{load}"
    );
    assert_eq!(
        report("waterfall", &[&before, "--page", "2"])["cold"]["figures"]["load_ms"]["value"],
        599.0
    );
    let outcome = waterfall(&[&before]);
    assert!(
        outcome.stdout.contains("600.0 ms (598.0 to 602.0, n=5)"),
        "{}",
        outcome.stdout
    );
    let compared = report("waterfall", &["compare", &before, &after]);
    assert_eq!(compared["format"], "firstbyte-waterfall-comparison/1");
    let figures = compared["figures"].as_array().expect("a list");
    let load = figures
        .iter()
        .find(|one| one["figure"] == "load_ms")
        .expect("it is there");
    assert_eq!(
        (&load["difference"], &load["ratio"]["differs"]),
        (&json!(-100.0), &json!(true))
    );
    let resources = compared["resources"].as_array().expect("a list");
    assert_eq!(
        (resources.len(), &resources[0]["difference_ms"]),
        (3, &json!(0.0))
    );
}

#[test]
fn a_page_at_another_host_is_compared_by_path() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let before = put(&dir, "before.har", &known());
    let moved = known().to_string().replace("site.test", "other.test");
    let after = put(
        &dir,
        "after.har",
        &serde_json::from_str(&moved).expect("JSON"),
    );
    let in_both = |words: &[&str]| {
        let found = report(
            "waterfall",
            &[&["compare", &before, &after], words].concat(),
        );
        let resources = found["resources"].as_array().expect("a list").clone();
        let both = |one: &&Value| !one["before"].is_null() && !one["after"].is_null();
        resources.iter().filter(both).count()
    };
    assert_eq!((in_both(&[]), in_both(&["--any-host"])), (0, 3));
}

#[test]
fn what_cannot_be_read_says_why() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let file = |name: &str, bytes: &[u8]| {
        fs::write(path(name), bytes).expect("it is written");
        path(name)
    };
    let mut broken = known();
    broken["log"]["entries"][1]["timings"]["wait"] = json!([]);
    for (file, why) in [
        (path("none.har"), "none.har: 2: No such file or directory"),
        (
            "localhost".to_owned(),
            "cannot read localhost: 2: No such file",
        ),
        (path("."), "it is a directory"),
        (file("empty", b""), "empty: it is empty"),
        (
            file("text", b"<html>"),
            "text: it is not JSON: expected value at line 1 column 1",
        ),
        (
            file("json", b"{}"),
            "json: not a HAR file: log: it is missing",
        ),
        (
            file("cut", &known().to_string().as_bytes()[..900]),
            "cut: it is not JSON: EOF while parsing",
        ),
        (
            file("utf16", b"\xff\xfe{\0"),
            "utf16: invalid UTF-8 at byte 0",
        ),
        (
            file("deep", "[".repeat(1_000_000).as_bytes()),
            "deep: it is not JSON: ",
        ),
        (
            file("bare", b"{\"log\":{\"entries\":[]}}"),
            "bare: log.entries: there are none",
        ),
        (
            file("wrong", broken.to_string().as_bytes()),
            "wrong: log.entries[1].timings.wait: it is a list, not a number",
        ),
        (
            "/dev/zero".to_owned(),
            "/dev/zero: it is larger than 128 MiB",
        ),
    ] {
        assert_refused(&[&file], why);
    }
    let known = put(&dir, "known.har", &known());
    assert_refused(
        &[&known, "--page", "9"],
        "no page \"9\"; the file has 1 page: \"page_1\"",
    );
    assert_refused(
        &["compare", &known, &path("none.har")],
        "none.har: 2: No such file",
    );
}

#[test]
fn what_cannot_be_written_says_why_after_the_figures() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let known = put(&dir, "known.har", &known());
    let nowhere = dir.path().join("no/such/file").display().to_string();
    for option in ["--har", "--html", "--svg"] {
        for (target, why) in [
            (
                "/dev/full",
                "cannot write /dev/full: 28: No space left on device",
            ),
            (nowhere.as_str(), "file: 2: No such file or directory"),
        ] {
            let outcome = waterfall(&[&known, option, target]);
            assert_eq!(outcome.code, 1, "{outcome:?}");
            assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
            assert!(outcome.stdout.contains("b.css"), "{}", outcome.stdout);
        }
    }
}

#[test]
fn words_that_contradict_each_other_are_refused() {
    if !peer::is_firstbyte() {
        return;
    }
    for (words, why) in [
        (&[][..], "<URL|FILE>"),
        (&["a", "b"], "compare two HAR files with"),
        (&["compare"], "requires two HAR files"),
        (&["compare", "a"], "requires two HAR files"),
        (&["compare", "a", "b", "c"], "requires two HAR files"),
        (
            &["compare", "a", "b", "--har", "c"],
            "--har cannot be used in a comparison",
        ),
        (&["a", "--any-host"], "--any-host is for comparisons only"),
        (&["a", "--wrong"], "unexpected argument '--wrong'"),
        (&["a", "--jsno"], "a similar argument exists: '--json'"),
    ] {
        assert_refused(words, why);
    }
    let outcome = waterfall(&["-h"]);
    assert_eq!(outcome.code, 0);
    assert!(
        outcome
            .stdout
            .contains("Usage: firstbyte waterfall [OPTIONS] <URL|FILE>..."),
        "{}",
        outcome.stdout
    );
}

/// Terminals obey control characters; browsers obey markup.
#[test]
fn names_in_a_file_are_no_commands() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let mut hostile = known();
    let name = "/\u{1b}]0;x\u{7}<script>alert(1)</script>\u{202e}\u{9b}31m.css";
    hostile["log"]["entries"][1]["request"]["url"] = json!(format!("https://site.test{name}"));
    hostile["log"]["pages"][0]["title"] = json!(name);
    hostile["log"]["pages"][0]["id"] = json!(name);
    hostile["log"]["creator"]["name"] = json!(name);
    for entry in hostile["log"]["entries"].as_array_mut().expect("a list") {
        entry["pageref"] = json!(name);
    }
    let (file, html) = (put(&dir, "h.har", &hostile), dir.path().join("h.html"));
    for (words, code) in [
        (&["--html", html.to_str().expect("text")][..], 0),
        (&["--json"], 0),
        (&["--page", "none"], 1),
    ] {
        let outcome = waterfall(&[&[file.as_str()], words].concat());
        assert_eq!(outcome.code, code, "{outcome:?}");
        let printed = outcome.stdout + &outcome.stderr;
        let obeyed = ['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}'];
        assert!(!printed.contains(obeyed), "{printed:?}");
    }
    let title = &report("waterfall", &[&file])["cold"]["visit"]["title"];
    assert_eq!(title, name, "JSON means what was there");
    assert!(
        !fs::read_to_string(&html)
            .expect("it is there")
            .contains("<script>alert")
    );
}

/// 50 MB of 20,000 entries, and 50 MB of one entry with its body in the file.
#[test]
fn large_files_are_read_in_bounded_time() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    let waits = Waits::begin();
    let one = |n: u32| {
        let mut entry = entry(&format!("/{n}"), n % 50_000, "7", timings(0.0, 50.0, 15.0));
        let field = json!({ "name": "x-filler", "value": "y".repeat(1800) });
        entry["request"]["headers"] = json!([field]);
        entry
    };
    let path = dir.path().join("many.har");
    write_archive(&path, (0..20_000).map(one));
    let page = dir.path().join("many.html");
    let [file, html] = [&path, &page].map(|path| path.to_str().expect("text"));
    let found = report("waterfall", &[file, "--html", html]);
    assert_eq!(found["cold"]["visit"]["total"]["requests"], 20_000);
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.contains("18000 further resources left out: the first 2000 are drawn"));
    assert!(page.len() < 15_000_000, "{}", page.len());
    let mut body = one(0);
    body["response"]["content"]["text"] = json!("\u{e4}".repeat(25_000_000));
    let path = dir.path().join("body.har");
    write_archive(&path, std::iter::once(body));
    let found = report("waterfall", &[path.to_str().expect("text")]);
    assert_eq!(found["cold"]["visit"]["total"]["requests"], 1);
    waits.assert_below(waits.elapsed(), Duration::from_secs(60));
}

fn write_archive(path: &Path, entries: impl Iterator<Item = Value>) {
    let mut file = std::io::BufWriter::new(fs::File::create(path).expect("it is made"));
    write!(file, "{{\"log\":{{\"version\":\"1.2\",\"entries\":[").expect("written");
    for (n, entry) in entries.enumerate() {
        let comma = if n == 0 { "" } else { "," };
        write!(file, "{comma}{entry}").expect("written");
    }
    write!(file, "]}}}}").expect("written");
    file.flush().expect("written");
    let bytes = fs::metadata(path).expect("it is there").len();
    assert!(bytes > 45_000_000, "{bytes}");
}
