//! Body bytes that arrive before a handler takes them, and the flow control for the driver.

use engines::http::Version;

use super::{CollectOptions, Collected, HELD_BYTES, collect};
use crate::exchange::request_body::JOINED_BYTES;
use crate::exchange::{Exchange, State, Wait};
use crate::testing::{START_MS, World};

const CHUNKED: &str = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// An exchange before its handler collects the body.
fn exchange(world: &World) -> Exchange {
    world.exchange(CHUNKED)
}

fn deliver(world: &mut World, x: &mut Exchange, bytes: &[u8]) {
    x.deliver_body(bytes.to_vec(), &mut world.cx());
}

/// The handler collects the body.
fn ask(world: &mut World, x: &mut Exchange) -> Collected {
    let plan = CollectOptions::of(x.core_loc(&world.generation.http.clone()));
    collect(x, &mut world.cx(), &plan)
}

#[test]
fn what_nobody_asked_for_is_held_in_order_and_given_to_whoever_asks() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    deliver(&mut world, &mut x, b"abc");
    deliver(&mut world, &mut x, b"def");
    assert_eq!(x.body_used(), 0, "the peer may not send more for that");
    assert_eq!(x.body_bytes(), None);
    assert_eq!(ask(&mut world, &mut x), Collected::Wait);
    assert_eq!((x.body_used(), x.body_used()), (6, 0), "told once");
    deliver(&mut world, &mut x, b"g");
    assert_eq!(x.body_used(), 1);
    assert_eq!(x.body_size(), None, "not while more may come");
    x.end_body(&mut world.cx());
    assert_eq!(ask(&mut world, &mut x), Collected::Done);
    assert_eq!(x.body_bytes(), Some(&b"abcdefg"[..]));
    assert_eq!(x.body_size(), Some(7));
}

#[test]
fn a_body_that_ended_before_it_was_asked_for_is_there_at_once() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    deliver(&mut world, &mut x, b"abc");
    x.end_body(&mut world.cx());
    assert!(!x.is_body_due() && !x.awaits_body(), "nobody waits");
    assert_eq!(ask(&mut world, &mut x), Collected::Done);
    assert_eq!(
        (x.body_bytes(), x.body_size()),
        (Some(&b"abc"[..]), Some(3))
    );
    assert_eq!(x.progress.state, State::Running);
}

#[test]
fn a_request_without_a_body_has_an_empty_one() {
    let mut world = World::new("");
    for head in [
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    ] {
        let mut x = world.exchange(head);
        assert_eq!(ask(&mut world, &mut x), Collected::Done);
        assert_eq!((x.body_bytes(), x.body_size()), (Some(&b""[..]), Some(0)));
    }
    let mut x = world.exchange("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n");
    assert_eq!(ask(&mut world, &mut x), Collected::Wait);
}

#[test]
fn a_body_of_no_bytes_ends_where_its_stream_does() {
    let mut world = World::new("");
    let mut x = world.exchange("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    x.head.version = Version::Http2;
    assert_eq!(ask(&mut world, &mut x), Collected::Wait);
    x.end_body(&mut world.cx());
    assert_eq!(ask(&mut world, &mut x), Collected::Done);
    assert_eq!(x.body_size(), Some(0));
}

#[test]
fn there_is_room_up_to_a_limit_and_again_when_somebody_reads() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    assert!(x.has_body_room());
    deliver(&mut world, &mut x, &vec![b'x'; HELD_BYTES as usize - 1]);
    assert!(x.has_body_room());
    deliver(&mut world, &mut x, b"x");
    assert!(!x.has_body_room());
    assert_eq!(ask(&mut world, &mut x), Collected::Wait);
    assert!(x.has_body_room());
    assert_eq!(x.body_used(), HELD_BYTES);
    deliver(&mut world, &mut x, &vec![b'x'; HELD_BYTES as usize]);
    assert!(x.has_body_room(), "what is read is not held");
}

/// A body that comes a byte at a time takes no more memory than its bytes.
#[test]
fn small_pieces_are_joined_and_large_ones_left_alone() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    let pieces = |x: &Exchange| {
        x.input
            .body
            .as_ref()
            .map_or(0, |request_body| request_body.held.len())
    };
    for _ in 0..JOINED_BYTES {
        deliver(&mut world, &mut x, b"x");
    }
    assert_eq!(pieces(&x), 1);
    deliver(&mut world, &mut x, b"y");
    assert_eq!(pieces(&x), 2);
    deliver(&mut world, &mut x, &vec![b'z'; JOINED_BYTES]);
    assert_eq!(pieces(&x), 3);
}

#[test]
fn who_waits_for_a_body_is_due_when_it_is_there() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    assert!(!x.awaits_body(), "nobody has asked");
    assert_eq!(ask(&mut world, &mut x), Collected::Wait);
    assert!(x.awaits_body() && !x.is_body_due());
    deliver(&mut world, &mut x, b"abc");
    assert!(x.awaits_body() && !x.is_body_due(), "more may come");
    x.end_body(&mut world.cx());
    assert!(!x.awaits_body() && x.is_body_due());
    x.progress.state = State::Running;
    assert!(!x.is_body_due(), "it does not wait");
    x.progress.state = State::Waiting(Wait::until(START_MS));
    assert_eq!(ask(&mut world, &mut x), Collected::Done);
    assert!(!x.is_body_due(), "it has been told");
}

#[test]
fn who_waits_for_something_else_does_not_await_the_body() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    ask(&mut world, &mut x);
    x.progress.state = State::Running;
    assert!(!x.awaits_body());
    let mut timer = exchange(&world);
    timer.progress.state = State::Waiting(Wait::until(START_MS));
    assert!(!timer.awaits_body() && !timer.is_body_due());
}

#[test]
fn each_piece_gives_the_next_one_time() {
    let mut world = World::new("client_body_timeout 10s;");
    let mut x = exchange(&world);
    ask(&mut world, &mut x);
    assert_eq!(
        x.progress.state,
        State::Waiting(Wait::body_or_until(START_MS + 10_000))
    );
    world.pass(4000);
    deliver(&mut world, &mut x, b"abc");
    assert_eq!(
        x.progress.state,
        State::Waiting(Wait::body_or_until(START_MS + 14_000))
    );
    x.progress.state = State::Running;
    deliver(&mut world, &mut x, b"abc");
    assert_eq!(x.progress.state, State::Running, "a state is not made up");
}

#[test]
fn a_client_that_leaves_within_its_body_is_logged_with_400() {
    let mut world = World::new("");
    let mut x = exchange(&world);
    ask(&mut world, &mut x);
    x.lose_body();
    assert_eq!((x.route.err_status, x.reply.status), (400, 400));
    let said = world.said();
    assert!(
        said.contains("[info]") && said.contains("client prematurely closed connection"),
        "{said}"
    );
}

#[test]
fn a_body_lies_in_memory_or_in_a_file() {
    let mut world = World::new("client_body_buffer_size 4;");
    let mut x = exchange(&world);
    ask(&mut world, &mut x);
    deliver(&mut world, &mut x, b"abcd");
    assert!(x.body_file().is_none() && x.body_file_mut().is_none());
    deliver(&mut world, &mut x, b"e");
    assert_eq!(x.body_file().map(|file| file.len), Some(5));
    assert_eq!(x.body_file_mut().map(|file| file.len), Some(5));
    x.end_body(&mut world.cx());
    assert_eq!(x.body_bytes(), None);
}
