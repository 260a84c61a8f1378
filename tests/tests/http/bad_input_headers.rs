//! Request lines and header fields that are refused or dropped.
//!
//! Sources: RFC 9112 sections 2, 3 and 5, RFC 9110 section 5.5, and nginx's answers.

use firstbyte_tests::cases::{Case, Since, check};
use firstbyte_tests::{Server, peer};

const HTTP: &str = "
    server {
        listen 127.0.0.1:%%PORT%%;
        server_name localhost;
        location / { return 200 ok; }
        location /x { return 200 \"x=$http_x host=$host\"; }
        location /drop { return 200 \"[$http_x_y][$http_x_1][$http_xy][$http_ok]\"; }
        location /file { root %%DIR%%/html; }
    }
    server {
        listen 127.0.0.1:%%PORT%%;
        server_name other;
        return 200 \"other $host\";
    }";

fn server() -> Server {
    Server::http(HTTP).file("html/file", "file").start()
}

/// A GET request with the given lines (`\n` becomes CRLF) after Host.
fn get(lines: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n",
        lines.replace('\n', "\r\n")
    )
}

/// Replaces `@` by a byte that has no place in a string literal.
fn with_byte(text: &str, byte: u8) -> Vec<u8> {
    text.bytes()
        .map(|b| if b == b'@' { byte } else { b })
        .collect()
}

#[test]
fn control_bytes_in_a_header_value_are_400() {
    let mut cases = vec![
        Case::new("NUL", with_byte(&get("X: a@b"), 0), &[400]),
        Case::new("NUL at the end", with_byte(&get("X: a@"), 0), &[400]),
        Case::new("CR", with_byte(&get("X: a@b"), b'\r'), &[400]),
        Case::new("CR at the start", with_byte(&get("X: @b"), b'\r'), &[400]),
        Case::new(
            "LF, then no field",
            with_byte(&get("X: a@ b"), b'\n'),
            &[400],
        ),
    ];
    for byte in [1, 2, 8, 0xb, 0xc, 0x1b, 0x1f, 0x7f] {
        let input = with_byte(&get("X: a@b"), byte);
        cases.push(Case::new(format!("byte {byte:#x}"), input, &[400]).since(Since::Ours));
    }
    check(&server(), &cases);
}

#[test]
fn bytes_above_127_and_inner_tabs_of_a_header_value_are_kept() {
    let server = server();
    let mut client = server.client();
    let input = with_byte(
        "GET /x HTTP/1.1\r\nHost: localhost\r\nX:   a\tb@c  \r\n\r\n",
        0xEF,
    );
    let answer = client.send(input).response();
    assert_eq!(answer.status, 200);
    let wanted = with_byte("x=a\tb@c", 0xEF);
    assert!(
        answer
            .body
            .starts_with(&[wanted.as_slice(), b" host"].concat()),
        "{:?}",
        answer.text()
    );
}

#[test]
fn malformed_header_lines_are_400() {
    let folded = "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n";
    let leading = "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n";
    check(
        &server(),
        &[
            Case::new("obs-fold with space", folded, &[400]),
            Case::new(
                "obs-fold with tab",
                folded.replace("\r\n b", "\r\n\tb"),
                &[400],
            ),
            Case::new("leading space, first", leading, &[400]),
            Case::new("empty name", get(": value"), &[400]),
            Case::new("space in name", get("X Y: value"), &[400]),
            Case::new("NUL in name", with_byte(&get("X@Y: value"), 0), &[400]),
            Case::new("CR in name", with_byte(&get("X@Y: value"), b'\r'), &[400]),
            Case::new("control in name", with_byte(&get("X@Y: value"), 1), &[400]),
        ],
    );
}

#[test]
fn invalid_names_are_dropped_unless_told_otherwise() {
    let server = server();
    let lines = "X_Y: underscore\r\nX(Y): bracket\r\nnocolon\r\nXY@: high\r\nX-1: kept\r\nOk: kept";
    let input = with_byte(
        &format!("GET /drop HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n"),
        0xEF,
    );
    let mut client = server.client();
    let answer = client.send(input).response();
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "[][kept][][kept]")
    );
    assert_eq!(client.get("/").status, 200, "the connection goes on");
}

#[test]
fn ignore_invalid_headers_off_keeps_what_it_can() {
    let server = Server::http(
        "ignore_invalid_headers off;
         server { listen 127.0.0.1:%%PORT%%; return 200 \"[$http_x_y][$http_ok]\"; }",
    )
    .start();
    let answer = server
        .client()
        .get_with("/", &["X_Y: underscore", "Ok: kept"]);
    assert_eq!(answer.text(), "[underscore][kept]");
}

#[test]
fn underscores_in_headers_on_keeps_them() {
    let server = Server::http(
        "underscores_in_headers on;
         server { listen 127.0.0.1:%%PORT%%; return 200 \"[$http_x_y]\"; }",
    )
    .start();
    let answer = server.client().get_with("/", &["X_Y: underscore"]);
    assert_eq!(answer.text(), "[underscore]");
}

#[test]
fn bad_host_is_400() {
    let mut cases = vec![
        Case::new("no Host", "GET / HTTP/1.1\r\n\r\n", &[400]),
        Case::new(
            "two",
            "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
            &[400],
        ),
        Case::new(
            "two different",
            "GET / HTTP/1.1\r\nHost: localhost\r\nhost: other\r\n\r\n",
            &[400],
        ),
        Case::new("empty", "GET / HTTP/1.1\r\nHost: \r\n\r\n", &[400]),
        Case::new(
            "empty on HTTP/1.0",
            "GET / HTTP/1.0\r\nHost:\r\n\r\n",
            &[400],
        )
        .since(Since::Nginx(31)),
        Case::new(
            "NUL",
            with_byte("GET / HTTP/1.1\r\nHost: local@host\r\n\r\n", 0),
            &[400],
        ),
    ];
    for (host, since) in [
        ("a/b", Since::Always),
        ("a..b", Since::Always),
        (".", Since::Always),
        ("[::1", Since::Nginx(31)),
        ("a@b", Since::Nginx(31)),
        ("a b", Since::Nginx(31)),
        ("localhost:port", Since::Nginx(31)),
        ("localhost:70000", Since::Nginx(31)),
        ("localhost:-1", Since::Nginx(31)),
        ("a,b", Since::Ours),
    ] {
        let input = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        cases.push(Case::new(format!("{host:?}"), input, &[400]).since(since));
    }
    check(&server(), &cases);
}

#[test]
fn http_10_needs_no_host() {
    let server = server();
    let mut client = server.client();
    assert_eq!(
        client.send("GET / HTTP/1.0\r\n\r\n").response().text(),
        "ok"
    );
}

#[test]
fn absolute_uri_wins_over_host_and_has_no_userinfo() {
    let server = server();
    let answer = server
        .client()
        .send("GET http://other/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .response();
    assert_eq!(answer.text(), "other other");
    let answer = server
        .client()
        .send("GET http://OTHER:80?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .response();
    assert_eq!(answer.text(), "other other");
    check(
        &server,
        &[
            Case::new(
                "userinfo",
                "GET http://u:p@other/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
                &[400],
            ),
            Case::new(
                "user",
                "GET http://u@other/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
                &[400],
            ),
            Case::new(
                "no Host still",
                "GET http://other/ HTTP/1.1\r\n\r\n",
                &[400],
            ),
            Case::new(
                "bad port",
                "GET http://other:x/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
                &[400],
            ),
        ],
    );
}

#[test]
fn versions_other_than_one_are_refused() {
    let line = |version: &str| format!("GET / {version}\r\nHost: localhost\r\n\r\n");
    check(
        &server(),
        &[
            Case::new("2.0", line("HTTP/2.0"), &[505]),
            Case::new("3.0", line("HTTP/3.0"), &[505]),
            Case::new("no minor", line("HTTP/1."), &[400]),
            Case::new("no dot", line("HTTP/1"), &[400]),
            Case::new("lower case", line("http/1.1"), &[400]),
            Case::new("leading zero", line("HTTP/01.1"), &[400]),
            Case::new("0.9 written out", line("HTTP/0.9"), &[400]),
            Case::new("another protocol", line("HTTQ/1.1"), &[400]),
            Case::new("letters", line("HTTP/1.x"), &[400]),
        ],
    );
}

#[test]
fn http_09_gets_the_body_alone() {
    let server = server();
    assert_eq!(server.client().send("GET /file\r\n").rest(), b"file");
    assert_eq!(server.client().send("GET /file\n").rest(), b"file");
}

#[test]
fn malformed_request_lines_are_400() {
    let rest = "HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut cases = vec![
        Case::new("tab separator", format!("GET\t/ {rest}"), &[400]),
        Case::new("tab after the target", format!("GET /\t{rest}"), &[400]),
        Case::new("leading space", format!(" GET / {rest}"), &[400]),
        Case::new("quoted", format!("G=\"x / {rest}"), &[400]),
        Case::new("lower case method", format!("get / {rest}"), &[400]),
        Case::new("mixed case method", format!("Get / {rest}"), &[400]),
        Case::new("no target", format!("GET {rest}"), &[400]),
        Case::new("relative target", format!("GET index {rest}"), &[400]),
        Case::new("space in target", format!("GET /a b {rest}"), &[400]),
        Case::new(
            "NUL in target",
            with_byte(&format!("GET /a@b {rest}"), 0),
            &[400],
        ),
        Case::new(
            "CR in target",
            with_byte(&format!("GET /a@b {rest}"), b'\r'),
            &[400],
        ),
        Case::new(
            "CR alone",
            "GET / HTTP/1.1\rHost: localhost\r\n\r\n",
            &[400],
        ),
        Case::new(
            "space after the version",
            "GET / HTTP/1.1 x\r\nHost: localhost\r\n\r\n",
            &[400],
        ),
        Case::new("encoded NUL", format!("GET /%00 {rest}"), &[400]),
        Case::new("bad escape", format!("GET /%zz {rest}"), &[400]),
        Case::new("half an escape", format!("GET /%4 {rest}"), &[400]),
    ];
    for byte in [1, 8, 0xb, 0x1f, 0x7f] {
        let input = with_byte(&format!("GET /a@b {rest}"), byte);
        cases.push(Case::new(
            format!("byte {byte:#x} in target"),
            input,
            &[400],
        ));
        let input = with_byte(&format!("GET /?a@b {rest}"), byte);
        cases.push(Case::new(format!("byte {byte:#x} in query"), input, &[400]));
    }
    check(&server(), &cases);
}

#[test]
fn methods_that_are_not_served_are_405_or_414() {
    let rest = "HTTP/1.1\r\nHost: localhost\r\n\r\n";
    check(
        &server(),
        &[
            Case::new(
                "10 KB method",
                format!("{} / {rest}", "A".repeat(10 * 1024)),
                &[414],
            ),
            Case::new("TRACE", format!("TRACE / {rest}"), &[405]),
            Case::new(
                "CONNECT",
                "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                &[405],
            )
            .since(Since::Nginx(31)),
        ],
    );
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    let server = server();
    let mut client = server.client();
    let answer = client
        .send("\r\n\r\n\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .response();
    assert_eq!(answer.text(), "ok");
    let answer = client
        .send("GET / HTTP/1.1\nHost: localhost\n\n")
        .response();
    assert_eq!(
        answer.text(),
        "ok",
        "LF alone ends a line of the head, as in nginx"
    );
}

#[test]
fn what_was_refused_is_in_the_error_log() {
    let server = server();
    server.client().send("G=\"x / HTTP/1.1\r\n\r\n").rest();
    server.wait_for_text(
        "error.log",
        "client sent invalid method while reading client request line",
    );
    server
        .client()
        .send("GET / HTTP/1.1\r\nX Y: 1\r\n\r\n")
        .rest();
    server.wait_for_text("error.log", "client sent invalid header line");
    let access = server.wait_for_text("access.log", "\"G=\\x22x / HTTP/1.1\" 400");
    assert!(access.contains("127.0.0.1 - -"), "{access}");
    assert!(
        peer::is_firstbyte() || access.ends_with("\"-\" \"-\"\n"),
        "{access}"
    );
}
