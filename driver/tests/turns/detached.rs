//! Exchanges without a client: they outlive the request that started them. They end by themselves, by timeout, or with
//! their configuration.

use std::cell::RefCell;

use server_http::exchange::{Ctx, DetachedEnd, DetachedRequest, Exchange, Rest};
use sim::Command;

use super::site::{TestConnection, generation, get, log_entries, logged, statuses};
use super::wakes::{answer, feed, waker};

/// URI, status and end of an exchange.
type Seen = (String, u16, DetachedEnd);

thread_local! {
    /// Ended detached exchanges, as their observers saw them.
    static SEEN: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
}

/// Starts the request `/detach/HOW/MS/URI`: `logged`, `quiet` or `head`, with a timeout of MS milliseconds (0: none).
/// `/detach/self` starts itself.
pub(crate) fn start(x: &Exchange, cx: &Ctx<'_>, words: &[&str]) {
    let (how, within_ms, uri) = match words {
        [how, ms, uri @ ..] => (*how, ms.parse().expect("a number"), uri.join("/")),
        _ => ("quiet", 0, "detach/self".to_owned()),
    };
    let uri = format!("/{uri}");
    let Ok(request) = DetachedRequest::child_of(x, cx, uri.as_bytes(), b"") else {
        return;
    };
    let mut request = request.observed_by(|x, end| {
        let uri = String::from_utf8_lossy(&x.target.uri).into_owned();
        let seen = (uri, x.status(), end);
        SEEN.with_borrow_mut(|all| all.push(seen));
    });
    match how {
        "logged" => request = request.logged(),
        "head" => request = request.head_only(),
        _ => {}
    }
    if within_ms > 0 {
        request = request.within(within_ms);
    }
    request.start(cx);
}

fn seen() -> Vec<Seen> {
    SEEN.take()
}

fn ended(uri: &str, status: u16, end: DetachedEnd) -> Seen {
    (uri.to_owned(), status, end)
}

/// A client that starts a request and leaves.
fn left_behind(target: &str) -> TestConnection {
    seen();
    let mut talk = TestConnection::new("");
    assert_eq!(statuses(&talk.send(get(target))), ["200"]);
    talk.end();
    assert!(talk.is_closed());
    talk
}

#[test]
fn a_detached_exchange_outlives_its_parent_until_it_is_woken() {
    let mut talk = left_behind("/detach/logged/0/woken/a");
    assert_eq!(logged(), [200], "the parent");
    assert_eq!(talk.world.counts(), (1, 1), "it has a slot and a timer");
    talk.pass(1_000_000);
    assert_eq!(seen(), []);
    answer("/woken/a", "here");
    let waker = waker("/woken/a");
    waker.wake();
    talk.turn();
    assert_eq!(seen(), [ended("/woken/a", 200, DetachedEnd::Complete)]);
    let log_entries = log_entries();
    assert_eq!(log_entries.len(), 1);
    let entry = &log_entries[0];
    assert_eq!((entry.uri.as_str(), entry.status), ("/woken/a", 200));
    assert_eq!((entry.bytes_sent, entry.completed), (0, true));
    assert_eq!(talk.world.counts(), (0, 0));
    waker.wake();
    talk.turn();
    assert_eq!(seen(), [], "a wake after its end does nothing");
}

#[test]
fn its_creator_decides_whether_it_is_logged() {
    let talk = left_behind("/detach/quiet/0/status/404");
    assert_eq!(logged(), [200], "only the parent");
    assert_eq!(seen(), [ended("/status/404", 404, DetachedEnd::Complete)]);
    assert_eq!(talk.world.shared.requests, 1);
    let talk = left_behind("/detach/logged/0/status/404");
    assert_eq!(logged(), [200, 404]);
    assert_eq!(talk.world.shared.requests, 2);
}

#[test]
fn a_detached_exchange_ends_at_the_time_of_its_creator() {
    let mut talk = left_behind("/detach/logged/100/woken/b");
    logged();
    talk.pass(99);
    assert_eq!(seen(), []);
    talk.pass(1);
    assert_eq!(seen(), [ended("/woken/b", 504, DetachedEnd::TimedOut)]);
    assert_eq!(logged(), [504]);
    assert_eq!(talk.world.counts(), (0, 0));
}

#[test]
fn an_end_in_time_needs_no_limit() {
    let mut talk = left_behind("/detach/quiet/100/wait/100");
    talk.pass(99);
    assert_eq!(seen(), []);
    talk.pass(1);
    let [(_, _, end)] = seen()[..] else {
        panic!("one has ended")
    };
    assert_eq!(end, DetachedEnd::TimedOut, "both times have come");
    let mut talk = left_behind("/detach/quiet/101/wait/100");
    talk.pass(100);
    assert_eq!(seen(), [ended("/wait/100", 200, DetachedEnd::Complete)]);
    assert_eq!(talk.world.counts(), (0, 0));
}

#[test]
fn a_response_is_read_to_its_end_or_to_where_it_breaks() {
    left_behind("/detach/quiet/0/pieces/300/1000");
    assert_eq!(
        seen(),
        [ended("/pieces/300/1000", 200, DetachedEnd::Complete)]
    );
    left_behind("/detach/quiet/0/broken/7");
    assert_eq!(seen(), [ended("/broken/7", 200, DetachedEnd::Broken)]);
}

#[test]
fn a_body_arrives_piece_by_piece() {
    let mut talk = left_behind("/detach/logged/0/fed/d");
    logged();
    feed("/fed/d", Some("abc"));
    talk.turn();
    assert_eq!((seen(), talk.world.counts().0), (vec![], 1));
    feed("/fed/d", None);
    talk.turn();
    assert_eq!(seen(), [ended("/fed/d", 200, DetachedEnd::Complete)]);
    assert_eq!(logged(), [200]);
    assert_eq!(talk.world.counts(), (0, 0));
}

#[test]
fn an_unused_response_is_read_up_to_a_number_of_bytes() {
    const LIMIT: u64 = Rest::UNUSED.bytes;
    for (bytes, has_ended) in [(LIMIT - 1, false), (LIMIT, false), (LIMIT + 1, true)] {
        let mut talk = left_behind("/detach/head/0/fed/g");
        let body = "x".repeat(bytes as usize);
        feed("/fed/g", Some(&body));
        talk.turn();
        assert_eq!(seen().len(), usize::from(has_ended), "{bytes}");
        feed("/fed/g", None);
        talk.turn();
        assert_eq!(seen().len(), usize::from(!has_ended), "{bytes}");
        assert_eq!(talk.world.counts(), (0, 0));
    }
}

#[test]
fn an_unused_response_is_read_for_a_time_after_its_head() {
    let mut talk = left_behind("/detach/head/0/woken/h");
    talk.pass(10 * Rest::UNUSED.ms);
    assert_eq!(seen(), [], "a head takes its time");
    let mut talk = left_behind("/detach/head/0/fed/i");
    talk.pass(Rest::UNUSED.ms - 1);
    feed("/fed/i", Some("abc"));
    talk.turn();
    assert_eq!(seen(), [], "a piece does not extend the time");
    talk.pass(1);
    assert_eq!(seen(), [ended("/fed/i", 200, DetachedEnd::TimedOut)]);
    assert_eq!(talk.world.counts(), (0, 0));
    let mut used = left_behind("/detach/quiet/0/fed/j");
    used.pass(10 * Rest::UNUSED.ms);
    assert_eq!(seen(), [], "others are read to the end");
}

#[test]
fn the_end_of_an_old_configuration_ends_its_detached_exchanges() {
    let mut talk = left_behind("/detach/logged/0/woken/e");
    logged();
    let (generation, _) = generation("listen 127.0.0.1:8000;", 2);
    talk.world.command(Command::Configure {
        generation,
        keep: true,
        timeout_ms: Some(50),
    });
    talk.pass(49);
    assert_eq!(seen(), []);
    talk.pass(50);
    assert_eq!(seen(), [ended("/woken/e", 499, DetachedEnd::Closed)]);
    assert_eq!((logged(), talk.world.counts()), (vec![499], (0, 0)));
}

#[test]
fn the_end_of_the_server_waits_for_detached_exchanges() {
    let mut talk = left_behind("/detach/quiet/0/woken/f");
    talk.world.command(Command::Quit);
    talk.turn();
    assert_eq!((seen(), talk.world.counts().0), (vec![], 1));
    answer("/woken/f", "here");
    waker("/woken/f").wake();
    talk.turn();
    assert_eq!(seen(), [ended("/woken/f", 200, DetachedEnd::Complete)]);
}

#[test]
fn requests_that_start_each_other_come_to_an_end() {
    seen();
    let mut talk = TestConnection::new("");
    talk.send(get("/detach/self"));
    assert_eq!(seen().len(), MAX_DEEP);
    assert!(talk.error_log().contains("subrequests cycle"));
    assert_eq!(talk.world.counts().0, 1, "the client");
}

/// Maximum depth of requests that start each other.
const MAX_DEEP: usize = 51;
