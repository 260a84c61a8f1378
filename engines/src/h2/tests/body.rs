//! Request bodies: data, trailers, and announced lengths.

use super::*;

#[test]
fn body_comes_in_pieces_and_ends() {
    let mut peer = Peer::new();
    peer.post(1, &[("content-length", "7")])
        .data(1, b"abcd", false)
        .data(1, b"", false)
        .data(1, b"efg", true);
    assert_eq!(
        peer.events(),
        ["1 POST / HTTP/2.0", "1 data abcd", "1 data efg", "1 end"]
    );
}

#[test]
fn bodies_of_streams_mix() {
    let mut peer = Peer::new();
    peer.post(1, &[]).post(3, &[]);
    peer.data(3, b"x", false)
        .data(1, b"y", true)
        .data(3, b"z", true);
    let told = ["3 data x", "1 data y", "1 end", "3 data z", "3 end"];
    assert_eq!(peer.events()[2..], told);
}

#[test]
fn trailers_end_a_body() {
    let mut peer = Peer::new();
    peer.post(1, &[]).data(1, b"x", false);
    peer.headers(1, &[("x-sum", "1"), ("x_odd", "2")], true);
    assert_eq!(
        peer.events()[1..],
        ["1 data x", "1 trailers x-sum=1", "1 end"]
    );
}

#[test]
fn empty_trailers_are_not_told() {
    let mut peer = Peer::new();
    peer.post(1, &[]).headers(1, &[], true);
    assert_eq!(peer.events()[1..], ["1 end"]);
}

/// RFC 9113 sections 8.1, 8.3.
#[test]
fn malformed_trailers_break_the_stream() {
    for (name, value) in [
        (":path", "/"),
        ("X", "1"),
        ("x", "a\nb"),
        ("connection", "x"),
    ] {
        let mut peer = Peer::new();
        peer.post(1, &[]).headers(1, &[(name, value)], true);
        assert_eq!(peer.events()[1..], ["1 reset"], "{name}");
        assert_eq!(peer.told(), ["1 RST PROTOCOL_ERROR"], "{name}");
    }
}

#[test]
fn trailers_that_do_not_end_the_stream_break_it() {
    let mut peer = Peer::new();
    peer.post(1, &[]).headers(1, &[("x", "1")], false);
    assert_eq!(peer.events()[1..], ["1 reset"]);
    assert_eq!(peer.told(), ["1 RST PROTOCOL_ERROR"]);
}

/// RFC 9113 section 8.1.1: the sum of DATA must equal `content-length`.
#[test]
fn wrong_length_is_told_and_resets_the_stream_after_the_answer() {
    let too_long = |peer: &mut Peer| _ = peer.data(1, b"abc", false);
    let too_short = |peer: &mut Peer| _ = peer.data(1, b"a", true);
    let in_pieces = |peer: &mut Peer| _ = peer.data(1, b"a", false).data(1, b"bc", true);
    let by_trailers =
        |peer: &mut Peer| _ = peer.data(1, b"a", false).headers(1, &[("x", "1")], true);
    let cases: [&dyn Fn(&mut Peer); 4] = [&too_long, &too_short, &in_pieces, &by_trailers];
    for (n, case) in cases.iter().enumerate() {
        let mut peer = Peer::new();
        peer.post(1, &[("content-length", "2")]);
        case(&mut peer);
        // Later frames are dropped.
        peer.data(1, b"more", false).headers(1, &[("x", "1")], true);
        let events = peer.events();
        assert_eq!(
            events.last().map(String::as_str),
            Some("1 BadContentLength"),
            "{n}"
        );
        peer.answer_with(1, &response(400, BodyLength::Length(0)), &[]);
        assert_eq!(
            peer.told(),
            ["1 HEADERS 400 END", "1 RST PROTOCOL_ERROR"],
            "{n}"
        );
    }
}

#[test]
fn wrong_length_after_the_answer_resets_the_stream() {
    let mut peer = Peer::new();
    peer.post(1, &[("content-length", "2")])
        .answer(1, &[])
        .told();
    peer.data(1, b"abc", false);
    assert_eq!(peer.told(), ["1 RST PROTOCOL_ERROR"]);
    assert_eq!(peer.events(), ["1 POST / HTTP/2.0"]);
}

#[test]
fn body_that_nobody_wants_is_read_past() {
    let mut peer = Peer::new();
    peer.post(1, &[]);
    peer.conn.discard_body(1);
    peer.data(1, b"abc", false).headers(1, &[("x", "1")], true);
    assert_eq!(peer.events(), ["1 POST / HTTP/2.0"]);
    assert_eq!(
        peer.answer(1, &[b"ok"]).told(),
        ["1 HEADERS 200", "1 DATA ok END"]
    );
}

/// The rest of a body within its window may arrive after the answer: no reset that a client could take for an
/// error.
#[test]
fn short_body_may_come_after_the_answer() {
    let mut peer = Peer::new();
    peer.post(1, &[("content-length", "3")]);
    assert_eq!(
        peer.answer(1, &[]).told(),
        ["1 HEADERS 200", "1 DATA - END"]
    );
    peer.data(1, b"ab", false).data(1, b"c", true);
    assert!(peer.told().is_empty());
    // The stream is closed now.
    peer.data(1, b"d", true);
    assert_eq!(peer.events()[1..], ["ClosedStream"]);
}

/// RFC 9113 section 8.1: an unneeded body is stopped without an error.
#[test]
fn long_body_is_stopped_after_the_answer() {
    let mut peer = Peer::new();
    peer.post(1, &[("content-length", "65537")]);
    let told = ["1 HEADERS 200", "1 DATA - END", "1 RST NO_ERROR"];
    assert_eq!(peer.answer(1, &[]).told(), told);
    // Frames in flight are dropped.
    peer.data(1, &[0; 1000], false).headers(1, &[], true);
    assert!(peer.told().is_empty());
}

#[test]
fn body_of_unknown_length_is_stopped_where_its_window_ends() {
    let mut peer = Peer::with(Settings {
        preread_bytes: 65_536,
        ..Settings::default()
    });
    peer.post(1, &[]).answer(1, &[]).told();
    for _ in 0..3 {
        peer.data(1, &[0; 16_384], false);
        assert!(peer.told().is_empty());
    }
    peer.data(1, &[0; 16_384], false);
    assert_eq!(peer.told(), ["1 RST NO_ERROR"]);
    assert_eq!(peer.events().len(), 1, "nothing is told of it");
}

#[test]
fn reset_is_told_with_what_was_sent() {
    let mut peer = Peer::new();
    peer.setting(4, 10).get(1, "/");
    peer.answer(1, &[&[b'x'; 100]]);
    let head_bytes = peer.conn.sent_bytes(1);
    assert_eq!(peer.told()[1..], ["1 HEADERS 200", "1 DATA xxxxxxxxxx"]);
    assert_eq!(peer.conn.sent_bytes(1), head_bytes + 19);
    peer.events();
    peer.cancel(1);
    let reset = Event::Reset {
        stream: 1,
        sent_bytes: head_bytes + 19,
    };
    assert_eq!(peer.conn.event(), Some(reset));
    assert_eq!(peer.conn.sent_bytes(1), 0);
    assert!(peer.answer(1, &[b"late"]).told().is_empty());
}

#[test]
fn reset_after_the_answer_is_not_told() {
    let mut peer = Peer::new();
    peer.post(1, &[]).answer(1, &[]).told();
    peer.cancel(1).cancel(1);
    assert_eq!(peer.events(), ["1 POST / HTTP/2.0"]);
}

#[test]
fn end_of_the_peer_is_told_once() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    peer.conn.receive_eof();
    peer.conn.receive_eof();
    assert_eq!(peer.events(), ["1 GET / HTTP/2.0", "eof"]);
    assert!(!peer.conn.wants_input());
}

/// A collected body is accepted as it arrives: its sender need not wait for windows.
#[test]
fn body_that_is_wanted_whole_has_the_largest_window() {
    let mut peer = Peer::new();
    peer.post(1, &[]).told();
    peer.conn.want_whole_body(1);
    peer.conn.want_whole_body(1);
    let grant = (1_u32 << 31) - 1 - (64 << 10);
    assert_eq!(peer.told(), [format!("1 WINDOW {grant}")], "once");
    for _ in 0..10 {
        peer.data(1, &[0; 16_000], false);
    }
    assert_eq!(peer.events().len(), 11, "more than was allowed at first");
    peer.conn.consumed(1, 160_000);
    assert!(peer.told().is_empty(), "there is enough left");
    peer.data(1, b"x", true);
    assert_eq!(peer.events().last().map(String::as_str), Some("1 end"));
}

/// The window opened for the whole body is not used any more after the answer.
#[test]
fn body_that_was_wanted_whole_is_stopped_after_the_answer() {
    for (length, stopped) in [("65536", false), ("65537", true)] {
        let mut peer = Peer::new();
        peer.post(1, &[("content-length", length)]);
        peer.conn.want_whole_body(1);
        peer.told();
        let told = peer.answer(1, &[]).told();
        assert_eq!(told.contains(&"1 RST NO_ERROR".to_owned()), stopped);
    }
    let mut peer = Peer::new();
    peer.post(1, &[]);
    peer.conn.want_whole_body(1);
    peer.told();
    let told = peer.answer(1, &[]).told();
    assert_eq!(told.last().map(String::as_str), Some("1 RST NO_ERROR"));
}

/// A body that is passed on is received in pieces, as many as are consumed.
#[test]
fn body_that_is_wanted_by_pieces_has_a_window_of_its_own() {
    let mut peer = Peer::new();
    peer.post(1, &[]).told();
    peer.conn.want_body(1, 64 << 10);
    assert_eq!(peer.told(), [""; 0], "so much may come unasked");
    peer.conn.want_body(1, 100_000);
    peer.conn.want_body(1, 100_000);
    let grant = 100_000 - (64 << 10);
    assert_eq!(peer.told(), [format!("1 WINDOW {grant}")], "once");
    peer.conn.consumed(1, 50_000);
    assert_eq!(peer.told(), [""; 0]);
    peer.conn.consumed(1, 1);
    assert_eq!(peer.told(), ["1 WINDOW 50001"]);
    peer.conn.want_body(3, 1);
    peer.data(1, b"x", true).told();
    peer.conn.want_body(1, 200_000);
    assert_eq!(peer.told(), [""; 0], "nothing more comes");
}
