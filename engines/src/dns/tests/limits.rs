//! Each limit at the limit and one past it.

use super::super::{ADDRESSES_MAX, ALIASES_MAX, ASKED_MAX, KEPT_MAX, SERVICES_MAX, WAITING_MAX};
use super::*;

/// A server at which `n.test` is an alias of the next, up to the last.
fn chain(query: &Query, last: usize) -> Vec<u8> {
    let name = query.question().0;
    let number = name.split('.').next().expect("a label");
    let n: usize = number.parse().expect("a number");
    if n == last {
        query.address("192.0.2.1")
    } else {
        query.reply().alias(&format!("{}.test", n + 1), 60).0
    }
}

#[test]
fn aliases_are_followed_so_far() {
    for (last, found) in [(ALIASES_MAX, true), (ALIASES_MAX + 1, false)] {
        let mut lab = Lab::v4(1);
        let mut told = |name: &str| {
            lab.ask(name);
            lab.serve(|query| chain(query, last));
            matches!(lab.told(), Event::Resolved { .. })
        };
        assert_eq!(told("0.test"), found, "{last} of servers");
        // From the cache; all but the first of the longer chain is in reach.
        assert!(told("1.test"));
        assert_eq!(told("0.test"), found, "{last} that are kept");
    }
}

#[test]
fn aliases_in_a_circle_end() {
    for ttl_s in [0, 60] {
        let mut lab = Lab::v4(1);
        lab.ask("a.test");
        lab.serve(|query| match query.question().0.as_str() {
            "a.test" => query.reply().alias("b.test", ttl_s).0,
            _ => query.reply().alias("a.test", ttl_s).0,
        });
        assert_eq!(lab.failure(), Failure::NotFound);
        assert!(!lab.resolver.is_asking());
    }
}

#[test]
fn aliases_in_a_circle_within_an_answer_end() {
    let mut lab = Lab::v4(1);
    lab.ask("a.test");
    let query = lab.sent_one();
    let reply = query.reply().alias("b.test", 60);
    let reply = reply.record_of(&wire("b.test"), CNAME, 60, &wire("a.test"));
    lab.answer(&query, &reply.0).expect("sound");
    assert_eq!(lab.failure(), Failure::NotFound);
}

#[test]
fn names_asked_for_at_a_time_are_limited() {
    let mut lab = Lab::v4(1);
    let ask = |lab: &mut Lab, n: usize| {
        let name = format!("{n}.test");
        lab.resolver
            .ask(1_000, Subject::Addresses(name.as_bytes()), 0, 0)
    };
    for n in 0..ASKED_MAX {
        ask(&mut lab, n);
    }
    lab.told_nothing();
    ask(&mut lab, ASKED_MAX);
    assert_eq!(lab.failure(), Failure::TooMany);
    // A name with a pending query costs nothing more.
    ask(&mut lab, 0);
    lab.told_nothing();
}

#[test]
fn askers_are_limited() {
    let mut lab = Lab::v4(1);
    let subject = Subject::Addresses(b"a.test");
    let first = lab.resolver.ask(1_000, subject, 0, 0);
    for _ in 1..WAITING_MAX {
        lab.resolver.ask(1_000, subject, 0, 0);
    }
    lab.told_nothing();
    lab.resolver.ask(1_000, subject, 0, 0);
    assert_eq!(lab.failure(), Failure::TooMany);
    lab.resolver.cancel(first);
    lab.resolver.ask(1_000, subject, 0, 0);
    lab.told_nothing();
}

#[test]
fn askers_that_are_gone_take_no_room() {
    let mut lab = Lab::v4(1);
    let subject = Subject::Addresses(b"a.test");
    for _ in 0..10 * WAITING_MAX {
        let key = lab.resolver.ask(1_000, subject, 0, 0);
        lab.resolver.cancel(key);
    }
    lab.told_nothing();
    lab.resolver.check_invariants();
}

#[test]
fn kept_answers_are_limited() {
    let mut lab = Lab::v4(1);
    for n in 0..=KEPT_MAX {
        let name = format!("{n}.test");
        lab.now_ms += 1;
        lab.resolver
            .ask(lab.now_ms, Subject::Addresses(name.as_bytes()), 0, 0);
        let mut out = Vec::new();
        let route = lab.resolver.transmit(1, &mut out).expect("a query");
        let query = Query {
            route,
            message: out,
        };
        let reply = query.reply().address("192.0.2.1", 3600).0;
        lab.resolver
            .receive(lab.now_ms, route, &reply)
            .expect("sound");
        lab.told();
        if n == KEPT_MAX - 1 {
            lab.ask("0.test");
            assert_eq!(
                lab.addresses(),
                ["192.0.2.1"],
                "all fit; the second is now the oldest"
            );
        }
    }
    lab.resolver.check_invariants();
    lab.ask("0.test");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
    lab.ask("1.test");
    assert_eq!(lab.sent().len(), 1, "the one unused for longest went");
}

#[test]
fn addresses_of_a_name_are_limited() {
    for (count, taken) in [
        (ADDRESSES_MAX, ADDRESSES_MAX),
        (ADDRESSES_MAX + 1, ADDRESSES_MAX),
    ] {
        let mut lab = Lab::v4(1);
        lab.ask("a.test");
        let query = lab.sent_one();
        let mut reply = query.reply();
        for n in 0..count {
            reply.0[7] = 0;
            reply = reply.record(A, 60, &[10, 0, (n >> 8) as u8, n as u8]);
        }
        reply.0[6..8].copy_from_slice(&(count as u16).to_be_bytes());
        lab.answer(&query, &reply.0).expect("sound");
        assert_eq!(lab.addresses().len(), taken);
    }
}

#[test]
fn hosts_of_a_service_are_limited() {
    for (count, asked) in [
        (SERVICES_MAX, SERVICES_MAX),
        (SERVICES_MAX + 1, SERVICES_MAX),
    ] {
        let mut lab = Lab::v4(1);
        lab.ask_for(Subject::Service {
            service: b"http",
            name: b"example.test",
        });
        let query = lab.sent_one();
        let mut reply = query.reply();
        for n in 0..count {
            let mut data = vec![0, (count - n) as u8, 0, 1, 0, 80];
            data.extend(wire(&format!("{n}.test")));
            reply = reply.record(SRV, 60, &data);
        }
        lab.answer(&query, &reply.0).expect("sound");
        let hosts = lab.sent();
        assert_eq!(hosts.len(), asked);
        assert_eq!(
            hosts[0].question().0,
            format!("{}.test", count - 1),
            "the lowest priority first"
        );
    }
}
