//! Heads.

use super::*;

#[test]
fn a_status_comes_from_its_field_a_location_or_nowhere() {
    for (head, wanted) in [
        (
            "Status: 404 Not Found\r\nA: b\r\n",
            "404 Status=404 Not Found A=b",
        ),
        ("A: b\nSTATUS:404\n", "404 A=b STATUS=404"),
        ("A:\tb\t\r\nStatus:\t404 \t\r\n", "404 A=b Status=404"),
        ("Location: /x\r\n", "302 Location=/x"),
        (
            "Location: /x\r\nStatus: 201 Created\r\n",
            "201 Location=/x Status=201 Created",
        ),
        (
            "Content-Type: text/plain\r\n",
            "200 Content-Type=text/plain",
        ),
        ("no-colon\r\n", "200 no-colon="),
        ("X-Status: 404\r\n", "200 X-Status=404"),
        ("Status: 999\r\n", "999 Status=999"),
        ("", "200"),
    ] {
        assert_eq!(told(&format!("{head}\r\n")), [wanted, "end 0"], "{head:?}");
    }
}

/// Servers of uwsgi answer with the version of the request, that of HTTP/2 among them.
#[test]
fn a_status_line_of_http_is_taken() {
    for (head, wanted) in [
        ("HTTP/1.1 404 Not Found\r\nA: b\r\n", "404 A=b"),
        ("HTTP/1.0 404\n", "404"),
        ("HTTP/2.0 503 Busy\r\n", "503"),
        ("HTTP/3.0 503 Busy\r\n", "503"),
        ("HTTP/1.1 404 No\r\nStatus: 200 OK\r\n", "404 Status=200 OK"),
        ("HTTP/1.1 404 No\r\nStatus: what\r\n", "404 Status=what"),
        ("HTTP/1.1 404 No\r\nHTTP/1.1 200 OK\r\n", "404"),
        ("HTTP/1.1 200 OK\r\nLocation: /x\r\n", "200 Location=/x"),
        ("HTTP: a\r\n", "200 HTTP=a"),
        ("HTT: a\r\n", "200 HTT=a"),
    ] {
        assert_eq!(told(&format!("{head}\r\n")), [wanted, "end 0"], "{head:?}");
    }
}

#[test]
fn fastcgi_skips_a_status_line() {
    let mut parser = HeadParser::new(100, StatusLine::Skipped);
    let head = b"HTTP/1.1 404 No\r\nStatus: 201 So\r\nA: b\r\n\r\nbody";
    assert!(parser.is_fresh());
    assert_eq!(parser.advance(head), Ok((head.len() - 4, true)));
    let parsed = parser.take(Box::default()).expect("a head");
    assert_eq!((parsed.head.status, parsed.head.fields.len()), (201, 2));
    assert_eq!(parsed.size_bytes, head.len() as u64 - 4);
    assert!(parser.is_fresh());
}

#[test]
fn phrases_are_the_servers() {
    for (line, phrase) in [
        ("Status: 200 Very good", "Very good"),
        ("Status: 599 Own", "Own"),
        ("Status: 404", "Not Found"),
        ("Status: 404 ", "Not Found"),
        ("HTTP/1.1 404 Nowhere", "Nowhere"),
        ("A: b", "OK"),
        ("Location: b", "Moved Temporarily"),
    ] {
        let mut client = asked("GET");
        client.receive(format!("{line}\r\n\r\n").as_bytes());
        let Some(client::Event::Head { head, .. }) = client.event() else {
            panic!("a head is due")
        };
        let shown = String::from_utf8_lossy(head.phrase()).into_owned();
        assert_eq!(shown, phrase, "{line:?}");
    }
}

#[test]
fn what_is_wrong_with_a_head_is_said() {
    for (head, words) in [
        (
            "Status: 200 OK\r\nStatus: 200 OK",
            "sent duplicate header line: \"Status\"",
        ),
        ("Status: 20", "sent invalid status"),
        ("Status:", "sent invalid status"),
        ("Status", "sent invalid status"),
        ("Status: OK", "sent invalid status"),
        ("Status: 2000", "sent invalid status"),
        ("Status: 200OK", "sent invalid status"),
        ("Status: 099 Low", "sent invalid status"),
        ("Status: 100 Go on", "sent invalid status"),
        ("Status: 103 Hints", "sent invalid status"),
        ("Status: -20", "sent invalid status"),
        ("HTTP/1.1 103 Hints", "sent invalid status"),
        ("HTTP/1.1 099 Low", "sent invalid status"),
        ("Status: 101 On", "switched protocols without being asked"),
        ("HTTP/1.1 2000 OK", "sent invalid status line"),
        ("HTTP/1.1 OK", "sent invalid status line"),
        ("HTTP/2 200 OK", "sent invalid status line"),
        ("HTTP/0.9 200 OK", "sent invalid status line"),
        ("HTTP/1.1 200 O\0K", "sent invalid status line"),
        ("A: b\0c", "sent invalid header"),
        ("A\0: b", "sent invalid header"),
        ("A: b\rc", "sent invalid header"),
        ("A: b\r\r", "sent invalid header"),
        ("A b: c", "sent invalid header"),
        (": b", "sent invalid header"),
        (" A: b", "sent invalid header"),
        ("\r", "sent invalid header"),
        (
            "Content-Length: 1\r\nContent-Length: 1",
            "sent duplicate header line: \"Content-Length\"",
        ),
        (
            "Content-Length: x",
            "sent invalid \"Content-Length\" header",
        ),
        (
            "Content-Length: -1",
            "sent invalid \"Content-Length\" header",
        ),
    ] {
        for head in [head.to_owned(), format!("X: y\r\n{head}")] {
            // Behind a field a status line is skipped.
            if head.contains("X: y\r\nHTTP/") {
                continue;
            }
            assert_eq!(failure(&head), words, "{head:?}");
        }
    }
}

/// No coding is removed: nginx takes "chunked" and passes it on as the body.
#[test]
fn a_transfer_encoding_is_refused() {
    for head in [
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 1",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked",
    ] {
        let words = "sent unexpected \"Transfer-Encoding\" header";
        assert_eq!(failure(head), words, "{head:?}");
    }
}

fn failure(head: &str) -> &'static str {
    let told = told_to("GET", format!("{head}\r\n\r\nbody").as_bytes(), false);
    assert_eq!(told.len(), 1, "{head:?}: {told:?}");
    let mut client = asked("GET");
    client.receive(format!("{head}\r\n\r\n").as_bytes());
    match client.event() {
        Some(client::Event::Failed(error)) => error.message(),
        other => panic!("{head:?}: {other:?}"),
    }
}

#[test]
fn a_head_may_fill_its_limit_and_not_more() {
    let limited = |len: usize, head_bytes: usize, cut: bool| {
        let options = RequestOptions {
            head_bytes,
            ..RequestOptions::default()
        };
        let mut client = asked_with("GET", options);
        let head = format!("A: b\r\nX: {}\r\n\r\n", "y".repeat(len - 13));
        assert_eq!(head.len(), len);
        let step = if cut { 1 } else { len };
        for part in head.as_bytes().chunks(step) {
            client.receive(part);
        }
        lines(&mut client)
    };
    for cut in [false, true] {
        assert!(limited(100, 100, cut)[0].starts_with("200 A=b X=yyy"));
        assert_eq!(limited(101, 100, cut), ["HeaderTooLarge"]);
    }
    let first = |line: &str| {
        let options = RequestOptions {
            head_bytes: 20,
            ..RequestOptions::default()
        };
        let mut client = asked_with("GET", options);
        client.receive(line.as_bytes());
        lines(&mut client)
    };
    assert!(first(&format!("HTTP/1.1 200 {}", "x".repeat(6))).is_empty());
    assert_eq!(
        first(&format!("HTTP/1.1 200 {}", "x".repeat(7))),
        ["HeaderTooLarge"]
    );
}

#[test]
fn the_method_is_what_the_application_was_told() {
    assert!(is_head(&params("HEAD")));
    assert!(!is_head(&params("GET")));
    let mut twice = params("GET");
    twice.push(b"REQUEST_METHOD", b"HEAD");
    assert!(is_head(&twice), "the last one counts, as for applications");
    assert!(!is_head(&Fields::default()));
}
