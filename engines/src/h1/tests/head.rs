//! Parsing of heads, and their errors.

use super::*;
use crate::http::{Method, Version};

#[test]
fn a_head_has_line_target_fields_and_size() {
    let input = "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nX-Y:  z \r\n\r\n";
    let head = head(input);
    assert_eq!(head.method, Method::Get);
    assert_eq!(head.bytes(head.line), b"GET /a?b=c HTTP/1.1");
    assert_eq!(head.bytes(head.method_name), b"GET");
    assert_eq!(head.bytes(head.target), b"/a?b=c");
    assert_eq!(head.version, Version::Http11);
    assert_eq!(head.field(FieldId::Host), Some(&b"example.com"[..]));
    assert_eq!(head.named(b"x-y").collect::<Vec<_>>(), [b"z"]);
    assert_eq!(head.size_bytes, input.len() as u64);
    assert_eq!(head.body, BodyLength::None);
    assert!(!head.close && !head.keep_alive && !head.expect_continue);
}

/// RFC 9112 section 2.2: a recipient may take a bare LF for a line end, and
/// should ignore empty lines before the request line.
#[test]
fn bare_line_feeds_and_empty_lines_before_the_request_are_accepted() {
    let head = head("\r\n\n\r\nGET / HTTP/1.0\nHost: h\n\n");
    assert_eq!(head.bytes(head.line), b"GET / HTTP/1.0");
    assert_eq!(head.field(FieldId::Host), Some(&b"h"[..]));
    assert_eq!(head.size_bytes, 24);
}

#[test]
fn http09_is_one_line_and_can_be_switched_off() {
    let head = head("GET /x\r\n");
    assert_eq!(head.version, Version::Http09);
    assert!(head.close);
    let off = Settings {
        allow_http09: false,
        ..Settings::default()
    };
    assert_eq!(fault_with(b"GET /x\r\n", off), Some(Fault::BadVersion));
    assert_eq!(fault("POST /x\r\n"), Some(Fault::MethodInHttp09));
}

/// RFC 9112 section 3.2.2: the target's authority wins; the target given on is
/// its origin form.
#[test]
fn absolute_form_gives_origin_form_and_authority() {
    for (target, path) in [
        ("http://h:80/p?q", "/p?q"),
        ("http://h:80", "/"),
        ("http://h:80?q", "/?q"),
        ("HTTP://h:80/", "/"),
    ] {
        let head = head(&format!("GET {target} HTTP/1.1\r\nHost: other\r\n\r\n"));
        assert_eq!(head.bytes(head.target), path.as_bytes(), "{target}");
        assert_eq!(head.bytes(head.authority.get().unwrap()), b"h:80");
        assert!(
            head.bytes(head.scheme.get().unwrap())
                .eq_ignore_ascii_case(b"http")
        );
        assert_eq!(head.bytes(head.fields[0].value), b"other");
    }
    assert_eq!(
        fault("GET http://h..h/ HTTP/1.1\r\nHost: h\r\n\r\n"),
        Some(Fault::BadHost)
    );
    assert_eq!(
        fault("GET http:///x HTTP/1.1\r\nHost: h\r\n\r\n"),
        Some(Fault::BadHost)
    );
    let userinfo = fault("GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(userinfo, Some(Fault::BadRequestLine));
}

#[test]
fn options_asterisk_keeps_its_target() {
    let head = head("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(head.bytes(head.target), b"*");
}

#[test]
fn trace_and_connect_are_not_allowed() {
    assert_eq!(
        fault("TRACE / HTTP/1.1\r\nHost: h\r\n\r\n"),
        Some(Fault::TraceForbidden)
    );
    let trace = Settings {
        allow_trace: true,
        ..Settings::default()
    };
    assert_eq!(fault_with(b"TRACE / HTTP/1.0\r\n\r\n", trace), None);
    let input = "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(fault(input), Some(Fault::ConnectForbidden));
    let head = next_head(&mut after(input));
    assert_eq!(head.bytes(head.target), b"/");
    assert_eq!(head.bytes(head.authority.get().unwrap()), b"h:80");
    assert_eq!(
        fault("CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n"),
        Some(Fault::BadRequestLine)
    );
}

/// RFC 9112 section 3.2.
#[test]
fn http11_needs_exactly_one_valid_host() {
    assert_eq!(fault("GET / HTTP/1.1\r\n\r\n"), Some(Fault::MissingHost));
    assert_eq!(
        fault("GET http://h/ HTTP/1.1\r\n\r\n"),
        Some(Fault::MissingHost)
    );
    assert_eq!(fault("GET / HTTP/1.0\r\n\r\n"), None);
    assert_eq!(fault_of_lines("Host: h"), Some(Fault::DuplicateHost));
    for host in ["", " ", "a/b", "a@b", "a,b", "a:99999", "a..b"] {
        let input = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(fault(&input), Some(Fault::BadHost), "{host:?}");
    }
    assert_eq!(
        fault("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n"),
        Some(Fault::BadHeader)
    );
}

#[test]
fn framing_fields_are_checked() {
    assert_eq!(
        fault_of_lines("Content-Length: 5\r\nTransfer-Encoding: chunked"),
        Some(Fault::LengthAndEncoding)
    );
    assert_eq!(
        fault_of_lines("Content-Length: 5\r\nContent-Length: 5"),
        Some(Fault::DuplicateContentLength)
    );
    assert_eq!(
        fault_of_lines("Content-Length: 1, 1"),
        Some(Fault::BadContentLength)
    );
    assert_eq!(fault_of_lines("Content-Length : 1"), Some(Fault::BadHeader));
    assert_eq!(
        fault_of_lines("Transfer-Encoding: identity"),
        Some(Fault::UnknownEncoding)
    );
    assert_eq!(
        fault_of_lines("Transfer-Encoding: \x0bchunked"),
        Some(Fault::BadHeader)
    );
    for tabs in ["\tchunked", " chunked\t", "\t \tchunked \t "] {
        let post = format!("POST / HTTP/1.1\r\nHost:\th\t\r\nTransfer-Encoding:{tabs}\r\n\r\n");
        assert_eq!(head(&post).body, BodyLength::Unknown, "{tabs:?}");
    }
    assert_eq!(
        fault_of_lines("Transfer-Encoding: \u{a0}chunked"),
        Some(Fault::UnknownEncoding)
    );
    assert_eq!(
        fault_of_lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        Some(Fault::DuplicateEncoding)
    );
    assert_eq!(
        fault("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Some(Fault::EncodingInHttp10)
    );
    assert_eq!(
        head("POST / HTTP/1.0\r\nContent-Length:  5 \r\n\r\n").body,
        BodyLength::Length(5)
    );
}

#[test]
fn fields_that_come_once_are_refused_twice() {
    for name in [
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Range",
        "Content-Range",
        "Authorization",
        "Proxy-Authorization",
    ] {
        let lines = format!("{name}: a\r\n{}: b", name.to_ascii_lowercase());
        assert_eq!(
            fault_of_lines(&lines),
            Some(Fault::DuplicateHeader),
            "{name}"
        );
    }
    // Lists may be split into several fields (RFC 9110 section 5.3).
    for name in ["Cookie", "If-Match", "If-None-Match", "Expect"] {
        let lines = format!("{name}: a\r\n{name}: b");
        assert_eq!(fault_of_lines(&lines), None, "{name}");
    }
}

#[test]
fn lines_with_odd_names_are_dropped_unless_told_otherwise() {
    let input = "GET / HTTP/1.0\r\nx_y: 1\r\nX(Y): 2\r\n\u{ef}: 3\r\nno-colon\r\nGood: 4\r\n\r\n";
    assert_eq!(head(input).fields.len(), 1);
    let keep = Settings {
        ignore_invalid_headers: false,
        ..Settings::default()
    };
    let mut conn = conn_with(keep.clone());
    conn.receive(input.replace("no-colon\r\n", "").as_bytes());
    assert_eq!(next_head(&mut conn).fields.len(), 4);
    assert_eq!(fault_with(input.as_bytes(), keep), Some(Fault::BadHeader));
    let underscores = Settings {
        underscores_in_headers: true,
        ..Settings::default()
    };
    let mut conn = conn_with(underscores);
    conn.receive(input.as_bytes());
    assert_eq!(next_head(&mut conn).fields.len(), 2);
}

#[test]
fn broken_header_lines_are_refused() {
    for line in [
        " folded: x",
        "A: b\r\n folded",
        ": x",
        "a b: x",
        "A: \x01",
        "A: x\0",
        "A: x\ry",
        "A: x\r\r",
    ] {
        assert_eq!(fault_of_lines(line), Some(Fault::BadHeader), "{line:?}");
    }
}

/// RFC 9110 section 10.1.1: the expectation is ignored before HTTP/1.1.
#[test]
fn expect_continue_is_of_http11() {
    let input =
        |version, value| format!("POST / HTTP/{version}\r\nHost: h\r\nExpect: {value}\r\n\r\n");
    assert!(head(&input("1.1", "100-continue")).expect_continue);
    assert!(head(&input("1.1", "100-Continue")).expect_continue);
    assert!(!head(&input("1.0", "100-continue")).expect_continue);
    assert!(!head(&input("1.1", "unknown")).expect_continue);
    for list in [
        ",100-continue",
        "unknown,\t100-continue ,",
        "100-continue\r\nExpect: unknown",
    ] {
        assert!(head(&input("1.1", list)).expect_continue, "{list:?}");
    }
}

/// RFC 9112 section 9.3.
#[test]
fn persistence_follows_version_and_connection_options() {
    let close = |version, lines: &str| {
        head(&format!("GET / HTTP/{version}\r\nHost: h\r\n{lines}\r\n")).close
    };
    assert!(!close("1.1", ""));
    assert!(close("1.0", ""));
    assert!(close("1.1", "Connection: close\r\n"));
    assert!(close("1.1", "Connection: Upgrade, Close\r\n"));
    assert!(!close("1.1", "Connection: closed\r\n"));
    assert!(!close("1.0", "Connection: Keep-Alive\r\n"));
    assert!(close("1.0", "Connection: keep-alive, close\r\n"));
    assert!(close(
        "1.1",
        "Connection: close\r\nConnection: keep-alive\r\n"
    ));
}

#[test]
fn a_fault_delivers_what_was_parsed_before_it() {
    let head = next_head(&mut after(
        "GET /p HTTP/1.1\r\nHost: h\r\nA: 1\r\nbad line\r\nB: 2\r\n\r\n",
    ));
    assert_eq!(head.fault, Some(Fault::BadHeader));
    assert_eq!(head.bytes(head.target), b"/p");
    assert_eq!(head.fields.len(), 2);
    let head = next_head(&mut after("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(head.fault, Some(Fault::BadRequestLine));
    assert_eq!(head.bytes(head.line), b"GET /a b HTTP/1.1");
}

/// A peer that speaks TLS waits for an answer; it must not wait for a line end.
#[test]
fn garbage_is_refused_at_its_first_bad_byte() {
    assert_eq!(fault("\x16\x03\x01\x02"), Some(Fault::BadMethod));
    assert_eq!(fault("GET /\x01"), Some(Fault::BadRequestLine));
    assert_eq!(fault("GET / HTTP/2"), Some(Fault::UnsupportedVersion));
    assert_eq!(
        fault("GET / HTTP/1.1\r\nHost: h\r\nA: \x01"),
        Some(Fault::BadHeader)
    );
    assert_eq!(fault("GET / HTTP/1.1\r\n "), Some(Fault::BadHeader));
}
