//! SPDY/3.1 on plain connections: responses, waits and ends of connections, bad input, log lines.
//!
//! Sources: draft-mbelshe-httpbis-spdy-00; nginx's documentation of ngx_http_spdy_module; BAD INPUT: the cases of
//! HTTP/2 in `bad_input_http2`.

use firstbyte_tests::spdy::*;
use firstbyte_tests::{Builder, Client, H2Client, Server, Signal, SpdyClient};

const LARGE_BYTES: usize = 300_000;
const CANCEL: u32 = 5;
const PROTOCOL_ERROR: u32 = 1;
const REFUSED_STREAM: u32 = 3;

fn site(directives: &str) -> Builder {
    let http = format!(
        "{directives}
         log_format fields '$uri $status \"$spdy\" \"$spdy_request_priority\" $server_protocol \"$request\" '
             '$bytes_sent $body_bytes_sent $request_length $request_completion \"$http2\"';
         access_log %%DIR%%/fields.log fields;
         server {{ listen 127.0.0.1:%%PORT%% spdy; root %%DIR%%/html;
             location /ok {{ return 200 ok; }}
             location /priority {{ return 200 \"$spdy $spdy_request_priority\"; }}
             location /cookies {{ add_header Set-Cookie a=1; add_header Set-Cookie b=2; return 200 $http_cookie; }}
             location /chunks {{ spdy_chunk_size 1; return 200 body; }}
             location /number {{ return 200 $connection_requests; }}
             location /gone {{ return 444; }} }}"
    );
    let large: Vec<u8> = (0..LARGE_BYTES).map(|n| b'a' + (n % 23) as u8).collect();
    Server::http_with("worker_processes 1;", &http)
        .file("html/index.html", "welcome")
        .bytes("html/large", &large)
}

/// The line of the log that is about `path`.
#[track_caller]
fn logged(server: &Server, path: &str) -> String {
    let start = format!("{path} ");
    let text = server.wait_for_text("fields.log", &start);
    let line = text.lines().find(|line| line.starts_with(&start));
    line.unwrap_or_default().to_owned()
}

#[test]
fn files_and_errors_are_served() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    let index = client.fetch("/");
    assert_eq!((index.status, index.text().as_str()), (200, "welcome"));
    assert_eq!(index.header("content-length"), Some("7"));
    assert_eq!(index.header(":version"), Some("HTTP/1.1"));
    assert!(index.header("date").is_some() && index.header("etag").is_some());
    assert!(index.header("connection").is_none());
    let large = client.fetch("/large");
    assert_eq!(large.body.len(), LARGE_BYTES);
    let mut expected = (0..LARGE_BYTES).map(|n| b'a' + (n % 23) as u8);
    assert!(large.body.iter().all(|b| Some(*b) == expected.next()));
    assert_eq!(client.fetch("/missing").status, 404);
    let stream = client.request("HEAD", "/large", &[], true);
    let head = client.reply(stream);
    assert_eq!((head.status, head.body.len(), head.reset), (200, 0, None));
    let stream = client.request("GET", "/large", &[("range", "bytes=5-9")], true);
    let part = client.reply(stream);
    assert_eq!((part.status, part.text().as_str()), (206, "fghij"));
    assert_eq!(client.settings, [(4, 100), (7, 65_536)]);
}

#[test]
fn fields_with_several_values_stand_once() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    let stream = client.request("GET", "/cookies", &[("cookie", "x=1\0y=2")], true);
    let reply = client.reply(stream);
    assert_eq!(reply.header("set-cookie"), Some("a=1\0b=2"));
    assert_eq!(reply.text(), "x=1; y=2");
}

#[test]
fn http1_http2_and_spdy_share_a_port() {
    let server = site("http2 on;").start();
    assert_eq!(server.get("/ok").text(), "ok");
    assert_eq!(SpdyClient::connect(server.port()).fetch("/ok").text(), "ok");
    assert_eq!(H2Client::connect(server.port()).fetch("/ok").text(), "ok");
    // The first byte decides the protocol, and may come alone.
    let mut client = SpdyClient::silent(server.port());
    let frame = client.syn_frame(1, &request_fields("GET", "/ok"), 0, true);
    for byte in frame {
        client.send([byte]);
    }
    assert_eq!(client.reply(1).text(), "ok");
}

#[test]
fn ports_without_the_parameter_speak_none() {
    let server =
        Server::http("server { listen 127.0.0.1:%%PORT%%; location / { return 200 ok; } }").start();
    let mut client = Client::connect(server.port());
    client.send(control(PING, 0, &[0, 0, 0, 1]));
    assert_eq!(client.response().status, 400);
}

#[test]
fn chunk_size_bounds_frames() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    let stream = client.get("/chunks");
    assert_eq!(client.reply(stream).text(), "body");
    assert_eq!(client.data_frames, [(stream, 1); 4]);
    let stream = client.get("/large");
    client.reply(stream);
    assert!(client.data_frames.iter().all(|(_, len)| *len <= 8192));
}

#[test]
fn urgent_streams_overtake() {
    let server = site("").start();
    let mut client = SpdyClient::silent(server.port());
    client.setting(INITIAL_WINDOW_SIZE, MAX_WINDOW);
    let large = |client: &mut SpdyClient, priority| {
        client.syn(&request_fields("GET", "/large"), priority, true)
    };
    let first = large(&mut client, 7);
    client.until("the connection's window is used up", |c| {
        c.so_far(first).body.len() == 65_536
    });
    let urgent = large(&mut client, 0);
    client.settle();
    client.data_frames.clear();
    client.window(0, MAX_WINDOW - 65_536);
    assert_eq!(client.reply(first).body.len(), LARGE_BYTES);
    assert_eq!(client.reply(urgent).body.len(), LARGE_BYTES);
    let last = client.data_frames.iter().rposition(|(id, _)| *id == urgent);
    let others = client.data_frames[..last.expect("it was sent")].iter();
    assert!(others.filter(|(id, _)| *id == first).count() <= 1);
}

#[test]
fn priorities_and_the_protocol_are_variables() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    for priority in [0, 1, 7] {
        let stream = client.syn(&request_fields("GET", "/priority"), priority, true);
        assert_eq!(client.reply(stream).text(), format!("3.1 {priority}"));
    }
    assert_eq!(server.get("/priority").text(), " ");
}

#[test]
fn log_tells_what_was_sent() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    client.fetch("/ok");
    let line = logged(&server, "/ok");
    let (front, back) = line
        .split_once("\"GET /ok SPDY/3.1\" ")
        .expect("a request line");
    assert_eq!(front, "/ok 200 \"3.1\" \"4\" SPDY/3.1 ");
    let fields: Vec<&str> = back.split(' ').collect();
    let [sent, body, length, completion, http2] = fields[..] else {
        panic!("{line}");
    };
    // The head of the DATA frame is counted, as in nginx.
    assert_eq!((body, completion, http2), ("10", "OK", "\"\""));
    let sent: usize = sent.parse().expect("a number");
    assert!((100..500).contains(&sent), "{line}");
    let expected = client
        .syn_frame(1, &request_fields("GET", "/ok"), 0, true)
        .len();
    // The first block also had a zlib header.
    assert_eq!(length, (expected + 2).to_string());
}

#[test]
fn request_bodies_are_read_past_and_windows_opened() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    let stream = client.request("POST", "/index.html", &[], false);
    let mut sent = 0;
    while sent < 1_000_000 {
        client.data(stream, &[b'x'; 16_384], false);
        sent += 16_384;
        client.settle();
    }
    client.data(stream, b"", true);
    let reply = client.reply(stream);
    assert_eq!((reply.status, reply.reset), (405, None));
    assert_eq!(client.fetch("/ok").text(), "ok");
}

#[test]
fn wrong_lengths_get_a_clear_400_and_harm_nobody() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    let stream = client.request("POST", "/ok", &[("content-length", "5")], true);
    assert_eq!(client.reply(stream).status, 400, "no body came");
    let line = logged(&server, "/ok");
    assert!(line.starts_with("/ok 400 "), "{line}");
    for length in ["-1", "x", "1 1", "18446744073709551616"] {
        let more = [("content-length", length)];
        let stream = client.request("POST", "/index.html", &more, false);
        client.data(stream, b"abc", true);
        let reply = client.reply(stream);
        assert_eq!((reply.status, reply.reset), (400, None), "{length}");
    }
    assert_eq!(client.fetch("/ok").text(), "ok");
}

#[test]
fn wrong_requests_are_answered_and_broken_ones_reset() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    let with =
        |more: &[(&'static str, &'static str)]| [&request_fields("GET", "/ok"), more].concat();
    let answered = [
        with(&[(":other", "x")]),
        with(&[(":method", "GET")]),
        with(&[("a:b", "x")]),
        with(&[("x-a", "b\r\nc: d")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("host", "other")]),
        request_fields("GET", "ok").to_vec(),
        request_fields("GET", "/a b").to_vec(),
        request_fields("GET", "/../x").to_vec(),
        request_fields("get", "/ok").to_vec(),
        request_fields("GET", "/ok")[..4].to_vec(),
        request_fields("GET", "/ok")[1..].to_vec(),
    ];
    for fields in answered {
        let stream = client.syn(&fields, 0, true);
        let reply = client.reply(stream);
        assert_eq!((reply.status, reply.reset), (400, None), "{fields:?}");
    }
    let large = "x".repeat(9000);
    let stream = client.syn(
        &[&request_fields("GET", "/ok")[..], &[("x", &large)]].concat(),
        0,
        true,
    );
    let reply = client.reply(stream);
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("Request Header Or Cookie Too Large"));
    for more in [("Upper", "x"), ("", "x"), ("a", "b\0"), ("a", "\0b")] {
        let stream = client.syn(&with(&[more]), 0, true);
        let reply = client.reply(stream);
        assert_eq!(
            (reply.status, reply.reset),
            (0, Some(PROTOCOL_ERROR)),
            "{more:?}"
        );
    }
    assert_eq!(client.fetch("/ok").text(), "ok");
}

#[test]
fn broken_connections_end_and_say_so() {
    let server = site("").start();
    let even = SpdyClient::silent(server.port()).syn_frame(2, &request_fields("GET", "/"), 0, true);
    let nonsense = [&numbers(&[3, 0])[..], b"\0\0nonsense"].concat();
    let bad = [
        even,
        control(SYN_STREAM, 1, &nonsense),
        control(SYN_REPLY, 0, &[0; 8]),
        control(WINDOW_UPDATE, 0, &numbers(&[0, MAX_WINDOW])),
        control(
            SETTINGS,
            0,
            &numbers(&[1, INITIAL_WINDOW_SIZE, MAX_WINDOW + 1]),
        ),
        control(PING, 0, b"12345"),
        vec![0x80, 2, 0, 1, 0, 0, 0, 0],
        control(SYN_STREAM, 0, &vec![0; 100_000]),
    ];
    for bytes in bad {
        let mut client = SpdyClient::connect(server.port());
        client.send(&bytes);
        assert_eq!(client.goaway(), (0, PROTOCOL_ERROR), "{bytes:.20x?}");
        assert_eq!(client.goaways.len(), 1, "{bytes:.20x?}");
        client.until_closed();
    }
    assert_eq!(server.get("/ok").text(), "ok");
}

#[test]
fn floods_end_the_connection() {
    let server = site("http2_abuse_budget 100;").start();
    let floods: [fn(&mut SpdyClient); 5] = [
        |c| _ = c.setting(INITIAL_WINDOW_SIZE, 1),
        |c| _ = c.control(PING, 0, &[0, 0, 0, 1]),
        |c| _ = c.control(99, 0, &[]),
        |c| _ = c.syn(&[("", "")], 0, true),
        |c| {
            let stream = c.get("/large");
            c.cancel(stream);
        },
    ];
    for flood in floods {
        let mut client = SpdyClient::connect(server.port());
        for _ in 0..2000 {
            flood(&mut client);
        }
        assert_eq!(client.goaway().1, PROTOCOL_ERROR);
        assert_eq!(client.goaways.len(), 1);
        client.until_closed();
    }
    assert!(server.error_log().contains("spdy flood detected"));
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let server = site("spdy_max_concurrent_streams 2;").start();
    let mut client = SpdyClient::silent(server.port());
    client.setting(INITIAL_WINDOW_SIZE, 0);
    let streams: Vec<u32> = (0..3).map(|_| client.get("/large")).collect();
    let reply = client.reply(streams[2]);
    assert_eq!(reply.reset, Some(REFUSED_STREAM));
    assert_eq!(client.settings[0], (4, 2));
    client.cancel(streams[0]);
    let next = client.get("/large");
    client.settle();
    assert_eq!(client.so_far(next).status, 200);
}

#[test]
fn aborted_requests_are_reset() {
    let server = site("").start();
    let mut client = SpdyClient::connect(server.port());
    let reply = client.fetch("/gone");
    assert_eq!((reply.status, reply.reset), (0, Some(6)));
    assert_eq!(client.fetch("/ok").text(), "ok");
}

#[test]
fn streams_that_the_client_resets_are_logged_as_such() {
    let server = site("").start();
    let mut client = SpdyClient::silent(server.port());
    let stream = client.get("/large");
    client.until("the window is used up", |c| {
        c.so_far(stream).body.len() == 65_536
    });
    client.control(RST_STREAM, 0, &numbers(&[stream, CANCEL]));
    let line = logged(&server, "/large");
    let bytes = 65_536 + 8 * client.data_frames.len();
    assert!(line.contains(&format!(" {bytes} ")), "{line}");
    client.window(0, 1000);
    assert_eq!(client.fetch("/ok").status, 200);
}

#[test]
fn idle_connections_end_in_time_and_say_so() {
    let server = site("spdy_keepalive_timeout 200ms;").start();
    let mut client = SpdyClient::connect(server.port());
    assert_eq!(client.fetch("/ok").text(), "ok");
    client.until_closed();
    assert_eq!(client.goaways, [(1, 0)]);
}

#[test]
fn frames_that_stay_incomplete_end_the_connection() {
    let server = site("spdy_recv_timeout 200ms;").start();
    let mut client = SpdyClient::connect(server.port());
    assert_eq!(client.fetch("/ok").text(), "ok");
    client.send(&control(PING, 0, &[0, 0, 0, 1])[..10]);
    client.until_closed();
    let mut client = SpdyClient::connect(server.port());
    let frame = client.syn_frame(1, &request_fields("GET", "/ok"), 0, true);
    client.send(&frame[..30]);
    assert_eq!(client.reply(1).reset, Some(PROTOCOL_ERROR));
    // The rest is read, since the next block builds on it.
    client.send(&frame[30..]);
    let next = client.syn_frame(3, &request_fields("GET", "/ok"), 0, true);
    client.send(next);
    assert_eq!(client.reply(3).text(), "ok");
}

#[test]
fn number_of_requests_does_not_end_a_connection() {
    let server = site("keepalive_requests 2; keepalive_timeout 0;").start();
    let mut client = SpdyClient::connect(server.port());
    for n in 1..=5 {
        assert_eq!(client.fetch("/number").text(), n.to_string());
    }
}

#[test]
fn stop_lets_streams_finish_and_names_the_last() {
    let mut server = site("").start();
    let mut client = SpdyClient::silent(server.port());
    let stream = client.get("/large");
    client.until("the window is used up", |c| {
        c.so_far(stream).body.len() == 65_536
    });
    server.signal(Signal::QUIT);
    assert_eq!(client.goaway(), (stream, 0));
    client.window(stream, 1 << 20).window(0, 1 << 20);
    assert_eq!(client.reply(stream).body.len(), LARGE_BYTES);
    client.until_closed();
    assert_eq!(server.wait_for_exit(), 0);
}

#[test]
fn proxy_protocol_comes_first() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%% proxy_protocol spdy; location / { return 200 $proxy_protocol_addr; } }",
    )
    .start();
    let mut client = SpdyClient::silent(server.port());
    client.send("PROXY TCP4 192.0.2.1 192.0.2.2 1234 5678\r\n");
    assert_eq!(client.fetch("/").text(), "192.0.2.1");
}
