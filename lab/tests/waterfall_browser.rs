//! Pages of a real server in real Chromium: the record contains the responses of the server at the times of the
//! browser's own trace, and no process or file remains.
//!
//! `.ci/setup` installs Chromium. Without it these tests are skipped with a message; with `CI=true` that is a failure.
//! Visits run one at a time: on a machine with busy CPUs they would only measure the load.

mod browser;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use browser::{Site, options, resource, visit, visits};
use firstbyte_tests::busy::{inconclusive, worst_stall_while};
use lab::page::{Kind, Resource, View, Visit};
use serde_json::Value;

/// Phases of each resource add up, first bytes are within it, and its pieces are its body.
#[track_caller]
fn check(visit: &Visit) {
    for one in &visit.resources {
        let first_byte = one.first_byte_ms();
        assert!(one.start_ms >= 0.0, "{one:?}");
        assert!(
            first_byte >= one.start_ms && first_byte <= one.end_ms() + 1e-6,
            "{one:?}"
        );
        let phases = one.phases.all().into_iter().flatten();
        assert!(
            phases.clone().all(|ms| ms >= 0.0 && ms.is_finite()),
            "{one:?}"
        );
        let body = one.body_bytes.unwrap_or(0);
        let pieces: u64 = one.pieces.iter().map(|piece| piece.bytes).sum();
        if one.error.is_none() {
            assert_eq!(pieces, body, "{one:?}");
        }
        let times: Vec<f64> = one.pieces.iter().map(|piece| piece.at_ms).collect();
        assert!(times.is_sorted(), "{one:?}");
        let within = |at: &f64| *at >= first_byte - 1e-6 && *at <= one.end_ms() + 1e-6;
        assert!(times.iter().all(within), "{one:?}");
    }
}

/// Bodies of the server's log by path, with their statuses.
fn logged(site: &Site) -> BTreeMap<String, (u16, u64)> {
    let text = site.server.wait_for_text("transfers.log", "/missing.png");
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let path = words.next()?.to_owned();
        Some((
            path,
            (words.next()?.parse().ok()?, words.next()?.parse().ok()?),
        ))
    };
    text.lines().filter_map(entry).collect()
}

/// Checks the page against the log of its server, whatever carries it.
#[track_caller]
fn check_site(site: &Site, visit: &Visit, base: &str, protocol: &str) {
    check(visit);
    assert_eq!(visit.title.as_deref(), Some("a page"));
    assert_eq!(visit.view, View::Cold);
    assert!(
        visit.agent.is_browser && !visit.agent.version.is_empty(),
        "{:?}",
        visit.agent
    );
    let log = logged(site);
    for (path, status, kind) in [
        ("/", 200, Kind::Document),
        ("/style.css", 200, Kind::Stylesheet),
        ("/moved.js", 302, Kind::Script),
        ("/script.js", 200, Kind::Script),
        ("/one.svg", 200, Kind::Image),
        ("/missing.png", 404, Kind::Image),
        ("/data.json", 200, Kind::Fetch),
    ] {
        let one = resource(visit, &format!("{base}{path}"));
        assert_eq!((one.status, one.kind), (status, kind), "{one:?}");
        assert_eq!(one.protocol, protocol, "{one:?}");
        assert_eq!((one.method.as_str(), one.error.as_ref()), ("GET", None));
        assert!(one.connection.is_some() && !one.from_cache, "{one:?}");
        assert!(one.head_bytes.is_some_and(|bytes| bytes > 10), "{one:?}");
        let field = |name: &str| {
            one.response_fields
                .iter()
                .find(|(n, _)| n.eq_ignore_ascii_case(name))
        };
        assert!(field("server").is_some(), "{one:?}");
        assert!(!one.request_fields.is_empty(), "{one:?}");
        let (logged_status, bytes) = log[path];
        assert_eq!(logged_status, status, "{path}");
        let Some(transferred) = one.body_bytes else {
            assert_eq!(
                status, 302,
                "browsers do not read bodies of redirects: {one:?}"
            );
            continue;
        };
        // The server counts the heads of frames.
        let frames = if protocol == "h2" {
            9 * (1 + bytes / 1000)
        } else {
            0
        };
        assert!(
            (transferred..=transferred + frames).contains(&bytes),
            "{path}: {bytes} {transferred}"
        );
    }
    let style = resource(visit, &format!("{base}/style.css"));
    assert!(
        style.content_bytes > style.body_bytes,
        "it was compressed: {style:?}"
    );
    // A redirect requests it again: its place is that of the first request.
    let place = |path: &str| {
        visit
            .resources
            .iter()
            .position(|one| one.url == format!("{base}{path}"))
    };
    assert_eq!(
        resource(visit, &format!("{base}/script.js")).initiator,
        place("/moved.js")
    );
    assert_eq!(style.initiator, Some(0));
    assert_eq!(
        resource(visit, &format!("{base}/data.json")).initiator,
        place("/script.js")
    );
    let refused = visit
        .resources
        .iter()
        .find(|one| one.url.ends_with("/refused.svg"));
    let refused = refused.expect("it was asked for");
    assert_eq!((refused.status, refused.connection), (0, None));
    assert_eq!(
        refused.error.as_deref(),
        Some("net::ERR_CONNECTION_REFUSED")
    );
    check_timings(visit);
}

/// Checks that moments of the page are there and in order.
#[track_caller]
fn check_timings(visit: &Visit) {
    let timings = &visit.timings;
    let order = [
        Some(0.0),
        timings.first_byte_ms,
        timings.dom_content_loaded_ms,
        timings.load_ms,
    ];
    assert!(
        order.iter().all(Option::is_some) && order.is_sorted(),
        "{timings:?}"
    );
    let paints = [
        timings.first_byte_ms,
        timings.first_paint_ms,
        timings.first_contentful_paint_ms,
    ];
    assert!(
        paints.iter().all(Option::is_some) && paints.is_sorted(),
        "{timings:?}"
    );
    assert!(
        timings.largest_contentful_paint_ms >= timings.first_contentful_paint_ms,
        "{timings:?}"
    );
    assert!(
        (visit.resources[0].first_byte_ms() - timings.first_byte_ms.expect("above")).abs() < 1e-6
    );
}

#[test]
fn page_over_http2_is_one_connection() {
    let Some(site) = Site::start() else { return };
    let mut options = options(&format!("{}/", site.https));
    options.insecure = true;
    options.key_log = Some(site.server.path("keys.log"));
    let found = visit(&options);
    check_site(&site, &found, &site.https, "h2");
    let own = |one: &&Resource| one.url.starts_with(&site.https);
    let all: Vec<&Resource> = found.resources.iter().filter(own).collect();
    assert!(
        all.iter().all(|one| one.connection == all[0].connection),
        "{all:?}"
    );
    let phases = all[0].phases;
    let opened = [phases.dns_ms, phases.connect_ms, phases.tls_ms];
    assert!(opened.iter().all(Option::is_some), "{phases:?}");
    for one in &all[1..] {
        let phases = one.phases;
        assert_eq!(
            [phases.dns_ms, phases.connect_ms, phases.tls_ms],
            [None; 3],
            "{one:?}"
        );
    }
    let remote = format!("127.0.0.1:{}", site.server.port_number(2));
    assert_eq!(all[0].remote.as_deref(), Some(remote.as_str()));
    assert_eq!(found.round_trip_ms, phases.connect_ms);
    let keys = fs::read_to_string(site.server.path("keys.log")).expect("the browser wrote it");
    assert!(keys.contains("CLIENT_TRAFFIC_SECRET_0"), "{keys}");
}

#[test]
fn page_over_http1_is_several_connections() {
    let Some(site) = Site::start() else { return };
    let found = visit(&options(&format!("{}/", site.http)));
    check_site(&site, &found, &site.http, "http/1.1");
    let connections = found.resources.iter().filter_map(|one| one.connection);
    let distinct: std::collections::BTreeSet<u64> = connections.collect();
    assert!((2..=6).contains(&distinct.len()), "{distinct:?}");
    let phases = found.resources[0].phases;
    assert!(
        phases.connect_ms.is_some() && phases.tls_ms.is_none(),
        "{phases:?}"
    );
    let names: Vec<&str> = found.resources[0]
        .response_fields
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        names.first(),
        Some(&"Server"),
        "in the order and case in which they came: {names:?}"
    );
}

#[test]
fn options_reach_the_browser() {
    let Some(site) = Site::start() else { return };
    let mut options = options(&format!("{}/", site.https));
    options.insecure = true;
    options.http2 = false;
    options.filmstrip = true;
    let found = visit(&options);
    check_site(&site, &found, &site.https, "http/1.1");
    assert!(found.resources[0].phases.tls_ms.is_some());
    let strip = &found.filmstrip;
    assert!(strip.len() >= 2, "{} pictures", strip.len());
    assert!(
        strip
            .iter()
            .all(|frame| frame.jpeg.starts_with(&[0xff, 0xd8, 0xff]))
    );
    assert!(
        strip.is_sorted_by(|a, b| a.at_ms <= b.at_ms),
        "{:?}",
        strip.len()
    );
}

/// A body that comes in parts has them at their times.
#[test]
fn pieces_are_when_the_server_sent_them() {
    let Some(site) = Site::start() else { return };
    let found = visit(&options(&format!("{}/slow.html", site.http)));
    check(&found);
    let slow = resource(&found, &format!("{}/slow.js", site.http));
    assert_eq!(slow.body_bytes, Some(60_000));
    let first = slow.pieces.first().expect("it has parts").at_ms;
    let last = slow.pieces.last().expect("it has parts").at_ms;
    // 60,000 bytes at 40,000 a second.
    assert!(
        slow.pieces.len() >= 2 && last - first > 500.0,
        "{:?}",
        slow.pieces
    );
    assert!(
        slow.phases.receive_ms.is_some_and(|ms| ms > 500.0),
        "{slow:?}"
    );
}

/// Returns the times of each request in the browser's trace: request, first byte and end, ms of the clock.
fn traced(trace: &Value) -> BTreeMap<String, [Option<f64>; 3]> {
    let mut urls: BTreeMap<String, String> = BTreeMap::new();
    let mut first_ts: BTreeMap<String, f64> = BTreeMap::new();
    let mut found: BTreeMap<String, [Option<f64>; 3]> = BTreeMap::new();
    let events = trace["traceEvents"].as_array().expect("a list");
    let id_of = |event: &Value| {
        event["args"]["data"]["requestId"]
            .as_str()
            .map(str::to_owned)
    };
    for event in events {
        let name = event["name"].as_str().unwrap_or_default();
        // The document's first event has no URL, and is of the browser's process.
        if name != "ResourceSendRequest" && name != "ResourceWillSendRequest" {
            continue;
        }
        let Some(id) = id_of(event) else { continue };
        let at = event["ts"].as_f64().expect("a number") / 1000.0;
        let first = *first_ts.entry(id.clone()).or_insert(at);
        let Some(url) = event["args"]["data"]["url"].as_str() else {
            continue;
        };
        // The target of a redirect has the id of the redirected request.
        let is_first = urls.insert(id, url.to_owned()).is_none();
        found.entry(url.to_owned()).or_default()[0] = Some(if is_first { first } else { at });
    }
    for event in events {
        let data = &event["args"]["data"];
        let Some(url) = id_of(event).and_then(|id| urls.get(&id)) else {
            continue;
        };
        let times = found.entry(url.clone()).or_default();
        match event["name"].as_str() {
            Some("ResourceReceiveResponse") => {
                let timing = &data["timing"];
                let first = timing["receiveHeadersStart"].as_f64();
                let asked = timing["requestTime"].as_f64();
                times[1] = asked
                    .zip(first)
                    .map(|(asked, first)| asked * 1000.0 + first);
            }
            Some("ResourceFinish") => {
                times[2] = data["finishTime"].as_f64().map(|at| at * 1000.0);
            }
            _ => {}
        }
    }
    found
}

#[test]
fn times_agree_with_the_browsers_own_trace() {
    let Some(site) = Site::start() else { return };
    let mut options = options(&format!("{}/", site.https));
    options.insecure = true;
    options.trace = Some(site.server.path("trace.json"));
    let mut visited = None;
    let stall = worst_stall_while(|| visited = Some(visit(&options)));
    let found = visited.expect("it was visited");
    check(&found);
    let text = fs::read(site.server.path("trace.json")).expect("it was written");
    let trace: Value = serde_json::from_slice(&text).expect("JSON");
    let times = traced(&trace);
    // Both clocks have the same reading for the first byte of the document.
    let first_byte = times[&found.url][1].expect("the document has come");
    let origin = first_byte - found.resources[0].first_byte_ms();
    let mut compared = 0;
    for one in &found.resources {
        let Some([start, first, end]) = times.get(&one.url) else {
            continue;
        };
        // A redirected or refused request has no response in the trace.
        let own = [
            (*start, one.start_ms),
            (*first, one.first_byte_ms()),
            (*end, one.end_ms()),
        ];
        let is_whole = one.error.is_none() && one.status != 302;
        for (n, (theirs, ours)) in own
            .into_iter()
            .take(if is_whole { 3 } else { 1 })
            .enumerate()
        {
            let Some(theirs) = theirs else { continue };
            let apart_ms = (theirs - origin - ours).abs();
            // Both look at the clock when a request begins, one after the other; the other times are looked at once.
            if n == 0 && apart_ms >= 1.0 && apart_ms < stall.as_secs_f64() * 1000.0 {
                inconclusive(&format!(
                    "{apart_ms} ms apart, threads have waited for {stall:?}"
                ));
                continue;
            }
            assert!(apart_ms < 1.0, "{theirs} {origin} {ours} {one:?}");
            compared += 1;
        }
    }
    // Seven whole resources have a first byte and an end each; when they began may have been left out above.
    assert!(compared >= 14, "{compared} of {times:?}");
    let paint = |event: &&Value| event["name"] == "largestContentfulPaint::Candidate";
    let events = trace["traceEvents"].as_array().expect("a list");
    let last = events
        .iter()
        .filter(paint)
        .filter_map(|event| event["ts"].as_f64());
    let last = last.fold(0.0, f64::max) / 1000.0 - origin;
    let ours = found
        .timings
        .largest_contentful_paint_ms
        .expect("it was painted");
    assert!((last - ours).abs() < 1.0, "{last} {ours}");
}

#[test]
fn warm_view_takes_what_it_has_from_the_cache() {
    let Some(site) = Site::start() else { return };
    let mut options = options(&format!("{}/", site.http));
    options.warm = true;
    let runs = visits(&options);
    let warm = runs[0].warm.as_ref().expect("it was asked for");
    check(warm);
    assert_eq!((runs[0].cold.view, warm.view), (View::Cold, View::Warm));
    let kept = resource(warm, &format!("{}/one.svg", site.http));
    assert!(kept.from_cache && kept.status == 200, "{kept:?}");
    assert_eq!((kept.connection, kept.body_bytes), (None, Some(0)));
    let validated = resource(warm, &format!("{}/style.css", site.http));
    assert!(
        !validated.from_cache && validated.status == 304,
        "{validated:?}"
    );
    assert_eq!(validated.body_bytes, Some(0));
    let document = &warm.resources[0];
    assert!(
        document.phases.connect_ms.is_some(),
        "a new connection: {document:?}"
    );
    let text = site.server.wait_for_text("transfers.log", "/style.css 304");
    let asked = |path: &str| {
        text.lines()
            .filter(|line| line.starts_with(&format!("{path} ")))
            .count()
    };
    assert_eq!((asked("/one.svg"), asked("/style.css")), (1, 2));
}

#[test]
fn redirects_of_the_page_are_resources() {
    let Some(site) = Site::start() else { return };
    let found = visit(&options(&format!("{}/from", site.http)));
    check(&found);
    let urls: Vec<&str> = found.resources.iter().map(|one| one.url.as_str()).collect();
    let expected = ["/from", "/between", "/"].map(|path| format!("{}{path}", site.http));
    assert_eq!(urls[..3], expected);
    let statuses: Vec<u16> = found.resources.iter().map(|one| one.status).collect();
    assert_eq!(statuses[..3], [301, 302, 200]);
    assert_eq!(found.resources[1].initiator, Some(0));
    let located = |one: &Resource| {
        one.response_fields
            .iter()
            .any(|(name, _)| name == "Location")
    };
    assert!(located(&found.resources[0]) && located(&found.resources[1]));
    assert!(!located(&found.resources[2]), "each has its own fields");
    let first_byte = found.timings.first_byte_ms.expect("it came");
    assert!((found.resources[2].first_byte_ms() - first_byte).abs() < 1e-6);
    assert!(found.resources[2].start_ms >= found.resources[1].first_byte_ms());
}

/// Frames of another origin are in a process and a session of their own, and so are workers.
#[test]
fn frames_and_workers_in_other_processes_are_part_of_the_page() {
    let Some(site) = Site::start() else { return };
    let found = visit(&options(&format!("{}/frames.html", site.http)));
    check(&found);
    let other = site.http.replace("127.0.0.1", "localhost");
    for url in [
        format!("{other}/inner.html"),
        format!("{other}/one.svg"),
        format!("{}/worker.js", site.http),
        format!("{}/data.json", site.http),
    ] {
        let one = resource(&found, &url);
        assert_eq!((one.status, one.error.as_ref()), (200, None), "{one:?}");
    }
}

#[test]
fn two_thousand_resources_are_recorded() {
    let Some(site) = Site::start() else { return };
    let mut options = options(&format!("{}/many.html", site.https));
    options.insecure = true;
    options.timeout = Duration::from_secs(90);
    let found = visit(&options);
    check(&found);
    let whole =
        |one: &&Resource| one.url.contains("/many/") && one.status == 200 && one.error.is_none();
    let count = found.resources.iter().filter(whole).count();
    if found.timings.load_ms.is_none() {
        inconclusive(&format!("{count} resources in 90 s: {:?}", found.notes));
        return;
    }
    assert_eq!(count, browser::MANY, "{:?}", found.notes);
}
