//! Requests on the wire, and refused ones.

use super::*;
use crate::http::FileRange;
use std::os::fd::OwnedFd;

fn refused(method: &str, more: &[(&str, &str)], options: RequestOptions) -> SendError {
    let mut client = Client::new(Bodies::Delivered);
    let refused = client.request(fields(method, more), options);
    let refused = refused.expect_err("it cannot be sent");
    assert_eq!(text(&mut client), "", "{more:?}");
    assert!(!refused.message().is_empty());
    // The connection is as good as before.
    let result = client.request(fields("GET", &[]), RequestOptions::default());
    assert_eq!(result, Ok(1));
    refused
}

#[test]
fn requests_are_sent_as_written() {
    let mut client = Client::new(Bodies::Delivered);
    let more = [
        ("CONNECTION", "x, Upgrade"),
        ("x_odd(name)", " value\t"),
        ("Upgrade", "h2c"),
        ("Keep-Alive", "1"),
        ("X-Empty", ""),
        ("host", "again"),
    ];
    let result = client.request(fields("GET", &more), RequestOptions::default());
    assert_eq!(result, Ok(1));
    assert_eq!(
        text(&mut client),
        "GET /a HTTP/1.1\r\nHost: h\r\nCONNECTION: x, Upgrade\r\nx_odd(name):  value\t\r\n\
         Upgrade: h2c\r\nKeep-Alive: 1\r\nX-Empty: \r\nhost: again\r\n\r\n"
    );
    let mut client = Client::new(Bodies::Delivered);
    let options = RequestOptions {
        http10: true,
        ..RequestOptions::default()
    };
    let line = fields("POST", &[]).take(2);
    assert_eq!(client.request(line, options), Ok(1));
    assert_eq!(text(&mut client), "POST /a HTTP/1.0\r\n\r\n");
}

#[test]
fn body_with_a_length_is_counted() {
    let length = [("Content-Length", "5")];
    let mut client = Client::new(Bodies::Delivered);
    let result = client.request(fields("PUT", &length), body(BodyLength::Length(5)));
    assert_eq!(result, Ok(1));
    client.send(Chunk::Static(b"ab"));
    client.send(Chunk::Flush);
    client.send(Chunk::Owned(b"cdefg".to_vec()));
    client.end(None);
    assert!(text(&mut client).ends_with("Content-Length: 5\r\n\r\nabcde"));
    client.receive(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert!(client.is_closed(), "too much was sent");
}

#[test]
fn body_shorter_than_announced_ends_the_connection() {
    for (sent, keeps) in [("ab", false), ("abcde", true)] {
        let length = [("Content-Length", "5")];
        let mut client = asked_with("PUT", &length, body(BodyLength::Length(2)));
        client.send(Chunk::Owned(sent.into()));
        client.end(None);
        text(&mut client);
        client.receive(b"HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client.is_reusable(), keeps, "{sent}");
    }
    // No body follows, but the server may wait for it.
    let mut client = asked_with("PUT", &[("Content-Length", "5")], body(BodyLength::None));
    client.receive(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert!(client.is_closed());
}

#[test]
fn empty_bodies_need_no_end() {
    for options in [body(BodyLength::None), body(BodyLength::Length(0))] {
        for (more, last) in [
            (&[][..], "h\r\n\r\n"),
            (&[("Content-Length", "0")], "0\r\n\r\n"),
            (
                &[("Transfer-Encoding", "chunked")],
                "chunked\r\n\r\n0\r\n\r\n",
            ),
        ] {
            let mut client = Client::new(Bodies::Delivered);
            assert_eq!(client.request(fields("POST", more), options), Ok(1));
            assert!(text(&mut client).ends_with(last));
            client.receive(b"HTTP/1.1 204 No Content\r\n\r\n");
            assert!(client.is_reusable(), "{more:?}");
        }
    }
    let mut client = asked_with("PUT", &[("Content-Length", "0")], body(BodyLength::Unknown));
    client.receive(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert!(!client.is_reusable(), "the end is still to come");
    client.end(None);
    assert!(client.is_reusable());
}

#[test]
fn chunked_bodies_may_have_trailers() {
    let chunked = [("Transfer-Encoding", "Chunked")];
    for length in [BodyLength::Unknown, BodyLength::Length(5)] {
        let mut client = Client::new(Bodies::Delivered);
        let result = client.request(fields("POST", &chunked), body(length));
        assert_eq!(result, Ok(1));
        client.send(Chunk::Static(b"hello"));
        client.send(Chunk::Static(b""));
        let mut trailers = Fields::default();
        for (name, value) in [
            ("x-sum", "1"),
            ("x-bad", "1\r\n2"),
            ("x bad", "1"),
            ("content-length", "9"),
        ] {
            trailers.push(name.as_bytes(), value.as_bytes());
        }
        client.end(Some(&trailers));
        let sent = text(&mut client);
        let (_, sent) = sent.split_once("\r\n\r\n").expect("a head");
        assert_eq!(sent, "5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n");
        client.end(None);
        assert_eq!(text(&mut client), "");
    }
}

#[test]
fn large_pieces_and_files_are_not_copied() {
    let large: Rc<[u8]> = vec![b'x'; 70_000].into();
    let (file, _) = std::io::pipe().expect("a pipe");
    let range = FileRange {
        file: Rc::new(OwnedFd::from(file)),
        offset: 7,
        len: 1 << 40,
    };
    let chunked = [("Transfer-Encoding", "chunked")];
    let mut client = asked_with("POST", &chunked, body(BodyLength::Unknown));
    client.send(Chunk::from(Rc::clone(&large)));
    client.send(Chunk::File(range));
    let mut queue = OutputQueue::default();
    client.transmit(&mut queue);
    queue.advance(b"11170\r\n".len() as u64);
    let Some(Front::Bytes(front)) = queue.front() else {
        panic!("memory is left")
    };
    assert!(std::ptr::eq(front, &*large));
    let mut bytes = Vec::new();
    queue.drain_bytes(&mut bytes);
    assert!(bytes.ends_with(b"x\r\n10000000000\r\n"));
    assert!(matches!(queue.front(), Some(Front::File(range)) if range.len == 1 << 40));
    assert_eq!(
        client.sent_bytes(),
        queue.len() + (bytes.len() + 7) as u64 + HEAD_BYTES
    );
    queue.advance(1 << 40);
    let mut last = Vec::new();
    queue.drain_bytes(&mut last);
    assert_eq!(last, b"\r\n");

    /// Bytes of the request's head.
    const HEAD_BYTES: u64 =
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".len() as u64;
}

/// User input can never end a line or begin another request.
#[test]
fn fields_that_cannot_be_sent_are_refused() {
    for (more, why) in [
        (("x", "a\r\nb: c"), SendError::BadValue),
        (("x", "a\rb"), SendError::BadValue),
        (("x", "a\n"), SendError::BadValue),
        (("x", "a\0"), SendError::BadValue),
        (("x y", "a"), SendError::BadName),
        (("x\ty", "a"), SendError::BadName),
        (("x\r\ny", "a"), SendError::BadName),
        (("x\0", "a"), SendError::BadName),
        (("x\x7f", "a"), SendError::BadName),
        (("x:y", "a"), SendError::BadName),
        (("", "a"), SendError::BadName),
        ((":path", "/late"), SendError::BadName),
        ((":authority", "h"), SendError::BadName),
    ] {
        let options = RequestOptions::default();
        assert_eq!(refused("GET", &[more], options), why, "{more:?}");
    }
    for path in ["", "/a b", "/\r\nx", "/\n", "/\t", "/\0", "/\x7f"] {
        let fields = [(":method", "GET"), (":path", path), ("Host", "h")];
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mut client = Client::new(Bodies::Delivered);
        let refused = client.request(fields, RequestOptions::default());
        assert_eq!(refused, Err(SendError::BadTarget), "{path:?}");
        let refused = client.request(fields.into_iter().take(2), RequestOptions::default());
        assert_eq!(refused, Err(SendError::BadTarget), "{path:?}");
    }
    for method in ["", "G T", "GET\r\n", "G\0", "CONNECT"] {
        let options = RequestOptions::default();
        assert_eq!(refused(method, &[], options), SendError::BadMethod);
    }
}

#[test]
fn framing_that_can_be_read_in_two_ways_is_not_sent() {
    let (length, chunked) = ("Content-Length", "Transfer-Encoding");
    for more in [
        &[(length, "1"), (length, "1")][..],
        &[(length, "x")],
        &[(length, "")],
        &[(length, "+1")],
        &[(length, "1"), (chunked, "chunked")],
        &[(chunked, "chunked"), ("content-length", "1")],
        &[(chunked, "chunked"), (chunked, "chunked")],
        &[(chunked, "gzip, chunked")],
        &[(chunked, "identity")],
    ] {
        for length in [BodyLength::None, BodyLength::Length(1), BodyLength::Unknown] {
            assert_eq!(refused("POST", more, body(length)), SendError::BadFraming);
        }
    }
    let old = RequestOptions {
        http10: true,
        ..body(BodyLength::Unknown)
    };
    let coded = refused("POST", &[(chunked, "chunked")], old);
    assert_eq!(coded, SendError::BadFraming);
    for (more, length) in [
        (&[][..], BodyLength::Unknown),
        (&[], BodyLength::Length(1)),
        (&[(length, "1")], BodyLength::Length(2)),
    ] {
        assert_eq!(refused("POST", more, body(length)), SendError::BodyTooLong);
    }
}
