//! Requests in header blocks.

use super::*;
use crate::http::{Fault, FieldId, Version};

#[test]
fn request_is_told_with_its_fields() {
    let mut peer = Peer::new();
    let more = [
        ("accept", "a\0b"),
        ("cookie", "x=1\0y=2"),
        ("x-long", " v "),
    ];
    peer.syn(1, &[&with_path("GET", "/a?b"), &more[..]].concat(), true);
    let head = peer.head();
    assert_eq!(head.fault, None);
    assert_eq!(head.version, Version::Spdy31);
    assert_eq!(head.bytes(head.line), b"GET /a?b SPDY/3.1");
    assert_eq!(head.bytes(head.target), b"/a?b");
    assert_eq!(head.field(FieldId::Host), Some(&b"h"[..]));
    assert_eq!(head.field(FieldId::Cookie), Some(&b"x=1; y=2"[..]));
    assert_eq!(head.named(b"accept").collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(head.named(b"x-long").next(), Some(&b"v"[..]));
    assert_eq!(head.body, BodyLength::None);
    assert!(peer.events().is_empty());
}

/// The fault of a request with these fields, or the frames sent instead of reporting it.
fn outcome(fields: &[(&str, &str)]) -> Result<Option<Fault>, String> {
    let text = text_of(fields);
    outcome_of(&text)
}

fn outcome_of(text: &[u8]) -> Result<Option<Fault>, String> {
    let mut peer = Peer::new();
    let block = peer.deflated(text);
    peer.syn_block(1, 0, &block, true);
    match peer.conn.event() {
        Some(Event::Head { head, .. }) => Ok(head.fault),
        None => Err(peer.told().concat()),
        Some(other) => panic!("{other:?}"),
    }
}

fn with(more: &[(&str, &str)]) -> Result<Option<Fault>, String> {
    outcome(&[&with_path("GET", "/"), more].concat())
}

#[test]
fn wrong_requests_are_answered() {
    for at in 0..5 {
        let mut fields = with_path("GET", "/").to_vec();
        let (name, _) = fields.remove(at);
        let fault = if name == ":host" {
            Fault::MissingHost
        } else {
            Fault::BadHeader
        };
        assert_eq!(outcome(&fields), Ok(Some(fault)), "without {name}");
        let twice = with_path("GET", "/")[at];
        assert_eq!(
            with(&[twice]),
            Ok(Some(Fault::BadHeader)),
            "{twice:?} twice"
        );
    }
    let bad = Ok(Some(Fault::BadHeader));
    assert_eq!(with(&[(":other", "x")]), bad);
    assert_eq!(with(&[("a:b", "x")]), bad);
    assert_eq!(with(&[("a\0b", "x")]), bad);
    assert_eq!(with(&[("a", "b\rc")]), bad);
    assert_eq!(with(&[("a", "b\nc")]), bad);
    assert_eq!(with(&[("a", "b\u{1}c")]), bad);
    assert_eq!(with(&[("transfer-encoding", "chunked")]), bad);
    assert_eq!(with(&[("host", "other")]), Ok(Some(Fault::BadHost)));
    assert_eq!(with(&[("host", "H")]), Ok(None));
    let lines = [
        ("get", "/", Fault::BadMethod),
        ("", "/", Fault::BadMethod),
        ("TRACE", "/", Fault::TraceForbidden),
        ("CONNECT", "/", Fault::ConnectForbidden),
        ("GET", "", Fault::BadUri),
        ("GET", "x", Fault::BadUri),
        ("GET", "*", Fault::BadUri),
        ("GET", "/a b", Fault::BadUri),
    ];
    for (method, path, fault) in lines {
        let got = outcome(&with_path(method, path));
        assert_eq!(got, Ok(Some(fault)), "{method} {path}");
    }
    assert_eq!(outcome(&with_path("OPTIONS", "*")), Ok(None));
}

#[test]
fn versions_are_two_numbers() {
    let version = |text: &str| {
        let mut fields = with_path("GET", "/");
        fields[2].1 = text;
        outcome(&fields)
    };
    for good in ["HTTP/1.1", "HTTP/1.0", "HTTP/1.10", "HTTP/2.0"] {
        assert_eq!(version(good), Ok(None), "{good}");
    }
    for bad in [
        "", "HTTP/1", "HTTP/.1", "HTTP/1.", "HTTP/0.9", "http/1.1", "HTTP/1.x",
    ] {
        assert_eq!(version(bad), Ok(Some(Fault::BadVersion)), "{bad}");
    }
}

#[test]
fn broken_blocks_reset_their_stream_alone() {
    let reset = Err("1 RST PROTOCOL_ERROR".to_owned());
    assert_eq!(with(&[("", "x")]), reset);
    assert_eq!(with(&[("Upper", "x")]), reset);
    assert_eq!(with(&[(":Method", "x")]), reset);
    for values in ["\0", "a\0", "\0a", "a\0\0b"] {
        assert_eq!(with(&[("a", values)]), reset, "{values:?}");
    }
    let text = text_of(&with_path("GET", "/"));
    assert_eq!(outcome_of(&text), Ok(None));
    for end in 1..text.len() {
        assert_eq!(outcome_of(&text[..end]), reset, "{end} bytes");
    }
    assert_eq!(outcome_of(&[&text[..], b"x"].concat()), reset);
    let mut peer = Peer::new();
    peer.syn(1, &[("", "")], true).get(3, "/b");
    assert_eq!(peer.events(), ["3 GET /b SPDY/3.1"]);
}

/// As in nginx, the first fault decides.
#[test]
fn first_fault_decides() {
    assert_eq!(
        with(&[(":other", ""), ("Upper", "")]),
        Ok(Some(Fault::BadHeader))
    );
    let reset = Err("1 RST PROTOCOL_ERROR".to_owned());
    assert_eq!(with(&[("Upper", ""), (":other", "")]), reset);
}

#[test]
fn fields_of_a_connection_are_not_told() {
    let mut peer = Peer::new();
    let more = [
        ("connection", "close"),
        ("keep-alive", "1"),
        ("upgrade", "x"),
    ];
    let fields = [&with_path("GET", "/"), &more[..]].concat();
    peer.syn(1, &fields, true);
    let head = peer.head();
    assert_eq!((head.fault, head.fields.len()), (None, 1));
}

#[test]
fn odd_names_are_dropped_or_kept_as_configured() {
    let kept = |ignore_invalid_headers, underscores_in_headers, name| {
        let mut peer = Peer::with(Settings {
            ignore_invalid_headers,
            underscores_in_headers,
            ..Settings::default()
        });
        let fields = [&with_path("GET", "/")[..], &[(name, "x")]].concat();
        peer.syn(1, &fields, true);
        let head = peer.head();
        match head.fault {
            Some(fault) => Err(fault),
            None => Ok(head.named(name.as_bytes()).count()),
        }
    };
    assert_eq!(kept(true, false, "a_b"), Ok(0));
    assert_eq!(kept(true, true, "a_b"), Ok(1));
    assert_eq!(kept(false, false, "a_b"), Ok(1));
    assert_eq!(kept(true, false, "a(b"), Ok(0));
    assert_eq!(kept(false, false, "a(b"), Ok(1));
    assert_eq!(kept(false, false, "a b"), Err(Fault::BadHeader));
}

#[test]
fn announced_lengths_are_numbers_that_fit() {
    let length = |value: &str, end| {
        let mut peer = Peer::new();
        let fields = [&with_path("POST", "/")[..], &[("content-length", value)]].concat();
        peer.syn(1, &fields, end);
        let head = peer.head();
        (head.fault, head.body)
    };
    assert_eq!(length("3", false), (None, BodyLength::Length(3)));
    assert_eq!(length("0", true), (None, BodyLength::None));
    let bad = Some(Fault::BadContentLength);
    assert_eq!(length("3", true), (bad, BodyLength::None));
    for value in ["", "+1", "1 1", "0x1", "18446744073709551616"] {
        assert_eq!(length(value, false).0, bad, "{value}");
    }
    let twice = Some(Fault::DuplicateContentLength);
    assert_eq!(length("3\x003", false).0, twice);
}

#[test]
fn priority_is_told() {
    let mut peer = Peer::new();
    for (stream, priority) in [(1, 0), (3, 1), (5, 7)] {
        peer.get_with(stream, priority);
        assert_eq!(peer.head().priority, Some(priority));
    }
}
