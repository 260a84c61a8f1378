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

use std::rc::Rc;

use super::frame::{self, put_control, put_data};
use super::zlib::{Deflater, Inflater};
use super::*;
use crate::http::{BodyLength, ResponseHead};
use crate::mux::tests::{self as bed, FULL, response, text};

type Peer = bed::Peer<Codec>;

/// The client's encoder and decoder.
struct Codec {
    deflater: Deflater,
    inflater: Inflater,
}

impl bed::Codec for Codec {
    type Protocol = SpdyServer;
    type Settings = Settings;

    const RESPONSE: &'static str = "REPLY";
    const INTERNAL_ERROR: u32 = INTERNAL_ERROR;
    const TRAILERS: bool = false;

    fn new(settings: Settings) -> (Conn, Self) {
        let codec = Self {
            deflater: Deflater::new(6),
            inflater: Inflater::default(),
        };
        (Conn::new(Rc::new(settings)), codec)
    }

    fn send_preface(peer: &mut Peer) {
        peer.setting(8, 0);
    }

    fn request(
        peer: &mut Peer,
        stream: u32,
        (method, path): (&str, &str),
        more: &[(&str, &str)],
        end: bool,
    ) {
        let fields = [&with_path(method, path)[..], more].concat();
        peer.syn(stream, &fields, end);
    }

    fn lines(&mut self, bytes: &[u8]) -> Vec<String> {
        wire::frame_lines(bytes, &mut self.inflater)
    }
}

impl Peer {
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
        self.codec.deflater.block(text, &[], &mut block);
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

    /// A request for `/` with a priority.
    fn get_with(&mut self, stream: u32, priority: u8) -> &mut Self {
        let block = self.block_of(&with_path("GET", "/"));
        self.syn_block(stream, priority, &block, true)
    }

    fn data(&mut self, stream: u32, bytes: &[u8], end: bool) -> &mut Self {
        let bytes = data_frame(stream, bytes, end);
        self.receive(&bytes)
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

/// The text of a header block; values are verbatim, NUL included.
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
