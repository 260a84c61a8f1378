//! The client role with requests of HTTP/1.0 (RFC 9112 appendix C.2.1).

use super::super::{Client, ClientEvent, ProtocolError};
use super::*;
use crate::client::{Bodies, Refusal};
use crate::http::Fault;

const GET: [(&[u8], &[u8]); 3] = [
    (b":method", b"GET"),
    (b":path", b"/a"),
    (b":authority", b"h"),
];

fn asked() -> Client {
    let mut client = Client::http10(Settings::default(), Bodies::Told);
    client.request(GET, true).expect("it is idle");
    client
}

#[test]
fn request_of_http10_says_so_and_ends_the_connection() {
    let (mut client, mut out) = (asked(), Vec::new());
    client.transmit(&mut out);
    assert_eq!(out, b"GET /a HTTP/1.0\r\nHost: h\r\n\r\n");
    client.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    assert!(client.is_closed());
}

#[test]
fn body_without_a_length_cannot_be_sent_over_http10() {
    let mut client = Client::http10(Settings::default(), Bodies::Told);
    assert_eq!(client.request(GET, false), Err(Refusal::BadField));
}

#[test]
fn chunked_response_to_http10_is_a_misdeed() {
    let mut client = asked();
    client.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    let failed = ClientEvent::Failed(ProtocolError::Head(Fault::EncodingInHttp10));
    assert_eq!(client.event(), Some(failed));
}
