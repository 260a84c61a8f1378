//! Request bodies without a reader have the limit of others, and nothing is sent ahead of a response that is decided.
//!
//! Sources: nginx documentation, `client_max_body_size`; RFC 9110 sections 10.1.1 and 15.2, RFC 8297.

use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Step, ok, send};
use firstbyte_tests::busy::inconclusive;
use firstbyte_tests::client::request;
use firstbyte_tests::received::Request;
use firstbyte_tests::{Builder, H2Client, Server, SpdyClient, peer};

const LIMIT: usize = 1000;

/// Pause of a client after which the response is sent, milliseconds.
const PAUSE_MS: u64 = 250;

/// A location for each kind of response that does not read the body.
const PATHS: [&str; 5] = ["/return", "/file", "/named", "/empty", "/behind"];

fn site(backend: &Backend) -> Builder {
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "client_max_body_size {LIMIT}; limit_req_zone $uri zone=slow:1m rate=1r/m;
             early_hints_link '</style.css>; rel=preload';
             server {{ listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%% spdy; http2 on; root %%DIR%%/html;
                 location /return {{ return 200 ok; }}
                 location /file {{ error_page 405 =200 /page; return 405; }}
                 location = /page {{ error_page 405 = @named; }}
                 location /named {{ error_page 418 = @named; return 418; }}
                 location /behind {{ proxy_pass http://{0}; proxy_pass_request_body off; proxy_set_header Content-Length ''; }}
                 location @named {{ return 200 ok; }}
                 location /empty {{ return 204; }}
                 location /moved {{ return 302 /; }}
                 location /unlimited {{ client_max_body_size 0; return 200 ok; }}
                 location /own {{ error_page 413 /too-large; return 200 ok; }}
                 location /too-large {{ return 200 'own page'; }}
                 location /missing {{ return 404; }}
                 location /proxied-page {{ error_page 413 403 @behind; location /proxied-page/denied {{ deny all; }} return 200 ok; }}
                 location @behind {{ proxy_pass http://{0}; }}
                 location /denied {{ early_hints 1; deny all; }}
                 location /denied-page {{ early_hints 1; error_page 403 =200 /page.html; deny all; }}
                 location /denied-named {{ early_hints 1; error_page 403 = @named; deny all; }}
                 location /auth {{ early_hints 1; auth_basic realm; auth_basic_user_file %%DIR%%/users; }}
                 location /auth-request {{ early_hints 1; auth_request /refusal; }}
                 location /refusal {{ return 403; }}
                 location /nothing {{ early_hints 1; error_page 404 =200 /page.html; }}
                 location /nothing-named {{ early_hints 1; error_page 404 = @named; }}
                 location /limited {{ early_hints 1; error_page 503 =200 /page.html; limit_req zone=slow; }}
                 location /large {{ early_hints 1; error_page 413 =200 /page.html; client_max_body_size 1; return 200 ok; }}
                 location = /page.html {{ early_hints 0; }} }}",
            backend.name()
        ),
    )
    .file("html/page.html", "page")
    .file("html/page", "page")
    .file("html/limited", "limited")
    .file("users", "")
}

/// `len` bytes in chunks of 300 bytes.
fn chunked(len: usize) -> String {
    let mut body = String::new();
    for start in (0..len).step_by(300) {
        let size = 300.min(len - start);
        body += &format!("{size:x}\r\n{}\r\n", "x".repeat(size));
    }
    body + "0\r\n\r\n"
}

const CHUNKED: &str = "Transfer-Encoding: chunked";

#[test]
fn a_chunked_body_that_nobody_reads_has_the_limit_of_others() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|_| ok("ok"));
    let server = site(&backend).start();
    for path in PATHS {
        let mut kept = server.client();
        for (len, good) in [
            (0, true),
            (LIMIT - 1, true),
            (LIMIT, true),
            (LIMIT + 1, false),
        ] {
            kept.send(request("POST", path, &[CHUNKED]) + &chunked(len));
            let answer = kept.response();
            let status = if path == "/empty" { 204 } else { 200 };
            let expected = if good { status } else { 413 };
            assert_eq!(answer.status, expected, "{path}: {len} bytes");
            assert_eq!(answer.announces_close(), !good, "{path}: {len} bytes");
            let length = format!("Content-Length: {len}");
            let announced = request("POST", path, &[&length]) + &"x".repeat(len);
            let announced = server.client().send(announced).response();
            assert_eq!(announced.status, expected, "{path}: {len} announced");
        }
        assert!(kept.closed(), "{path}");
    }
    server.wait_for_text(
        "error.log",
        "client intended to send too large chunked body",
    );
    assert_eq!(
        server
            .client()
            .send(request("POST", "/moved", &[CHUNKED]) + &chunked(LIMIT + 1))
            .response()
            .status,
        413
    );
}

/// However the bytes are cut, and before the client has sent all of them.
#[test]
fn a_chunked_body_above_the_limit_is_refused_at_its_first_byte_too_many() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|_| ok("ok"));
    let server = site(&backend).start();
    let mut client = server.client();
    let began = Instant::now();
    client.send(request("POST", "/return", &[CHUNKED]));
    let start = chunked(LIMIT);
    let start = start.strip_suffix("0\r\n\r\n").expect("the last chunk");
    for piece in start.as_bytes().chunks(100) {
        client.send(piece);
    }
    client.send("1\r\nx");
    if began.elapsed() > Duration::from_millis(PAUSE_MS / 2) {
        inconclusive("the body was sent with pauses");
    } else {
        assert_eq!(client.response().status, 413);
    }
    let mut client = server.client();
    client.send(request("POST", "/own", &[CHUNKED]) + &chunked(LIMIT + 1));
    let answer = client.response();
    assert_eq!((answer.status, answer.text().as_str()), (413, "own page"));
    // Without a limit nothing is waited for, nor is for an error.
    for (path, status) in [("/unlimited", 200), ("/missing", 404)] {
        let mut client = server.client();
        client.send(request("POST", path, &[CHUNKED]));
        assert_eq!(client.response().status, status);
        client.send(chunked(5 * LIMIT) + &request("GET", "/return", &[]));
        assert_eq!(client.response().text(), "ok", "{path}");
    }
}

#[test]
fn a_broken_chunk_of_a_body_that_nobody_reads_is_400() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|_| ok("ok"));
    let server = site(&backend).start();
    let mut client = server.client();
    client.send(request("POST", "/return", &[CHUNKED]) + "3\r\nabc\r\n");
    client.send("xyz\r\n");
    let answer = client.response();
    assert_eq!(answer.status, 400);
    assert!(client.closed());
    // The connections of others are not harmed.
    assert_eq!(server.get("/return").text(), "ok");
}

/// A client that pauses may wait for the response. `client_body_timeout` is shorter or longer than the pause.
#[test]
fn a_body_that_pauses_has_its_response() {
    if !peer::is_firstbyte() {
        return;
    }
    for timeout in ["100ms", "1h"] {
        let http = "client_body_timeout TIMEOUT; server { listen 127.0.0.1:%%PORT%%; location / { return 200 ok; } }";
        let server = Server::http(&http.replace("TIMEOUT", timeout)).start();
        let mut client = server.client();
        client.send(request("POST", "/", &[CHUNKED]) + "3\r\nabc\r\n");
        assert_eq!(client.response().text(), "ok", "{timeout}");
    }
}

#[test]
fn pipelined_requests_follow_a_body_that_nobody_reads() {
    let backend = Backend::answering(|_| ok("ok"));
    let server = site(&backend).start();
    let mut client = server.client();
    let post = request("POST", "/return", &[CHUNKED]) + &chunked(LIMIT);
    client.send([post.as_str(), &request("GET", "/missing", &[]), &post].concat());
    let statuses: Vec<u16> = (0..3).map(|_| client.response().status).collect();
    assert_eq!(statuses, [200, 404, 200]);
}

#[test]
fn a_body_of_unknown_length_on_a_stream_has_the_limit_too() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|_| ok("ok"));
    let server = site(&backend).start();
    for path in PATHS {
        for (len, good) in [(LIMIT - 1, true), (LIMIT, true), (LIMIT + 1, false)] {
            let status = if path == "/empty" { 204 } else { 200 };
            let expected = if good { status } else { 413 };
            let mut http2 = H2Client::connect(server.port());
            let stream = http2.request("POST", path, &[], false);
            http2.data(stream, &vec![b'x'; LIMIT - 1], false);
            http2.data(stream, &vec![b'x'; len + 1 - LIMIT], true);
            assert_eq!(http2.reply(stream).status, expected, "{path}: {len} bytes");
            assert_eq!(
                http2.fetch("/return").text(),
                "ok",
                "the connection goes on"
            );
            let mut spdy = SpdyClient::connect(server.port_number(2));
            let stream = spdy.request("POST", path, &[], false);
            spdy.data(stream, &vec![b'x'; len], true);
            assert_eq!(
                spdy.reply(stream).status,
                expected,
                "{path}: {len} bytes over SPDY"
            );
        }
    }
    // The end of the stream may come alone, and after a body of nothing.
    for len in [0, LIMIT] {
        let mut http2 = H2Client::connect(server.port());
        let stream = http2.request("POST", "/return", &[], false);
        http2.data(stream, &vec![b'x'; len], false).settle();
        http2.data(stream, b"", true);
        assert_eq!(http2.reply(stream).text(), "ok");
    }
}

/// Requests with a response that needs no body, and its status.
const DECIDED: [(&str, u16); 13] = [
    ("/return", 200),
    ("/moved", 302),
    ("/missing", 404),
    ("/named", 200),
    ("/empty", 204),
    ("/own", 200),
    ("/denied", 403),
    ("/denied-page", 200),
    ("/denied-named", 200),
    ("/auth", 401),
    ("/auth-request", 403),
    ("/nothing", 200),
    ("/nothing-named", 200),
];

#[test]
fn nothing_is_sent_ahead_of_a_response_that_is_decided() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|_| ok("ok"));
    let server = site(&backend).start();
    let expect = "Expect: 100-continue";
    let first = server.get("/limited");
    assert_eq!(first.status, 103, "{first:?}");
    let limited = [("/limited", 200), ("/large", 200)];
    for (path, status) in DECIDED.into_iter().chain(limited) {
        for (framing, body) in [
            ("Content-Length: 5", "hello"),
            (CHUNKED, "5\r\nhello\r\n0\r\n\r\n"),
        ] {
            if path == "/large" && framing == CHUNKED {
                // A client that waits for 100 has sent nothing that could be too large.
                continue;
            }
            for sent in ["", body] {
                let method = if path.starts_with("/nothing") {
                    "GET"
                } else {
                    "POST"
                };
                let mut client = server.client();
                client.send(request(method, path, &[expect, framing]) + sent);
                let answer = client.response();
                assert_eq!(
                    answer.status, status,
                    "{path} {framing} {sent:?}: {answer:?}"
                );
            }
        }
        let mut http2 = H2Client::connect(server.port());
        for end in [true, false] {
            if path == "/large" {
                continue;
            }
            let stream = http2.request("GET", path, &[("expect", "100-continue")], end);
            let reply = http2.reply(stream);
            assert_eq!(
                (reply.status, reply.interim),
                (status, vec![]),
                "{path} over HTTP/2"
            );
        }
    }
}

/// The status of an error page is decided before its location runs.
#[test]
fn hints_of_a_server_are_not_passed_on_ahead_of_an_error() {
    if !peer::is_firstbyte() {
        return;
    }
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n";
    let script = move |_: &Request| [vec![send(hints), Step::Wait(50)], ok("page")].concat();
    let backend = Backend::answering(script);
    let server = Server::http(&format!(
        "early_hints 1; server {{ listen 127.0.0.1:%%PORT%%; http2 on;
             location / {{ error_page 404 @behind; return 404; }}
             location /page {{ error_page 404 = @behind; return 404; }}
             location @behind {{ proxy_pass http://{}; }} }}",
        backend.name()
    ))
    .start();
    let answer = server.get("/");
    assert_eq!((answer.status, answer.text().as_str()), (404, "page"));
    // This status is the upstream server's.
    assert_eq!(server.get("/page").status, 103);
    let mut http2 = H2Client::connect(server.port());
    for (path, status, interim) in [("/", 404, vec![]), ("/page", 200, vec![103])] {
        let reply = http2.fetch(path);
        assert_eq!((reply.status, reply.interim), (status, interim), "{path}");
    }
}

/// The location of an error page may need no body, so the body is not requested after 413.
#[test]
fn a_body_that_was_refused_is_not_asked_for_by_the_error_page() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|r| ok(format!("page {}", r.body.len())));
    let server = site(&backend).start();
    let length = format!("Content-Length: {}", LIMIT + 1);
    let lines = ["Expect: 100-continue", length.as_str()];
    let answer = server
        .client()
        .send(request("POST", "/proxied-page", &lines))
        .response();
    assert_eq!((answer.status, answer.text().as_str()), (413, "page 0"));
    let body = "x".repeat(LIMIT + 1);
    let answer = server
        .client()
        .send(request("POST", "/proxied-page", &lines[1..]) + &body)
        .response();
    assert_eq!((answer.status, answer.text().as_str()), (413, "page 0"));
    let answer = server
        .client()
        .send(request("POST", "/proxied-page", &[CHUNKED]) + &chunked(LIMIT + 1))
        .response();
    assert_eq!((answer.status, answer.text().as_str()), (413, "page 0"));
}
