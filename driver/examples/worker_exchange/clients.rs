//! Sending sides of HTTP/2 and SPDY clients.

use engines::client::Bodies;
use engines::h2::PREFACE;
use engines::hpack::{Encoder, Indexing};
use engines::spdy;

/// The sending side of an HTTP/2 client. After two blocks all fields are indexed, and every block is the same.
pub(super) struct Http2 {
    encoder: Encoder,
    block: Vec<u8>,
    encoded: u32,
    stream: u32,
    begun: bool,
}

impl Http2 {
    pub(super) fn new() -> Self {
        Self {
            encoder: Encoder::new(4096, true),
            block: Vec::new(),
            encoded: 0,
            stream: 1,
            begun: false,
        }
    }

    /// Replaces `out` by requests. The preface comes before the first ones.
    #[inline(always)] // A call would count towards the worker.
    pub(super) fn ask(&mut self, path: &str, times: usize, out: &mut Vec<u8>) {
        out.clear();
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(PREFACE);
            frame(out, SETTINGS, 0, 0, &[]);
            frame(out, SETTINGS, ACK, 0, &[]);
            frame(out, WINDOW_UPDATE, 0, 0, &0x7000_0000_u32.to_be_bytes());
        }
        for _ in 0..times {
            if self.encoded < 2 {
                self.encoded += 1;
                self.encode(path);
            }
            let flags = END_HEADERS | END_STREAM;
            frame(out, HEADERS, flags, self.stream, &self.block);
            self.stream += 2;
        }
    }

    fn encode(&mut self, path: &str) {
        self.block.clear();
        self.encoder.begin(&mut self.block);
        for (name, value) in [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "www.example.org"),
            (":path", path),
            ("user-agent", "client/1.0"),
            ("accept", "*/*"),
            ("accept-encoding", "gzip"),
        ] {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder
                .field(name, value, Indexing::Yes, &mut self.block);
        }
    }
}

/// The sending side of a SPDY client. It receives nothing.
pub(super) struct Spdy {
    client: spdy::Client,
}

impl Spdy {
    pub(super) fn new() -> Self {
        let settings = spdy::Settings {
            headers_level: 6,
            ..spdy::Settings::default()
        };
        Self {
            client: spdy::Client::new(settings, Bodies::Counted),
        }
    }

    /// Replaces `out` by requests. The settings come before the first ones.
    #[inline(always)] // A call would count towards the worker.
    pub(super) fn ask(&mut self, path: &str, times: usize, out: &mut Vec<u8>) {
        out.clear();
        let ask = |_| {
            let fields = [
                (":method", "GET"),
                (":scheme", "http"),
                (":host", "www.example.org"),
                (":path", path),
                (":version", "HTTP/1.1"),
                ("user-agent", "client/1.0"),
                ("accept", "*/*"),
                ("accept-encoding", "gzip"),
            ];
            let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let stream = self.client.request(fields, true);
            stream.expect("all are given up again")
        };
        let streams: Vec<u32> = (0..times).map(ask).collect();
        self.client.transmit(out);
        for stream in streams {
            // The response is not awaited; the server is not informed.
            self.client.cancel(stream);
        }
        self.client.transmit(&mut Vec::new());
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
