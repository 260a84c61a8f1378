//! Request bodies: events and errors.

use super::super::receive::PAST_BYTES;
use super::*;

#[test]
fn body_is_told_in_pieces() {
    let mut peer = Peer::new();
    peer.post(1, &[("content-length", "5")]);
    peer.data(1, b"ab", false).data(1, b"", false);
    peer.data(1, b"cde", true);
    let expected = ["1 POST / SPDY/3.1", "1 data ab", "1 data cde", "1 end"];
    assert_eq!(peer.events(), expected);
    peer.answer(1, &[b"ok"]);
    assert_eq!(peer.told(), ["1 REPLY 200", "1 DATA ok END"]);
}

#[test]
fn long_frames_are_told_in_pieces_that_do_not_depend_on_how_they_come() {
    let expected = [
        "1 POST / SPDY/3.1",
        "1 data 16384",
        "1 data 16384",
        "1 data 7232",
        "1 end",
    ];
    for step in [1000, 16_384, 40_000, 65_536] {
        let mut peer = Peer::new();
        peer.post(1, &[]);
        for piece in data_frame(1, &[b'x'; 40_000], true).chunks(step) {
            peer.receive(piece);
        }
        assert_eq!(peer.events(), expected, "{step} at a time");
    }
}

#[test]
fn wrong_lengths_are_told_and_the_rest_is_read_past() {
    for (length, pieces) in [("5", [&b"abc"[..], b"defg"]), ("5", [b"a", b"b"])] {
        let mut peer = Peer::new();
        peer.post(1, &[("content-length", length)]).get(3, "/b");
        peer.data(1, pieces[0], false).data(1, pieces[1], true);
        let events = peer.events();
        assert_eq!(
            events.last().map(String::as_str),
            Some("1 BadContentLength")
        );
        let head = response(400, BodyLength::Unknown);
        peer.answer_with(1, &head, &[b"bad"]).answer(3, &[b"good"]);
        let mut told = peer.told();
        told.sort_unstable();
        // The answer is whole, and no reset takes it away.
        let expected = [
            "1 DATA bad END",
            "1 REPLY 400",
            "3 DATA good END",
            "3 REPLY 200",
        ];
        assert_eq!(told, expected);
    }
}

#[test]
fn rest_of_a_body_that_is_too_long_is_let_in() {
    let mut peer = Peer::new();
    peer.post(1, &[("content-length", "1")])
        .data(1, b"ab", false);
    assert_eq!(
        peer.events().last().map(String::as_str),
        Some("1 BadContentLength")
    );
    peer.answer_with(1, &response(400, BodyLength::Length(0)), &[]);
    assert_eq!(peer.told(), ["1 REPLY 400 END"]);
    for _ in 0..8 {
        peer.data(1, &[b'x'; 16_384], false);
    }
    assert_eq!(peer.told().len(), 3, "windows are opened");
    peer.data(1, b"", true).data(1, b"late", false);
    assert!(peer.events().is_empty() && peer.told().is_empty());
}

#[test]
fn window_is_opened_as_the_body_is_used_up() {
    let mut peer = Peer::new();
    peer.post(1, &[]).data(1, &[b'x'; 65_536], false);
    assert!(peer.told().is_empty(), "nobody has read it");
    peer.conn.consumed(1, 32_768);
    assert!(peer.told().is_empty(), "half of it is not enough");
    peer.conn.consumed(1, 1);
    assert_eq!(peer.told(), ["1 WINDOW 32769"]);
    peer.data(1, &[b'x'; 32_769], false).data(1, b"x", false);
    assert_eq!(peer.told(), ["1 RST FLOW_CONTROL_ERROR"]);
}

#[test]
fn discarded_body_opens_its_window_by_itself() {
    let mut peer = Peer::new();
    peer.post(1, &[]);
    peer.events();
    peer.conn.discard_body(1);
    peer.data(1, &[b'x'; 40_000], false);
    assert!(peer.events().is_empty());
    assert_eq!(peer.told(), ["1 WINDOW 40000"]);
}

/// A client that never ends its request is let go on for a while after the response.
#[test]
fn body_after_the_response_is_read_past_up_to_a_limit() {
    let mut peer = Peer::new();
    peer.post(1, &[]).answer(1, &[b"done"]);
    assert_eq!(peer.told(), ["1 REPLY 200", "1 DATA done END"]);
    let piece = [b'x'; 16_384];
    for _ in 0..PAST_BYTES / piece.len() as u64 {
        peer.data(1, &piece, false);
    }
    let told = peer.told();
    assert!(
        told.iter().all(|line| line.starts_with("1 WINDOW")),
        "{told:?}"
    );
    peer.data(1, b"x", false);
    assert_eq!(peer.told(), ["1 RST CANCEL"]);
}

#[test]
fn data_after_the_end_resets_the_stream() {
    let mut peer = Peer::new();
    peer.get(1, "/").data(1, b"x", false);
    assert_eq!(peer.events(), ["1 GET / SPDY/3.1", "1 reset"]);
    assert_eq!(peer.told(), ["1 RST STREAM_ALREADY_CLOSED"]);
}

#[test]
fn data_for_streams_that_nobody_opened_is_refused() {
    let mut peer = Peer::new();
    peer.get(3, "/").answer(3, &[]);
    peer.told();
    peer.data(5, b"x", false).data(2, b"x", false);
    assert_eq!(
        peer.told(),
        ["5 RST INVALID_STREAM", "2 RST INVALID_STREAM"]
    );
    peer.data(3, b"x", false)
        .data(1, b"x", true)
        .data(0, b"x", true);
    assert!(peer.told().is_empty(), "what was open may have been reset");
}

/// A collected body is accepted as it arrives: its sender need not wait for windows.
#[test]
fn body_that_is_wanted_whole_has_the_largest_window() {
    let mut peer = Peer::new();
    peer.post(1, &[]).told();
    peer.conn.want_whole_body(1);
    peer.conn.want_whole_body(1);
    assert_eq!(peer.told().len(), 1, "told once");
    for _ in 0..10 {
        peer.data(1, &[0; 16_000], false);
    }
    peer.conn.consumed(1, 160_000);
    assert!(peer.told().is_empty(), "there is enough left");
    peer.data(1, b"x", true);
    assert_eq!(peer.events().last().map(String::as_str), Some("1 end"));
}
