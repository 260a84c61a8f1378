//! Frames around requests: header blocks in pieces, padding, PING, SETTINGS, unknown frames.

use super::*;

/// A request with a header block cut at these places.
fn in_pieces(peer: &mut Peer, stream: u32, cuts: &[usize]) {
    let block = peer.block_of(&[&with_path("GET", "/cut"), &[("x-own", "value")][..]].concat());
    let mut at = 0;
    for (n, cut) in cuts.iter().chain([&block.len()]).enumerate() {
        let last = *cut == block.len() && n == cuts.len();
        let kind = if n == 0 {
            frame::HEADERS
        } else {
            frame::CONTINUATION
        };
        let end_stream = if n == 0 { frame::END_STREAM } else { 0 };
        let end_headers = if last { frame::END_HEADERS } else { 0 };
        peer.frame(kind, end_stream | end_headers, stream, &block[at..*cut]);
        at = *cut;
    }
}

#[test]
fn header_block_may_be_cut_anywhere() {
    let mut peer = Peer::new();
    for cut in 0..8 {
        let id = 1 + 2 * cut as u32;
        in_pieces(&mut peer, id, &[cut.min(4), 4]);
        assert_eq!(peer.events(), [format!("{id} GET /cut HTTP/2.0")]);
    }
    let mut peer = Peer::new();
    in_pieces(&mut peer, 1, &[]);
    assert_eq!(peer.conn.awaited_block(), None);
    assert_eq!(peer.events(), ["1 GET /cut HTTP/2.0"]);
}

#[test]
fn frames_may_be_padded() {
    let mut peer = Peer::new();
    let block = peer.block_of(&with_path("POST", "/"));
    let payload = [&[4, 0, 0, 0, 0, 9][..], &block, &[0; 4]].concat();
    let flags = frame::END_HEADERS | frame::PADDED | frame::HAS_PRIORITY;
    peer.frame(frame::HEADERS, flags, 1, &payload);
    peer.frame(frame::DATA, frame::PADDED, 1, b"\x02abc..");
    peer.frame(frame::DATA, frame::PADDED, 1, b"\0d");
    peer.frame(
        frame::DATA,
        frame::PADDED | frame::END_STREAM,
        1,
        &[3, 0, 0, 0],
    );
    assert_eq!(
        peer.events(),
        ["1 POST / HTTP/2.0", "1 data abc", "1 data d", "1 end"]
    );
}

#[test]
fn ping_is_answered_and_an_answer_is_not() {
    let mut peer = Peer::new();
    peer.frame(frame::PING, 0, 0, b"SEE-THIS");
    peer.frame(frame::PING, frame::ACK, 0, b"SEE-THIS");
    assert_eq!(peer.told(), ["PING ACK SEE-THIS"]);
}

#[test]
fn unknown_frames_settings_and_flags_are_ignored() {
    let mut peer = Peer::new();
    peer.frame(0x0a, 0xff, 0, b"anything")
        .frame(0xff, 0, 7, &[]);
    peer.setting(0xffff, 7)
        .setting(3, 0)
        .setting(6, 0)
        .setting(2, 0);
    peer.frame(frame::PING, 0xfe, 0, b"SEE-THIS");
    assert_eq!(peer.told().len(), 5);
    peer.get(1, "/");
    assert_eq!(peer.events(), ["1 GET / HTTP/2.0"]);
}

#[test]
fn goaway_of_the_client_changes_nothing() {
    let mut peer = Peer::new();
    peer.get(1, "/")
        .frame(frame::GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\0why");
    assert_eq!(
        peer.answer(1, &[b"x"]).told(),
        ["1 HEADERS 200", "1 DATA x END"]
    );
}

/// RFC 7541 section 4.2: a limit does not apply before the peer can know it.
#[test]
fn table_of_the_client_has_our_size_once_it_knows_that() {
    let settings = Settings {
        header_table_bytes: 64,
        ..Settings::default()
    };
    let mut peer = Peer::silent(settings);
    assert!(peer.told()[0].starts_with("SETTINGS 1=64 "));
    let own = [("x-own", "1"), ("x-more", "2")];
    let fields = [&with_path("GET", "/"), &own[..]].concat();
    peer.receive(PREFACE)
        .headers(1, &fields, true)
        .headers(3, &fields, true);
    assert_eq!(peer.head().fields.len(), 3);
    assert_eq!(
        peer.head().named(b"x-own").count(),
        1,
        "from a table of 4096 bytes"
    );
    peer.frame(frame::SETTINGS, frame::ACK, 0, &[]);
    peer.codec.encoder.set_allowed_bytes(64);
    peer.headers(5, &fields, true);
    assert_eq!(peer.head().named(b"x-own").count(), 1);
    // 0x21: a table of one byte, then one of 65.
    let flags = frame::END_HEADERS | frame::END_STREAM;
    peer.frame(frame::HEADERS, flags, 7, &[0x3f, 65 - 31]);
    let last = peer.events().pop();
    assert_eq!(last.as_deref(), Some("Compression(BadTableSize)"));
}

#[test]
fn our_table_has_the_size_that_the_client_allows() {
    let mut peer = Peer::new();
    let mut head = response(200, BodyLength::None);
    head.push(b"x-own", b"value");
    for (id, table_bytes) in [(1, 4096), (3, 0), (5, 4096), (7, 100)] {
        peer.setting(1, table_bytes)
            .get(id, "/")
            .answer_with(id, &head, &[]);
        let expected = format!("{id} HEADERS 200 x-own=value END");
        assert_eq!(peer.told()[1..], [expected]);
    }
}

#[test]
fn awaited_header_block_is_known() {
    let mut peer = Peer::new();
    let block = peer.block_of(&with_path("GET", "/"));
    let whole = frame_of(frame::HEADERS, frame::END_STREAM, 1, &block);
    peer.receive(&whole[..8]);
    assert_eq!(peer.conn.awaited_block(), None, "not even its head is here");
    peer.receive(&whole[8..9]);
    assert_eq!(peer.conn.awaited_block(), Some(1));
    peer.receive(&whole[9..]);
    assert_eq!(peer.conn.awaited_block(), Some(1), "CONTINUATION is due");
    peer.frame(frame::CONTINUATION, frame::END_HEADERS, 1, &[]);
    assert_eq!(peer.conn.awaited_block(), None);
    assert_eq!(peer.events(), ["1 GET / HTTP/2.0"]);
    assert!(peer.conn.give_up_block().is_none());
}

/// As in nginx: a header block that takes too long costs its stream, not the connection.
#[test]
fn header_block_that_is_given_up_is_dropped_when_it_comes() {
    let mut peer = Peer::new();
    let own = [("x-own", "1")];
    let fields = [&with_path("GET", "/"), &own[..]].concat();
    let block = peer.block_of(&fields);
    let flags = frame::END_STREAM | frame::END_HEADERS;
    let whole = frame_of(frame::HEADERS, flags, 1, &block);
    peer.receive(&whole[..20]);
    assert!(peer.conn.give_up_block().is_some());
    assert!(peer.conn.give_up_block().is_none(), "once");
    peer.receive(&whole[20..]);
    // In several frames.
    let block = peer.block_of(&fields);
    peer.frame(frame::HEADERS, frame::END_STREAM, 3, &block);
    assert!(peer.conn.give_up_block().is_some());
    assert!(peer.conn.give_up_block().is_none(), "once");
    peer.frame(frame::CONTINUATION, frame::END_HEADERS, 3, &[]);
    let told = ["1 RST PROTOCOL_ERROR", "3 RST PROTOCOL_ERROR"];
    assert_eq!(peer.told(), told);
    assert!(peer.events().is_empty());
    // The table has learnt from them.
    peer.headers(5, &fields, true);
    assert_eq!(peer.head().named(b"x-own").count(), 1);
}

#[test]
fn trailers_that_are_given_up_reset_the_stream() {
    let mut peer = Peer::new();
    peer.post(1, &[])
        .frame(frame::HEADERS, frame::END_STREAM, 1, &[]);
    assert!(peer.conn.give_up_block().is_none(), "its request is known");
    assert_eq!(peer.told(), ["1 RST PROTOCOL_ERROR"]);
    assert_eq!(peer.events(), ["1 POST / HTTP/2.0", "1 reset"]);
}

#[test]
fn trailers_that_are_given_up_do_not_reset_a_stream_that_was_reset_before() {
    let mut peer = Peer::new();
    peer.post(1, &[])
        .frame(frame::HEADERS, frame::END_STREAM, 1, &[]);
    peer.conn.reset(1, CANCEL);
    assert!(peer.conn.give_up_block().is_none());
    assert_eq!(peer.told(), ["1 RST CANCEL"]);
}

/// nginx's log has the fields of an incomplete block, and no request line.
#[test]
fn header_block_that_is_given_up_leaves_the_fields_that_came() {
    let mut peer = Peer::new();
    let own = [("user-agent", "agent")];
    let block = peer.block_of(&[&with_path("GET", "/x?y"), &own[..]].concat());
    for cut in 0..=block.len() {
        let mut peer = Peer::new();
        peer.frame(frame::HEADERS, frame::END_STREAM, 1, &block[..cut]);
        let known = peer
            .conn
            .unfinished_request()
            .expect("a request is awaited");
        let head = peer.conn.give_up_block().expect("a request is awaited");
        assert_eq!(head, known);
        assert!(head.line.is_empty() && head.fault.is_none());
        assert_eq!(head.size_bytes, cut as u64);
        let is_whole = cut == block.len();
        assert_eq!(head.named(b"user-agent").count(), usize::from(is_whole));
        if is_whole {
            assert_eq!(head.bytes(head.target), b"/x?y");
            assert_eq!(head.bytes(head.method_name), b"GET");
            assert!(head.authority.get().is_some());
        }
        assert!(peer.conn.unfinished_request().is_none(), "it is given up");
    }
}
