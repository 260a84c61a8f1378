//! HTTP/2, client role: the same bytes, whole and cut, tell the same story, an exchange ends once, the connection never
//! contradicts itself, and nothing panics. What the engine sends is read by its server role, which must find no fault.
//!
//! The first four bytes choose limits, requests, and how the rest is cut. The rest is what the server sends: bytes as they
//! are, or frames in short (type and times, flags, stream, length, payload), so that lengths need not be guessed.
#![no_main]

use std::collections::BTreeMap;
use std::rc::Rc;

use engines::client::{Bodies, MAX_INTERIM};
use engines::h2::{Client, ClientEvent, Conn, Event, Misdeed, Settings};
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
    let whole = Peer::new(limits, mode).run([&bytes[..]].into_iter());
    let step = usize::from(step % 61) + 1;
    let cut = Peer::new(limits, mode).run(bytes.chunks(step));
    assert_eq!(whole, cut, "cut into pieces of {step}");
    let at = bytes.len() * usize::from(at) / 256;
    let halves = Peer::new(limits, mode).run([&bytes[..at], &bytes[at..]].into_iter());
    assert_eq!(whole, halves, "cut at {at}");
    let early = Peer::new(limits, mode).run_early(bytes.chunks(step));
    read_back(&whole.sent);
    read_back(&early.sent);
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
            Event::Failed(Misdeed::FrameSize) => {}
            Event::Failed(why) => panic!("{why:?}: a frame that nobody understands"),
            Event::Head { head, .. } => assert_eq!(head.fault, None),
            _ => {}
        }
    }
}

#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<String>,
    sent: Vec<u8>,
    room: usize,
    closed: bool,
}

struct Peer {
    client: Client,
    /// Bodies are told, not only counted.
    told: bool,
    mode: u8,
    events: Vec<String>,
    sent: Vec<u8>,
    /// Exchanges that have not ended.
    open: BTreeMap<u32, Exchange>,
    over: bool,
    turns: u8,
}

#[derive(Debug, Default)]
struct Exchange {
    head: bool,
    interim: u32,
    body_bytes: u64,
}

impl Peer {
    /// A client that has asked for five things: without a body, by HEAD, and with bodies that are sent in part, wait for
    /// windows, or have trailers.
    fn new(limits: u8, mode: u8) -> Self {
        let bodies = [Bodies::Told, Bodies::Counted][usize::from(limits & 1)];
        let mut peer = Self {
            client: Client::new(settings(limits), bodies),
            told: limits & 1 == 0,
            mode,
            events: Vec::new(),
            sent: Vec::new(),
            open: BTreeMap::new(),
            over: false,
            turns: 0,
        };
        if mode & 2 != 0 {
            peer.client.receive(SMALL_WINDOWS);
        }
        peer.ask(b"GET", true);
        peer.ask(b"HEAD", true);
        for (method, len) in [(&b"POST"[..], 300), (b"PUT", 40), (b"PATCH", 40)] {
            let Some(stream) = peer.ask(method, false) else {
                continue;
            };
            // More than the window of the connection, in one mode.
            let len = if mode & 0x1c == 0x1c { 40_000 } else { len };
            peer.client.send(stream, &vec![b'x'; len], method == b"PUT");
            if method == b"PATCH" {
                peer.end_with_trailers(stream);
            }
        }
        peer.client.check_invariants();
        peer
    }

    fn ask(&mut self, method: &[u8], ended: bool) -> Option<u32> {
        let fields: [(&[u8], &[u8]); 5] = [
            (b":method", method),
            (b":scheme", b"http"),
            (b":authority", b"h"),
            (b":path", b"/"),
            (b"x-mode", &[b'0' + self.mode % 10]),
        ];
        let room = self.client.room();
        let stream = self.client.request(fields, ended).ok()?;
        assert!(room > 0, "a request without room");
        self.open.insert(stream, Exchange::default());
        Some(stream)
    }

    fn end_with_trailers(&mut self, stream: u32) {
        let mut trailers = Fields::default();
        trailers.push(b"x-sum", b"1");
        trailers.push(b"connection", b"close");
        self.client.send_trailers(stream, &trailers);
    }

    /// Everything is received before anything is read.
    fn run<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Story {
        for piece in pieces {
            self.client.receive(piece);
            self.client.check_invariants();
        }
        self.client.receive_eof(true);
        self.listen();
        self.story()
    }

    /// Goes on with requests while bytes still come.
    fn run_early<'a>(mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Story {
        for piece in pieces {
            self.client.receive(piece);
            self.client.check_invariants();
            self.listen();
            self.turns = self.turns.wrapping_add(1);
            match (self.turns ^ self.mode) & 0x1f {
                1 => self.client.send(5, b"more", false),
                2 => self.client.send(5, b"", true),
                3 => self.end_with_trailers(5),
                4 => self.cancel(7),
                5 => self.client.ping(5),
                6 => self.client.end(),
                7 => self.client.seconds_passed(1),
                8 | 9 => _ = self.ask(b"GET", true),
                10 => _ = self.ask(b"DELETE", false),
                11 => self.cancel(1),
                12 => assert!(self.client.pending_bytes(9) <= 40_000),
                _ => {}
            }
            self.client.check_invariants();
            self.client.transmit(&mut self.sent);
        }
        self.client.receive_eof(true);
        self.listen();
        self.story()
    }

    fn cancel(&mut self, stream: u32) {
        self.client.cancel(stream);
        self.open.remove(&stream);
    }

    fn story(mut self) -> Story {
        self.client.transmit(&mut self.sent);
        Story {
            room: self.client.room(),
            closed: self.client.is_closed(),
            events: self.events,
            sent: self.sent,
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.client.event() {
            self.judge(&event);
            self.events.push(format!("{event:?}"));
            match event {
                ClientEvent::Data { stream, bytes } => {
                    self.client.consumed(stream, bytes.len() as u64);
                }
                ClientEvent::Head { head, .. } | ClientEvent::Interim { head, .. } => {
                    self.client.recycle(head);
                }
                _ => {}
            }
            self.client.check_invariants();
        }
    }

    /// Events come in their order, about exchanges that have not ended.
    fn judge(&mut self, event: &ClientEvent) {
        assert!(!self.over, "{event:?} after the end");
        match event {
            ClientEvent::Interim { stream, .. } => {
                let exchange = self.exchange(*stream, false, event);
                exchange.interim += 1;
                assert!(exchange.interim <= MAX_INTERIM);
            }
            ClientEvent::Head { stream, .. } => self.exchange(*stream, false, event).head = true,
            ClientEvent::Data { stream, bytes } => {
                self.exchange(*stream, true, event).body_bytes += bytes.len() as u64;
            }
            ClientEvent::Trailers { stream, .. } => _ = self.exchange(*stream, true, event),
            ClientEvent::End { stream, body_bytes } => {
                let told = self.exchange(*stream, true, event).body_bytes;
                let expected = if self.told { *body_bytes } else { 0 };
                assert_eq!(told, expected, "{event:?}");
                self.open.remove(stream);
            }
            ClientEvent::Reset { stream, .. } | ClientEvent::Malformed { stream, .. } => {
                assert!(self.open.remove(stream).is_some(), "{event:?}");
            }
            ClientEvent::Pong(_) | ClientEvent::Closing { .. } => {}
            ClientEvent::Failed(_) => self.over = true,
            ClientEvent::Eof => {
                assert!(self.open.is_empty(), "{:?} have no end", self.open);
                self.over = true;
            }
            ClientEvent::Upgraded(_) => panic!("{event:?} does not exist here"),
        }
    }

    fn exchange(&mut self, stream: u32, head: bool, event: &ClientEvent) -> &mut Exchange {
        let exchange = self.open.get_mut(&stream);
        let exchange = exchange.unwrap_or_else(|| panic!("{event:?} about no exchange"));
        assert_eq!(exchange.head, head, "{event:?}");
        exchange
    }
}

/// SETTINGS of a server that says nothing.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// SETTINGS of a server that lets three bytes of each body come.
const SMALL_WINDOWS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3];
