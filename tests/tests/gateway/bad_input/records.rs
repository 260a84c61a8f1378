//! Records of FastCGI that break the protocol.
//!
//! Source: FastCGI 1.0 specification, sections 3.3, 5.3 and 5.5.

use super::rows::{Gateway, Row, all_are_as_expected};
use firstbyte_tests::fastcgi::{END_REQUEST, ID, STDERR, STDOUT, record};

const HEAD: &str = "Content-Type: text/plain\r\n\r\n";

/// The end of a request with a protocol status.
fn end(status: u8) -> Vec<u8> {
    record(END_REQUEST, ID, [0, 0, 0, 0, status, 0, 0, 0])
}

fn out(text: &str) -> Vec<u8> {
    record(STDOUT, ID, text)
}

/// A whole response.
fn hello() -> Vec<u8> {
    [out(HEAD), out("hello"), out(""), end(0)].concat()
}

/// A record with one byte of its header changed.
fn changed(at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = hello();
    bytes[at] = byte;
    bytes
}

/// A record with padding, of which some may be missing.
fn padded(kind: u8, content: &str, padding: u8, sent: usize) -> Vec<u8> {
    let mut bytes = record(kind, ID, content);
    bytes[6] = padding;
    bytes.extend(std::iter::repeat_n(b'p', sent));
    bytes
}

fn refused(what: &str, answer: Vec<u8>, log: &'static str) -> Row {
    Row::refused(Gateway::FastCgi, what, answer, log)
}

fn passed(what: &str, answer: Vec<u8>) -> Row {
    Row::passed(Gateway::FastCgi, what, answer, "hello")
}

fn cut(what: &str, answer: Vec<u8>, log: &'static str) -> Row {
    Row::cut(Gateway::FastCgi, what, answer, log)
}

#[test]
fn records_of_another_version_type_or_request_are_refused() {
    let version = |version| changed(0, version);
    let kind = |kind| changed(1, kind);
    all_are_as_expected(vec![
        passed("nothing wrong", hello()),
        refused(
            "version 0",
            version(0),
            "unsupported FastCGI protocol version: 0",
        ),
        refused(
            "version 2",
            version(2),
            "unsupported FastCGI protocol version: 2",
        ),
        refused(
            "HTTP",
            b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
            "unsupported FastCGI protocol version: 72",
        ),
        refused("type 0", kind(0), "sent invalid FastCGI record type: 0"),
        refused(
            "BEGIN_REQUEST",
            kind(1),
            "sent invalid FastCGI record type: 1",
        ),
        refused(
            "ABORT_REQUEST",
            kind(2),
            "sent invalid FastCGI record type: 2",
        ),
        refused("PARAMS", kind(4), "sent invalid FastCGI record type: 4"),
        refused("STDIN", kind(5), "sent invalid FastCGI record type: 5"),
        refused("DATA", kind(8), "sent invalid FastCGI record type: 8"),
        refused(
            "GET_VALUES_RESULT",
            kind(10),
            "sent invalid FastCGI record type: 10",
        ),
        refused(
            "UNKNOWN_TYPE",
            kind(11),
            "sent invalid FastCGI record type: 11",
        ),
        refused(
            "type 255",
            kind(255),
            "sent invalid FastCGI record type: 255",
        ),
        refused(
            "id 0",
            changed(3, 0),
            "sent unexpected FastCGI request id low byte: 0",
        ),
        refused(
            "id 2",
            changed(3, 2),
            "sent unexpected FastCGI request id low byte: 2",
        ),
        refused(
            "id 257",
            changed(2, 1),
            "sent unexpected FastCGI request id high byte: 1",
        ),
        cut(
            "version 2 in the body",
            [out(HEAD), changed(0, 2)].concat(),
            "unsupported FastCGI protocol version: 2",
        ),
        cut(
            "id 2 in the body",
            [out(HEAD), changed(3, 2)].concat(),
            "sent unexpected FastCGI request id low byte: 2",
        ),
    ]);
}

#[test]
fn lengths_and_padding_are_what_records_say() {
    let long = format!("{HEAD}{}", "x".repeat(65_535 - HEAD.len()));
    let mut short = out(HEAD);
    short[5] += 1;
    let closed =
        "upstream prematurely closed connection while reading response header from upstream";
    let closed_later = "upstream prematurely closed";
    let mut cut_body = [out(HEAD), out("hello")].concat();
    cut_body.truncate(cut_body.len() - 2);
    all_are_as_expected(vec![
        Row::passed(
            Gateway::FastCgi,
            "65,535 bytes",
            [out(&long), out(""), end(0)].concat(),
            &long[HEAD.len()..],
        ),
        passed(
            "no bytes",
            [
                out(HEAD),
                padded(STDERR, "", 8, 8),
                out("hello"),
                out(""),
                end(0),
            ]
            .concat(),
        ),
        refused("nothing", Vec::new(), closed),
        refused("half a header", hello()[..4].to_vec(), closed),
        refused("a header", hello()[..8].to_vec(), closed),
        // nginx takes the end of the connection for the end of the response.
        cut("more bytes said than sent", short, closed_later).unlike_nginx(),
        cut("the end inside of a record", cut_body, closed_later).unlike_nginx(),
        passed(
            "7 bytes of padding",
            [padded(STDOUT, HEAD, 7, 7), out("hello"), out(""), end(0)].concat(),
        ),
        passed(
            "255 bytes of padding",
            [
                padded(STDOUT, HEAD, 255, 255),
                padded(STDOUT, "hello", 255, 255),
                out(""),
                end(0),
            ]
            .concat(),
        ),
        cut(
            "less padding than said",
            [padded(STDOUT, HEAD, 3, 2), out("hello"), out(""), end(0)].concat(),
            "unsupported FastCGI protocol version: 6 while reading upstream",
        ),
        cut(
            "padding that does not come",
            [out(HEAD), padded(STDOUT, "hello", 9, 3)].concat(),
            closed_later,
        )
        .unlike_nginx(),
    ]);
}

#[test]
fn the_end_of_a_request_comes_once_and_behind_the_head() {
    let unexpected = "upstream sent unexpected FastCGI record: 3";
    let mut rows = Vec::new();
    for status in [0, 1, 2, 3, 4, 255] {
        rows.push(refused(
            &format!("before the head, status {status}"),
            end(status),
            unexpected,
        ));
        let whole = [out(HEAD), out("hello"), out(""), end(status)].concat();
        rows.push(passed(&format!("status {status}"), whole));
        let unended = [out(HEAD), out("hello"), end(status)].concat();
        let what = format!("status {status} and no end of the output");
        rows.push(match status {
            0 => passed(&what, unended),
            _ => cut(&what, unended, "upstream rejected FastCGI request").unlike_nginx(),
        });
    }
    let mut failed = end(0);
    failed[8..12].copy_from_slice(&[0, 0, 0, 7]);
    rows.extend([
        passed("twice", [hello(), end(0)].concat()),
        passed("output behind it", [hello(), out("more")].concat()),
        passed(
            "the application's status is 7",
            [out(HEAD), out("hello"), out(""), failed].concat(),
        ),
        passed("none", [out(HEAD), out("hello"), out("")].concat()),
        cut(
            "neither it nor the end of the output",
            [out(HEAD), out("hello")].concat(),
            "upstream prematurely closed",
        )
        .unlike_nginx(),
        refused(
            "in the head",
            [out("Content-Type: a"), end(0)].concat(),
            unexpected,
        ),
        refused(
            "output that ends before the head",
            [out(""), end(0)].concat(),
            "upstream prematurely closed FastCGI stdout",
        ),
    ]);
    for length in [0, 7, 9, 65_535] {
        let content = vec![0; length];
        let answer = [out(HEAD), out("hello"), record(END_REQUEST, ID, content)].concat();
        let what = format!("of {length} bytes");
        rows.push(cut(&what, answer, "FastCGI end request of invalid length: ").unlike_nginx());
    }
    all_are_as_expected(rows);
}

#[test]
fn messages_of_an_application_are_logged_and_do_not_end_it() {
    let stderr = |text: &str| record(STDERR, ID, text);
    let many: Vec<u8> = stderr(&"e".repeat(1000)).repeat(1000);
    all_are_as_expected(vec![
        passed("before the head", [stderr("PHP says"), hello()].concat()).logged(
            "FastCGI sent in stderr: \"PHP says\" while reading response header from upstream",
        ),
        passed(
            "behind the head",
            [out(HEAD), stderr("later"), out("hello"), out(""), end(0)].concat(),
        )
        .logged("FastCGI sent in stderr: \"later\" while reading"),
        passed(
            "with a line end",
            [stderr("one\ntwo\r\n"), hello()].concat(),
        )
        .logged("FastCGI sent in stderr: \"one")
        .unlike_nginx(),
        passed("a megabyte of it", [many.clone(), hello()].concat())
            .logged("FastCGI sent in stderr: \"eee"),
        refused(
            "a megabyte and no end",
            many,
            "upstream prematurely closed connection",
        ),
        refused(
            "nothing else",
            [stderr("alone"), out(""), end(0)].concat(),
            "FastCGI sent in stderr: \"alone\"",
        ),
    ]);
}
