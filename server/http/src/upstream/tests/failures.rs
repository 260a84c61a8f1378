//! Attempts that fail, and the next step.

use server_upstream::request::Failure;

use super::Site;
use crate::exchange::{Exchange, State};
use crate::testing::servers::{Passing, refused};
use crate::upstream::Verdict;
use crate::upstream::conf::NextUpstream;
use crate::upstream::run::spare_passes;

const POST: &str = "POST /up/a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

/// Three servers, and these reasons for another one.
fn three(on: u32) -> Passing {
    let mut passing = Passing::new();
    passing.servers = vec![1, 2, 3];
    passing.conf.retry.on = NextUpstream(on);
    passing
}

/// The client's status: that of the response, or of the exchange that got none.
fn status(x: &Exchange) -> u16 {
    match x.progress.state {
        State::Responding => x.response.head.status,
        _ => 0,
    }
}

#[test]
fn a_pass_without_a_response_leaves_its_memory_to_the_next() {
    let mut site = Site::new(three(0));
    let before = spare_passes();
    for _ in 0..2 {
        let mut x = site.get("/up/a");
        let call = site.calls();
        site.call().fail(refused());
        site.wake(&mut x);
        assert_eq!((site.calls(), status(&x)), (call, 502));
        assert_eq!(spare_passes(), before + 1);
    }
}

/// Has the first attempt end so; whether there was another one, and the status if there was none.
fn after(site: &mut Site, x: &mut Exchange, fail: impl Fn(&Site)) -> (usize, u16) {
    fail(site);
    site.wake(x);
    (site.calls(), status(x))
}

#[test]
fn a_refused_connection_leads_to_the_next_server_and_the_log_says_so() {
    let mut site = Site::new(three(NextUpstream::ERROR));
    let mut x = site.get("/up/a?b");
    assert_eq!(
        after(&mut site, &mut x, |s| s.call().fail(refused())),
        (2, 0)
    );
    let said = site.world.said();
    assert!(
        said.contains("[error]")
            && said.contains(
                "connect() failed (111: Connection refused) while connecting to upstream, \
                 client: 192.0.2.1, server: localhost, request: \"GET /up/a?b HTTP/1.1\", \
                 upstream: \"http://10.0.0.1:80/up/a\", host: \"localhost\""
            ),
        "{said}"
    );
    site.call().head(200, &[]).end();
    site.wake(&mut x);
    assert_eq!(status(&x), 200);
    assert_eq!(
        site.value(&mut x, "upstream_addr"),
        "10.0.0.1:80, 10.0.0.2:80"
    );
    assert_eq!(site.value(&mut x, "upstream_status"), "502, 200");
    assert_eq!(site.value(&mut x, "upstream_last_addr"), "10.0.0.2:80");
    assert_eq!(site.value(&mut x, "upstream_connect_time"), "-, 0.000");
}

#[test]
fn failures_are_told_apart() {
    let invalid = "sent no valid HTTP/1.0 header";
    let reset = Failure::Socket {
        call: "recv()",
        errno: 104,
    };
    let head = "while reading response header from upstream";
    for (failure, on, status_then, text) in [
        (
            Failure::TimedOut,
            NextUpstream::TIMEOUT,
            504,
            "timed out (110: Connection timed out)",
        ),
        (
            Failure::Closed,
            NextUpstream::ERROR,
            502,
            "upstream prematurely closed connection",
        ),
        (
            Failure::Invalid(invalid),
            NextUpstream::INVALID_HEADER,
            502,
            invalid,
        ),
        (
            reset,
            NextUpstream::ERROR,
            502,
            "recv() failed (104: Connection reset by peer)",
        ),
    ] {
        let mut site = Site::new(three(on));
        let mut x = site.get("/up/a");
        assert_eq!(
            after(&mut site, &mut x, |s| s.call().fail(failure.clone())),
            (2, 0)
        );
        assert!(
            site.world.said().contains(&format!("{text} {head}")),
            "{text}"
        );
        let mut site = Site::new(three(NextUpstream::OFF));
        let mut x = site.get("/up/a");
        assert_eq!(
            after(&mut site, &mut x, |s| s.call().fail(failure.clone())),
            (1, status_then)
        );
        assert_eq!(
            site.value(&mut x, "upstream_status"),
            status_then.to_string()
        );
    }
}

#[test]
fn connecting_and_sending_time_out_in_their_own_words() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    site.call().tell_failed(Failure::TimedOut, 0);
    site.wake(&mut x);
    assert_eq!(status(&x), 504);
    assert!(site.world.said().contains("while connecting to upstream"));
    let mut passing = Passing::new();
    passing.servers = vec![1];
    let mut site = Site::new(passing);
    let mut x = site.run("POST /up/a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
    x.deliver_body(b"abc".to_vec(), &mut site.world.cx());
    x.end_body(&mut site.world.cx());
    site.wake(&mut x);
    site.call().fail(Failure::TimedOut);
    site.wake(&mut x);
    assert!(
        site.world
            .said()
            .contains("while sending request to upstream")
    );
}

#[test]
fn faults_of_ours_are_500_and_try_nobody_else() {
    let calls = [("bind()", 99), ("socket()", 24), ("epoll_ctl()", 28)];
    let of_sockets = calls.map(|(call, errno)| Failure::Socket { call, errno });
    let unread = Failure::Certificate("cannot load certificate".into());
    for failure in of_sockets
        .into_iter()
        .chain([Failure::Unsendable("no such method"), unread.clone()])
    {
        let mut site = Site::new(three(NextUpstream::ERROR));
        let mut x = site.get("/up/a");
        assert_eq!(
            after(&mut site, &mut x, |s| s.call().fail(failure.clone())),
            (1, 500)
        );
        let said = site.world.said();
        assert!(!said.contains("temporarily disabled"), "{said}");
        let is_named = said.contains("cannot load certificate while SSL handshaking to upstream");
        assert_eq!(is_named, failure == unread, "{said}");
    }
}

#[test]
fn a_status_leads_on_only_where_it_is_named() {
    for (code, on) in [
        (500, NextUpstream::HTTP_500),
        (502, NextUpstream::HTTP_502),
        (503, NextUpstream::HTTP_503),
        (504, NextUpstream::HTTP_504),
        (403, NextUpstream::HTTP_403),
        (404, NextUpstream::HTTP_404),
        (429, NextUpstream::HTTP_429),
    ] {
        let respond = |site: &Site| {
            site.call().head(code, &[]).end();
        };
        let mut site = Site::new(three(on));
        let mut x = site.get("/up/a");
        assert_eq!(after(&mut site, &mut x, respond), (2, 0), "{code}");
        let mut site = Site::new(three(NextUpstream::ERROR));
        let mut x = site.get("/up/a");
        assert_eq!(after(&mut site, &mut x, respond), (1, code), "{code}");
    }
}

#[test]
fn the_last_server_answers_whatever_it_says() {
    let mut site = Site::new(three(NextUpstream::HTTP_503));
    let mut x = site.get("/up/a");
    for calls in 2..=3 {
        site.call().head(503, &[]).data("no").end();
        site.wake(&mut x);
        assert_eq!((site.calls(), status(&x)), (calls, 0));
    }
    site.call().head(503, &[]).data("last").end();
    site.wake(&mut x);
    assert_eq!((site.calls(), status(&x)), (3, 503));
    assert_eq!(site.pull(&mut x).0, "last", "it is its own body");
    assert_eq!(site.value(&mut x, "upstream_status"), "503, 503, 503");
}

#[test]
fn tries_are_counted_and_time_is_limited() {
    let mut passing = three(NextUpstream::ERROR);
    passing.conf.retry.tries = 2;
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    assert_eq!(
        after(&mut site, &mut x, |s| s.call().fail(refused())),
        (2, 0)
    );
    assert_eq!(
        after(&mut site, &mut x, |s| s.call().fail(refused())),
        (2, 502)
    );
    for (passed, expected) in [(99, (2, 0)), (100, (1, 502))] {
        let mut passing = three(NextUpstream::ERROR);
        passing.conf.retry.timeout_ms = 100;
        let mut site = Site::new(passing);
        let mut x = site.get("/up/a");
        site.world.pass(passed);
        let fail = |s: &Site| s.call().fail(refused());
        assert_eq!(after(&mut site, &mut x, fail), expected, "{passed} ms");
    }
}

#[test]
fn a_post_is_sent_to_another_server_only_if_nothing_was_sent_or_it_is_allowed() {
    for (on, failure, expected) in [
        (NextUpstream::ERROR, refused(), (2, 0)),
        (NextUpstream::ERROR, Failure::Closed, (1, 502)),
        (
            NextUpstream::ERROR | NextUpstream::NON_IDEMPOTENT,
            Failure::Closed,
            (2, 0),
        ),
    ] {
        let mut site = Site::new(three(on));
        let mut x = site.run(POST);
        let fail = |s: &Site| s.call().fail(failure.clone());
        assert_eq!(after(&mut site, &mut x, fail), expected);
    }
    let mut site = Site::new(three(NextUpstream::HTTP_500));
    let mut x = site.run(POST);
    let respond = |s: &Site| s.call().head(500, &[]).end();
    assert_eq!(after(&mut site, &mut x, respond), (1, 500));
}

#[test]
fn an_idle_connection_that_is_dead_is_no_try() {
    let mut passing = three(NextUpstream::ERROR);
    passing.conf.retry.tries = 1;
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    // Of one try alone a request is not kept, unless a connection may turn out to be dead: see the next test.
    site.call().die(false);
    site.wake(&mut x);
    assert_eq!(site.calls(), 2);
}

#[test]
fn an_untouched_post_is_sent_again_to_the_same_server_over_a_new_connection() {
    let mut site = Site::new(three(NextUpstream::OFF));
    let mut x = site.run(POST);
    site.call().die(true);
    site.wake(&mut x);
    assert_eq!((site.calls(), status(&x)), (2, 0));
    assert_eq!(site.call().addr(), "10.0.0.1:80");
    assert!(site.call().route.pool.is_none(), "it is a new one");
    assert_eq!(
        site.call().request.fields,
        site.world.connector.calls[0].request.fields
    );
    // The new connection was never idle: its failure is final.
    site.call().fail(Failure::Closed);
    site.wake(&mut x);
    assert_eq!((site.calls(), status(&x)), (2, 502));
    let mut site = Site::new(three(NextUpstream::OFF));
    let mut x = site.run(POST);
    assert_eq!(
        after(&mut site, &mut x, |s| s.call().die(false)),
        (1, 502),
        "it may have been processed"
    );
}

#[test]
fn nobody_is_left() {
    let mut passing = three(NextUpstream::ERROR);
    passing.servers = Vec::new();
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    assert_eq!((site.calls(), status(&x)), (0, 502));
    let said = site.world.said();
    assert!(
        said.contains("no live upstreams while connecting to upstream"),
        "{said}"
    );
    assert_eq!(site.value(&mut x, "upstream_status"), "502");
}

#[test]
fn a_name_that_does_not_resolve_is_502() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/name");
    site.wake(&mut x);
    assert_eq!((site.calls(), status(&x)), (0, 502));
    let said = site.world.said();
    assert!(
        said.contains("a.example could not be resolved (3: Host not found)"),
        "{said}"
    );
    assert_eq!(site.value(&mut x, "upstream_addr"), "(none)");
}

#[test]
fn a_head_that_the_gateway_refuses_is_a_failed_attempt() {
    let mut passing = three(NextUpstream::INVALID_HEADER);
    passing.verdict = Verdict::Invalid("sent nonsense");
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    let respond = |s: &Site| {
        s.call().head(200, &["X-A: 1"]).end();
    };
    assert_eq!(after(&mut site, &mut x, respond), (2, 0));
    assert!(x.reply.fields.fields.is_empty(), "nothing of it is left");
    assert!(site.world.said().contains("upstream sent nonsense while"));
}

#[test]
fn an_error_page_may_go_to_other_servers_and_both_are_told() {
    let more = "location /page { error_page 502 /up/b; pass; }";
    let mut site = Site::with(Passing::new(), more);
    let mut x = site.get("/page");
    site.call().fail(refused());
    site.wake(&mut x);
    assert_eq!(site.calls(), 2);
    site.call().head(200, &[]).end();
    site.wake(&mut x);
    assert_eq!(status(&x), 502, "an error page without `=`");
    assert_eq!(site.value(&mut x, "upstream_status"), "502 : 200");
    let addr = site.value(&mut x, "upstream_addr");
    assert_eq!(addr, "10.0.0.1:80 : 10.0.0.1:80");
}

#[test]
fn a_client_that_has_gone_gives_the_attempt_up() {
    let mut site = Site::new(Passing::new());
    let mut x = site.get("/up/a");
    assert!(x.body.on_arrival.is_some() && !site.call().is_given_up());
    crate::phases::log(&mut x, &mut site.world.cx());
    assert!(site.call().is_given_up() && x.upstream.is_none());
}
