//! Limits, each at the limit and one past it; floods.

use super::*;
use crate::http::Fault;

#[test]
fn streams_beyond_the_limit_are_refused() {
    let mut peer = Peer::with(Settings {
        max_concurrent_streams: 2,
        ..Settings::default()
    });
    let own = [("x-own", "1")];
    let fields = [&with_path("GET", "/"), &own[..]].concat();
    peer.post(1, &[]).get(3, "/").headers(5, &fields, true);
    assert_eq!(peer.told(), ["5 RST REFUSED_STREAM"]);
    assert_eq!(peer.events(), ["1 POST / HTTP/2.0", "3 GET / HTTP/2.0"]);
    // A stream counts until both sides have ended.
    peer.answer(1, &[]).told();
    peer.get(7, "/");
    assert_eq!(peer.told(), ["7 RST REFUSED_STREAM"]);
    peer.data(1, b"", true).headers(9, &fields, true);
    assert_eq!(
        peer.head().named(b"x-own").count(),
        1,
        "learnt from a refused one"
    );
}

/// The fault of a request with these fields besides `:method`, `:scheme`, `:path` and `:authority`, which have 38 bytes.
fn fault_of(settings: &Settings, more: &[(&str, &str)]) -> Option<Fault> {
    let mut peer = Peer::with(settings.clone());
    peer.headers(1, &[&with_path("GET", "/"), more].concat(), true);
    peer.head().fault
}

#[test]
fn all_fields_together_have_a_limit() {
    let settings = Settings {
        header_bytes: 38 + 10,
        ..Settings::default()
    };
    let pseudo: usize = with_path("GET", "/")
        .iter()
        .map(|(n, v)| n.len() + v.len())
        .sum();
    assert_eq!(pseudo, 38);
    assert_eq!(fault_of(&settings, &[("12345", "12345")]), None);
    let too_long = Some(Fault::HeaderTooLarge);
    assert_eq!(fault_of(&settings, &[("12345", "123456")]), too_long);
    assert_eq!(
        fault_of(&settings, &[("cookie", "1234"), ("x", "")]),
        too_long
    );
}

#[test]
fn name_and_value_have_a_limit_each() {
    let settings = Settings {
        field_bytes: 10,
        ..Settings::default()
    };
    assert_eq!(fault_of(&settings, &[("1234567890", "1234567890")]), None);
    let too_long = Some(Fault::HeaderTooLarge);
    assert_eq!(fault_of(&settings, &[("12345678901", "")]), too_long);
    assert_eq!(fault_of(&settings, &[("x", "12345678901")]), too_long);
}

#[test]
fn fields_are_counted_without_pseudo_fields_and_cookies() {
    let settings = Settings {
        max_headers: 2,
        ..Settings::default()
    };
    let two = [
        ("a", "1"),
        ("cookie", "a"),
        ("x_y", "dropped"),
        ("b", "2"),
        ("cookie", "b"),
    ];
    assert_eq!(fault_of(&settings, &two), None);
    let three = [("a", "1"), ("b", "2"), ("c", "3")];
    assert_eq!(fault_of(&settings, &three), Some(Fault::TooManyHeaders));
}

#[test]
fn trailers_have_the_limit_of_all_fields() {
    let settings = Settings {
        header_bytes: 60,
        ..Settings::default()
    };
    for (len, fits) in [(59, true), (60, false)] {
        let mut peer = Peer::with(settings.clone());
        let value = "v".repeat(len);
        peer.post(1, &[]).headers(1, &[("x", &value)], true);
        let last = peer.events().pop().expect("an event");
        assert_eq!(last == "1 end", fits, "{last}");
    }
}

/// Repeated references to one long entry are refused, and cost no memory.
#[test]
fn compressed_bomb_is_refused_without_being_stored() {
    let mut peer = Peer::new();
    let long = "v".repeat(4000);
    let fields = [&with_path("GET", "/"), &[("x", long.as_str())][..]].concat();
    peer.headers(1, &fields, true);
    assert_eq!(peer.head().fault, None);
    // Index 62 is that entry.
    let references = vec![0x80 | 62; 16_384];
    for name in ["", "cookie"] {
        let mut block = peer.block_of(&with_path("GET", "/"));
        if name == "cookie" {
            // A cookie of 4000 bytes replaces it, and is the entry referred to.
            block.extend_from_slice(&[0x60, 0x7f, 0xa1, 0x1e]);
            block.extend_from_slice(long.as_bytes());
        }
        block.extend_from_slice(&references[..16_384 - block.len()]);
        let id = peer.conn.last_stream + 2;
        peer.frame(
            frame::HEADERS,
            frame::END_HEADERS | frame::END_STREAM,
            id,
            &block,
        );
        let head = peer.head();
        assert_eq!(head.fault, Some(Fault::HeaderTooLarge), "{name}");
        assert!(
            head.arena.capacity() < 64 << 10,
            "{}",
            head.arena.capacity()
        );
    }
}

#[test]
fn header_block_in_pieces_has_a_limit() {
    let settings = Settings {
        header_bytes: 1000,
        ..Settings::default()
    };
    let most = 1000 + (16 << 10);
    for (extra, flood) in [(0, false), (1, true)] {
        let mut peer = Peer::with(settings.clone());
        peer.frame(frame::HEADERS, 0, 1, &[0x82; 16_384]);
        peer.frame(
            frame::CONTINUATION,
            0,
            1,
            &vec![0x82; most - 16_384 + extra],
        );
        assert_eq!(
            peer.events().last().is_some_and(|e| e == "HeaderFlood"),
            flood
        );
    }
}

/// How many times a frame can be sent before the connection ends, up to 50,000.
fn times(settings: &Settings, frame: impl Fn(&mut Peer, u32)) -> u32 {
    let mut peer = Peer::with(settings.clone());
    peer.post(1, &[]);
    let mut n = 0;
    while n < 50_000 && peer.conn.wants_input() {
        frame(&mut peer, n);
        peer.events();
        peer.told();
        n += 1;
    }
    n
}

#[test]
fn floods_end_the_connection() {
    let defaults = Settings::default();
    let flood = |send: &dyn Fn(&mut Peer, u32)| times(&defaults, send);
    assert_eq!(
        flood(&|peer, _| _ = peer.frame(frame::SETTINGS, 0, 0, &[])),
        1001
    );
    assert_eq!(
        flood(&|peer, _| _ = peer.frame(frame::SETTINGS, frame::ACK, 0, &[])),
        1001
    );
    assert_eq!(
        flood(&|peer, _| _ = peer.frame(frame::PING, 0, 0, &[0; 8])),
        1001
    );
    assert_eq!(
        flood(&|peer, _| _ = peer.frame(frame::PRIORITY, 0, 1, &[0; 5])),
        1001
    );
    assert_eq!(flood(&|peer, _| _ = peer.frame(0xff, 0, 1, &[0; 5])), 1001);
    assert_eq!(flood(&|peer, _| _ = peer.data(1, b"", false)), 1001);
    assert_eq!(flood(&|peer, _| _ = peer.window(1, 1)), 1001);
    assert_eq!(
        flood(&|peer, _| _ = peer.frame(frame::GOAWAY, 0, 0, &[0; 8])),
        1001
    );
    let update = |peer: &mut Peer, n: u32| {
        peer.frame(frame::PRIORITY_UPDATE, 0, 0, &(2 * n + 1).to_be_bytes());
    };
    assert_eq!(flood(&update), 1001);
    let rapid_reset = |peer: &mut Peer, n: u32| {
        peer.get(2 * n + 3, "/").cancel(2 * n + 3);
    };
    assert_eq!(flood(&rapid_reset), 1001);
    let overflow = |peer: &mut Peer, n: u32| {
        peer.get(2 * n + 3, "/").window(2 * n + 3, (1 << 31) - 1);
    };
    assert!(flood(&overflow) <= 501);
    let refused = |peer: &mut Peer, n: u32| _ = peer.headers(2 * n + 3, &[("x", "1")], false);
    let few = Settings {
        max_concurrent_streams: 1,
        ..Settings::default()
    };
    assert_eq!(times(&few, refused), 1001);
}

#[test]
fn empty_continuations_end_the_connection_soon() {
    let defaults = Settings::default();
    let n = times(&defaults, |peer, n| {
        let kind = if n == 0 {
            frame::HEADERS
        } else {
            frame::CONTINUATION
        };
        peer.frame(kind, 0, 3, &[]);
    });
    assert!(n <= 100, "{n}");
}

#[test]
fn short_continuations_of_a_block_have_a_limit_whatever_the_budget() {
    let settings = Settings {
        abuse_budget: 1_000_000,
        ..Settings::default()
    };
    for (bytes, count, last) in [
        (0, 99, None),
        (0, 100, Some("Flood")),
        (1, 99, None),
        (1, 100, Some("Flood")),
        (255, 100, Some("Flood")),
        (256, 150, None),
    ] {
        let mut peer = Peer::with(settings.clone());
        peer.frame(frame::HEADERS, 0, 1, &[]);
        for _ in 0..count {
            peer.frame(frame::CONTINUATION, 0, 1, &vec![0x82; bytes]);
        }
        let events = peer.events();
        let said = events.last().map(String::as_str);
        assert_eq!(said, last, "{count} of {bytes} bytes");
    }
    // The frame that ends the block is not counted, and the next block begins anew.
    let mut peer = Peer::with(settings);
    for stream in [1, 3] {
        peer.frame(frame::HEADERS, 0, stream, &[0x82, 0x84, 0x86]);
        for _ in 0..99 {
            peer.frame(frame::CONTINUATION, 0, stream, &[]);
        }
        peer.frame(frame::CONTINUATION, frame::END_HEADERS, stream, &[]);
    }
    assert_eq!(peer.events().len(), 2);
}

#[test]
fn budget_is_a_setting() {
    let settings = Settings {
        abuse_budget: 5,
        ..Settings::default()
    };
    let ping = |peer: &mut Peer, _| _ = peer.frame(frame::PING, 0, 0, &[0; 8]);
    assert_eq!(times(&settings, ping), 6);
}

#[test]
fn time_and_progress_forgive() {
    let defaults = Settings::default();
    let in_time = |peer: &mut Peer, n| {
        peer.frame(frame::PING, 0, 0, &[0; 8]);
        peer.conn.tick(u64::from(n) * 1000);
    };
    assert_eq!(times(&defaults, in_time), 50_000);
    let upload = |peer: &mut Peer, _| {
        peer.data(1, &[0; 300], false)
            .frame(frame::PING, 0, 0, &[0; 8]);
        peer.conn.consumed(1, 300);
    };
    assert_eq!(times(&defaults, upload), 50_000);
    // Short messages of a client are no abuse, and neither are short answers to them.
    let chat = |peer: &mut Peer, n| {
        if n == 0 {
            peer.answer(1, &[]);
        }
        peer.bodies.insert(1, [b"hi".to_vec(), Vec::new()].into());
        peer.conn.resume(1);
        peer.data(1, b"hi", false).window(1, 2).window(0, 2);
        peer.conn.consumed(1, 2);
    };
    assert_eq!(times(&defaults, chat), 50_000);
    let requests = |peer: &mut Peer, n: u32| {
        let id = 2 * n + 3;
        peer.get(id, "/").answer(id, &[]).told();
        peer.cancel(id);
    };
    assert_eq!(times(&defaults, requests), 50_000);
}

/// A client that takes a byte at a time makes work and no progress.
#[test]
fn windows_of_a_byte_are_paid_for() {
    let defaults = Settings::default();
    let dribble = |peer: &mut Peer, n| {
        if n == 0 {
            peer.setting(4, 0);
            peer.get(3, "/").answer(3, &[&[b'x'; 1_000_000]]);
        }
        peer.window(3, 1);
    };
    assert!(times(&defaults, dribble) <= 1001);
}

/// One SETTINGS frame opens the windows of all streams by a byte.
#[test]
fn frames_of_a_byte_in_answer_to_settings_are_paid_for() {
    let defaults = Settings::default();
    let dribble = |peer: &mut Peer, n: u32| {
        if n == 0 {
            peer.setting(4, 0);
            for id in (1..=100).map(|n| 2 * n + 1) {
                peer.get(id, "/").answer(id, &[&[b'x'; 10_000]]);
            }
        }
        peer.setting(4, n + 1);
    };
    let frames = times(&defaults, dribble);
    assert!((9..=11).contains(&frames), "{frames} frames of settings");
    let large = |peer: &mut Peer, n: u32| {
        if n == 0 {
            peer.setting(4, 0);
            peer.get(3, "/").answer(3, &[&[b'x'; 1_000_000]]);
        }
        peer.setting(4, 300 * (n + 1)).window(0, 300);
    };
    assert!(times(&defaults, large) > 3000);
}

#[test]
fn nothing_is_read_while_answers_wait() {
    let mut peer = Peer::with(Settings {
        abuse_budget: 1 << 20,
        ..Settings::default()
    });
    let ping = frame_of(frame::PING, 0, 0, &[0; 8]);
    let most = (64 << 10) / 17;
    peer.receive(&ping.repeat(most));
    assert!(peer.conn.wants_input());
    peer.receive(&ping);
    assert!(!peer.conn.wants_input());
    peer.told();
    assert!(peer.conn.wants_input());
}

#[test]
fn streams_that_were_reset_are_remembered_up_to_a_limit() {
    let mut peer = Peer::with(Settings {
        abuse_budget: 1 << 20,
        ..Settings::default()
    });
    for n in 0..257 {
        peer.post(2 * n + 1, &[]);
        peer.conn.reset(2 * n + 1, CANCEL);
    }
    peer.data(3, b"x", true);
    assert!(peer.conn.wants_input(), "one of the last 256");
    peer.data(1, b"x", true);
    assert_eq!(peer.events().pop().as_deref(), Some("ClosedStream"));
}
