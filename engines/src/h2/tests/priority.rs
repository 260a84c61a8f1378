//! Order of streams. Source: RFC 9218.

use super::*;

/// Bodies of three frames each for these streams, with every window wide open.
fn three_frames_each(peer: &mut Peer, ids: &[u32]) -> String {
    for id in ids {
        peer.answer(*id, &[FULL; 3]);
    }
    order_of(&peer.told())
}

/// The streams of DATA frames, in order.
fn order_of(told: &[String]) -> String {
    let data = told.iter().filter(|line| line.contains(" DATA "));
    data.filter_map(|line| line.split(' ').next()).collect()
}

fn get_with(peer: &mut Peer, id: u32, priority: &str) {
    let fields = [&with_path("GET", "/"), &[("priority", priority)][..]].concat();
    peer.headers(id, &fields, true);
}

fn update(peer: &mut Peer, id: u32, priority: &str) {
    let payload = [&id.to_be_bytes()[..], priority.as_bytes()].concat();
    peer.frame(frame::PRIORITY_UPDATE, 0, 0, &payload);
}

#[test]
fn streams_of_a_client_without_priorities_share_in_turns() {
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/").get(5, "/");
    assert_eq!(three_frames_each(&mut peer, &[1, 3, 5]), "135135135");
}

#[test]
fn urgent_streams_are_sent_first() {
    let mut peer = Peer::new();
    get_with(&mut peer, 1, "u=5");
    get_with(&mut peer, 3, "u=0");
    get_with(&mut peer, 5, "u=3");
    get_with(&mut peer, 7, "");
    assert_eq!(three_frames_each(&mut peer, &[1, 3, 5, 7]), "333555777111");
}

#[test]
fn incremental_streams_share_and_others_do_not() {
    let mut peer = Peer::new();
    get_with(&mut peer, 1, "u=2, i");
    get_with(&mut peer, 3, "i, u=2");
    get_with(&mut peer, 5, "u=4");
    get_with(&mut peer, 7, "u=4");
    assert_eq!(three_frames_each(&mut peer, &[1, 3, 5, 7]), "131313555777");
}

#[test]
fn urgent_stream_overtakes() {
    let mut peer = Peer::new();
    get_with(&mut peer, 1, "u=3");
    peer.room = 1;
    peer.answer(1, &[FULL; 3]);
    // The head must be sent before any of the body is made.
    peer.told();
    assert_eq!(order_of(&peer.told()), "1");
    get_with(&mut peer, 3, "u=1");
    peer.room = u64::MAX;
    assert_eq!(three_frames_each(&mut peer, &[3]), "33311");
}

#[test]
fn update_counts_before_and_after_the_request() {
    let mut peer = Peer::new();
    update(&mut peer, 3, "u=0");
    get_with(&mut peer, 1, "u=3");
    // The update came first and takes precedence (RFC 9218 section 7).
    get_with(&mut peer, 3, "u=7");
    get_with(&mut peer, 5, "u=4");
    update(&mut peer, 5, "u=1");
    assert_eq!(three_frames_each(&mut peer, &[1, 3, 5]), "333555111");
}

#[test]
fn update_moves_a_stream_that_is_waiting() {
    let mut peer = Peer::new();
    peer.get(1, "/").get(3, "/");
    peer.room = 1;
    peer.answer(1, &[FULL; 3]);
    peer.answer(3, &[FULL; 3]);
    peer.told();
    update(&mut peer, 3, "u=2");
    peer.room = u64::MAX;
    assert_eq!(order_of(&peer.told()), "333111");
}

#[test]
fn last_update_of_a_stream_counts_and_that_of_a_closed_one_does_not() {
    let mut peer = Peer::new();
    peer.get(1, "/").answer(1, &[]).told();
    update(&mut peer, 1, "u=0");
    update(&mut peer, 3, "u=0");
    update(&mut peer, 3, "u=6");
    get_with(&mut peer, 3, "u=1");
    get_with(&mut peer, 5, "u=5");
    assert_eq!(three_frames_each(&mut peer, &[3, 5]), "555333");
}

#[test]
fn no_more_early_updates_are_kept_than_the_limit() {
    let mut peer = Peer::new();
    let most = control::EARLY_PRIORITIES as u32;
    for n in 0..=most {
        update(&mut peer, 101 + 2 * n, "u=0");
    }
    get_with(&mut peer, 101 + 2 * (most - 1), "u=5");
    get_with(&mut peer, 101 + 2 * most, "u=5");
    assert_eq!(
        three_frames_each(&mut peer, &[101 + 2 * most, 101 + 2 * (most - 1)]).len(),
        18
    );
    assert_eq!(peer.conn.protocol.early_priorities.len(), most as usize - 1);
}

#[test]
fn stream_whose_window_opens_again_takes_its_old_place() {
    let mut peer = Peer::new();
    peer.setting(4, 1500);
    get_with(&mut peer, 1, "u=3");
    get_with(&mut peer, 3, "u=3");
    peer.room = 1;
    for id in [1, 3] {
        peer.answer(id, &[FULL; 3]);
    }
    peer.told();
    assert_eq!(order_of(&peer.told()), "1");
    assert_eq!(order_of(&peer.told()), "1");
    assert_eq!(order_of(&peer.told()), "3");
    peer.window(1, 5000).window(3, 5000);
    peer.room = u64::MAX;
    assert_eq!(order_of(&peer.told()), "1133");
}

/// The priorities of RFC 7540 are read past (RFC 9113 section 5.3.2).
#[test]
fn priority_frames_change_nothing() {
    let mut peer = Peer::new();
    peer.frame(frame::PRIORITY, 0, 3, &[0, 0, 0, 1, 255]);
    peer.get(1, "/").get(3, "/");
    assert_eq!(three_frames_each(&mut peer, &[1, 3]), "131313");
    let block = peer.block_of(&with_path("GET", "/"));
    let payload = [&[0x80, 0, 0, 3, 7][..], &block].concat();
    let flags = frame::END_HEADERS | frame::END_STREAM | frame::HAS_PRIORITY;
    peer.frame(frame::HEADERS, flags, 5, &payload);
    assert_eq!(peer.events()[2..], ["5 GET / HTTP/2.0"]);
}
