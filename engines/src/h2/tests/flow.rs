//! Flow control, both ways. Source: RFC 9113 sections 5.2, 6.9.

use super::*;

#[test]
fn closed_window_holds_the_body_back_and_not_the_head() {
    let mut peer = Peer::new();
    peer.setting(4, 0).get(1, "/").answer(1, &[b"hello"]);
    assert_eq!(peer.told(), ["SETTINGS ACK", "1 HEADERS 200"]);
    peer.window(1, 2);
    assert_eq!(peer.told(), ["1 DATA he"]);
    for (n, shown) in ["l", "l", "o END"].iter().enumerate() {
        peer.window(1, 1);
        assert_eq!(peer.told(), [format!("1 DATA {shown}")], "{n}");
    }
}

#[test]
fn end_of_a_body_needs_no_window() {
    let mut peer = Peer::new();
    peer.setting(4, 1).get(1, "/").answer(1, &[b"a"]);
    peer.get(3, "/").answer(3, &[]);
    let told = peer.told();
    assert_eq!(told[3..], ["1 DATA a END", "3 DATA - END"]);
}

#[test]
fn source_of_a_body_is_asked_first_when_its_bytes_could_leave() {
    let mut peer = Peer::new();
    peer.setting(4, 0)
        .get(1, "/")
        .answer(1, &[b"hello", b"you"]);
    peer.get(3, "/").answer(3, &[b"a"]);
    let left = |peer: &Peer, id| peer.bodies[&id].len();
    peer.told();
    assert_eq!((left(&peer, 1), left(&peer, 3)), (2, 1), "not at all");
    peer.window(3, 1);
    assert_eq!(peer.told(), ["3 DATA a END"]);
    assert_eq!(left(&peer, 1), 2);
    // The window of the connection counts as well.
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[FULL; 66]).told();
    peer.get(3, "/").answer(3, &[b"a"]).told();
    assert_eq!(left(&peer, 3), 1);
    peer.window(0, 1000);
    assert_eq!(peer.told(), ["3 DATA a END"]);
}

#[test]
fn end_that_is_found_late_needs_no_window() {
    let mut peer = Peer::new();
    // The source stalls when all bytes that the window has room for have left.
    peer.setting(4, 5).get(1, "/").answer(1, &[b"hello", b""]);
    assert_eq!(peer.told()[2..], ["1 DATA hello"]);
    peer.conn.resume(1);
    assert_eq!(peer.told(), ["1 DATA - END"]);
    // The source of a body without a byte that ends with trailers is polled, too.
    let mut trailers = ResponseHead::default();
    trailers.push(b"x", b"1");
    peer.setting(4, 0).trailers.insert(3, trailers);
    let head = response(200, BodyLength::Length(0));
    peer.get(3, "/").answer_with(3, &head, &[]);
    assert_eq!(
        peer.told().last().map(String::as_str),
        Some("3 HEADERS x=1 END")
    );
}

#[test]
fn initial_window_changes_those_of_open_streams() {
    let mut peer = Peer::new();
    peer.setting(4, 10).get(1, "/").answer(1, &[&[b'x'; 100]]);
    assert_eq!(peer.told()[2..], ["1 DATA xxxxxxxxxx"]);
    // 5 less than before: the window is negative.
    peer.setting(4, 5);
    assert_eq!(peer.told(), ["SETTINGS ACK"]);
    peer.window(1, 5);
    assert!(peer.told().is_empty(), "it is 0");
    peer.window(1, 1);
    assert_eq!(peer.told(), ["1 DATA x"]);
    peer.setting(4, 8);
    assert_eq!(peer.told(), ["SETTINGS ACK", "1 DATA xxx"]);
    // The connection's window is not changed by it: a new stream begins with 8.
    peer.get(3, "/").answer(3, &[&[b'y'; 100]]);
    assert_eq!(peer.told(), ["3 HEADERS 200", "3 DATA yyyyyyyy"]);
}

#[test]
fn last_initial_window_of_a_frame_counts() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[]);
    let pair = |value: u32| [&4_u16.to_be_bytes()[..], &value.to_be_bytes()].concat();
    let payload = [pair(0), pair(3)].concat();
    peer.frame(frame::SETTINGS, 0, 0, &payload);
    peer.get(3, "/").answer(3, &[b"abcde"]);
    assert_eq!(peer.told().last().map(String::as_str), Some("3 DATA abc"));
}

#[test]
fn window_of_the_connection_holds_all_streams_back() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[FULL; 66]);
    let told = peer.told();
    assert_eq!((told.len(), told[66].as_str()), (67, "1 DATA 535"));
    peer.window(1, 1000).get(3, "/").answer(3, &[b"y"]);
    assert_eq!(
        peer.told(),
        ["3 HEADERS 200"],
        "streams may, the connection may not"
    );
    peer.window(0, 465 + 1);
    assert_eq!(peer.told(), ["1 DATA 465 END", "3 DATA y END"]);
}

#[test]
fn time_that_a_window_is_closed_is_counted_from_the_last_byte() {
    let mut peer = Peer::new();
    peer.setting(4, 1).get(1, "/").answer(1, &[b"abc"]);
    peer.now_ms = 50;
    assert_eq!(peer.conn.blocked_since(1), None);
    peer.told();
    assert_eq!(peer.conn.blocked_since(1), Some(50));
    peer.now_ms = 70;
    peer.told();
    assert_eq!(peer.conn.blocked_since(1), Some(50));
    peer.window(1, 1);
    assert_eq!(peer.conn.blocked_since(1), None);
    peer.told();
    assert_eq!(peer.conn.blocked_since(1), Some(70));
    peer.window(1, 1).told();
    assert_eq!(peer.conn.blocked_since(1), None, "it is sent");
    peer.now_ms = 90;
    peer.setting(4, 1 << 20).get(3, "/");
    peer.answer(3, &[&[b'x'; 100_000]]).told();
    assert_eq!(peer.conn.blocked_since(3), Some(90), "by the connection's");
}

#[test]
fn frames_are_as_large_as_the_client_takes_them_now() {
    let mut peer = Peer::new();
    peer.setting(5, 30_000)
        .setting(4, 1 << 20)
        .window(0, 1 << 20);
    peer.get(1, "/");
    let plan = SendOptions {
        trailers: false,
        chunk_bytes: 1 << 20,
    };
    peer.conn
        .send_head(1, &response(200, BodyLength::Unknown), plan);
    peer.bodies.insert(1, [vec![b'x'; 70_000]].into());
    peer.room = 20_000;
    assert_eq!(peer.told().last().map(String::as_str), Some("1 DATA 30000"));
    peer.room = u64::MAX;
    peer.setting(5, 16_384);
    assert_eq!(
        peer.told(),
        [
            "SETTINGS ACK",
            "1 DATA 16384",
            "1 DATA 16384",
            "1 DATA 7232 END"
        ]
    );
}

/// A body is allowed as far as it has been read.
#[test]
fn window_for_a_body_opens_as_it_is_read() {
    let mut peer = Peer::with(Settings {
        preread_bytes: 65_536,
        ..Settings::default()
    });
    peer.post(1, &[]);
    let piece = [0; 16_384];
    peer.data(1, &piece, false).data(1, &piece, false);
    assert!(peer.told().is_empty(), "nobody has read it");
    peer.conn.consumed(1, 32_768);
    assert!(peer.told().is_empty(), "half of it is not worth a frame");
    peer.conn.consumed(1, 1);
    assert_eq!(peer.told(), ["1 WINDOW 32769"]);
    // Nothing is allowed anew after the end.
    peer.data(1, b"x", true);
    peer.conn.consumed(1, 65_536);
    assert!(peer.told().is_empty());
}

/// RFC 9113 section 6.9.1: padding counts, and is given back by the engine.
#[test]
fn padding_counts_against_the_window() {
    let mut peer = Peer::with(Settings {
        preread_bytes: 65_535,
        ..Settings::default()
    });
    peer.post(1, &[]);
    let padded = [&[250][..], b"body", &[0; 250]].concat();
    for _ in 0..131 {
        peer.frame(frame::DATA, frame::PADDED, 1, &padded);
    }
    assert_eq!(peer.told(), ["1 WINDOW 32881"]);
}

#[test]
fn more_than_the_window_breaks_the_stream() {
    let mut peer = Peer::with(Settings {
        preread_bytes: 10,
        ..Settings::default()
    });
    peer.post(1, &[]).post(3, &[]).data(1, b"0123456789", false);
    assert!(peer.told().is_empty());
    peer.data(1, &[0], true).data(3, b"ok", true);
    assert_eq!(peer.told(), ["1 RST FLOW_CONTROL_ERROR"]);
    assert_eq!(
        peer.events()[2..],
        ["1 data 0123456789", "1 reset", "3 data ok", "3 end"]
    );
}

/// A client that does not know of our window yet may exceed it (RFC 9113 section 6.9.3): its requests with bodies wait.
#[test]
fn body_before_the_small_window_is_known_is_refused() {
    let settings = Settings {
        preread_bytes: 65_534,
        ..Settings::default()
    };
    let mut peer = Peer::silent(settings.clone());
    peer.receive(PREFACE)
        .post(1, &[])
        .data(1, b"x", true)
        .get(3, "/");
    assert_eq!(peer.events(), ["3 GET / HTTP/2.0"]);
    assert_eq!(peer.told()[2..], ["1 RST REFUSED_STREAM"]);
    peer.frame(frame::SETTINGS, frame::ACK, 0, &[]).post(5, &[]);
    assert_eq!(peer.events(), ["5 POST / HTTP/2.0"]);
    let mut peer = Peer::silent(Settings {
        preread_bytes: 65_535,
        ..settings
    });
    peer.receive(PREFACE).post(1, &[]);
    assert_eq!(peer.events(), ["1 POST / HTTP/2.0"]);
}

#[test]
fn window_of_the_connection_is_opened_again() {
    let mut peer = Peer::new();
    peer.post(1, &[]);
    peer.conn.recv_window.left_bytes = (1 << 30) - 1 + 4;
    peer.data(1, b"four", false);
    assert!(peer.told().is_empty());
    peer.data(1, b"x", false);
    assert_eq!(peer.told(), ["0 WINDOW 1073741825"]);
    assert_eq!(peer.conn.recv_window.left_bytes, (1 << 31) - 1);
}

#[test]
fn window_update_on_a_closed_stream_is_ignored() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[]).told();
    peer.window(1, 5).cancel(1);
    assert_eq!(peer.events(), ["1 GET / HTTP/2.0"]);
}
