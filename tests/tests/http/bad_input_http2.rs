//! HTTP/2 attacks over real sockets: floods, bombs, closed windows, malformed requests.
//!
//! Counts are frames the server took before it ended the connection. Sources: RFC 9113 sections 5.4, 8.2, 10.5; the
//! attacks of CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-27316, CVE-2025-8671.

use std::fs;

use firstbyte_tests::h2::*;
use firstbyte_tests::hpack::{self, write_number};
use firstbyte_tests::{Builder, H2Client, Server};

fn site(directives: &str) -> Builder {
    let http = format!(
        "http2 on; {directives}
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             location /ok {{ return 200 ok; }} }}"
    );
    Server::http_with("worker_processes 1;", &http)
        .file("html/index.html", "welcome")
        .bytes("html/large", &[b'x'; 1_300_000])
}

/// The server still serves other clients.
#[track_caller]
fn is_unharmed(server: &Server) {
    assert_eq!(server.get("/ok").text(), "ok");
    assert_eq!(H2Client::connect(server.port()).fetch("/ok").text(), "ok");
    assert_eq!(server.workers().len(), 1);
}

/// Sends the bytes of `attack` `n` times, and expects the end of the connection with this code. Returns the last stream
/// that the server took.
#[track_caller]
fn ends_with(server: &Server, code: u32, n: u32, mut attack: impl FnMut(u32) -> Vec<u8>) -> u32 {
    let mut client = H2Client::connect(server.port());
    let bytes: Vec<u8> = (0..n).flat_map(&mut attack).collect();
    for piece in bytes.chunks(16 << 10) {
        client.send(piece);
    }
    let (last, found) = client.goaway();
    assert_eq!(found, code);
    client.until_closed();
    assert!(client.protocol.settings_acks <= 1001 && client.pings.len() <= 1000);
    is_unharmed(server);
    last
}

fn get(stream: u32) -> Vec<u8> {
    let block = hpack::write(&request_fields("GET", "/ok"));
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

#[test]
fn rapid_reset_ends_within_a_thousand_streams() {
    let server = site("").start();
    let attack = |n: u32| {
        let stream = 2 * n + 1;
        [get(stream), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    };
    let last = ends_with(&server, ENHANCE_YOUR_CALM, 20_000, attack);
    assert!(last <= 2 * 1000 + 1, "{last}");
    let log = server.wait_for_text("error.log", "http2 flood detected");
    assert!(log.contains("[info]"));
}

/// Made by the server's own resets (CVE-2025-8671), it counts as well.
#[test]
fn streams_that_the_client_breaks_end_within_a_thousand() {
    let server = site("").start();
    let overflow = |n: u32| {
        let stream = 2 * n + 1;
        let update = frame(WINDOW_UPDATE, 0, stream, &MAX_WINDOW.to_be_bytes());
        [get(stream), update].concat()
    };
    let last = ends_with(&server, ENHANCE_YOUR_CALM, 20_000, overflow);
    assert!(last <= 2 * 1000 + 1, "{last}");
    let itself = |n: u32| {
        let stream = 2 * n + 1;
        let priority = [&stream.to_be_bytes()[..], &[0]].concat();
        [get(stream), frame(PRIORITY, 0, stream, &priority)].concat()
    };
    let last = ends_with(&server, ENHANCE_YOUR_CALM, 20_000, itself);
    assert!(last <= 2 * 1000 + 1, "{last}");
}

#[test]
fn window_update_of_zero_ends_at_once() {
    let server = site("").start();
    let attack = |n: u32| {
        let stream = 2 * n + 1;
        [get(stream), frame(WINDOW_UPDATE, 0, stream, &[0; 4])].concat()
    };
    assert_eq!(ends_with(&server, PROTOCOL_ERROR, 100, attack), 1);
}

#[test]
fn empty_continuations_end_within_a_hundred() {
    let server = site("").start();
    let attack = |n: u32| match n {
        0 => frame(HEADERS, END_STREAM, 1, &[]),
        _ => frame(CONTINUATION, 0, 1, &[]),
    };
    ends_with(&server, ENHANCE_YOUR_CALM, 100, attack);
}

#[test]
fn short_continuations_end_within_a_hundred_whatever_the_budget() {
    let server = site("http2_abuse_budget 1000000;").start();
    for piece in [&[][..], &[0x82]] {
        let attack = |n: u32| match n {
            0 => frame(HEADERS, END_STREAM, 1, &[]),
            _ => frame(CONTINUATION, 0, 1, piece),
        };
        ends_with(&server, ENHANCE_YOUR_CALM, 101, attack);
    }
}

#[test]
fn header_block_without_end_ends_at_its_limit() {
    let server = site("").start();
    let attack = |n: u32| match n {
        0 => frame(HEADERS, END_STREAM, 1, &[0x82; 16_384]),
        _ => frame(CONTINUATION, 0, 1, &[0x82; 16_384]),
    };
    // 32 KiB of fields, and half as much for the refused ones.
    ends_with(&server, ENHANCE_YOUR_CALM, 4, attack);
}

#[test]
fn frames_that_bring_nothing_end_within_a_thousand() {
    let server = site("").start();
    let open = |n: u32, more: Vec<u8>| match n {
        0 => {
            let block = hpack::write(&request_fields("POST", "/ok"));
            [frame(HEADERS, END_HEADERS, 1, &block), more].concat()
        }
        _ => more,
    };
    let calm = ENHANCE_YOUR_CALM;
    ends_with(&server, calm, 1001, |_| frame(SETTINGS, 0, 0, &[]));
    ends_with(&server, calm, 1001, |_| frame(PING, 0, 0, &[7; 8]));
    ends_with(&server, calm, 1001, |_| {
        frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 9])
    });
    ends_with(&server, calm, 1001, |_| frame(0x77, 0, 0, b"?"));
    ends_with(&server, calm, 1001, |_| frame(GOAWAY, 0, 0, &[0; 8]));
    ends_with(&server, calm, 1001, |_| frame(PING, ACK, 0, &[7; 8]));
    ends_with(&server, calm, 1002, |_| frame(SETTINGS, ACK, 0, &[]));
    ends_with(&server, calm, 1001, |_| {
        frame(0x10, 0, 0, &[0, 0, 0, 1, b'u', b'=', b'1'])
    });
    ends_with(&server, calm, 1010, |n| open(n, frame(DATA, 0, 1, &[])));
    ends_with(&server, calm, 1010, |n| {
        open(n, frame(DATA, 8, 1, &[3, 0, 0, 0]))
    });
    ends_with(&server, calm, 1010, |n| {
        open(n, frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]))
    });
}

#[test]
fn abuse_budget_is_a_directive() {
    let server = site("http2_abuse_budget 10;").start();
    ends_with(&server, ENHANCE_YOUR_CALM, 11, |_| {
        frame(PING, 0, 0, &[7; 8])
    });
}

/// Memory of a process that holds no file, in bytes.
fn resident_bytes(pid: u32) -> u64 {
    // The counters in `status` are updated late.
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the worker runs");
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.expect("the kernel tells it") << 10
}

/// How much more memory the worker has after `attack` than before.
fn growth_bytes(server: &Server, attack: impl FnOnce()) -> u64 {
    // The first requests allocate buffers before the measurement, and keep them meanwhile.
    let mut others = H2Client::connect(server.port());
    for path in ["/ok", "/large"] {
        others.fetch(path);
    }
    let worker = server.workers()[0];
    let before = resident_bytes(worker);
    attack();
    resident_bytes(worker).saturating_sub(before)
}

#[test]
fn compressed_bomb_is_refused_and_costs_nothing() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    client.fetch("/ok");
    let growth = growth_bytes(&server, || {
        // An entry of 4000 bytes in the table, then 16,000 fields that refer to it.
        let mut block = hpack::write(&request_fields("GET", "/ok"));
        block.extend_from_slice(&[0x40, 1, b'x']);
        write_number(&mut block, 0, 7, 4000);
        block.extend_from_slice(&[b'v'; 4000]);
        let stream = client.take_stream();
        client.frame(HEADERS, END_HEADERS | END_STREAM, stream, &block);
        assert_eq!(client.reply(stream).status, 200);
        let mut bomb = hpack::write(&request_fields("GET", "/ok"));
        bomb.resize(16_000, 0x80 | 62);
        let stream = client.take_stream();
        client.frame(HEADERS, END_HEADERS | END_STREAM, stream, &bomb);
        let reply = client.reply(stream);
        assert_eq!(reply.status, 400);
        assert!(reply.text().contains("Request Header Or Cookie Too Large"));
    });
    assert!(growth < 64 << 10, "{growth}");
    assert_eq!(client.fetch("/ok").status, 200, "the connection goes on");
    is_unharmed(&server);
}

#[test]
fn hundred_streams_with_closed_windows_cost_little() {
    let server = site("sendfile on;").start();
    let mut client = H2Client::narrow(server.port(), 0);
    client.settle();
    let growth = growth_bytes(&server, || {
        let streams: Vec<u32> = (0..100).map(|_| client.get("/large")).collect();
        client.settle();
        for stream in &streams {
            let reply = client.so_far(*stream);
            assert_eq!((reply.status, reply.body.len()), (200, 0));
        }
        // A byte at a time brings them no further either.
        for stream in &streams {
            client.window(*stream, 1);
        }
        client.settle();
    });
    assert!(growth <= 1 << 20, "{growth}");
    is_unharmed(&server);
}

/// 400, then the reset of the stream; the connection and other streams are not touched.
#[test]
fn malformed_requests_get_400_and_a_reset() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let method = (":method", "GET");
    let scheme = (":scheme", "http");
    let path = (":path", "/ok");
    let authority = (":authority", "localhost");
    let whole = [method, scheme, path, authority];
    let with = |name, value| [&whole[..], &[(name, value)]].concat();
    let cases = [
        vec![scheme, path, authority],
        vec![method, path, authority],
        vec![method, scheme, authority],
        vec![method, method, scheme, path, authority],
        vec![method, scheme, ("accept", "*/*"), path, authority],
        with(":status", "200"),
        with(":unknown", "1"),
        with("X-Upper", "1"),
        with("x y", "1"),
        with("x\r\ny", "1"),
        with("x\ny", "1"),
        with("x\0y", "1"),
        with("connection", "keep-alive"),
        with("keep-alive", "1"),
        with("proxy-connection", "close"),
        with("transfer-encoding", "chunked"),
        with("upgrade", "websocket"),
        with("te", "gzip"),
        with("content-length", "7"),
        with("x", "a\r\nhost: b"),
        with("x", "a\nb"),
        with("x", "a\0b"),
        with("x", " padded"),
        with("x", "padded "),
    ];
    for fields in cases {
        let stream = client.headers(&fields, true);
        let reply = client.reply(stream);
        assert_eq!(reply.status, 400, "{fields:?}");
        client.until("the stream is reset", |c| {
            c.so_far(stream).reset == Some(PROTOCOL_ERROR)
        });
    }
    assert_eq!(client.fetch("/ok").text(), "ok");
    is_unharmed(&server);
}

#[test]
fn requests_that_http1_refuses_are_refused() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let host = [(":method", "GET"), (":scheme", "http"), (":path", "/ok")];
    let stream = client.headers(&host, true);
    assert_eq!(client.reply(stream).status, 400, "no host at all");
    let other = ("host", "other");
    let stream = client.headers(
        &[&request_fields("GET", "/ok")[..], &[other]].concat(),
        true,
    );
    assert_eq!(client.reply(stream).status, 400, "two hosts");
    for path in ["ok", "/a b", "/a\u{7f}", "/%00", "/../x"] {
        let stream = client.get(path);
        assert_eq!(client.reply(stream).status, 400, "{path:?}");
    }
    for (method, status) in [("get", 400), ("TRACE", 405)] {
        let stream = client.request(method, "/ok", &[], true);
        assert_eq!(client.reply(stream).status, status, "{method}");
    }
    assert_eq!(client.fetch("/ok").status, 200);
}

#[test]
fn field_without_a_name_ends_the_connection() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    let block = hpack::write(&[&request_fields("GET", "/ok")[..], &[("", "x")]].concat());
    client.frame(HEADERS, END_HEADERS | END_STREAM, 1, &block);
    assert_eq!(client.goaway().1, PROTOCOL_ERROR);
    client.until_closed();
    is_unharmed(&server);
}

#[test]
fn body_that_is_not_as_announced_resets_the_stream() {
    let server = site("").start();
    let mut client = H2Client::connect(server.port());
    for pieces in [&["abcd"][..], &["a", "bcd"], &["ab"]] {
        let stream = client.request("POST", "/ok", &[("content-length", "3")], false);
        for (n, piece) in pieces.iter().enumerate() {
            client.data(stream, piece.as_bytes(), n + 1 == pieces.len());
        }
        client.until("the stream is reset", |c| {
            c.so_far(stream).reset == Some(PROTOCOL_ERROR)
        });
    }
    assert_eq!(client.fetch("/ok").status, 200);
}

#[test]
fn broken_framing_ends_the_connection_with_its_code() {
    let server = site("").start();
    let cases = [
        (frame(0x05, 0, 1, &[0; 4]), PROTOCOL_ERROR),
        (frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
        (frame(DATA, 0, 9, b"x"), PROTOCOL_ERROR),
        (frame(PING, 0, 0, &[0; 7]), 6),
        (
            frame(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]),
            FLOW_CONTROL_ERROR,
        ),
        (frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2]), PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 1, &[0x80]), COMPRESSION_ERROR),
        (frame(CONTINUATION, END_HEADERS, 1, &[]), PROTOCOL_ERROR),
        (frame(0x77, 0, 0, &[0; 16_385]), 6),
    ];
    for (bytes, code) in cases {
        let mut client = H2Client::connect(server.port());
        client.send(&bytes);
        assert_eq!(client.goaway().1, code, "{:02x?}", &bytes[..9]);
        client.until_closed();
    }
    is_unharmed(&server);
}

/// A plain port serves both protocols: bytes that are no preface are HTTP/1, and refused as such.
#[test]
fn broken_preface_is_answered_by_http1() {
    let server = site("").start();
    for bytes in [
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        "INVALID PREFACE\r\n\r\n",
    ] {
        let answer = server.client().send(bytes).response();
        assert_eq!(answer.status, 400, "{bytes:?}");
    }
    is_unharmed(&server);
}
