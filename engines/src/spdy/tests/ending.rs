//! How a connection and its streams end before their time.

use super::*;

#[test]
fn end_lets_running_streams_finish_and_takes_no_more() {
    let mut peer = Peer::new();
    peer.get(1, "/a");
    peer.conn.drain();
    assert!(peer.conn.is_ending() && !peer.conn.is_over());
    peer.get(3, "/b").post(5, &[]).data(5, b"x", true);
    assert_eq!(peer.events(), ["1 GET /a SPDY/3.1"]);
    peer.answer(1, &[b"x"]);
    assert_eq!(peer.told(), ["GOAWAY 1 OK", "1 REPLY 200", "1 DATA x END"]);
    assert!(peer.conn.is_over());
}

#[test]
fn later_streams_are_forgotten() {
    let mut peer = Peer::new();
    peer.get(1, "/a").get(3, "/b").get(5, "/c");
    peer.conn.end_after(3);
    assert_eq!(peer.events(), ["1 GET /a SPDY/3.1", "3 GET /b SPDY/3.1"]);
    peer.answer(5, &[b"x"]).answer(3, &[]).answer(1, &[]);
    let told = peer.told();
    assert_eq!(told[0], "GOAWAY 3 OK");
    assert!(told.iter().all(|line| !line.starts_with('5')), "{told:?}");
    assert!(peer.conn.is_over());
}

/// An announced value does not grow.
#[test]
fn failure_after_the_end_names_the_same_stream() {
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/");
    peer.conn.end_after(1);
    peer.receive(&[0x80, 9, 0, 0, 0, 0, 0, 0]);
    assert_eq!(peer.told(), ["GOAWAY 1 OK", "GOAWAY 1 PROTOCOL_ERROR"]);
}

#[test]
fn server_takes_a_stream_back() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[b"", b"x"]);
    assert_eq!(peer.told(), ["1 REPLY 200"]);
    peer.conn.reset(1, INTERNAL_ERROR);
    peer.conn.reset(1, INTERNAL_ERROR);
    peer.conn.resume(1);
    assert_eq!(peer.told(), ["1 RST INTERNAL_ERROR"]);
}

#[test]
fn block_that_does_not_come_is_given_up_and_still_read() {
    let mut peer = Peer::new();
    assert!(peer.conn.give_up_block().is_none(), "none is awaited");
    let block = peer.block_of(&with_path("GET", "/late"));
    let frame = syn_frame(3, 0, &block, true);
    let (front, back) = frame.split_at(20);
    peer.receive(&front[..11]);
    assert_eq!(peer.conn.awaited_block(), None, "its number is not here");
    assert!(peer.conn.is_incomplete());
    peer.receive(&front[11..]);
    assert_eq!(peer.conn.awaited_block(), Some(3));
    assert!(peer.conn.give_up_block().is_some() && peer.conn.give_up_block().is_none());
    assert_eq!(peer.told(), ["3 RST PROTOCOL_ERROR"]);
    peer.receive(back).get(5, "/late");
    assert_eq!(peer.events(), ["5 GET /late SPDY/3.1"]);
    assert!(peer.told().is_empty() && !peer.conn.is_incomplete());
}

#[test]
fn end_of_input_is_told_once() {
    let mut peer = Peer::new();
    peer.conn.receive_eof();
    peer.conn.receive_eof();
    assert_eq!(peer.events(), ["eof"]);
    assert!(!peer.conn.wants_input());
}

#[test]
fn connection_that_rests_holds_no_context_and_goes_on() {
    for level in [0, 6] {
        let mut peer = Peer::with(Settings {
            headers_level: level,
            ..Settings::default()
        });
        assert!(!peer.conn.can_shrink(), "nothing has come");
        for stream in [1, 3, 5] {
            peer.get(stream, "/the/same/path").answer(stream, &[b"x"]);
            let expected = [
                format!("{stream} REPLY 200"),
                format!("{stream} DATA x END"),
            ];
            assert_eq!(peer.told(), expected, "level {level}");
            if stream == 3 {
                assert!(peer.conn.can_shrink());
                peer.conn.shrink();
                assert!(!peer.conn.can_shrink());
            }
        }
    }
}
