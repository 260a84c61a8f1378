//! Lifetime of a connection, and its requests: persistence, pipelining, HTTP/1.0,
//! `Expect`, lingering close, unwanted request bodies.
//!
//! Sources: RFC 9112 section 9, RFC 9110 section 10.1.1, nginx's documentation of
//! ngx_http_core_module.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::client::request;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Builder, Server};

fn site(directives: &str) -> Builder {
    let http = format!(
        "{directives}
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location /return {{ return 200 \"$connection_requests\"; }}
             location /204 {{ return 204; }}
             location /limited {{ client_max_body_size 10; return 200 ok; }} }}"
    );
    Server::http(&http)
        .file("html/t.txt", "text")
        .file("html/index.html", "welcome")
}

#[test]
fn many_requests_share_a_connection() {
    let server = site("").start();
    let mut client = server.client();
    for n in 1..=50 {
        let answer = client.get("/return");
        assert_eq!(
            (answer.header("Connection"), answer.text()),
            (Some("keep-alive"), n.to_string())
        );
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = site("").start();
    let mut client = server.client();
    let one = request("GET", "/return", &[]);
    let mixed = [
        one.as_str(),
        &request("HEAD", "/t.txt", &[]),
        &request("GET", "/t.txt", &[]),
        &request("GET", "/none", &[]),
    ]
    .concat();
    client.send(&mixed);
    assert_eq!(client.response().text(), "1");
    assert_eq!(
        client.response_to_head().header("Content-Length"),
        Some("4")
    );
    assert_eq!(client.response().text(), "text");
    assert_eq!(client.response().status, 404);
    client.send(one.repeat(500));
    for n in 5..505 {
        assert_eq!(client.response().text(), n.to_string());
    }
}

#[test]
fn pipelined_requests_may_be_cut_anywhere() {
    let server = site("").start();
    let two = request("GET", "/t.txt", &[])
        + &request("POST", "/return", &["Content-Length: 3"])
        + "abc"
        + &request("GET", "/t.txt", &[]);
    for cut in 1..two.len() {
        let mut client = server.client();
        client.send(&two[..cut]).send(&two[cut..]);
        let texts = [
            client.response().text(),
            client.response().text(),
            client.response().text(),
        ];
        assert_eq!(texts, ["text", "2", "text"], "cut at {cut}");
    }
}

#[test]
fn keepalive_requests_ends_the_connection() {
    let server = site("keepalive_requests 3;").start();
    let mut client = server.client();
    for n in 1..=3 {
        let answer = client.get("/t.txt");
        let wanted = if n == 3 { "close" } else { "keep-alive" };
        assert_eq!(answer.header("Connection"), Some(wanted), "request {n}");
    }
    assert!(client.closed());
}

#[test]
fn keepalive_timeout_ends_an_idle_connection_and_is_announced() {
    let server = site("keepalive_timeout 400ms 7s;").start();
    let mut client = server.client();
    let answer = client.get("/t.txt");
    assert_eq!(answer.header("Keep-Alive"), Some("timeout=7"));
    let (start, waits) = (Instant::now(), Waits::begin());
    assert!(client.closed(), "an idle connection ends");
    let took = start.elapsed();
    assert!(took > Duration::from_millis(300), "{took:?}");
    waits.assert_below(took, Duration::from_secs(3));
    let server = site("keepalive_timeout 0;").start();
    let mut client = server.client();
    assert!(client.get("/t.txt").announces_close() && client.closed());
}

#[test]
fn keepalive_time_bounds_the_whole_connection() {
    let server = site("keepalive_time 150ms; keepalive_requests 1000000;").start();
    let mut client = server.client();
    let start = Instant::now();
    while !client.get("/t.txt").announces_close() {
        assert!(start.elapsed() < DEADLINE, "it never ends");
    }
    assert!(client.closed() && start.elapsed() > Duration::from_millis(100));
}

#[test]
fn connection_close_is_honoured() {
    let server = site("").start();
    for line in ["Connection: close", "connection: CLOSE"] {
        let mut client = server.client();
        let answer = client.get_with("/t.txt", &[line]);
        assert!(answer.announces_close(), "{line}");
        assert!(client.closed(), "{line}");
    }
}

#[test]
fn nothing_is_answered_after_connection_close() {
    let server = site("").start();
    let mut client = server.client();
    client.send(request("GET", "/t.txt", &["Connection: close"]) + &request("GET", "/t.txt", &[]));
    assert_eq!(client.response().text(), "text");
    assert!(client.closed());
}

#[test]
fn http_10_closes_unless_asked_to_stay() {
    let server = site("").start();
    let mut client = server.client();
    let answer = client
        .send("GET /t.txt HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .response();
    assert!(answer.announces_close() && client.closed());
    let mut client = server.client();
    for _ in 0..2 {
        let answer = client
            .send("GET /t.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            .response();
        assert_eq!(
            (answer.status_line.as_str(), answer.header("Connection")),
            ("HTTP/1.1 200 OK", Some("keep-alive"))
        );
        assert_eq!(answer.text(), "text");
    }
}

#[test]
fn expect_100_continue_is_answered_where_the_body_is_wanted() {
    let server = site("").start();
    let lines = ["Expect: 100-continue", "Content-Length: 3"];
    let mut client = server.client();
    let first = client.send(request("POST", "/return", &lines)).response();
    // The body is only discarded here: the server may send 100 or respond at once.
    let last = if first.status == 100 {
        client.send("abc").response()
    } else {
        first
    };
    assert_eq!(last.status, 200);
    let mut client = server.client();
    let text = format!(
        "POST /return HTTP/1.0\r\n{}\r\n{}\r\n\r\n",
        lines[0], lines[1]
    );
    assert_eq!(
        client.send(text).response().status,
        200,
        "HTTP/1.0 knows no 100"
    );
}

#[test]
fn bodies_nobody_wants_are_read_past() {
    let server = site("").start();
    let mut client = server.client();
    let body = "b".repeat(100_000);
    let length = format!("Content-Length: {}", body.len());
    for _ in 0..3 {
        client.send(request("POST", "/return", &[&length]) + &body);
        assert_eq!(client.response().status, 200);
        client.send(request("GET", "/t.txt", &["Content-Length: 5"]) + "hello");
        assert_eq!(client.response().text(), "text");
    }
}

#[test]
fn a_body_over_client_max_body_size_is_413() {
    let server = site("").start();
    let mut client = server.client();
    let answer = client
        .send(request("POST", "/limited", &["Content-Length: 11"]) + "hello world")
        .response();
    assert_eq!(answer.status_line, "HTTP/1.1 413 Request Entity Too Large");
    assert!(answer.announces_close() && client.closed());
    server.wait_for_text(
        "error.log",
        "client intended to send too large body: 11 bytes",
    );
    let answer = server
        .client()
        .send(request("POST", "/limited", &["Content-Length: 10"]) + "0123456789")
        .response();
    assert_eq!(answer.status, 200, "the limit itself is allowed");
}

#[test]
fn lingering_close_lets_the_answer_arrive() {
    let server = site("lingering_timeout 500ms;").start();
    let mut client = server.client();
    let length = 5_000_000;
    client.send(request(
        "POST",
        "/limited",
        &[&format!("Content-Length: {length}")],
    ));
    // The client continues to send. A close without reading would reset the connection before the client reads 413.
    client.send(vec![b'x'; length]);
    assert_eq!(client.response().status, 413);
    assert!(client.closed());
}

#[test]
fn lingering_close_is_bounded_by_its_timeout() {
    let server = site("lingering_timeout 200ms; lingering_time 30s;").start();
    let mut client = server.client();
    client.send(request("POST", "/limited", &["Content-Length: 1000"]) + "some");
    assert_eq!(client.response().status, 413);
    let waits = Waits::begin();
    assert!(client.closed(), "a client that falls silent is let go");
    waits.assert_below(waits.elapsed(), Duration::from_secs(3));
}

#[test]
fn answers_without_a_body_keep_the_connection_in_step() {
    let server = site("").start();
    let mut client = server.client();
    let answer = client.get("/204");
    assert_eq!(
        (
            answer.status,
            answer.header("Content-Length"),
            answer.body.len()
        ),
        (204, None, 0)
    );
    let etag = client
        .get("/t.txt")
        .header("ETag")
        .map(str::to_owned)
        .expect("files have one");
    assert_eq!(
        client
            .get_with("/t.txt", &[&format!("If-None-Match: {etag}")])
            .status,
        304
    );
    assert_eq!(client.head("/none").status, 404);
    assert_eq!(client.get("/t.txt").text(), "text");
}

#[test]
fn a_half_closed_client_still_gets_its_answer() {
    let server = site("").start();
    let mut client = server.client();
    client.send(request("GET", "/t.txt", &[])).finish_sending();
    assert_eq!(client.response().text(), "text");
    assert!(client.closed());
}

#[test]
fn a_client_that_goes_away_harms_nobody() {
    let server = site("").zeros("html/big", 4_000_000).start();
    for _ in 0..50 {
        let mut client = server.client();
        client.send(request("GET", "/big", &[]));
        drop(client);
        drop(server.client());
        let mut client = server.client();
        client.send("GET / HT");
    }
    assert_eq!(server.get("/t.txt").text(), "text");
}

/// A client that pipelines without end and reads as fast as it can must not keep the thread from others.
#[test]
fn an_endless_pipeline_leaves_others_their_turn() {
    let server = site("keepalive_requests 100000000;").start();
    let port = server.port();
    let over = Arc::new(AtomicBool::new(false));
    let threads = {
        let writer = TcpStream::connect(("127.0.0.1", port)).expect("the server accepts");
        let reader = writer.try_clone().expect("a socket can be shared");
        let (stop, ended) = (Arc::clone(&over), Arc::clone(&over));
        let requests = request("GET", "/t.txt", &[]).repeat(500);
        [
            thread::spawn(move || {
                let mut writer = writer;
                while !stop.load(Ordering::Relaxed) && writer.write_all(requests.as_bytes()).is_ok()
                {
                }
                let _ = writer.shutdown(std::net::Shutdown::Both);
            }),
            thread::spawn(move || {
                let (mut reader, mut bytes) = (reader, vec![0; 1 << 16]);
                while !ended.load(Ordering::Relaxed) && reader.read(&mut bytes).is_ok_and(|n| n > 0)
                {
                }
            }),
        ]
    };
    let mut client = server.client();
    let waits = Waits::begin();
    for _ in 0..10 {
        assert_eq!(client.get("/t.txt").text(), "text");
    }
    let took = waits.elapsed();
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("the flood ends");
    }
    waits.assert_below(took, Duration::from_secs(2));
}
