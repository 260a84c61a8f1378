//! Requests with an ambiguous end: each is refused, its connection is closed, and other clients are served.
//!
//! Sources: RFC 9112 sections 6 and 7 (message body length, chunked coding) and nginx's responses. The locations answer
//! by themselves, so a body is only read to find the end of the request.

use firstbyte_tests::cases::{Case, Since, check};
use firstbyte_tests::{Client, Server};

const HTTP: &str = "
    server {
        listen 127.0.0.1:%%PORT%%;
        location / { root %%DIR%%/html; }
        location /return { return 200 ok; }
    }";

fn server() -> Server {
    Server::http(HTTP)
        .file("html/index.html", "welcome")
        .start()
}

/// A POST with the given header lines (`\n` becomes CRLF) and body.
fn post(lines: &str, body: &str) -> Vec<u8> {
    let lines = lines.replace('\n', "\r\n");
    format!("POST /return HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n{body}").into_bytes()
}

/// A chunked body, sent to a `return` and to a file.
fn chunked(name: &str, body: &str, since: Since) -> [Case; 2] {
    let head = "HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    ["POST /return", "GET /index.html"].map(|target| {
        Case::new(
            format!("{name} ({target})"),
            format!("{target} {head}{body}"),
            &[400],
        )
        .since(since)
    })
}

#[test]
fn length_beside_chunked_is_400() {
    let chunk = "5\r\nhello\r\n0\r\n\r\n";
    let both = "POST /return HTTP/1.0\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    let old = "POST /return HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(
        &server(),
        &[
            Case::new(
                "length first",
                post("Content-Length: 5\nTransfer-Encoding: chunked", chunk),
                &[400],
            ),
            Case::new(
                "chunked first",
                post("Transfer-Encoding: chunked\nContent-Length: 5", chunk),
                &[400],
            ),
            Case::new(
                "length of zero",
                post("Content-Length: 0\nTransfer-Encoding: chunked", chunk),
                &[400],
            ),
            Case::new("both on HTTP/1.0", format!("{both}{chunk}"), &[400]),
            Case::new("encoding on HTTP/1.0", format!("{old}{chunk}"), &[400]),
        ],
    );
}

#[test]
fn content_length_that_is_not_one_number_is_400() {
    let mut cases = vec![
        Case::new(
            "two equal",
            post("Content-Length: 5\nContent-Length: 5", "hello"),
            &[400],
        ),
        Case::new(
            "two different",
            post("Content-Length: 5\nContent-Length: 6", "hello"),
            &[400],
        ),
        Case::new(
            "two, other case",
            post("content-length: 5\nCONTENT-LENGTH: 5", "hello"),
            &[400],
        ),
    ];
    for value in [
        "1, 1",
        "1 1",
        "+1",
        "-1",
        "0x1",
        "1Z",
        "1_0",
        "1.0",
        "\"1\"",
        "",
        "18446744073709551616",
        "9223372036854775808",
        "99999999999999999999999999",
    ] {
        cases.push(Case::new(
            format!("{value:?}"),
            post(&format!("Content-Length: {value}"), "1"),
            &[400],
        ));
    }
    check(&server(), &cases);
}

#[test]
fn space_before_the_colon_is_400() {
    check(
        &server(),
        &[
            Case::new("length", post("Content-Length : 1", "1"), &[400]),
            Case::new("length, tab", post("Content-Length\t: 1", "1"), &[400]),
            Case::new(
                "encoding",
                post("Transfer-Encoding : chunked", "0\r\n\r\n"),
                &[400],
            ),
            Case::new("any other", post("X-Any : 1", ""), &[400]),
        ],
    );
}

#[test]
fn transfer_encoding_other_than_chunked_is_501() {
    let mut cases = Vec::new();
    for value in [
        "identity",
        "chunked, identity",
        "xchunked",
        "chunkedx",
        ",chunked",
        "chunked,",
        "chunked, chunked",
        "gzip, chunked",
        "chunked;q=1",
        "\u{b}chunked",
        "\"chunked\"",
        "",
    ] {
        let input = post(&format!("Transfer-Encoding: {value}"), "0\r\n\r\n");
        // firstbyte alone refuses control bytes in values before it checks the encoding.
        let own = value.contains('\u{b}') && firstbyte_tests::peer::is_firstbyte();
        cases.push(Case::new(
            format!("{value:?}"),
            input,
            &[if own { 400 } else { 501 }],
        ));
    }
    let mut raw = post("Transfer-Encoding: @chunked", "0\r\n\r\n");
    let at = raw
        .iter()
        .position(|&b| b == b'@')
        .expect("the marker was just written");
    raw[at] = 0xA0;
    cases.push(Case::new("0xA0 before chunked", raw, &[501]));
    let twice = post(
        "Transfer-Encoding: chunked\nTransfer-Encoding: chunked",
        "0\r\n\r\n",
    );
    cases.push(Case::new("twice", twice, &[400]));
    check(&server(), &cases);
}

#[test]
fn transfer_encoding_name_is_case_insensitive_and_value_too() {
    let server = server();
    for line in [
        "transfer-encoding: chunked",
        "TRANSFER-ENCODING: CHUNKED",
        "Transfer-Encoding:chunked",
    ] {
        let mut client = server.client();
        assert_eq!(
            client
                .send(post(line, "5\r\nhello\r\n0\r\n\r\n"))
                .response()
                .text(),
            "ok",
            "{line}"
        );
        assert_eq!(
            client.get("/return").text(),
            "ok",
            "the body of {line:?} was read to its end"
        );
    }
}

#[test]
fn malformed_chunk_size_is_400() {
    let mut cases = Vec::new();
    for size in [
        "0x1",
        "+1",
        "-1",
        "1Z",
        "0_2e",
        " 1",
        "",
        "\t1",
        ";a",
        "G",
        "12345678901234567",
    ] {
        cases.extend(chunked(
            &format!("size {size:?}"),
            &format!("{size}\r\nx\r\n0\r\n\r\n"),
            Since::Always,
        ));
    }
    check(&server(), &cases);
}

#[test]
fn malformed_line_end_in_a_chunked_body_is_400() {
    let mut cases = Vec::new();
    for (name, body, since) in [
        ("LF after size", "1\nx\r\n0\r\n\r\n", Since::Nginx(31)),
        ("LF after data", "1\r\nx\n0\r\n\r\n", Since::Nginx(31)),
        (
            "LF after the last chunk",
            "1\r\nx\r\n0\n\r\n",
            Since::Nginx(31),
        ),
        (
            "LF after an extension",
            "1;a=b\nx\r\n0\r\n\r\n",
            Since::Nginx(31),
        ),
        (
            "CR inside an extension",
            "1;a\rb\r\nx\r\n0\r\n\r\n",
            Since::Nginx(31),
        ),
        ("XX after data", "1\r\nxXX0\r\n\r\n", Since::Always),
        (
            "more data than the size",
            "1\r\nxy\r\n0\r\n\r\n",
            Since::Always,
        ),
        ("CR alone after data", "1\r\nx\r0\r\n\r\n", Since::Always),
    ] {
        cases.extend(chunked(name, body, since));
    }
    check(&server(), &cases);
}

#[test]
fn malformed_chunk_extension_is_400() {
    let long = format!("1;a={}\r\nx\r\n0\r\n\r\n", "b".repeat(64 * 1024));
    let mut cases = Vec::new();
    for (name, body) in [
        ("bare semicolon", "1;\r\nx\r\n0\r\n\r\n"),
        ("control byte", "1;a=\u{1}\r\nx\r\n0\r\n\r\n"),
        ("NUL", "1;a=\0\r\nx\r\n0\r\n\r\n"),
        ("64 KiB", &long),
    ] {
        cases.extend(chunked(name, body, Since::Ours));
    }
    check(&server(), &cases);
}

#[test]
fn trailer_line_without_colon_is_400() {
    let cases = chunked("no colon", "1\r\nx\r\n0\r\nnonsense\r\n\r\n", Since::Ours);
    check(&server(), &cases);
}

#[test]
fn well_formed_chunked_bodies_are_read_to_their_end() {
    let server = server();
    for body in [
        "0\r\n\r\n",
        "1\r\nx\r\n0\r\n\r\n",
        "0001\r\nx\r\n000\r\n\r\n",
        "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n",
        "1;name=value\r\nx\r\n0\r\n\r\n",
        "1;name=\"quoted; value\"\r\nx\r\n0;last\r\n\r\n",
        "1\r\nx\r\n0\r\nX-Trailer: one\r\nX-Other: two\r\n\r\n",
    ] {
        let mut client = server.client();
        let answer = client
            .send(post("Transfer-Encoding: chunked", body))
            .response();
        assert_eq!(answer.status, 200, "{body:?}");
        assert_eq!(client.get("/return").status, 200, "after {body:?}");
    }
}

#[test]
fn nothing_after_a_refused_request_is_answered() {
    let good = "GET /return HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let bad = "POST /return HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 1\r\n\r\n1";
    let bad_chunk =
        "POST /return HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n";
    check(
        &server(),
        &[
            Case::new("good, bad", format!("{good}{bad}"), &[200, 400]),
            Case::new("good, bad, good", format!("{good}{bad}{good}"), &[200, 400]),
            Case::new(
                "good, good, bad chunk, good",
                format!("{good}{good}{bad_chunk}{good}"),
                &[200, 200, 400],
            ),
            Case::new("bad, good", format!("{bad}{good}"), &[400]),
        ],
    );
}

#[test]
fn a_body_is_never_taken_for_a_request() {
    let server = server();
    let inner = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let length = post(&format!("Content-Length: {}", inner.len()), inner);
    let chunk = post(
        "Transfer-Encoding: chunked",
        &format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len()),
    );
    for input in [length, chunk] {
        let mut client = server.client();
        assert_eq!(client.send(&input).response().status, 200);
        assert_eq!(client.get("/return").text(), "ok");
    }
    assert!(!server.dir().read("access.log").contains("smuggled"));
}

#[test]
fn a_fault_in_a_body_that_comes_late_closes_the_connection() {
    let server = server();
    let mut client = server.client();
    client.send(post("Transfer-Encoding: chunked", "5\r\nhe"));
    assert_eq!(
        client.response().status,
        200,
        "the answer does not wait for the body"
    );
    client.send("llo\r\nZ\r\nGET /return HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(
        client.closed(),
        "the broken body ends the connection without another answer"
    );
}

#[test]
fn a_length_sent_in_pieces_is_the_same_request() {
    let server = server();
    let input = post("Content-Length: 5\nX-After: 1", "hello");
    let mut client: Client = server.client();
    for byte in &input {
        client.send([*byte]);
    }
    assert_eq!(client.response().text(), "ok");
    assert_eq!(client.get("/return").text(), "ok");
}
