//! HTTP/2, server role: the same bytes, whole and cut, tell the same story, the connection never contradicts itself, and
//! nothing panics.
//!
//! The first three bytes choose limits, when requests are answered, and how the rest is cut. The rest is what the peer
//! sends: bytes as they are, or frames in short (type and flags, stream, length, payload), so that lengths need not be
//! guessed.
#![no_main]

use std::rc::Rc;

use engines::h2::{Conn, Event, PREFACE, REFUSED_STREAM, SendAction, SendOptions, Settings};
use engines::http::{BodyLength, Chunk, Front, OutputQueue, ResponseHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limits, mode, step], rest)) = input.split_first_chunk::<3>() else {
        return;
    };
    let settings = Rc::new(settings(limits));
    let bytes = if mode & 1 == 0 {
        [&PREFACE[..], &in_full(rest)].concat()
    } else {
        rest.to_vec()
    };
    let whole = Peer::new(&settings, mode).run([&bytes[..]].into_iter());
    let step = usize::from(step % 61) + 1;
    let cut = Peer::new(&settings, mode).run(bytes.chunks(step));
    assert_eq!(whole, cut, "cut into pieces of {step}");
    let at = bytes.len() * usize::from(mode >> 1) / 128;
    let halves = Peer::new(&settings, mode).run([&bytes[..at], &bytes[at..]].into_iter());
    assert_eq!(whole, halves, "cut at {at}");
    Peer::new(&settings, mode).run_early(bytes.chunks(step));
});

fn settings(limits: u8) -> Settings {
    Settings {
        max_concurrent_streams: if limits & 1 == 0 { 128 } else { 2 },
        max_concurrent_pushes: 3,
        preread_bytes: if limits & 2 == 0 { 65_536 } else { 20 },
        field_bytes: if limits & 4 == 0 { 8192 } else { 20 },
        header_bytes: if limits & 8 == 0 { 32_768 } else { 80 },
        max_headers: if limits & 4 == 0 { 1000 } else { 2 },
        ignore_invalid_headers: limits & 16 == 0,
        underscores_in_headers: limits & 16 != 0,
        abuse_budget: if limits & 32 == 0 { 1000 } else { 10 },
        header_table_bytes: if limits & 64 == 0 { 4096 } else { 64 },
        extended_connect: limits & 128 != 0,
    }
}

/// Frames in short as they are on the wire.
fn in_full(mut short: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((&[kind, flags, stream, len], rest)) = short.split_first_chunk::<4>() {
        let (payload, rest) = rest.split_at(usize::from(len).min(rest.len()));
        short = rest;
        let claimed = payload.len() as u32;
        out.extend_from_slice(&claimed.to_be_bytes()[1..]);
        out.extend_from_slice(&[kind % 18, flags]);
        out.extend_from_slice(&u32::from(stream % 16).to_be_bytes());
        out.extend_from_slice(payload);
    }
    out
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

    /// Everything is received before anything is answered.
    fn run<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Story {
        for piece in pieces {
            self.conn.receive(piece);
            self.conn.check_invariants();
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
                    if head.fault.is_none() {
                        self.conn.push(*stream, b"/pushed", head);
                    }
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
        head.push(b"X-Number", &[b'0' + self.requests % 10]);
        if self.requests % 3 == 0 {
            self.conn.discard_body(stream);
            self.conn.send_interim(stream, 103, None);
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
