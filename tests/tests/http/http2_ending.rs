//! HTTP/2 connections over a reload and at the end of the server.
//!
//! Sources: RFC 9113 section 6.8; nginx's documentation of `worker_shutdown_timeout`.

use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::h2::*;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Builder, H2Client, Server, Signal};

const LARGE_BYTES: usize = 300_000;

fn site_with(main: &str, directives: &str) -> Builder {
    let http = format!(
        "http2 on; keepalive_requests 1000000; log_format fields '$uri $status';
         access_log %%DIR%%/fields.log fields;
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location /ok {{ return 200 ok; }} }}
         {directives}"
    );
    Server::http_with(main, &http).bytes("html/large", &[b'x'; LARGE_BYTES])
}

fn site(directives: &str) -> Builder {
    site_with("worker_processes 1;", directives)
}

#[test]
fn reload_keeps_connections_and_serves_them_anew() {
    let server = site("").start();
    let mut client = H2Client::narrow(server.port(), 100);
    let before = client.get("/large");
    assert_eq!(client.fetch("/ok").text(), "ok");
    server.rewrite_conf(|text| text.replace("return 200 ok", "return 200 new"));
    server.signal(Signal::HUP);
    client.until_text("/ok", "new");
    client
        .window(before, MAX_WINDOW - 100)
        .window(0, MAX_WINDOW - 70_000);
    assert_eq!(client.reply(before).body.len(), LARGE_BYTES, "begun before");
    assert!(client.goaways.is_empty());
}

#[test]
fn reload_that_drains_ends_connections_after_what_is_under_way() {
    let server = site_with("worker_processes 1; reload_connections drain;", "").start();
    let mut busy = H2Client::narrow(server.port(), 100);
    let before = busy.get("/large");
    busy.settle();
    let mut idle = H2Client::connect(server.port());
    idle.fetch("/ok");
    server.signal(Signal::HUP);
    assert_eq!(idle.goaway(), (1, NO_ERROR));
    idle.until_closed();
    assert_eq!(busy.goaway(), (before, NO_ERROR));
    busy.get("/ok");
    busy.window(before, MAX_WINDOW - 100)
        .window(0, MAX_WINDOW - 70_000);
    assert_eq!(busy.reply(before).body.len(), LARGE_BYTES);
    busy.until_closed();
    assert_eq!(busy.replies.len(), 1, "nothing after the last stream");
}

#[test]
fn port_that_goes_takes_leave() {
    let server = site("server { listen 127.0.0.1:%%PORT2%%; return 200 second; }").start();
    let port = server.port_number(2);
    let mut idle = H2Client::connect(port);
    idle.fetch("/");
    let mut busy = H2Client::narrow(port, 3);
    let before = busy.get("/");
    busy.until("it is blocked", |c| c.so_far(before).body.len() == 3);
    server.rewrite_conf(|text| {
        let second = text.rfind("server { listen").expect("two servers");
        let end = second + text[second..].find('}').expect("its end");
        text[..second].to_owned() + &text[end + 1..]
    });
    server.signal(Signal::HUP);
    idle.until_closed();
    assert_eq!(idle.goaways, [(1, NO_ERROR)]);
    assert_eq!(busy.goaway(), (before, NO_ERROR));
    busy.window(before, 3);
    assert_eq!(busy.reply(before).text(), "second");
    busy.until_closed();
}

/// RFC 9113 section 6.8: the end is announced, then its last stream.
#[test]
fn stop_announces_the_end_and_finishes_what_is_under_way() {
    let server = site("").start();
    let mut busy = H2Client::narrow(server.port(), 100);
    let before = busy.get("/large");
    busy.settle();
    let mut idle = H2Client::connect(server.port());
    idle.fetch("/ok");
    server.signal(Signal::QUIT);
    assert_eq!(idle.goaway(), (1, NO_ERROR));
    idle.until_closed();
    assert_eq!(busy.goaway(), (MAX_WINDOW, NO_ERROR));
    // This one was under way when the end was announced.
    let late = busy.get("/ok");
    assert_eq!(busy.reply(late).text(), "ok");
    let ping = busy
        .pings
        .iter()
        .find(|(ack, _)| !ack)
        .map(|(_, data)| data.clone());
    busy.frame(PING, ACK, 0, &ping.expect("a PING comes with it"));
    busy.until("the last stream is told", |c| c.goaways.len() == 2);
    assert_eq!(busy.goaways[1], (late, NO_ERROR));
    busy.window(before, MAX_WINDOW - 100)
        .window(0, MAX_WINDOW - 70_000);
    assert_eq!(busy.reply(before).body.len(), LARGE_BYTES);
    busy.until_closed();
    server.stop();
}

/// If a client does not react to the first GOAWAY, the server sends the final one after a while.
#[test]
fn stop_does_not_wait_for_ever() {
    let server = site("").start();
    let mut client = H2Client::narrow(server.port(), 100);
    let before = client.get("/large");
    client.settle();
    server.signal(Signal::QUIT);
    client.goaway();
    let start = Instant::now();
    while client.goaways.len() < 2 && start.elapsed() < DEADLINE {
        client.settle();
        client.holds_within(Duration::from_millis(50), |c| c.goaways.len() == 2);
    }
    assert_eq!(client.goaways.get(1), Some(&(before, NO_ERROR)));
    client.cancel(before);
    client.until_closed();
    server.stop();
}

#[test]
fn worker_shutdown_timeout_bounds_what_remains() {
    let server = site_with("worker_processes 1; worker_shutdown_timeout 300ms;", "").start();
    let mut client = H2Client::narrow(server.port(), 100);
    client.get("/large");
    client.settle();
    server.signal(Signal::QUIT);
    let waits = Waits::begin();
    client.until_closed();
    waits.assert_below(waits.elapsed(), Duration::from_secs(4));
    server.stop();
}

#[test]
fn worker_shutdown_timeout_bounds_an_old_configuration() {
    let server = site_with("worker_processes 1; worker_shutdown_timeout 300ms;", "").start();
    let mut old = H2Client::narrow(server.port(), 100);
    old.get("/large");
    old.settle();
    server.signal(Signal::HUP);
    old.until_closed();
    server.wait_for_text("fields.log", "/large 200");
    assert_eq!(H2Client::connect(server.port()).fetch("/ok").text(), "ok");
}
