//! HTTP/2 on plain connections: responses, waits and ends of connections, log lines.
//!
//! Sources: RFC 9113; nginx's documentation of ngx_http_v2_module, `send_timeout`, `keepalive_timeout`, `limit_rate`.

use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::h2::*;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Builder, H2Client, Reply, Server, hpack, peer};

const LARGE_BYTES: usize = 300_000;

fn site(directives: &str) -> Builder {
    let http = format!(
        "http2 on; {directives}
         limit_req_zone $uri zone=one:1m rate=2r/s;
         limit_req_zone $uri zone=slow:1m rate=1r/m;
         log_format fields '$uri $status $http2 $server_protocol $bytes_sent $body_bytes_sent $request_length '
             '$request_time $request_completion';
         access_log %%DIR%%/fields.log fields;
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location /ok {{ return 200 ok; }}
             location /number {{ return 200 $connection_requests; }}
             location /delayed {{ limit_req zone=one burst=5; alias %%DIR%%/html/index.html; }}
             location /waits {{ limit_req zone=slow burst=5; alias %%DIR%%/html/index.html; }}
             location /limited {{ limit_rate 20k; alias %%DIR%%/html/large; }}
             location /gone {{ return 444; }} }}"
    );
    let large: Vec<u8> = (0..LARGE_BYTES).map(|n| b'a' + (n % 23) as u8).collect();
    Server::http_with("worker_processes 1;", &http)
        .file("html/index.html", "welcome")
        .bytes("html/large", &large)
}

/// The fields of the first line of the log that is about `path`.
#[track_caller]
fn logged(server: &Server, path: &str) -> Vec<String> {
    let text = server.wait_for_text("fields.log", &format!("{path} "));
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{path} ")));
    let fields = line.unwrap_or_default().split(' ');
    fields.map(str::to_owned).collect()
}

#[test]
fn files_and_errors_are_served() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let index = client.fetch("/");
    assert_eq!((index.status, index.text().as_str()), (200, "welcome"));
    assert_eq!(index.header("content-length"), Some("7"));
    assert!(index.header("date").is_some() && index.header("etag").is_some());
    assert!(index.header("connection").is_none());
    let large = client.fetch("/large");
    assert_eq!(large.body.len(), LARGE_BYTES);
    assert!(
        large
            .body
            .iter()
            .enumerate()
            .all(|(n, b)| *b == b'a' + (n % 23) as u8)
    );
    assert_eq!(client.fetch("/missing").status, 404);
    let stream = client.request("HEAD", "/large", &[], true);
    let head = client.reply(stream);
    assert_eq!((head.status, head.body.len(), head.reset), (200, 0, None));
    let stream = client.request("GET", "/large", &[("range", "bytes=5-9")], true);
    let part = client.reply(stream);
    assert_eq!((part.status, part.text().as_str()), (206, "fghij"));
    assert!(client.settings.contains(&(3, 128)), "{:?}", client.settings);
}

#[test]
fn both_protocols_share_a_port() {
    let server = site("").start();
    assert_eq!(server.get("/ok").status_line, "HTTP/1.1 200 OK");
    // The preface may come in pieces.
    let mut client = H2Client::silent(server.port());
    for byte in PREFACE {
        client.send([*byte]);
    }
    assert_eq!(client.fetch("/ok").text(), "ok");
}

#[test]
fn streams_are_served_at_the_same_time() {
    let server = site("").start();
    let mut client = H2Client::narrow(server.port(), MAX_WINDOW);
    let first = client.get("/large");
    client.until("the connection's window is used up", |c| {
        c.so_far(first).body.len() == 65_535
    });
    client.cancel(first);
    // None of these can begin before all of them are there.
    let streams: Vec<u32> = (0..4).map(|_| client.get("/large")).collect();
    client.settle();
    client.window(0, 65_535);
    client.until("the connection's window is used up again", |c| {
        let bodies = streams.iter().map(|stream| c.so_far(*stream).body.len());
        bodies.sum::<usize>() == 65_535
    });
    for stream in &streams {
        let had = client.so_far(*stream).body.len();
        assert!((8192..=24_576).contains(&had), "they take turns: {had}");
    }
    client.window(0, MAX_WINDOW - 2 * 65_535);
    for stream in streams {
        assert_eq!(client.reply(stream).body.len(), LARGE_BYTES);
    }
}

#[test]
fn urgent_streams_overtake() {
    let server = site("").start();
    let mut client = H2Client::narrow(server.port(), MAX_WINDOW);
    let first = client.request("GET", "/large", &[("priority", "u=5")], true);
    client.until("the connection's window is used up", |c| {
        c.so_far(first).body.len() == 65_535
    });
    let urgent = client.request("GET", "/large", &[("priority", "u=1")], true);
    client.settle();
    client.data_frames.clear();
    client.window(0, MAX_WINDOW - 65_535);
    client.reply(urgent);
    client.reply(first);
    let place = |stream| client.data_frames.iter().rposition(|(s, _)| *s == stream);
    // One frame of the first may have been made before the second came.
    let early = client.data_frames[..place(urgent).expect("it was sent")].iter();
    assert!(early.filter(|(s, _)| *s == first).count() <= 1);
    assert!(place(urgent) < place(first));
}

#[test]
fn small_windows_are_kept_to() {
    let server = site("").start();
    let mut client = H2Client::narrow(server.port(), 3);
    let stream = client.get("/");
    client.settle();
    assert_eq!(client.so_far(stream).text(), "wel");
    client.window(stream, 1).settle();
    assert_eq!(client.so_far(stream).text(), "welc");
    client.setting(INITIAL_WINDOW_SIZE, 0).settle();
    client.window(stream, 3).settle();
    assert_eq!(
        client.so_far(stream).text(),
        "welc",
        "the window was below 0"
    );
    client.window(stream, 3);
    assert_eq!(client.reply(stream).text(), "welcome");
}

#[test]
fn variables_and_logs_know_the_protocol() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let stream = client.request("POST", "/ok", &[("content-length", "4")], false);
    client.data(stream, b"body", true);
    assert_eq!(client.reply(stream).status, 200);
    let fields = logged(&server, "/ok");
    assert_eq!(fields[1..4], ["200", "h2c", "HTTP/2.0"]);
    let numbers: Vec<u64> = fields[4..7].iter().filter_map(|n| n.parse().ok()).collect();
    let (sent, body, request) = (numbers[0], numbers[1], numbers[2]);
    // A DATA frame of two bytes with its head, as in nginx.
    assert_eq!(body, 11);
    assert!(sent > body + 20, "{sent}");
    let block = hpack::write(
        &[
            &request_fields("POST", "/ok")[..],
            &[("content-length", "4")],
        ]
        .concat(),
    );
    assert!(
        (block.len() as u64..=block.len() as u64 + 4).contains(&request),
        "{request}"
    );
    assert_eq!(fields[8], "OK");
    server.get("/number");
    assert_eq!(logged(&server, "/number")[2], "");
}

#[test]
fn exchange_that_waits_holds_nobody_up() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let waits = Waits::begin();
    let start = Instant::now();
    client.fetch("/delayed");
    let late = client.get("/delayed");
    assert_eq!(client.fetch("/ok").text(), "ok");
    assert!(
        !client.so_far(late).ended || waits.explain(Duration::from_millis(300), "it was late"),
        "the other one came first"
    );
    assert_eq!(client.reply(late).text(), "welcome");
    assert!(start.elapsed() >= Duration::from_millis(400));
    let line = server.wait_for_text("fields.log", "/ok ");
    assert!(line.contains("/ok 200"));
}

#[test]
fn rate_is_limited_for_each_stream() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let start = Instant::now();
    let slow = client.get("/limited");
    assert_eq!(client.fetch("/large").body.len(), LARGE_BYTES);
    let had = client.so_far(slow).body.len();
    // The bytes exempt from the rate, and the rate for the elapsed time.
    let most = 40_000 + start.elapsed().as_millis() as usize * 20_480 / 1000;
    assert!(had < most, "{had} of {most}");
    client.until("twice what may leave at once has come", |c| {
        c.so_far(slow).body.len() >= 40_000
    });
    assert!(
        start.elapsed() >= Duration::from_millis(900),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn cancelled_streams_leave_the_others_alone() {
    let server = site("").start();
    let mut client = H2Client::narrow(server.port(), 10);
    // In the middle of its body; while it waits; before it is read; after its end.
    let blocked = client.get("/large");
    client.fetch("/waits");
    let waiting = client.get("/waits");
    client.settle();
    client.cancel(blocked).cancel(waiting);
    let unread = client.get("/ok");
    client.cancel(unread);
    let ended = client.get("/ok");
    client.reply(ended);
    client.cancel(ended);
    assert_eq!(client.fetch("/ok").text(), "ok");
    assert!(client.goaways.is_empty());
    let line = server.wait_for_text("fields.log", "/large ");
    let fields: Vec<&str> = line
        .lines()
        .find(|l| l.starts_with("/large "))
        .map(|l| l.split(' ').collect())
        .unwrap_or_default();
    // The number of sent bytes, not of those to be sent.
    assert_eq!((fields[1], fields[5]), ("200", "19"), "{fields:?}");
    assert_eq!(fields[8], "", "it was not completed");
    let waits = server.wait_for_text("fields.log", "/waits 499");
    assert_eq!(waits.matches("/waits ").count(), 2);
}

#[test]
fn stream_whose_client_takes_nothing_is_reset_alone() {
    let server = site("send_timeout 500ms; keepalive_requests 1000000;").start();
    let mut client = H2Client::narrow(server.port(), 100);
    let blocked = client.get("/large");
    client.until("it is blocked", |c| c.so_far(blocked).body.len() == 100);
    let (start, waits) = (Instant::now(), Waits::begin());
    // Other streams continue, and do not keep it alive.
    while client.so_far(blocked).reset.is_none() && start.elapsed() < DEADLINE {
        assert_eq!(client.fetch("/ok").text(), "ok");
    }
    assert_eq!(client.so_far(blocked).reset, Some(PROTOCOL_ERROR));
    let took = start.elapsed();
    assert!(took > Duration::from_millis(300), "{took:?}");
    waits.assert_below(took, Duration::from_secs(3));
    assert_eq!(client.fetch("/ok").text(), "ok");
    server.wait_for_text("error.log", "client timed out");
}

#[test]
fn stream_that_is_read_slowly_is_not_reset() {
    let server = site("send_timeout 500ms;").start();
    let waits = Waits::begin();
    let mut client = H2Client::narrow(server.port(), 1);
    let slow = client.get("/");
    let is_reset = |c: &H2Client| c.so_far(slow).reset.is_some();
    for n in 1..=6 {
        client.until("a byte comes", |c| {
            c.so_far(slow).body.len() == n || is_reset(c)
        });
        if client.holds_within(Duration::from_millis(200), is_reset) {
            let late = waits.explain(Duration::from_millis(200), "a window was late");
            assert!(late, "it is reset after {n} bytes");
            return;
        }
        client.window(slow, 1);
    }
    assert_eq!(client.reply(slow).text(), "welcome");
}

#[test]
fn client_that_reads_nothing_loses_the_connection() {
    let server = site("send_timeout 300ms; sendfile_max_chunk 0;").start();
    let mut client = H2Client::connect(server.port());
    for _ in 0..100 {
        client.get("/large");
    }
    server.wait_for_text("error.log", "client timed out");
    client.until_closed();
    let whole = client.replies.values().filter(|reply| reply.ended).count();
    assert!(whole < 100, "{whole}");
    server.wait_for_text("fields.log", "/large 200");
}

#[test]
fn idle_connection_ends_with_a_goodbye() {
    let server = site("keepalive_timeout 500ms;").start();
    let mut client = H2Client::connect(server.port());
    client.fetch("/ok");
    let (start, waits) = (Instant::now(), Waits::begin());
    // PINGs do not end its idle time.
    while client.goaways.is_empty() && start.elapsed() < DEADLINE {
        client.settle();
        client.holds_within(Duration::from_millis(100), |c| !c.goaways.is_empty());
    }
    let took = start.elapsed();
    assert_eq!(client.goaways, [(1, NO_ERROR)]);
    assert!(took > Duration::from_millis(300), "{took:?}");
    waits.assert_below(took, Duration::from_secs(4));
    client.until_closed();
}

#[test]
fn connection_without_a_request_ends() {
    let server = site("client_header_timeout 300ms;").start();
    let mut client = H2Client::connect(server.port());
    assert_eq!(client.goaway(), (0, NO_ERROR));
    client.until_closed();
}

/// As in nginx, a late header block costs its stream, not the connection.
#[test]
fn header_block_that_takes_too_long_costs_its_stream() {
    let server = site("client_header_timeout 1s;").start();
    let mut client = H2Client::connect(server.port());
    assert_eq!(client.fetch("/ok").text(), "ok");
    let stream = client.take_stream();
    let block = hpack::write(&request_fields("GET", "/ok"));
    let bytes = frame(HEADERS, END_HEADERS | END_STREAM, stream, &block);
    client.send(&bytes[..20]);
    assert_eq!(client.reply(stream).reset, Some(PROTOCOL_ERROR));
    client.send(&bytes[20..]);
    assert_eq!(client.fetch("/ok").text(), "ok");
    server.wait_for_text("fields.log", " 408 ");
}

/// A body that is not read and never ends blocks neither the response nor the connection.
#[test]
fn body_that_never_comes_keeps_nothing() {
    let server = site("keepalive_timeout 300ms;").start();
    let mut client = H2Client::connect(server.port());
    let stream = client.request("POST", "/ok", &[("content-length", "1000")], false);
    client.data(stream, b"some", false);
    let reply = client.reply(stream);
    assert_eq!((reply.text().as_str(), reply.reset), ("ok", None));
    assert_eq!(client.goaway(), (1, NO_ERROR));
    client.until_closed();
}

#[test]
fn long_body_that_nobody_reads_is_stopped() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let stream = client.request("POST", "/ok", &[("content-length", "1000000")], false);
    assert_eq!(client.reply(stream).text(), "ok");
    client.until("it is stopped", |c| {
        c.so_far(stream).reset == Some(NO_ERROR)
    });
    // A body without a length, at the end of its window.
    let stream = client.request("POST", "/ok", &[], false);
    assert_eq!(client.reply(stream).text(), "ok");
    for _ in 0..4 {
        client.data(stream, &[0; 16_384], false);
    }
    client.until("it is stopped", |c| {
        c.so_far(stream).reset == Some(NO_ERROR)
    });
    assert_eq!(client.fetch("/ok").text(), "ok");
}

#[test]
fn keepalive_requests_are_counted_exactly() {
    let server = site("keepalive_requests 3;").start();
    let mut client = H2Client::connect(server.port());
    // All of them in one write.
    let block = hpack::write(&request_fields("GET", "/number"));
    let all: Vec<u8> = (0..6)
        .flat_map(|n| frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &block))
        .collect();
    client.send(&all);
    client.until_closed();
    assert_eq!(client.goaways, [(5, NO_ERROR)]);
    let texts: Vec<String> = client.replies.values().map(Reply::text).collect();
    assert_eq!(texts, ["1", "2", "3"]);
}

#[test]
fn return_444_resets_the_stream_without_an_answer() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let reply = client.fetch("/gone");
    assert_eq!((reply.status, reply.reset), (0, Some(INTERNAL_ERROR)));
    assert_eq!(client.fetch("/ok").text(), "ok");
    assert_eq!(logged(&server, "/gone")[1], "444");
}

#[test]
fn end_of_the_client_ends_what_is_under_way() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    client.fetch("/waits");
    client.get("/waits");
    client.settle();
    client.finish_sending();
    client.until_closed();
    server.wait_for_text("fields.log", "/waits 499");
}

#[test]
fn a_server_that_does_not_speak_http2_is_not_reached_by_it() {
    if !peer::knows_nginx(26) {
        return;
    }
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; server_name on; http2 on; return 200 on; }
         server { listen 127.0.0.1:%%PORT%%; server_name off; http2 off; return 200 off; }",
    )
    .start();
    let mut client = H2Client::connect(server.port());
    for (host, status) in [("on", 200), ("off", 421), ("on", 200)] {
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", host),
            (":path", "/"),
        ];
        let stream = client.headers(&fields, true);
        assert_eq!(client.reply(stream).status, status, "{host}");
    }
    server.wait_for_text("error.log", "for which the negotiated protocol is disabled");
}
