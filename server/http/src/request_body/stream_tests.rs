//! Bodies that are taken piece by piece: held bytes, wakes, limits and times.

use engines::http::Fault;

use super::super::HELD_BYTES;
use super::{Piece, begin, open_tunnel, take, taken_bytes};
use crate::exchange::{Ctx, Exchange, State, Wait};
use crate::testing::{START_MS, World};

const CHUNKED: &str = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn exchange(world: &World) -> Exchange {
    world.exchange(CHUNKED)
}

fn deliver(world: &mut World, x: &mut Exchange, bytes: &[u8]) {
    x.deliver_body(bytes.to_vec(), &mut world.cx());
}

/// All pieces that can be taken now, and the result after them.
fn all(world: &mut World, x: &mut Exchange) -> String {
    let mut text = String::new();
    loop {
        match take(x, &mut world.cx()) {
            Piece::Chunk(chunk) => text += &String::from_utf8_lossy(chunk.bytes()),
            Piece::Later => return text + "...",
            Piece::End => return text + ".",
            Piece::Failed(status) => return format!("{text}{status}"),
        }
    }
}

fn nobody(_: &mut Exchange, _: &mut Ctx<'_>) {}

#[test]
fn pieces_are_taken_in_order_and_told_as_used() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    deliver(&mut world, &mut x, b"ab");
    deliver(&mut world, &mut x, b"cd");
    assert_eq!(
        (all(&mut world, &mut x).as_str(), x.body_used()),
        ("abcd...", 4)
    );
    deliver(&mut world, &mut x, b"e");
    assert_eq!((x.body_used(), taken_bytes(&x)), (0, 4), "nobody took it");
    x.end_body(&mut world.cx());
    assert_eq!((all(&mut world, &mut x).as_str(), x.body_used()), ("e.", 1));
    assert_eq!(
        (all(&mut world, &mut x).as_str(), taken_bytes(&x)),
        (".", 5)
    );
}

#[test]
fn a_request_without_a_body_has_nothing_to_take() {
    let mut world = World::new("");
    for head in [
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    ] {
        let mut x = world.exchange(head);
        assert_eq!(all(&mut world, &mut x), ".");
        assert!(!x.awaits_body() && !x.lacks_body());
    }
}

#[test]
fn there_is_room_up_to_a_limit_and_again_when_it_is_taken() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    begin(&mut x, &mut world.cx());
    deliver(&mut world, &mut x, &vec![b'x'; HELD_BYTES as usize - 1]);
    assert!(x.has_body_room());
    deliver(&mut world, &mut x, b"x");
    assert!(!x.has_body_room());
    assert!(matches!(take(&mut x, &mut world.cx()), Piece::Chunk(_)));
    assert!(x.has_body_room());
}

#[test]
fn what_came_is_due_until_the_handler_asks() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    x.progress.state = State::Waiting(Wait::woken());
    deliver(&mut world, &mut x, b"a");
    assert!(!x.is_body_due(), "nobody takes it");
    assert_eq!(all(&mut world, &mut x), "a...");
    assert!(!x.is_body_due() && !x.is_due(u64::MAX - 1));
    deliver(&mut world, &mut x, b"b");
    assert!(x.is_body_due() && x.is_due(0) && !x.has_body_arrived());
    x.progress.state = State::Responding;
    assert!(
        !x.is_body_due() && !x.has_body_arrived(),
        "it is passed on to nobody"
    );
    x.body.on_arrival = Some(nobody);
    assert!(x.has_body_arrived() && x.wants_body());
    assert_eq!(all(&mut world, &mut x), "b...");
    assert!(!x.has_body_arrived() && x.wants_body());
    x.end_body(&mut world.cx());
    assert!(x.has_body_arrived());
}

#[test]
fn a_response_of_our_own_wants_no_body() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    x.body.on_arrival = Some(nobody);
    x.progress.state = State::Responding;
    assert!(!x.wants_body(), "it is not taken by pieces");
    begin(&mut x, &mut world.cx());
    assert!(x.wants_body() && x.lacks_body() && !x.awaits_body());
    x.body.on_arrival = None;
    assert!(!x.wants_body() && !x.lacks_body());
}

#[test]
fn a_body_without_a_length_ends_at_its_limit() {
    let mut world = World::new("client_max_body_size 4;");
    let mut x = exchange(&world);
    deliver(&mut world, &mut x, b"ab");
    assert_eq!(all(&mut world, &mut x), "ab...");
    deliver(&mut world, &mut x, b"cd");
    assert_eq!(all(&mut world, &mut x), "cd...");
    deliver(&mut world, &mut x, b"e");
    assert!(x.is_body_due() || x.progress.state == State::Running);
    assert_eq!(
        (all(&mut world, &mut x).as_str(), x.input.too_large),
        ("413", true)
    );
    assert!(world.said().contains("too large chunked body: 4+1 bytes"));
    deliver(&mut world, &mut x, b"f");
    assert_eq!(all(&mut world, &mut x), "413");
    assert_eq!(
        (x.body_used(), x.has_body_room(), x.due_ms()),
        (6, true, None)
    );
    // Bytes from before the first call count as well; an announced length was checked earlier.
    let mut early = exchange(&world);
    deliver(&mut world, &mut early, b"abcde");
    assert_eq!(all(&mut world, &mut early), "413");
    let mut announced = world.exchange("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    deliver(&mut world, &mut announced, b"abcde");
    assert_eq!(all(&mut world, &mut announced), "abcde...");
}

#[test]
fn time_runs_only_while_the_handler_waits() {
    let mut world = World::new("client_body_timeout 3s;");
    let mut x = exchange(&world);
    x.progress.state = State::Waiting(Wait::woken());
    begin(&mut x, &mut world.cx());
    assert_eq!(x.due_ms(), Some(u64::MAX), "nobody waits for the client");
    world.pass(10_000);
    assert_eq!(all(&mut world, &mut x), "...");
    assert_eq!(x.due_ms(), Some(START_MS + 13_000));
    world.pass(2999);
    assert_eq!(all(&mut world, &mut x), "...", "asked again it is no later");
    deliver(&mut world, &mut x, b"a");
    assert_eq!(x.due_ms(), Some(u64::MAX));
    world.pass(50_000);
    assert_eq!(all(&mut world, &mut x), "a...");
    world.pass(2999);
    assert_eq!(all(&mut world, &mut x), "...");
    world.pass(1);
    assert_eq!(all(&mut world, &mut x), "408");
    assert!(world.said().contains("client timed out"));
    assert_eq!(x.due_ms(), Some(u64::MAX), "and that is all");
    let mut ended = exchange(&world);
    ended.progress.state = State::Waiting(Wait::woken());
    assert_eq!(all(&mut world, &mut ended), "...");
    ended.end_body(&mut world.cx());
    assert_eq!(ended.due_ms(), Some(u64::MAX));
}

#[test]
fn a_tunnel_has_neither_limits_nor_times() {
    let mut world = World::new("client_max_body_size 4; client_body_timeout 1s;");
    let mut x = world.exchange("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(all(&mut world, &mut x), ".", "the request has no body");
    assert!(open_tunnel(&mut x, &world.cx()));
    x.progress.state = State::Responding;
    x.body.on_arrival = Some(nobody);
    assert_eq!(
        (all(&mut world, &mut x).as_str(), x.due_ms()),
        ("...", None)
    );
    deliver(&mut world, &mut x, b"abcdef");
    world.pass(1_000_000);
    assert_eq!(all(&mut world, &mut x), "abcdef...");
    x.end_body(&mut world.cx());
    assert_eq!(all(&mut world, &mut x), ".");
}

#[test]
fn a_tunnel_begins_behind_the_body_of_its_request() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    deliver(&mut world, &mut x, b"a");
    assert!(!open_tunnel(&mut x, &world.cx()));
    assert_eq!(all(&mut world, &mut x), "a...", "nothing is lost");
    x.end_body(&mut world.cx());
    assert!(open_tunnel(&mut x, &world.cx()));
    assert_eq!(all(&mut world, &mut x), "...");
}

#[test]
fn a_body_that_breaks_takes_the_response_along() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    x.progress.keep_alive = true;
    x.break_body(Fault::BadContentLength);
    assert_eq!(
        (x.progress.state, x.progress.keep_alive),
        (State::Aborted, false)
    );
    assert!(world.said().contains(Fault::BadContentLength.message()));
}

#[test]
fn a_client_that_leaves_within_a_body_has_no_status_behind_a_head() {
    let world = World::new("");
    for (sent, status) in [(false, 400), (true, 0)] {
        let mut x = exchange(&world);
        x.progress.header_sent = sent;
        x.lose_body();
        assert_eq!(x.route.err_status, status);
    }
}
