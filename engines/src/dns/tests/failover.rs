//! Servers that are silent, wrong or unreachable, or have answers larger than a datagram.

use super::*;

#[test]
fn servers_take_turns() {
    let mut lab = Lab::v4(3);
    let turns = ["a", "b", "c", "d"].map(|name| {
        lab.ask(name);
        lab.sent_one().route.server
    });
    assert_eq!(turns, [0, 1, 2, 0]);
}

#[test]
fn the_first_server_is_asked_first_where_they_do_not_take_turns() {
    let mut lab = Lab::new(Settings {
        servers: 2,
        ipv6: false,
        rotate: false,
        ..Settings::default()
    });
    let turns = ["a", "b"].map(|name| {
        lab.ask(name);
        lab.sent_one().route.server
    });
    assert_eq!(turns, [0, 0]);
    lab.pass(5_000);
    assert!(lab.sent().iter().all(|query| query.route.server == 1));
}

#[test]
fn a_question_fails_once_no_server_can_be_reached_where_it_may() {
    for (servers, gives_up) in [(1, true), (2, true), (2, false), (1, false)] {
        let mut lab = Lab::new(Settings {
            servers,
            ipv6: false,
            gives_up,
            ..Settings::default()
        });
        lab.ask("a.test");
        for server in 0..servers {
            let query = lab.sent_one();
            assert_eq!(query.route.server, server);
            lab.resolver.unreachable(lab.now_ms, query.route);
            lab.resolver.check_invariants();
        }
        assert!(lab.sent().is_empty());
        if gives_up {
            let why = lab.failure();
            assert_eq!(why.to_string(), "No name server can be reached");
            assert_eq!(why.code(), -1);
        } else {
            lab.told_nothing();
        }
    }
}

#[test]
fn what_is_not_answered_in_5_s_goes_to_the_next_server() {
    let mut lab = Lab::new(Settings {
        servers: 2,
        ..Settings::default()
    });
    lab.ask("a.test");
    let first = lab.sent();
    lab.answer(&first[0], &first[0].address("192.0.2.1"))
        .expect("sound");
    assert_eq!(lab.resolver.deadline(), Some(6_000));
    lab.pass(4_999);
    assert!(lab.sent().is_empty());
    lab.pass(1);
    let second = lab.sent_one();
    assert_eq!(second.route.server, 1);
    assert_eq!(second.message, first[1].message, "the same query");
    lab.answer(&second, &second.address("2001:db8::1"))
        .expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1", "2001:db8::1"]);
}

#[test]
fn a_late_answer_of_a_server_that_was_asked_counts() {
    let mut lab = Lab::v4(2);
    lab.ask("a.test");
    let first = lab.sent_one();
    lab.pass(5_000);
    lab.sent_one();
    lab.answer(&first, &first.address("192.0.2.1"))
        .expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
}

#[test]
fn an_asker_waits_no_longer_than_it_said() {
    let mut lab = Lab::v4(1);
    let subject = Subject::Addresses(b"a.test");
    lab.resolver.ask(lab.now_ms, subject, 1_500, 0);
    lab.resolver.ask(lab.now_ms, subject, 0, 0);
    lab.sent_one();
    lab.pass(1_499);
    lab.told_nothing();
    lab.pass(1);
    assert_eq!(lab.failure().to_string(), "Operation timed out");
    assert_eq!(Failure::TimedOut.code(), 110);
    for _ in 0..10 {
        lab.pass(5_000);
        assert_eq!(lab.sent().len(), 1, "the other waits for ever");
    }
    lab.told_nothing();
}

#[test]
fn a_question_nobody_waits_for_is_dropped_at_its_time() {
    let mut lab = Lab::v4(1);
    let key = lab.ask("a.test");
    let query = lab.sent_one();
    lab.resolver.cancel(key);
    lab.pass(5_000);
    assert!(lab.sent().is_empty() && !lab.resolver.is_asking());
    let refused = lab
        .answer(&query, &query.address("192.0.2.1"))
        .expect_err("too late");
    assert_eq!(refused.to_string(), "unexpected DNS response for a.test");
}

#[test]
fn an_answer_has_the_number_the_question_and_the_server_of_the_query() {
    let mut lab = Lab::v4(2);
    lab.ask("a.test");
    let query = lab.sent_one();
    let mut forged = query.address("192.0.2.66");
    forged[1] ^= 1;
    let refused = lab.answer(&query, &forged).expect_err("another number");
    let (id, expected) = (query.id() ^ 1, query.id());
    let said = format!("wrong ident {id} in DNS response for a.test, expect {expected}");
    assert_eq!(refused.to_string(), said);
    let other = Query {
        route: Route {
            server: 1,
            transport: Transport::Udp,
        },
        ..query.clone()
    };
    let refused = lab
        .answer(&other, &query.address("192.0.2.66"))
        .expect_err("another server");
    assert_eq!(refused.to_string(), "unexpected DNS response for a.test");
    let mut forged = query.address("192.0.2.66");
    forged[13] = b'b';
    let refused = lab.answer(&query, &forged).expect_err("another name");
    assert_eq!(refused.to_string(), "unexpected DNS response for b.test");
    let mut forged = query.reply().0;
    let kind = forged.len() - 3;
    forged[kind] = AAAA as u8;
    let refused = lab.answer(&query, &forged).expect_err("another type");
    assert_eq!(refused.to_string(), "unexpected DNS response for a.test");
    lab.told_nothing();
    lab.answer(&query, &query.address("192.0.2.1"))
        .expect("sound");
    let again = lab.answer(&query, &query.address("192.0.2.66"));
    assert!(again.is_err(), "answered already");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
}

#[test]
fn a_query_that_was_not_sent_has_no_answer() {
    let mut lab = Lab::v4(1);
    lab.ask("a.test");
    let sent = {
        let mut other = Lab::v4(1);
        other.ask("a.test");
        other.sent_one()
    };
    assert!(lab.answer(&sent, &sent.address("192.0.2.66")).is_err());
}

#[test]
fn a_server_that_cannot_read_the_query_is_passed_over() {
    let mut lab = Lab::v4(2);
    lab.ask("a.test");
    let query = lab.sent_one();
    let refused = lab
        .answer(&query, &query.reply().code(1).0)
        .expect_err("an error");
    let id = query.id();
    let said = format!("DNS error (1: Format error), query id:{id}, name:\"a.test\"");
    assert_eq!(refused.to_string(), said);
    lab.told_nothing();
    lab.pass(5_000);
    let second = lab.sent_one();
    lab.answer(&second, &second.address("192.0.2.1"))
        .expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
}

#[test]
fn a_truncated_answer_is_asked_for_over_tcp() {
    let mut lab = Lab::v4(2);
    lab.ask("a.test");
    let query = lab.sent_one();
    let truncated = query.reply().address("192.0.2.66", 60).truncated().0;
    lab.answer(&query, &truncated).expect("sound");
    lab.told_nothing();
    let over_tcp = lab.sent_one();
    let expected = Route {
        server: 0,
        transport: Transport::Tcp,
    };
    assert_eq!(
        (over_tcp.route, &over_tcp.message),
        (expected, &query.message)
    );
    // A second copy of the datagram causes no further query.
    lab.answer(&query, &truncated).expect("sound");
    assert!(lab.sent().is_empty());
    // The stream is silent: the next server is queried over TCP, too.
    lab.pass(5_000);
    let next = lab.sent_one();
    assert_eq!(
        (next.route.server, next.route.transport),
        (1, Transport::Tcp)
    );
    lab.answer(&next, &next.address("192.0.2.1"))
        .expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
}

#[test]
fn a_truncated_answer_nobody_waits_for_ends_the_question() {
    let mut lab = Lab::v4(1);
    let key = lab.ask("a.test");
    let query = lab.sent_one();
    lab.resolver.cancel(key);
    lab.answer(&query, &query.reply().truncated().0)
        .expect("sound");
    assert!(lab.sent().is_empty() && !lab.resolver.is_asking());
}

#[test]
fn a_server_out_of_reach_is_passed_over_at_once() {
    let mut lab = Lab::v4(2);
    lab.ask("a.test");
    let first = lab.sent_one();
    lab.resolver.unreachable(lab.now_ms, first.route);
    let second = lab.sent_one();
    assert_eq!(second.route.server, 1);
    // But not in circles: after that the time counts.
    lab.resolver.unreachable(lab.now_ms, second.route);
    assert!(lab.sent().is_empty());
    lab.pass(5_000);
    let third = lab.sent_one();
    assert_eq!(third.route.server, 0);
    lab.resolver.unreachable(lab.now_ms, third.route);
    assert_eq!(lab.sent_one().route.server, 1);
}

#[test]
fn what_was_sent_to_others_stays_there() {
    let mut lab = Lab::v4(2);
    lab.ask("a.test");
    lab.ask("b.test");
    let queries = lab.sent();
    let over_tcp = Route {
        transport: Transport::Tcp,
        ..queries[0].route
    };
    lab.resolver.unreachable(lab.now_ms, over_tcp);
    assert!(lab.sent().is_empty());
    lab.resolver.unreachable(lab.now_ms, queries[0].route);
    assert_eq!(lab.sent_one().question().0, "a.test");
}

#[test]
fn an_only_server_out_of_reach_is_asked_again_in_time() {
    let mut lab = Lab::v4(1);
    lab.ask("a.test");
    let first = lab.sent_one();
    lab.resolver.unreachable(lab.now_ms, first.route);
    assert!(lab.sent().is_empty());
    lab.pass(5_000);
    assert_eq!(lab.sent_one().message, first.message);
}

#[test]
fn an_answer_that_comes_just_before_the_query_is_sent_again_counts_once() {
    let mut lab = Lab::v4(2);
    lab.ask("a.test");
    let query = lab.sent_one();
    lab.pass(5_000);
    assert!(lab.resolver.wants_transmit());
    lab.answer(&query, &query.address("192.0.2.1"))
        .expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
    assert!(!lab.resolver.wants_transmit());
}
