//! Ends of bodies, and bytes behind them.

use super::*;

#[test]
fn bodies_end_where_their_framing_says() {
    let ok = "HTTP/1.1 200 OK\r\n";
    assert_eq!(
        told(&format!("{ok}Content-Length: 3\r\n\r\nabc")),
        ["200 Content-Length=3", "+abc", "end 3"]
    );
    assert_eq!(
        told("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"),
        ["200 Content-Length=0", "end 0"]
    );
    assert_eq!(
        told(&format!(
            "{ok}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\na: b\r\n\r\n"
        )),
        [
            "200 Transfer-Encoding=chunked",
            "+abc",
            "trailers 1",
            "end 3"
        ]
    );
}

#[test]
fn responses_without_a_body_have_none_whatever_they_say() {
    for status in ["204", "304"] {
        for line in ["Content-Length: 7", "Transfer-Encoding: chunked", "X: y"] {
            let lines = told(&format!("HTTP/1.1 {status} x\r\n{line}\r\n\r\n"));
            assert_eq!(lines.last().map(String::as_str), Some("end 0"), "{line}");
        }
    }
    for line in ["Content-Length: 7", "Transfer-Encoding: chunked", "X: y"] {
        let input = format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n");
        let mut client = asked("HEAD");
        client.receive(input.as_bytes());
        assert_eq!(
            events(&mut client).last().map(String::as_str),
            Some("end 0")
        );
        assert!(client.is_reusable(), "{line}");
    }
}

#[test]
fn bodies_without_framing_end_with_the_connection_if_its_end_is_whole() {
    for (whole, last) in [(true, "end 3"), (false, "Truncated")] {
        let mut client = asked("GET");
        client.receive(b"HTTP/1.1 200 OK\r\n\r\nabc");
        client.receive_eof(whole);
        assert_eq!(events(&mut client), ["200", "+abc", last]);
        assert!(client.is_closed());
    }
}

#[test]
fn ends_are_told_apart_by_what_was_under_way() {
    let mut idle = Client::new(Bodies::Delivered);
    idle.receive_eof(true);
    assert_eq!(events(&mut idle), ["Eof"]);
    for (input, error) in [
        ("", "NoResponse"),
        ("HTTP/1.1 200 OK\r\n", "Truncated"),
        ("H", "Truncated"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "Truncated"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx", "Truncated"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "Truncated",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
            "Truncated",
        ),
    ] {
        let mut client = asked("GET");
        client.receive(input.as_bytes());
        assert_eq!(client.has_answer(), !input.is_empty());
        client.receive_eof(true);
        let last = events(&mut client).pop();
        assert_eq!(last.as_deref(), Some(error), "{input:?}");
    }
    let words = "prematurely closed connection";
    assert_eq!(ProtocolError::NoResponse.message(), words);
    assert_eq!(ProtocolError::Truncated.message(), words);
}

#[test]
fn broken_chunks_are_refused_behind_the_data_before_them() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n";
    for (body, words) in [
        ("0x1\r\n", "sent invalid chunked response"),
        ("1\nx\r\n", "sent invalid chunked response"),
        ("1\r\nxXX", "sent invalid chunked response"),
        ("\r\n", "sent invalid chunked response"),
        ("-1\r\n", "sent invalid chunked response"),
        ("8000000000000000\r\n", "sent invalid chunked response"),
        ("0\r\nno-colon\r\n\r\n", "sent invalid trailer"),
        ("0\r\nX: a\0\r\n\r\n", "sent invalid trailer"),
        ("0\r\nX: a\n\r\n", "sent invalid trailer"),
    ] {
        let input = format!("{head}{body}");
        let lines = told(&input);
        assert!(lines[1].starts_with("+ab"), "{body:?}: {lines:?}");
        assert!(lines[2].starts_with("Body("), "{body:?}: {lines:?}");
        assert_eq!(failure(&input), words, "{body:?}");
    }
}

#[test]
fn tabs_around_framing_fields_and_trailers_are_no_part_of_them() {
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding:\tchunked\t \r\n\r\n2\r\nab\r\n0\r\nX:\ty\t\r\n\r\n";
    let lines = [
        "200 Transfer-Encoding=chunked",
        "+ab",
        "trailers 1",
        "end 2",
    ];
    assert_eq!(told(chunked), lines);
    let length = "HTTP/1.1 200 OK\r\nContent-Length:\t2\t\r\n\r\nab";
    assert_eq!(told(length), ["200 Content-Length=2", "+ab", "end 2"]);
}

#[test]
fn bytes_that_nobody_asked_for_end_the_connection_behind_a_whole_response() {
    let mut idle = Client::new(Bodies::Delivered);
    idle.receive(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
    assert_eq!(events(&mut idle), ["Unasked"]);
    assert!(idle.is_closed());
    let twice = "HTTP/1.1 204 No Content\r\n\r\n".repeat(2);
    assert_eq!(told(&twice), ["204", "end 0", "Unasked"]);
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd";
    let lines = ["200 Content-Length=3", "+abc", "end 3", "DataAfterLength"];
    assert_eq!(told(length), lines);
    let words = "sent more data than specified in \"Content-Length\" header";
    assert_eq!(failure(length), words);
    let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nx";
    assert_eq!(failure(empty), words);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nx";
    let lines = [
        "200 Transfer-Encoding=chunked",
        "+a",
        "end 1",
        "DataAfterChunks",
    ];
    assert_eq!(told(chunked), lines);
    assert_eq!(failure(chunked), "sent data after final chunk");
}

#[test]
fn counted_bodies_are_not_told() {
    for body in [
        "Content-Length: 3\r\n\r\nabc",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\na: b\r\n\r\n",
    ] {
        let mut client = Client::new(Bodies::Counted);
        let result = client.request(fields("GET", &[]), RequestOptions::default());
        assert_eq!(result, Ok(1));
        client.receive_buffer(&mut format!("HTTP/1.1 200 OK\r\n{body}").into_bytes());
        let lines = events(&mut client);
        assert!(
            lines[0].starts_with("200 ") && lines[1..] == ["end 3"],
            "{lines:?}"
        );
    }
}
