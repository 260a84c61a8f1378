//! How a connection ends by itself. Source: RFC 9113 section 6.8.

use super::*;

#[test]
fn drain_tells_of_the_end_and_serves_what_comes_until_that_is_heard() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    peer.conn.drain();
    peer.conn.drain();
    assert_eq!(peer.told(), ["GOAWAY 2147483647 NO_ERROR", "PING draining"]);
    // This was under way.
    peer.get(3, "/");
    peer.frame(frame::PING, frame::ACK, 0, b"draining");
    assert_eq!(peer.told(), ["GOAWAY 3 NO_ERROR"]);
    peer.get(5, "/");
    assert_eq!(peer.events(), ["1 GET / HTTP/2.0", "3 GET / HTTP/2.0"]);
    peer.answer(1, &[b"a"]).told();
    assert!(!peer.conn.is_over());
    peer.answer(3, &[b"b"]).told();
    assert!(peer.conn.is_over());
}

#[test]
fn ping_of_the_client_does_not_end_the_drain() {
    let mut peer = Peer::new();
    peer.conn.drain();
    peer.frame(frame::PING, 0, 0, b"draining");
    peer.frame(frame::PING, frame::ACK, 0, b"SEE-THIS");
    assert!(!peer.conn.is_over() && !peer.conn.is_ending());
    peer.conn.end();
    assert!(peer.conn.is_over() && peer.conn.is_ending());
}

#[test]
fn end_serves_what_is_here_and_nothing_more() {
    let mut peer = Peer::new();
    peer.post(1, &[]).get(3, "/");
    peer.conn.end();
    peer.conn.end();
    peer.conn.drain();
    assert_eq!(peer.told(), ["GOAWAY 3 NO_ERROR"]);
    // Ignored, but the table is still updated.
    let own = [("x-own", "1")];
    let fields = [&with_path("POST", "/"), &own[..]].concat();
    peer.headers(5, &fields, false)
        .data(5, b"x", false)
        .window(5, 1);
    peer.headers(5, &own, true).cancel(5);
    peer.headers(7, &fields, true);
    peer.data(1, b"body", true);
    let told = [
        "1 POST / HTTP/2.0",
        "3 GET / HTTP/2.0",
        "1 data body",
        "1 end",
    ];
    assert_eq!(peer.events(), told);
    peer.answer(1, &[]).answer(3, &[]).told();
    assert!(peer.conn.is_over());
}

#[test]
fn end_after_a_stream_drops_those_that_came_with_it() {
    let mut peer = Peer::new();
    peer.get(1, "/")
        .get(3, "/")
        .post(5, &[])
        .data(5, b"x", true);
    assert_eq!(peer.head().fault, None);
    peer.conn.end_after(1);
    assert_eq!(peer.told(), ["GOAWAY 1 NO_ERROR"]);
    assert!(peer.events().is_empty());
    peer.answer(1, &[]).told();
    assert!(peer.conn.is_over());
}

#[test]
fn header_block_that_comes_too_late_for_the_end_is_dropped() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let block = peer.block_of(&with_path("GET", "/"));
    peer.frame(frame::HEADERS, frame::END_STREAM, 3, &block);
    peer.conn.end_after(1);
    peer.frame(frame::CONTINUATION, frame::END_HEADERS, 3, &[]);
    assert_eq!(peer.events(), ["1 GET / HTTP/2.0"]);
}

/// It would get no answer, and its client could not know that it was not begun.
#[test]
fn end_does_not_promise_a_request_of_which_a_part_is_here() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let block = peer.block_of(&with_path("GET", "/"));
    peer.frame(frame::HEADERS, frame::END_STREAM, 3, &block);
    peer.conn.end();
    assert_eq!(peer.told(), ["GOAWAY 1 NO_ERROR"]);
    peer.frame(frame::CONTINUATION, frame::END_HEADERS, 3, &[]);
    assert_eq!(peer.events(), ["1 GET / HTTP/2.0"]);
    peer.answer(1, &[]).told();
    assert!(peer.conn.is_over());
}

#[test]
fn body_that_is_still_coming_does_not_keep_a_connection() {
    let mut peer = Peer::new();
    peer.post(1, &[]).answer(1, &[]).told();
    peer.conn.end();
    assert!(peer.conn.is_over());
}

#[test]
fn failure_resets_what_is_under_way_and_is_the_last_word() {
    let mut peer = Peer::new();
    peer.get(1, "/").post(3, &[]).post(5, &[]);
    peer.answer(5, &[]).told();
    peer.events();
    peer.window(0, 0);
    assert_eq!(peer.events(), ["1 reset", "3 reset", "ZeroWindowUpdate"]);
    assert_eq!(peer.told(), ["GOAWAY 5 PROTOCOL_ERROR"]);
    assert!(peer.conn.is_over() && !peer.conn.wants_input());
    peer.get(7, "/").answer(1, &[b"x"]);
    peer.conn.end();
    peer.conn.drain();
    assert!(peer.told().is_empty() && peer.events().is_empty());
}

#[test]
fn last_stream_that_was_told_does_not_grow() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    peer.conn.end();
    peer.get(3, "/").window(0, 0);
    assert_eq!(
        peer.told(),
        ["GOAWAY 1 NO_ERROR", "GOAWAY 1 PROTOCOL_ERROR"]
    );
}
