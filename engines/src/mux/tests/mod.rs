//! A harness for the tests of servers: a client that encodes frames of its own, the engine, and the application
//! behind it; and the tests that are equal for every protocol.
//!
//! The engine's output is read back as short lines, one a frame: `1 DATA hello`, `3 RST CANCEL`.

pub(crate) mod differential;
pub(crate) mod sending;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use super::server::{Conn, Protocol};
use super::{Event, SendAction, SendOptions};
use crate::http::{BodyLength, Chunk, OutputQueue, RequestHead, ResponseHead};

/// The encoder and decoder of a protocol's client.
pub(crate) trait Codec: Sized {
    type Protocol: Protocol;
    type Settings: Default;

    /// How the line of a frame with the head of a response begins, behind the number of its stream.
    const RESPONSE: &'static str;
    /// The code of RST_STREAM for a fault of the server.
    const INTERNAL_ERROR: u32;
    /// Whether requests may have trailers.
    const TRAILERS: bool;

    /// A new connection, and its client.
    fn new(settings: Self::Settings) -> (Conn<Self::Protocol>, Self);

    /// Sends the connection preface.
    fn send_preface(peer: &mut Peer<Self>);

    /// Sends the head of a request, with `more` fields behind the mandatory ones.
    fn request(
        peer: &mut Peer<Self>,
        stream: u32,
        method_and_path: (&str, &str),
        more: &[(&str, &str)],
        end: bool,
    );

    /// Frames of the server as lines.
    fn lines(&mut self, bytes: &[u8]) -> Vec<String>;
}

/// A client, and the server's engine with the application behind it.
pub(crate) struct Peer<C: Codec> {
    pub(crate) conn: Conn<C::Protocol>,
    pub(crate) codec: C,
    /// Pieces of the bodies of responses; an empty piece stalls once.
    pub(crate) bodies: BTreeMap<u32, VecDeque<Vec<u8>>>,
    pub(crate) trailers: BTreeMap<u32, ResponseHead>,
    /// Streams with a completely sent response.
    pub(crate) finished: Vec<u32>,
    pub(crate) now_ms: u64,
    /// Most bytes that wait to be transmitted.
    pub(crate) room: u64,
}

impl<C: Codec> Peer<C> {
    /// A connection on which both sides have said hello.
    pub(crate) fn new() -> Self {
        Self::with(C::Settings::default())
    }

    pub(crate) fn with(settings: C::Settings) -> Self {
        let mut peer = Self::silent(settings);
        C::send_preface(&mut peer);
        peer.told();
        peer
    }

    /// A new connection.
    pub(crate) fn silent(settings: C::Settings) -> Self {
        let (conn, codec) = C::new(settings);
        Self {
            conn,
            codec,
            bodies: BTreeMap::new(),
            trailers: BTreeMap::new(),
            finished: Vec::new(),
            now_ms: 1,
            room: u64::MAX,
        }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) -> &mut Self {
        self.conn.receive(bytes);
        self.conn.check_invariants();
        self
    }

    /// Requests a path without a body.
    pub(crate) fn get(&mut self, stream: u32, path: &str) -> &mut Self {
        C::request(self, stream, ("GET", path), &[], true);
        self
    }

    /// Begins a request with a body.
    pub(crate) fn post(&mut self, stream: u32, more: &[(&str, &str)]) -> &mut Self {
        C::request(self, stream, ("POST", "/"), more, false);
        self
    }

    /// The events so far, as lines.
    pub(crate) fn events(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.conn.event())
            .map(|event| event_line::<C>(&event))
            .collect()
    }

    /// The head that must be the next event.
    pub(crate) fn head(&mut self) -> RequestHead {
        match self.conn.event() {
            Some(Event::Head { head, .. }) => *head,
            other => panic!("a head is due, not {other:?}"),
        }
    }

    /// Answers 200 with a body of unannounced length.
    pub(crate) fn answer(&mut self, stream: u32, pieces: &[&[u8]]) -> &mut Self {
        self.answer_with(stream, &response(200, BodyLength::Unknown), pieces)
    }

    pub(crate) fn answer_with(
        &mut self,
        stream: u32,
        head: &ResponseHead,
        pieces: &[&[u8]],
    ) -> &mut Self {
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
    pub(crate) fn pump(&mut self) {
        loop {
            match self.conn.advance(self.room, self.now_ms) {
                SendAction::Nothing => return,
                SendAction::Sent { stream, .. } => self.finished.push(stream),
                SendAction::Body(stream) => self.feed(stream),
            }
            self.conn.check_invariants();
        }
    }

    pub(crate) fn feed(&mut self, stream: u32) {
        match self.bodies.entry(stream).or_default().pop_front() {
            Some(piece) if piece.is_empty() => self.conn.stall(stream),
            Some(piece) => self.conn.send_data(stream, Chunk::Owned(piece)),
            None => self.conn.send_end(stream, self.trailers.get(&stream)),
        }
    }

    /// Everything the engine has to send.
    pub(crate) fn transmitted(&mut self) -> Vec<u8> {
        let mut queue = OutputQueue::default();
        self.conn.transmit(&mut queue);
        let mut out = Vec::new();
        queue.drain_bytes(&mut out);
        out
    }

    /// Lets the engine send as much as it can; returns the frames as lines.
    pub(crate) fn told(&mut self) -> Vec<String> {
        self.pump();
        let bytes = self.transmitted();
        self.codec.lines(&bytes)
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An event as a line.
fn event_line<C: Codec>(event: &Event<impl Debug>) -> String {
    match event {
        Event::Head { stream, head } => {
            let line = text(head.bytes(head.line));
            match head.fault {
                Some(fault) => format!("{stream} {line} {fault:?}"),
                None => format!("{stream} {line}"),
            }
        }
        Event::Data { stream, bytes } => match bytes.len() {
            0..=16 => format!("{stream} data {}", text(bytes)),
            n => format!("{stream} data {n}"),
        },
        Event::Trailers { stream, fields } => {
            assert!(C::TRAILERS, "a client cannot send trailers");
            let fields: String = fields
                .fields
                .iter()
                .map(|f| {
                    let (name, value) = (fields.bytes(f.name), fields.bytes(f.value));
                    format!(" {}={}", text(name), text(value))
                })
                .collect();
            format!("{stream} trailers{fields}")
        }
        Event::BodyEnd(stream) => format!("{stream} end"),
        Event::BodyFault(stream, fault) => format!("{stream} {fault:?}"),
        Event::Reset { stream, .. } => format!("{stream} reset"),
        Event::Failed(error) => format!("{error:?}"),
        Event::Eof => "eof".to_owned(),
    }
}

pub(crate) fn response(status: u16, body: BodyLength) -> ResponseHead {
    ResponseHead {
        status,
        body,
        ..ResponseHead::default()
    }
}

/// The payload of a DATA frame in its line.
pub(crate) fn data_text(payload: &[u8]) -> String {
    match payload.len() {
        0 => "-".to_owned(),
        1..=16 => text(payload),
        n => n.to_string(),
    }
}

/// Bytes of a DATA frame in these stories.
pub(crate) const CHUNK_BYTES: usize = 1000;
/// Bytes of a body that fill a frame.
pub(crate) const FULL: &[u8] = &[b'x'; CHUNK_BYTES];
