//! Stepwise changes of the configuration: the one that serves, and the connections that end or stay.

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use server_http::exchange::Peer;
use sim::{Command, Faults, Random, Wire};

use super::site::{TestConnection, generation, get, statuses};

const OLD: &str = "keepalive_timeout 60s 1s;";
const NEW: &str = "listen 127.0.0.1:8000; keepalive_timeout 60s 2s;";

/// A connection that has had a request, during a change with one step per turn.
fn changing(server: &str, keep: bool) -> TestConnection {
    let mut talk = TestConnection::new(OLD);
    assert_eq!(served_by(&mut talk), Some(1));
    talk.world.piece = 1;
    order(&mut talk, server, keep, 2);
    talk
}

fn order(talk: &mut TestConnection, server: &str, keep: bool, number: u64) {
    order_with(talk, server, keep, number, None);
}

fn order_with(
    talk: &mut TestConnection,
    server: &str,
    keep: bool,
    number: u64,
    timeout_ms: Option<u64>,
) {
    let (generation, _) = generation(server, number);
    talk.world.command(Command::Configure {
        generation,
        keep,
        timeout_ms,
    });
}

/// Returns the generation that answers, from a response header.
fn served_by(talk: &mut TestConnection) -> Option<u32> {
    talk.push(get("/pieces/1/1"));
    talk.world.poll(1000);
    talk.world.poll(1000);
    talk.wire(|wire| wire.fetch(usize::MAX));
    let received = String::from_utf8_lossy(&talk.received()).into_owned();
    let (_, timeout) = received.split_once("Keep-Alive: timeout=")?;
    timeout.split("\r\n").next()?.parse().ok()
}

/// Runs turns until this generation serves.
fn until(talk: &mut TestConnection, number: u64) {
    for _ in 0..100 {
        if talk.world.hands.generation.get() == number {
            return;
        }
        talk.world.poll(1000);
    }
    panic!("the configuration is not changed");
}

/// Accepts another connection and runs its first turn.
fn accept(talk: &mut TestConnection) -> Rc<std::cell::RefCell<Wire>> {
    let (hands, dice) = (Rc::clone(&talk.world.hands), Random::new(3));
    let wire = Wire::new(hands, dice, Faults::default(), 1 << 20);
    let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_001)));
    let link = talk.world.accept(wire, 0, peer);
    Rc::clone(&talk.world.links[link].wire)
}

#[test]
fn a_request_is_served_by_the_configuration_in_use_when_it_comes() {
    let mut talk = changing(NEW, true);
    talk.world.poll(0);
    assert!(talk.world.is_changing(), "it takes more than one turn");
    assert_eq!(served_by(&mut talk), Some(1));
    until(&mut talk, 2);
    assert_eq!(served_by(&mut talk), Some(2));
    talk.turn();
    assert!(talk.is_open() && !talk.world.is_changing());
}

#[test]
fn connections_accepted_after_the_change_are_not_drained() {
    let mut talk = changing(NEW, false);
    let before = accept(&mut talk);
    until(&mut talk, 2);
    let after = accept(&mut talk);
    talk.turn();
    assert!(!talk.is_open(), "it was idle");
    assert!(!before.borrow().closed, "it may still ask once");
    before.borrow_mut().push(get("/pieces/1/1").as_bytes());
    after.borrow_mut().push(get("/pieces/1/1").as_bytes());
    talk.turn();
    let said = |wire: &Wire| String::from_utf8_lossy(wire.sent()).into_owned();
    assert!(said(&before.borrow()).contains("Connection: close"));
    let kept = said(&after.borrow());
    assert_eq!(statuses(&kept), ["200"]);
    assert!(kept.contains("Connection: keep-alive"), "{kept}");
}

#[test]
fn changes_are_made_in_the_order_in_which_they_came() {
    let mut talk = changing(NEW, true);
    let second = Rc::downgrade(&talk.world.shared.generation.http);
    talk.world.poll(0);
    order(&mut talk, &NEW.replace("60s 2s", "60s 3s"), true, 3);
    talk.world.poll(0);
    until(&mut talk, 2);
    assert_eq!(served_by(&mut talk), Some(2));
    until(&mut talk, 3);
    assert_eq!(served_by(&mut talk), Some(3));
    talk.turn();
    assert!(second.upgrade().is_none(), "nobody needs it");
}

#[test]
fn an_idle_connection_of_a_port_that_is_gone_ends_before_the_change() {
    let mut talk = changing("listen 127.0.0.1:8001;", true);
    talk.world.poll(0);
    assert!(!talk.is_closed());
    while !talk.is_closed() {
        assert_eq!(talk.world.hands.generation.get(), 1);
        talk.world.poll(0);
    }
    until(&mut talk, 2);
}

#[test]
fn a_server_that_ends_makes_changes_that_wait_at_once() {
    let mut talk = changing(NEW, true);
    talk.push("GET /pieces/1/1 HTTP/1.1\r\n");
    talk.world.poll(1000);
    talk.world.command(Command::Quit);
    talk.world.poll(0);
    assert_eq!(talk.world.hands.generation.get(), 2);
    assert_eq!(statuses(&talk.send("Host: a\r\n\r\n")), ["200"]);
    assert!(!talk.is_open());
}

#[test]
fn each_configuration_has_a_time_of_its_own_for_what_it_has_in_progress() {
    // Timeouts of two changes, 100 ms apart, and the time at which the first one's request must be over.
    for (first, second, over_ms) in [(300, 300, 300), (300, 50, 150), (300, 1000, 300)] {
        let mut talk = TestConnection::new("client_body_timeout 60s;");
        talk.push("POST /body HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n");
        talk.turn();
        let began_ms = talk.world.now_ms();
        order_with(&mut talk, NEW, true, 2, Some(first));
        talk.turn();
        talk.world.advance(100);
        order_with(&mut talk, NEW, true, 3, Some(second));
        talk.turn();
        let at = |talk: &TestConnection| talk.world.now_ms() - began_ms;
        while !talk.is_closed() && at(&talk) < 2000 {
            talk.world.advance(10);
            talk.turn();
        }
        assert_eq!(at(&talk), over_ms, "{first} ms, then {second} ms");
    }
}
