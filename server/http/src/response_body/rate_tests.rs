//! `limit_rate` at its bounds.

use engines::http::Chunk;

use crate::exchange::{Exchange, Pulled};
use crate::testing::{World, get};

/// An exchange with a body of this many bytes.
fn exchange(world: &World, bytes: usize) -> Exchange {
    let mut x = world.exchange(&get("/"));
    x.body.chunks.push_back(Chunk::Owned(vec![b'x'; bytes]));
    x
}

/// The bytes that may leave after `sent` bytes, `None` for none.
fn pull(world: &mut World, x: &mut Exchange, sent: u64) -> Option<u64> {
    match x.pull_within(&mut world.cx(), sent) {
        Pulled::Chunk(chunk) => Some(chunk.len()),
        Pulled::Pending => None,
        _ => Some(0),
    }
}

#[test]
fn the_bytes_of_the_first_second_leave_at_once_and_then_as_they_are_earned() {
    let mut world = World::new("limit_rate 1000;");
    let mut x = exchange(&world, 5000);
    assert!(x.has_rate());
    assert_eq!(pull(&mut world, &mut x, 0), Some(1000));
    let due_ms = x.response.rate.until_ms;
    assert_eq!(due_ms, world.clock.mono_ms + 1000, "as long as they take");
    world.pass(999);
    assert_eq!(pull(&mut world, &mut x, 1000), None);
    world.pass(1);
    assert_eq!(pull(&mut world, &mut x, 1000), Some(1000));
}

#[test]
fn a_head_that_used_up_what_was_earned_is_waited_for() {
    let mut world = World::new("limit_rate 1000;");
    let mut x = exchange(&world, 10);
    assert_eq!(pull(&mut world, &mut x, 1000), None);
    assert_eq!(
        x.response.rate.until_ms,
        world.clock.mono_ms + 2,
        "until one more is earned"
    );
    world.pass(2);
    assert_eq!(pull(&mut world, &mut x, 1000), Some(2));
    assert_eq!(pull(&mut world, &mut x, 1002), None);
}

#[test]
fn what_lies_before_limit_rate_after_is_not_waited_for() {
    let mut world = World::new("limit_rate 1000; limit_rate_after 3000;");
    let mut x = exchange(&world, 4500);
    assert_eq!(pull(&mut world, &mut x, 0), Some(4000));
    assert_eq!(x.response.rate.until_ms, world.clock.mono_ms + 1000);
    let mut small = exchange(&world, 3000);
    assert_eq!(pull(&mut world, &mut small, 0), Some(3000));
    assert_eq!(small.response.rate.until_ms, 0);
}

#[test]
fn nothing_is_held_back_after_the_end() {
    let mut world = World::new("limit_rate 1000;");
    let mut x = exchange(&world, 500);
    assert_eq!(pull(&mut world, &mut x, 0), Some(500));
    world.pass(500);
    assert_eq!(pull(&mut world, &mut x, 500), Some(0));
    assert_eq!(x.response.rate.until_ms, 0);
}

#[test]
fn the_limit_may_be_set_for_one_response() {
    let mut world = World::new("");
    let mut x = exchange(&world, 5000);
    assert!(!x.has_rate());
    assert_eq!(pull(&mut world, &mut x, 0), Some(5000));
    let mut limited = exchange(&world, 5000);
    limited.set_limit_rate(b"2k");
    assert!(limited.has_rate());
    assert_eq!(pull(&mut world, &mut limited, 0), Some(2048));
    let mut free = exchange(&world, 5000);
    free.set_limit_rate(b"2k");
    free.set_limit_rate(b"no size");
    assert!(free.has_rate(), "text that is no size changes nothing");
    free.set_limit_rate(b"0");
    assert!(!free.has_rate());
    let said = world.said();
    assert!(
        said.contains("[error] ") && said.contains(" invalid $limit_rate \"no size\", client: "),
        "{said}"
    );
}

#[test]
fn a_limit_that_is_no_size_is_logged_and_counts_as_none() {
    let mut world = World::new("limit_rate $arg_none;");
    let mut x = exchange(&world, 5000);
    assert_eq!(x.limit_rate(&mut world.cx()), (0, 0));
    assert_eq!(x.limit_rate(&mut world.cx()), (0, 0));
    let said = world.said();
    assert_eq!(
        said.matches("invalid size \"\", client: ").count(),
        1,
        "{said}"
    );
}
