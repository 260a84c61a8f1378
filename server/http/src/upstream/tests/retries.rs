//! Directives about retries that nginx does not have: the delay, attempts with the same server, the time of an attempt,
//! the budget.

use server_upstream::request::Failure;
use server_upstream::retry_budget::RetryBudget;

use super::Site;
use crate::exchange::{Exchange, State};
use crate::testing::servers::{Passing, refused};
use crate::upstream::conf::{Computed, NextUpstream};

/// This number of servers, and all reasons for another attempt.
fn passing(servers: u8) -> Passing {
    let mut passing = Passing::new();
    passing.servers = (1..=servers).collect();
    passing.conf.retry.on =
        NextUpstream(NextUpstream::ERROR | NextUpstream::TIMEOUT | NextUpstream::HTTP_503);
    passing
}

/// Fails the latest attempt; returns the servers tried so far, and the status if there is a response.
fn fail(site: &mut Site, x: &mut Exchange, failure: Failure) -> (String, u16) {
    site.call().fail(failure);
    site.wake(x);
    (tried(site), status(x))
}

/// The last bytes of the servers' addresses, by attempt.
fn tried(site: &Site) -> String {
    let calls = site.world.connector.calls.iter();
    let last = |addr: String| addr.strip_prefix("10.0.0.").and_then(|a| a.chars().next());
    calls.filter_map(|call| last(call.addr())).collect()
}

fn status(x: &Exchange) -> u16 {
    match x.progress.state {
        State::Responding => x.response.head.status,
        _ => 0,
    }
}

fn due_in_ms(site: &Site, x: &Exchange) -> Option<u64> {
    let due_ms = x.due_ms().filter(|due_ms| *due_ms < u64::MAX)?;
    Some(due_ms - site.world.clock.mono_ms)
}

#[test]
fn a_retry_begins_after_its_delay() {
    let mut passing = passing(2);
    passing.conf.retry.delay_ms = 50;
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    assert_eq!(fail(&mut site, &mut x, refused()), ("1".to_owned(), 0));
    assert_eq!(due_in_ms(&site, &x), Some(50));
    site.world.pass(49);
    // A wake without a cause does not end the delay.
    site.wake(&mut x);
    assert_eq!(
        (tried(&site), due_in_ms(&site, &x)),
        ("1".to_owned(), Some(1))
    );
    site.world.pass(1);
    site.wake(&mut x);
    assert_eq!(tried(&site), "12");
    site.call().head(200, &[]).end();
    site.wake(&mut x);
    assert_eq!(status(&x), 200);
}

#[test]
fn a_delay_that_ends_after_the_time_of_all_attempts_is_not_begun() {
    for (timeout_ms, expected) in [(51, 0), (50, 502), (49, 502)] {
        let mut passing = passing(2);
        (passing.conf.retry.delay_ms, passing.conf.retry.timeout_ms) = (50, timeout_ms);
        let mut site = Site::new(passing);
        let mut x = site.get("/up/a");
        let (_, status) = fail(&mut site, &mut x, refused());
        assert_eq!(status, expected, "{timeout_ms}");
    }
}

#[test]
fn dead_idle_connections_and_servers_that_are_denied_cost_no_delay() {
    for untouched in [true, false] {
        let mut passing = passing(2);
        passing.conf.retry.delay_ms = 50;
        let mut site = Site::new(passing);
        let mut x = site.get("/up/a");
        site.call().die(untouched);
        site.wake(&mut x);
        assert_eq!(site.calls(), 2, "{untouched}");
    }
}

#[test]
fn each_server_gets_its_further_attempts_before_the_next_one() {
    for (same, tries, expected) in [
        (0, 0, "123"),
        (1, 0, "112233"),
        (2, 0, "111222333"),
        (2, 4, "1112"),
        (2, 1, "1"),
    ] {
        let mut passing = passing(3);
        (passing.conf.retry.same, passing.conf.retry.tries) = (same, tries);
        let mut site = Site::new(passing);
        let mut x = site.get("/up/a");
        for at in 1..expected.len() {
            let next = (expected[..=at].to_owned(), 0);
            assert_eq!(fail(&mut site, &mut x, refused()), next, "{same} {tries}");
        }
        assert_eq!(
            fail(&mut site, &mut x, refused()),
            (expected.to_owned(), 502)
        );
        let statuses = vec!["502"; expected.len()].join(", ");
        assert_eq!(site.value(&mut x, "upstream_status"), statuses);
    }
}

#[test]
fn the_only_server_of_a_group_gets_further_attempts_with_responses_too() {
    let mut passing = passing(1);
    (passing.conf.retry.same, passing.conf.retry.delay_ms) = (1, 10);
    passing.conf.retry.request = Computed::EachAttempt;
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    site.call().head(503, &[]).data("first").end();
    site.wake(&mut x);
    assert_eq!((tried(&site), status(&x)), ("1".to_owned(), 0));
    site.world.pass(10);
    site.wake(&mut x);
    site.call().head(503, &[]).data("second").end();
    site.wake(&mut x);
    assert_eq!((tried(&site), status(&x)), ("11".to_owned(), 503));
    assert_eq!(site.pull(&mut x).0, "second");
}

/// A failure that another attempt with the server follows does not count for `max_fails`.
#[test]
fn failures_count_once_the_last_attempt_with_a_server_has_failed() {
    let mut passing = passing(2);
    passing.conf.retry.same = 1;
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    let disabled = "upstream server temporarily disabled";
    fail(&mut site, &mut x, refused());
    assert!(!site.world.said().contains(disabled));
    fail(&mut site, &mut x, refused());
    assert!(site.world.said().contains(disabled));
}

#[test]
fn an_attempt_without_a_head_in_its_time_fails() {
    let mut passing = passing(2);
    passing.conf.retry.attempt_ms = 100;
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    site.call().sent(100);
    assert_eq!(due_in_ms(&site, &x), Some(100));
    site.world.pass(99);
    site.wake(&mut x);
    assert_eq!(tried(&site), "1");
    site.world.pass(1);
    site.wake(&mut x);
    assert_eq!(tried(&site), "12");
    assert!(site.world.connector.calls[0].is_given_up());
    let said = site.world.said();
    let text = "upstream timed out (110: Connection timed out) while reading response header";
    assert!(said.contains(text), "{said}");
    // The second attempt has its own time.
    assert_eq!(due_in_ms(&site, &x), Some(100));
    site.call().interim(103, &["Link: a"]);
    site.world.pass(100);
    site.wake(&mut x);
    assert_eq!(status(&x), 504);
    assert_eq!(site.value(&mut x, "upstream_status"), "504, 504");
}

#[test]
fn a_response_that_has_begun_may_take_longer_than_an_attempt() {
    let mut passing = passing(2);
    passing.conf.retry.attempt_ms = 100;
    let mut site = Site::new(passing);
    let mut x = site.get("/up/a");
    site.call().head(200, &[]);
    site.world.pass(100);
    site.wake(&mut x);
    site.world.pass(100);
    site.call().data("late").end();
    assert_eq!((status(&x), site.pull(&mut x).0.as_str()), (200, "late"));
    assert_eq!(tried(&site), "1");
}

#[test]
fn a_post_that_takes_too_long_is_sent_again_only_if_nothing_was_sent() {
    const POST: &str = "POST /up/a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    for (sent_bytes, expected) in [(0, ("12", 0)), (1, ("1", 504))] {
        let mut passing = passing(2);
        passing.conf.retry.attempt_ms = 100;
        let mut site = Site::new(passing);
        let mut x = site.run(POST);
        if sent_bytes > 0 {
            site.call().sent(sent_bytes);
        }
        site.world.pass(100);
        site.wake(&mut x);
        assert_eq!((tried(&site).as_str(), status(&x)), expected);
    }
}

/// A site with this budget, and requests in progress to two servers.
fn with_budget(percent: u32, least: u32, requests: usize) -> (Site, Vec<Exchange>) {
    let mut passing = passing(2);
    passing.conf.retry.budget = Some(RetryBudget { percent, least });
    let mut site = Site::new(passing);
    let all = (0..requests).map(|_| site.get("/up/a")).collect();
    (site, all)
}

#[test]
fn retries_are_limited_to_the_share_of_requests_in_progress() {
    let (mut site, mut all) = with_budget(50, 0, 5);
    let mut answers = Vec::new();
    for (at, x) in all.iter_mut().enumerate() {
        site.world.connector.calls[at].fail(refused());
        site.wake(x);
        answers.push(status(x));
    }
    assert_eq!(answers, [0, 0, 502, 502, 502]);
    let said = site.world.said();
    let text = "no retry is left in the budget of the upstream while connecting to upstream";
    assert_eq!(said.matches(text).count(), 3, "{said}");
    // A retry with a response is not in progress any more: half of four requests is one retry more.
    site.world.connector.calls[5].head(200, &[]);
    site.wake(&mut all[0]);
    let mut others: Vec<_> = (0..3).map(|_| site.get("/up/a")).collect();
    let mut answers = Vec::new();
    for (at, x) in others.iter_mut().enumerate() {
        site.world.connector.calls[7 + at].fail(refused());
        site.wake(x);
        answers.push(status(x));
    }
    assert_eq!(answers, [0, 502, 502]);
}

#[test]
fn a_response_is_passed_on_if_the_budget_allows_no_other_one() {
    let (mut site, mut all) = with_budget(0, 0, 1);
    site.call().head(503, &[]).data("its own").end();
    site.wake(&mut all[0]);
    assert_eq!((tried(&site), status(&all[0])), ("1".to_owned(), 503));
    assert_eq!(site.pull(&mut all[0]).0, "its own");
    let (mut site, mut all) = with_budget(0, 1, 1);
    site.call().head(503, &[]).data("its own").end();
    site.wake(&mut all[0]);
    assert_eq!((tried(&site), status(&all[0])), ("12".to_owned(), 0));
}

#[test]
fn a_request_may_retry_again_within_the_budget_of_one() {
    let (mut site, mut all) = with_budget(0, 1, 2);
    let (first, second) = all.split_at_mut(1);
    site.world.connector.calls[0].fail(refused());
    site.wake(&mut first[0]);
    site.world.connector.calls[1].fail(refused());
    site.wake(&mut second[0]);
    assert_eq!((status(&first[0]), status(&second[0])), (0, 502));
    // The client of the first one leaves: its retry ends.
    crate::phases::log(&mut first[0], &mut site.world.cx());
    let mut third = site.get("/up/a");
    site.call().fail(refused());
    site.wake(&mut third);
    assert_eq!(status(&third), 0);
}

#[test]
fn dead_idle_connections_cost_nothing_of_the_budget() {
    for untouched in [true, false] {
        let (mut site, mut all) = with_budget(0, 0, 1);
        site.call().die(untouched);
        site.wake(&mut all[0]);
        assert_eq!(site.calls(), 2, "{untouched}");
    }
}
