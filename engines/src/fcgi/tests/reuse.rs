//! When a connection can be used again.

use super::*;
use crate::client::SendError;
use crate::http::Chunk;

fn whole() -> Vec<u8> {
    [stdout("X-A: b\r\n\r\nhello"), stdout(""), end(0)].concat()
}

#[test]
fn a_connection_is_used_again() {
    let mut client = asked();
    client.receive(&whole());
    assert!(client.is_reusable() && !client.is_closed());
    assert_eq!(client.request(&params(&[("A", "b")]), options(true)), Ok(2));
    assert!(
        sent(&mut client).starts_with(&[1, 1, 0, 1]),
        "with the same id"
    );
    assert!(!client.is_reusable());
    client.receive(&whole());
    let once = "200 X-A=b\n+hello\nend 5";
    assert_eq!(story(&mut client), format!("{once}\n{once}"));
}

#[test]
fn without_keep_it_is_not() {
    let mut client = asked_with("GET", options(false));
    client.receive(&whole());
    assert!(!client.is_reusable() && client.is_closed());
    assert_eq!(
        client.request(&params(&[]), options(true)),
        Err(SendError::Closed)
    );
    client.reset();
    assert_eq!(client.request(&params(&[]), options(true)), Ok(1));
}

#[test]
fn a_response_before_the_request_is_whole_leaves_no_connection() {
    let options = RequestOptions {
        body: BodyLength::Length(3),
        ..options(true)
    };
    let mut client = asked_with("POST", options);
    client.receive(&whole());
    assert_eq!(story(&mut client), "200 X-A=b\n+hello\nend 5");
    assert!(!client.is_reusable());
    // Unless the rest is still sent.
    client.send(Chunk::Static(b"abc"));
    client.end();
    assert!(!client.is_reusable(), "it has not been transmitted");
    sent(&mut client);
    assert!(client.is_reusable());
}

#[test]
fn a_body_of_another_length_leaves_no_connection() {
    for body in [&b"ab"[..], b"abcd"] {
        let options = RequestOptions {
            body: BodyLength::Length(3),
            ..options(true)
        };
        let mut client = asked_with("POST", options);
        client.send(Chunk::Owned(body.to_vec()));
        client.end();
        sent(&mut client);
        client.receive(&whole());
        assert!(!client.is_reusable(), "{body:?}");
    }
}

#[test]
fn a_cancelled_request_ends_the_connection() {
    let mut client = asked();
    client.receive(&stdout("X-A: b\r\n\r\nhello"));
    client.cancel();
    client.receive(&end(0));
    assert_eq!(story(&mut client), "");
    assert!(client.is_closed());
}

#[test]
fn what_nobody_asked_for_ends_the_connection() {
    let mut client = Client::new();
    client.receive(&stderr("x"));
    assert_eq!(story(&mut client), "sent data without being asked");
    assert!(client.is_closed());
    let mut client = Client::new();
    client.receive_eof();
    assert_eq!(story(&mut client), "Eof");
    assert!(client.is_closed());
}

#[test]
fn the_memory_of_heads_is_used_again() {
    let mut client = asked();
    client.receive(&whole());
    let Some(Event::Head { head, .. }) = client.event() else {
        panic!("a head comes first");
    };
    let at: *const ResponseHead = &raw const *head;
    client.recycle(head);
    for stream in 2..4 {
        assert_eq!(client.request(&params(&[]), options(true)), Ok(stream));
        sent(&mut client);
        client.receive(&whole());
    }
    let heads = std::iter::from_fn(|| client.event()).filter_map(|event| match event {
        Event::Head { head, .. } => Some(&raw const *head),
        _ => None,
    });
    assert!(heads.into_iter().any(|head| head == at));
}
