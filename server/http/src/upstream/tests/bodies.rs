//! Request bodies on their way to servers.

use engines::http::BodyLength;
use server_upstream::request::{Failure, UpstreamEvent};

use super::Site;
use crate::exchange::State;
use crate::testing::servers::{ANNOUNCED, Passing, refused};
use crate::upstream::conf::{NextUpstream, RequestBody};

const POST: &str = "POST /up/a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
const CHUNKED: &str = "POST /up/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn announced() -> Vec<BodyLength> {
    ANNOUNCED.with_borrow_mut(std::mem::take)
}

#[test]
fn a_body_is_collected_first_and_sent_to_each_server() {
    for head in [POST, CHUNKED] {
        let mut passing = Passing::new();
        passing.servers = vec![1, 2];
        passing.conf.retry.on = NextUpstream(NextUpstream::ERROR);
        let mut site = Site::new(passing);
        let mut x = site.run(head);
        x.deliver_body(b"ab".to_vec(), &mut site.world.cx());
        site.wake(&mut x);
        assert_eq!(site.calls(), 0, "not all is there");
        x.deliver_body(b"c".to_vec(), &mut site.world.cx());
        x.end_body(&mut site.world.cx());
        site.wake(&mut x);
        assert_eq!(announced(), [BodyLength::Length(3)]);
        assert_eq!(site.call().body(), ("abc".to_owned(), true));
        site.call().fail(refused());
        site.wake(&mut x);
        assert_eq!(site.calls(), 2);
        assert_eq!(site.call().body(), ("abc".to_owned(), true));
        assert_eq!(announced(), [], "the request is made once");
    }
}

#[test]
fn a_large_body_is_sent_from_its_file() {
    let mut site = Site::with(
        Passing::new(),
        "client_body_buffer_size 1; client_body_temp_path /t;",
    );
    let mut x = site.run(POST);
    x.deliver_body(b"abc".to_vec(), &mut site.world.cx());
    x.end_body(&mut site.world.cx());
    site.wake(&mut x);
    assert_eq!(site.call().body(), ("[0+3]".to_owned(), true));
}

#[test]
fn a_body_that_is_not_passed_on_is_announced_as_none() {
    let mut passing = Passing::new();
    passing.conf.request.body = RequestBody::Dropped;
    let mut site = Site::new(passing);
    let mut x = site.run(POST);
    x.deliver_body(b"abc".to_vec(), &mut site.world.cx());
    x.end_body(&mut site.world.cx());
    site.wake(&mut x);
    assert_eq!(announced(), [BodyLength::None]);
    assert_eq!(site.call().body(), (String::new(), false));
}

#[test]
fn a_request_without_a_body_waits_for_none() {
    let mut site = Site::new(Passing::new());
    let x = site.get("/up/a");
    assert!(matches!(x.progress.state, State::Waiting(_)));
    assert_eq!((site.calls(), announced()), (1, vec![BodyLength::None]));
}

/// A site that passes bodies on as they come, to two servers.
fn streaming(on: u32) -> Site {
    let mut passing = Passing::new();
    passing.servers = vec![1, 2];
    passing.conf.request.body = RequestBody::Streamed;
    passing.conf.retry.on = NextUpstream(on);
    Site::new(passing)
}

#[test]
fn a_body_is_passed_on_as_it_comes() {
    let mut site = streaming(NextUpstream::ERROR);
    let mut x = site.run(POST);
    assert_eq!(site.calls(), 1, "nothing of it is there yet");
    assert_eq!(announced(), [BodyLength::Length(3)]);
    x.deliver_body(b"ab".to_vec(), &mut site.world.cx());
    site.wake(&mut x);
    assert_eq!(site.call().body(), ("ab".to_owned(), false));
    // The response begins before the request has ended.
    site.call().head(200, &[]).data("x");
    site.wake(&mut x);
    assert_eq!(site.pull(&mut x).0, "x");
    x.deliver_body(b"c".to_vec(), &mut site.world.cx());
    x.end_body(&mut site.world.cx());
    site.wake(&mut x);
    assert_eq!(site.call().body(), ("c".to_owned(), true));
    assert_eq!(x.body_bytes(), Some(&b"abc"[..]), "$request_body");
    site.call().end();
    assert_eq!(site.pull(&mut x).1, "end");
}

#[test]
fn what_was_passed_on_goes_to_no_other_server() {
    for (failure, calls) in [(refused(), 2), (Failure::Closed, 1)] {
        let mut site = streaming(NextUpstream::ERROR | NextUpstream::NON_IDEMPOTENT);
        let mut x = site.run(POST);
        x.deliver_body(b"ab".to_vec(), &mut site.world.cx());
        site.wake(&mut x);
        site.call().fail(failure);
        site.wake(&mut x);
        assert_eq!(site.calls(), calls);
        if calls == 2 {
            assert_eq!(site.call().body(), ("ab".to_owned(), false));
        } else {
            assert_eq!(x.response.head.status, 502);
        }
    }
}

/// A site that streams bodies to servers, with a fallback for failures.
fn with_fallback() -> Site {
    let mut passing = Passing::new();
    passing.conf.request.body = RequestBody::Streamed;
    let more = "error_page 502 = @other; location @other { pass; } client_body_buffer_size 4;";
    Site::with(passing, more)
}

#[test]
fn a_fallback_gets_the_whole_body_or_is_not_asked() {
    for (length, asked) in [(4, true), (5, false)] {
        let mut site = with_fallback();
        let mut x = site.run(CHUNKED);
        x.deliver_body(vec![b'x'; length], &mut site.world.cx());
        site.wake(&mut x);
        site.call().fail(Failure::Closed);
        site.wake(&mut x);
        assert_eq!(site.calls(), 1, "{length}: there may be more of it");
        x.deliver_body(b"yz".to_vec(), &mut site.world.cx());
        x.end_body(&mut site.world.cx());
        if asked {
            site.wake(&mut x);
            assert_eq!(site.call().body(), ("[0+6]".to_owned(), true));
        } else {
            assert_eq!((site.calls(), x.response.head.status), (1, 500));
        }
    }
}

#[test]
fn what_reached_nobody_is_sent_again_as_far_as_it_is_kept() {
    for (bytes, calls) in [(64 << 10, 2), ((64 << 10) + 1, 1)] {
        let mut site = streaming(NextUpstream::OFF);
        let mut x = site.run(CHUNKED);
        x.deliver_body(vec![b'x'; bytes], &mut site.world.cx());
        site.wake(&mut x);
        assert_eq!(site.call().body().0.len(), bytes);
        site.call().die(true);
        site.wake(&mut x);
        assert_eq!(site.calls(), calls, "{bytes}");
        if calls == 2 {
            assert_eq!(site.call().body().0.len(), bytes);
        }
    }
}

#[test]
fn no_more_is_taken_than_the_server_takes() {
    let mut site = streaming(NextUpstream::ERROR);
    let mut x = site.run(CHUNKED);
    for _ in 0..3 {
        x.deliver_body(vec![b'x'; 32 << 10], &mut site.world.cx());
        site.wake(&mut x);
    }
    assert_eq!(crate::request_body::stream::taken_bytes(&x), 64 << 10);
    assert_eq!(site.call().body().0.len(), 64 << 10);
    site.wake(&mut x);
    assert_eq!(site.call().body().0.len(), 32 << 10);
}

#[test]
fn a_tunnel_has_two_directions() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    site.call().head(101, &["Upgrade: x"]);
    site.call().deliver(UpstreamEvent::Upgraded).data("hello");
    site.wake(&mut x);
    assert_eq!(
        (x.progress.state, x.response.head.status),
        (State::Responding, 101)
    );
    assert_eq!(site.pull(&mut x).0.trim_end_matches('|'), "hello");
    x.deliver_body(b"ping".to_vec(), &mut site.world.cx());
    site.wake(&mut x);
    assert_eq!(site.call().body(), ("ping".to_owned(), false));
    site.call().data("pong");
    assert_eq!(site.pull(&mut x).0.trim_end_matches('|'), "pong");
    x.end_body(&mut site.world.cx());
    site.wake(&mut x);
    assert_eq!(
        site.call().body(),
        (String::new(), true),
        "the client has ended its side"
    );
    site.call().end();
    assert_eq!(site.pull(&mut x).1, "end");
    assert_eq!(site.world.said(), "");
}

#[test]
fn a_tunnel_whose_time_is_over_breaks() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    site.call().head(101, &[]).deliver(UpstreamEvent::Upgraded);
    site.wake(&mut x);
    site.call().fail(Failure::TimedOut);
    assert_eq!(site.pull(&mut x).1, "broken");
    let said = site.world.said();
    let text = "upstream timed out (110: Connection timed out) while proxying upgraded connection";
    assert!(said.contains(text), "{said}");
}

#[test]
fn a_body_that_was_passed_on_is_known_as_far_as_a_buffer_goes() {
    for (bytes, known) in [(4, true), (5, false)] {
        let mut passing = Passing::new();
        passing.conf.request.body = RequestBody::Streamed;
        let mut site = Site::with(passing, "client_body_buffer_size 4;");
        let mut x = site.run(CHUNKED);
        x.deliver_body(vec![b'x'; bytes], &mut site.world.cx());
        assert_eq!(x.body_bytes(), None, "nobody has taken it");
        site.wake(&mut x);
        assert_eq!(x.body_bytes(), None, "there may be more");
        x.end_body(&mut site.world.cx());
        site.wake(&mut x);
        assert_eq!(x.body_bytes().is_some(), known, "{bytes}");
    }
}
