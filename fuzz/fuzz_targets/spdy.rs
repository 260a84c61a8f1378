//! SPDY/3.1, server role: the same bytes, whole and cut, tell the same story, the connection never contradicts itself, and
//! nothing panics. What the engine sends is read by its client role, which must find no fault.
//!
//! The first three bytes choose limits, when requests are answered, and how the rest is cut. The rest is what the peer
//! sends: bytes as they are, or frames in short (kind, flags, stream, length, payload), so that neither lengths need be
//! guessed nor header blocks compressed.
#![no_main]

mod spdy_short;

use std::rc::Rc;

use engines::client::Bodies;
use engines::http::{BodyLength, Chunk, Front, OutputQueue, ResponseHead};
use engines::spdy::{
    Client, ClientEvent, Conn, Event, ProtocolError, REFUSED_STREAM, SendAction, SendOptions,
    Settings,
};
use libfuzzer_sys::fuzz_target;
use spdy_short::{Block, in_full};

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
    let whole = Peer::new(&settings, mode).run([&bytes[..]].into_iter(), false);
    let step = usize::from(step % 61) + 1;
    // With all that was remembered forgotten between the pieces.
    let cut = Peer::new(&settings, mode).run(bytes.chunks(step), true);
    assert_eq!(whole, cut, "cut into pieces of {step}");
    let at = bytes.len() * usize::from(mode >> 1) / 128;
    let halves = Peer::new(&settings, mode).run([&bytes[..at], &bytes[at..]].into_iter(), false);
    assert_eq!(whole, halves, "cut at {at}");
    Peer::new(&settings, mode).run_early(bytes.chunks(step));
    read_back(&whole.sent);
    // The same bytes, as if a server had sent them.
    let mut client = client(limits % 10);
    let _ = client.request([(&b":path"[..], &b"/"[..])], false);
    for piece in bytes.chunks(step) {
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

/// The client role understands what the server role sends.
fn read_back(sent: &[u8]) {
    let mut client = client(0);
    for _ in 0..8 {
        let _ = client.request([(&b":path"[..], &b"/"[..])], true);
    }
    client.receive(sent);
    while let Some(event) = client.event() {
        // The requests may have had other numbers than this client's.
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

#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<String>,
    sent: Vec<u8>,
    over: bool,
}

struct Peer {
    conn: Conn,
    mode: u8,
    events: Vec<String>,
    sent: Vec<u8>,
    /// Requests so far, which say how each is answered.
    requests: u8,
    turns: u8,
}

impl Peer {
    fn new(settings: &Rc<Settings>, mode: u8) -> Self {
        Self {
            conn: Conn::new(Rc::clone(settings)),
            mode,
            events: Vec::new(),
            sent: Vec::new(),
            requests: 0,
            turns: 0,
        }
    }

    /// Everything is received before anything is answered; the connection may rest meanwhile.
    fn run<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>, rests: bool) -> Story {
        for piece in pieces {
            self.conn.receive(piece);
            self.conn.check_invariants();
            if rests {
                self.conn.shrink();
            }
        }
        self.conn.receive_eof();
        self.deliver();
        self.pump(u64::MAX);
        let over = self.conn.is_over();
        Story {
            events: self.events,
            sent: self.sent,
            over,
        }
    }

    /// Answers while bytes still come, and ends the connection in the middle.
    fn run_early<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        for piece in pieces {
            self.conn.receive(piece);
            self.conn.check_invariants();
            self.deliver();
            self.turns = self.turns.wrapping_add(1);
            match self.turns ^ self.mode {
                0x11 => self.conn.drain(),
                0x12 => self.conn.end(),
                0x13 => self.conn.end_after(3),
                0x14 => _ = self.conn.give_up_block(),
                0x15 => self.conn.seconds_passed(1),
                0x16 => self.conn.reset(1, REFUSED_STREAM),
                0x17 => self.conn.shrink(),
                _ => {}
            }
            self.conn.check_invariants();
            self.pump(1 + u64::from(self.turns) * 7);
        }
        self.conn.receive_eof();
        self.deliver();
        self.pump(u64::MAX);
    }

    fn deliver(&mut self) {
        while let Some(event) = self.conn.event() {
            match &event {
                Event::Head { stream, head } => {
                    self.events.push(format!("{event:?}"));
                    let (stream, status) = (*stream, if head.fault.is_some() { 400 } else { 200 });
                    self.answer(stream, status);
                }
                Event::Data { stream, bytes } => {
                    self.events.push(format!("{event:?}"));
                    self.conn.consumed(*stream, bytes.len() as u64);
                }
                _ => self.events.push(format!("{event:?}")),
            }
            self.conn.check_invariants();
        }
    }

    fn answer(&mut self, stream: u32, status: u16) {
        self.requests = self.requests.wrapping_add(1);
        let mut head = ResponseHead {
            status,
            body: BodyLength::Unknown,
            ..ResponseHead::default()
        };
        head.push(b"Server", b"firstbyte");
        head.push(b"Set-Cookie", b"a=1");
        // Some heads are as those before.
        head.push(b"X-Number", &[b'0' + self.requests / 2 % 10]);
        head.push(b"Set-Cookie", b"b=2");
        if self.requests % 3 == 0 {
            self.conn.discard_body(stream);
        }
        let plan = SendOptions {
            trailers: self.requests % 4 == 0,
            chunk_bytes: 1 + usize::from(self.mode),
        };
        self.conn.send_head(stream, &head, plan);
    }

    fn pump(&mut self, room: u64) {
        loop {
            match self.conn.advance(room, 1) {
                SendAction::Nothing => break,
                SendAction::Sent { .. } => {}
                SendAction::Body(stream) => self.feed(stream),
            }
            self.conn.check_invariants();
        }
        let mut gather = OutputQueue::default();
        self.conn.transmit(&mut gather);
        while let Some(Front::Bytes(bytes)) = gather.front() {
            self.sent.extend_from_slice(bytes);
            let len = bytes.len() as u64;
            gather.advance(len);
        }
    }

    /// About 300 bytes for each body, distinguished by what has been sent.
    fn feed(&mut self, stream: u32) {
        if self.conn.sent_bytes(stream) < 300 {
            let piece = vec![b'x'; 1 + usize::from(self.mode) + stream as usize % 7];
            self.conn.send_data(stream, Chunk::Owned(piece));
        } else if stream % 4 == 3 {
            let mut trailers = ResponseHead::default();
            trailers.push(b"x-sum", b"1");
            self.conn.send_end(stream, Some(&trailers));
        } else {
            self.conn.send_end(stream, None);
        }
    }
}
