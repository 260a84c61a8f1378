//! Pages and pictures of waterfalls and of the doctor in Chromium: no finding of axe-core in light and dark, wide and
//! narrow, with details closed and open.
//!
//! Without script a page looks the same, and it can be used by keyboard. Foreign texts stay texts. HAR files are read
//! by a validator and a viewer of other projects.

use firstbyte_tests::command::run;
use firstbyte_tests::dir::TempDir;
use firstbyte_tests::judge::{browser, judge, judged};
use firstbyte_tests::port::Port;
use firstbyte_tests::{Server, report};
use serde_json::{Value, json};

/// An archive of a page with this number of resources. `text` replaces all words that a server or a page chooses.
fn archive(resources: usize, text: &str) -> Value {
    let entry = |n: usize| {
        let start_ms = n as f64 * 6.5;
        // The second one stalls, on a connection of its own: its last piece comes 210 ms after the one before.
        let pieces = match n {
            1 => {
                json!([{"ts": start_ms + 50.0, "bytes": 1400}, {"ts": start_ms + 260.0, "bytes": 90}])
            }
            _ => {
                json!([{"ts": start_ms + 50.0, "bytes": 1400}, {"ts": start_ms + 62.0, "bytes": 700}])
            }
        };
        json!({
            "pageref": "page_1",
            "startedDateTime": format!("2026-01-01T00:00:{:02}.{:03}Z", start_ms as u64 / 1000, start_ms as u64 % 1000),
            "_startMs": start_ms,
            "time": if n == 1 { 260.0 } else { 62.0 },
            "connection": if n == 1 { 9 } else { n % 6 }.to_string(),
            "_priority": text,
            "_chunks": pieces,
            "request": {
                "method": "GET", "url": format!("https://www.example.org/{n}/{text}"), "httpVersion": "h2", "cookies": [],
                "headers": [{"name": "accept", "value": text}], "queryString": [], "headersSize": -1, "bodySize": 0
            },
            "response": {
                "status": if n == 3 { 404 } else { 200 }, "statusText": text, "httpVersion": "h2", "cookies": [],
                "headers": [{"name": "server-timing", "value": "app;dur=5"}, {"name": "x-said", "value": text}],
                "content": {"size": 4000, "mimeType": text}, "redirectURL": "", "headersSize": 120, "bodySize": 2100
            },
            "cache": {},
            "timings": {
                "blocked": n as f64 / 4.0, "dns": 2, "connect": 20, "ssl": 10, "_tcp": 10, "send": 0.5, "wait": 20,
                "receive": if n == 1 { 217.5 } else { 19.5 }
            }
        })
    };
    json!({"log": {
        "version": "1.2",
        "creator": {"name": "made up", "version": "1"},
        "browser": {"name": "Chromium", "version": text},
        "pages": [{
            "startedDateTime": "2026-01-01T00:00:00.000Z", "id": "page_1", "title": text,
            "pageTimings": {"onContentLoad": 150, "onLoad": 300}
        }],
        "entries": (0..resources).map(entry).collect::<Vec<_>>()
    }})
}

/// Runs the verb in a folder.
#[track_caller]
fn waterfall(arguments: &[&str]) {
    let outcome = run([&["waterfall"], arguments].concat());
    assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.stderr);
}

/// Paths below a folder as arguments.
fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

#[test]
fn pages_and_pictures_of_visits_have_no_fault() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let file = |name: &str| path(&dir, name);
    let visit = |resources: usize| {
        let name = format!("{resources}.har");
        dir.write(&name, archive(resources, "plain").to_string());
        file(&name)
    };
    // Pictures of many rows, and pages of a few, since axe-core takes milliseconds for an element. All rows are equal
    // except the second, which stalls, and the fourth, which fails.
    waterfall(&[&visit(30), "--svg", &file("a.svg")]);
    waterfall(&[&visit(4), "--html", &file("a.html")]);
    waterfall(&["compare", &visit(30), &visit(24), "--svg", &file("b.svg")]);
    waterfall(&["compare", &visit(2), &visit(1), "--html", &file("b.html")]);
    judge(&browser, &dir, &["a.html", "a.svg", "b.html", "b.svg"]);
    assert!(
        dir.read("a.html").contains("delayed acknowledgement"),
        "the stall is drawn"
    );
}

#[test]
fn texts_of_others_do_nothing_in_a_page() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let mut files = Vec::new();
    for (n, text) in HOSTILE.iter().enumerate() {
        dir.write("a.har", archive(2, text).to_string());
        for kind in ["html", "svg"] {
            let file = format!("{n}.{kind}");
            waterfall(&[
                &path(&dir, "a.har"),
                &format!("--{kind}"),
                &path(&dir, &file),
            ]);
            files.push(file);
        }
    }
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    judge(&browser, &dir, &names);
}

#[test]
fn pages_of_the_doctor_have_no_fault() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    for (n, text) in [HOSTILE[0], HOSTILE[1], "plain"].iter().enumerate() {
        dir.write("a.har", archive(30, text).to_string());
        let page = path(&dir, &format!("{n}.html"));
        let outcome = run(["doctor", "--har", &path(&dir, "a.har"), "--html", &page]);
        // Status 2: the doctor found something bad.
        assert!([0, 2].contains(&outcome.code), "{}", outcome.stderr);
    }
    judge(&browser, &dir, &["0.html", "1.html", "2.html"]);
    assert!(
        dir.read("2.html").contains("<code>"),
        "what mends a finding is there as code"
    );
}

/// A page with a redirect, a missing file, and a server that refuses connections.
fn site(closed: &Port) -> Server {
    let refused = format!("http://127.0.0.1:{}/", closed.number());
    let document = format!(
        "<!doctype html><title>t</title><link rel=stylesheet href=a.css?a=1&amp;b><link rel=icon href=data:,>
         <img src=1.svg><img src=moved><img src=missing><img src={refused}>"
    );
    Server::http(
        "server { listen 127.0.0.1:%%PORT%%; root html; expires 1h; gzip on; gzip_types text/css; gzip_min_length 1;
            types { text/html html; text/css css; image/svg+xml svg; } location = /moved { return 302 /2.svg; } }",
    )
    .file("html/index.html", &document)
    .file("html/a.css", &"b { color: red }".repeat(200))
    .file("html/1.svg", PICTURE)
    .file("html/2.svg", PICTURE)
    .start()
}

#[test]
fn archives_of_visits_are_valid_and_open_in_a_viewer_of_others() {
    let Some(browser) = browser() else { return };
    let closed = Port::reserve();
    let server = site(&closed);
    let url = format!("http://127.0.0.1:{}/", server.port_number(1));
    let dir = TempDir::new();
    for (name, way) in [("browser.har", "--warm"), ("wire.har", "--wire")] {
        let report = report("waterfall", &[&url, way, "--har", &path(&dir, name)]);
        let resources = report["cold"]["visit"]["resources"].as_array();
        let found: Vec<&Value> = resources.expect("a list").iter().collect();
        // The document, the style sheet, two pictures, the redirect, the missing file, the refused connection.
        assert_eq!(found.len(), 7, "{name}: {found:?}");
        let archive: Value = serde_json::from_str(&dir.read(name)).expect("it is JSON");
        let entries = archive["log"]["entries"].as_array().expect("a list");
        let cold = entries.iter().filter(|one| one["pageref"] == "page_1");
        assert_eq!(cold.count(), found.len());
    }
    judge(&browser, &dir, &["browser.har", "wire.har"]);
}

#[test]
fn the_judge_of_archives_finds_what_is_wrong() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let mut broken = archive(2, "plain");
    broken["log"]["version"] = json!(1.2);
    broken["log"]["entries"][1]["request"]["url"] = json!("data:,not-drawn");
    dir.write("a.har", broken.to_string());
    assert_eq!(
        judged(&browser, &dir, &["a.har"]),
        "a.har: /log/version must be string\n\
         a.har: page_1 has 2 entries, of which 1 are drawn and 1 open\njudged 1\n"
    );
}

/// An empty picture.
const PICTURE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>";

/// Texts that try to become something else: elements, attributes, the end of the page's own ones, the order of words.
const HOSTILE: [&str; 2] = [
    "</title></style></svg><script>document.body.remove()</script><img src=x onerror=alert(1)>]]>",
    "\" onload=\"alert(1)\" ' onload='alert(1) \u{202e}\u{2066}\u{200b}\u{7f}\u{1b}[31m&lt;",
];
