//! Server push (RFC 9113 sections 5.1.2, 6.6, 8.4): promises, their conditions, and the client's options.

use super::*;
use crate::h2::push::{LAST_PUSH, MAX_TARGET_BYTES};

const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;

impl Peer {
    /// Takes the pending request, promises `targets` with it and answers it; returns the number of promises made.
    fn answer_with_pushes(&mut self, stream: u32, targets: &[&str]) -> usize {
        let head = self.head();
        let promised = |target: &&&str| self.conn.push(stream, target.as_bytes(), &head) > 0;
        let count = targets.iter().filter(promised).count();
        self.answer_with(stream, &response(204, BodyLength::None), &[]);
        count
    }

    /// How many of three targets are promised with a request of this stream.
    fn promises(&mut self, stream: u32) -> usize {
        self.get(stream, "/")
            .answer_with_pushes(stream, &["/a", "/b", "/c"])
    }
}

#[test]
fn promise_comes_before_the_head_and_has_a_response_of_its_own() {
    let mut peer = Peer::new();
    let more = [
        ("accept-encoding", "gzip"),
        ("accept-language", "de"),
        ("user-agent", "x"),
        ("cookie", "secret"),
    ];
    peer.headers(1, &[&with_path("GET", "/")[..], &more].concat(), true);
    assert_eq!(peer.answer_with_pushes(1, &["/style.css?v=1"]), 1);
    assert_eq!(peer.events(), ["2 GET /style.css?v=1 HTTP/2.0"]);
    peer.answer(2, &[b"css"]);
    let told = [
        "1 PROMISE 2 :method=GET :path=/style.css?v=1 :scheme=http :authority=h accept-encoding=gzip \
         accept-language=de user-agent=x",
        "1 HEADERS 204 END",
        "2 HEADERS 200",
        "2 DATA css END",
    ];
    assert_eq!(peer.told(), told);
    assert_eq!(peer.finished, [1, 2]);
}

#[test]
fn promised_head_is_that_of_a_request() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer_with_pushes(1, &["/a"]);
    let head = peer.head();
    assert_eq!(head.method, crate::http::Method::Get);
    assert_eq!(head.field(FieldId::Host), Some(&b"h"[..]));
    assert_eq!(head.body, BodyLength::None);
    assert!(head.fault.is_none() && head.size_bytes > 0);
}

#[test]
fn response_goes_ahead_of_what_belongs_to_it() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let head = peer.head();
    assert!(peer.conn.push(1, b"/a", &head) > 0 && peer.conn.push(1, b"/b", &head) > 0);
    peer.answer(4, &[b"4"]).answer(2, &[FULL, b"2"]);
    peer.answer(1, &[FULL, b"1"]);
    let told = peer.told();
    let data: Vec<_> = told.iter().filter(|line| line.contains("DATA")).collect();
    assert_eq!(
        data,
        [
            "1 DATA 1000",
            "1 DATA 1 END",
            "2 DATA 1000",
            "2 DATA 2 END",
            "4 DATA 4 END"
        ]
    );
}

#[test]
fn client_may_forbid_pushes_and_allow_them_again() {
    let mut peer = Peer::new();
    peer.setting(ENABLE_PUSH, 0);
    assert!(!peer.conn.may_push(1));
    assert_eq!(peer.promises(1), 0);
    peer.setting(ENABLE_PUSH, 1);
    assert!(peer.conn.may_push(3));
    assert_eq!(peer.promises(3), 3);
    peer.setting(ENABLE_PUSH, 2);
    assert_eq!(
        peer.told().last().expect("an end"),
        "GOAWAY 3 PROTOCOL_ERROR"
    );
}

#[test]
fn no_more_streams_are_pushed_than_either_side_allows() {
    for (ours, theirs, expected) in [(2, 100, 2), (10, 2, 2), (10, 0, 0), (0, 10, 0), (3, 3, 3)] {
        let mut peer = Peer::with(Settings {
            max_concurrent_pushes: ours,
            ..Settings::default()
        });
        peer.setting(MAX_CONCURRENT_STREAMS, theirs);
        assert_eq!(peer.promises(1), expected, "{ours} {theirs}");
    }
}

#[test]
fn ended_push_makes_room_for_another() {
    let mut peer = Peer::new();
    peer.setting(MAX_CONCURRENT_STREAMS, 1);
    assert_eq!(peer.promises(1), 1);
    peer.head();
    assert_eq!(peer.promises(3), 0);
    peer.answer(2, &[b"x"]).told();
    assert_eq!(peer.promises(5), 1);
    peer.head();
    peer.cancel(4);
    assert_eq!(peer.events(), ["4 reset"]);
    assert_eq!(peer.promises(7), 1);
}

#[test]
fn pushed_streams_take_no_place_of_the_clients() {
    let mut peer = Peer::with(Settings {
        max_concurrent_streams: 1,
        ..Settings::default()
    });
    assert_eq!(peer.promises(1), 3);
    assert_eq!(peer.events().len(), 3);
    peer.told();
    peer.get(3, "/");
    assert_eq!(peer.events(), ["3 GET / HTTP/2.0"]);
}

#[test]
fn reset_of_a_pushed_stream_ends_that_alone() {
    let mut peer = Peer::new();
    assert_eq!(peer.promises(1), 3);
    assert_eq!(peer.events().len(), 3);
    peer.cancel(2).cancel(2);
    assert_eq!(peer.events(), ["2 reset"]);
    peer.answer(4, &[b"x"]);
    let told = peer.told();
    assert_eq!(told[told.len() - 2..], ["4 HEADERS 200", "4 DATA x END"]);
    // A completely sent response is gone already.
    peer.cancel(4).window(4, 1);
    assert!(peer.events().is_empty() && peer.told().is_empty());
}

#[test]
fn frames_on_streams_that_were_not_promised_end_the_connection() {
    for (kind, payload) in [
        (frame::RST_STREAM, &[0, 0, 0, 8][..]),
        (frame::WINDOW_UPDATE, &[0, 0, 0, 8]),
        (frame::PRIORITY_UPDATE, &[0, 0, 0, 4]),
    ] {
        let mut peer = Peer::new();
        peer.get(1, "/").answer_with_pushes(1, &["/a"]);
        peer.told();
        let on = if kind == frame::PRIORITY_UPDATE { 0 } else { 4 };
        peer.frame(kind, 0, on, payload);
        assert_eq!(peer.told(), ["GOAWAY 1 PROTOCOL_ERROR"], "{kind}");
    }
}

#[test]
fn request_on_a_pushed_stream_ends_the_connection() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer_with_pushes(1, &["/a"]);
    peer.told();
    peer.get(2, "/");
    assert_eq!(peer.told(), ["GOAWAY 1 PROTOCOL_ERROR"]);
}

#[test]
fn priority_of_a_pushed_stream_may_change() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer_with_pushes(1, &["/a", "/b"]);
    peer.events();
    peer.told();
    let update = [&4_u32.to_be_bytes()[..], b"u=0"].concat();
    peer.frame(frame::PRIORITY_UPDATE, 0, 0, &update);
    peer.answer(2, &[b"2"]).answer(4, &[b"4"]);
    let told = peer.told();
    assert_eq!(told[2..], ["4 DATA 4 END", "2 DATA 2 END"]);
}

#[test]
fn nothing_is_pushed_with_a_push() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer_with_pushes(1, &["/a"]);
    assert!(!peer.conn.may_push(2));
    assert_eq!(peer.answer_with_pushes(2, &["/b"]), 0);
}

#[test]
fn nothing_is_pushed_once_the_end_is_told() {
    let mut peer = Peer::new();
    peer.frame(frame::GOAWAY, 0, 0, &[0; 8]);
    assert_eq!(peer.promises(1), 0);
    let mut peer = Peer::new();
    peer.get(1, "/").conn.drain();
    assert_eq!(peer.answer_with_pushes(1, &["/a"]), 0);
    let mut peer = Peer::new();
    peer.get(1, "/").conn.end();
    assert_eq!(peer.answer_with_pushes(1, &["/a"]), 0);
}

#[test]
fn what_was_promised_before_the_end_is_kept() {
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/");
    let (first, _) = (peer.head(), peer.head());
    for target in [b"/a", b"/b", b"/c"] {
        assert!(peer.conn.push(1, target, &first) > 0);
    }
    peer.conn.end_after(1);
    assert_eq!(peer.events().len(), 3);
    peer.answer(1, &[]).answer(2, &[]).answer(4, &[]);
    peer.told();
    assert!(!peer.conn.is_over());
    peer.answer(6, &[]).told();
    assert!(peer.conn.is_over());
}

#[test]
fn numbers_of_pushed_streams_end() {
    let mut peer = Peer::new();
    peer.conn.protocol.pushes.last = LAST_PUSH - 2;
    assert_eq!(peer.promises(1), 1);
    let told = peer.told();
    assert!(told[0].starts_with("1 PROMISE 2147483646 "), "{told:?}");
    assert_eq!(peer.events(), ["2147483646 GET /a HTTP/2.0"]);
    peer.answer(LAST_PUSH, &[b"x"]).told();
    assert_eq!(peer.promises(3), 0);
}

#[test]
fn only_paths_are_pushed() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let head = peer.head();
    for target in ["", "a", "http://h/", "/a b", "/a\n", "/a#b", "/\x7f", "*"] {
        assert_eq!(peer.conn.push(1, target.as_bytes(), &head), 0, "{target:?}");
    }
    let mut longest = vec![b'/'; MAX_TARGET_BYTES];
    assert!(peer.conn.push(1, &longest, &head) > MAX_TARGET_BYTES as u64 / 2);
    longest.push(b'x');
    assert_eq!(peer.conn.push(1, &longest, &head), 0);
    let faulty = RequestHead {
        fault: Some(crate::http::Fault::BadHeader),
        ..head.clone()
    };
    assert_eq!(peer.conn.push(1, b"/a", &faulty), 0);
    // Without a host the target is ambiguous, and after the head it is too late.
    assert_eq!(peer.conn.push(1, b"/a", &RequestHead::default()), 0);
    peer.answer(1, &[]);
    assert_eq!(peer.conn.push(1, b"/a", &head), 0);
}

#[test]
fn long_promise_is_continued() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let head = peer.head();
    // Larger than a frame in any code, and than a request may be.
    let target = format!("/{}", "~".repeat(40_000));
    let bytes = peer.conn.push(1, target.as_bytes(), &head);
    assert_eq!(peer.conn.sent_bytes(1), bytes);
    let told = peer.told();
    assert!(told[0].contains(&target), "{} bytes", told[0].len());
    assert_eq!(peer.head().fault, None);
}

#[test]
fn promises_count_for_the_response_that_they_come_with() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let head = peer.head();
    let promised = peer.conn.push(1, b"/a", &head);
    let plan = SendOptions {
        trailers: false,
        chunk_bytes: bed::CHUNK_BYTES,
    };
    let told = peer
        .conn
        .send_head(1, &response(204, BodyLength::None), plan);
    let sent = peer.conn.advance(u64::MAX, 1);
    let bytes = promised + told;
    assert_eq!(sent, SendAction::Sent { stream: 1, bytes });
}
