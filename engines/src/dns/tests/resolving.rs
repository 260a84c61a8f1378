//! Names to addresses and back: families, aliases, the cache, waiters.

use super::*;

#[test]
fn both_families_are_asked_for_and_ipv4_comes_first() {
    let mut lab = Lab::new(Settings::default());
    let key = lab.ask("example.com");
    let queries = lab.sent();
    let kinds: Vec<_> = queries.iter().map(Query::question).collect();
    assert_eq!(
        kinds,
        [
            ("example.com".to_owned(), A),
            ("example.com".to_owned(), AAAA)
        ]
    );
    assert_ne!(queries[0].id(), queries[1].id());
    lab.answer(&queries[1], &queries[1].address("2001:db8::1"))
        .expect("sound");
    lab.told_nothing();
    lab.answer(&queries[0], &queries[0].address("192.0.2.1"))
        .expect("sound");
    let Event::Resolved {
        key: told,
        valid_until_ms,
        answer,
    } = lab.told()
    else {
        panic!("it is resolved")
    };
    assert_eq!((told, valid_until_ms), (key, 61_000));
    let expected = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().expect("an address"));
    assert_eq!(answer, Answer::Addresses(expected.to_vec()));
}

#[test]
fn a_family_that_is_off_is_not_asked_for() {
    for (ipv4, ipv6, kind) in [(true, false, A), (false, true, AAAA)] {
        let mut lab = Lab::new(Settings {
            ipv4,
            ipv6,
            ..Settings::default()
        });
        lab.ask("example.com");
        assert_eq!(lab.sent_one().question().1, kind);
    }
}

#[test]
fn an_address_needs_no_server() {
    let mut lab = Lab::new(Settings {
        servers: 0,
        ..Settings::default()
    });
    lab.ask("192.0.2.7");
    assert_eq!(lab.addresses(), ["192.0.2.7"]);
    lab.ask("2001:db8::7");
    assert_eq!(lab.addresses(), ["2001:db8::7"]);
    lab.ask("example.com");
    assert_eq!(lab.failure(), Failure::NoServers);
}

#[test]
fn what_is_no_name_is_not_found() {
    let mut lab = Lab::v4(1);
    for wrong in ["", "a..b", &"a".repeat(64)] {
        lab.ask(wrong);
        assert_eq!(lab.failure(), Failure::NotFound);
    }
    assert!(!lab.resolver.wants_transmit());
}

#[test]
fn askers_of_one_name_wait_for_one_query() {
    let mut lab = Lab::v4(1);
    lab.ask("example.com");
    let query = lab.sent_one();
    let second = lab.ask("EXAMPLE.com.");
    let third = lab.ask("example.com");
    assert!(lab.sent().is_empty());
    lab.resolver.cancel(second);
    lab.answer(&query, &query.address("192.0.2.1"))
        .expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
    assert!(matches!(lab.told(), Event::Resolved { key, .. } if key == third));
    lab.told_nothing();
    assert!(!lab.resolver.is_asking() && lab.resolver.deadline().is_none());
}

#[test]
fn answers_are_kept_for_their_time_and_no_longer() {
    let mut lab = Lab::v4(1);
    lab.ask("example.com");
    lab.serve(|query| query.reply().address("192.0.2.1", 5).0);
    lab.told();
    lab.pass(4_999);
    lab.ask("example.com");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
    lab.pass(1);
    lab.ask("example.com");
    lab.told_nothing();
    assert_eq!(lab.sent().len(), 1);
}

#[test]
fn the_time_told_is_that_of_the_shortest_record() {
    let mut lab = Lab::v4(1);
    lab.ask("example.com");
    let query = lab.sent_one();
    let reply = query.reply().alias("b.test", 2);
    let owner = wire("b.test");
    let reply = reply.record_of(&owner, A, 9, &[192, 0, 2, 1]).0;
    lab.answer(&query, &reply).expect("sound");
    assert!(matches!(
        lab.told(),
        Event::Resolved {
            valid_until_ms: 3_000,
            ..
        }
    ));
}

#[test]
fn valid_overrides_the_time_of_records() {
    let mut lab = Lab::new(Settings {
        ipv6: false,
        valid_ms: Some(10_000),
        ..Settings::default()
    });
    lab.ask("example.com");
    lab.serve(|query| query.reply().address("192.0.2.1", 0).0);
    assert!(matches!(
        lab.told(),
        Event::Resolved {
            valid_until_ms: 11_000,
            ..
        }
    ));
    lab.pass(9_999);
    lab.ask("example.com");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
}

#[test]
fn an_answer_without_time_is_given_and_not_kept() {
    for ttl_s in [0, 0x8000_0000] {
        let mut lab = Lab::v4(1);
        lab.ask("example.com");
        lab.serve(|query| query.reply().address("192.0.2.1", ttl_s).0);
        assert_eq!(lab.addresses(), ["192.0.2.1"]);
        lab.ask("example.com");
        assert_eq!(lab.sent().len(), 1);
    }
}

#[test]
fn an_answer_nobody_uses_is_forgotten() {
    let mut lab = Lab::v4(1);
    lab.ask("example.com");
    lab.serve(|query| query.reply().address("192.0.2.1", 3600).0);
    lab.told();
    lab.pass(30_000);
    lab.ask("example.com");
    assert_eq!(lab.addresses(), ["192.0.2.1"], "used within 30 s");
    lab.pass(30_001);
    lab.ask("example.com");
    assert_eq!(lab.sent().len(), 1);
}

#[test]
fn kept_addresses_are_turned_by_chance() {
    let mut lab = Lab::v4(1);
    lab.ask("example.com");
    let list = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    lab.serve(|query| list.iter().fold(query.reply(), |r, ip| r.address(ip, 60)).0);
    assert_eq!(lab.addresses(), list);
    let mut first = std::collections::BTreeSet::new();
    for chance in 0..50 {
        let subject = Subject::Addresses(b"example.com");
        lab.resolver.ask(lab.now_ms, subject, 0, chance);
        let mut told = lab.addresses();
        first.insert(told[0].clone());
        told.sort();
        assert_eq!(told, list);
    }
    assert_eq!(first.len(), 3, "each comes first at times");
}

#[test]
fn errors_of_servers_are_those_of_the_name() {
    for (code, text) in [
        (2, "2: Server failure"),
        (3, "3: Host not found"),
        (4, "4: Unimplemented"),
        (5, "5: Operation refused"),
    ] {
        let mut lab = Lab::v4(2);
        lab.ask("example.com");
        lab.serve(|query| query.reply().code(code).0);
        let Event::Failed {
            why,
            valid_until_ms,
            ..
        } = lab.told()
        else {
            panic!("it failed")
        };
        assert_eq!(format!("{}: {why}", why.code()), text);
        assert_eq!(valid_until_ms, 11_000);
        lab.ask("example.com");
        assert_eq!(lab.sent().len(), 1, "errors are not kept");
    }
}

/// Answers of the two families, in their order, and the result; as in nginx.
#[test]
fn families_are_joined() {
    let outcome = |v4: &str, v6: &str| {
        let mut lab = Lab::new(Settings::default());
        lab.ask("x.test");
        lab.serve(|query| {
            let (name, kind) = query.question();
            let own = if kind == A {
                "192.0.2.1"
            } else {
                "2001:db8::1"
            };
            let reply = query.reply();
            let what = if kind == A { v4 } else { v6 };
            match what {
                _ if name == "alias.test" => reply.address(own, 60).0,
                "nothing" => reply.0,
                "error" => reply.code(2).0,
                "alias" => reply.alias("alias.test", 60).0,
                _ => reply.address(own, 60).0,
            }
        });
        match lab.told() {
            Event::Failed { why, .. } => why.to_string(),
            Event::Resolved {
                answer: Answer::Addresses(list),
                ..
            } => format!("{}", list.len()),
            other => panic!("{other:?}"),
        }
    };
    for (v4, v6, told) in [
        ("nothing", "nothing", "Host not found"),
        ("nothing", "address", "1"),
        ("nothing", "alias", "2"),
        ("nothing", "error", "Server failure"),
        ("address", "nothing", "1"),
        ("address", "address", "2"),
        ("address", "alias", "1"),
        ("address", "error", "Server failure"),
        ("alias", "nothing", "Host not found"),
        ("alias", "address", "1"),
        ("alias", "alias", "2"),
        ("error", "address", "Server failure"),
        ("error", "alias", "Server failure"),
    ] {
        assert_eq!(outcome(v4, v6), told, "{v4} {v6}");
    }
}

#[test]
fn an_alias_is_followed_and_both_are_kept() {
    let mut lab = Lab::v4(1);
    let serve = |query: &Query| match query.question().0.as_str() {
        "www.test" => query.reply().alias("host.test", 60).0,
        _ => query.address("192.0.2.1"),
    };
    lab.ask("www.test");
    assert_eq!(lab.serve(serve), 2);
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
    for name in ["www.test", "host.test"] {
        lab.ask(name);
        assert_eq!(lab.addresses(), ["192.0.2.1"]);
    }
}

#[test]
fn askers_of_an_alias_and_of_its_target_wait_for_one_query() {
    let mut lab = Lab::v4(1);
    lab.ask("host.test");
    let target = lab.sent_one();
    let gone = lab.ask("www.test");
    lab.ask("www.test");
    let alias = lab.sent_one();
    lab.answer(&alias, &alias.reply().alias("host.test", 60).0)
        .expect("sound");
    assert!(lab.sent().is_empty());
    lab.resolver.cancel(gone);
    lab.answer(&target, &target.address("192.0.2.1"))
        .expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
    lab.told_nothing();
}

#[test]
fn aliases_within_an_answer_are_followed_in_any_order() {
    let mut lab = Lab::v4(1);
    lab.ask("a.test");
    let query = lab.sent_one();
    let reply = query
        .reply()
        .record_of(&wire("c.test"), A, 60, &[192, 0, 2, 1])
        .record_of(&wire("b.test"), CNAME, 60, &wire("c.test"))
        .record(DNAME, 60, &wire("other.test"))
        .alias("B.test", 60);
    lab.answer(&query, &reply.0).expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
}

#[test]
fn the_end_of_an_answers_aliases_is_asked_for() {
    let mut lab = Lab::v4(1);
    lab.ask("a.test");
    let query = lab.sent_one();
    let reply = query.reply().alias("b.test", 60);
    let reply = reply.record_of(&wire("b.test"), CNAME, 60, &wire("c.test"));
    lab.answer(&query, &reply.0).expect("sound");
    assert_eq!(lab.sent_one().question().0, "c.test");
}

#[test]
fn records_of_other_names_do_not_count() {
    let mut lab = Lab::v4(1);
    lab.ask("a.test");
    let query = lab.sent_one();
    let reply = query.reply();
    let reply = reply.record_of(&wire("b.test"), A, 60, &[192, 0, 2, 66]);
    lab.answer(&query, &reply.0).expect("sound");
    assert_eq!(lab.failure(), Failure::NotFound);
    lab.ask("b.test");
    lab.told_nothing();
}

#[test]
fn broken_records_change_nothing() {
    let mut lab = Lab::v4(1);
    lab.ask("a.test");
    let query = lab.sent_one();
    for (reply, said) in [
        (query.reply().record(A, 60, &[1, 2, 3]), "invalid A record"),
        (query.reply().record(A, 60, &[]), "invalid A record"),
        (
            query.reply().record(AAAA, 60, &[0; 16]),
            "unexpected AAAA record",
        ),
        (query.reply().record(CNAME, 60, &[]), "name is out of"),
        (
            query.reply().record(CNAME, 60, b"\x01b\x00x"),
            "invalid CNAME record",
        ),
        (query.reply().record(CNAME, 60, b"\x01b"), "name is out of"),
    ] {
        let refused = lab.answer(&query, &reply.0).expect_err("it is broken");
        assert_eq!(
            refused.to_string(),
            format!("{said} DNS response").replace("record DNS", "record in DNS")
        );
    }
    lab.answer(&query, &query.address("192.0.2.1"))
        .expect("sound");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
}

#[test]
fn an_address_has_a_name() {
    let mut lab = Lab::v4(1);
    lab.ask_for(Subject::Pointer("192.0.2.10".parse().expect("an address")));
    let query = lab.sent_one();
    assert_eq!(
        query.question(),
        ("10.2.0.192.in-addr.arpa".to_owned(), PTR)
    );
    // RFC 2317: the name may be another's alias.
    let reply = query.reply().alias("10.part.test", 60);
    let reply = reply.record_of(&wire("10.part.test"), PTR, 60, &wire("Host.Test"));
    lab.answer(&query, &reply.0).expect("sound");
    let Event::Resolved {
        answer: Answer::Name(name),
        ..
    } = lab.told()
    else {
        panic!("it has a name")
    };
    assert_eq!(name.to_string(), "host.test");
}

#[test]
fn a_cancelled_question_tells_nothing() {
    let mut lab = Lab::v4(1);
    let key = lab.ask("a.test");
    let query = lab.sent_one();
    lab.resolver.cancel(key);
    lab.resolver.check_invariants();
    lab.answer(&query, &query.address("192.0.2.1"))
        .expect("sound");
    lab.told_nothing();
    // The answer is kept for the next.
    let known = lab.ask("a.test");
    lab.resolver.cancel(known);
    lab.told_nothing();
    lab.ask("a.test");
    assert_eq!(lab.addresses(), ["192.0.2.1"]);
}
