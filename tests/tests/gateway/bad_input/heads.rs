//! Invalid heads from FastCGI, SCGI and uwsgi applications.
//!
//! Sources: BAD INPUT: responses; RFC 3875 section 6; RFC 9112 sections 5 and 6.

use firstbyte_tests::fastcgi::{END_REQUEST, ID, STDOUT, record};

use super::rows::{Gateway, Row, all_are_as_expected};

/// The protocols of applications.
pub(crate) const ALL: [Gateway; 3] = [Gateway::FastCgi, Gateway::Scgi, Gateway::Uwsgi];

/// Output of an application, in its protocol.
pub(crate) fn written(gateway: Gateway, text: &[u8]) -> Vec<u8> {
    match gateway {
        Gateway::FastCgi => [
            record(STDOUT, ID, text),
            record(STDOUT, ID, ""),
            record(END_REQUEST, ID, [0; 8]),
        ]
        .concat(),
        _ => text.to_vec(),
    }
}

/// Rows for each protocol.
fn each(what: &str, text: impl AsRef<[u8]>, row: fn(Gateway, &str, Vec<u8>) -> Row) -> Vec<Row> {
    let rows = ALL.iter();
    rows.map(|gateway| row(*gateway, what, written(*gateway, text.as_ref())))
        .collect()
}

/// A head with the end of its lines and the body.
fn head(lines: &str) -> String {
    format!("{lines}\r\n\r\nhello")
}

#[test]
fn bad_heads_are_502() {
    let refused: [(&str, &str, bool); 31] = [
        ("a NUL in a value", "A: a\0b", true),
        ("a NUL in a name", "A\0B: a", true),
        ("CR in a value", "A: a\rb", true),
        ("CR in a name", "A\rB: a", true),
        ("an empty name", ": a", true),
        ("a blank before the colon", "A : b", true),
        ("a blank in a name", "A B: c", true),
        ("a continued line", "A: b\r\n c", true),
        (
            "two statuses",
            "Status: 200 OK\r\nStatus: 404 Not Found",
            false,
        ),
        ("twice the same status", "Status: 200\r\nStatus: 200", false),
        ("status in letters", "Status: abc", true),
        ("no status", "Status:", true),
        ("status of two digits", "Status: 20", true),
        ("status of four digits", "Status: 1000", false),
        ("status 099", "Status: 099", false),
        ("status 000", "Status: 000", false),
        ("negative status", "Status: -200", true),
        ("status 100", "Status: 100 Continue", false),
        ("status 101", "Status: 101 Switching Protocols", false),
        (
            "two lengths",
            "Content-Length: 5\r\nContent-Length: 6",
            true,
        ),
        (
            "twice the same length",
            "Content-Length: 5\r\nContent-Length: 5",
            true,
        ),
        ("a list of lengths", "Content-Length: 5, 5", true),
        ("length in letters", "Content-Length: ab", true),
        ("negative length", "Content-Length: -5", true),
        ("length with a sign", "Content-Length: +5", true),
        ("length in hexadecimal", "Content-Length: 0x5", true),
        (
            "length beyond numbers",
            "Content-Length: 99999999999999999999",
            true,
        ),
        ("no length", "Content-Length:", true),
        ("a coding", "Transfer-Encoding: chunked", false),
        (
            "length and coding",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            true,
        ),
        ("another coding", "Transfer-Encoding: gzip", true),
    ];
    let mut rows = Vec::new();
    for (what, lines, in_nginx) in refused {
        for row in each(what, head(lines), |gateway, what, answer| {
            Row::refused(gateway, what, answer, READING_HEAD)
        }) {
            rows.push(if in_nginx { row } else { row.unlike_nginx() });
        }
    }
    all_are_as_expected(rows);
}

#[test]
fn heads_that_end_nowhere_are_502() {
    let mut rows = Vec::new();
    let closed = |gateway, what: &str, answer| {
        Row::refused(gateway, what, answer, "upstream prematurely closed")
    };
    rows.extend(each("nothing", "", closed));
    rows.extend(each("half a line", "Content-Le", closed));
    rows.extend(each(
        "no empty line",
        "Content-Type: text/plain\r\n",
        closed,
    ));
    let large = format!("A: {}", "a".repeat(65_000));
    rows.extend(each(
        "a large head without end",
        large,
        |gateway, what, answer| Row::refused(gateway, what, answer, "upstream "),
    ));
    all_are_as_expected(rows);
}

#[test]
fn lengths_that_lie_are_seen_by_the_client() {
    let mut rows = Vec::new();
    rows.extend(each(
        "the right length",
        head("Content-Length: 5"),
        |gateway, what, answer| Row::passed(gateway, what, answer, "hello"),
    ));
    rows.extend(each(
        "no length",
        head("Content-Type: a/b"),
        |gateway, what, answer| Row::passed(gateway, what, answer, "hello"),
    ));
    rows.extend(each(
        "lines that end with LF alone",
        "Content-Type: a/b\n\nhello",
        |gateway, what, answer| Row::passed(gateway, what, answer, "hello"),
    ));
    rows.extend(each(
        "more is said than comes",
        head("Content-Length: 50"),
        |gateway, what, answer| Row::cut(gateway, what, answer, "upstream prematurely closed"),
    ));
    rows.extend(each(
        "less is said than comes",
        head("Content-Length: 2"),
        |gateway, what, answer| Row::passed(gateway, what, answer, "he"),
    ));
    rows.extend(each(
        "status behind other fields",
        head("A: b\r\nStatus: 404 Not Here"),
        |gateway, what, answer| Row::passed(gateway, what, answer, "").status(404),
    ));
    rows.extend(each(
        "a location alone",
        head("Location: http://a/"),
        |gateway, what, answer| Row::passed(gateway, what, answer, "").status(302),
    ));
    all_are_as_expected(rows);
}

#[test]
fn lines_that_are_none_are_no_fields() {
    let mut rows = Vec::new();
    for (what, lines, body) in [
        ("no colon", "hello", "hello"),
        (
            "a line of an HTTP server",
            "HTTP/1.1 200 OK\r\nA: b",
            "hello",
        ),
        ("no field at all", "", "\r\nhello"),
    ] {
        for gateway in ALL {
            let answer = written(gateway, head(lines).as_bytes());
            rows.push(Row::passed(gateway, what, answer, body));
        }
    }
    all_are_as_expected(rows);
}

/// Action in the log.
const READING_HEAD: &str = "while reading response header from upstream";
