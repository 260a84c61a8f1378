//! Values, their lines, and other answers of servers.

use super::*;
use crate::client::SendError;
use crate::http::OutputQueue;

fn asked_within(key: &str, line_bytes: usize) -> Client {
    let mut client = Client::new();
    assert_eq!(client.request(key.as_bytes(), line_bytes), Ok(1));
    client.transmit(&mut OutputQueue::default());
    client
}

fn asked(key: &str) -> Client {
    asked_within(key, 100)
}

fn text(client: &mut Client) -> String {
    let (mut queue, mut out) = (OutputQueue::default(), Vec::new());
    client.transmit(&mut queue);
    queue.drain_bytes(&mut out);
    String::from_utf8(out).expect("text")
}

/// All events, one a line; pieces of a value are joined.
fn story(client: &mut Client) -> String {
    client.check_invariants();
    let (mut lines, mut data) = (Vec::<String>::new(), Vec::new());
    while let Some(event) = client.event() {
        if let Event::Data { bytes, .. } = &event {
            data.extend_from_slice(bytes);
            continue;
        }
        if !data.is_empty() {
            lines.push(format!("+{}", String::from_utf8_lossy(&data)));
            data.clear();
        }
        lines.push(match event {
            Event::Head { head, size, .. } => {
                let flags = head.named(FLAGS_FIELD).next().map(String::from_utf8_lossy);
                let length = head
                    .get(FieldId::ContentLength)
                    .map(String::from_utf8_lossy);
                let line = format!(
                    "{} {length:?} {flags:?} of {}",
                    head.status, size.wire_bytes
                );
                line.replace("Some(\"", "").replace("\")", "")
            }
            Event::Note { text, .. } => format!("note {}", String::from_utf8_lossy(&text)),
            Event::End { body_bytes, .. } => format!("end {body_bytes}"),
            Event::Failed(error) => error.to_string(),
            other => format!("{other:?}"),
        });
    }
    if !data.is_empty() {
        lines.push(format!("+{}", String::from_utf8_lossy(&data)));
    }
    lines.join("\n")
}

/// Events of the server's bytes, whole, byte by byte and in buffers; and whether the connection can be used again.
fn told(key: &str, bytes: &[u8]) -> (String, bool) {
    let mut whole = asked(key);
    whole.receive(bytes);
    let result = (story(&mut whole), whole.is_reusable());
    let mut single = asked(key);
    for byte in bytes {
        single.receive(&[*byte]);
        single.check_invariants();
    }
    assert_eq!(
        (story(&mut single), single.is_reusable()),
        result,
        "byte by byte"
    );
    for size in [1, 2, 3, 7, 20, 1000] {
        let mut client = asked(key);
        for piece in bytes.chunks(size) {
            let mut buffer = piece.to_vec();
            client.receive_buffer(&mut buffer);
            assert!(buffer.is_empty());
            client.check_invariants();
        }
        assert_eq!(
            (story(&mut client), client.is_reusable()),
            result,
            "in buffers of {size}"
        );
    }
    result
}

#[test]
fn a_get_is_sent() {
    let mut client = Client::new();
    assert_eq!(client.request(b"/a%20b", 100), Ok(1));
    assert_eq!(text(&mut client), "get /a%20b\r\n");
    assert_eq!(client.request(b"k", 100), Err(SendError::Busy));
    // As nginx sends it: bytes that end a key are the only ones left to escape.
    let mut client = asked("a\x7f\u{e4}");
    client.receive("VALUE a\x7f\u{e4} 0 0\r\n\r\nEND\r\n".as_bytes());
    assert!(story(&mut client).ends_with("end 0"));
}

#[test]
fn a_key_that_would_be_another_command_is_refused() {
    for key in ["", "a b", "a\r\nflush_all", "a\n", "a\0", "\t"] {
        let mut client = Client::new();
        assert_eq!(
            client.request(key.as_bytes(), 100),
            Err(SendError::BadKey),
            "{key:?}"
        );
        assert_eq!(text(&mut client), "");
        assert!(client.is_reusable());
    }
}

#[test]
fn a_value_is_a_response() {
    let (story, reusable) = told("k", b"VALUE k 5 8\r\nSEE-THIS\r\nEND\r\n");
    assert_eq!(story, "200 8 5 of 13\n+SEE-THIS\nend 8");
    assert!(reusable);
}

#[test]
fn a_value_may_look_like_an_end() {
    let (story, reusable) = told("k", b"VALUE k 0 7\r\n\r\nEND\r\n\r\nEND\r\n");
    assert_eq!(story, "200 7 0 of 13\n+\r\nEND\r\n\nend 7");
    assert!(reusable);
}

#[test]
fn an_empty_value_has_an_end() {
    let (story, reusable) = told("k", b"VALUE k 0 0\r\n\r\nEND\r\n");
    assert_eq!(story, "200 0 0 of 13\nend 0");
    assert!(reusable);
}

#[test]
fn a_cas_is_skipped() {
    assert_eq!(
        told("k", b"VALUE k 0 1 77\r\nx\r\nEND\r\n").0,
        "200 1 0 of 16\n+x\nend 1"
    );
    for cas in ["", "x", "1 2", " 1"] {
        let line = format!("VALUE k 0 1 {cas}\r\nx\r\nEND\r\n");
        let expected = format!(
            "memcached sent invalid length in response \"VALUE k 0 1 {cas}\" for key \"k\""
        );
        assert_eq!(told("k", line.as_bytes()), (expected, false));
    }
}

#[test]
fn no_value_is_not_found() {
    assert_eq!(
        told("k", b"END\r\n"),
        ("404 0 None of 5\nend 0".to_owned(), true)
    );
}

#[test]
fn flags_are_told_as_they_were_sent() {
    for flags in ["0", "4294967295", "x", "", "-1"] {
        let line = format!("VALUE k {flags} 0\r\n\r\nEND\r\n");
        let size = 12 + flags.len();
        assert_eq!(
            told("k", line.as_bytes()).0,
            format!("200 0 {flags} of {size}\nend 0")
        );
    }
}

#[test]
fn what_is_no_value_is_invalid() {
    for line in [
        "ERROR",
        "SERVER_ERROR out of memory",
        "CLIENT_ERROR bad command line format",
        "END ",
        "end",
        "",
        "VALUE",
        "VALUE k",
        "VALUE kk 0 1",
        "VALUE k 0",
    ] {
        let (story, reusable) = told("k", format!("{line}\r\nx\r\nEND\r\n").as_bytes());
        let expected = format!("memcached sent invalid response: \"{line}\"");
        assert_eq!((story, reusable), (expected, false));
    }
    let (story, _) = told("k", b"END\n");
    assert_eq!(story, "memcached sent invalid response: \"END\"", "no CR");
    let (story, _) = told("k", b"\n");
    assert_eq!(story, "memcached sent invalid response: \"\"");
    let (story, _) = told("k", b"HTTP/1.1 200\x1b[0m\r\n");
    assert_eq!(
        story,
        "memcached sent invalid response: \"HTTP/1.1 200\\x1b[0m\""
    );
}

#[test]
fn the_value_of_another_key_is_invalid() {
    for line in ["VALUE l 0 1", "VALUE  k 0 1", "VALUE "] {
        let (story, reusable) = told("k", format!("{line}\r\nx\r\nEND\r\n").as_bytes());
        let expected = format!("memcached sent invalid key in response \"{line}\" for key \"k\"");
        assert_eq!((story, reusable), (expected, false));
    }
}

#[test]
fn a_length_is_a_number() {
    for length in ["", "x", "-1", "+1", "1x", "0x1", "9223372036854775808"] {
        let line = format!("VALUE k 0 {length}");
        let (story, reusable) = told("k", format!("{line}\r\nx\r\nEND\r\n").as_bytes());
        let expected =
            format!("memcached sent invalid length in response \"{line}\" for key \"k\"");
        assert_eq!((story, reusable), (expected, false));
    }
}

#[test]
fn what_is_longer_than_its_length_ends_the_connection() {
    let (story, reusable) = told("k", b"VALUE k 0 3\r\nabcde\r\nEND\r\n");
    assert_eq!(
        story,
        "200 3 0 of 13\n+abc\nnote memcached sent invalid trailer\nend 3"
    );
    assert!(!reusable);
}

#[test]
fn a_wrong_trailer_is_a_note() {
    for trailer in [
        "END\r\n",
        "\r\nEND \r\n",
        "\nEND\r\n",
        "\r\nVALUE l 0 1\r\nx\r\nEND\r\n",
    ] {
        let (story, reusable) = told("k", format!("VALUE k 0 2\r\nab{trailer}").as_bytes());
        assert_eq!(
            story,
            "200 2 0 of 13\n+ab\nnote memcached sent invalid trailer\nend 2"
        );
        assert!(!reusable, "{trailer:?}");
    }
}

#[test]
fn what_is_shorter_than_its_length_is_truncated() {
    let mut client = asked("k");
    client.receive(b"VALUE k 0 30\r\nabc\r\nEND\r\n");
    client.receive_eof();
    let expected = "200 30 0 of 14\n+abc\r\nEND\r\n\nupstream prematurely closed connection";
    assert_eq!(story(&mut client), expected);
}

#[test]
fn an_end_of_the_connection_has_its_meaning() {
    let no_trailer = "200 2 0 of 13\n+ab\nnote memcached sent invalid trailer\nend 2";
    for (bytes, expected) in [
        ("", "upstream prematurely closed connection"),
        ("VALUE k", "upstream prematurely closed connection"),
        (
            "VALUE k 0 2\r\n",
            "200 2 0 of 13\nupstream prematurely closed connection",
        ),
        ("VALUE k 0 2\r\nab", no_trailer),
        ("VALUE k 0 2\r\nab\r\nEND\r", no_trailer),
        ("END\r\n", "404 0 None of 5\nend 0\nEof"),
    ] {
        let mut client = asked("k");
        client.receive(bytes.as_bytes());
        client.receive_eof();
        assert_eq!(story(&mut client), expected, "{bytes:?}");
        assert!(!client.is_reusable());
        client.receive_eof();
        assert_eq!(client.event(), None);
    }
}

#[test]
fn a_line_has_a_limit() {
    let line = b"VALUE k 0 1\r\n";
    let mut client = asked_within("k", line.len());
    client.receive(line);
    assert_eq!(story(&mut client), "200 1 0 of 13");
    for pieces in [1, 5, 100] {
        let mut client = asked_within("k", line.len() - 1);
        for piece in line.chunks(pieces) {
            client.receive(piece);
        }
        assert_eq!(story(&mut client), "upstream sent too big header");
    }
    // Without a line end, the limit decides.
    let mut client = asked_within("k", 20);
    client.receive(&[b'x'; 19]);
    assert_eq!(story(&mut client), "");
    client.receive(b"x");
    assert_eq!(story(&mut client), "upstream sent too big header");
}

#[test]
fn a_connection_is_used_again() {
    let mut client = asked("k");
    client.receive(b"END\r\n");
    assert_eq!(client.request(b"l", 100), Ok(2));
    assert_eq!(text(&mut client), "get l\r\n");
    client.receive(b"VALUE l 1 1\r\nx\r\nEND\r\n");
    assert_eq!(
        story(&mut client),
        "404 0 None of 5\nend 0\n200 1 1 of 13\n+x\nend 1"
    );
}

#[test]
fn what_nobody_asked_for_ends_the_connection() {
    let (story_told, reusable) = told("k", b"END\r\nEND\r\n");
    let expected = "404 0 None of 5\nend 0\nupstream sent data without being asked";
    assert_eq!((story_told.as_str(), reusable), (expected, false));
    let mut client = Client::new();
    client.receive(b"x");
    assert_eq!(story(&mut client), "upstream sent data without being asked");
    assert_eq!(client.request(b"k", 100), Err(SendError::Closed));
    client.reset();
    assert_eq!(client.request(b"k", 100), Ok(1));
}

#[test]
fn a_cancelled_request_ends_the_connection() {
    let mut client = asked("k");
    client.receive(b"VALUE k 0 2\r\na");
    client.cancel();
    client.receive(b"b\r\nEND\r\n");
    assert_eq!(story(&mut client), "");
    assert!(client.is_closed());
}

#[test]
fn a_full_buffer_goes_along_with_the_value() {
    let mut client = asked("k");
    let mut buffer = b"VALUE k 0 2000\r\n".to_vec();
    buffer.resize(buffer.len() + 2000, b'v');
    buffer.extend_from_slice(b"\r\nEND\r\n");
    let at = buffer.as_ptr();
    client.receive_buffer(&mut buffer);
    assert_eq!(buffer.capacity(), 0);
    let data = std::iter::from_fn(|| client.event()).find_map(|event| match event {
        Event::Data { bytes, .. } => Some(bytes),
        _ => None,
    });
    let data = data.expect("the value is there");
    assert_eq!((data.as_ptr(), data.len()), (at, 2000));
    assert!(client.is_reusable());
}

#[path = "tests/pipelines.rs"]
mod pipelines;
