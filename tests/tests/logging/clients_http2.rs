//! Log lines about clients of HTTP/2: incomplete and malformed requests, frames that end a connection.
//!
//! Texts and fields are those of nginx 1.31.4, as measured; RFC 9113, section 6.10, for CONTINUATION.

use firstbyte_tests::h2::{self, H2Client};
use firstbyte_tests::{Builder, Server, hpack, wait_until};

/// Two servers; the log of each has a name of its own.
fn site(more: &str) -> Builder {
    Server::http_with(
        "error_log %%DIR%%/error.log info;",
        &format!(
            "log_format f '$status|$request|$request_method|$uri|$document_uri|$server_protocol|$http_host|\
             $http_user_agent|$request_length'; {more}
             server {{ listen 127.0.0.1:%%PORT%% default_server; server_name first; http2 on;
                 access_log %%DIR%%/first.log f; location / {{ return 200 ok; }} }}
             server {{ listen 127.0.0.1:%%PORT%%; server_name b.example; http2 on;
                 access_log %%DIR%%/second.log f; location / {{ return 200 ok; }} }}"
        ),
    )
}

/// The last line of a log, once it is there.
#[track_caller]
fn last(server: &Server, file: &str, count: usize) -> String {
    wait_until(&format!("{file} has {count} lines"), || {
        server.dir().read(file).lines().count() >= count
    });
    let text = server.dir().read(file);
    text.lines().next_back().unwrap_or_default().to_owned()
}

const HEADERS: &str = "reading client request headers, client: 127.0.0.1, server: ";

#[test]
fn incomplete_head_over_http2_is_logged_as_far_as_it_came() {
    let server = site("client_header_timeout 100ms;").start();
    let fields = [
        (":method", "GET"),
        (":path", "/s?a"),
        (":scheme", "http"),
        (":authority", "b.example"),
    ];
    let mut client = H2Client::connect(server.port());
    client.frame(h2::HEADERS, h2::END_STREAM, 1, &hpack::write(&fields));
    let line = last(&server, "second.log", 1);
    assert!(line.starts_with("408|-|GET|/s|/s|HTTP/2.0|-|-|"), "{line}");
    let timed_out = "client timed out (110: Connection timed out) while";
    server.wait_for_text("error.log", &format!("{timed_out} {HEADERS}b.example\n"));

    let mut client = H2Client::connect(server.port());
    client.frame(h2::HEADERS, h2::END_STREAM, 1, &hpack::write(&fields[..2]));
    client.finish_sending();
    let line = last(&server, "first.log", 1);
    assert!(line.starts_with("000|-|GET|/s|/s|HTTP/2.0|-|-|"), "{line}");
    let listener = format!("client: 127.0.0.1, server: 127.0.0.1:{}\n", server.port());
    let text = "client prematurely closed connection while processing HTTP/2 connection, ";
    server.wait_for_text("error.log", &format!("{text}{listener}"));
}

/// Fields of HTTP/2 that break a request, each with its message. They follow the fields of every request.
const MALFORMED: [(&str, &str, &str); 9] = [
    ("X-Up", "1", "client sent invalid header name: \"X-Up\""),
    (
        "x",
        "1\u{1}2",
        "client sent header \"x\" with invalid value: \"1\\x012\"",
    ),
    (":path", "/1", "client sent duplicate :path header"),
    (
        ":authority",
        "a",
        "client sent duplicate \":authority\" header",
    ),
    (":x", "1", "client sent unknown pseudo-header \":x\""),
    ("connection", "close", "client sent \"Connection\" header"),
    (
        "transfer-encoding",
        "x",
        "client sent \"Transfer-Encoding\" header",
    ),
    ("te", "x", "client sent invalid \"TE\" header"),
    (
        "host",
        "other",
        "client sent \":authority\" and \"Host\" headers with different values",
    ),
];

#[test]
fn malformed_request_of_http2_is_logged_with_its_fault() {
    let server = site("").start();
    for (at, (name, value, why)) in MALFORMED.into_iter().enumerate() {
        let mut fields = h2::request_fields("GET", "/x").to_vec();
        fields[3].1 = "b.example";
        fields.push((name, value));
        let mut client = H2Client::connect(server.port());
        client.headers(&fields, true);
        let line = last(&server, "second.log", at + 1);
        assert!(line.starts_with("400|"), "{line}");
        assert!(line.contains("|GET|/x|/x|HTTP/2.0|"), "{line}");
        server.wait_for_text("error.log", &format!("{why} while {HEADERS}b.example"));
    }
}

#[test]
fn frame_that_ends_an_http2_connection_is_named() {
    let server = site("").start();
    for (kind, stream, payload, why) in [
        (
            6,
            0,
            "abc",
            "client sent PING frame with incorrect length 3",
        ),
        (
            4,
            0,
            "abc",
            "client sent SETTINGS frame with incorrect length 3",
        ),
        (
            0,
            0,
            "abc",
            "client sent DATA frame with incorrect identifier",
        ),
        (9, 1, "abc", "client sent unexpected CONTINUATION frame"),
        (
            1,
            2,
            "",
            "client sent HEADERS frame with incorrect identifier 2, the last was 0",
        ),
    ] {
        let mut client = H2Client::connect(server.port());
        client.frame(kind, h2::END_HEADERS, stream, payload.as_bytes());
        let place = format!("client: 127.0.0.1, server: 127.0.0.1:{}", server.port());
        let text = format!("{why} while processing HTTP/2 connection, {place}\n");
        server.wait_for_text("error.log", &text);
    }
}
