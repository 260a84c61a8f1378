//! Bodies of subrequests as part of their parent's: their order, waits, and work that continues meanwhile.

use engines::http::Chunk;

use super::{AHEAD_BYTES, AHEAD_REQUESTS};
use crate::exchange::{BodyRead, BodySource, Ctx, Wait};
use crate::testing::Part::{self, Waited};
use crate::testing::{Holding, START_MS, World, begun, page, text, whole};

#[test]
fn bodies_come_in_the_order_in_which_they_were_asked_for() {
    assert_eq!(
        whole(vec![
            text("a "),
            Part::Subrequest("/say/b"),
            text(" c "),
            Part::Subrequest("/say/d"),
            Part::Subrequest("/say/e"),
        ]),
        "a b c de"
    );
    assert_eq!(whole(vec![Part::Subrequest("/say/only")]), "only");
    assert_eq!(whole(vec![]), "");
}

#[test]
fn what_is_asked_for_around_a_body_comes_around_it() {
    let mut world = World::new("");
    let uri = |text: &str| Some(format!("/say/{text}").into_bytes());
    for (before, after, expected) in [
        (uri("<"), uri(">"), "<own>"),
        (uri("<"), None, "<own"),
        (None, uri(">"), "own>"),
        (None, None, "own"),
    ] {
        let mut x = world.get("/say/own");
        x.add_around(before, after);
        assert_eq!(world.pull(&mut x), (expected.to_owned(), "end"));
        assert_eq!(world.pull(&mut x), (String::new(), "end"));
    }
}

#[test]
fn subrequests_have_subrequests() {
    let mut world = World::new("");
    let mut x = world.get("/nest/3");
    assert_eq!(world.pull(&mut x), ("3210".to_owned(), "end"));
}

#[test]
fn what_is_ready_leaves_before_what_waits() {
    let mut world = World::new("");
    let (mut ran, _) = page(
        &mut world,
        vec![
            text("a "),
            Part::Subrequest("/late/500/b"),
            text(" c"),
            Part::Subrequest("/say/d"),
        ],
    );
    assert_eq!(world.pull(&mut ran.x), ("a ".to_owned(), "later"));
    assert_eq!(ran.x.due_ms(), Some(START_MS + 500));
    world.pass(499);
    assert_eq!(
        world.pull(&mut ran.x),
        (String::new(), "later"),
        "woken too early"
    );
    world.pass(1);
    assert_eq!(world.pull(&mut ran.x), ("b cd".to_owned(), "end"));
}

#[test]
fn subrequests_wait_together_and_the_first_that_is_due_wakes_their_parent() {
    let mut world = World::new("");
    let (mut ran, _) = page(
        &mut world,
        vec![
            Part::Subrequest("/late/500/a "),
            Part::Subrequest("/late/300/b "),
            Part::Subrequest("/late/100/c"),
        ],
    );
    assert_eq!(world.pull(&mut ran.x), (String::new(), "later"));
    assert_eq!(begun(&ran), 3);
    assert_eq!(ran.x.due_ms(), Some(START_MS + 100));
    world.pass(100);
    assert_eq!(world.pull(&mut ran.x), (String::new(), "later"));
    assert_eq!(
        ran.handlers(),
        "say",
        "the third goes on, though it is not first"
    );
    assert_eq!(
        ran.x.due_ms(),
        Some(START_MS + 300),
        "the third waits for nothing any more"
    );
    world.pass(400);
    assert_eq!(world.pull(&mut ran.x), ("a b c".to_owned(), "end"));
}

#[test]
fn nothing_more_is_begun_while_the_stage_waits_for_a_subrequest() {
    let mut world = World::new("");
    let (mut ran, left) = page(
        &mut world,
        vec![
            Part::Subrequest("/late/100/a "),
            Waited("/late/300/b "),
            Part::Subrequest("/say/c"),
        ],
    );
    assert_eq!(world.pull(&mut ran.x).1, "later");
    assert_eq!((begun(&ran), left.left.borrow().len()), (2, 1));
    world.pass(100);
    assert_eq!(world.pull(&mut ran.x), ("a ".to_owned(), "later"));
    assert_eq!(begun(&ran), 0, "the end of another does not count");
    world.pass(200);
    assert_eq!(world.pull(&mut ran.x), ("b c".to_owned(), "end"));
    assert_eq!(begun(&ran), 1);
}

#[test]
fn a_stage_that_waits_for_no_subrequest_goes_on() {
    let mut world = World::new("");
    let (mut ran, left) = page(
        &mut world,
        vec![Waited("/say/a "), Part::Subrequest("/late/1/b"), text("c")],
    );
    assert_eq!(world.pull(&mut ran.x), ("a ".to_owned(), "later"));
    assert_eq!(left.left.borrow().len(), 0);
}

#[test]
fn so_many_subrequests_are_begun_ahead_of_one_that_waits() {
    let mut world = World::new("");
    let many = (0..AHEAD_REQUESTS + 8)
        .map(|_| Part::Subrequest("/late/100/x"))
        .collect();
    let (mut ran, left) = page(&mut world, many);
    assert_eq!(world.pull(&mut ran.x).1, "later");
    assert_eq!((begun(&ran), left.left.borrow().len()), (AHEAD_REQUESTS, 8));
    world.pass(100);
    assert_eq!(
        world.pull(&mut ran.x),
        ("x".repeat(AHEAD_REQUESTS), "later")
    );
    assert_eq!(
        begun(&ran),
        8,
        "as those before have ended, there is room again"
    );
    world.pass(100);
    assert_eq!(world.pull(&mut ran.x), ("x".repeat(8), "end"));
}

#[test]
fn so_many_bytes_are_made_ahead_of_a_subrequest_that_waits() {
    const KIB: usize = 1 << 10;
    let most = AHEAD_BYTES as usize / KIB;
    let mut world = World::new("");
    let mut parts = Vec::new();
    for _ in 0..2 {
        parts.push(Part::Subrequest("/late/100/x"));
        parts.extend((0..most + 9).map(|_| text(&"y".repeat(KIB))));
    }
    let (mut ran, left) = page(&mut world, parts);
    for after in [most + 10, 0] {
        assert_eq!(world.pull(&mut ran.x).1, "later");
        assert_eq!(
            left.left.borrow().len(),
            after + 9,
            "bytes that left make room"
        );
        world.pass(100);
    }
    assert_eq!(world.pull(&mut ran.x).1, "end");
}

#[test]
fn a_body_that_is_made_elsewhere_is_looked_for_with_the_subrequests() {
    struct Slow(u64);
    impl BodySource for Slow {
        fn next(&mut self, cx: &mut Ctx<'_>) -> BodyRead {
            match self.0 {
                0 => BodyRead::End,
                due_ms if cx.clock.mono_ms < due_ms => BodyRead::Pending(Wait::until(due_ms)),
                _ => {
                    self.0 = 0;
                    BodyRead::Chunk(Chunk::Static(b" made"))
                }
            }
        }
    }
    for (due_ms, first_ms) in [(200, 200), (900, 500)] {
        let mut world = World::new("");
        let mut x = world.get("/say/own");
        x.body.source = Some(Box::new(Slow(START_MS + due_ms)));
        x.add_around(
            Some(b"/late/500/before ".to_vec()),
            Some(b"/say/ after".to_vec()),
        );
        assert_eq!(world.pull(&mut x), (String::new(), "later"));
        assert_eq!(x.due_ms(), Some(START_MS + first_ms));
        world.pass(500);
        let (text, end) = world.pull(&mut x);
        if due_ms < 500 {
            assert_eq!((text.as_str(), end), ("before own made after", "end"));
        } else {
            assert_eq!((text.as_str(), end), ("before own", "later"));
            assert_eq!(x.due_ms(), Some(START_MS + due_ms));
            world.pass(400);
            assert_eq!(world.pull(&mut x), (" made after".to_owned(), "end"));
        }
    }
}

#[test]
fn stages_behind_the_queue_let_go_once_before_each_wait() {
    let mut world = World::new("");
    let (mut ran, _) = page(
        &mut world,
        vec![
            text("a "),
            Part::Subrequest("/late/100/b "),
            text("c "),
            Part::Subrequest("/late/200/d"),
        ],
    );
    ran.x.push_outer_stage(Box::new(Holding(Vec::new())));
    assert_eq!(world.pull(&mut ran.x), ("a |".to_owned(), "later"));
    assert_eq!(
        world.pull(&mut ran.x),
        (String::new(), "later"),
        "it is told once"
    );
    world.pass(100);
    assert_eq!(world.pull(&mut ran.x), ("b c |".to_owned(), "later"));
    world.pass(100);
    assert_eq!(world.pull(&mut ran.x), ("d".to_owned(), "end"));
}

#[test]
fn marks_pass_the_queue() {
    let mut world = World::new("");
    let mut x = world.get("/say/own");
    x.body.chunks.extend([Chunk::Flush, Chunk::Static(b"more")]);
    x.add_around(None, Some(b"/say/-after".to_vec()));
    assert_eq!(world.pull(&mut x).0, "own|more-after");
    let mut x = world.get("/say/own");
    x.body.chunks.extend([Chunk::Flush, Chunk::Static(b"more")]);
    x.add_around(None, Some(b"/say/-after".to_vec()));
    x.push_outer_stage(Box::new(Holding(Vec::new())));
    assert_eq!(world.pull(&mut x).0, "own|more-after");
}

#[test]
fn stages_behind_the_queue_are_given_bodies_of_subrequests_in_memory() {
    let mut world = World::new("");
    let (mut ran, _) = page(
        &mut world,
        vec![text("a "), Part::Subrequest("/file/in_a_file")],
    );
    assert_eq!(
        world.pull(&mut ran.x).0,
        "a [0+9]",
        "nobody wants to see the bytes"
    );
    let (mut ran, _) = page(
        &mut world,
        vec![text("a "), Part::Subrequest("/file/in_a_file")],
    );
    ran.x.push_outer_stage(Box::new(Holding(Vec::new())));
    assert_eq!(world.pull(&mut ran.x).0, "a in_a_file");
}

#[test]
fn stages_behind_the_queue_have_the_budget_of_a_pass() {
    let mut world = World::new("");
    let (mut ran, _) = page(
        &mut world,
        vec![text("abc"), Part::Subrequest("/say/def"), text("ghi")],
    );
    ran.x.push_outer_stage(Box::new(Holding(Vec::new())));
    world.budget.set(0);
    assert_eq!(world.pull(&mut ran.x), (String::new(), "spent"));
    assert_eq!(ran.x.due_ms(), Some(world.clock.mono_ms));
    world.budget.set(u64::MAX);
    assert_eq!(world.pull(&mut ran.x), ("abcdefghi".to_owned(), "end"));
}
