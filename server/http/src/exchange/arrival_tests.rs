//! Which exchanges get the callback for arrivals, and when.

use std::collections::VecDeque;

use engines::http::Chunk;

use crate::exchange::{BodyRead, BodySource, Ctx, Exchange, State, Wait};
use crate::testing::{Outcome, World, get};

/// The exchanges that were notified, by their URIs.
#[derive(Default)]
struct Notified(VecDeque<Vec<u8>>);

fn tell(x: &mut Exchange, _: &mut Ctx<'_>) {
    let uri = x.target.uri.clone();
    match x.extensions.get_mut::<Notified>() {
        Some(told) => told.0.push_back(uri),
        None => x.extensions.push(Notified(VecDeque::from([uri]))),
    }
}

fn told(x: &mut Exchange) -> String {
    let told = x.extensions.take::<Notified>().unwrap_or_default();
    let told: Vec<_> = told
        .0
        .iter()
        .map(|uri| String::from_utf8_lossy(uri))
        .collect();
    told.join(" ")
}

struct Never;

impl BodySource for Never {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        BodyRead::Pending(Wait::woken())
    }
}

fn passes(x: &mut Exchange, cx: &mut Ctx<'_>) -> Outcome {
    x.body.on_arrival = Some(tell);
    x.body.source = Some(Box::new(Never));
    x.reply.status = 200;
    crate::reply::send(x, cx, None);
    Outcome::Sent
}

#[test]
fn an_exchange_is_told_while_its_response_is_on_its_way() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/a"), &[("say", passes)]);
    assert_eq!(told(&mut ran.x), "");
    ran.x.arrived(&mut world.cx());
    assert_eq!(told(&mut ran.x), "/a");
    for state in [
        State::Running,
        State::Waiting(Wait::woken()),
        State::Aborted,
    ] {
        ran.x.progress.state = state;
        ran.x.arrived(&mut world.cx());
        assert_eq!(told(&mut ran.x), "", "{state:?}");
    }
}

#[test]
fn who_is_told_is_forgotten_with_the_response() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/a"), &[("say", passes)]);
    ran.x.drop_body();
    assert!(ran.x.body.on_arrival.is_none());
    let status = |x: &mut Exchange, _: &mut Ctx<'_>| {
        x.body.on_arrival = Some(tell);
        Outcome::Status(502)
    };
    let failed = world.run(&get("/a"), &[("say", status)]);
    assert_eq!(failed.x.response.head.status, 502);
    assert!(
        failed.x.body.on_arrival.is_none(),
        "the page is asked of nobody"
    );
}

#[test]
fn subrequests_are_told_with_their_parent_whether_they_are_first_or_not() {
    let mut world = World::new("");
    let mut ran = world.run(&get("/say/own"), &[]);
    ran.react(&[("say", passes), ("say", passes)]);
    ran.x.body.chunks.push_back(Chunk::Static(b"more"));
    ran.x
        .add_around(Some(b"/one".to_vec()), Some(b"/two".to_vec()));
    assert_eq!(world.pull(&mut ran.x).1, "later");
    ran.x.arrived(&mut world.cx());
    assert_eq!(told(&mut ran.x), "/one /two");
}
