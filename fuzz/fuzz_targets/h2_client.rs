//! HTTP/2, client role: the same bytes, whole and cut, give the same events, an exchange ends once, states are
//! consistent, and nothing panics. The server role of the engine reads the output and must find no fault.
//!
//! The first four bytes choose limits, requests, and the cuts of the rest. The rest is the server's bytes: raw, or
//! frames in short form (type and times, flags, stream, length, payload), so that lengths need not be guessed.
#![no_main]

use std::rc::Rc;

use engines::client::MAX_INTERIM;
use engines::h2::{Client, Conn, Http2, ProtocolError, Settings};
use engines::http::Fields;
use firstbyte_fuzz::client_peer::{StreamClient, read_back, sent_by_all};
use firstbyte_fuzz::h2_short::{in_full, settings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step, at], rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let bytes = if mode & 1 == 0 {
        [SETTINGS, &in_full(rest, times)].concat()
    } else {
        rest.to_vec()
    };
    for sent in sent_by_all::<ClientTarget>(limits, mode, &bytes, step, at) {
        // The client may send larger frames than the server allows.
        read_back(server(), &sent, |error| *error == ProtocolError::FrameSize);
    }
});

/// Repetitions of a frame; one type is repeated above every limit.
fn times(kind: u8) -> u32 {
    if kind / 18 == 13 { MAX_INTERIM + 1 } else { 1 }
}

/// Makes a server without a limit of abuse.
fn server() -> Conn {
    Conn::new(Rc::new(Settings {
        abuse_budget: u32::MAX,
        ..Settings::default()
    }))
}

struct ClientTarget;

impl StreamClient for ClientTarget {
    type Protocol = Http2;

    const SMALL_WINDOWS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3];

    firstbyte_fuzz::asks!(settings);

    fn send_trailers(client: &mut Client, stream: u32, trailers: &Fields) {
        client.send_trailers(stream, trailers);
    }

    fn end(client: &mut Client) {
        client.end();
    }
}

/// Empty SETTINGS of a server.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
