//! Requests: the head made from a header block. Source: RFC 9113 section 8.

use super::*;
use crate::http::{Fault, Method, Version};

#[test]
fn client_and_server_say_hello() {
    let mut peer = Peer::silent(Settings::default());
    assert_eq!(
        peer.told(),
        ["SETTINGS 3=128 4=65536 6=32768 9=1", "0 WINDOW 2147418112"]
    );
    peer.receive(PREFACE).frame(frame::SETTINGS, 0, 0, &[]);
    assert_eq!(peer.told(), ["SETTINGS ACK"]);
    assert!(peer.events().is_empty());
}

/// The preface of the protocol requires SETTINGS first; clients that send anything else are served, as in nginx.
#[test]
fn client_that_says_nothing_first_is_served() {
    let mut peer = Peer::silent(Settings::default());
    peer.receive(PREFACE).get(1, "/");
    assert_eq!(peer.events(), ["1 GET / HTTP/2.0"]);
}

#[test]
fn head_has_everything_that_was_sent() {
    let mut peer = Peer::new();
    let more = [
        ("user-agent", "tester"),
        ("cookie", "a=b"),
        ("x-own", "1"),
        ("cookie", "c=d"),
        ("te", "trailers"),
    ];
    peer.headers(1, &[&with_path("GET", "/a?b"), &more[..]].concat(), true);
    let head = peer.head();
    assert_eq!(head.fault, None);
    assert_eq!((head.method, head.version), (Method::Get, Version::Http2));
    assert_eq!(head.bytes(head.line), b"GET /a?b HTTP/2.0");
    assert_eq!(head.bytes(head.target), b"/a?b");
    assert_eq!(head.body, BodyLength::None);
    assert_eq!(head.field(FieldId::Host), Some(&b"h"[..]));
    // Pieces of a cookie are one field (RFC 9113 section 8.2.3).
    assert_eq!(head.field(FieldId::Cookie), Some(&b"a=b; c=d"[..]));
    assert_eq!(head.fields_by_id(FieldId::Cookie).count(), 1);
    assert_eq!(head.named(b"x-own").collect::<Vec<_>>(), [b"1"]);
}

/// As in nginx, `$request_length` counts the received bytes, compressed and without padding.
#[test]
fn size_of_a_head_is_that_of_its_block() {
    let mut peer = Peer::new();
    let block = peer.block_of(&with_path("GET", "/"));
    let padded = [&[3][..], &block, &[0; 3]].concat();
    let flags = frame::END_HEADERS | frame::END_STREAM | frame::PADDED;
    peer.frame(frame::HEADERS, flags, 1, &padded);
    assert_eq!(peer.head().size_bytes, block.len() as u64);
}

#[test]
fn length_of_a_body_is_told_as_far_as_it_is_known() {
    let mut peer = Peer::new();
    peer.post(1, &[]).post(3, &[("content-length", "7")]);
    peer.headers(
        5,
        &[&with_path("POST", "/"), &[("content-length", "0")][..]].concat(),
        true,
    );
    assert_eq!(peer.head().body, BodyLength::Unknown);
    assert_eq!(peer.head().body, BodyLength::Length(7));
    assert_eq!(peer.head().body, BodyLength::None);
}

/// The fault of a request with these fields; none of them resets the stream before its answer.
fn fault_of(fields: &[(&str, &str)]) -> Option<Fault> {
    let mut peer = Peer::new();
    peer.headers(1, fields, true);
    let head = peer.head();
    assert!(peer.events().is_empty(), "{fields:?}");
    head.fault
}

/// The fault of a request with these fields besides the mandatory ones.
fn fault_with(name: &str, value: &str) -> Option<Fault> {
    fault_of(&[&with_path("GET", "/"), &[(name, value)][..]].concat())
}

/// Whether a request with these fields is answered and its stream reset then (RFC 9113 section 8.1.1).
fn is_malformed(fields: &[(&str, &str)]) -> bool {
    let mut peer = Peer::new();
    peer.headers(1, fields, true);
    let fault = peer.head().fault;
    let lines = peer
        .answer_with(1, &response(400, BodyLength::Length(0)), &[])
        .told();
    let malformed = lines
        .last()
        .is_some_and(|line| line == "1 RST PROTOCOL_ERROR");
    assert_eq!(lines[0], "1 HEADERS 400 END");
    assert!(!malformed || fault.is_some());
    malformed
}

/// RFC 9113 section 8.3.
#[test]
fn malformed_pseudo_fields_get_400_and_a_reset() {
    let method = (":method", "GET");
    let scheme = (":scheme", "http");
    let path = (":path", "/");
    let authority = (":authority", "h");
    for fields in [
        &[scheme, path, authority][..],
        &[method, path, authority],
        &[method, scheme, authority],
        &[method, method, scheme, path, authority],
        &[method, scheme, scheme, path, authority],
        &[method, scheme, path, path, authority],
        &[method, scheme, path, authority, authority],
        &[method, scheme, ("accept", "*/*"), path, authority],
        &[method, scheme, path, authority, (":status", "200")],
        &[method, scheme, path, authority, (":own", "x")],
        &[method, scheme, path, authority, (":protocol", "websocket")],
        &[method, scheme, (":path", ""), authority],
        &[method, (":scheme", ""), path, authority],
        &[method, (":scheme", "ht_tp"), path, authority],
        &[method, (":scheme", "1http"), path, authority],
        &[method, scheme, (":path", "/a\u{1}b"), authority],
        &[(":method", "CONNECT"), scheme, path, authority],
        &[(":method", "CONNECT")],
    ] {
        assert!(is_malformed(fields), "{fields:?}");
    }
    assert!(!is_malformed(&[method, scheme, path, authority]));
}

/// RFC 9113 section 8.2.
#[test]
fn malformed_fields_get_400_and_a_reset() {
    for (name, value) in [
        ("X-Upper", "1"),
        ("x y", "1"),
        ("x\0", "1"),
        ("x\u{7f}", "1"),
        ("x:y", "1"),
        ("x", "a\r\nb: c"),
        ("x", "a\nb"),
        ("x", "a\0"),
        ("x", "a\u{1}"),
        ("x", " a"),
        ("x", "a\t"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("content-length", "5"),
    ] {
        let fields = [&with_path("GET", "/"), &[(name, value)][..]].concat();
        assert!(is_malformed(&fields), "{name:?}: {value:?}");
    }
    for (name, value) in [
        ("x", "a\tb"),
        ("x", ""),
        ("te", "Trailers"),
        ("x", "\u{e9}"),
    ] {
        let fields = [&with_path("GET", "/"), &[(name, value)][..]].concat();
        assert!(!is_malformed(&fields), "{name:?}: {value:?}");
    }
}

/// An error that HTTP/1 knows as well is answered only: the stream is not reset.
#[test]
fn faults_of_http1_are_answered() {
    let of = |method, path, host: Option<&str>| {
        let mut fields = vec![(":method", method), (":scheme", "http"), (":path", path)];
        fields.extend(host.map(|host| (":authority", host)));
        fault_of(&fields)
    };
    assert_eq!(of("get", "/", Some("h")), Some(Fault::BadMethod));
    assert_eq!(of("", "/", Some("h")), Some(Fault::BadMethod));
    assert_eq!(of("TRACE", "/", Some("h")), Some(Fault::TraceForbidden));
    assert_eq!(of("GET", "a", Some("h")), Some(Fault::BadUri));
    assert_eq!(of("GET", "/a b", Some("h")), Some(Fault::BadUri));
    assert_eq!(of("GET", "*", Some("h")), Some(Fault::BadUri));
    assert_eq!(of("OPTIONS", "*", Some("h")), None);
    assert_eq!(of("GET", "/", None), Some(Fault::MissingHost));
    assert_eq!(of("GET", "/", Some("")), Some(Fault::BadHost));
    assert_eq!(fault_with("host", "other"), Some(Fault::BadHost));
    assert_eq!(fault_with("host", "H"), None);
    assert_eq!(
        fault_with("content-length", "+0"),
        Some(Fault::BadContentLength)
    );
    let connect = [(":method", "CONNECT"), (":authority", "h:1")];
    assert_eq!(fault_of(&connect), Some(Fault::ConnectForbidden));
    let twice = [("content-length", "0"), ("content-length", "0")];
    let fields = [&with_path("GET", "/"), &twice[..]].concat();
    assert_eq!(fault_of(&fields), Some(Fault::DuplicateContentLength));
    let twice = [("host", "h"), ("host", "h")];
    let fields = [&with_path("GET", "/"), &twice[..]].concat();
    assert_eq!(fault_of(&fields), Some(Fault::DuplicateHost));
}

#[test]
fn host_field_stands_in_for_the_authority() {
    let mut peer = Peer::new();
    let fields = [&with_path("GET", "/")[..3], &[("host", "other")]].concat();
    peer.headers(1, &fields, true);
    assert_eq!(peer.head().field(FieldId::Host), Some(&b"other"[..]));
}

#[test]
fn odd_names_are_dropped_or_kept_as_the_settings_say() {
    let kept = |settings: Settings| {
        let mut peer = Peer::with(settings);
        let odd = [("x_y", "1"), ("x(y", "2"), ("plain", "3")];
        peer.headers(1, &[&with_path("GET", "/"), &odd[..]].concat(), true);
        let head = peer.head();
        assert_eq!(head.fault, None);
        ["x_y", "x(y", "plain"].map(|name| head.named(name.as_bytes()).count())
    };
    let defaults = Settings::default;
    assert_eq!(kept(defaults()), [0, 0, 1]);
    let underscores_in_headers = Settings {
        underscores_in_headers: true,
        ..defaults()
    };
    assert_eq!(kept(underscores_in_headers), [1, 0, 1]);
    let keep_invalid = Settings {
        ignore_invalid_headers: false,
        ..defaults()
    };
    assert_eq!(kept(keep_invalid), [1, 1, 1]);
}

#[test]
fn names_that_are_no_text_are_refused_where_odd_ones_are_kept() {
    let mut peer = Peer::with(Settings {
        ignore_invalid_headers: false,
        ..Settings::default()
    });
    let odd = [("x\u{e9}", "1")];
    peer.headers(1, &[&with_path("GET", "/"), &odd[..]].concat(), true);
    assert_eq!(peer.head().fault, Some(Fault::BadHeader));
}

/// RFC 8441 section 4.
#[test]
fn extended_connect_is_told_where_it_is_allowed() {
    let mut peer = Peer::with(Settings {
        extended_connect: true,
        ..Settings::default()
    });
    let fields = [
        &with_path("CONNECT", "/chat"),
        &[(":protocol", "websocket")][..],
    ]
    .concat();
    peer.headers(1, &fields, false);
    let head = peer.head();
    assert_eq!((head.fault, head.method), (None, Method::Connect));
    assert_eq!(head.bytes(head.target), b"/chat");
}

#[test]
fn memory_of_a_head_is_used_again() {
    let mut peer = Peer::new();
    peer.get(1, "/first");
    let head = peer.head();
    let arena = head.arena.as_ptr();
    peer.conn.swap_spares(&mut vec![Box::new(head)]);
    peer.get(3, "/next");
    assert_eq!(peer.head().arena.as_ptr(), arena);
}
