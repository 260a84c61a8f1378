//! Errors of connections and of streams.

use super::*;

/// Reaction of a connection with one open stream to a frame.
fn answer_to(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let mut peer = Peer::new();
    peer.get(5, "/");
    peer.events();
    peer.receive(bytes);
    (peer.events(), peer.told())
}

#[track_caller]
fn ends(bytes: &[u8], error: &str) {
    let (events, told) = answer_to(bytes);
    assert_eq!(events, ["5 reset", error]);
    assert_eq!(told, ["GOAWAY 5 PROTOCOL_ERROR"]);
}

#[test]
fn frames_of_other_versions_end_it() {
    ends(&[0x80, 2, 0, 1, 0, 0, 0, 0], "BadVersion");
    ends(&[0x80, 4, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1], "BadVersion");
}

#[test]
fn frames_of_a_wrong_length_end_it() {
    let wrong = [
        (frame::RST_STREAM, 7),
        (frame::RST_STREAM, 9),
        (frame::PING, 3),
        (frame::PING, 5),
        (frame::GOAWAY, 4),
        (frame::WINDOW_UPDATE, 4),
        (frame::WINDOW_UPDATE, 12),
        (frame::SYN_STREAM, 9),
        (frame::SYN_STREAM, 10),
        (frame::SETTINGS, 3),
    ];
    for (kind, len) in wrong {
        ends(&control(kind, 0, &vec![0; len]), "FrameSize");
    }
    ends(
        &control(frame::SETTINGS, 0, &numbers(&[2, 7, 1])),
        "FrameSize",
    );
    let huge = numbers(&[u32::MAX, 7, 1]);
    ends(&control(frame::SETTINGS, 0, &huge), "FrameSize");
}

#[test]
fn frames_that_only_servers_send_end_it() {
    ends(&control(frame::SYN_REPLY, 0, &[0; 9]), "WrongFrame");
    ends(&control(frame::HEADERS, 0, &[0; 9]), "WrongFrame");
}

#[test]
fn numbers_that_are_even_or_go_back_end_it() {
    let block = Peer::new().block_of(&with_path("GET", "/"));
    for id in [0, 2, 8, 1, 3] {
        let mut peer = Peer::new();
        peer.get(5, "/").events();
        let block = peer.block_of(&with_path("GET", "/"));
        peer.syn_block(id, 0, &block, true);
        assert_eq!(peer.events(), ["5 reset", "BadStreamNumber"], "{id}");
        assert_eq!(peer.told(), ["GOAWAY 5 PROTOCOL_ERROR"], "{id}");
    }
    let mut peer = Peer::new();
    peer.syn_block(2, 0, &block, true);
    assert_eq!(peer.told(), ["GOAWAY 0 PROTOCOL_ERROR"]);
}

#[test]
fn second_request_on_a_stream_resets_it() {
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/").get(1, "/").get(3, "/");
    assert_eq!(
        peer.told(),
        ["1 RST PROTOCOL_ERROR", "3 RST PROTOCOL_ERROR"]
    );
    peer.get(5, "/").answer(5, &[b"x"]);
    assert_eq!(peer.told(), ["5 REPLY 200", "5 DATA x END"]);
    peer.get(5, "/").get(7, "/");
    assert_eq!(peer.told(), ["5 RST PROTOCOL_ERROR"]);
    assert_eq!(
        peer.events().last().map(String::as_str),
        Some("7 GET / SPDY/3.1")
    );
}

#[test]
fn requests_that_nobody_could_answer_are_reset() {
    let mut peer = Peer::new();
    let block = peer.block_of(&with_path("GET", "/"));
    let payload = [&numbers(&[1, 0])[..], &[0, 0], &block].concat();
    peer.frame(
        frame::SYN_STREAM,
        frame::FIN | frame::UNIDIRECTIONAL,
        &payload,
    );
    assert_eq!(peer.told(), ["1 RST PROTOCOL_ERROR"]);
    assert!(peer.events().is_empty());
}

#[test]
fn blocks_that_are_no_zlib_end_it() {
    ends(&syn_frame(7, 0, b"nonsense", true), "Compression");
    let wrong = [0x78, 0xbb, 1, 2, 3, 4, 0];
    let mut peer = Peer::new();
    peer.syn_block(1, 0, &wrong, true);
    assert_eq!(peer.events(), ["WrongDictionary"]);
    assert_eq!(peer.told(), ["GOAWAY 0 PROTOCOL_ERROR"]);
}

#[test]
fn nothing_is_taken_after_the_end() {
    let mut peer = Peer::new();
    peer.receive(&[0x80, 9, 0, 0, 0, 0, 0, 0]);
    assert!(peer.conn.is_over() && !peer.conn.wants_input());
    peer.told();
    peer.events();
    peer.get(1, "/");
    assert!(peer.events().is_empty() && peer.told().is_empty());
}

#[test]
fn what_is_not_known_is_ignored() {
    let mut peer = Peer::new();
    for kind in [0, 5, 10, 99, 0x7fff] {
        peer.frame(kind, 0xff, &[0xff; 40_000]);
    }
    peer.frame(frame::GOAWAY, 0, &numbers(&[0, 0]));
    peer.cancel(1).cancel(2);
    peer.get(1, "/");
    assert_eq!(peer.events(), ["1 GET / SPDY/3.1"]);
    assert!(peer.told().is_empty());
}

#[test]
fn client_takes_a_stream_back() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[b"", b"x"]);
    assert_eq!(peer.told(), ["1 REPLY 200"]);
    peer.events();
    peer.cancel(1);
    assert_eq!(peer.events(), ["1 reset"]);
    assert!(peer.told().is_empty());
}
