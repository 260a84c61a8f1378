//! Limits, at each and one past it.

use super::*;
use crate::http::Fault;

#[test]
fn streams_beyond_the_limit_are_refused_and_their_blocks_still_read() {
    let mut peer = Peer::with(Settings {
        max_concurrent_streams: 2,
        ..Settings::default()
    });
    peer.get(1, "/a").get(3, "/b");
    assert!(peer.told().is_empty());
    peer.get(5, "/c");
    assert_eq!(peer.told(), ["5 RST REFUSED_STREAM"]);
    peer.answer(1, &[]);
    peer.told();
    // Its context continues after the refused block.
    peer.get(7, "/c");
    let expected = [
        "1 GET /a SPDY/3.1",
        "3 GET /b SPDY/3.1",
        "7 GET /c SPDY/3.1",
    ];
    assert_eq!(peer.events(), expected);
}

fn fault_of(settings: Settings, more: &[(&str, &str)]) -> Option<Fault> {
    let mut peer = Peer::with(settings);
    let fields = [&with_path("GET", "/")[..], more].concat();
    peer.syn(1, &fields, true);
    peer.head().fault
}

#[test]
fn fields_end_at_their_limits() {
    let field = |len: usize| {
        let settings = Settings {
            field_bytes: 100,
            ..Settings::default()
        };
        fault_of(settings, &[("a", &"x".repeat(len))])
    };
    assert_eq!(field(100), None);
    assert_eq!(field(101), Some(Fault::HeaderTooLarge));
    let fixed: usize = with_path("GET", "/")
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    let all = |len: usize| {
        let settings = Settings {
            header_bytes: fixed + 100,
            ..Settings::default()
        };
        fault_of(settings, &[("a", &"x".repeat(len))])
    };
    assert_eq!(all(99), None);
    assert_eq!(all(100), Some(Fault::HeaderTooLarge));
    let count = |most| {
        let settings = Settings {
            max_headers: most,
            ..Settings::default()
        };
        fault_of(settings, &[("a", "1"), ("b", "2\x003")])
    };
    assert_eq!(count(3), None);
    assert_eq!(count(2), Some(Fault::TooManyHeaders));
}

/// A block of `len` bytes that inflates from very few.
fn bomb(peer: &mut Peer, len: usize) -> Vec<u8> {
    let mut fields = with_path("GET", "/").to_vec();
    let value = "x".repeat(len - text_of(&fields).len() - 9);
    fields.push(("a", &value));
    let block = peer.block_of(&fields);
    assert!(block.len() < 3000, "a bomb is small");
    block
}

#[test]
fn blocks_that_inflate_too_far_are_answered_and_beyond_that_end_the_connection() {
    const KEPT: usize = (32 + 16) << 10;
    const MOST: usize = KEPT + (256 << 10);
    for len in [KEPT, KEPT + 1, MOST] {
        let mut peer = Peer::new();
        let block = bomb(&mut peer, len);
        peer.syn_block(1, 0, &block, true);
        assert_eq!(peer.head().fault, Some(Fault::HeaderTooLarge), "{len}");
        assert!(
            peer.conn.protocol.inflated.capacity() <= 4096,
            "memory is given back"
        );
        peer.get(3, "/");
        assert_eq!(peer.events(), ["3 GET / SPDY/3.1"], "{len}");
    }
    let mut peer = Peer::new();
    let block = bomb(&mut peer, MOST + 1);
    peer.syn_block(1, 0, &block, true);
    assert_eq!(peer.events(), ["HeaderFlood"]);
}

#[test]
fn blocks_are_not_waited_for_when_their_frame_is_too_long() {
    let most = 10 + (48 << 10);
    let head = |len: usize| {
        let mut out = Vec::new();
        put_control(&mut out, frame::SYN_STREAM, 0, len);
        out
    };
    let mut peer = Peer::new();
    peer.receive(&head(most));
    assert!(peer.events().is_empty());
    let mut peer = Peer::new();
    peer.receive(&head(most + 1));
    assert_eq!(peer.events(), ["HeaderFlood"]);
}

#[test]
fn settings_end_at_their_limit() {
    let settings = |count: u32| {
        let entries = vec![[5, 0]; count as usize].concat();
        let mut peer = Peer::new();
        peer.frame(
            frame::SETTINGS,
            0,
            &numbers(&[&[count][..], &entries].concat()),
        );
        peer.events()
    };
    assert!(settings(128).is_empty());
    assert_eq!(settings(129), ["FrameSize"]);
}

/// Number of repetitions before the connection ends.
fn times(mut act: impl FnMut(&mut Peer, u32)) -> u32 {
    let mut peer = Peer::with(Settings {
        abuse_budget: 50,
        ..Settings::default()
    });
    for n in 0..1000 {
        act(&mut peer, n);
        if peer.conn.is_over() {
            assert_eq!(peer.events().last().map(String::as_str), Some("Flood"));
            return n;
        }
    }
    1000
}

#[test]
fn floods_end_the_connection_when_the_budget_is_used_up() {
    let flood = [
        times(|peer, _| _ = peer.setting(7, 1)),
        times(|peer, n| _ = peer.frame(frame::PING, 0, &numbers(&[n]))),
        times(|peer, _| _ = peer.window(1, 1)),
        times(|peer, _| _ = peer.frame(99, 0, &[])),
        times(|peer, _| _ = peer.frame(frame::GOAWAY, 0, &[0; 8])),
        times(|peer, _| _ = peer.cancel(1)),
        times(|peer, _| _ = peer.data(0, b"x", false)),
        times(|peer, _| _ = peer.data(7, b"x", false)),
        times(|peer, n| _ = peer.syn(n * 2 + 1, &[("", "")], true)),
    ];
    assert_eq!(flood, [50; 9]);
    let rapid = times(|peer, n| _ = peer.get(n * 2 + 1, "/").cancel(n * 2 + 1));
    assert_eq!(rapid, 50, "requests that are taken back");
    let refused = times(|peer, n| _ = peer.get(n * 2 + 1, "/"));
    assert_eq!(refused, 100 + 50, "requests that are refused");
    let empty = times(|peer, n| {
        if n == 0 {
            peer.post(1, &[]);
        }
        peer.data(1, b"", false);
    });
    assert_eq!(empty, 50, "empty data");
}

#[test]
fn work_that_is_done_gives_back() {
    let served = times(|peer, n| {
        peer.frame(frame::PING, 0, &numbers(&[n])).window(0, 1);
        peer.get(n * 2 + 1, "/").answer(n * 2 + 1, &[b"x"]);
        peer.told();
    });
    assert_eq!(served, 1000);
    let waited = times(|peer, n| {
        peer.frame(frame::PING, 0, &numbers(&[n]));
        peer.conn.tick(u64::from(n) * 1000);
    });
    assert_eq!(waited, 1000);
}

#[test]
fn answers_that_are_not_read_stop_the_reading() {
    let mut peer = Peer::with(Settings {
        abuse_budget: 100_000,
        ..Settings::default()
    });
    let mut sent = 0;
    while peer.conn.wants_input() {
        peer.frame(frame::PING, 0, &numbers(&[1]));
        sent += 1;
    }
    assert_eq!(sent, (64 << 10) / 12 + 1);
}
