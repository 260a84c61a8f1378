//! Ends of subrequests whose bodies join: stubs, bodies held in memory, faults, limits, logs.

use std::rc::Rc;

use engines::http::Chunk;

use crate::testing::Part::{self, InMemory, OrElse};
use crate::testing::{
    Holding, Outcome, Page, Parts, Reaction, START_MS, World, begun, get, page, text, whole,
};

#[test]
fn a_stub_takes_the_place_of_nothing_and_of_an_error() {
    assert_eq!(
        whole(vec![
            OrElse("/say/a", "stub"),
            text(" "),
            OrElse("/empty", "nothing"),
            text(" "),
            OrElse("/none", "missing"),
            text(" "),
            Part::Subrequest("/empty"),
            OrElse("/none", ""),
            text("."),
        ]),
        "a nothing missing ."
    );
}

#[test]
fn an_error_is_a_body_like_any_other() {
    let body = whole(vec![text("a "), Part::Subrequest("/none"), text(" b")]);
    assert!(
        body.starts_with("a <html>") && body.ends_with(" b"),
        "{body}"
    );
    assert!(body.contains("404 Not Found"));
}

#[test]
fn a_subrequest_that_is_closed_breaks_its_parent_off_after_what_came_before_it() {
    let mut world = World::new("");
    let (mut ran, _) = page(
        &mut world,
        vec![text("a "), Part::Subrequest("/drop"), text("b")],
    );
    assert_eq!(world.pull(&mut ran.x), ("a ".to_owned(), "broken"));
    let (mut ran, _) = page(&mut world, vec![InMemory("/drop")]);
    assert_eq!(world.pull(&mut ran.x).1, "broken");
}

#[test]
fn a_body_that_is_held_goes_to_whoever_asked_and_not_to_the_client() {
    let mut world = World::new("");
    let (mut ran, left) = page(
        &mut world,
        vec![
            text("a "),
            InMemory("/say/held"),
            InMemory("/file/in_a_file"),
            InMemory("/none"),
            text("b"),
        ],
    );
    assert_eq!(world.pull(&mut ran.x), ("a b".to_owned(), "end"));
    let held = left.held.borrow();
    assert_eq!(held[0], (200, "held".to_owned()));
    assert_eq!(held[1], (200, "in_a_file".to_owned()));
    assert_eq!(held[2].0, 404);
    assert!(held[2].1.contains("404 Not Found"));
}

#[test]
fn a_stage_waits_for_the_body_that_is_held_for_it() {
    let mut world = World::new("");
    let (mut ran, left) = page(
        &mut world,
        vec![
            text("a "),
            InMemory("/late/100/held"),
            Part::Subrequest("/say/b"),
        ],
    );
    assert_eq!(world.pull(&mut ran.x), ("a ".to_owned(), "later"));
    assert_eq!(ran.x.due_ms(), Some(START_MS + 100));
    assert_eq!((begun(&ran), left.left.borrow().len()), (1, 1));
    world.pass(100);
    assert_eq!(world.pull(&mut ran.x), ("b".to_owned(), "end"));
    assert_eq!(*left.held.borrow(), [(200, "held".to_owned())]);
}

#[test]
fn what_is_held_in_memory_ends_at_subrequest_output_buffer_size() {
    let mut world = World::new("subrequest_output_buffer_size 10;");
    let (mut ran, left) = page(&mut world, vec![InMemory("/big/10")]);
    assert_eq!(world.pull(&mut ran.x).1, "end");
    assert_eq!(left.held.borrow()[0].1.len(), 10);
    let (mut ran, left) = page(&mut world, vec![InMemory("/big/11")]);
    assert_eq!(world.pull(&mut ran.x).1, "broken");
    assert!(left.held.borrow().is_empty());
    let said = world.said();
    assert!(
        said.contains("too big subrequest response while processing \"/big/11\""),
        "{said}"
    );
    let (mut ran, _) = page(&mut world, vec![Part::Subrequest("/big/11")]);
    assert_eq!(
        world.pull(&mut ran.x).1,
        "end",
        "what is not held may be larger"
    );
}

#[test]
fn held_pieces_count_together() {
    let mut world = World::new("subrequest_output_buffer_size 10;");
    for (around, end) in [("/say/12345", "end"), ("/say/123456", "broken")] {
        let mut ran = world.run(&get("/say/page"), &[]);
        let left = Rc::new(Parts::default());
        left.left.borrow_mut().push_back(InMemory("/say/abcde"));
        ran.x.body.stages.push(Box::new(Page(left)));
        ran.x.join_subrequests();
        // The subrequest that is held has one of its own behind its body.
        let script: Reaction = match around {
            "/say/12345" => |x, _| {
                x.add_around(None, Some(b"/say/12345".to_vec()));
                Outcome::Next
            },
            _ => |x, _| {
                x.add_around(None, Some(b"/say/123456".to_vec()));
                Outcome::Next
            },
        };
        ran.react(&[("content", script)]);
        assert_eq!(world.pull(&mut ran.x).1, end, "{around}");
    }
}

#[test]
fn subrequests_are_logged_where_that_is_asked_for() {
    for (value, logged) in [("off", 0), ("on", 2)] {
        let mut world = World::new(&format!("log_subrequest {value};"));
        let (mut ran, _) = page(
            &mut world,
            vec![Part::Subrequest("/say/abc"), Part::Subrequest("/none")],
        );
        world.pull(&mut ran.x);
        assert_eq!(ran.handlers().matches("log").count(), logged, "{value}");
    }
}

#[test]
fn the_log_of_a_subrequest_has_its_bytes() {
    let mut world = World::new("log_subrequest on;");
    let (mut ran, _) = page(&mut world, vec![Part::Subrequest("/nest/12")]);
    ran.react(&[
        // Deeper ones end first: their bytes count in those of the ones above them.
        ("log", |x, _| {
            x.extensions.push(x.response.bytes_sent);
            Outcome::Next
        }),
    ]);
    world.pull(&mut ran.x);
    assert_eq!(
        ran.x.extensions.get::<u64>(),
        Some(&1),
        "the body of /nest/0"
    );
    assert_eq!(
        ran.x.response.bytes_sent, 0,
        "those of the parent are counted by who sends them"
    );
}

#[test]
fn stages_that_are_cleared_take_their_subrequests_along() {
    let mut world = World::new("");
    let (mut ran, _) = page(&mut world, vec![Part::Subrequest("/late/100/a")]);
    ran.x.push_outer_stage(Box::new(Holding(Vec::new())));
    world.pull(&mut ran.x);
    ran.x.drop_body();
    assert!(!ran.x.may_wait() && ran.x.body.stages.is_empty());
    assert_eq!(ran.x.queue_position(), 0);
    ran.x.body.chunks.push_back(Chunk::Static(b"new"));
    assert_eq!(world.pull(&mut ran.x), ("new".to_owned(), "end"));
}

#[test]
fn a_subrequest_that_is_refused_breaks_the_body() {
    let mut world = World::new("");
    let mut x = world.get("/nest/60");
    let (text, end) = world.pull(&mut x);
    assert_eq!(end, "broken");
    assert!(text.ends_with("11109"), "fifty-one below the first: {text}");
    assert!(
        world
            .said()
            .contains("subrequests cycle while processing \"/nest/8\"")
    );
}
