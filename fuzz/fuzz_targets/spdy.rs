//! SPDY/3.1, server role: the same bytes, whole and cut, give the same events, states are consistent, and nothing
//! panics. The client role of the engine reads the output and must find no fault.
//!
//! The first three bytes choose limits, the times of responses, and the cuts of the rest. The rest is the peer's bytes:
//! raw, or frames in short form (kind, flags, stream, length, payload), so that lengths need not be guessed nor header
//! blocks compressed.
#![no_main]

use std::rc::Rc;

use engines::client::Bodies;
use engines::http::ResponseHead;
use engines::spdy::{
    Client, ClientEvent, Conn, ProtocolError, REFUSED_STREAM, Settings, SpdyServer,
};
use firstbyte_fuzz::server_peer::{StreamServer, sent_by_all};
use firstbyte_fuzz::spdy_short::{Block, in_full};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step], rest)) = input.split_first_chunk::<3>() else {
        return;
    };
    let settings = Rc::new(settings(limits));
    let bytes = if mode & 1 == 0 {
        in_full(rest, REQUESTS)
    } else {
        rest.to_vec()
    };
    let sent = sent_by_all::<Spdy>(|| Conn::new(Rc::clone(&settings)), mode, &bytes, step);
    read_back(&sent);
    // The same bytes, as a server's output.
    let mut client = client(limits % 10);
    let _ = client.request([(&b":path"[..], &b"/"[..])], false);
    for piece in bytes.chunks(usize::from(step % 61) + 1) {
        client.receive(piece);
        client.check_invariants();
    }
});

fn settings(limits: u8) -> Settings {
    Settings {
        max_concurrent_streams: if limits & 1 == 0 { 100 } else { 2 },
        headers_level: if limits & 2 == 0 { 0 } else { 6 },
        preread_bytes: 65_536,
        field_bytes: if limits & 4 == 0 { 8192 } else { 20 },
        header_bytes: if limits & 8 == 0 { 32_768 } else { 80 },
        max_headers: if limits & 4 == 0 { 1000 } else { 2 },
        ignore_invalid_headers: limits & 16 == 0,
        underscores_in_headers: limits & 16 != 0,
        abuse_budget: if limits & 32 == 0 { 1000 } else { 10 },
    }
}

/// Fields of every request's header block.
const REQUESTS: &[Block] = &[Block {
    kind: 1,
    between: |flags| vec![0, 0, 0, 0, flags, 0],
    pairs: &[
        (b":method", b"GET"),
        (b":path", b"/"),
        (b":version", b"HTTP/1.1"),
        (b":host", b"h"),
        (b":scheme", b"http"),
    ],
}];

/// Checks that the client role parses the server's output.
fn read_back(sent: &[u8]) {
    let mut client = client(0);
    for _ in 0..8 {
        let _ = client.request([(&b":path"[..], &b"/"[..])], true);
    }
    client.receive(sent);
    while let Some(event) = client.event() {
        // The requests may have other stream numbers than this client's.
        let understood =
            !matches!(event, ClientEvent::Failed(why) if why != ProtocolError::BadStreamNumber);
        assert!(understood, "a frame that nobody understands: {event:?}");
    }
}

fn client(headers_level: u8) -> Client {
    let settings = Settings {
        headers_level,
        abuse_budget: u32::MAX,
        ..Settings::default()
    };
    Client::new(settings, Bodies::Delivered)
}

struct Spdy;

impl StreamServer for Spdy {
    type Protocol = SpdyServer;

    const REFUSED_STREAM: u32 = REFUSED_STREAM;

    firstbyte_fuzz::steps!();

    fn rest(conn: &mut Conn) {
        conn.shrink();
    }

    fn fill(head: &mut ResponseHead, requests: u8) {
        head.push(b"Server", b"firstbyte");
        head.push(b"Set-Cookie", b"a=1");
        // Some heads are the same as the previous one.
        head.push(b"X-Number", &[b'0' + requests / 2 % 10]);
        head.push(b"Set-Cookie", b"b=2");
    }
}
