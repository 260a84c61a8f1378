//! Replies: their header blocks, their frames and their order.

use super::*;
use crate::mux::tests::sending;

#[test]
fn settings_and_a_window_come_first() {
    let mut peer = Peer::silent(Settings::default());
    let greeting = ["SETTINGS 4=100 7=65536", "0 WINDOW 2147418111"];
    assert_eq!(peer.told(), greeting);
    let mut peer = Peer::silent(Settings {
        max_concurrent_streams: 7,
        preread_bytes: 1 << 20,
        ..Settings::default()
    });
    assert_eq!(peer.told()[0], "SETTINGS 4=7 7=1048576");
}

#[test]
fn reply_and_data_end_with_the_last_byte() {
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/");
    peer.answer(1, &[b"hello", b"world"]).answer(3, &[]);
    let told = peer.told();
    let expected = [
        "1 REPLY 200",
        "3 REPLY 200",
        "3 DATA - END",
        "1 DATA helloworld END",
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for line in expected {
        assert!(told.iter().any(|told| told == line), "{line} in {told:?}");
    }
    peer.finished.sort_unstable();
    assert_eq!(peer.finished, [1, 3]);
}

/// As nginx 1.9.4: the status line of a server is passed on, and a response without one has the number alone.
#[test]
fn a_reason_phrase_that_was_set_stands_beside_the_status() {
    let mut peer = Peer::new();
    let mut head = response(204, BodyLength::None);
    for (stream, phrase, told) in [
        (1, "", "1 REPLY 204 END"),
        (3, "No Content", "3 REPLY 204 No Content END"),
        (5, "Gone", "5 REPLY 204 Gone END"),
    ] {
        head.set_phrase(204, phrase.as_bytes());
        peer.get(stream, "/").answer_with(stream, &head, &[]);
        assert_eq!(peer.told(), [told]);
    }
    let plain = response(204, BodyLength::None);
    peer.get(7, "/").answer_with(7, &plain, &[]);
    assert_eq!(peer.told(), ["7 REPLY 204 END"]);
}

#[test]
fn names_are_lower_case_and_stand_once() {
    for headers_level in [0, 1, 9] {
        let mut peer = Peer::with(Settings {
            headers_level,
            ..Settings::default()
        });
        let mut head = response(204, BodyLength::None);
        head.push(b"Set-Cookie", b"a=1");
        head.push(b"X-Foo", b"");
        head.push(b"Connection", b"close");
        head.push(b"X-FOO", b"v1");
        head.push(b"Set-Cookie", b"b=2");
        head.push(b"x-foo", b"v2");
        for stream in [1, 3] {
            peer.get(stream, "/").answer_with(stream, &head, &[]);
            let expected = format!("{stream} REPLY 204 set-cookie=a=1|b=2 x-foo=v1|v2 END");
            assert_eq!(peer.told(), [expected], "level {headers_level}");
        }
    }
}

#[test]
fn codes_of_our_own_leave_as_400() {
    let mut peer = Peer::new();
    for (stream, status) in [(1, 494), (3, 497), (5, 499)] {
        let head = response(status, BodyLength::Length(0));
        peer.get(stream, "/").answer_with(stream, &head, &[]);
    }
    let expected = ["1 REPLY 400 END", "3 REPLY 400 END", "5 REPLY 499 END"];
    assert_eq!(peer.told(), expected);
}

#[test]
fn answers_to_head_have_no_body() {
    let mut peer = Peer::new();
    peer.syn(1, &with_path("HEAD", "/"), true);
    peer.answer_with(1, &response(200, BodyLength::Length(5)), &[b"hello"]);
    assert_eq!(peer.told(), ["1 REPLY 200 END"]);
}

#[test]
fn trailers_leave_in_headers() {
    let mut peer = Peer::new();
    let mut trailers = ResponseHead::default();
    trailers.push(b"X-Sum", b"9");
    peer.trailers.insert(1, trailers);
    peer.get(1, "/").answer(1, &[b"hello"]);
    let expected = ["1 REPLY 200", "1 DATA hello", "1 HEADERS x-sum=9 END"];
    assert_eq!(peer.told(), expected);
}

#[test]
fn frames_are_as_long_as_planned() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[FULL, FULL, b"end"]);
    let expected = [
        "1 REPLY 200",
        "1 DATA 1000",
        "1 DATA 1000",
        "1 DATA end END",
    ];
    assert_eq!(peer.told(), expected);
}

#[test]
fn urgent_streams_first_and_equal_ones_in_turns() {
    let mut peer = Peer::new();
    peer.get_with(1, 7)
        .get_with(3, 2)
        .get_with(5, 2)
        .get_with(7, 0);
    for stream in [1, 3, 5, 7] {
        peer.answer(stream, &[FULL, FULL]);
    }
    let told = peer.told();
    let data: Vec<&str> = told
        .iter()
        .filter(|line| line.contains("DATA"))
        .map(|line| &line[..1])
        .collect();
    let whole: String = data.concat();
    let (urgent, rest) = whole.split_at(whole.rfind('7').expect("it is sent") + 1);
    assert!(urgent.chars().all(|stream| stream == '7'), "{whole}");
    let (equal, last) = rest.split_at(rest.find('1').expect("it is sent"));
    assert!(
        equal.starts_with("35") || equal.starts_with("53"),
        "{whole}"
    );
    assert!(last.chars().all(|stream| stream == '1'), "{whole}");
}

#[test]
fn source_that_stalls_is_asked_again_when_it_has_more() {
    sending::source_that_stalls_is_asked_again_when_it_has_more::<Codec>();
}

#[test]
fn stream_that_is_broken_off_is_reset_behind_what_waits() {
    sending::stream_that_is_broken_off_is_reset_behind_what_waits::<Codec>();
}
