//! Sequences of events as browsers send them, and the recorded visits.

use super::super::record::read;
use super::*;
use serde_json::{Value, json};

/// Records events in the order in which the browser sends them.
fn recorded(events: &[(&str, Value)]) -> Recorder {
    let mut network = Recorder::default();
    for (name, params) in events {
        let params = params.clone();
        match *name {
            "request" => network.request_will_be_sent(read(params)),
            "request extra" => network.request_extra_info(read(params)),
            "response" => network.response_received(read(params)),
            "response extra" => network.response_extra_info(read(params)),
            "data" => network.data_received(&read(params)),
            "memory" => network.served_from_cache(&read(params)),
            "end" => network.loading_finished(&read(params)),
            "failure" => network.loading_failed(&read(params)),
            other => panic!("no event {other}"),
        }
    }
    network
}

fn request(id: &str, url: &str, at: f64) -> Value {
    json!({
        "requestId": id, "frameId": "F", "timestamp": at, "wallTime": 1e9 + at, "type": "Document",
        "request": {"url": url, "method": "GET", "initialPriority": "High", "headers": {"a": "page"}},
    })
}

fn asked_by(url: &str, mut event: Value) -> Value {
    event["initiator"] = json!({"type": "script", "url": url});
    event
}

fn response(asked: f64) -> Value {
    json!({
        "status": 200, "protocol": "h2", "connectionId": 5, "encodedDataLength": 30,
        "remoteIPAddress": "127.0.0.1", "remotePort": 443, "headers": {"b": "page"},
        "timing": {"requestTime": asked, "sendStart": 1, "sendEnd": 2, "receiveHeadersStart": 10, "receiveHeadersEnd": 11},
    })
}

fn redirect(id: &str, url: &str, at: f64) -> Value {
    let mut event = request(id, url, at);
    event["redirectResponse"] = response(at - 0.020);
    event["redirectHasExtraInfo"] = true.into();
    event
}

fn extra(id: &str, name: &str) -> Value {
    json!({"requestId": id, "statusCode": 301, "headers": {name: "wire"}, "connectTiming": {"requestTime": 1.0}})
}

#[test]
fn redirects_are_resources_with_their_own_fields() {
    let events = [
        ("request extra", extra("1", "first")),
        ("request", request("1", "http://h/a#part", 10.0)),
        ("response extra", extra("1", "first")),
        ("request", redirect("1", "http://h/b", 10.020)),
        ("response extra", extra("1", "second")),
        ("request extra", extra("1", "second")),
        (
            "response",
            json!({"requestId": "1", "response": response(10.025), "hasExtraInfo": true}),
        ),
        (
            "data",
            json!({"requestId": "1", "timestamp": 10.040, "dataLength": 7}),
        ),
        (
            "end",
            json!({"requestId": "1", "timestamp": 10.050, "encodedDataLength": 46}),
        ),
        (
            "request",
            asked_by("http://h/a", request("2", "http://h/c", 10.060)),
        ),
    ];
    let network = recorded(&events);
    assert_eq!((network.count(), network.open()), (3, 1));
    let all = network.resources(99.0);
    assert_eq!(all[2].initiator, Some(1), "what a redirect led to asks");
    let [first, second, _] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(
        (first.url.as_str(), second.url.as_str()),
        ("http://h/a", "http://h/b")
    );
    assert_eq!((first.initiator, second.initiator), (None, Some(0)));
    // Until the end of its head.
    assert!((first.end_ms() - 11.0).abs() < 1e-6, "{first:?}");
    assert!((second.start_ms - 20.0).abs() < 1e-6 && (second.end_ms() - 50.0).abs() < 1e-6);
    assert_eq!(
        first.response_fields,
        [("first".to_owned(), "wire".to_owned())]
    );
    assert_eq!(
        second.request_fields,
        [("second".to_owned(), "wire".to_owned())]
    );
    assert_eq!((second.body_bytes, second.pieces.len()), (Some(7), 1));
}

#[test]
fn requests_without_an_end_have_that_of_the_view() {
    let events = [
        ("request", request("1", "http://h/", 10.0)),
        ("request", request("2", "http://h/hangs", 10.010)),
        ("request", request("3", "http://h/fails", 10.020)),
        (
            "failure",
            json!({"requestId": "3", "timestamp": 10.030, "errorText": "net::ERR_FAILED", "blockedReason": "other"}),
        ),
        ("request", request("4", "http://u:p@h/", 10.020)),
        (
            "failure",
            json!({"requestId": "4", "timestamp": 10.030, "errorText": "", "blockedReason": "origin"}),
        ),
    ];
    let network = recorded(&events);
    assert_eq!(network.open(), 2);
    let all = network.resources(10.100);
    assert_eq!(all[3].error.as_deref(), Some("blocked: origin"));
    assert!((all[1].end_ms() - 100.0).abs() < 1e-6, "{:?}", all[1]);
    assert_eq!(
        all[1].error.as_deref(),
        Some("unfinished at the end of the visit")
    );
    assert_eq!(
        all[2].error.as_deref(),
        Some("net::ERR_FAILED (blocked: other)")
    );
    assert!((all[2].end_ms() - 30.0).abs() < 1e-6, "{:?}", all[2]);
    assert_eq!((all[2].status, all[2].body_bytes), (0, None));
}

#[test]
fn what_needs_no_network_and_what_is_announced_twice_is_no_resource() {
    let mut events = vec![
        ("request", request("1", "http://h/", 10.0)),
        ("request", request("1", "http://h/", 10.001)),
        ("end", json!({"requestId": "7", "timestamp": 10.0})),
        (
            "data",
            json!({"requestId": "7", "timestamp": 10.0, "dataLength": 4}),
        ),
    ];
    for (id, url) in [
        ("2", "data:image/png;base64,AA"),
        ("3", "blob:http://h/x"),
        ("4", "chrome://x/"),
    ] {
        events.push(("request", request(id, url, 11.0)));
    }
    let network = recorded(&events);
    assert_eq!((network.count(), network.open()), (1, 1));
}

#[test]
fn responses_from_memory_and_disk_are_from_the_cache() {
    let mut from_disk = response(10.0);
    from_disk["fromDiskCache"] = true.into();
    let mut events = vec![];
    for id in ["1", "2", "3"] {
        events.push(("request", request(id, "http://h/", 10.0)));
    }
    events.extend([
        ("memory", json!({"requestId": "1"})),
        (
            "response",
            json!({"requestId": "1", "response": response(10.0)}),
        ),
        ("response", json!({"requestId": "2", "response": from_disk})),
        // One that was validated.
        (
            "response",
            json!({"requestId": "3", "response": from_disk, "hasExtraInfo": true}),
        ),
        ("response extra", extra("3", "x")),
    ]);
    let all = recorded(&events).resources(10.5);
    let cached: Vec<bool> = all.iter().map(|one| one.from_cache).collect();
    assert_eq!(cached, [true, true, false]);
    let connections: Vec<_> = all.iter().map(|one| one.connection).collect();
    assert_eq!(connections, [None, None, Some(5)]);
    assert_eq!(all[2].status, 301, "the status that came");
}

#[test]
fn requests_past_the_limit_are_counted() {
    let mut network = Recorder::default();
    for n in 0..=RESOURCES_MAX {
        network.request_will_be_sent(read(request(&n.to_string(), "http://h/", 1.0)));
        assert_eq!(network.left_out, u64::from(n == RESOURCES_MAX), "{n}");
    }
    assert_eq!(network.count(), RESOURCES_MAX);
    assert_eq!(network.open(), RESOURCES_MAX);
}

#[test]
fn text_past_the_limit_is_not_kept() {
    let long = "x".repeat(TEXT_BYTES_MAX / 2);
    let mut network = Recorder::default();
    // 9 bytes before, 5 of a field.
    let url = |bytes: usize| format!("http://h/{}", &long[..bytes - 14]);
    network.request_will_be_sent(read(request("1", &url(TEXT_BYTES_MAX / 2), 1.0)));
    network.request_will_be_sent(read(request("2", &url(TEXT_BYTES_MAX / 2), 1.0)));
    assert_eq!((network.count(), network.left_out), (2, 0), "at the limit");
    network.request_will_be_sent(read(request("3", "http://h/", 1.0)));
    assert_eq!((network.count(), network.left_out), (2, 1), "past it");
    network.response_extra_info(read(extra("1", "late")));
    let all = network.resources(2.0);
    assert!(all[0].response_fields.is_empty(), "no room");
}

#[test]
fn events_of_another_meaning_do_no_harm() {
    for params in [
        json!(null),
        json!([]),
        json!({"requestId": 5}),
        json!({"timestamp": "x"}),
    ] {
        let mut events = vec![];
        for name in [
            "request",
            "request extra",
            "response",
            "response extra",
            "data",
            "memory",
            "end",
            "failure",
        ] {
            events.push((name, params.clone()));
        }
        assert_eq!(recorded(&events).count(), 0);
    }
}
