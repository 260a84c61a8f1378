//! Exchanges and bodies that wait to be woken. Wakes come early, twice, without a reason, or too late.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use driver::worker::wakes::ROUNDS_MAX;
use engines::http::Chunk;
use server_base::waker::Waker;
use server_http::exchange::{BodyRead, BodySource, Ctx, Exchange, Peer, Wait};
use sim::{Faults, Random, Wire};

use super::frames::{CANCEL, RESET, Received, frame};
use super::site::{TestConnection, begun, body, get, logged, statuses};
use super::streams::{Client, head};

/// State of the handlers of `/woken` and `/fed`, by the rest of the URI.
#[derive(Default)]
struct Stage {
    wakers: HashMap<Vec<u8>, Waker>,
    /// Answers that end the waits of `/woken`.
    answers: HashMap<Vec<u8>, &'static str>,
    /// The pieces of `/fed`.
    pieces: HashMap<Vec<u8>, VecDeque<BodyRead>>,
    /// Number of times that `/woken/self/N` has woken itself.
    times: usize,
}

thread_local! {
    static STAGE: RefCell<Stage> = RefCell::default();
}

/// Returns the answer of `/woken`, or its wait. A resumed handler checks again whether the answer is there.
pub(crate) fn ending(x: &mut Exchange, cx: &Ctx<'_>) -> Result<String, Wait> {
    let (uri, waker) = (x.target.uri.clone(), x.waker(cx));
    STAGE.with_borrow_mut(|stage| {
        if let Some(answer) = stage.answers.remove(&uri) {
            return Ok(answer.to_owned());
        }
        if let Some(most) = uri.strip_prefix(b"/woken/self/") {
            // It is woken before it waits.
            let most = String::from_utf8_lossy(most).parse::<usize>();
            if stage.times == most.expect("a number") {
                return Ok(std::mem::take(&mut stage.times).to_string());
            }
            stage.times += 1;
            waker.wake();
        }
        stage.wakers.insert(uri, waker);
        Err(Wait::woken())
    })
}

/// Returns the body of `/fed`.
pub(crate) fn feeding(x: &mut Exchange, cx: &Ctx<'_>) -> impl BodySource + use<> {
    let (uri, waker) = (x.target.uri.clone(), x.waker(cx));
    STAGE.with_borrow_mut(|stage| stage.wakers.insert(uri.clone(), waker));
    Fed(uri)
}

struct Fed(Vec<u8>);

impl BodySource for Fed {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        let next = |stage: &mut Stage| stage.pieces.get_mut(&self.0)?.pop_front();
        STAGE
            .with_borrow_mut(next)
            .unwrap_or(BodyRead::Pending(Wait::woken()))
    }
}

pub(crate) fn waker(uri: &str) -> Waker {
    STAGE.with_borrow(|stage| stage.wakers[uri.as_bytes()].clone())
}

/// Sets the answer for the handler of a URI. The handler takes it when it runs again.
pub(crate) fn answer(uri: &str, text: &'static str) {
    STAGE.with_borrow_mut(|stage| stage.answers.insert(uri.into(), text));
}

/// Adds a piece or the end to the body of a URI, and wakes its exchange.
pub(crate) fn feed(uri: &str, text: Option<&str>) {
    let piece = text.map_or(BodyRead::End, |text| {
        BodyRead::Chunk(Chunk::Owned(text.as_bytes().to_vec()))
    });
    STAGE.with_borrow_mut(|stage| {
        stage.pieces.entry(uri.into()).or_default().push_back(piece);
        stage.wakers[uri.as_bytes()].wake();
    });
}

/// Longer than any timeout, milliseconds.
const LONG_MS: u64 = 1_000_000;

#[test]
fn an_exchange_waits_without_a_time_until_it_is_woken() {
    let mut talk = TestConnection::new("");
    assert_eq!(talk.send(get("/woken/a")), "");
    assert_eq!(talk.pass(LONG_MS), "");
    assert_eq!((begun(), talk.is_open()), (1, true));
    answer("/woken/a", "here");
    waker("/woken/a").wake();
    assert_eq!(body(&talk.turn()), "here");
    assert_eq!(begun(), 1);
}

#[test]
fn another_thread_wakes_an_exchange() {
    let mut talk = TestConnection::new("");
    talk.send(get("/woken/far"));
    answer("/woken/far", "here");
    let remote = waker("/woken/far").remote();
    std::thread::spawn(move || remote.wake())
        .join()
        .expect("it does not panic");
    assert_eq!(body(&talk.turn()), "here");
}

#[test]
fn a_wake_before_the_wait_is_not_lost() {
    let mut talk = TestConnection::new("");
    assert_eq!(body(&talk.send(get("/woken/self/1"))), "1");
    assert_eq!(begun(), 2);
}

#[test]
fn one_turn_of_the_loop_has_a_limit_of_rounds() {
    for (wakes, answered) in [(ROUNDS_MAX, true), (ROUNDS_MAX + 1, false)] {
        let mut talk = TestConnection::new("");
        talk.push(get(&format!("/woken/self/{wakes}")));
        talk.world.poll(1000);
        assert_eq!(!talk.received().is_empty(), answered, "{wakes}");
        assert_eq!(talk.world.is_ready(), !answered);
        talk.turn();
        assert_eq!(begun(), wakes + 1);
    }
}

#[test]
fn a_wake_too_many_or_for_nothing_does_no_harm() {
    let mut talk = TestConnection::new("");
    talk.send(get("/woken/b"));
    begun();
    let waker = waker("/woken/b");
    waker.wake();
    waker.wake();
    assert_eq!(talk.turn(), "");
    assert_eq!(begun(), 1, "both in one turn");
    answer("/woken/b", "here");
    waker.wake();
    waker.remote().wake();
    assert_eq!(body(&talk.turn()), "here");
    // The exchange is over, and its connection waits for the next request.
    waker.wake();
    assert_eq!(talk.turn(), "");
    talk.send("GET /wo");
    waker.wake();
    assert_eq!(talk.turn(), "");
    assert_eq!(
        statuses(&talk.send("rld HTTP/1.1\r\nHost: a\r\n\r\n")),
        ["200"]
    );
    // The next exchange waits for a timer, which a wake does not end.
    talk.send(get("/wait/100"));
    begun();
    waker.wake();
    assert_eq!(talk.turn(), "");
    assert_eq!(begun(), 0);
    assert_eq!(statuses(&talk.pass(100)), ["200"]);
    talk.end();
    assert!(talk.is_closed());
    waker.wake();
    assert_eq!(talk.turn(), "");
}

#[test]
fn a_wake_of_a_connection_that_is_gone_does_not_reach_the_next_in_its_place() {
    let mut talk = TestConnection::new("");
    talk.send(get("/woken/c"));
    let old = waker("/woken/c");
    talk.end();
    assert!(talk.is_closed());
    assert_eq!(logged(), [499]);
    let (hands, dice) = (Rc::clone(&talk.world.hands), Random::new(3));
    let wire = Wire::new(hands, dice, Faults::default(), 1 << 20);
    let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_001)));
    let next = talk.world.accept(wire, 0, peer);
    let sends = get("/woken/d");
    talk.world.links[next]
        .wire
        .borrow_mut()
        .push(sends.as_bytes());
    talk.turn();
    begun();
    old.wake();
    talk.turn();
    assert_eq!(begun(), 0);
    waker("/woken/d").wake();
    talk.turn();
    assert_eq!(begun(), 1);
}

#[test]
fn a_stream_is_woken_alone() {
    let mut client = Client::new("");
    for (stream, uri) in [(1, "/woken/1"), (3, "/woken/3"), (5, "/woken/5")] {
        assert_eq!(client.get(stream, uri), []);
    }
    assert_eq!(client.pass(LONG_MS), []);
    begun();
    answer("/woken/3", "abc");
    waker("/woken/3").wake();
    let received = client.turn();
    assert_eq!(received, [head(3), Received::Data(3, 3), Received::End(3)]);
    assert_eq!(begun(), 1);
    client.send(&frame(RESET, 0, 5, &CANCEL.to_be_bytes()));
    for uri in ["/woken/3", "/woken/5"] {
        waker(uri).wake();
    }
    assert_eq!(client.turn(), []);
    assert_eq!(begun(), 0, "the streams are gone");
    answer("/woken/1", "a");
    waker("/woken/1").wake();
    assert_eq!(client.turn().first(), Some(&head(1)));
}

#[test]
fn streams_that_are_woken_together_leave_in_one_write() {
    let mut client = Client::new("");
    for (stream, uri) in [(1, "/woken/6"), (3, "/woken/7")] {
        client.get(stream, uri);
        answer(uri, "abc");
    }
    let sends = client.talk.sends();
    for uri in ["/woken/6", "/woken/7"] {
        waker(uri).wake();
    }
    assert_eq!(client.turn().len(), 6);
    assert_eq!(client.talk.sends(), sends + 1);
}

#[test]
fn a_body_leaves_in_the_turn_in_which_its_source_wakes() {
    let mut talk = TestConnection::new("");
    assert_eq!(statuses(&talk.send(get("/fed/1"))), ["200"]);
    assert_eq!(talk.pass(LONG_MS), "", "there is no time for it");
    feed("/fed/1", Some("abc"));
    assert_eq!(talk.turn(), "3\r\nabc\r\n");
    feed("/fed/1", None);
    assert_eq!(talk.turn(), "0\r\n\r\n");
    assert_eq!(logged(), [200]);
}

#[test]
fn a_body_of_a_stream_leaves_in_the_turn_in_which_its_source_wakes() {
    let mut client = Client::new("");
    for (stream, uri) in [(1, "/fed/2"), (3, "/fed/3")] {
        assert_eq!(client.get(stream, uri), [head(stream)]);
    }
    assert_eq!(client.pass(LONG_MS), []);
    feed("/fed/3", Some("abc"));
    assert_eq!(client.turn(), [Received::Data(3, 3)]);
    waker("/fed/2").wake();
    assert_eq!(client.turn(), [], "there is nothing yet");
    feed("/fed/2", Some("ab"));
    feed("/fed/2", None);
    assert_eq!(client.turn(), [Received::Data(1, 2), Received::End(1)]);
}
