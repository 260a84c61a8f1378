//! Handshake messages in records of one byte, one at a time: the handshake is unchanged, and the work grows only
//! with the number of bytes.
//!
//! Source: RFC 8446 section 5.1.

#![allow(clippy::disallowed_methods, reason = "what is measured is time")]

mod pair;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pair::{Pair, Wishes, build, client_config, settings};
use rustls::{SupportedProtocolVersion, version};
use tls::{Config, Conn};

const TLS12: &[&SupportedProtocolVersion] = &[&version::TLS12];
const TLS13: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// The records of some bytes, with their content in records of one byte each.
fn shattered(records: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = records;
    let mut out = Vec::new();
    while let Some((&[kind, major, minor, high, low], after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([high, low]));
        let part = |byte: &u8| vec![kind, major, minor, 0, 1, *byte];
        out.extend(after[..len].iter().map(part));
        rest = &after[len..];
    }
    out
}

#[test]
fn a_hello_in_records_of_one_byte_begins_the_same_handshake() {
    for versions in [TLS12, TLS13] {
        let server = build(settings("localhost"));
        let client = client_config(Wishes {
            versions,
            alpn: vec![b"http/1.1".to_vec()],
            ..Wishes::default()
        });
        let mut pair = Pair::new(&client, "localhost");
        let mut hello = Vec::new();
        pair.client.write_tls(&mut hello).expect("memory takes all");
        let pieces = shattered(&hello);
        let last = pieces.len() - 1;
        for (n, mut piece) in pieces.into_iter().enumerate() {
            let mut sink = |_: &[u8]| panic!("there is no plaintext yet");
            let received = pair.server.receive(&mut piece, &mut sink);
            received.expect("it is a handshake");
            assert_eq!(pair.server.hello().is_some(), n == last, "{n}");
            assert!(!pair.server.has_output());
        }
        let asked = pair.server.asked().server_name;
        assert_eq!(asked.as_deref(), Some(&b"localhost"[..]));
        let started = pair.server.start(&server, &[], &mut |_| {});
        started.expect("they agree so far");
        let flight = pair.server.take_output();
        pair.deliver(&flight);
        pair.run(&server).expect("they agree");
        assert_eq!(pair.server_says(b"hello"), b"hello");
    }
}

/// The head of a handshake message that is longer than its content, in its record.
fn message(kind: u8, bytes: usize) -> Vec<u8> {
    let [_, high, middle, low] = (bytes as u32).to_be_bytes();
    vec![22, 3, 3, 0, 4, kind, high, middle, low]
}

/// How long a connection takes for records of one byte, the least of three times.
fn time(records: usize, begin: impl Fn() -> Conn, kind: u8) -> Duration {
    let times = (0..3).map(|_| {
        let mut conn = begin();
        let mut receive = |mut bytes: Vec<u8>| {
            let received = conn.receive(&mut bytes, &mut |_| panic!("there is no plaintext"));
            received.expect("it waits for more");
        };
        receive(message(kind, 30_000));
        let start = Instant::now();
        for _ in 0..records {
            receive(vec![22, 3, 3, 0, 1, 0]);
        }
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// A connection of TLS 1.2 after the server's first flight.
fn greeted(server: &Arc<Config>) -> Conn {
    let client = client_config(Wishes {
        versions: TLS12,
        ..Wishes::default()
    });
    let mut pair = Pair::new(&client, "localhost");
    let mut hello = Vec::new();
    pair.client.write_tls(&mut hello).expect("memory takes all");
    let mut sink = |_: &[u8]| {};
    let received = pair.server.receive(&mut hello, &mut sink);
    received.expect("it is a hello");
    let started = pair.server.start(server, &[], &mut sink);
    started.expect("they agree so far");
    assert!(!pair.server.take_output().is_empty());
    pair.server
}

#[test]
fn work_grows_with_the_number_of_records_alone() {
    const RECORDS: usize = 3000;
    let server = build(settings("localhost"));
    type Begin<'b> = Box<dyn Fn() -> Conn + 'b>;
    let cases: [(&str, u8, Begin<'_>); 2] = [
        ("a ClientHello", 1, Box::new(Conn::new)),
        ("a ClientKeyExchange", 16, Box::new(|| greeted(&server))),
    ];
    for (what, kind, begin) in cases {
        let few = time(RECORDS, &begin, kind);
        let many = time(8 * RECORDS, &begin, kind);
        // Eight times as long; were all looked at again with each, sixty-four times.
        assert!(many < few * 24, "{what}: {few:?}, then {many:?}");
    }
}
