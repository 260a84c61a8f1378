//! Heads that stay incomplete, and messages about faults, as the log shows them.

use super::{Conn, RequestHead, after, conn, next_head};

fn unfinished(conn: &mut Conn) -> Option<RequestHead> {
    let mut head = RequestHead::default();
    conn.take_unfinished(&mut head).then_some(head)
}

/// The request line, the target and the number of fields.
fn seen(head: &RequestHead) -> (&str, &str, usize) {
    let text = |span| std::str::from_utf8(head.bytes(span)).expect("the test sends ASCII");
    (text(head.line), text(head.target), head.fields.len())
}

#[test]
fn incomplete_head_has_what_came_of_it() {
    let text = "GET /x?y HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    let line = &text[..17];
    for cut in 1..text.len() {
        let mut conn = after(&text[..cut]);
        let head = unfinished(&mut conn).expect("bytes of a head have come");
        let fields = text[..cut].matches("\r\n").count().saturating_sub(1);
        let expected = match cut {
            ..19 => (text[..cut].trim_end(), "", 0),
            _ => (line, "/x?y", fields),
        };
        let (shown, target, count) = seen(&head);
        assert_eq!((shown.trim_end(), target, count), expected, "{cut}");
        assert_eq!(head.fault, None);
        assert!(unfinished(&mut conn).is_none(), "once");
    }
    assert!(unfinished(&mut conn()).is_none(), "no byte has come");
    let mut whole = after(text);
    assert!(unfinished(&mut whole).is_none(), "it is complete");
    assert_eq!(next_head(&mut whole).fields.len(), 2);
}

#[test]
fn line_ends_before_a_request_are_the_beginning_of_none() {
    let head = unfinished(&mut after("\r\n")).expect("bytes have come");
    assert_eq!(seen(&head), ("", "", 0));
}

#[test]
fn message_names_the_text_at_fault() {
    for (fields, message) in [
        (
            "Bad Name: x",
            "client sent invalid header line: \"Bad\\x20...\"",
        ),
        (
            "X: a\u{1}b",
            "client sent invalid header line: \"X: a\\x01...\"",
        ),
        (
            "host: b",
            "client sent duplicate host header: \"host: b\", previous value: \"Host: a\"",
        ),
        (
            "Range: 1\r\nIf-Range: a\r\nif-range: b",
            "client sent duplicate header line: \"if-range: b\", previous value: \"If-Range: a\"",
        ),
        (
            "Transfer-Encoding: x",
            "client sent unknown \"Transfer-Encoding\": \"x\"",
        ),
        (
            "Content-Length: x",
            "client sent invalid \"Content-Length\" header",
        ),
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        let head = next_head(&mut after(&text));
        let found = String::from_utf8_lossy(head.fault_message()).into_owned();
        assert_eq!(found, message, "{fields}");
    }
}

#[test]
fn dropped_lines_are_noted() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nX(Y): 1\r\nX: 1\r\nNocolon\r\nA_B: 2\r\n\r\n";
    let head = next_head(&mut after(text));
    let notes = head.notes.as_ref().expect("lines were dropped");
    let lines: Vec<&[u8]> = notes.dropped.iter().map(|line| head.bytes(*line)).collect();
    assert_eq!(lines, [&b"X(Y): 1"[..], b"Nocolon", b"A_B: 2"]);
    let head = next_head(&mut after("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!(head.notes, None, "most heads have none");
}
