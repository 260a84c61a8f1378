//! Stories of whole connections: a client that encodes frames of its own, and the engine that answers.
//!
//! Output of the engine is read back as short lines, one a frame: `1 HEADERS 200 END`, `1 DATA hello`, `3 RST CANCEL`.

mod body;
mod client;
mod differential;
mod ending;
mod flow;
mod frames;
mod limits;
mod misdeeds;
mod priority;
mod push;
mod request;
mod response;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::frame::{self, FrameHead, HEAD_BYTES, put_head};
use super::*;
use crate::hpack::{Decoder, Encoder, Indexing};
use crate::http::{BodyLength, Chunk, FieldId, RequestHead, ResponseHead};

/// A client, and the server's engine with what answers behind it.
struct Peer {
    conn: Conn,
    encoder: Encoder,
    decoder: Decoder,
    /// Of a header block of the server of which more is to come.
    block: Vec<u8>,
    /// The stream that this block promises.
    promised: Option<u32>,
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
        peer.receive(PREFACE);
        peer.frame(frame::SETTINGS, 0, 0, &[]);
        peer.frame(frame::SETTINGS, frame::ACK, 0, &[]);
        peer.told();
        peer
    }

    /// A connection on which nothing has been said.
    fn silent(settings: Settings) -> Self {
        Self {
            conn: Conn::new(Rc::new(settings)),
            encoder: Encoder::new(4096, true),
            decoder: Decoder::new(4096),
            block: Vec::new(),
            promised: None,
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

    /// Sends a frame.
    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> &mut Self {
        let bytes = frame_of(kind, flags, stream, payload);
        self.receive(&bytes)
    }

    /// Sends one setting.
    fn setting(&mut self, id: u16, value: u32) -> &mut Self {
        let payload = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        self.frame(frame::SETTINGS, 0, 0, &payload)
    }

    /// Opens a window.
    fn window(&mut self, stream: u32, bytes: u32) -> &mut Self {
        self.frame(frame::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    /// Resets a stream.
    fn cancel(&mut self, stream: u32) -> &mut Self {
        self.frame(frame::RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
    }

    fn block_of(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder.field(name, value, Indexing::Yes, &mut block);
        }
        block
    }

    /// Sends a header block in one frame.
    fn headers(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> &mut Self {
        let block = self.block_of(fields);
        let flags = frame::END_HEADERS | if end { frame::END_STREAM } else { 0 };
        self.frame(frame::HEADERS, flags, stream, &block)
    }

    /// Asks for a path without a body.
    fn get(&mut self, stream: u32, path: &str) -> &mut Self {
        self.headers(stream, &with_path("GET", path), true)
    }

    /// Begins a request with a body.
    fn post(&mut self, stream: u32, more: &[(&str, &str)]) -> &mut Self {
        let fields = [&with_path("POST", "/"), more].concat();
        self.headers(stream, &fields, false)
    }

    fn data(&mut self, stream: u32, bytes: &[u8], end: bool) -> &mut Self {
        let flags = if end { frame::END_STREAM } else { 0 };
        self.frame(frame::DATA, flags, stream, bytes)
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
        self.read(&bytes)
    }

    fn read(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut rest = bytes;
        let mut lines = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::parse(head);
            let (payload, after) = after.split_at(head.len);
            rest = after;
            lines.extend(self.line(head, payload));
        }
        assert!(rest.is_empty(), "a part of a frame was transmitted");
        lines
    }

    /// A frame as a line; a header block is shown with its last frame.
    fn line(&mut self, head: FrameHead, payload: &[u8]) -> Option<String> {
        let kinds = [frame::HEADERS, frame::PUSH_PROMISE, frame::CONTINUATION];
        if !kinds.contains(&head.kind) {
            return Some(wire::frame_line(head, payload));
        }
        let mut fragment = payload;
        if head.kind != frame::CONTINUATION {
            assert!(self.block.is_empty(), "a block inside of a block");
        }
        if head.kind == frame::PUSH_PROMISE {
            self.promised = frame::number(payload);
            fragment = &payload[4..];
        }
        self.block.extend_from_slice(fragment);
        let end = if head.has(frame::END_STREAM) {
            " END"
        } else {
            ""
        };
        if !head.has(frame::END_HEADERS) {
            return (!end.is_empty()).then(|| format!("{} BLOCK{end}", head.stream));
        }
        let block = std::mem::take(&mut self.block);
        let mut text = String::new();
        let decoded = self.decoder.decode(&block, |name, value| {
            let (name, value) = (wire::text(name), wire::text(value));
            text.push(' ');
            match name.as_str() {
                ":status" => text.push_str(&value),
                _ => text.push_str(&format!("{name}={value}")),
            }
        });
        decoded.expect("the engine encodes what its decoder reads");
        let kind = match self.promised.take() {
            Some(promised) => format!("PROMISE {promised}"),
            None => "HEADERS".to_owned(),
        };
        Some(format!("{} {kind}{text}{end}", head.stream))
    }
}

fn frame_of(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_head(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

/// The fields that every request has.
fn with_path<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "h"),
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
