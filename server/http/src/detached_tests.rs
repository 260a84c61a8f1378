//! Requests without a client: their begin, their copies of other requests, their ends.

use std::cell::Cell;
use std::rc::Rc;

use engines::http::{BodyLength, Method, RequestHead};
use server_base::waker::WakeKey;

use super::{Discarded, discard, end};
use crate::decision::LimitResult;
use crate::exchange::{
    DetachedEnd, DetachedRequest, MAX_SUBREQUESTS_DEEP, Peer, Queues, State, TooMany, Upstream,
    Wait,
};
use crate::testing::{Outcome, START_MS, World, watch};

#[test]
fn a_detached_request_owns_what_it_uses_of_its_parent() {
    let mut world = World::new("");
    let head = "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nX-A: b\r\n\r\n";
    let mut x = world.run(head, &[]).x;
    (x.client.connection, x.client.socket) = (7, 9);
    x.vars.request_id = Some([3; 16]);
    x.vars.limits.rate = Some(LimitResult::Delayed);
    world.pass(5);
    let child = DetachedRequest::child_of(&x, &world.cx(), b"/m.txt", b"q");
    let child = child.expect("it is the first").exchange;
    drop(x);
    assert_eq!(child.head.named(b"X-A").next(), Some(&b"b"[..]));
    assert_eq!(child.head.body, BodyLength::None);
    let target = &child.target;
    assert_eq!(
        (&*target.host, &*target.uri, &*target.args, target.method),
        (&b"localhost"[..], &b"/m.txt"[..], &b"q"[..], Method::Post)
    );
    assert_eq!(child.vars.request_id, Some([3; 16]));
    let limits = child.vars.limits;
    assert_eq!(
        (limits.rate, limits.connections),
        (Some(LimitResult::Delayed), None)
    );
    let client = &child.client;
    assert_eq!((client.connection, client.socket), (7, -1));
    assert_eq!(client.wake, WakeKey::default());
    assert!(child.is_subrequest() && child.is_head_made() && child.route.internal);
    assert_eq!(child.started_ms, START_MS + 5);
}

#[test]
fn it_begins_where_subrequests_do_or_in_a_location() {
    let mut world = World::new("location /deep { }");
    let x = world.get("/a");
    for (location, ran) in [
        (
            None,
            "server_rewrite rewrite rewrite_2 pre_access pre_content content say",
        ),
        (Some(x.route.location), "content say"),
    ] {
        let mut child = DetachedRequest::child_of(&x, &world.cx(), b"/deep", b"")
            .expect("it is the first")
            .method(Method::Get);
        if let Some(location) = location {
            child = child.in_location(location);
        }
        let handlers = watch(&mut child.exchange, &[]);
        let done = discard(&mut child.exchange, &mut world.cx());
        assert_eq!(done, Discarded::Ended(DetachedEnd::Complete));
        assert_eq!(handlers.borrow().join(" "), ran);
    }
}

#[test]
fn a_head_alone_makes_a_request_of_the_server_itself() {
    let mut world = World::http("server { server_name a; } server { server_name b; }");
    let head = RequestHead {
        method: Method::Head,
        ..RequestHead::default()
    };
    let http = Rc::clone(&world.generation);
    let mut request = DetachedRequest::new(&http, (0, 1), head, &world.clock);
    let x = &mut request.exchange;
    x.target.set_uri(b"/health");
    assert_eq!((x.route.server, x.client.peer), (1, Peer::Unix));
    let done = discard(x, &mut world.cx());
    assert_eq!(done, Discarded::Ended(DetachedEnd::Complete));
    assert_eq!(x.target.method, Method::Head);
}

#[test]
fn requests_start_each_other_so_deep_and_no_deeper() {
    let mut world = World::new("");
    let mut x = Box::new(world.get("/a"));
    for _ in 1..=MAX_SUBREQUESTS_DEEP {
        let child = DetachedRequest::child_of(&x, &world.cx(), b"/b", b"");
        x = child.expect("not too deep").exchange;
    }
    let deeper = DetachedRequest::child_of(&x, &world.cx(), b"/b", b"");
    assert_eq!(deeper.err(), Some(TooMany));
    assert!(world.said().contains("subrequests cycle"));
}

#[test]
fn a_wait_ends_by_a_wake_and_a_log_is_written_for_those_that_want_one() {
    for is_logged in [false, true] {
        let mut world = World::new("");
        let x = world.get("/a");
        let seen = Rc::new(Cell::new(None));
        let told = Rc::clone(&seen);
        let request = DetachedRequest::child_of(&x, &world.cx(), b"/b", b"");
        let request = request.expect("it is the first");
        let mut request = request.observed_by(move |x, end| told.set(Some((x.status(), end))));
        if is_logged {
            request = request.logged();
        }
        let handlers = watch(
            &mut request.exchange,
            &[("content", |x, _| {
                x.progress.state = State::Waiting(Wait::woken());
                Outcome::Wait
            })],
        );
        let held = Rc::new(());
        request.exchange.extensions.push(Rc::clone(&held));
        for _ in 0..2 {
            let done = discard(&mut request.exchange, &mut world.cx());
            assert_eq!(done, Discarded::Pending);
        }
        request.exchange.waker(&world.cx()).wake();
        let done = discard(&mut request.exchange, &mut world.cx());
        assert_eq!(done, Discarded::Ended(DetachedEnd::Complete));
        handlers.borrow_mut().clear();
        end(&mut request, &mut world.cx(), DetachedEnd::Complete);
        assert_eq!(seen.get(), Some((200, DetachedEnd::Complete)));
        assert!(request.exchange.response.completed);
        assert_eq!(handlers.borrow().contains(&"log"), is_logged);
        assert_eq!(Rc::strong_count(&held), 1, "extensions are dropped");
    }
}

#[test]
fn an_end_without_a_response_has_a_status() {
    for (cause, status) in [
        (DetachedEnd::TimedOut, 504),
        (DetachedEnd::Closed, 499),
        (DetachedEnd::Broken, 0),
    ] {
        let mut world = World::new("");
        let x = world.get("/a");
        let request = DetachedRequest::child_of(&x, &world.cx(), b"/b", b"");
        let mut request = request.expect("it is the first");
        end(&mut request, &mut world.cx(), cause);
        assert_eq!(request.exchange.status(), status);
    }
}

#[test]
fn an_observer_sees_the_end_of_the_last_attempt() {
    let mut world = World::new("");
    let x = world.get("/a");
    let request = DetachedRequest::child_of(&x, &world.cx(), b"/b", b"");
    let ended_ms = Rc::new(Cell::new(None));
    let seen = Rc::clone(&ended_ms);
    let mut request = (request.expect("it is the first")).observed_by(move |x, _| {
        let attempt = x.upstream.as_mut().and_then(|upstream| upstream.last());
        seen.set(attempt.and_then(|attempt| attempt.ended_ms));
    });
    let mut upstream = Box::<Upstream>::default();
    upstream.begin_attempt(Rc::from(*b"a"), START_MS, None);
    request.exchange.upstream = Some(upstream);
    world.pass(5);
    end(&mut request, &mut world.cx(), DetachedEnd::TimedOut);
    assert_eq!(ended_ms.get(), Some(START_MS + 5));
}

#[test]
fn a_started_request_is_queued_and_wakes_the_loop() {
    let look = WakeKey {
        owner: 5,
        stream: 0,
    };
    let mut world = World::new("");
    world.queues = Queues::new(world.queues.wakers.clone(), look);
    let x = world.get("/a");
    let request = DetachedRequest::child_of(&x, &world.cx(), b"/b", b"");
    let request = request.expect("it is the first");
    request.within(10).start(&world.cx());
    assert_eq!(world.queues.wakers.take(), [look]);
    let started = world.queues.take_detached();
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].until_ms, START_MS + 10);
    assert!(world.queues.take_detached().is_empty());
}
