//! SRV: services to the addresses of the hosts that offer them.

use super::super::ServiceAddress;
use super::*;

fn srv(priority: u16, weight: u16, port: u16, host: &str) -> Vec<u8> {
    let mut data = Vec::new();
    for word in [priority, weight, port] {
        data.extend(word.to_be_bytes());
    }
    data.extend(wire(host));
    data
}

fn http(lab: &mut Lab) -> Key {
    lab.ask_for(Subject::Service {
        service: b"http",
        name: b"example.test",
    })
}

#[track_caller]
fn services(lab: &mut Lab) -> Vec<ServiceAddress> {
    match lab.told() {
        Event::Resolved {
            answer: Answer::Services(list),
            ..
        } => list,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_service_has_a_name_of_its_own_or_stands_for_http_over_tcp() {
    for (service, asked) in [
        ("http", "_http._tcp.example.test"),
        ("_sip._udp", "_sip._udp.example.test"),
    ] {
        let mut lab = Lab::v4(1);
        lab.ask_for(Subject::Service {
            service: service.as_bytes(),
            name: b"Example.Test.",
        });
        assert_eq!(lab.sent_one().question(), (asked.to_owned(), SRV));
    }
}

#[test]
fn hosts_of_a_service_are_looked_up_and_come_by_priority() {
    let mut lab = Lab::v4(1);
    http(&mut lab);
    let asked = lab.serve(|query| match query.question().0.as_str() {
        "a.test" => {
            query
                .reply()
                .address("192.0.2.1", 60)
                .address("192.0.2.2", 60)
                .0
        }
        "b.test" => query.reply().address("192.0.2.3", 20).0,
        "none.test" => query.reply().code(3).0,
        _ => {
            let reply = query.reply().record(SRV, 60, &srv(2, 0, 8080, "a.test"));
            let reply = reply.record(SRV, 60, &srv(3, 1, 1, "none.test"));
            reply.record(SRV, 60, &srv(1, 5, 80, "B.test")).0
        }
    });
    assert_eq!(asked, 4);
    let list = services(&mut lab);
    let shown: Vec<String> = list
        .iter()
        .map(|s| {
            format!(
                "{} {} {} {} {}",
                s.priority, s.weight, s.address, s.port, s.host
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "1 5 192.0.2.3 80 b.test",
            "2 1 192.0.2.1 8080 a.test",
            "2 1 192.0.2.2 8080 a.test"
        ]
    );
    // All but the error is kept.
    http(&mut lab);
    assert_eq!(lab.sent_one().question().0, "none.test");
}

#[test]
fn the_answer_holds_as_long_as_the_first_of_its_parts() {
    let mut lab = Lab::v4(1);
    http(&mut lab);
    lab.serve(|query| match query.question().1 {
        SRV => query.reply().record(SRV, 60, &srv(1, 1, 80, "a.test")).0,
        _ => query.reply().address("192.0.2.1", 20).0,
    });
    assert!(matches!(
        lab.told(),
        Event::Resolved {
            valid_until_ms: 21_000,
            ..
        }
    ));
    http(&mut lab);
    assert_eq!(services(&mut lab).len(), 1, "from what is kept");
}

#[test]
fn weights_are_the_shares_of_coming_first() {
    let mut lab = Lab::v4(1);
    http(&mut lab);
    lab.serve(|query| match query.question().0.as_str() {
        "a.test" => query.address("192.0.2.1"),
        "b.test" => query.address("192.0.2.2"),
        _ => {
            let reply = query.reply().record(SRV, 60, &srv(1, 30, 80, "a.test"));
            reply.record(SRV, 60, &srv(1, 10, 80, "b.test")).0
        }
    });
    lab.told();
    let mut first = [0_u32; 2];
    for chance in 0..4_000 {
        let subject = Subject::Service {
            service: b"http",
            name: b"example.test",
        };
        lab.resolver.ask(lab.now_ms, subject, 0, chance);
        let list = services(&mut lab);
        assert_eq!(list.len(), 2);
        first[usize::from(list[0].host.to_string() == "b.test")] += 1;
    }
    assert!((900..1_100).contains(&first[1]), "{first:?} for 3 to 1");
}

#[test]
fn a_service_without_hosts_that_have_addresses_is_not_found() {
    let mut lab = Lab::v4(1);
    for host in ["none.test", ""] {
        http(&mut lab);
        lab.serve(|query| match query.question().1 {
            SRV => query.reply().record(SRV, 0, &srv(1, 1, 80, host)).0,
            _ => query.reply().code(3).0,
        });
        assert_eq!(lab.failure(), Failure::NotFound, "{host:?}");
    }
}

#[test]
fn an_alias_of_a_service_is_followed() {
    let mut lab = Lab::v4(1);
    http(&mut lab);
    lab.serve(|query| match query.question().0.as_str() {
        "_http._tcp.example.test" => query.reply().alias("real.test", 60).0,
        "real.test" => query.reply().record(SRV, 60, &srv(1, 1, 80, "a.test")).0,
        _ => query.address("192.0.2.1"),
    });
    assert_eq!(services(&mut lab).len(), 1);
}

#[test]
fn a_cancelled_service_is_forgotten_with_its_hosts() {
    let mut lab = Lab::v4(1);
    let key = http(&mut lab);
    let query = lab.sent_one();
    let reply = query.reply().record(SRV, 60, &srv(1, 1, 80, "a.test"));
    lab.answer(&query, &reply.record(SRV, 60, &srv(1, 1, 80, "b.test")).0)
        .expect("sound");
    let hosts = lab.sent();
    assert_eq!(hosts.len(), 2);
    lab.answer(&hosts[0], &hosts[0].address("192.0.2.1"))
        .expect("sound");
    lab.resolver.cancel(key);
    lab.resolver.check_invariants();
    lab.answer(&hosts[1], &hosts[1].address("192.0.2.2"))
        .expect("sound");
    lab.told_nothing();
}

#[test]
fn the_time_for_hosts_begins_with_them() {
    let mut lab = Lab::v4(1);
    http(&mut lab);
    let query = lab.sent_one();
    lab.pass(4_000);
    let reply = query.reply().record(SRV, 60, &srv(1, 1, 80, "a.test"));
    lab.answer(&query, &reply.0).expect("sound");
    lab.sent();
    lab.pass(29_999);
    lab.told_nothing();
    lab.pass(1);
    assert_eq!(lab.failure(), Failure::TimedOut);
}

#[test]
fn broken_records_of_a_service_are_refused() {
    let mut lab = Lab::v4(1);
    http(&mut lab);
    let query = lab.sent_one();
    let whole = srv(1, 1, 80, "a.test");
    for end in 0..whole.len() {
        let reply = query.reply().record(SRV, 60, &whole[..end]);
        assert!(lab.answer(&query, &reply.0).is_err(), "cut at {end}");
    }
    let reply = query.reply().record(SRV, 60, &[&whole[..], b"x"].concat());
    let refused = lab.answer(&query, &reply.0).expect_err("a byte too many");
    assert_eq!(refused.to_string(), "invalid SRV record in DNS response");
}
