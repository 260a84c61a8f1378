//! SPDY/3.1, client role: the same bytes, whole and cut, give the same events, an exchange ends once, states are
//! consistent, and nothing panics. The server role of the engine reads the output and must find no fault.
//!
//! The first four bytes choose limits, requests, and the cuts of the rest. The rest is the server's bytes: raw, or
//! frames in short form (`spdy_short`).
#![no_main]

use std::rc::Rc;

use engines::http::Fields;
use engines::spdy::{Client, Conn, Settings, Spdy};
use firstbyte_fuzz::client_peer::{StreamClient, read_back, sent_by_all};
use firstbyte_fuzz::spdy_short::{Block, in_full};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step, at], rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let bytes = if mode & 1 == 0 {
        in_full(rest, BLOCKS)
    } else {
        rest.to_vec()
    };
    for sent in sent_by_all::<ClientTarget>(limits, mode, &bytes, step, at) {
        read_back(server(), &sent, |_| false);
    }
});

/// A pushed stream, a response, and trailers.
const BLOCKS: &[Block] = &[
    Block {
        kind: 1,
        between: |flags| vec![0, 0, 0, flags % 16, flags, 0],
        pairs: RESPONSE,
    },
    Block {
        kind: 2,
        between: |_| Vec::new(),
        pairs: RESPONSE,
    },
    Block {
        kind: 8,
        between: |_| Vec::new(),
        pairs: &[],
    },
];

const RESPONSE: &[(&[u8], &[u8])] = &[(b":status", b"200"), (b":version", b"HTTP/1.1")];

fn settings(limits: u8) -> Settings {
    Settings {
        headers_level: if limits & 64 == 0 { 0 } else { 6 },
        preread_bytes: if limits & 2 == 0 { 65_536 } else { 20 },
        field_bytes: if limits & 4 == 0 { 8192 } else { 20 },
        header_bytes: if limits & 8 == 0 { 32_768 } else { 80 },
        max_headers: if limits & 4 == 0 { 1000 } else { 2 },
        ignore_invalid_headers: limits & 16 == 0,
        underscores_in_headers: limits & 16 != 0,
        abuse_budget: if limits & 32 == 0 { 1000 } else { 10 },
        ..Settings::default()
    }
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
    type Protocol = Spdy;

    const SMALL_WINDOWS: &[u8] = &[
        0x80, 3, 0, 4, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 3,
    ];

    firstbyte_fuzz::asks!(settings);

    fn send_trailers(client: &mut Client, stream: u32, _trailers: &Fields) {
        client.send(stream, b"", true);
    }

    /// SPDY clients have no such frame.
    fn end(_client: &mut Client) {}
}
