//! Connections that use another protocol after a 101 response.

use driver::worker::readiness::Readiness;
use sim::Command;

use super::proxy_handler::{set_room, taken, wake};
use super::site::{TestConnection, get, log_entries};

const HEAD: &str = "HTTP/1.1 101 Switching Protocols\r\n";

fn upgrade(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
}

/// A client whose connection is a tunnel.
fn tunnel(server: &str) -> TestConnection {
    set_room(u64::MAX);
    let mut talk = TestConnection::new(server);
    let got = talk.send(upgrade("/pass/tunnel"));
    assert!(got.starts_with(HEAD) && got.ends_with("\r\n\r\n"), "{got}");
    assert!(
        got.contains("Upgrade: echo\r\nConnection: upgrade\r\n"),
        "{got}"
    );
    taken();
    talk
}

#[test]
fn a_tunnel_carries_bytes_as_they_are() {
    let mut talk = tunnel("");
    for bytes in ["he", "llo", "0\r\n\r\n", &get("/text")] {
        assert_eq!(talk.send(bytes), bytes);
    }
    let large = "x".repeat(300_000);
    assert_eq!(talk.send(&large), large);
    assert!(log_entries().is_empty() && talk.is_open());
}

#[test]
fn bytes_that_came_with_the_request_go_into_the_tunnel() {
    set_room(u64::MAX);
    let mut talk = TestConnection::new("");
    let got = talk.send(upgrade("/pass/tunnel") + "early");
    assert!(
        got.starts_with(HEAD) && got.ends_with("\r\n\r\nearly"),
        "{got}"
    );
    assert_eq!(talk.send("more"), "more");
}

#[test]
fn a_tunnel_ends_with_either_side_when_all_has_left() {
    let mut talk = tunnel("");
    talk.push("last words");
    assert_eq!(talk.end(), "last words");
    assert!(talk.is_closed());
    let entry = log_entries().remove(0);
    assert_eq!((entry.status, entry.completed), (101, true));
    assert_eq!(entry.request_bytes, upgrade("/pass/tunnel").len() as u64);
    assert!(entry.bytes_sent > 10);
}

#[test]
fn a_tunnel_is_not_read_while_its_bytes_are_not_consumed() {
    let mut talk = tunnel("");
    set_room(0);
    talk.send(vec![b'x'; 1 << 20]);
    let read = talk.wire(|wire| wire.taken());
    assert!(read < 300_000, "{read}");
    talk.end();
    assert!(!talk.is_closed(), "what is on its way still comes");
    set_room(u64::MAX);
    assert_eq!(talk.turn().len(), 1 << 20);
    assert!(talk.is_closed());
}

#[test]
fn an_idle_tunnel_has_no_time_of_its_own() {
    let mut talk = tunnel(
        "client_header_timeout 1s; client_body_timeout 1s; send_timeout 1s; keepalive_timeout 1s;",
    );
    talk.pass(1_000_000);
    assert_eq!(talk.send("still"), "still");
    talk.pass(1_000_000);
    assert!(talk.is_open());
    wake();
    assert_eq!(talk.turn(), "");
}

#[test]
fn a_client_that_takes_nothing_of_a_tunnel_is_given_up() {
    set_room(u64::MAX);
    let mut talk = TestConnection::deaf("send_timeout 3s;", 1000);
    talk.send(upgrade("/pass/tunnel"));
    talk.send("x".repeat(10_000));
    talk.pass(2999);
    assert!(!talk.is_closed());
    talk.pass(1);
    assert!(talk.is_closed());
    assert!(!log_entries()[0].completed);
}

#[test]
fn a_tunnel_outlives_the_end_of_keeping_connections() {
    let mut talk = tunnel("");
    talk.world.command(Command::Quit);
    assert_eq!(talk.send("still"), "still");
    talk.world.spurious(0, Readiness::default());
    assert_eq!(talk.turn(), "");
    assert!(talk.is_open());
}
