//! Requests that are too large, no requests at all, and clients that stall.
//!
//! Sources: nginx's documentation of `large_client_header_buffers`, `client_header_timeout` and
//! `client_body_timeout`, and its answers.

use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::cases::{Case, Since, check};
use firstbyte_tests::{Client, Server};

fn server() -> Server {
    Server::http("server { listen 127.0.0.1:%%PORT%%; return 200 ok; }").start()
}

#[test]
fn what_is_too_large_is_414_or_400() {
    let long = "a".repeat(16 * 1024);
    let rest = "HTTP/1.1\r\nHost: localhost";
    let many: String = (0..1100).map(|n| format!("X-{n}: {n}\r\n")).collect();
    let few: String = (0..990).map(|n| format!("X-{n}: {n}\r\n")).collect();
    let server = server();
    check(
        &server,
        &[
            Case::new(
                "16 KB target",
                format!("GET /{long} {rest}\r\n\r\n"),
                &[414],
            ),
            Case::new(
                "16 KB value",
                format!("GET / {rest}\r\nX: {long}\r\n\r\n"),
                &[400],
            ),
            Case::new(
                "16 KB name",
                format!("GET / {rest}\r\nX{long}: 1\r\n\r\n"),
                &[400],
            ),
            Case::new(
                "40 KB in all",
                format!(
                    "GET / {rest}\r\n{}\r\n",
                    format!("X: {}\r\n", &long[..4000]).repeat(10)
                ),
                &[400],
            ),
            Case::new(
                "1100 headers",
                format!("GET / {rest}\r\n{many}\r\n"),
                &[400],
            )
            .since(Since::Nginx(31)),
        ],
    );
    let answer = server
        .client()
        .send(format!("GET / {rest}\r\n{few}\r\n"))
        .response();
    assert_eq!(answer.status, 200, "fewer than max_headers are fine");
    let answer = server
        .client()
        .get_with("/", &[&format!("X: {}", "a".repeat(8000))]);
    assert_eq!(answer.status, 200, "one buffer of 8 KB is enough for this");
    let answer = server
        .client()
        .send(format!("GET / {rest}\r\nX: {long}\r\n\r\n"))
        .response();
    assert!(
        answer.text().contains("Request Header Or Cookie Too Large"),
        "{}",
        answer.text()
    );
}

#[test]
fn header_limits_follow_the_configuration() {
    let server = Server::http(
        "large_client_header_buffers 2 2k;
         server { listen 127.0.0.1:%%PORT%%; return 200 ok; }",
    )
    .start();
    let rest = "HTTP/1.1\r\nHost: localhost";
    let value = |n: usize| format!("GET / {rest}\r\nX: {}\r\n\r\n", "a".repeat(n));
    assert_eq!(server.client().send(value(1900)).response().status, 200);
    assert_eq!(server.client().send(value(2100)).response().status, 400);
    let target = format!("GET /{} {rest}\r\n\r\n", "a".repeat(2100));
    assert_eq!(server.client().send(target).response().status, 414);
}

#[test]
fn garbage_and_tls_on_a_plain_port_are_400() {
    let mut hello = vec![
        0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03,
    ];
    hello.extend((0..506_u32).map(|n| (n % 251) as u8));
    let noise: Vec<u8> = (0..65 * 1024_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80)
        .collect();
    check(
        &server(),
        &[
            Case::new("ClientHello", hello, &[400]),
            Case::new("65 KB of noise", noise, &[400]),
            Case::new("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[400]),
        ],
    );
}

/// A server with timeouts of a fraction of a second.
fn impatient() -> Server {
    Server::http(
        "client_header_timeout 300ms; client_body_timeout 300ms; lingering_timeout 200ms;
         server { listen 127.0.0.1:%%PORT%%; return 200 ok; }",
    )
    .start()
}

#[test]
fn silence_before_a_head_closes_at_client_header_timeout() {
    let server = impatient();
    let start = Instant::now();
    assert!(server.client().closed(), "without a byte of answer");
    assert!(
        start.elapsed() >= Duration::from_millis(250),
        "not before the timeout: {:?}",
        start.elapsed()
    );
}

#[test]
fn a_dripping_head_is_bounded_as_a_whole() {
    let server = impatient();
    let waits = Waits::begin();
    let mut client = server.client();
    let start = Instant::now();
    let mut closed = false;
    for byte in "GET / HTTP/1.1\r\nHost: localhost\r\nX: abcdefghijklmnopqrstuvwxyz".bytes() {
        client.send([byte]);
        closed = client.closed_within(Duration::from_millis(25));
        if closed {
            break;
        }
    }
    assert!(closed, "bytes that drip do not extend the timeout");
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(250), "{took:?}");
    waits.assert_below(took, Duration::from_millis(1200));
}

/// Sends a byte at a time until the connection closes; returns how long that took since `start`.
fn drip(client: &mut Client, start: Instant) -> Duration {
    for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
        .iter()
        .chain([&b'x'; 100])
    {
        client.send([*byte]);
        if client.closed_within(Duration::from_millis(50)) {
            break;
        }
    }
    start.elapsed()
}

#[test]
fn the_first_head_has_its_time_from_the_accept_on_and_later_ones_from_their_first_byte() {
    let server = Server::http(
        "client_header_timeout 1s; keepalive_timeout 20s;
         server { listen 127.0.0.1:%%PORT%%; return 200 ok; }",
    )
    .start();
    let waits = Waits::begin();
    let start = Instant::now();
    let mut client = server.client();
    assert!(
        !client.closed_within(Duration::from_millis(700))
            || waits.explain(
                Duration::from_millis(200),
                "a look at a connection was late"
            )
    );
    let took = drip(&mut client, start);
    assert!(took >= Duration::from_millis(950), "first: {took:?}");
    waits.assert_below(took, Duration::from_millis(1600));
    let mut client = server.client();
    assert_eq!(client.get("/").status, 200);
    assert!(!client.closed_within(Duration::from_millis(700)));
    let waits = Waits::begin();
    let took = drip(&mut client, Instant::now());
    assert!(
        took >= Duration::from_millis(950),
        "after another request: {took:?}"
    );
    waits.assert_below(took, Duration::from_millis(1600));
}

#[test]
fn a_gap_in_a_body_closes_the_connection() {
    let server = impatient();
    let mut client = server.client();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    assert_eq!(
        client.response().status,
        200,
        "the answer does not wait for the body"
    );
    let waits = Waits::begin();
    assert!(client.closed(), "but the connection does not wait for ever");
    waits.assert_below(waits.elapsed(), Duration::from_secs(4));
}
