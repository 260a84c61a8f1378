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

use std::rc::Rc;

use super::frame::{self, FrameHead, HEAD_BYTES, put_head};
use super::*;
use crate::hpack::{Decoder, Encoder, Indexing};
use crate::http::{BodyLength, FieldId, RequestHead, ResponseHead};
use crate::mux::tests::{self as bed, FULL, response, text};

type Peer = bed::Peer<Codec>;

/// The client's encoder and decoder.
struct Codec {
    encoder: Encoder,
    decoder: Decoder,
    /// The beginning of a header block of the server.
    block: Vec<u8>,
    /// The stream that this block promises.
    promised: Option<u32>,
}

impl bed::Codec for Codec {
    type Protocol = Http2Server;
    type Settings = Settings;

    const RESPONSE: &'static str = "HEADERS";
    const INTERNAL_ERROR: u32 = INTERNAL_ERROR;
    const TRAILERS: bool = true;

    fn new(settings: Settings) -> (Conn, Self) {
        let codec = Self {
            encoder: Encoder::new(4096, true),
            decoder: Decoder::new(4096),
            block: Vec::new(),
            promised: None,
        };
        (Conn::new(Rc::new(settings)), codec)
    }

    fn send_preface(peer: &mut Peer) {
        peer.receive(PREFACE);
        peer.frame(frame::SETTINGS, 0, 0, &[]);
        peer.frame(frame::SETTINGS, frame::ACK, 0, &[]);
    }

    fn request(
        peer: &mut Peer,
        stream: u32,
        (method, path): (&str, &str),
        more: &[(&str, &str)],
        end: bool,
    ) {
        let fields = [&with_path(method, path), more].concat();
        peer.headers(stream, &fields, end);
    }

    fn lines(&mut self, bytes: &[u8]) -> Vec<String> {
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
}

impl Peer {
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
        self.codec.encoder.begin(&mut block);
        for (name, value) in fields {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.codec
                .encoder
                .field(name, value, Indexing::Yes, &mut block);
        }
        block
    }

    /// Sends a header block in one frame.
    fn headers(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> &mut Self {
        let block = self.block_of(fields);
        let flags = frame::END_HEADERS | if end { frame::END_STREAM } else { 0 };
        self.frame(frame::HEADERS, flags, stream, &block)
    }

    fn data(&mut self, stream: u32, bytes: &[u8], end: bool) -> &mut Self {
        let flags = if end { frame::END_STREAM } else { 0 };
        self.frame(frame::DATA, flags, stream, bytes)
    }
}

impl Codec {
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
        let mut line = String::new();
        let decoded = self.decoder.decode(&block, |name, value| {
            let (name, value) = (text(name), text(value));
            line.push(' ');
            match name.as_str() {
                ":status" => line.push_str(&value),
                _ => line.push_str(&format!("{name}={value}")),
            }
        });
        decoded.expect("the engine encodes what its decoder reads");
        let kind = match self.promised.take() {
            Some(promised) => format!("PROMISE {promised}"),
            None => "HEADERS".to_owned(),
        };
        Some(format!("{} {kind}{line}{end}", head.stream))
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
