//! Clients of each protocol that send one request and decode every received byte, in any coding.
//!
//! Absent: flow control; the pages are small.

use std::io::Read;

use engines::client::Bodies;
use engines::h2::PREFACE;
use engines::hpack::{Decoder, Encoder, Indexing};
use engines::spdy;

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    Spdy,
}

pub(crate) const PROTOCOLS: [Protocol; 3] = [Protocol::Http1, Protocol::Http2, Protocol::Spdy];

/// Data received so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The status; empty before the head.
    pub(crate) status: String,
    /// `Content-Encoding`.
    pub(crate) coding: String,
    pub(crate) body: Vec<u8>,
    pub(crate) ended: bool,
}

/// One client with its request.
pub(crate) struct Client {
    side: Side,
    pub(crate) seen: Seen,
}

enum Side {
    Http1(Vec<u8>),
    Http2(Vec<u8>, Decoder),
    Spdy(Box<spdy::Client>),
}

impl Client {
    /// Makes a client and the bytes of its request.
    pub(crate) fn asking(protocol: Protocol, target: &str, accepts: &str) -> (Self, Vec<u8>) {
        let (side, request) = match protocol {
            Protocol::Http1 => {
                let accepts = match accepts {
                    "" => String::new(),
                    coding => format!("Accept-Encoding: {coding}\r\n"),
                };
                let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n{accepts}\r\n");
                (Side::Http1(Vec::new()), request.into_bytes())
            }
            Protocol::Http2 => {
                let side = Side::Http2(Vec::new(), Decoder::new(4096));
                (side, http2_request(target, accepts))
            }
            Protocol::Spdy => {
                let settings = spdy::Settings {
                    headers_level: 6,
                    ..spdy::Settings::default()
                };
                let mut client = spdy::Client::new(settings, Bodies::Delivered);
                let mut fields = vec![
                    (":method", "GET"),
                    (":scheme", "http"),
                    (":host", "a.test"),
                    (":path", target),
                    (":version", "HTTP/1.1"),
                ];
                if !accepts.is_empty() {
                    fields.push(("accept-encoding", accepts));
                }
                let fields = fields
                    .into_iter()
                    .map(|(n, v)| (n.as_bytes(), v.as_bytes()));
                client.request(fields, true).expect("there is room");
                let mut request = Vec::new();
                client.transmit(&mut request);
                (Side::Spdy(Box::new(client)), request)
            }
        };
        let seen = Seen::default();
        (Self { side, seen }, request)
    }

    /// Reads received bytes.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        match &mut self.side {
            Side::Http1(held) => {
                held.extend_from_slice(bytes);
                self.seen = http1(held);
            }
            Side::Http2(held, decoder) => {
                held.extend_from_slice(bytes);
                http2(held, decoder, &mut self.seen);
            }
            Side::Spdy(client) => {
                client.receive(bytes);
                while let Some(event) = client.event() {
                    spdy_event(event, &mut self.seen);
                }
            }
        }
    }
}

impl Seen {
    /// Returns the decodable part of the body.
    pub(crate) fn text(&self) -> String {
        let (mut text, mut bytes) = (Vec::new(), self.body.as_slice());
        match self.coding.as_str() {
            // Bytes before a missing end are decoded, too.
            "gzip" => drop(flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut text)),
            "br" => drop(brotlic::DecompressorReader::new(bytes).read_to_end(&mut text)),
            "zstd" => text = unzstd(bytes),
            _ => drop(bytes.read_to_end(&mut text)),
        }
        String::from_utf8(text).expect("pages are text")
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        let value = String::from_utf8_lossy(value).into_owned();
        if name == b":status" {
            self.status = value[..3].to_owned();
        } else if name.eq_ignore_ascii_case(b"content-encoding") {
            self.coding = value;
        }
    }
}

fn unzstd(bytes: &[u8]) -> Vec<u8> {
    let mut decoder = zstd_safe::DCtx::create();
    let mut input = zstd_safe::InBuffer::around(bytes);
    let mut text = Vec::with_capacity(1 << 20);
    while input.pos() < bytes.len() {
        let filled = text.len();
        let mut to = zstd_safe::OutBuffer::around_pos(&mut text, filled);
        assert!(decoder.decompress_stream(&mut to, &mut input).is_ok());
    }
    text
}

/// Parses a chunked response from its start.
fn http1(bytes: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let text = String::from_utf8_lossy(bytes);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return seen;
    };
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    seen.status = status.unwrap_or_default().to_owned();
    let mut chunked = false;
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a field has a colon");
        seen.field(name.as_bytes(), value.as_bytes());
        chunked |= line == "Transfer-Encoding: chunked";
    }
    assert!(chunked, "{head}");
    let mut rest = &bytes[head.len() + 4..];
    while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
        let size = String::from_utf8_lossy(&rest[..at - 1]);
        let size = usize::from_str_radix(&size, 16).expect("a chunk has a size");
        rest = &rest[at + 1..];
        if size == 0 {
            seen.ended = true;
            assert_eq!(rest, b"\r\n");
            break;
        }
        seen.body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
    seen
}

fn http2_request(target: &str, accepts: &str) -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    frame(&mut out, SETTINGS, 0, 0, &[]);
    let mut encoder = Encoder::new(4096, true);
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for (name, value) in [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "a.test"),
        (":path", target),
        ("accept-encoding", accepts),
    ] {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        if !value.is_empty() {
            encoder.field(name, value, Indexing::Yes, &mut block);
        }
    }
    frame(&mut out, HEADERS, END_HEADERS | END_STREAM, 1, &block);
    out
}

/// Reads the complete frames.
fn http2(held: &mut Vec<u8>, decoder: &mut Decoder, seen: &mut Seen) {
    while let Some(head) = held.first_chunk::<9>() {
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        if held.len() < 9 + len {
            return;
        }
        let payload: Vec<u8> = held.drain(..9 + len).skip(9).collect();
        match kind {
            DATA => seen.body.extend_from_slice(&payload),
            HEADERS => {
                assert_eq!(flags & END_HEADERS, END_HEADERS);
                let decoded = decoder.decode(&payload, |name, value| seen.field(name, value));
                assert!(decoded.is_ok());
            }
            _ => continue,
        }
        seen.ended |= flags & END_STREAM != 0;
    }
}

fn spdy_event(event: spdy::ClientEvent, seen: &mut Seen) {
    match event {
        spdy::ClientEvent::Head { head, .. } => {
            seen.status = head.status.to_string();
            for field in &head.fields {
                seen.field(head.bytes(field.name), head.bytes(field.value));
            }
        }
        spdy::ClientEvent::Data { bytes, .. } => seen.body.extend_from_slice(&bytes),
        spdy::ClientEvent::End { .. } => seen.ended = true,
        other => panic!("{other:?}"),
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
