//! Log lines about clients: heads that stay incomplete, heads that are refused, connections that end.
//!
//! Texts and fields are those of nginx 1.31.4, as measured.

use crate::tls_client::site as leaf_of;
use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::{Builder, Client, Server, wait_until};

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

/// The lines of the error log about clients, without their beginnings.
fn errors(server: &Server) -> Vec<String> {
    let log = server.error_log();
    let lines = log.lines().filter_map(|line| line.split_once(": *"));
    lines
        .filter_map(|(_, rest)| rest.split_once(' '))
        .map(|(_, text)| text.to_owned())
        .collect()
}

/// Bytes of a client, the line of the error log, the access log and its line.
type Case = (&'static str, &'static str, &'static str, &'static str);

const LINE: &str = "reading client request line, client: 127.0.0.1, server: first";
const HEADERS: &str = "reading client request headers, client: 127.0.0.1, server: ";

/// Incomplete heads of clients that are silent, or close. The received part of request line, host and agent is logged, in the
/// log of the named server.
const INCOMPLETE: [Case; 7] = [
    (
        "GET /slo",
        "line, client: 127.0.0.1, server: first, request: \"GET /slo\"",
        "first.log",
        "GET /slo|-|-|-|-|-|-|0",
    ),
    (
        "GET /slow HTTP/1",
        "line, client: 127.0.0.1, server: first, request: \"GET /slow HTTP/1\"",
        "first.log",
        "GET /slow HTTP/1|-|-|-|-|-|-|0",
    ),
    (
        "GET /s?a HTTP/1.1\r\n",
        "headers, client: 127.0.0.1, server: first, request: \"GET /s?a HTTP/1.1\"",
        "first.log",
        "GET /s?a HTTP/1.1|GET|/s|/s|HTTP/1.1|-|-|19",
    ),
    (
        "GET /s HTTP/1.1\r\nHost: b.exam",
        "headers, client: 127.0.0.1, server: first, request: \"GET /s HTTP/1.1\"",
        "first.log",
        "GET /s HTTP/1.1|GET|/s|/s|HTTP/1.1|-|-|17",
    ),
    (
        "GET /s HTTP/1.1\r\nHost: b.example\r\n",
        "headers, client: 127.0.0.1, server: b.example, request: \"GET /s HTTP/1.1\", host: \"b.example\"",
        "second.log",
        "GET /s HTTP/1.1|GET|/s|/s|HTTP/1.1|b.example|-|34",
    ),
    (
        "GET /s HTTP/1.1\r\nHost: b.example\r\nUser-Agent: UA\r\nX: y",
        "headers, client: 127.0.0.1, server: b.example, request: \"GET /s HTTP/1.1\", host: \"b.example\"",
        "second.log",
        "GET /s HTTP/1.1|GET|/s|/s|HTTP/1.1|b.example|UA|50",
    ),
    (
        "GET http://b.example/s HTTP/1.1\r\n",
        "headers, client: 127.0.0.1, server: b.example, request: \"GET http://b.example/s HTTP/1.1\"",
        "second.log",
        "GET http://b.example/s HTTP/1.1|GET|/s|/s|HTTP/1.1|-|-|33",
    ),
];

#[track_caller]
fn check_incomplete(
    server: &Server,
    connect: impl Fn() -> Client,
    end: impl Fn(&mut Client),
    why: &str,
    status: u16,
) {
    let mut counts = [0, 0];
    for (sent, place, file, fields) in INCOMPLETE {
        let mut client = connect();
        client.send(sent);
        end(&mut client);
        assert!(client.ended(), "{sent:?}");
        let count = &mut counts[usize::from(file == "second.log")];
        *count += 1;
        assert_eq!(last(server, file, *count), format!("{status}|{fields}"));
        let expected = format!("{why} while reading client request {place}");
        let errors = errors(server);
        assert!(errors.contains(&expected), "{sent:?}: {errors:#?}");
    }
}

#[test]
fn head_that_does_not_come_in_time_is_logged_as_far_as_it_came() {
    let server = site("client_header_timeout 100ms;").start();
    let why = "client timed out (110: Connection timed out)";
    check_incomplete(&server, || server.client(), |_| {}, why, 408);
}

#[test]
fn head_whose_client_closes_is_logged_as_far_as_it_came() {
    let server = site("").start();
    let why = "client prematurely closed connection";
    let end = |client: &mut Client| {
        client.finish_sending();
    };
    check_incomplete(&server, || server.client(), end, why, 400);
}

#[test]
fn second_head_that_stays_incomplete_is_logged_by_how_it_came() {
    let server = site("client_header_timeout 100ms;").start();
    let whole = "GET /1 HTTP/1.1\r\nHost: first\r\n\r\n";
    let mut client = server.client();
    client.send(whole).response();
    client.send("GET /2");
    assert!(client.ended());
    last(&server, "first.log", 2);
    let mut client = server.client();
    client.send(whole.to_owned() + "GET /3").response();
    assert!(client.ended());
    last(&server, "first.log", 4);
    let why = "client timed out (110: Connection timed out) while";
    let errors = errors(&server);
    for text in [
        format!("{why} {LINE}, request: \"GET /2\""),
        format!(
            "{why} reading client pipelined request line, client: 127.0.0.1, server: first, request: \"GET /3\""
        ),
    ] {
        assert!(errors.contains(&text), "{text}: {errors:#?}");
    }
}

#[test]
fn incomplete_head_over_tls_is_logged_in_the_server_of_the_handshake() {
    let leaf = leaf_of("localhost");
    let server = Server::http_with(
        "error_log %%DIR%%/error.log info;",
        "client_header_timeout 300ms; log_format f '$status|$request|$scheme|$http_user_agent';
         ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         server { listen 127.0.0.1:%%PORT%% ssl; server_name first; access_log %%DIR%%/first.log f; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name localhost; access_log %%DIR%%/second.log f; }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .start();
    let port = tls_pipe(server.port(), "http/1.1");
    let mut client = Client::connect(port);
    client.send("GET /s HTTP/1.1\r\nUser-Agent: UA\r\nX");
    assert!(client.ended());
    let line = last(&server, "second.log", 1);
    assert_eq!(line, "408|GET /s HTTP/1.1|https|UA");
}

/// Heads that are refused.
const REFUSED: [Case; 16] = [
    (
        "GET /x?q HTTP/1.1\r\nUser-Agent: UA\r\nHost: b.example/\r\n\r\n",
        "client sent invalid host header",
        "first.log",
        "400|GET /x?q HTTP/1.1|GET|/x|/x|HTTP/1.1|b.example/|UA|53",
    ),
    (
        "GET http://a..b/x HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "client sent invalid host in request line",
        "first.log",
        "400|GET http://a..b/x HTTP/1.1|GET|/x|/x|HTTP/1.1|-|-|28",
    ),
    (
        "GET /x HTTP/1.1\r\nUser-Agent: UA\r\n\r\n",
        "client sent HTTP/1.1 request without \"Host\" header",
        "first.log",
        "400|GET /x HTTP/1.1|GET|/x|/x|HTTP/1.1|-|UA|35",
    ),
    (
        "GET /x HTTP/1.1\r\nHost: b.example\r\nhost: c\r\n\r\n",
        "client sent duplicate host header: \"host: c\", previous value: \"Host: b.example\"",
        "second.log",
        "400|GET /x HTTP/1.1|GET|/x|/x|HTTP/1.1|b.example|-|43",
    ),
    (
        "GET /x HTTP/1.1\r\nHost: b.example\r\nBad Name: x\r\n\r\n",
        "client sent invalid header line: \"Bad\\x20...\"",
        "second.log",
        "400|GET /x HTTP/1.1|GET|/x|/x|HTTP/1.1|b.example|-|34",
    ),
    (
        "GET /x HTTP/1.1\r\nHost: b.example\r\nX: \u{e9}\0b\r\n\r\n",
        "client sent invalid header line: \"X: \u{e9}\\x00...\"",
        "second.log",
        "400|GET /x HTTP/1.1|GET|/x|/x|HTTP/1.1|b.example|-|34",
    ),
    (
        "GET /x HTTP/1.1\r\nHost: b.example\r\n: y\r\n\r\n",
        "client sent invalid header line: \"\\x3a...\"",
        "second.log",
        "400|GET /x HTTP/1.1|GET|/x|/x|HTTP/1.1|b.example|-|34",
    ),
    (
        "POST /x HTTP/1.1\r\nHost: b.example\r\nTransfer-Encoding: gzip\r\n\r\n",
        "client sent unknown \"Transfer-Encoding\": \"gzip\"",
        "second.log",
        "501|POST /x HTTP/1.1|POST|/x|/x|HTTP/1.1|b.example|-|62",
    ),
    (
        "POST /x HTTP/1.1\r\nHost: b.example\r\nTransfer-Encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
        "client sent duplicate header line: \"transfer-encoding: chunked\", previous value: \"Transfer-Encoding: chunked\"",
        "second.log",
        "400|POST /x HTTP/1.1|POST|/x|/x|HTTP/1.1|b.example|-|91",
    ),
    (
        "POST /x HTTP/1.1\r\nHost: b.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "client sent duplicate header line: \"Content-Length: 2\", previous value: \"Content-Length: 1\"",
        "second.log",
        "400|POST /x HTTP/1.1|POST|/x|/x|HTTP/1.1|b.example|-|73",
    ),
    (
        "GET /x HTTP/1.1\r\nHost: b.example\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n",
        "client sent duplicate header line: \"Authorization: b\", previous value: \"Authorization: a\"",
        "second.log",
        "400|GET /x HTTP/1.1|GET|/x|/x|HTTP/1.1|b.example|-|70",
    ),
    (
        "POST /x HTTP/1.1\r\nHost: b.example\r\nContent-Length: 1x\r\n\r\n",
        "client sent invalid \"Content-Length\" header",
        "second.log",
        "400|POST /x HTTP/1.1|POST|/x|/x|HTTP/1.1|b.example|-|57",
    ),
    (
        "TRACE /x HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "client sent TRACE method",
        "second.log",
        "405|TRACE /x HTTP/1.1|TRACE|/x|/x|HTTP/1.1|b.example|-|38",
    ),
    (
        "get /x HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "client sent invalid method",
        "first.log",
        "400|get /x HTTP/1.1|-|-|-|-|-|-|0",
    ),
    (
        "POST /x\r\n",
        "client sent invalid method in HTTP/0.9 request",
        "first.log",
        "400|POST /x|-|-|-|-|-|-|0",
    ),
    (
        "GET /x\r\n",
        "",
        "first.log",
        "200|GET /x|GET|/x|/x|-|-|-|8",
    ),
];

#[test]
fn refused_head_is_logged_with_its_fault_and_all_that_came_before() {
    let server = site("").start();
    let mut counts = [0, 0];
    for (sent, why, file, line) in REFUSED {
        server.client().send(sent).rest();
        let count = &mut counts[usize::from(file == "second.log")];
        *count += 1;
        assert_eq!(last(&server, file, *count), line, "{sent:?}");
        let errors = errors(&server);
        let said =
            |text: &String| text.starts_with(&format!("{why} while reading client request "));
        assert!(
            why.is_empty() || errors.iter().any(said),
            "{why}: {errors:#?}"
        );
    }
}

#[test]
fn head_that_is_too_large_is_logged_with_its_beginning() {
    let server = site("").start();
    let path = "a".repeat(9000);
    server
        .client()
        .send(format!("GET /{path} HTTP/1.1\r\n\r\n"))
        .rest();
    let line = last(&server, "first.log", 1);
    assert!(
        line.starts_with("414|GET /aaaa") && line.ends_with("a|-|-|-|-|-|-|0"),
        "{line}"
    );
    server.wait_for_text(
        "error.log",
        &format!("client sent too long URI while {LINE}"),
    );
    let head = format!("GET /x HTTP/1.1\r\nHost: b.example\r\nX-Long: {path}\r\n\r\n");
    server.client().send(head).rest();
    let line = last(&server, "second.log", 1);
    assert_eq!(
        line,
        "400|GET /x HTTP/1.1|GET|/x|/x|HTTP/1.1|b.example|-|34"
    );
    // nginx shows this many bytes of the line.
    let shown = &path[..1748 - "X-Long: ".len()];
    let text = format!("client sent too long header line: \"X-Long: {shown}...\" while reading");
    server.wait_for_text("error.log", &text);
}

#[test]
fn header_line_that_is_dropped_is_named() {
    let server = site("").start();
    let fields = "X(Y): 1\r\nZ_Z: 2\r\nConnection: close\r\n";
    let head = format!("GET /x HTTP/1.1\r\nHost: b.example\r\n{fields}\r\n");
    assert!(
        server
            .client()
            .send(head)
            .rest()
            .starts_with(b"HTTP/1.1 200")
    );
    last(&server, "second.log", 1);
    let place = format!("{HEADERS}b.example, request: \"GET /x HTTP/1.1\", host: \"b.example\"");
    let errors = errors(&server);
    for line in ["X(Y): 1", "Z_Z: 2"] {
        let text = format!("client sent invalid header line: \"{line}\" while {place}");
        assert!(errors.contains(&text), "{text}: {errors:#?}");
    }
}

#[test]
fn terminal_escapes_of_a_faulty_head_stay_escaped() {
    let server = site("").start();
    let head = "GET /x HTTP/1.1\r\nHost: b.example\r\nX(\u{9b}2J): 1\r\nB\x1b[31m: y\r\n\r\n";
    server.client().send(head).rest();
    let log = server.wait_for_text("error.log", "invalid header line: \"B\\x1b...\"");
    assert!(
        log.contains("invalid header line: \"X(\\xC2\\x9B2J): 1\""),
        "{log}"
    );
    assert!(!log.contains(['\x1b', '\u{9b}']), "{log}");
}

#[test]
fn connection_that_ends_without_a_request_is_logged_with_its_listener() {
    let server = site("client_header_timeout 100ms;").start();
    server.client().finish_sending().rest();
    let place = format!("client: 127.0.0.1, server: 127.0.0.1:{}\n", server.port());
    let text = format!("client closed connection while waiting for request, {place}");
    server.wait_for_text("error.log", &text);
    server.client().rest();
    let timed_out = "client timed out (110: Connection timed out)";
    let text = format!("{timed_out} while waiting for request, {place}");
    server.wait_for_text("error.log", &text);
}

#[test]
fn kept_connection_that_its_client_closes_is_logged_alone() {
    let server = site("").start();
    let mut client = server.client();
    client.get("/");
    drop(client);
    server.wait_for_text(
        "error.log",
        " client 127.0.0.1 closed keepalive connection\n",
    );
}

#[test]
fn broken_header_of_the_proxy_protocol_is_logged_with_the_listener() {
    let server =
        Server::http("server { listen 127.0.0.1:%%PORT%% proxy_protocol; server_name first; }")
            .start();
    server.client().send("PROXY \u{e9}\x1b x\r\n").rest();
    let place = format!("client: 127.0.0.1, server: 127.0.0.1:{}\n", server.port());
    let text =
        format!("broken header: \"PROXY \u{e9}\\x1B x\" while reading PROXY protocol, {place}");
    server.wait_for_text("error.log", &text);
}
