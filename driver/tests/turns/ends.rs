//! Ends of HTTP/1 connections: clients that leave, timeouts, and the end of the server.

use driver::worker::conn::ENDED_MS;
use driver::worker::readiness::{Readiness, SocketFlags};
use sim::Command;

use super::site::{TestConnection, generation, get, log_entries, logged, statuses};

#[test]
fn a_client_that_leaves_during_a_wait_is_closed_and_logged_as_499() {
    let mut talk = TestConnection::new("");
    assert_eq!(talk.send(get("/wait/5000")), "");
    talk.end();
    assert!(talk.is_closed());
    assert_eq!(logged(), [499]);
}

#[test]
fn a_client_that_leaves_within_an_awaited_body_sent_a_bad_request() {
    let mut talk = TestConnection::new("");
    talk.send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    talk.end();
    assert!(talk.is_closed());
    assert_eq!(logged(), [400]);
}

#[test]
fn a_client_that_ends_its_side_after_a_request_gets_the_response() {
    let mut talk = TestConnection::new("");
    talk.push(get("/text"));
    assert_eq!(statuses(&talk.end()), ["200"]);
    assert!(talk.is_closed());
    assert_eq!(logged(), [200]);
    let mut body = TestConnection::new("");
    body.push("POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    assert_eq!(statuses(&body.end()), ["200"], "its body was not wanted");
    assert!(body.is_closed());
    let mut late = TestConnection::new("");
    late.send("POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    assert_eq!(late.end(), "");
    assert!(late.is_closed());
    assert_eq!(logged(), [200], "one request, if not all of its body");
}

#[test]
fn a_client_that_ends_its_side_during_a_response_gets_all_of_it() {
    let mut talk = TestConnection::deaf("", 1000);
    talk.send(get("/pieces/100/1000"));
    talk.end();
    let text = talk.listen();
    assert!(text.len() > 98_000 && talk.is_closed());
    let log_entries = log_entries();
    assert!(log_entries[0].completed && log_entries[0].bytes_sent > 100_000);
}

#[test]
fn a_client_that_leaves_within_a_head_is_logged_and_a_silent_one_is_not() {
    let mut talk = TestConnection::new("");
    talk.send("GET / HT");
    talk.end();
    assert!(talk.is_closed());
    assert_eq!(logged(), [400]);
    let mut silent = TestConnection::new("");
    silent.end();
    assert!(silent.is_closed());
    let mut idle = TestConnection::new("");
    idle.send(get("/text"));
    idle.end();
    assert!(idle.is_closed());
    assert_eq!(logged(), [200]);
    let mut blank = TestConnection::new("");
    blank.send("\r\n");
    blank.end();
    assert!(blank.is_closed());
    assert_eq!(logged(), [400], "as in nginx, with it a head begins");
}

#[test]
fn a_blank_line_before_the_first_request_is_no_request() {
    let mut talk = TestConnection::new("keepalive_timeout 0;");
    assert_eq!(talk.send("\r\n"), "");
    assert!(talk.is_open());
    assert_eq!(statuses(&talk.send(get("/text"))), ["200"]);
    assert!(!talk.is_open());
}

/// The error was decided before the location was applied.
#[test]
fn a_location_without_keepalive_ends_a_connection_even_after_an_error() {
    let mut talk = TestConnection::new("location /inside { internal; keepalive_timeout 0; }");
    assert_eq!(statuses(&talk.send(get("/inside"))), ["404"]);
    assert!(!talk.is_open());
    // A request on its way must not be answered with a reset, which could destroy the response.
    assert!(!talk.is_closed());
    assert_eq!(talk.send(get("/next")), "");
    talk.pass(ENDED_MS);
    assert!(talk.is_closed());
    assert_eq!(logged(), [404]);
}

#[test]
fn a_body_that_breaks_ends_the_connection_behind_what_was_queued() {
    for room in [1 << 20, 100] {
        let mut talk = TestConnection::deaf("", room);
        talk.push(get("/a") + &get("/broken/1000") + &get("/after"));
        talk.turn();
        assert_eq!(talk.is_open(), room == 100, "what is queued leaves first");
        talk.listen();
        assert!(!talk.is_open());
        let sent = talk.wire(|wire| wire.sent().to_vec());
        let sent = String::from_utf8_lossy(&sent);
        assert_eq!(statuses(&sent), ["200", "200"]);
        assert!(sent.contains(&"x".repeat(1000)) && !sent.contains(&"x".repeat(1001)));
        let log_entries = log_entries();
        let ends: Vec<_> = log_entries
            .iter()
            .map(|entry| (&*entry.uri, entry.completed))
            .collect();
        assert_eq!(ends, [("/a", true), ("/broken/1000", false)]);
        let bytes: u64 = log_entries.iter().map(|entry| entry.bytes_sent).sum();
        assert_eq!(bytes, sent.len() as u64);
        assert!(talk.error_log().contains("the body is broken"));
    }
}

#[test]
fn send_timeout_runs_from_the_last_byte_that_the_client_took() {
    for (server, target) in [
        ("send_timeout 8s;", "/pieces/100/1000"),
        ("send_timeout 8s; limit_rate 100m;", "/pieces/100/1000"),
        ("send_timeout 8s;", "/late/1/100000"),
    ] {
        let mut talk = TestConnection::deaf(server, 1000);
        talk.send(get(target));
        talk.pass(1);
        // Spurious turns do not extend the timeout.
        for _ in 0..3 {
            talk.world.advance(2600);
            talk.world.spurious(
                0,
                Readiness::of_socket(SocketFlags {
                    writable: true,
                    ..SocketFlags::READABLE
                }),
            );
            assert!(talk.is_open(), "{server}");
        }
        talk.pass(200);
        assert!(talk.is_closed(), "{server} {target}");
        assert!(!log_entries()[0].completed);
    }
}

/// Waiting for the rate limit does not count towards the timeout.
#[test]
fn a_piece_that_its_rate_held_back_has_all_of_send_timeout() {
    let server = "send_timeout 2s; limit_rate 10;";
    let first = TestConnection::new(server).send(get("/pieces/1/1000"));
    let mut talk = TestConnection::deaf(server, first.len());
    talk.send(get("/pieces/1/1000"));
    // The head counts as sent bytes. So the next piece is delayed, and then finds no room.
    while !talk.wire(|wire| wire.is_blocked()) {
        let due_ms = talk.world.next_deadline().expect("a piece is held back");
        let wait_ms = due_ms.saturating_sub(talk.world.now_ms());
        talk.pass(wait_ms);
    }
    assert!(talk.world.now_ms() > 2000 && talk.is_open());
    talk.pass(1999);
    assert!(talk.is_open());
    talk.pass(1);
    assert!(talk.is_closed());
}

#[test]
fn a_piece_that_was_late_has_all_of_send_timeout() {
    for server in ["send_timeout 2s;", "send_timeout 2s; limit_rate 100m;"] {
        let mut talk = TestConnection::deaf(server, 300);
        let head = talk.send(get("/late/5000/2000"));
        assert_eq!(statuses(&head), ["200"]);
        talk.pass(5000);
        assert!(talk.is_open());
        talk.pass(1999);
        assert!(talk.is_open(), "{server}");
        talk.pass(1);
        assert!(talk.is_closed(), "{server}");
    }
}

#[test]
fn the_end_of_the_server_closes_idle_connections() {
    let mut talk = TestConnection::new("lingering_close off;");
    talk.send(get("/text"));
    assert!(talk.is_open());
    talk.world.command(Command::Quit);
    talk.turn();
    assert!(!talk.is_open());
}

/// The response is completed although its head announced a kept connection.
#[test]
fn the_end_of_the_server_waits_for_a_response() {
    let mut talk = TestConnection::new("keepalive_min_timeout 3s;");
    let head = talk.send(get("/late/500/5"));
    assert!(head.contains("Connection: keep-alive"));
    talk.world.command(Command::Quit);
    talk.turn();
    assert!(talk.is_open());
    assert!(talk.pass(500).contains("yyyyy"));
    assert!(log_entries()[0].completed && !talk.is_open());
}

/// The client may send another request before it sees the end. A close would answer that with a reset, which could
/// destroy the unread response.
#[test]
fn the_last_response_at_the_end_of_the_server_is_not_followed_by_a_reset() {
    let mut talk = TestConnection::deaf("", 1000);
    talk.send(get("/pieces/1/2000"));
    talk.world.command(Command::Quit);
    talk.turn();
    talk.listen();
    assert!(log_entries()[0].completed && !talk.is_open());
    assert!(
        !talk.is_closed(),
        "our side is ended, and what comes is read past"
    );
    assert_eq!(talk.send(get("/next")), "");
    assert!(!talk.is_closed());
    talk.pass(ENDED_MS);
    assert!(talk.is_closed() && log_entries().is_empty());
}

#[test]
fn keepalive_min_timeout_spares_an_idle_connection_at_the_end_of_the_server() {
    for server in ["", "keepalive_min_timeout 3s;"] {
        let mut talk = TestConnection::deaf(server, 1000);
        // At the end of the server, the complete response is queued but not written.
        talk.send(get("/pieces/1/2000"));
        talk.world.command(Command::Quit);
        talk.turn();
        assert!(talk.is_open());
        talk.listen();
        assert!(log_entries()[0].completed);
        if !server.is_empty() {
            talk.pass(2999);
            assert!(talk.is_open());
            talk.pass(1);
        }
        assert!(!talk.is_open(), "{server}");
    }
    let mut spared = TestConnection::new("keepalive_min_timeout 3s;");
    spared.send(get("/a"));
    spared.pass(1000);
    spared.world.command(Command::Quit);
    spared.pass(1999);
    assert!(spared.is_open());
    assert!(spared.send(get("/b")).contains("Connection: close"));
    assert!(!spared.is_open());
}

#[test]
fn without_an_end_of_the_server_an_idle_connection_has_keepalive_timeout() {
    let mut talk = TestConnection::new("keepalive_timeout 5s; keepalive_min_timeout 1s;");
    talk.send(get("/text"));
    talk.pass(4999);
    assert!(talk.is_open());
    talk.pass(1);
    assert!(!talk.is_open());
}

#[test]
fn a_request_that_was_not_read_yet_is_served_at_the_end_of_the_server() {
    let mut talk = TestConnection::new("");
    talk.send(get("/first"));
    talk.push(get("/second"));
    talk.world.command(Command::Quit);
    // The command arrives before the event for the request.
    talk.world.poll(0);
    let got = talk.turn();
    assert_eq!(statuses(&got), ["200"]);
    assert!(got.contains("Connection: close") && !talk.is_open());
}

#[test]
fn a_connection_whose_port_is_gone_ends_with_its_response() {
    let mut talk = TestConnection::deaf("keepalive_min_timeout 3s;", 1000);
    talk.send(get("/pieces/1/2000"));
    let (generation, _) = generation("listen 127.0.0.1:8001;", 2);
    talk.world.command(Command::Configure {
        generation,
        keep: true,
        timeout_ms: None,
    });
    talk.turn();
    assert!(talk.is_open());
    talk.listen();
    assert!(log_entries()[0].completed && !talk.is_open());
}

#[test]
fn a_file_that_became_shorter_ends_the_connection_and_the_log_says_why() {
    let truncated = "the file was truncated while it was sent";
    let mut talk = TestConnection::new("");
    talk.send(get("/file/90000/100000"));
    assert!(talk.is_closed());
    assert!(talk.error_log().contains(truncated), "{}", talk.error_log());
    assert!(!log_entries()[0].completed);
    let mut whole = TestConnection::new("");
    assert!(whole.send(get("/file/100000/100000")).len() > 100_000);
    let mut reset = TestConnection::deaf("", 1000);
    reset.send(get("/file/100000/100000"));
    reset.wire(|wire| wire.reset());
    reset.turn();
    assert!(reset.is_closed());
    assert!(
        !reset.error_log().contains(truncated),
        "{}",
        reset.error_log()
    );
}
