//! HTTP/2, client role: the same bytes, whole and cut, tell the same story, an exchange ends once, the connection never
//! contradicts itself, and nothing panics. What the engine sends is read by its server role, which must find no fault.
//!
//! The first four bytes choose limits, requests, and how the rest is cut. The rest is what the server sends: bytes as they
//! are, or frames in short (type and times, flags, stream, length, payload), so that lengths need not be guessed.
#![no_main]

mod client_peer;

use std::rc::Rc;

use client_peer::{Spoken, sent_by_all};
use engines::client::{Bodies, MAX_INTERIM, SendError};
use engines::h2::{Client, Conn, Event, Http2, ProtocolError, Settings};
use engines::http::Fields;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step, at], rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let bytes = if mode & 1 == 0 {
        [SETTINGS, &in_full(rest)].concat()
    } else {
        rest.to_vec()
    };
    for sent in sent_by_all::<Http2>(limits, mode, &bytes, step, at) {
        read_back(&sent);
    }
});

fn settings(limits: u8) -> Settings {
    Settings {
        preread_bytes: if limits & 2 == 0 { 65_536 } else { 20 },
        field_bytes: if limits & 4 == 0 { 8192 } else { 20 },
        header_bytes: if limits & 8 == 0 { 32_768 } else { 80 },
        max_headers: if limits & 4 == 0 { 1000 } else { 2 },
        ignore_invalid_headers: limits & 16 == 0,
        underscores_in_headers: limits & 16 != 0,
        abuse_budget: if limits & 32 == 0 { 1000 } else { 10 },
        header_table_bytes: if limits & 64 == 0 { 4096 } else { 64 },
        ..Settings::default()
    }
}

/// Frames in short as they are on the wire; one may be sent more often than any limit allows.
fn in_full(mut short: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((&[kind, flags, stream, len], rest)) = short.split_first_chunk::<4>() {
        let (payload, rest) = rest.split_at(usize::from(len).min(rest.len()));
        short = rest;
        let times = if kind / 18 == 13 { MAX_INTERIM + 1 } else { 1 };
        for _ in 0..times {
            let claimed = payload.len() as u32;
            out.extend_from_slice(&claimed.to_be_bytes()[1..]);
            out.extend_from_slice(&[kind % 18, flags]);
            out.extend_from_slice(&u32::from(stream % 16).to_be_bytes());
            out.extend_from_slice(payload);
        }
    }
    out
}

/// The server role understands what the client role sends.
fn read_back(sent: &[u8]) {
    let settings = Settings {
        abuse_budget: u32::MAX,
        ..Settings::default()
    };
    let mut server = Conn::new(Rc::new(settings));
    server.receive(sent);
    server.check_invariants();
    while let Some(event) = server.event() {
        match event {
            // It was allowed longer ones.
            Event::Failed(ProtocolError::FrameSize) => {}
            Event::Failed(why) => panic!("{why:?}: a frame that nobody understands"),
            Event::Head { head, .. } => assert_eq!(head.fault, None),
            _ => {}
        }
    }
}

impl Spoken for Http2 {
    const SMALL_WINDOWS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3];

    fn client(limits: u8, bodies: Bodies) -> Client {
        Client::new(settings(limits), bodies)
    }

    fn request<'a>(
        client: &mut Client,
        fields: [(&'a [u8], &'a [u8]); 5],
        ended: bool,
    ) -> Result<u32, SendError> {
        client.request(fields, ended)
    }

    fn send_trailers(client: &mut Client, stream: u32, trailers: &Fields) {
        client.send_trailers(stream, trailers);
    }

    fn ping(client: &mut Client) {
        client.ping(5);
    }

    fn end(client: &mut Client) {
        client.end();
    }
}

/// SETTINGS of a server that says nothing.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
