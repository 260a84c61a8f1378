//! Files outside the page cache: a pool thread reads a piece, then the connection continues.

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use driver::io::read_pool::FETCH_BYTES;
use driver::worker::readiness::{Readiness, SocketFlags, WRITE_BYTES};
use driver::worker::shared::{BYTES_A_TURN, Turn};
use server_http::exchange::Peer;
use sim::{Faults, Random, Wire};

use super::frames::{CANCEL, RESET, Received, frame};
use super::site::{TestConnection, body, get, logged, statuses};
use super::streams::{Client, head};

const PIECE: u64 = FETCH_BYTES;

fn file(len: u64) -> String {
    get(&format!("/file/{len}/{len}"))
}

fn talk(server: &str) -> TestConnection {
    let mut talk = TestConnection::new(server);
    talk.use_disk();
    talk
}

#[test]
fn head_leaves_at_once_and_pieces_as_they_are_read() {
    for len in [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE] {
        let mut talk = talk("");
        let head = talk.send(file(len));
        assert_eq!((statuses(&head), body(&head)), (vec!["200"], ""));
        let mut got = 0;
        while got < len {
            assert_eq!(
                talk.disk().fetches.len(),
                1,
                "one at a time, {got} of {len}"
            );
            assert_eq!(talk.turn(), "", "nothing comes before it is read");
            got += talk.end_fetch(false).len() as u64;
            assert_eq!(got, (got.div_ceil(PIECE) * PIECE).min(len));
        }
        assert!(talk.disk().fetches.is_empty());
        assert_eq!(logged(), [200]);
        assert!(talk.is_open());
    }
}

#[test]
fn the_next_piece_is_read_while_the_one_before_is_taken() {
    let mut talk = TestConnection::deaf("", 1000);
    talk.use_disk();
    let mut got = talk.send(file(3 * PIECE)).len() as u64;
    got += talk.end_fetch(false).len() as u64;
    assert_eq!(got, 1000);
    assert_eq!(
        talk.disk().fetches.len(),
        1,
        "the client has taken some of it"
    );
    assert_eq!(talk.end_fetch(false), "");
    assert!(talk.disk().fetches.is_empty(), "one piece ahead, not two");
    got += talk.listen().len() as u64;
    assert!(got > PIECE, "{got}");
    while !talk.disk().fetches.is_empty() {
        got += talk.end_fetch(false).len() as u64;
    }
    assert!(got > 3 * PIECE, "{got}");
    assert_eq!(logged(), [200]);
}

#[test]
fn nothing_is_read_ahead_for_a_client_that_takes_nothing() {
    let head = talk("").send(file(3 * PIECE)).len();
    let mut talk = TestConnection::deaf("", head);
    talk.use_disk();
    talk.send(file(3 * PIECE));
    talk.end_fetch(false);
    talk.pass(1000);
    assert!(talk.disk().fetches.is_empty());
}

#[test]
fn other_connections_are_served_meanwhile() {
    let mut talk = talk("");
    talk.send(file(PIECE));
    let hands = Rc::clone(&talk.world.hands);
    let mut wire = Wire::new(hands, Random::new(3), Faults::default(), 1 << 20);
    wire.push(get("/other").as_bytes());
    let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_001)));
    let other = talk.world.accept(wire, 0, peer);
    assert_eq!(talk.turn(), "");
    let answer = talk.world.links[other].wire.borrow().sent().to_vec();
    assert!(answer.starts_with(b"HTTP/1.1 200 OK") && answer.ends_with(b"/other"));
    assert_eq!(talk.end_fetch(false).len() as u64, PIECE);
}

#[test]
fn a_client_that_takes_all_gets_so_much_a_turn_of_a_file_in_memory() {
    let mut talk = TestConnection::deaf("", 8 << 20);
    let shared = &mut talk.world.shared;
    shared.turn = Turn::default();
    talk.push(file(20 * WRITE_BYTES));
    let mut got = 0;
    for _ in 0..4 {
        // The event and the timer are one turn each. A write that begins below the limit is completed.
        talk.world.poll(1000);
        let sent = talk.received().len() as u64;
        assert!(
            sent > 0 && sent < 2 * (BYTES_A_TURN + WRITE_BYTES),
            "{sent}"
        );
        got += sent;
    }
    assert!(got < 20 * WRITE_BYTES, "{got}");
    got += talk.turn().len() as u64;
    assert!(got > 20 * WRITE_BYTES, "{got}");
    assert_eq!(logged(), [200]);
}

#[test]
fn responses_behind_a_missing_piece_keep_their_order() {
    let mut talk = talk("");
    let head = talk.send(format!("{}{}", file(PIECE), get("/next")));
    assert_eq!(body(&head), "");
    let rest = talk.end_fetch(false);
    assert_eq!(rest.find("HTTP/1.1 200 OK"), Some(PIECE as usize));
    assert!(rest.ends_with("/next"));
    assert_eq!(logged(), [200, 200]);
}

#[test]
fn room_in_the_socket_begins_no_second_fetch() {
    let mut talk = talk("");
    talk.send(file(PIECE));
    talk.world.spurious(
        0,
        Readiness::of_socket(SocketFlags {
            writable: true,
            ..SocketFlags::default()
        }),
    );
    assert_eq!(talk.turn(), "");
    assert_eq!(talk.disk().fetches.len(), 1);
    assert_eq!(talk.end_fetch(false).len() as u64, PIECE);
}

#[test]
fn a_connection_goes_on_behind_a_stream_that_was_cancelled_while_its_piece_was_read() {
    let mut client = Client::new("");
    client.talk.use_disk();
    let target = format!("/file/{PIECE}/{PIECE}");
    assert_eq!(client.get(1, &target), [head(1)]);
    assert_eq!(client.talk.disk().fetches.len(), 1);
    // The frame in progress must be completed before anything else.
    client.send(&frame(RESET, 0, 1, &CANCEL.to_be_bytes()));
    client.get(3, "/other");
    client.talk.disk().end_fetch(false);
    client.talk.world.shared.queues.wakers.receive();
    let received = client.turn();
    assert!(received.contains(&Received::End(3)), "{received:?}");
    assert!(client.talk.disk().fetches.is_empty());
}

#[test]
fn a_request_behind_a_file_ends_with_its_client() {
    let mut talk = talk("");
    talk.send(format!("{}{}", file(PIECE), get("/wait/5000")));
    talk.end();
    // The end of the file's exchange is found in a pass without a write.
    talk.end_fetch(false);
    assert_eq!(logged(), [200, 499]);
    assert!(talk.is_closed());
}

#[test]
fn a_slow_disk_is_not_held_against_the_client() {
    let mut talk = talk("send_timeout 5s;");
    talk.send(file(PIECE));
    for _ in 0..4 {
        assert_eq!(talk.pass(4_000), "");
        assert!(talk.is_open());
    }
    assert_eq!(talk.end_fetch(false).len() as u64, PIECE);
    assert_eq!(logged(), [200]);
}

#[test]
fn a_client_that_takes_nothing_is_closed_after_the_read() {
    let mut talk = TestConnection::deaf("send_timeout 5s;", 1000);
    talk.use_disk();
    talk.send(file(PIECE));
    assert_eq!(talk.disk().fetches.len(), 1);
    talk.end_fetch(false);
    talk.pass(5_001);
    assert!(talk.is_closed());
}

#[test]
fn a_fetch_may_end_after_the_connection() {
    let mut talk = talk("");
    talk.send(file(PIECE));
    talk.wire(Wire::reset);
    talk.turn();
    assert!(talk.is_closed());
    assert_eq!(talk.end_fetch(false), "");
}

#[test]
fn bytes_evicted_after_their_fetch_are_read_by_the_serving_thread() {
    for failed in [false, true] {
        let mut talk = talk("");
        talk.send(file(PIECE));
        talk.disk().end_fetch(failed);
        talk.disk().evict();
        talk.world.shared.queues.wakers.receive();
        let mut got = talk.turn().len() as u64;
        assert!(got > 0, "a wait ends in progress");
        while got < PIECE {
            got += talk.end_fetch(false).len() as u64;
        }
        assert_eq!(logged(), [200]);
    }
}

#[test]
fn the_serving_thread_reads_if_the_queue_is_full_or_aio_is_off() {
    let mut full = talk("");
    full.disk().full = true;
    assert_eq!(body(&full.send(file(PIECE))).len() as u64, PIECE);
    let said = full.error_log();
    assert!(
        said.contains("thread pool \"default\" queue overflow: 65536 tasks waiting"),
        "{said}"
    );
    let mut off = talk("aio off;");
    assert_eq!(body(&off.send(file(PIECE))).len() as u64, PIECE);
    assert_eq!(off.error_log(), "");
    assert!(off.disk().fetches.is_empty());
}

#[test]
fn a_file_that_ends_early_ends_the_connection() {
    let mut talk = talk("");
    talk.send(get(&format!("/file/{}/{PIECE}", PIECE - 1)));
    let got = talk.end_fetch(false).len() as u64;
    assert!(got < PIECE, "{got}");
    assert!(talk.is_closed());
}
