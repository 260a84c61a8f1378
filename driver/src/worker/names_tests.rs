//! Names of requests against name servers on loopback sockets.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use server_base::resolver_status::{Request, ResolverStatus, Response};
use server_base::waker::{WakeKey, WakeQueue};
use sys::poll::Events;

use super::*;
use crate::io::hosts::Hosts;
use crate::io::resolv_conf::ResolvConf;
use crate::io::resolver::tests::{NameServer, Query, Reply};

/// A loop around the names of a thread.
struct Loop {
    poller: Poller,
    names: Names,
    wakes: WakeQueue,
    started: Instant,
}

impl Loop {
    /// Of a system with this server.
    fn new(server: SocketAddr, resolv_conf: &str, hosts: &str) -> Self {
        let mut conf = ResolvConf::parse(resolv_conf.as_bytes(), "", &|_| None);
        conf.servers = vec![server];
        let hosts = Hosts::parse(hosts.as_bytes());
        Self {
            poller: Poller::new().expect("a poller"),
            names: Names::new(SystemNames::fixed(conf, hosts)),
            wakes: WakeQueue::default(),
            started: Instant::now(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64 + 1
    }

    fn ask(&mut self, servers: Option<&Arc<NameServers>>, name: &str, timeout_ms: u64) -> Lookup {
        let waker = Waker::new(WakeKey::default(), &self.wakes);
        let now_ms = self.now_ms();
        self.names.resolve(now_ms, servers, name, timeout_ms, waker)
    }

    /// Turns until the answer is there and its asker was woken.
    #[track_caller]
    fn answer(&mut self, lookup: &Lookup) -> String {
        let mut events = Events::with_capacity(8);
        while lookup.answer().is_none() {
            assert!(
                self.started.elapsed() < Duration::from_secs(30),
                "no answer"
            );
            let now_ms = self.now_ms();
            self.names.transmit(&self.poller, now_ms);
            let due = self
                .names
                .deadline()
                .map_or(100, |at| at.saturating_sub(now_ms));
            self.poller
                .wait(&mut events, Some(due.min(100)))
                .expect("wait");
            let now_ms = self.now_ms();
            for ready in events.iter() {
                assert!(is_token(ready.token));
                self.names.ready(&self.poller, now_ms, ready);
            }
            self.names.expire(&self.poller, now_ms);
        }
        assert_eq!(self.wakes.take().len(), 1, "it was woken");
        shown(lookup)
    }

    #[track_caller]
    fn system(&mut self, name: &str) -> String {
        let lookup = self.ask(None, name, 20_000);
        self.answer(&lookup)
    }
}

/// The answer of a lookup, or its error.
fn shown(lookup: &Lookup) -> String {
    match lookup.answer() {
        Some(Ok(found)) => found
            .addresses
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" "),
        Some(Err(why)) => why,
        None => "pending".to_owned(),
    }
}

fn configured(server: SocketAddr) -> Arc<NameServers> {
    Arc::new(NameServers {
        servers: vec![server],
        valid_ms: None,
        ipv4: true,
        ipv6: false,
        status: None,
    })
}

/// A server that knows these names; for other names it returns this code.
fn server(known: &'static [&'static str], code: u8) -> NameServer {
    NameServer::start(move |received: &Query| {
        if known.contains(&received.name().as_str()) {
            return Reply::Say(vec![received.address(7)]);
        }
        let mut reply = received.reply();
        reply[3] |= code;
        Reply::Say(vec![reply])
    })
}

fn received(server: &NameServer) -> String {
    let names: Vec<_> = server.received().iter().map(Query::name).collect();
    names.join(" ")
}

#[test]
fn a_name_is_asked_for_once_and_known_then() {
    let server = server(&["app.test"], 3);
    let mut turns = Loop::new(server.address, "", "");
    let by = configured(server.address);
    let first = turns.ask(Some(&by), "app.test", 20_000);
    let second = turns.ask(Some(&by), "APP.test", 20_000);
    assert_eq!(shown(&first), "pending");
    // Both wait for one query, and are one connection's.
    assert_eq!(turns.answer(&first), "192.0.2.7");
    assert_eq!(shown(&second), "192.0.2.7");
    let again = turns.ask(Some(&configured(server.address)), "app.test", 20_000);
    assert_eq!(
        shown(&again),
        "192.0.2.7",
        "of a newer configuration, at once"
    );
    let found = again
        .answer()
        .expect("it is there")
        .expect("it is an answer");
    let valid_ms = found.valid_until_ms - turns.now_ms();
    assert!((50_000..=60_000).contains(&valid_ms), "{valid_ms}");
    assert_eq!(received(&server), "app.test");
}

#[test]
fn a_short_name_is_looked_for_in_the_domains_of_the_system() {
    let server = server(&["app.svc.test", "www.app.test"], 3);
    let mut turns = Loop::new(
        server.address,
        "search a.test svc.test\noptions ndots:2",
        "",
    );
    assert_eq!(turns.system("app"), "192.0.2.7");
    assert_eq!(turns.system("www.app.test"), "192.0.2.7");
    assert_eq!(received(&server), "app.a.test app.svc.test www.app.test");
}

#[test]
fn what_is_in_no_domain_is_not_found() {
    let server = server(&[], 3);
    let mut turns = Loop::new(server.address, "search a.test", "");
    assert_eq!(turns.system("none"), "3: Host not found");
    assert_eq!(received(&server), "none.a.test none");
}

#[test]
fn a_server_that_fails_for_one_domain_is_told() {
    let server = NameServer::start(|received: &Query| {
        let mut reply = received.reply();
        reply[3] |= if received.name() == "x.a.test" { 2 } else { 3 };
        Reply::Say(vec![reply])
    });
    let mut turns = Loop::new(server.address, "search a.test b.test", "");
    assert_eq!(turns.system("x"), "2: Server failure");
    assert_eq!(received(&server), "x.a.test x.b.test x");
}

#[test]
fn hosts_of_the_system_are_known_at_once_and_a_resolver_does_not_know_them() {
    let server = server(&[], 3);
    let mut turns = Loop::new(server.address, "", "192.0.2.9 app.test app");
    let found = turns.ask(None, "app", 20_000);
    assert_eq!(shown(&found), "192.0.2.9");
    let by = configured(server.address);
    let asked = turns.ask(Some(&by), "app", 20_000);
    assert_eq!(turns.answer(&asked), "3: Host not found");
}

#[test]
fn a_silent_server_costs_the_time_that_the_request_has() {
    let server = NameServer::start(|_: &Query| Reply::Silence);
    let mut turns = Loop::new(server.address, "search a.test b.test", "");
    let by = configured(server.address);
    for by in [None, Some(&by)] {
        let began = Instant::now();
        let lookup = turns.ask(by, "app", 200);
        assert_eq!(turns.answer(&lookup), "110: Operation timed out");
        let took_ms = began.elapsed().as_millis();
        assert!((150..3_000).contains(&took_ms), "{took_ms}");
    }
}

#[test]
fn a_server_of_the_system_that_is_not_there_costs_no_time() {
    // Bound, so that no other socket gets the port, and connected to itself, so that it accepts no packets of others.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let address = socket.local_addr().expect("it has one");
    socket.connect(address).expect("it is its own");
    let mut turns = Loop::new(address, "search a.test b.test", "");
    let began = Instant::now();
    assert_eq!(turns.system("app"), "-1: No name server can be reached");
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn names_that_are_none_are_not_found() {
    let server = server(&[], 3);
    let mut turns = Loop::new(server.address, "", "");
    let by = configured(server.address);
    for name in ["a..b".to_owned(), "x".repeat(64), "a.".repeat(200)] {
        let lookup = turns.ask(Some(&by), &name, 20_000);
        assert_eq!(shown(&lookup), "3: Host not found", "{name}");
    }
    assert_eq!(received(&server), "");
}

#[test]
fn questions_that_nobody_waits_for_are_taken_back() {
    let server = NameServer::start(|_: &Query| Reply::Silence);
    let mut turns = Loop::new(server.address, "", "");
    let by = configured(server.address);
    for n in 0..PURGE_MIN {
        drop(turns.ask(Some(&by), &format!("n{n}.test"), 20_000));
    }
    assert_eq!(turns.names.known[0].resolver.waiting(), PURGE_MIN);
    let _kept = turns.ask(Some(&by), "last.test", 20_000);
    assert_eq!(turns.names.known[0].resolver.waiting(), 1);
}

#[test]
fn resolvers_beyond_the_limit_go_unless_somebody_waits() {
    let server = NameServer::start(|_: &Query| Reply::Silence);
    let mut turns = Loop::new(server.address, "", "");
    let by = |valid_ms| {
        let mut by = NameServers::clone(&configured(server.address));
        by.valid_ms = Some(valid_ms);
        Arc::new(by)
    };
    let _kept = turns.ask(Some(&by(0)), "app.test", 20_000);
    for n in 1..RESOLVERS_MAX as u64 {
        turns.ask(Some(&by(n)), "192.0.2.1", 20_000);
    }
    assert_eq!(turns.names.known.len(), RESOLVERS_MAX);
    turns.ask(Some(&by(RESOLVERS_MAX as u64)), "192.0.2.1", 20_000);
    assert_eq!(turns.names.known.len(), 2);
}

#[test]
fn queries_and_responses_of_a_status_zone_are_counted() {
    let server = server(&["app.test"], 3);
    let status = ResolverStatus::attach("counted");
    let mut turns = Loop::new(server.address, "", "");
    let mut by = NameServers::clone(&configured(server.address));
    by.status = Some(status.clone());
    let by = Arc::new(by);
    for (name, answer) in [
        ("app.test", "192.0.2.7"),
        ("none.test", "3: Host not found"),
    ] {
        let lookup = turns.ask(Some(&by), name, 20_000);
        assert_eq!(turns.answer(&lookup), answer);
    }
    // The answer is known.
    let lookup = turns.ask(Some(&by), "app.test", 20_000);
    assert!(lookup.is_answered());
    let requests = [Request::Name, Request::Srv, Request::Addr].map(|kind| status.requests(kind));
    assert_eq!(requests, [2, 0, 0]);
    let responses = [Response::NoError, Response::NxDomain, Response::TimedOut];
    assert_eq!(responses.map(|kind| status.responses(kind)), [1, 1, 0]);
}
