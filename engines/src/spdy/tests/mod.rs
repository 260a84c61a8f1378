//! Stories of whole connections: a client that encodes frames of its own, and the engine that answers.
//!
//! Output of the engine is read back as short lines, one a frame: `1 REPLY 200`, `1 DATA hello END`, `3 RST CANCEL`.

mod body;
mod client;
mod differential;
mod ending;
mod flow;
mod limits;
mod misdeeds;
mod request;
mod response;
mod wire;
mod zlib;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::frame::{self, put_control, put_data};
use super::zlib::{Deflater, Inflater};
use super::*;
use crate::http::{BodyLength, Chunk, RequestHead, ResponseHead};

/// A client, and the server's engine with what answers behind it.
struct Peer {
    conn: Conn,
    deflater: Deflater,
    inflater: Inflater,
    /// Pieces of the bodies of responses; a piece that is empty stalls once.
    bodies: BTreeMap<u32, VecDeque<Vec<u8>>>,
    trailers: BTreeMap<u32, ResponseHead>,
    /// Streams whose responses were sent whole.
    finished: Vec<u32>,
    now_ms: u64,
    /// Most bytes that wait to be transmitted.
    room: u64,
}

impl Peer {
    /// A connection on which both sides have said hello.
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let mut peer = Self::silent(settings);
        peer.setting(8, 0);
        peer.told();
        peer
    }

    /// A connection on which nothing has been said.
    fn silent(settings: Settings) -> Self {
        Self {
            conn: Conn::new(Rc::new(settings)),
            deflater: Deflater::new(6),
            inflater: Inflater::default(),
            bodies: BTreeMap::new(),
            trailers: BTreeMap::new(),
            finished: Vec::new(),
            now_ms: 1,
            room: u64::MAX,
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> &mut Self {
        self.conn.receive(bytes);
        self.conn.check_invariants();
        self
    }

    /// Sends a control frame.
    fn frame(&mut self, kind: u16, flags: u8, payload: &[u8]) -> &mut Self {
        let bytes = control(kind, flags, payload);
        self.receive(&bytes)
    }

    /// Sends one setting.
    fn setting(&mut self, id: u32, value: u32) -> &mut Self {
        self.frame(frame::SETTINGS, 0, &numbers(&[1, id, value]))
    }

    /// Opens a window.
    fn window(&mut self, stream: u32, bytes: u32) -> &mut Self {
        self.frame(frame::WINDOW_UPDATE, 0, &numbers(&[stream, bytes]))
    }

    /// Resets a stream.
    fn cancel(&mut self, stream: u32) -> &mut Self {
        self.frame(frame::RST_STREAM, 0, &numbers(&[stream, CANCEL]))
    }

    fn block_of(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let text = text_of(fields);
        self.deflated(&text)
    }

    fn deflated(&mut self, text: &[u8]) -> Vec<u8> {
        let mut block = Vec::new();
        self.deflater.block(text, &[], &mut block);
        block
    }

    /// Opens a stream with the lowest priority but one.
    fn syn(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> &mut Self {
        let block = self.block_of(fields);
        self.syn_block(stream, 6, &block, end)
    }

    fn syn_block(&mut self, stream: u32, priority: u8, block: &[u8], end: bool) -> &mut Self {
        let bytes = syn_frame(stream, priority, block, end);
        self.receive(&bytes)
    }

    /// Asks for a path without a body.
    fn get(&mut self, stream: u32, path: &str) -> &mut Self {
        self.syn(stream, &with_path("GET", path), true)
    }

    /// A request with a priority.
    fn get_with(&mut self, stream: u32, priority: u8) -> &mut Self {
        let block = self.block_of(&with_path("GET", "/"));
        self.syn_block(stream, priority, &block, true)
    }

    /// Begins a request with a body.
    fn post(&mut self, stream: u32, more: &[(&str, &str)]) -> &mut Self {
        let fields = [&with_path("POST", "/")[..], more].concat();
        self.syn(stream, &fields, false)
    }

    fn data(&mut self, stream: u32, bytes: &[u8], end: bool) -> &mut Self {
        let bytes = data_frame(stream, bytes, end);
        self.receive(&bytes)
    }

    /// The events so far, as lines.
    fn events(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.conn.event())
            .map(|event| wire::event_line(&event))
            .collect()
    }

    /// The head that must be the next event.
    fn head(&mut self) -> RequestHead {
        match self.conn.event() {
            Some(Event::Head { head, .. }) => *head,
            other => panic!("a head is due, not {other:?}"),
        }
    }

    /// Answers 200 with a body of unannounced length.
    fn answer(&mut self, stream: u32, pieces: &[&[u8]]) -> &mut Self {
        self.answer_with(stream, &response(200, BodyLength::Unknown), pieces)
    }

    fn answer_with(&mut self, stream: u32, head: &ResponseHead, pieces: &[&[u8]]) -> &mut Self {
        let plan = SendOptions {
            trailers: self.trailers.contains_key(&stream),
            chunk_bytes: CHUNK_BYTES,
        };
        let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
        self.bodies.insert(stream, pieces);
        self.conn.send_head(stream, head, plan);
        self.conn.check_invariants();
        self
    }

    /// Answers the requests of the engine.
    fn pump(&mut self) {
        loop {
            match self.conn.advance(self.room, self.now_ms) {
                SendAction::Nothing => return,
                SendAction::Sent { stream, .. } => self.finished.push(stream),
                SendAction::Body(stream) => self.feed(stream),
            }
            self.conn.check_invariants();
        }
    }

    fn feed(&mut self, stream: u32) {
        match self.bodies.entry(stream).or_default().pop_front() {
            Some(piece) if piece.is_empty() => self.conn.stall(stream),
            Some(piece) => self.conn.send_data(stream, Chunk::Owned(piece)),
            None => self.conn.send_end(stream, self.trailers.get(&stream)),
        }
    }

    /// Lets the engine send what it can; returns the frames as lines.
    fn told(&mut self) -> Vec<String> {
        self.pump();
        let bytes = wire::transmitted(&mut self.conn);
        wire::frame_lines(&bytes, &mut self.inflater)
    }
}

fn control(kind: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_control(&mut out, kind, flags, payload.len());
    out.extend_from_slice(payload);
    out
}

fn data_frame(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_data(&mut out, stream, u8::from(end), bytes.len());
    out.extend_from_slice(bytes);
    out
}

fn syn_frame(stream: u32, priority: u8, block: &[u8], end: bool) -> Vec<u8> {
    let payload = [&numbers(&[stream, 0])[..], &[priority << 5, 0], block];
    control(frame::SYN_STREAM, u8::from(end), &payload.concat())
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// The text of a header block; values are as they are, NUL and all.
fn text_of(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut text = numbers(&[fields.len() as u32]);
    for part in fields.iter().flat_map(|(name, value)| [name, value]) {
        text.extend_from_slice(&(part.len() as u32).to_be_bytes());
        text.extend_from_slice(part.as_bytes());
    }
    text
}

/// The fields that every request has.
fn with_path<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 5] {
    [
        (":method", method),
        (":path", path),
        (":version", "HTTP/1.1"),
        (":host", "h"),
        (":scheme", "http"),
    ]
}

fn response(status: u16, body: BodyLength) -> ResponseHead {
    ResponseHead {
        status,
        body,
        ..ResponseHead::default()
    }
}

/// Bytes of a DATA frame in these stories.
const CHUNK_BYTES: usize = 1000;
/// Bytes of a body that fill a frame.
const FULL: &[u8] = &[b'x'; CHUNK_BYTES];
