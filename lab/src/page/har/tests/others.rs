//! Archives of browsers and other programs.

use serde_json::{Value, json};

use super::super::{find, read};
use super::{one, visits, with};
use crate::page::{Kind, Phases, View};

#[test]
fn an_archive_of_chrome_is_read() {
    let found = one(json!({
        "connection": "42", "serverIPAddress": "[::1]", "_priority": "High", "_resourceType": "xhr",
        "_initiator": { "type": "script", "stack": { "callFrames": [{ "url": "https://a.test/x" }] } },
        "timings": { "blocked": 3.5, "dns": -1, "connect": 50, "ssl": 30, "send": 0.1, "wait": 9, "receive": 1,
                     "_blocked_queueing": 3.1 },
        "response": { "status": 200, "httpVersion": "h2", "headersSize": -1, "bodySize": -1, "_transferSize": 700,
                      "content": { "size": 900, "mimeType": "text/css", "text": "a{}" }, "_error": null },
    }));
    assert_eq!(found.url, "https://a.test/x");
    assert_eq!((found.connection, found.kind), (Some(42), Kind::Fetch));
    assert_eq!(found.remote.as_deref(), Some("[::1]:443"));
    let phases = Phases {
        queued_ms: Some(3.5),
        dns_ms: None,
        connect_ms: Some(20.0),
        tls_ms: Some(30.0),
        send_ms: Some(0.1),
        wait_ms: Some(9.0),
        receive_ms: Some(1.0),
    };
    assert_eq!((found.phases, found.start_ms), (phases, 100.0));
    assert_eq!((found.head_bytes, found.body_bytes), (None, Some(700)));
    assert_eq!((found.error, found.from_cache), (None, false));
    let cached =
        json!({ "status": 200, "bodySize": 0, "_transferSize": 0, "content": { "size": 9 } });
    assert!(one(json!({ "response": cached })).from_cache);
    assert!(one(json!({ "_fromCache": "disk" })).from_cache);
    let redirected = json!({ "status": 0, "_error": { "code": "NR", "message": "redirects" } });
    let redirected = one(json!({ "response": redirected, "_priority": {}, "_resourceType": [] }));
    assert_eq!(redirected.error.as_deref(), Some("redirects"));
    let blocked = json!({ "status": 0, "_error": "net::ERR_BLOCKED_BY_CLIENT" });
    let blocked = one(json!({ "response": blocked }));
    assert_eq!(blocked.error.as_deref(), Some("net::ERR_BLOCKED_BY_CLIENT"));
}

#[test]
fn an_archive_of_firefox_is_read() {
    let archive = with(
        json!({
            "connection": "443", "startedDateTime": "2017-06-28T18:00:00.100+09:00",
            "timings": { "blocked": 84, "dns": 0, "connect": 0, "ssl": 0, "send": 0, "wait": 222, "receive": 0 },
        }),
        json!({ "pageTimings": { "onContentLoad": -1, "onLoad": 500 } }),
    );
    let archive = archive.replace("\"Any\"", "\"Firefox\"");
    let visit = &visits(&archive)[0];
    let found = &visit.resources[0];
    // 443 is the port of the server, and 0 a phase that did not take place.
    assert_eq!((found.connection, found.phases.connect_ms), (None, None));
    assert_eq!(found.protocol, "h2");
    assert_eq!(
        (visit.timings.load_ms, visit.timings.dom_content_loaded_ms),
        (Some(500.0), None)
    );
    assert_eq!(
        (visit.agent.name.as_str(), visit.agent.is_browser),
        ("Firefox", true)
    );
    assert_eq!(visit.notes, ["read from a HAR file of Firefox 1"]);
}

#[test]
fn an_archive_of_webpagetest_is_read() {
    let archive = with(
        json!({
            "_socket": "1000254", "_load_start": "100", "_initiator": "https://a.test/",
            "response": { "status": "200", "httpVersion": "us:" },
            "timings": { "blocked": -1, "dns": 20, "connect": 40, "ssl": 40, "send": 0, "wait": 138, "receive": 28 },
            "_chunks": [{ "ts": 250.5, "bytes": 1460 }, { "ts": "266", "bytes": "20", "inflated": 1 }],
        }),
        json!({ "_URL": "https://a.test/", "_TTFB": 238, "_cached": 1, "pageTimings": { "_startRender": 400 } }),
    );
    let visit = &visits(&archive)[0];
    let found = &visit.resources[0];
    // The entry starts with the request; the connection was opened before.
    assert_eq!((found.start_ms, found.first_byte_ms()), (40.0, 238.0));
    assert_eq!(
        (found.phases.connect_ms, found.phases.tls_ms),
        (None, Some(40.0))
    );
    assert_eq!(
        (found.connection, found.protocol.as_str()),
        (Some(1_000_254), "")
    );
    assert_eq!(
        found.pieces.iter().map(|piece| piece.bytes).sum::<u64>(),
        1480
    );
    assert_eq!(
        (visit.view, visit.url.as_str()),
        (View::Warm, "https://a.test/")
    );
    assert_eq!(visit.timings.first_byte_ms, Some(238.0));
    assert_eq!(visit.timings.first_paint_ms, Some(400.0));
}

#[test]
fn pages_are_found_by_entries_and_chosen_by_name_or_number() {
    let entry = |page: Value, second: u32| {
        json!({
            "pageref": page, "startedDateTime": format!("2017-06-28T09:00:{second:02}Z"),
            "request": { "url": format!("http://a.test/{second}") },
        })
    };
    let archive = json!({ "log": { "entries": [
        entry(json!("one"), 5), entry(Value::Null, 9), entry(json!("two"), 7), entry(json!("one"), 4),
    ] } });
    let pages = read(archive.to_string().as_bytes()).expect("it is read");
    let urls: Vec<Vec<&str>> = pages
        .iter()
        .map(|page| {
            page.visit
                .resources
                .iter()
                .map(|one| one.url.as_str())
                .collect()
        })
        .collect();
    let first = vec!["http://a.test/4", "http://a.test/5", "http://a.test/9"];
    assert_eq!(urls, [first, vec!["http://a.test/7"]]);
    assert_eq!(pages[0].visit.resources[1].start_ms, 1000.0);
    assert_eq!((find(&pages, "2"), find(&pages, "two")), (Ok(1), Ok(1)));
    let why = find(&pages, "3").expect_err("there are two");
    assert_eq!(why, "no page \"3\"; the file has 2 pages: \"one\", \"two\"");
    assert!(find(&pages, "0").is_err() && find(&pages, "+1").is_err());
}

#[test]
fn names_of_pages_are_quoted_and_short() {
    let entry = json!({
        "pageref": format!("\u{1b}]0;\u{9b}\u{202e}{}", "x".repeat(1_000_000)),
        "startedDateTime": "2017-06-28T09:00:00Z", "request": { "url": "http://a.test/" },
    });
    let archive = json!({ "log": { "entries": [entry] } });
    let pages = read(archive.to_string().as_bytes()).expect("it is read");
    let why = find(&pages, "other").expect_err("there is one");
    let name = format!("\"\\u{{1b}}]0;\\u{{9b}}\\u{{202e}}{}\"...", "x".repeat(34));
    assert_eq!(
        why,
        format!("no page \"other\"; the file has 1 page: {name}")
    );
}

#[test]
fn initiators_in_an_archive_of_others_are_found_by_url() {
    let entry = |url: &str, by: Value| {
        json!({
            "startedDateTime": "2017-06-28T09:00:00Z", "request": { "url": url }, "_initiator": by,
        })
    };
    let archive = json!({ "log": { "entries": [
        entry("http://a.test/", Value::Null),
        entry("http://a.test/a", json!({ "url": "http://a.test/#top" })),
        entry("http://a.test/b", json!("http://a.test/a")),
        entry("http://a.test/c", json!({ "url": "http://a.test/c", "_index": 0 })),
    ] } });
    let visit = visits(&archive.to_string()).remove(0);
    let found: Vec<_> = visit.resources.iter().map(|one| one.initiator).collect();
    assert_eq!(found, [None, Some(0), Some(1), None]);
}

#[test]
fn names_of_connections_become_numbers() {
    let entry = |name: Value| {
        json!({
            "startedDateTime": "2017-06-28T09:00:00Z", "request": { "url": "http://a.test/" }, "connection": name,
        })
    };
    let numbers = |names: &[Value]| -> Vec<Option<u64>> {
        let entries: Vec<Value> = names.iter().map(|name| entry(name.clone())).collect();
        let archive = json!({ "log": { "entries": entries } }).to_string();
        let visit = visits(&archive).remove(0);
        visit.resources.iter().map(|one| one.connection).collect()
    };
    let of = numbers(&[json!("7"), json!(9), json!("0"), Value::Null]);
    assert_eq!(of, [Some(7), Some(9), None, None]);
    let of = numbers(&[json!("b"), json!("a"), json!("7"), json!("b")]);
    assert_eq!(of, [Some(1), Some(2), Some(3), Some(1)]);
}
