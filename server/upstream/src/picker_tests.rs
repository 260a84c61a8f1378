//! Tests of the choice of a server, with lookups answered by the test.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::connector::{Lookup, Resolved};
use crate::route::UpstreamAddr;
use crate::server::{Server, UnresolvedHost};

#[path = "picker_late_tests.rs"]
mod late;
#[path = "picker_times_tests.rs"]
mod times;

/// Known names, and unanswered lookups.
#[derive(Default)]
struct Names {
    /// The last byte of each address of a name. A lookup of a name without an entry stays pending.
    known: HashMap<String, Result<Vec<u8>, String>>,
    valid_until_ms: u64,
    asked: Vec<(String, Lookup)>,
}

impl Names {
    fn resolve(&mut self, name: &str) -> Lookup {
        let lookup = Lookup::pending();
        self.asked.push((name.to_owned(), lookup.clone()));
        if let Some(answer) = self.known.get(name).cloned() {
            lookup.complete(self.answer(answer));
        }
        lookup
    }

    fn answer(&self, answer: Result<Vec<u8>, String>) -> Result<Resolved, String> {
        answer.map(|found| Resolved {
            addresses: found.iter().map(|n| [192, 0, 2, *n].into()).collect(),
            valid_until_ms: self.valid_until_ms,
        })
    }

    fn knows(&mut self, name: &str, found: &[u8]) {
        self.known.insert(name.to_owned(), Ok(found.to_vec()));
    }

    fn lacks(&mut self, name: &str) {
        let why = "3: Host not found".to_owned();
        self.known.insert(name.to_owned(), Err(why));
    }

    /// Answers the last query.
    fn tell(&mut self, answer: Result<Vec<u8>, String>) {
        let answer = self.answer(answer);
        let (_, lookup) = self.asked.last().expect("something was asked");
        lookup.complete(answer);
    }

    fn asked(&mut self) -> String {
        let names: Vec<_> = self.asked.drain(..).map(|(name, _)| name).collect();
        names.join(" ")
    }
}

/// A group, requests to it, and the time.
struct Bench {
    now_ms: u64,
    names: Names,
    group: Rc<LocalGroup>,
}

impl Bench {
    fn new(servers: &[Server]) -> Self {
        Self {
            now_ms: 1_000_000,
            names: Names {
                valid_until_ms: u64::MAX,
                ..Names::default()
            },
            group: Rc::new(LocalGroup::of(b"g", servers, (None, 30_000))),
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    fn picker(&self) -> Picker {
        Picker::new(Rc::clone(&self.group))
    }

    /// Returns the result for a request: the address, `none`, `wait`, or the error of the lookup.
    fn pick(&mut self, picker: &mut Picker) -> String {
        let names = &mut self.names;
        match picker.pick(self.now_ms, &mut |_, name, _| names.resolve(name)) {
            Pick::Selected(chosen) => String::from_utf8_lossy(&chosen.name).into_owned(),
            Pick::None => "none".to_owned(),
            Pick::Wait => "wait".to_owned(),
            Pick::Unresolved(why) => why,
        }
    }

    fn finish(&mut self, picker: &mut Picker, outcome: Outcome) -> bool {
        picker.finish(self.now_ms, outcome, None)
    }

    /// One request with this outcome of its first attempt.
    fn request(&mut self, outcome: Outcome) -> String {
        let mut picker = self.picker();
        let told = self.pick(&mut picker);
        self.finish(&mut picker, outcome);
        told
    }
}

fn server(n: u8) -> Server {
    Server {
        addresses: vec![UpstreamAddr::Inet(([192, 0, 2, n], 80).into())],
        ..Server::new()
    }
}

fn named(name: &str) -> Server {
    Server {
        unresolved: Some(UnresolvedHost::new(name, 80)),
        ..Server::new()
    }
}

#[test]
fn a_place_among_max_conns_is_given_back_at_the_end_and_by_a_drop() {
    let mut bench = Bench::new(&[Server {
        max_conns: 1,
        ..server(1)
    }]);
    let mut first = bench.picker();
    assert_eq!(bench.pick(&mut first), "192.0.2.1:80");
    assert_eq!(bench.request(Outcome::Alive), "none", "it is taken");
    bench.finish(&mut first, Outcome::Alive);
    assert_eq!(bench.pick(&mut first), "192.0.2.1:80");
    let mut second = bench.picker();
    assert_eq!(bench.pick(&mut second), "none");
    drop(first);
    assert_eq!(bench.pick(&mut second), "192.0.2.1:80");
    // A pick without a finish replaces the previous attempt.
    assert_eq!(bench.pick(&mut second), "192.0.2.1:80");
}

#[test]
fn failures_of_the_only_server_do_not_count_and_it_is_tried_again() {
    let mut bench = Bench::new(&[server(1)]);
    let mut picker = bench.picker();
    assert_eq!(picker.tries(), 1);
    for _ in 0..3 {
        assert_eq!(bench.pick(&mut picker), "192.0.2.1:80");
        assert!(!bench.finish(&mut picker, Outcome::Failed));
    }
}

#[test]
fn a_failure_that_disables_a_server_is_told() {
    let mut bench = Bench::new(&[
        Server {
            max_fails: 2,
            ..server(1)
        },
        Server {
            is_down: true,
            ..server(2)
        },
    ]);
    let told: Vec<bool> = (0..2)
        .map(|_| {
            let mut picker = bench.picker();
            bench.pick(&mut picker);
            bench.finish(&mut picker, Outcome::Failed)
        })
        .collect();
    assert_eq!(told, [false, true]);
    assert_eq!(bench.request(Outcome::Alive), "none");
    bench.pass(11_000);
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
}

#[test]
fn backup_servers_are_used_where_no_other_is_usable() {
    // The sequence of nginx 1.31.4: the first request meets the dead server and continues with a backup.
    let backup = |n, weight| Server {
        is_backup: true,
        weight,
        ..server(n)
    };
    let mut bench = Bench::new(&[server(9), backup(1, 1), backup(2, 2)]);
    let mut picker = bench.picker();
    assert_eq!(picker.tries(), 3);
    assert_eq!(bench.pick(&mut picker), "192.0.2.9:80");
    assert!(bench.finish(&mut picker, Outcome::Failed));
    assert_eq!(bench.pick(&mut picker), "192.0.2.2:80");
    bench.finish(&mut picker, Outcome::Alive);
    let then: Vec<_> = (0..6).map(|_| bench.request(Outcome::Alive)).collect();
    let short: String = then.iter().map(|name| &name[8..9]).collect();
    assert_eq!(short, "122122");
}

#[test]
fn all_servers_of_a_request_are_tried_and_then_none_is_left() {
    let backup = Server {
        is_backup: true,
        ..server(3)
    };
    let mut bench = Bench::new(&[server(1), server(2), backup]);
    let mut picker = bench.picker();
    let told: Vec<_> = (0..5)
        .map(|_| {
            let told = bench.pick(&mut picker);
            bench.finish(&mut picker, Outcome::Next);
            told
        })
        .collect();
    let expected = [
        "192.0.2.1:80",
        "192.0.2.2:80",
        "192.0.2.3:80",
        "none",
        "none",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_request_waits_for_the_name_of_its_only_server() {
    let mut bench = Bench::new(&[named("app.test")]);
    let mut picker = bench.picker();
    assert_eq!(bench.pick(&mut picker), "wait");
    assert_eq!(bench.pick(&mut picker), "wait", "it is asked once");
    bench.names.tell(Ok(vec![2, 1, 1]));
    assert_eq!(bench.names.asked(), "app.test");
    assert_eq!(bench.pick(&mut picker), "192.0.2.2:80");
    assert_eq!(
        picker.tries(),
        3,
        "an address that comes twice is tried twice"
    );
    bench.finish(&mut picker, Outcome::Failed);
    assert_eq!(bench.pick(&mut picker), "192.0.2.1:80");
    // Other requests know the addresses.
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
    assert_eq!(bench.names.asked(), "");
}

#[test]
fn a_name_that_is_not_found_is_asked_for_by_each_request() {
    let mut bench = Bench::new(&[named("app.test")]);
    bench.names.lacks("app.test");
    for _ in 0..2 {
        let told = bench.request(Outcome::Alive);
        assert_eq!(told, "app.test could not be resolved (3: Host not found)");
        assert_eq!(bench.names.asked(), "app.test");
    }
    bench.names.knows("app.test", &[5]);
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.5:80");
}

#[test]
fn a_request_that_has_another_server_does_not_wait() {
    let mut bench = Bench::new(&[server(1), named("app.test")]);
    for _ in 0..3 {
        assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
        assert_eq!(bench.names.asked.len(), 1, "the answer is on its way");
    }
    bench.names.tell(Ok(vec![2]));
    let told: Vec<_> = (0..2).map(|_| bench.request(Outcome::Alive)).collect();
    assert_eq!(told, ["192.0.2.1:80", "192.0.2.2:80"]);
}

#[test]
fn a_name_that_is_not_needed_is_asked_for_once_a_second() {
    let mut bench = Bench::new(&[server(1), named("app.test")]);
    bench.names.lacks("app.test");
    for (pass_ms, asked) in [(0, "app.test"), (999, ""), (1, "app.test"), (0, "")] {
        bench.pass(pass_ms);
        assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
        assert_eq!(bench.names.asked(), asked);
    }
}

#[test]
fn a_request_waits_for_the_first_usable_name_alone() {
    let mut bench = Bench::new(&[named("slow.test"), named("fast.test")]);
    let mut picker = bench.picker();
    assert_eq!(bench.pick(&mut picker), "wait");
    bench.names.tell(Ok(vec![7]));
    assert_eq!(bench.names.asked(), "slow.test fast.test");
    assert_eq!(bench.pick(&mut picker), "192.0.2.7:80");
    // A later request looks up the other name, and does not wait.
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.7:80");
    assert_eq!(bench.names.asked(), "slow.test");
}

#[test]
fn a_name_is_the_last_resort_of_a_request() {
    let mut bench = Bench::new(&[server(1), server(2), named("app.test")]);
    let mut picker = bench.picker();
    for told in ["192.0.2.1:80", "192.0.2.2:80"] {
        assert_eq!(bench.pick(&mut picker), told);
        bench.finish(&mut picker, Outcome::Failed);
    }
    assert_eq!(bench.pick(&mut picker), "wait");
    bench.names.tell(Err("110: Operation timed out".to_owned()));
    let told = bench.pick(&mut picker);
    assert_eq!(told, "none", "there are servers, if dead ones");
    bench.names.knows("app.test", &[3]);
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.3:80");
}

#[test]
fn addresses_are_followed_by_their_time() {
    let mut bench = Bench::new(&[named("app.test")]);
    bench.names.knows("app.test", &[1]);
    bench.names.valid_until_ms = bench.now_ms + 5_000;
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
    bench.names.asked();
    bench.pass(4_999);
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
    assert_eq!(bench.names.asked(), "");
    // The addresses have expired. They are used until the next answer.
    bench.names.known.clear();
    bench.pass(1);
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
    bench.names.tell(Ok(vec![3]));
    bench.names.valid_until_ms = u64::MAX;
    assert_eq!(bench.names.asked(), "app.test");
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.3:80");
}

#[test]
fn peers_are_in_the_order_of_the_configuration() {
    let mut bench = Bench::new(&[
        named("a.test"),
        server(1),
        Server {
            is_down: true,
            ..named("down.test")
        },
        server(2),
        named("b.test"),
        server(3),
    ]);
    bench.names.knows("b.test", &[20, 21]);
    bench.names.knows("a.test", &[10]);
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
    assert_eq!(bench.names.asked(), "a.test b.test");
    // The constant servers have the sums of a choice among them.
    let told: Vec<_> = (0..6).map(|_| bench.request(Outcome::Alive)).collect();
    let order = [2, 3, 10, 20, 21, 1].map(|n| format!("192.0.2.{n}:80"));
    assert_eq!(told, order);
}

#[test]
fn hosts_with_valid_addresses_cost_a_request_nothing() {
    let mut bench = Bench::new(&[server(1), named("app.test")]);
    let is_idle = |bench: &Bench| {
        let hosts = bench.group.hosts.as_ref().expect("there is a host");
        hosts.is_idle(&PendingLookups::default(), bench.now_ms)
    };
    assert!(!is_idle(&bench), "nothing was looked up");
    bench.request(Outcome::Alive);
    assert!(is_idle(&bench), "the answer is on its way");
    bench.names.valid_until_ms = bench.now_ms + 5_000;
    bench.names.tell(Ok(vec![2]));
    assert!(!is_idle(&bench), "it has come");
    bench.request(Outcome::Alive);
    for (ms, idle) in [(4_999, true), (1, false)] {
        bench.pass(ms);
        assert_eq!(is_idle(&bench), idle, "{ms}");
    }
    // A lookup without an answer: the next time is that of stale addresses.
    bench.request(Outcome::Alive);
    for (ms, idle) in [(9_999, true), (1, false)] {
        bench.pass(ms);
        assert_eq!(is_idle(&bench), idle, "{ms}");
    }
}

#[test]
fn an_answer_makes_hosts_due_though_no_server_is_chosen() {
    let mut bench = Bench::new(&[server(1), named("app.test")]);
    bench.request(Outcome::Alive);
    bench.names.tell(Err("no such name".to_owned()));
    let hosts = bench.group.hosts.as_ref().expect("there is a host");
    let mut asked = PendingLookups::default();
    hosts.receive(&mut asked, &bench.group.peers, bench.now_ms);
    for (ms, idle) in [(499, true), (500, false)] {
        assert_eq!(hosts.is_idle(&asked, bench.now_ms + ms), idle, "{ms}");
    }
}

/// A group with an address that is no longer valid.
fn stale() -> Bench {
    let mut bench = Bench::new(&[named("app.test")]);
    bench.names.knows("app.test", &[1]);
    bench.names.valid_until_ms = bench.now_ms + 5_000;
    assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
    bench.names.known.clear();
    bench.pass(5_000 + 10_000);
    bench
}

#[test]
fn addresses_that_are_stale_are_not_used_before_an_answer() {
    let mut bench = stale();
    let mut picker = bench.picker();
    assert_eq!(bench.pick(&mut picker), "wait");
    // An error keeps the known addresses.
    bench.names.tell(Err("2: Server failure".to_owned()));
    assert_eq!(bench.pick(&mut picker), "192.0.2.1:80");
}

#[test]
fn name_servers_that_fail_hold_up_one_request_at_a_time() {
    let mut bench = stale();
    let mut picker = bench.picker();
    assert_eq!(bench.pick(&mut picker), "wait");
    let why = || Err("110: Operation timed out".to_owned());
    bench.names.tell(why());
    assert_eq!(bench.pick(&mut picker), "192.0.2.1:80");
    // Later requests are served at once. Each error prolongs this.
    for _ in 0..3 {
        bench.pass(9_000);
        assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
        bench.names.tell(why());
        assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
    }
    bench.pass(10_000);
    assert_eq!(bench.request(Outcome::Alive), "wait");
}

#[test]
fn an_address_that_stays_keeps_how_it_fared() {
    let mut bench = Bench::new(&[named("app.test")]);
    bench.names.knows("app.test", &[1, 2]);
    bench.names.valid_until_ms = bench.now_ms + 1_000;
    assert_eq!(bench.request(Outcome::Failed), "192.0.2.1:80");
    bench.pass(1_000);
    bench.names.knows("app.test", &[3, 1]);
    bench.names.valid_until_ms = u64::MAX;
    bench.request(Outcome::Alive);
    let told: Vec<_> = (0..3).map(|_| bench.request(Outcome::Alive)).collect();
    assert_eq!(told, ["192.0.2.3:80"; 3], "the other one has failed");
    bench.pass(11_000);
    let told: Vec<_> = (0..4).map(|_| bench.request(Outcome::Alive)).collect();
    assert!(told.iter().any(|name| name == "192.0.2.1:80"), "{told:?}");
}

#[test]
fn a_name_of_one_request_is_resolved_for_it() {
    let mut bench = Bench::new(&[]);
    let group = || Rc::new(LocalGroup::of_name("app.test", 81, (None, 0)));
    let mut picker = Picker::new(group());
    assert_eq!(picker.name(), b"app.test");
    assert_eq!(bench.pick(&mut picker), "wait");
    bench.names.tell(Ok(vec![1]));
    assert_eq!(bench.pick(&mut picker), "192.0.2.1:81");
    assert_eq!(picker.tries(), 1);
    bench.names.lacks("app.test");
    let mut picker = Picker::new(group());
    let told = bench.pick(&mut picker);
    assert_eq!(told, "app.test could not be resolved (3: Host not found)");
}

#[test]
fn an_answer_without_a_time_serves_its_request_without_another_question() {
    let mut bench = Bench::new(&[named("app.test")]);
    bench.names.knows("app.test", &[1]);
    bench.names.valid_until_ms = bench.now_ms;
    let mut picker = Picker::new(Rc::new(LocalGroup::of_name("app.test", 80, (None, 0))));
    assert_eq!(bench.pick(&mut picker), "192.0.2.1:80");
    assert_eq!(bench.names.asked(), "app.test");
    // In a group, the next request resolves the name.
    for _ in 0..2 {
        assert_eq!(bench.request(Outcome::Alive), "192.0.2.1:80");
        assert_eq!(bench.names.asked(), "app.test");
    }
}

#[test]
fn addresses_of_one_request_are_tried_each_once() {
    let mut bench = Bench::new(&[]);
    let unix = UpstreamAddr::Unix(Arc::from(*b"/run/a"));
    let inet = UpstreamAddr::Inet(([192, 0, 2, 1], 80).into());
    let mut picker = Picker::new(Rc::new(LocalGroup::of_addresses(vec![unix, inet])));
    let told: Vec<_> = (0..3).map(|_| bench.pick(&mut picker)).collect();
    assert_eq!(told, ["unix:/run/a", "192.0.2.1:80", "none"]);
}

#[path = "outage_tests.rs"]
mod outage;
