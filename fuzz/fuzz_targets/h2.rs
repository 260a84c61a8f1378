//! HTTP/2, server role: the same bytes, whole and cut, give the same events, states are consistent, and nothing panics.
//!
//! The first three bytes choose limits, the times of responses, and the cuts of the rest. The rest is the peer's bytes:
//! raw, or frames in short form (type and flags, stream, length, payload), so that lengths need not be guessed.
#![no_main]

use std::rc::Rc;

use engines::h2::{Conn, Http2Server, PREFACE, REFUSED_STREAM, Settings};
use engines::http::{RequestHead, ResponseHead};
use firstbyte_fuzz::h2_short::{self, in_full};
use firstbyte_fuzz::server_peer::{StreamServer, sent_by_all};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step], rest)) = input.split_first_chunk::<3>() else {
        return;
    };
    let settings = Rc::new(settings(limits));
    let bytes = if mode & 1 == 0 {
        [&PREFACE[..], &in_full(rest, |_| 1)].concat()
    } else {
        rest.to_vec()
    };
    sent_by_all::<Http2>(|| Conn::new(Rc::clone(&settings)), mode, &bytes, step);
});

fn settings(limits: u8) -> Settings {
    Settings {
        max_concurrent_streams: if limits & 1 == 0 { 128 } else { 2 },
        max_concurrent_pushes: 3,
        extended_connect: limits & 128 != 0,
        ..h2_short::settings(limits)
    }
}

struct Http2;

impl StreamServer for Http2 {
    type Protocol = Http2Server;

    const REFUSED_STREAM: u32 = REFUSED_STREAM;

    firstbyte_fuzz::steps!();

    fn push(conn: &mut Conn, stream: u32, head: &RequestHead) {
        conn.push(stream, b"/pushed", head);
    }

    fn send_interim(conn: &mut Conn, stream: u32) {
        conn.send_interim(stream, 103, None);
    }

    fn fill(head: &mut ResponseHead, requests: u8) {
        head.push(b"Server", b"firstbyte");
        head.push(b"X-Number", &[b'0' + requests % 10]);
    }
}
