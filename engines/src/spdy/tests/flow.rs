//! Windows of streams and of the connection, as the client opens them.

use super::*;

const BIG: &[u8] = &[b'x'; 70_000];

/// Bytes of data in these lines.
fn data_bytes(lines: &[String]) -> usize {
    let data = lines.iter().filter_map(|line| line.split_once(" DATA "));
    data.map(|(_, shown)| {
        let shown = shown.strip_suffix(" END").unwrap_or(shown);
        match shown {
            "-" => 0,
            _ => shown.parse().unwrap_or(shown.len()),
        }
    })
    .sum()
}

#[test]
fn both_windows_stop_a_response() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[BIG]);
    assert_eq!(data_bytes(&peer.told()), 65_536);
    peer.window(1, 65_536);
    assert!(peer.told().is_empty(), "the connection's window is closed");
    peer.window(0, 65_536);
    let told = peer.told();
    assert_eq!(data_bytes(&told), 70_000 - 65_536);
    assert!(told.last().is_some_and(|line| line.ends_with("END")));
}

#[test]
fn other_frames_are_not_stopped() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[BIG]);
    peer.told();
    peer.frame(frame::PING, 0, &numbers(&[0x1234_5678]));
    peer.get(3, "/")
        .answer_with(3, &response(204, BodyLength::None), &[]);
    assert_eq!(peer.told(), ["PING 305419896", "3 REPLY 204 END"]);
}

#[test]
fn initial_window_changes_open_streams_and_may_be_negative() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[BIG]);
    peer.told();
    peer.window(0, 1000).setting(7, 42).window(1, 1024);
    assert!(peer.told().is_empty(), "negative");
    peer.window(1, 65_536 - 42 - 1024);
    assert!(peer.told().is_empty(), "zero");
    peer.window(1, 1);
    assert_eq!(peer.told(), ["1 DATA x"]);
    peer.get(3, "/").answer(3, &[BIG]);
    assert_eq!(data_bytes(&peer.told()), 42);
    peer.setting(7, 43);
    assert_eq!(data_bytes(&peer.told()), 2, "one byte for each");
}

/// This server does not let clients persist a setting, so a returned one is from another server.
#[test]
fn settings_that_a_client_gives_back_are_ignored() {
    let mut peer = Peer::new();
    peer.setting(7 | 2 << 24, 1).setting(7 | 1 << 24, 5);
    peer.get(1, "/").answer(1, &[BIG]);
    assert_eq!(data_bytes(&peer.told()), 5);
}

#[test]
fn last_setting_of_a_frame_counts() {
    let mut peer = Peer::new();
    peer.frame(frame::SETTINGS, 0, &numbers(&[2, 7, 1, 7, 3]));
    peer.get(1, "/").answer(1, &[BIG]);
    assert_eq!(data_bytes(&peer.told()), 3);
}

#[test]
fn windows_end_at_their_maximum() {
    const MOST: u32 = (1 << 31) - 1;
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/");
    peer.window(1, MOST - DEFAULT_WINDOW)
        .window(0, MOST - DEFAULT_WINDOW);
    assert!(peer.told().is_empty());
    peer.window(1, 1);
    assert_eq!(peer.told(), ["1 RST FLOW_CONTROL_ERROR"]);
    peer.window(0, 1);
    assert_eq!(peer.told(), ["GOAWAY 3 PROTOCOL_ERROR"]);
    let events = peer.events();
    let expected = ["1 reset", "3 reset", "WindowOverflow"];
    assert_eq!(events[2..], expected);
}

#[test]
fn initial_window_resets_streams_that_it_overflows() {
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/").window(1, (1 << 30) - 1);
    peer.setting(7, 1 << 30);
    assert!(peer.told().is_empty());
    peer.setting(7, (1 << 31) - 1);
    assert_eq!(peer.told(), ["1 RST FLOW_CONTROL_ERROR"]);
    peer.setting(7, 1 << 31);
    assert_eq!(peer.told(), ["GOAWAY 3 PROTOCOL_ERROR"]);
}

#[test]
fn windows_of_streams_that_are_gone_are_nobodys() {
    let mut peer = Peer::new();
    peer.window(1, 5).window(2, 5).window(1, 0).window(0, 0);
    assert!(peer.told().is_empty() && peer.events().is_empty());
}

#[test]
fn time_without_a_window_is_told() {
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/").answer(1, &[BIG]);
    peer.now_ms = 77;
    peer.told();
    assert_eq!(peer.conn.blocked_since(1), Some(77));
    assert_eq!(peer.conn.blocked_since(3), None);
    peer.window(0, 10).window(1, 10);
    peer.now_ms = 99;
    peer.told();
    assert_eq!(peer.conn.blocked_since(1), Some(99));
}

#[test]
fn room_bounds_what_waits() {
    let mut peer = Peer::new();
    peer.room = 500;
    peer.get(1, "/").answer(1, &[FULL, FULL]);
    assert_eq!(peer.told().len(), 2, "a reply and one frame");
    assert_eq!(peer.told(), ["1 DATA 1000 END"]);
}
