//! Upstream servers that die, stall or send false or malformed data: a client never takes a part for the whole.
//!
//! Sources: BAD INPUT: responses; RFC 9112 sections 6.3, 7.1, 8; nginx documentation, `proxy_read_timeout`;
//! docs/differences.md.

use std::net::TcpStream;
use std::os::fd::OwnedFd;

use firstbyte_tests::backend::{Backend, Step, chunk, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::port::Port;
use firstbyte_tests::{H2Client, Server, SpdyClient, peer, wait_until};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};

/// Result of a response at a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientResult {
    /// It was complete.
    Whole(u16),
    /// It began, and the client can see that its end is missing.
    Cut,
    /// Not even a head.
    Nothing,
}

/// A request by a client of some protocol.
type Ask = fn(u16, &str) -> ClientResult;

fn over_http1(port: u16, path: &str) -> ClientResult {
    let mut client = firstbyte_tests::Client::connect(port);
    client.send(request("GET", path, &[]));
    match client.try_response() {
        Ok(Some(response)) => ClientResult::Whole(response.status),
        Ok(None) => ClientResult::Nothing,
        Err(_) => ClientResult::Cut,
    }
}

fn over_http2(port: u16, path: &str) -> ClientResult {
    let mut client = H2Client::connect(port);
    let reply = client.fetch(path);
    match (reply.status, reply.reset) {
        (0, _) => ClientResult::Nothing,
        (status, None) => ClientResult::Whole(status),
        (_, Some(_)) => ClientResult::Cut,
    }
}

fn over_spdy(port: u16, path: &str) -> ClientResult {
    let mut client = SpdyClient::connect(port);
    let reply = client.fetch(path);
    match (reply.status, reply.reset) {
        (0, _) => ClientResult::Nothing,
        (status, None) => ClientResult::Whole(status),
        (_, Some(_)) => ClientResult::Cut,
    }
}

/// Unexpected results of clients of every protocol, with buffering and without.
fn unlike(what: &str, backend: &Backend, expected: ClientResult) -> Vec<String> {
    let spdy = if peer::is_firstbyte() { "spdy" } else { "" };
    let pass = backend.name();
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%% {spdy}; http2 on;
             location / {{ proxy_pass http://{pass}; }}
             location /unbuffered {{ proxy_pass http://{pass}; proxy_buffering off; }} }}"
    ))
    .start();
    let mut clients: Vec<(&str, Ask)> = vec![("HTTP/1.1", over_http1), ("HTTP/2", over_http2)];
    if peer::is_firstbyte() {
        clients.push(("SPDY", over_spdy));
    }
    let mut findings = Vec::new();
    for path in ["/", "/unbuffered"] {
        for (protocol, ask) in &clients {
            let seen = ask(server.port(), path);
            // nginx may still hold the head when it sees the fault.
            let held = !peer::is_firstbyte()
                && (seen, expected) == (ClientResult::Nothing, ClientResult::Cut);
            if seen != expected && !held {
                findings.push(format!(
                    "{what} {path} {protocol}: {seen:?}, not {expected:?}"
                ));
            }
        }
    }
    findings
}

#[track_caller]
fn all_see(what: &str, backend: &Backend, expected: ClientResult) {
    let findings = unlike(what, backend, expected);
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

fn head(lines: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n")
}

/// A response as bytes, and whether nginx refuses it as well.
type Bad = (&'static str, &'static [u8], bool);

const BAD_HEADS: [Bad; 28] = [
    ("nothing", b"", true),
    ("HTTP/0.9", b"hello, this is the body", false),
    ("HTTP/0.9 lines", b"<html>\r\n\r\n</html>\r\n\r\n", false),
    ("other protocol", b"ICY 200 OK\r\nA: b\r\n\r\nmusic", false),
    ("status of two digits", b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", false),
    ("status of four digits", b"HTTP/1.1 1000 OK\r\nContent-Length: 0\r\n\r\n", false),
    ("status below 100", b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n", false),
    ("status zero", b"HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n", false),
    ("status in letters", b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n", false),
    ("negative status", b"HTTP/1.1 -20 OK\r\nContent-Length: 0\r\n\r\n", false),
    ("upgrade not asked for", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", false),
    ("length and coding", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true),
    ("coding and length", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n", true),
    ("two lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", true),
    ("twice the same length", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", true),
    ("list of lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", true),
    ("length in letters", b"HTTP/1.1 200 OK\r\nContent-Length: ab\r\n\r\nok", true),
    ("negative length", b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", true),
    ("length with a sign", b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", true),
    ("length beyond numbers", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok", true),
    ("unknown coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", true),
    ("coding twice", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", true),
    ("two codings", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true),
    ("NUL in a value", b"HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 2\r\n\r\nok", true),
    ("NUL in a name", b"HTTP/1.1 200 OK\r\nX\0A: ab\r\nContent-Length: 2\r\n\r\nok", true),
    ("CR in a value", b"HTTP/1.1 200 OK\r\nX-A: a\rb\r\nContent-Length: 2\r\n\r\nok", true),
    ("CR in a name", b"HTTP/1.1 200 OK\r\nX\rA: ab\r\nContent-Length: 2\r\n\r\nok", true),
    ("end in the head", b"HTTP/1.1 200 OK\r\nContent-Le", true),
];

#[test]
fn bad_heads_are_502() {
    let mut findings = Vec::new();
    for (what, bytes, refused_by_nginx) in BAD_HEADS {
        if refused_by_nginx || peer::is_firstbyte() {
            findings.extend(unlike(
                what,
                &Backend::saying(bytes),
                ClientResult::Whole(502),
            ));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn server_that_dies_before_the_head_is_502() {
    let closing = || Backend::answering(|_| vec![Step::Close]);
    all_see("close", &closing(), ClientResult::Whole(502));
    let resetting = || Backend::answering(|_| vec![Step::Reset]);
    all_see("reset", &resetting(), ClientResult::Whole(502));
    let in_the_head =
        Backend::answering(|_| vec![send("HTTP/1.1 200 OK\r\nX-"), Step::Wait(20), Step::Reset]);
    all_see("reset in the head", &in_the_head, ClientResult::Whole(502));
    let unread = Backend::scripted(|_| vec![Step::Reset]);
    all_see("reset at once", &unread, ClientResult::Whole(502));
    // No server listens there.
    let port = Port::reserve();
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass http://127.0.0.1:{}; }} }}",
        port.number()
    ))
    .start();
    assert_eq!(server.get("/").status, 502);
    server.wait_for_text(
        "error.log",
        "connect() failed (111: Connection refused) while connecting to upstream",
    );
}

/// Each one ends by FIN and by RST, long after the received bytes were sent on.
#[test]
fn server_that_dies_in_the_body_cuts_the_response() {
    let bodies = [
        ("length", head("Content-Length: 100") + "half"),
        ("chunk", head("Transfer-Encoding: chunked") + "64\r\nhalf"),
        (
            "between chunks",
            head("Transfer-Encoding: chunked") + "4\r\nhalf\r\n",
        ),
        (
            "last chunk",
            head("Transfer-Encoding: chunked") + "4\r\nhalf\r\n0\r\n",
        ),
        ("no end but the close", head("X-A: b") + "half"),
    ];
    for (what, bytes) in bodies {
        for end in [Step::Close, Step::Reset] {
            let is_end = what == "no end but the close" && matches!(end, Step::Close);
            let expected = if is_end {
                ClientResult::Whole(200)
            } else {
                ClientResult::Cut
            };
            let what = format!("{what} {end:?}");
            let steps = vec![send(&bytes), Step::Wait(20), end];
            let backend = Backend::answering(move |_| steps.clone());
            all_see(&what, &backend, expected);
        }
    }
}

#[test]
fn what_came_before_the_server_died_has_left() {
    let backend = Backend::answering(|_| {
        let body = vec![b'x'; 100_000];
        vec![
            send(head("Content-Length: 200000")),
            send(body),
            Step::Close,
        ]
    });
    for more in ["", "proxy_buffering off;"] {
        let server = backend.proxied(more).start();
        let mut client = server.client();
        client.send(request("GET", "/", &[]));
        let bytes = client.rest();
        let body = bytes.iter().rev().take_while(|byte| **byte == b'x').count();
        assert_eq!(body, 100_000, "{more}");
        let reply = H2Client::connect(server.port()).fetch("/");
        assert_eq!(reply.body.len(), 100_000, "HTTP/2 {more}");
        assert!(reply.reset.is_some());
    }
}

const BAD_CHUNKS: [(&str, &str); 7] = [
    ("size in letters", "zz\r\nok\r\n0\r\n\r\n"),
    ("negative size", "-2\r\nok\r\n0\r\n\r\n"),
    (
        "size beyond numbers",
        "fffffffffffffffff\r\nok\r\n0\r\n\r\n",
    ),
    ("size without digits", "\r\nok\r\n0\r\n\r\n"),
    ("chunk longer than its size", "2\r\nokay\r\n0\r\n\r\n"),
    ("second size", "2\r\nok\r\nxx\r\n"),
    ("space before the size", "2\r\nok\r\n ;x\r\n0\r\n\r\n"),
];

#[test]
fn bad_chunks_cut_the_response() {
    let mut findings = Vec::new();
    for (what, body) in BAD_CHUNKS {
        let bytes = head("Transfer-Encoding: chunked");
        let body = body.to_owned();
        // The head is under way before the fault is seen.
        let steps = vec![
            send(bytes),
            Step::Wait(20),
            send(body),
            Step::Wait(20),
            Step::Close,
        ];
        let backend = Backend::answering(move |_| steps.clone());
        findings.extend(unlike(what, &backend, ClientResult::Cut));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Bytes after a response are no response to a later request: the connection is not used again.
#[test]
fn surplus_bytes_are_dropped_with_the_connection() {
    const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let answers = [
        head("Content-Length: 4") + "good" + EVIL,
        head("Content-Length: 4") + "good" + "x",
        head("Transfer-Encoding: chunked") + "4\r\ngood\r\n0\r\n\r\n" + EVIL,
        head("Content-Length: 4") + "good\r\n" + EVIL,
    ];
    for bytes in answers {
        let backend = Backend::answering(move |_| vec![send(&bytes)]);
        for more in ["", "proxy_buffering off;"] {
            let before = backend.accepted();
            let server = backend.grouped("", more).start();
            let mut client = server.client();
            for _ in 0..5 {
                assert_eq!(client.get("/").text(), "good");
            }
            assert_eq!(backend.accepted() - before, 5, "{more}");
        }
    }
}

/// Bytes that come late, on an idle connection, are none either.
#[test]
fn unasked_response_on_an_idle_connection_ends_it() {
    let backend = Backend::answering(|_| {
        let late = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
        vec![
            send(head("Content-Length: 4") + "good"),
            Step::Wait(30),
            send(late),
        ]
    });
    let server = backend.grouped("", "").start();
    for n in 1..=3 {
        assert_eq!(server.get("/").text(), "good");
        wait_until("the idle connection is closed", || backend.open() == 0);
        assert_eq!(backend.accepted(), n);
    }
}

#[test]
fn bodies_where_there_can_be_none_are_not_passed_on() {
    let backend = Backend::answering(|r| match (r.method(), r.target()) {
        ("HEAD", _) => vec![send(head("Content-Length: 4") + "evil")],
        (_, "/204") => vec![send("HTTP/1.1 204 No Content\r\n\r\nevil")],
        (_, "/304") => vec![send(
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil",
        )],
        _ => ok("good"),
    });
    let server = backend.grouped("", "").start();
    let mut client = server.client();
    assert_eq!(client.head("/").status, 200);
    assert_eq!(client.get("/").text(), "good");
    assert_eq!(client.get("/204").status, 204);
    assert_eq!(client.get("/").text(), "good");
    assert_eq!(client.get("/304").status, 304);
    assert_eq!(client.get("/").text(), "good");
}

#[test]
fn slow_server_is_504_before_its_head_and_cut_after_it() {
    let silent = Backend::answering(|_| vec![Step::Hold]);
    let half = Backend::answering(|_| vec![send("HTTP/1.1 200 OK\r\nX-"), Step::Hold]);
    let body = Backend::answering(|_| vec![send(head("Content-Length: 100") + "half"), Step::Hold]);
    for (what, backend, expected) in [
        ("silent", silent, ClientResult::Whole(504)),
        ("half a head", half, ClientResult::Whole(504)),
        ("half a body", body, ClientResult::Cut),
    ] {
        for more in ["", "proxy_buffering off;"] {
            let server = backend
                .proxied(&format!("proxy_read_timeout 150ms; {more}"))
                .start();
            assert_eq!(over_http1(server.port(), "/"), expected, "{what} {more}");
            assert_eq!(over_http2(server.port(), "/"), expected, "{what} {more}");
            server.wait_for_text(
                "error.log",
                "upstream timed out (110: Connection timed out) while reading",
            );
            wait_until("the server behind is let go", || backend.open() == 0);
        }
    }
}

/// Each read starts the time anew: a server may take longer than that in all.
#[test]
fn slow_but_steady_server_is_waited_for() {
    let backend = Backend::answering(|_| {
        let mut steps = vec![send(head("Transfer-Encoding: chunked"))];
        for _ in 0..6 {
            steps.extend([Step::Wait(400), chunk("piece")]);
        }
        steps.push(send("0\r\n\r\n"));
        steps
    });
    let server = backend.proxied("proxy_read_timeout 2s;").start();
    assert_eq!(server.get("/").text(), "piece".repeat(6));
}

/// A listening socket with a full queue: the kernel drops further SYNs.
fn unreachable() -> (OwnedFd, u16, Vec<TcpStream>) {
    let port = Port::reserve();
    let at = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port.number());
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&listener, &at).expect("the port is free");
    listen(&listener, 0).expect("it is bound");
    let connect = || {
        let limit = std::time::Duration::from_millis(50);
        TcpStream::connect_timeout(&at.into(), limit)
    };
    let queued = std::iter::repeat_with(connect)
        .map_while(Result::ok)
        .collect();
    (listener, port.number(), queued)
}

#[test]
fn connection_that_is_not_made_in_time_is_504() {
    let (_listener, port, _queued) = unreachable();
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%;
             location / {{ proxy_pass http://127.0.0.1:{port}; proxy_connect_timeout 200ms; }} }}"
    ))
    .start();
    assert_eq!(server.get("/").status, 504);
    server.wait_for_text(
        "error.log",
        "upstream timed out (110: Connection timed out) while connecting to upstream",
    );
}

#[test]
fn server_that_does_not_read_is_504() {
    let backend = Backend::at_heads(|_| vec![Step::Wait(1500), Step::Close]);
    for more in ["", "proxy_request_buffering off;"] {
        let server = backend
            .proxied(&format!("proxy_send_timeout 200ms; {more}"))
            .start();
        let len = 24 << 20;
        let mut client = server.client();
        client.send(request("POST", "/", &[&format!("Content-Length: {len}")]));
        client.send(vec![b'x'; len]);
        assert_eq!(client.response().status, 504, "{more}");
    }
}

/// Endless interim responses are no better than silence.
#[test]
fn interim_responses_without_end_are_502() {
    if !peer::is_firstbyte() {
        return;
    }
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    for (count, status) in [(100, 200), (101, 502)] {
        let backend = Backend::answering(move |_| {
            let mut steps = vec![send(hints.repeat(count))];
            steps.extend(ok("final"));
            steps
        });
        all_see("hints", &backend, ClientResult::Whole(status));
    }
}

#[test]
fn name_server_that_is_down_is_502() {
    let server = Server::http(
        "resolver 127.0.0.1:%%PORT2%%; resolver_timeout 300ms;
         server { listen 127.0.0.1:%%PORT%%; set $name app.example; location / { proxy_pass http://$name:8080; }
             location /ok { return 200 ok; } }",
    )
    .start();
    assert_eq!(server.get("/").status, 502);
    server.wait_for_text("error.log", "app.example could not be resolved");
    assert_eq!(server.get("/ok").text(), "ok");
}

/// A response may come before the request is complete: it counts, and the rest of the request is dropped.
#[test]
fn early_answer_reaches_a_client_that_still_sends() {
    let backend = Backend::at_heads(|_| {
        let refusal = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig";
        vec![send(refusal), Step::HalfClose, Step::Hold]
    });
    for more in ["", "proxy_request_buffering off;"] {
        let server = backend.proxied(more).start();
        let len = 1 << 20;
        let mut client = server.client();
        client.send(request("POST", "/", &[&format!("Content-Length: {len}")]));
        client.send(vec![b'x'; len]);
        let answer = client.response();
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (413, "big"),
            "{more}"
        );
    }
}

/// An unfinished body of a client never looks finished to the upstream server.
#[test]
fn client_that_dies_in_its_body_is_no_whole_request() {
    let backend = Backend::answering(|_| ok("never"));
    for (more, begun) in [("", 0), ("proxy_request_buffering off;", 1)] {
        for framing in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
            let before = backend.request_count();
            let server = backend.proxied(more).start();
            let mut client = server.client();
            client.send(request("POST", "/", &[framing]) + "b\r\nhalf a body\r\n");
            if begun > 0 {
                wait_until("it is passed on", || backend.request_count() > before);
            }
            drop(client);
            server.wait_for_text("access.log", "POST / HTTP/1.1");
            wait_until("the connection is given up", || backend.open() == 0);
            assert_eq!(backend.request_count() - before, begun, "{more}");
            assert!(backend.requests()[before..].iter().all(|r| !r.whole));
        }
    }
}
