//! Heads of responses: typical output of servers, refused input, and limits at the byte.

use super::*;

#[test]
fn all_fields_are_told_verbatim_and_in_order() {
    assert_eq!(
        told(
            "HTTP/1.1 200 OK\r\nX-B: 1\r\nConnection: x, keep-alive\r\nx-b:2 \r\nKeep-Alive: 5\r\n\
             SET-Cookie: \t a=b;\tc \t\r\nUpgrade: h2c\r\nTrailer: x\r\nContent-Length: 0\r\n\r\n"
        ),
        [
            "200 X-B=1 Connection=x, keep-alive x-b=2 Keep-Alive=5 SET-Cookie=a=b;\tc Upgrade=h2c \
             Trailer=x Content-Length=0",
            "end 0"
        ]
    );
}

#[test]
fn heads_are_read_as_nginx_reads_them() {
    let end = "Content-Length: 0\r\n\r\n";
    for (head, line) in [
        ("HTTP/1.1 200\r\n", "200"),
        ("HTTP/1.1 200 \r\n", "200"),
        ("HTTP/1.1 200 OK\n", "200"),
        ("HTTP/1.1   403.12 Forbidden\r\n", "403"),
        ("HTTP/1.1 999 What \u{fc} is\tthis?\x01\r\n", "999"),
        ("HTTP/1.0 200 OK\r\n", "200"),
        ("HTTP/1.2 200 OK\r\n", "200"),
        ("HTTP/1.10 200 OK\r\n", "200"),
        ("HTTP/1.1 200 OK\r\nHTTP/1.1 301 Moved\r\n", "200"),
        ("HTTP/1.1 200 OK\r\nno-colon\r\n", "200 no-colon="),
        ("HTTP/1.1 200 OK\r\nX-Empty:\r\n", "200 X-Empty="),
        (
            "HTTP/1.1 200 OK\r\nx_y(z)\u{e4}: a\x01\x7f\r\n",
            "200 x_y(z)\u{e4}=a\x01\x7f",
        ),
        ("HTTP/1.1 200 OK\r\nHTTP: a\r\n", "200 HTTP=a"),
        ("HTTP/1.1 200 OK\nA: b\r\nC:d\n", "200 A=b C=d"),
    ] {
        let lines = told(&format!("{head}{end}"));
        let wanted = format!("{line} Content-Length=0");
        assert_eq!(lines, [wanted.as_str(), "end 0"], "{head:?}");
    }
    assert_eq!(told("HTTP/1.1 204 No\n\n"), ["204", "end 0"]);
}

#[test]
fn phrases_are_the_servers() {
    for (line, phrase) in [
        ("200 Very good", "Very good"),
        ("200  two ", " two "),
        ("200 ", ""),
        ("200", ""),
        ("403.12 Forbidden", "Forbidden"),
        ("599 Own", "Own"),
    ] {
        let mut client = asked("GET");
        client.receive(b"HTTP/1.1 100 Go on\r\n\r\n");
        client.receive(format!("HTTP/1.1 {line}\r\nA: b\r\n\r\n").as_bytes());
        client.event();
        let Some(ClientEvent::Head { head, .. }) = client.event() else {
            panic!("a head is due")
        };
        assert_eq!(head.phrase(), phrase.as_bytes(), "{line:?}");
    }
}

#[test]
fn status_lines_that_are_none_are_refused() {
    for (line, error) in [
        ("HTTP/2 200 OK", "BadStatusLine"),
        ("HTTP/2.0 200 OK", "BadStatusLine"),
        ("HTTP/0.9 200 OK", "BadStatusLine"),
        ("HTTP/1. 200 OK", "BadStatusLine"),
        ("HTTP/1.x 200 OK", "BadStatusLine"),
        ("HTTP/1.100 200 OK", "BadStatusLine"),
        ("HTTP/1.1", "BadStatusLine"),
        ("HTTP/1.1 ", "BadStatusLine"),
        ("HTTP/1.1\t200 OK", "BadStatusLine"),
        ("HTTP/1.1 2000 OK", "BadStatusLine"),
        ("HTTP/1.1 20 OK", "BadStatusLine"),
        ("HTTP/1.1 -20 OK", "BadStatusLine"),
        ("HTTP/1.1 200OK", "BadStatusLine"),
        ("HTTP/1.1 200 O\0K", "BadStatusLine"),
        ("HTTP/1.1 200 O\rK", "BadStatusLine"),
        ("HTTP/1.1 099 Low", "BadStatus"),
        ("HTTP/1.1 000", "BadStatus"),
        ("http/1.1 200 OK", "NotHttp"),
        ("HTTQ", "NotHttp"),
        ("<html>", "NotHttp"),
        ("HTT", "NotHttp"),
        ("", "NotHttp"),
    ] {
        assert_eq!(told(&format!("{line}\r\n\r\n")), [error], "{line:?}");
    }
    assert_eq!(told("\0"), ["NotHttp"], "it is told at the first byte");
    assert_eq!(failure("hello"), "sent no valid HTTP/1.0 header");
    assert_eq!(failure("HTTP/1.1 099\r\n"), "sent invalid status");
}

/// Ambiguous input ends the connection.
#[test]
fn heads_that_can_be_read_in_two_ways_are_refused() {
    let same = "sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time";
    for (lines, words) in [
        (
            "Content-Length: 1\r\nContent-Length: 1",
            "sent duplicate header line: \"Content-Length\"",
        ),
        (
            "Content-Length: 1, 1",
            "sent invalid \"Content-Length\" header",
        ),
        (
            "Content-Length: +1",
            "sent invalid \"Content-Length\" header",
        ),
        (
            "Content-Length: 9223372036854775808",
            "sent invalid \"Content-Length\" header",
        ),
        ("Content-Length:", "sent invalid \"Content-Length\" header"),
        ("Content-Length", "sent invalid \"Content-Length\" header"),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked", same),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0", same),
        (
            "Transfer-Encoding: gzip, chunked",
            "sent unknown \"Transfer-Encoding\"",
        ),
        (
            "Transfer-Encoding: identity",
            "sent unknown \"Transfer-Encoding\"",
        ),
        (
            "Transfer-Encoding: \x0bchunked",
            "sent unknown \"Transfer-Encoding\"",
        ),
        (
            "Transfer-Encoding: \u{a0}chunked",
            "sent unknown \"Transfer-Encoding\"",
        ),
        ("Transfer-Encoding", "sent unknown \"Transfer-Encoding\""),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "sent duplicate header line: \"Transfer-Encoding\"",
        ),
        ("Content-Length : 1", "sent invalid header"),
        ("X: a\r\n folded", "sent invalid header"),
        ("X: a\r\n\tfolded", "sent invalid header"),
        (": a", "sent invalid header"),
        ("two words: a", "sent invalid header"),
        ("X\x01: a", "sent invalid header"),
        ("X\0: a", "sent invalid header"),
        ("X: a\rb", "sent invalid header"),
        ("X: a\r", "sent invalid header"),
        ("X: a\0", "sent invalid header"),
        ("HTTP/1.1 \0", "sent invalid header"),
        ("HTTP/1.1 a\rb", "sent invalid header"),
    ] {
        let input = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
        let told = told(&input);
        assert!(
            matches!(&told[..], [only] if only.starts_with("Head(")),
            "{lines:?}: {told:?}"
        );
        assert_eq!(failure(&input), words, "{lines:?}");
    }
}

/// nginx takes it; RFC 9112 section 6.1 calls it faulty.
#[test]
fn coding_in_a_response_of_http10_is_refused() {
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(told(old), ["Head(EncodingInHttp10)"]);
    let options = RequestOptions {
        http10: true,
        ..RequestOptions::default()
    };
    let to_http10 = told_by(
        || asked_with("GET", &[], options),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    );
    assert_eq!(to_http10, ["200 Transfer-Encoding=chunked", "+x", "end 1"]);
}

#[test]
fn heads_and_trailers_are_limited_at_the_byte() {
    let told = |head_bytes: usize, input: &str| {
        let options = RequestOptions {
            head_bytes,
            ..RequestOptions::default()
        };
        let lines = told_by(|| asked_with("GET", &[], options), input);
        lines.last().cloned().unwrap_or_default()
    };
    let head = "HTTP/1.1 204 No\r\nA: b\r\nC: d\r\n\r\n";
    assert_eq!(told(head.len(), head), "end 0");
    assert_eq!(told(head.len() - 1, head), "Head(HeaderTooLarge)");
    // Each interim response has the limit for itself.
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    assert_eq!(told(hints.len(), &format!("{hints}{hints}{head}")), "end 0");
    assert_eq!(told(hints.len() - 1, hints), "Head(HeaderTooLarge)");
    let chunked = "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    let trailers = |len: usize| format!("{chunked}A: {}\r\n\r\n", "x".repeat(len - 7));
    assert_eq!(told(64, &trailers(64)), "end 0");
    assert_eq!(told(64, &trailers(65)), "Body(TrailerTooLarge)");
    // The default, with as many fields as fit.
    let lines = ((64 << 10) - "HTTP/1.1 204\n\n".len()) / 3;
    let rest = ((64 << 10) - "HTTP/1.1 204\n\n".len()) % 3;
    let many = |more| {
        format!(
            "HTTP/1.1 204{}\n{}\n",
            " ".repeat(more),
            "a:\n".repeat(lines)
        )
    };
    let last = |input: &str| told_to(asked("GET"), input).pop();
    assert_eq!(last(&many(rest)).as_deref(), Some("end 0"));
    assert_eq!(failure(&many(rest + 1)), "sent too big header");
}

#[test]
fn interim_responses_come_before_the_response_and_are_bounded() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    assert_eq!(
        told(&format!(
            "HTTP/1.1 100\r\n\r\n{early}HTTP/1.1 204 No Content\r\n\r\n"
        )),
        ["100", "103", "204", "end 0"]
    );
    let last = |times: usize| told_to(asked("GET"), &early.repeat(times)).pop();
    let limit = MAX_INTERIM as usize;
    assert_eq!(last(limit).as_deref(), Some("103"));
    assert_eq!(last(limit + 1).as_deref(), Some("TooManyInterim"));
    assert_eq!(
        failure(&early.repeat(limit + 1)),
        "sent too many interim responses"
    );
    let old = early.replace("1.1", "1.0");
    assert_eq!(failure(&old), "sent HTTP/1.0 response with early hints");
    assert_eq!(told("HTTP/1.0 100 Continue\r\n\r\n"), ["100"]);
}
