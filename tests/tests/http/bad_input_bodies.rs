//! Request bodies that stop, drip or never end.
//!
//! Sources: nginx documentation, `client_body_timeout`; `client_body_deadline` and `client_body_min_rate` of docs/directives.md.

use std::time::{Duration, Instant};

use firstbyte_tests::Server;
use firstbyte_tests::busy::Waits;
use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::h2::H2Client;

/// A server that takes bodies, and logs status and length of each request.
fn server(limits: &str) -> Server {
    Server::http(&format!(
        "log_format brief '$status $request_length $content_length';
         access_log %%DIR%%/access.log brief;
         server {{
             listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html; dav_methods PUT;
             {limits}
         }}"
    ))
    .file("html/old", "old")
    .prepare(|dir| set_mode(&dir.join("html"), 0o777))
    .start()
}

fn head(length: usize) -> String {
    request("PUT", "/old", &[&format!("Content-Length: {length}")])
}

/// Sends a byte every 20 ms until the connection is closed, and returns the time it took.
fn drip(server: &Server) -> Duration {
    let start = Instant::now();
    let mut client = server.client();
    client.send(head(100_000));
    while !client.closed_within(Duration::from_millis(20)) {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "it goes on for ever"
        );
        client.send("x");
    }
    start.elapsed()
}

fn is_kept(server: &Server) {
    assert_eq!(server.get("/old").text(), "old", "the file is as it was");
}

#[test]
fn a_body_that_stops_ends_at_client_body_timeout() {
    let server = server("client_body_timeout 300ms;");
    let start = Instant::now();
    let mut client = server.client();
    client.send(head(10)).send("abc");
    assert!(client.closed(), "without a byte of answer, as nginx");
    assert!(
        start.elapsed() >= Duration::from_millis(280),
        "{:?}",
        start.elapsed()
    );
    server.wait_for_text("access.log", "408 ");
    let error = server.error_log();
    assert!(
        error.is_empty() || error.contains("client timed out"),
        "{error}"
    );
    is_kept(&server);
}

#[test]
fn each_piece_of_a_body_has_the_whole_client_body_timeout() {
    let server = server("client_body_timeout 400ms;");
    let waits = Waits::begin();
    let mut client = server.client();
    client.send(head(12));
    for _ in 0..12 {
        if client.closed_within(Duration::from_millis(60)) {
            let late = waits.explain(Duration::from_millis(300), "a piece was late");
            assert!(late, "it has come in time");
            return;
        }
        client.send("x");
    }
    assert_eq!(client.response().status, 204);
}

#[test]
fn a_stream_whose_body_stops_is_reset_and_the_connection_stays() {
    let server = server("client_body_timeout 300ms;");
    let mut client = H2Client::connect(server.port());
    let stream = client.request("PUT", "/old", &[], false);
    client.data(stream, b"abc", false);
    client.until("the stream is reset", |client| {
        client.so_far(stream).reset.is_some()
    });
    server.wait_for_text("access.log", "408 ");
    assert_eq!(client.fetch("/old").text(), "old");
}

#[test]
fn a_dripping_body_ends_at_client_body_deadline() {
    let server = server("client_body_deadline 500ms;");
    let took = drip(&server);
    assert!(took >= Duration::from_millis(480), "{took:?}");
    server.wait_for_text("access.log", "408 ");
    is_kept(&server);
    let mut client = server.client();
    client.send(head(4)).send("in t");
    assert_eq!(client.response().status, 204, "a body in time is taken");
}

#[test]
fn a_dripping_body_ends_when_it_falls_behind_its_rate() {
    let server = server("client_body_min_rate 1k grace=300ms;");
    let took = drip(&server);
    assert!(took >= Duration::from_millis(280), "{took:?}");
    server.wait_for_text("access.log", "408 ");
    is_kept(&server);
}

#[test]
fn a_body_above_its_rate_is_taken() {
    let server = server("client_body_min_rate 1k grace=300ms;");
    let start = Instant::now();
    let mut client = server.client();
    // From here on it is ahead of its rate, by more with every piece.
    client.send(head(21_000)).send([b'x'; 1000]);
    for _ in 0..20 {
        assert!(
            !client.closed_within(Duration::from_millis(30)),
            "it is fast enough"
        );
        client.send([b'x'; 1000]);
    }
    assert_eq!(client.response().status, 204);
    assert!(
        start.elapsed() > Duration::from_millis(300),
        "longer than the grace"
    );
}

#[test]
fn a_client_that_leaves_in_a_body_is_logged_as_nginx_does() {
    let server = server("");
    let mut client = server.client();
    client.send(head(10)).send("abc").finish_sending();
    assert!(client.closed());
    server.wait_for_text("access.log", "400 ");
    is_kept(&server);
}

#[test]
fn lengths_of_requests_count_their_framing() {
    let server = server("");
    let mut client = server.client();
    let chunked = request("PUT", "/new", &["Transfer-Encoding: chunked"]);
    client.send(&chunked).send("5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(client.response().status, 201);
    let length = chunked.len() + "5\r\nhello\r\n0\r\n\r\n".len();
    server.wait_for_text("access.log", &format!("201 {length} 5\n"));
}
