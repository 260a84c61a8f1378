//! Bodies, ends of connections and tunnels.

use super::*;
use crate::client::SendError;
use crate::http::{BodyLength, Chunk};

#[test]
fn a_body_has_its_length_or_ends_with_the_connection() {
    for (response, wanted) in [
        ("A: b\n\nhello", &["200 A=b", "+hello", "end 5"][..]),
        (
            "Content-Length: 5\n\nhello",
            &["200 Content-Length=5", "+hello", "end 5"],
        ),
        ("Content-Length: 0\n\n", &["200 Content-Length=0", "end 0"]),
        ("Status: 204\n\n", &["204 Status=204", "end 0"]),
        (
            "Status: 304\nContent-Length: 9\n\n",
            &["304 Status=304 Content-Length=9", "end 0"],
        ),
        ("\n", &["200", "end 0"]),
    ] {
        assert_eq!(told(response), wanted, "{response:?}");
    }
}

#[test]
fn bytes_behind_a_response_are_dropped() {
    for (response, wanted) in [
        (
            "Content-Length: 3\n\nhello",
            &["200 Content-Length=3", "+hel", "end 3"][..],
        ),
        (
            "Content-Length: 0\n\nhello",
            &["200 Content-Length=0", "end 0"],
        ),
        ("Status: 204\n\nhello", &["204 Status=204", "end 0"]),
        (
            "Status: 304\n\nStatus: 200\n\n",
            &["304 Status=304", "end 0"],
        ),
    ] {
        assert_eq!(told(response), wanted, "{response:?}");
    }
}

#[test]
fn the_response_to_head_has_no_body() {
    let response = b"Content-Length: 5\n\nhello";
    let wanted = ["200 Content-Length=5", "end 0"];
    assert_eq!(told_to("HEAD", response, true), wanted);
    assert_eq!(told_to("HEAD", b"A: b\n\n", false), ["200 A=b", "end 0"]);
}

#[test]
fn a_response_that_is_cut_is_not_whole() {
    for (response, wanted) in [
        ("", &["NoResponse"][..]),
        ("A", &["Truncated"]),
        ("A: b\r\n", &["Truncated"]),
        (
            "Content-Length: 5\n\nhell",
            &["200 Content-Length=5", "+hell", "Truncated"],
        ),
        (
            "Content-Length: 5\n\n",
            &["200 Content-Length=5", "Truncated"],
        ),
    ] {
        assert_eq!(told(response), wanted, "{response:?}");
    }
    let mut client = asked("GET");
    client.receive(b"A: b\n\nhello");
    client.receive_eof(false);
    assert_eq!(lines(&mut client), ["200 A=b", "+hello", "Truncated"]);
    assert_eq!(
        ProtocolError::Truncated.message(),
        "prematurely closed connection"
    );
}

#[test]
fn a_large_piece_of_a_body_is_not_copied() {
    let mut client = asked("GET");
    client.receive(b"A: b\n\n");
    client.event();
    let mut buffer = vec![b'x'; 1000];
    let memory = buffer.as_ptr();
    client.receive_buffer(&mut buffer);
    let Some(client::Event::Data { bytes, .. }) = client.event() else {
        panic!("data is due")
    };
    assert_eq!((bytes.as_ptr(), bytes.len()), (memory, 1000));
    assert!(buffer.is_empty());
}

#[test]
fn an_upgrade_that_was_asked_for_is_a_tunnel() {
    let options = RequestOptions {
        upgrade: true,
        ..RequestOptions::default()
    };
    let mut client = asked_with("GET", options);
    client.receive(b"Status: 101 Switching\nUpgrade: x\n\nup");
    assert_eq!(
        lines(&mut client),
        ["101 Status=101 Switching Upgrade=x", "Upgraded(1)", "+up"]
    );
    client.send(Chunk::Owned(b"down".to_vec()));
    assert_eq!(sent(&mut client), b"down");
    client.end();
    client.receive(b"more");
    client.receive_eof(true);
    assert_eq!(lines(&mut client), ["+more", "end 6"]);

    let options = RequestOptions {
        body: BodyLength::Length(4),
        ..options
    };
    let mut client = asked_with("GET", options);
    client.receive(b"Status: 101\n\n");
    assert_eq!(
        lines(&mut client),
        ["UnaskedUpgrade"],
        "the body is not sent"
    );
}

fn sent(client: &mut Client) -> Vec<u8> {
    let (mut queue, mut out) = (OutputQueue::default(), Vec::new());
    client.transmit(&mut queue);
    queue.drain_bytes(&mut out);
    out
}

#[test]
fn the_body_of_a_request_follows_as_it_is() {
    let options = RequestOptions {
        body: BodyLength::Unknown,
        ..RequestOptions::default()
    };
    let mut client = asked_with("POST", options);
    client.send(Chunk::Owned(b"a\0b".to_vec()));
    assert_eq!(sent(&mut client), b"a\0b");
    client.receive(b"A: b\n\n");
    client.send(Chunk::Owned(b"c".to_vec()));
    client.end();
    client.send(Chunk::Owned(b"late".to_vec()));
    assert_eq!(
        sent(&mut client),
        b"c",
        "a response does not end its request"
    );
}

#[test]
fn a_connection_has_one_request() {
    let mut client = asked("GET");
    let again = |client: &mut Client| {
        crate::scgi::request(client, &params("GET"), RequestOptions::default())
    };
    assert_eq!(again(&mut client), Err(SendError::Closed));
    client.receive(b"Content-Length: 0\n\n");
    assert_eq!(lines(&mut client).len(), 2);
    assert!(!client.is_reusable());
    assert_eq!(again(&mut client), Err(SendError::Closed));
    assert!(sent(&mut client).is_empty());
    client.receive_eof(true);
    assert!(client.event().is_none(), "all has been told");
    client.reset();
    assert_eq!(again(&mut client), Ok(1));
    client.receive(b"\n");
    client.receive_eof(true);
    assert_eq!(lines(&mut client), ["200", "end 0"]);
}

#[test]
fn a_new_connection_knows_nothing_of_the_last_one() {
    let mut client = asked("GET");
    client.receive(b"Status: 404\nX");
    client.reset();
    client.receive_eof(true);
    assert_eq!(lines(&mut client), ["Eof"]);
    client.reset();
    let begun = crate::scgi::request(&mut client, &params("GET"), RequestOptions::default());
    assert_eq!(begun, Ok(1));
    client.receive(b"A: b\n\n");
    assert_eq!(lines(&mut client), ["200 A=b"]);
}
