//! Sources that pause and sources that break, and the output of the stages behind them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::Chunk;

use crate::exchange::{BodyRead, BodySource, Ctx, Exchange, Wait};
use crate::testing::{Holding, World, get};

fn text(text: &'static str) -> Chunk {
    Chunk::Static(text.as_bytes())
}

fn exchange(world: &World) -> Exchange {
    world.exchange(&get("/"))
}

/// A source that has a piece for each time it is woken, and breaks behind the last.
struct Waking(Rc<RefCell<VecDeque<&'static str>>>);

impl BodySource for Waking {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        match self.0.borrow_mut().pop_front() {
            Some("broken") => BodyRead::Broken,
            Some(piece) => BodyRead::Chunk(text(piece)),
            None => BodyRead::Pending(Wait::woken()),
        }
    }
}

#[test]
fn stages_let_go_once_of_what_came_before_a_source_waits_or_breaks() {
    let mut world = World::new("");
    let pieces = Rc::new(RefCell::new(VecDeque::from(["a", "b"])));
    let mut x = exchange(&world);
    x.body.source = Some(Box::new(Waking(Rc::clone(&pieces))));
    x.body.stages.push(Box::new(Holding(Vec::new())));
    x.body.stages.push(Box::new(Holding(Vec::new())));
    assert_eq!(world.pull(&mut x), ("ab|".to_owned(), "later"));
    assert_eq!(
        world.pull(&mut x),
        (String::new(), "later"),
        "it is told once"
    );
    pieces.borrow_mut().extend(["c", "d", "broken"]);
    assert_eq!(world.pull(&mut x), ("cd|".to_owned(), "broken"));
    assert_eq!(
        world.pull(&mut x),
        (String::new(), "broken"),
        "again and again"
    );
}

#[test]
fn a_subrequest_lets_the_stages_of_its_parent_go() {
    let mut world = World::new("");
    let mut x = world.get("/say/own");
    let pieces = Rc::new(RefCell::new(VecDeque::from(["a"])));
    x.body.chunks.clear();
    x.body.source = Some(Box::new(Waking(Rc::clone(&pieces))));
    x.body.stages.push(Box::new(Holding(Vec::new())));
    x.add_around(None, Some(b"/say/-after".to_vec()));
    x.push_outer_stage(Box::new(Holding(Vec::new())));
    assert_eq!(world.pull(&mut x), ("a|".to_owned(), "later"));
    assert_eq!(world.pull(&mut x), (String::new(), "later"));
    pieces.borrow_mut().extend(["b", "broken"]);
    assert_eq!(
        world.pull(&mut x),
        ("b|".to_owned(), "broken"),
        "nothing comes after it"
    );
}

#[test]
fn what_is_queued_before_a_broken_body_leaves() {
    let mut world = World::new("");
    let mut x = world.get("/say/own");
    let pieces = Rc::new(RefCell::new(VecDeque::from(["a", "broken"])));
    x.body.chunks.clear();
    x.body.source = Some(Box::new(Waking(pieces)));
    x.add_around(Some(b"/late/100/before ".to_vec()), None);
    assert_eq!(world.pull(&mut x), (String::new(), "later"));
    world.pass(100);
    assert_eq!(world.pull(&mut x), ("before a".to_owned(), "broken"));
}
