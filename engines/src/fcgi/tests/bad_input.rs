//! Protocol errors of applications.

use super::*;

/// A header with these bytes, and END_REQUEST behind it.
fn header(bytes: [u8; 8]) -> Vec<u8> {
    [bytes.to_vec(), end(0)].concat()
}

const HEAD: &str = "X-A: b\r\n\r\n";

/// Events for the bytes in place of a head, and within a body: the error is the same.
fn error(bytes: &[u8]) -> String {
    let (first, reusable) = told_to(asked, bytes, false);
    assert!(!reusable);
    let behind = [&stdout(&format!("{HEAD}hello")), bytes].concat();
    let (second, reusable) = told_to(asked, &behind, false);
    assert!(!reusable);
    assert_eq!(second, format!("200 X-A=b\n+hello\n{first}"));
    first
}

#[test]
fn another_version_is_refused() {
    for version in [0, 2, 255, b'H'] {
        assert_eq!(
            error(&header([version, 6, 0, 1, 0, 0, 0, 0])),
            format!("sent unsupported FastCGI protocol version: {version}")
        );
    }
    // It shows at the first byte.
    assert!(error(b"H").ends_with(": 72"));
}

#[test]
fn records_that_no_client_takes_are_refused() {
    // Records sent by clients, management records, and unknown ones.
    for of in [0, 1, 2, 4, 5, 8, 9, 10, 11, 12, 255] {
        let expected = format!("sent invalid FastCGI record type: {of}");
        assert_eq!(error(&header([1, of, 0, 1, 0, 0, 0, 0])), expected);
        assert_eq!(error(&header([1, of, 0, 0, 0, 8, 0, 0])), expected);
        assert_eq!(error(&[1, of]), expected);
    }
}

#[test]
fn records_of_another_request_are_refused() {
    for of in [3, 6, 7] {
        for high in [1, 255] {
            let expected = format!("sent unexpected FastCGI request id high byte: {high}");
            assert_eq!(error(&header([1, of, high, 1, 0, 8, 0, 0])), expected);
        }
        for low in [0, 2, 255] {
            let expected = format!("sent unexpected FastCGI request id low byte: {low}");
            assert_eq!(error(&header([1, of, 0, low, 0, 8, 0, 0])), expected);
        }
    }
}

#[test]
fn an_end_request_has_eight_bytes() {
    for len in [0_u16, 1, 7, 9, 16, 65535] {
        let [high, low] = len.to_be_bytes();
        assert_eq!(
            error(&header([1, 3, 0, 1, high, low, 0, 0])),
            format!("sent FastCGI end request of invalid length: {len}")
        );
    }
}

#[test]
fn the_reserved_byte_is_not_looked_at() {
    let mut record = stdout(&format!("{HEAD}hello"));
    record[7] = 0xee;
    assert_eq!(told(&[record, end(0)]).0, "200 X-A=b\n+hello\nend 5");
}

#[test]
fn an_end_request_before_the_head_is_unexpected() {
    for records in [
        vec![end(0)],
        vec![stdout("X-A: b\r\n"), end(0)],
        vec![stdout("X-A"), end(0)],
    ] {
        assert_eq!(
            told(&records),
            ("sent unexpected FastCGI record: 3".to_owned(), false)
        );
    }
    let noted = told(&[stderr("Primary script unknown"), end(0)]).0;
    assert_eq!(
        noted,
        "note Primary script unknown\nsent unexpected FastCGI record: 3"
    );
    for status in [1, 2, 3, 255] {
        let expected = format!("sent unexpected FastCGI record: 3, protocol status: {status}");
        assert_eq!(told(&[end(status)]), (expected, false));
    }
}

#[test]
fn a_protocol_status_behind_the_head_is_a_failure() {
    for status in [1, 2, 3, 4, 255] {
        let (story, reusable) = told(&[stdout(&format!("{HEAD}hello")), end(status)]);
        let error = format!("rejected FastCGI request with protocol status: {status}");
        assert_eq!(
            (story, reusable),
            (format!("200 X-A=b\n+hello\n{error}"), false)
        );
    }
}

#[test]
fn a_protocol_status_behind_a_whole_response_ends_the_connection() {
    for records in [
        vec![stdout("Content-Length: 5\r\n\r\nhello"), end(2)],
        vec![stdout(&format!("{HEAD}hello")), stdout(""), end(2)],
    ] {
        let (story, reusable) = told(&records);
        assert!(story.ends_with("\n+hello\nend 5"), "{story}");
        assert!(!reusable);
    }
    let (story, _) = told(&[stdout("Content-Length: 6\r\n\r\nhello"), end(2)]);
    assert!(story.ends_with("\nrejected FastCGI request with protocol status: 2"));
}

#[test]
fn a_second_end_request_ends_the_connection() {
    let whole = [stdout(&format!("{HEAD}hello")), stdout(""), end(0)];
    for behind in [end(0), stdout("more"), stderr("more"), b"x".to_vec()] {
        let (story, reusable) = told(&[whole.concat(), behind]);
        let expected = "200 X-A=b\n+hello\nend 5\nsent data without being asked";
        assert_eq!((story.as_str(), reusable), (expected, false));
    }
}

#[test]
fn stdout_may_not_end_before_the_head_has() {
    for records in [
        vec![stdout("")],
        vec![stdout("X-A: b\r\n"), stdout(""), end(0)],
    ] {
        let expected = ("prematurely closed FastCGI stdout".to_owned(), false);
        assert_eq!(told(&records), expected);
    }
}

#[test]
fn a_body_may_not_end_before_its_length() {
    let head = "Content-Length: 6\r\n\r\nhello";
    let told_head = "200 Content-Length=6\n+hello";
    for (behind, error) in [
        (stdout(""), "prematurely closed FastCGI stdout"),
        (end(0), "prematurely closed FastCGI request"),
    ] {
        let (story, reusable) = told(&[stdout(head), behind]);
        assert_eq!((story, reusable), (format!("{told_head}\n{error}"), false));
    }
    let (story, _) = told_to(asked, &stdout(head), true);
    assert_eq!(story, format!("{told_head}\nprematurely closed connection"));
}

#[test]
fn output_behind_a_length_ends_the_response_and_the_connection() {
    let expected = ("200 Content-Length=5\n+hello\nend 5".to_owned(), false);
    let head = "Content-Length: 5\r\n\r\n";
    for records in [
        vec![stdout(&format!("{head}hello!")), stdout(""), end(0)],
        vec![stdout(&format!("{head}hel")), stdout("lo, world"), end(0)],
        vec![
            stdout(&format!("{head}hello")),
            stdout("!"),
            stderr("late"),
            end(2),
        ],
    ] {
        assert_eq!(told(&records), expected);
    }
    for status in ["204", "304"] {
        let text = format!("Status: {status}\r\n\r\na body");
        let (story, reusable) = told(&[stdout(&text), stdout(""), end(0)]);
        assert_eq!(
            (story, reusable),
            (format!("{status} Status={status}\nend 0"), false)
        );
    }
}

#[test]
fn stdout_behind_its_end_is_refused() {
    let (story, reusable) = told(&[stdout(&format!("{HEAD}hello")), stdout(""), stdout("more")]);
    let expected = "200 X-A=b\n+hello\nsent FastCGI stdout after its end";
    assert_eq!((story.as_str(), reusable), (expected, false));
}

#[test]
fn an_end_of_the_connection_without_end_request_is_a_failure() {
    let closed = "prematurely closed connection";
    for keep in [true, false] {
        let asked = || asked_with("GET", options(keep));
        assert_eq!(told_to(asked, b"", true).0, closed);
        assert_eq!(told_to(asked, &stdout("X-A: b\r\n"), true).0, closed);
        let noted = told_to(asked, &stderr("Killed")[..12], true).0;
        assert_eq!(noted, format!("note Kill\n{closed}"));
        let page = [stdout(&format!("{HEAD}hel")), stdout("lo")].concat();
        for cut in 0..8 {
            let bytes = [&page[..], &end(0)[..8 + cut]].concat();
            let (story, reusable) = told_to(asked, &bytes, true);
            assert_eq!(
                (story, reusable),
                (format!("200 X-A=b\n+hello\n{closed}"), false)
            );
        }
    }
}

#[test]
fn an_end_request_without_its_padding_leaves_no_connection() {
    let mut bytes = [stdout(&format!("{HEAD}hello")), record(3, &[0; 8], 2)].concat();
    bytes.truncate(bytes.len() - 1);
    let expected = "200 X-A=b\n+hello\nend 5";
    assert_eq!(told_to(asked, &bytes, false), (expected.to_owned(), false));
    bytes.push(0);
    assert_eq!(told_to(asked, &bytes, false), (expected.to_owned(), true));
}

#[test]
fn stderr_without_end_needs_little_memory() {
    let mut client = asked();
    let bytes = stderr(&"e".repeat(65_000));
    for _ in 0..100 {
        client.receive(&bytes);
        client.check_invariants();
    }
    assert_eq!(client.stderr_bytes(), 6_500_000);
    assert_eq!(client.events.len(), 1);
    assert!(client.protocol.note.capacity() <= 2 * STDERR_BYTES);
}

#[test]
fn a_bad_head_is_refused() {
    for (text, error) in [
        ("X-A: b\0c\r\n\r\n", "sent invalid header"),
        ("X-A: b\rc\r\n\r\n", "sent invalid header"),
        (
            "Status: 200\r\nStatus: 404\r\n\r\n",
            "sent duplicate header line: \"Status\"",
        ),
        (
            "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "sent duplicate header line: \"Content-Length\"",
        ),
        (
            "Content-Length: x\r\n\r\n",
            "sent invalid \"Content-Length\" header",
        ),
        (
            "Transfer-Encoding: chunked\r\n\r\n",
            "sent unexpected \"Transfer-Encoding\" header",
        ),
        ("Status: abc\r\n\r\n", "sent invalid status"),
        ("Status: 99\r\n\r\n", "sent invalid status"),
        (
            "Status: 101\r\n\r\n",
            "switched protocols without being asked",
        ),
        ("Status: 103\r\n\r\n", "sent invalid status"),
    ] {
        assert_eq!(
            told(&[stdout(text), end(0)]),
            (error.to_owned(), false),
            "{text:?}"
        );
    }
}

#[test]
fn a_head_has_a_limit() {
    let mut text = "X-A: ".to_owned();
    text += &"b".repeat(HEAD_BYTES - text.len() - 4);
    text += "\r\n\r\n";
    assert_eq!(text.len(), HEAD_BYTES);
    let fits = told(&[stdout(&text), end(0)]).0;
    assert!(
        fits.starts_with("200 X-A=b") && fits.ends_with("end 0"),
        "{fits}"
    );
    text.insert(5, 'b');
    assert_eq!(told(&[stdout(&text), end(0)]).0, "sent too big header");
    // Bytes on STDERR do not count.
    text.remove(5);
    let noise = stderr(&"e".repeat(2 * HEAD_BYTES));
    assert!(told(&[noise, stdout(&text), end(0)]).0.ends_with("end 0"));
}
