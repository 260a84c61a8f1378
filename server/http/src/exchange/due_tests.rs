//! Waiting and being woken: exchanges, subrequests in their parents, and sources of bodies.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::Chunk;
use server_base::waker::{WakeKey, Waker};

use crate::exchange::{Answer, BodyRead, BodySource, Ctx, Exchange, State, Subrequest, Wait};
use crate::testing::{Outcome, Ran, Reaction, START_MS, World, get};

/// Waits to be woken; the waker is kept.
const WAITS: Reaction = |x, cx| {
    let waker = x.waker(cx);
    WAKERS.with_borrow_mut(|wakers| wakers.push(waker));
    x.progress.state = State::Waiting(Wait::woken());
    Outcome::Wait
};

thread_local! {
    static WAKERS: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

/// The waker of the exchange that waited last.
fn kept() -> Waker {
    WAKERS
        .with_borrow_mut(Vec::pop)
        .expect("an exchange waits to be woken")
}

/// A request of stream 3 whose content handler waits.
fn waiting(world: &mut World) -> Ran {
    let mut x = world.exchange(&get("/a"));
    x.client.wake = WakeKey {
        owner: 7,
        stream: 3,
    };
    let ran = world.begin(x, &[("content", WAITS)]);
    ran.handlers();
    ran
}

#[test]
fn an_exchange_that_is_woken_is_due_and_goes_on() {
    let mut world = World::new("");
    let mut ran = waiting(&mut world);
    let waker = kept();
    assert!(ran.x.is_waiting() && !ran.x.is_due(u64::MAX - 1));
    waker.wake();
    assert!(ran.x.is_due(START_MS));
    assert_eq!(
        world.queues.wakers.take(),
        [WakeKey {
            owner: 7,
            stream: 3
        }]
    );
    world.resume(&mut ran.x);
    assert!(ran.handlers().starts_with("content"));
    assert!(!waker.is_woken(), "the wake is used up");
}

#[test]
fn a_wake_before_the_wait_begins_is_not_lost() {
    let mut world = World::new("");
    let ran = world.run(
        &get("/a"),
        &[("content", |x, cx| {
            let waker = x.waker(cx);
            assert!(waker.is_same(&x.waker(cx)), "an exchange has one");
            waker.wake();
            x.progress.state = State::Waiting(Wait::woken());
            Outcome::Wait
        })],
    );
    assert!(ran.x.is_due(START_MS));
    assert_eq!(world.queues.wakers.take().len(), 1);
}

#[test]
fn a_wake_too_many_runs_the_handler_that_waits_on() {
    let mut world = World::new("");
    let mut ran = waiting(&mut world);
    ran.react(&[("content", WAITS)]);
    world.resume(&mut ran.x);
    assert_eq!(ran.handlers(), "content");
    assert!(ran.x.is_waiting());
    assert!(kept().is_same(&kept()), "it waits by the same waker");
}

#[test]
fn an_exchange_that_does_not_wait_has_no_waker_and_an_ended_one_wakes_nobody() {
    let mut world = World::new("");
    assert!(world.get("/a").progress.waker.is_none());
    let mut x = waiting(&mut world).x;
    let waker = kept();
    assert!(!waker.is_orphan());
    crate::phases::log(&mut x, &mut world.cx());
    assert!(waker.is_orphan());
    let client = x.client;
    x.clear_reply();
    x.begin(Rc::clone(&world.generation), 0, client, &world.clock);
    waker.wake();
    x.progress.state = State::Waiting(Wait::woken());
    assert!(!x.is_due(START_MS), "it is another request");
}

#[test]
fn who_asks_is_woken_with_the_subrequest_however_deep() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/a"), &[]);
    ran.x.client.wake.owner = 7;
    ran.react(&[("content", ASKS), ("content", WAITS)]);
    ran.handlers();
    let ask = |world: &mut World, x: &mut Exchange| x.ask(&mut world.cx(), b"/asks", b"");
    assert!(matches!(ask(&mut world, &mut ran.x), Answer::Wait));
    assert_eq!(ran.x.progress.state, State::Waiting(Wait::woken()));
    assert!(!ran.x.is_due(START_MS + 100_000));
    ran.handlers();
    assert!(matches!(ask(&mut world, &mut ran.x), Answer::Wait));
    assert_eq!(
        ran.handlers(),
        "",
        "a wake too many is no wake of the child"
    );
    kept().wake();
    assert_eq!(
        world.queues.wakers.take()[0].owner,
        7,
        "it has its root's key"
    );
    assert!(ran.x.is_due(START_MS));
    ran.react(&[("content", ASKS)]);
    assert!(matches!(ask(&mut world, &mut ran.x), Answer::Head(_)));
}

/// Asks for the head of another subrequest, which waits.
const ASKS: Reaction = |x, cx| match x.ask(cx, b"/waits", b"") {
    Answer::Wait => Outcome::Wait,
    Answer::Head(_) => Outcome::Next,
    Answer::None => Outcome::Sent,
};

#[test]
fn a_subrequest_that_is_woken_goes_on_whether_it_is_first_or_not() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/say/own"), &[]);
    ran.react(&[("say", WAITS), ("say", WAITS)]);
    ran.x.add_around(
        Some(b"/say/before-".to_vec()),
        Some(b"/say/-after".to_vec()),
    );
    assert_eq!(world.pull(&mut ran.x), (String::new(), "later"));
    assert_eq!(ran.x.progress.pull_wait, Some(Wait::woken()));
    ran.handlers();
    let after = kept();
    let before = kept();
    after.wake();
    assert_eq!(world.pull(&mut ran.x), (String::new(), "later"));
    assert_eq!(ran.handlers(), "say");
    before.wake();
    assert_eq!(
        world.pull(&mut ran.x),
        ("before-own-after".to_owned(), "end")
    );
    assert_eq!(world.queues.wakers.take().len(), 1, "they have one key");
}

/// A source that waits between its pieces.
struct Slow(VecDeque<BodyRead>);

impl BodySource for Slow {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        self.0.pop_front().unwrap_or(BodyRead::End)
    }
}

fn slow() -> Box<Slow> {
    let piece = |text: &str| BodyRead::Chunk(Chunk::Owned(text.as_bytes().to_vec()));
    Box::new(Slow(VecDeque::from([
        piece("a"),
        BodyRead::Pending(Wait::woken()),
        piece("b"),
    ])))
}

/// A subrequest like [`slow`] that is called twice before it waits.
fn slow_subrequest() -> Box<Slow> {
    let mut slow = slow();
    slow.0.insert(1, BodyRead::Pending(Wait::woken()));
    slow
}

#[test]
fn a_source_that_is_to_wake_has_no_time() {
    let mut world = World::new("");
    let mut x = world.get("/say/");
    x.body.chunks.clear();
    x.body.source = Some(slow());
    assert_eq!(world.pull(&mut x), ("a".to_owned(), "later"));
    assert_eq!(x.due_ms(), Some(u64::MAX));
    assert_eq!(world.pull(&mut x), ("b".to_owned(), "end"));
    assert_eq!(x.progress.pull_wait, None);
}

#[test]
fn a_subrequest_waits_for_its_source_and_its_parent_with_it() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/say/own"), &[]);
    ran.react(&[("say", |x, cx| {
        x.body.source = Some(slow_subrequest());
        x.reply.status = 200;
        crate::reply::send(x, cx, None);
        Outcome::Sent
    })]);
    ran.x.add_around(Some(b"/slow".to_vec()), None);
    assert_eq!(world.pull(&mut ran.x), ("a|".to_owned(), "later"));
    assert_eq!(ran.x.due_ms(), Some(u64::MAX));
    assert_eq!(world.pull(&mut ran.x), ("bown".to_owned(), "end"));
}

#[test]
fn a_child_has_a_waker_of_its_own_and_its_roots_key() {
    let mut world = World::new("");
    let mut x = world.get("/a");
    x.client.wake.owner = 9;
    let mut child = Subrequest::open(&mut x, &world.cx(), b"/b", b"").expect("it is the first");
    let waker = child.exchange.waker(&world.cx());
    assert!(!waker.is_same(&x.waker(&world.cx())));
    waker.wake();
    assert_eq!(world.queues.wakers.take()[0].owner, 9);
}
