//! Frames of an HTTP/2 client, sent and received.

use engines::h2::PREFACE;
use engines::hpack::{Decoder, Encoder, Indexing};

/// The client's half of a connection.
pub(crate) struct Frames {
    encoder: Encoder,
    decoder: Decoder,
    held: Vec<u8>,
    /// Received WINDOW_UPDATE frames: stream and bytes.
    grants: Vec<(u32, u64)>,
}

/// Frames that it receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Head(u32, String),
    /// Bytes of a body.
    Data(u32, usize),
    /// The end of a stream.
    End(u32),
    Reset(u32, u32),
    Goaway(u32, u32),
}

impl Frames {
    /// Makes a client, and the bytes that begin its connection.
    pub(crate) fn begin() -> (Self, Vec<u8>) {
        let frames = Self {
            encoder: Encoder::new(4096, true),
            decoder: Decoder::new(4096),
            held: Vec::new(),
            grants: Vec::new(),
        };
        (frames, [&PREFACE[..], &frame(SETTINGS, 0, 0, b"")].concat())
    }

    /// Returns a request without a body.
    pub(crate) fn get(&mut self, stream: u32, target: &str) -> Vec<u8> {
        let block = self.block("GET", target);
        frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
    }

    /// Returns the head of a request with a body.
    pub(crate) fn post(&mut self, stream: u32, target: &str) -> Vec<u8> {
        let block = self.block("POST", target);
        frame(HEADERS, END_HEADERS, stream, &block)
    }

    /// Returns HEADERS of a request with `content-length`.
    pub(crate) fn post_with(&mut self, stream: u32, target: &str, length: &str) -> Vec<u8> {
        let mut block = self.block("POST", target);
        let length = length.as_bytes();
        self.encoder
            .field(b"content-length", length, Indexing::No, &mut block);
        frame(HEADERS, END_HEADERS, stream, &block)
    }

    /// Returns how many bytes the stream's window has grown since the last call.
    pub(crate) fn grants(&mut self, stream: u32) -> u64 {
        let of_stream = self.grants.extract_if(.., |(of, _)| *of == stream);
        of_stream.map(|(_, bytes)| bytes).sum()
    }

    /// Returns the header block of a request.
    pub(crate) fn block(&mut self, method: &str, target: &str) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in [
            (":method", method),
            (":scheme", "http"),
            (":authority", "a"),
            (":path", target),
        ] {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder.field(name, value, Indexing::No, &mut block);
        }
        block
    }

    /// Parses received bytes. SETTINGS, PING and WINDOW_UPDATE frames are not returned.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Vec<Received> {
        self.held.extend_from_slice(bytes);
        let mut received = Vec::new();
        while let Some(head) = self.held.first_chunk::<9>().copied() {
            let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            if self.held.len() < 9 + len {
                break;
            }
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let payload: Vec<u8> = self.held.drain(..9 + len).skip(9).collect();
            let word = |at: usize| {
                let word = payload
                    .get(at..at + 4)
                    .and_then(|word| word.try_into().ok());
                word.map_or(0, u32::from_be_bytes)
            };
            match head[3] {
                DATA if len > 0 => received.push(Received::Data(stream, len)),
                HEADERS => received.push(Received::Head(stream, self.status(&payload))),
                RESET => received.push(Received::Reset(stream, word(0))),
                WINDOW_UPDATE => self.grants.push((stream, u64::from(word(0)))),
                GOAWAY => received.push(Received::Goaway(word(0), word(4))),
                _ => {}
            }
            if matches!(head[3], DATA | HEADERS) && head[4] & END_STREAM != 0 {
                received.push(Received::End(stream));
            }
        }
        received
    }

    fn status(&mut self, block: &[u8]) -> String {
        let mut status = String::new();
        let decoded = self.decoder.decode(block, |name, value| {
            if name == b":status" {
                status = String::from_utf8_lossy(value).into_owned();
            }
        });
        assert!(decoded.is_ok());
        status
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    let head = [&len[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
/// Error codes, RFC 9113 section 7.
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;
