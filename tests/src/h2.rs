//! A raw client of HTTP/2: sends the frames that it gets, and sorts received frames by stream.
//!
//! It sends the preface, acknowledges SETTINGS, and opens its windows wide by default. Everything else is up to the
//! test. Source: RFC 9113.

use crate::hpack::{self, Fields, Reader};
use crate::mux::{Frames, MuxClient, number};

pub use crate::mux::{MAX_WINDOW, Reply};

/// One connection.
pub type H2Client = MuxClient<Http2>;

/// State of a client of HTTP/2.
#[derive(Debug, Default)]
pub struct Http2 {
    reader: Reader,
    block: Vec<u8>,
    /// How many of our SETTINGS have been acknowledged.
    pub settings_acks: usize,
    /// Pushed requests: the stream of the promise, the promised stream, and their fields.
    pub promises: Vec<(u32, u32, Fields)>,
    /// The two streams of the promise that has an unfinished header block.
    promised: Option<(u32, u32)>,
}

impl H2Client {
    /// Connects, sends the preface and opens all windows.
    ///
    /// # Panics
    /// If the connection is refused.
    #[must_use]
    pub fn connect(port: u16) -> Self {
        let mut client = Self::narrow(port, MAX_WINDOW);
        client.window(0, MAX_WINDOW - 65_535);
        client
    }

    /// Connects and sends the preface. A stream's window is `window` bytes, the connection's 65,535.
    ///
    /// # Panics
    /// If the connection is refused.
    #[must_use]
    pub fn narrow(port: u16, window: u32) -> Self {
        let mut client = Self::silent(port);
        client.send(PREFACE);
        client.setting(INITIAL_WINDOW_SIZE, window);
        client
    }

    /// Sends a frame.
    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> &mut Self {
        self.send(frame(kind, flags, stream, payload))
    }

    /// Sends one setting.
    pub fn setting(&mut self, id: u16, value: u32) -> &mut Self {
        let payload = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        self.frame(SETTINGS, 0, 0, &payload)
    }

    /// Opens a window.
    pub fn window(&mut self, stream: u32, bytes: u32) -> &mut Self {
        self.frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    /// Resets a stream with CANCEL.
    pub fn cancel(&mut self, stream: u32) -> &mut Self {
        self.frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
    }

    /// Sends a header block on the next stream; returns its number.
    pub fn headers(&mut self, fields: &[(&str, &str)], end: bool) -> u32 {
        let stream = self.take_stream();
        let flags = END_HEADERS | if end { END_STREAM } else { 0 };
        self.frame(HEADERS, flags, stream, &hpack::write(fields));
        stream
    }

    /// Sends a piece of a request body.
    pub fn data(&mut self, stream: u32, bytes: &[u8], end: bool) -> &mut Self {
        let flags = if end { END_STREAM } else { 0 };
        self.frame(DATA, flags, stream, bytes)
    }
}

impl Http2 {
    fn take_block(client: &mut H2Client, stream: u32, flags: u8, fragment: &[u8]) {
        let http2 = &mut client.protocol;
        http2.block.extend_from_slice(fragment);
        if flags & END_HEADERS == 0 {
            return;
        }
        let block = std::mem::take(&mut http2.block);
        let fields = http2.reader.read(&block);
        match http2.promised.take() {
            Some((parent, own)) => http2.promises.push((parent, own, fields)),
            None => take_fields(client.replies.entry(stream).or_default(), fields),
        }
    }
}

impl Frames for Http2 {
    const HEAD_BYTES: usize = 9;

    fn payload_bytes(head: &[u8]) -> usize {
        usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])
    }

    fn take(client: &mut H2Client, head: &[u8], payload: &[u8]) {
        let (kind, flags) = (head[3], head[4]);
        let stream = number(&head[5..]) & MAX_WINDOW;
        let ack = flags & ACK != 0;
        match kind {
            DATA => {
                let reply = client.replies.entry(stream).or_default();
                reply.body.extend_from_slice(payload);
                reply.ended |= flags & END_STREAM != 0;
                client.data_frames.push((stream, payload.len()));
            }
            HEADERS | CONTINUATION => {
                let reply = client.replies.entry(stream).or_default();
                reply.ended |= kind == HEADERS && flags & END_STREAM != 0;
                Self::take_block(client, stream, flags, payload);
            }
            PUSH_PROMISE => {
                client.protocol.promised = Some((stream, number(payload)));
                Self::take_block(client, stream, flags, &payload[4..]);
            }
            RST_STREAM => {
                let reply = client.replies.entry(stream).or_default();
                reply.reset = Some(number(payload));
            }
            SETTINGS if ack => client.protocol.settings_acks += 1,
            SETTINGS => {
                let pairs = payload.chunks(6);
                client.settings.extend(pairs.map(|pair| {
                    let id = u16::from_be_bytes([pair[0], pair[1]]);
                    (u32::from(id), number(&pair[2..]))
                }));
                client.frame(SETTINGS, ACK, 0, &[]);
            }
            PING => client.pings.push((ack, payload.to_vec())),
            GOAWAY => {
                let goaway = (number(payload), number(&payload[4..]));
                client.goaways.push(goaway);
            }
            _ => {}
        }
    }

    fn request(
        client: &mut H2Client,
        (method, path): (&str, &str),
        more: &[(&str, &str)],
        end: bool,
    ) -> u32 {
        client.headers(&[&request_fields(method, path), more].concat(), end)
    }

    fn ping(client: &mut H2Client) -> Vec<u8> {
        let payload = (client.pings.len() as u64).to_be_bytes();
        client.frame(PING, 0, 0, &payload);
        payload.to_vec()
    }
}

fn take_fields(reply: &mut Reply, fields: Fields) {
    let status = fields
        .first()
        .and_then(|(name, value)| (name == ":status").then(|| value.parse().unwrap_or(0)));
    match status {
        None => reply.trailers = fields,
        Some(status) => {
            if reply.status != 0 {
                reply.interim.push(reply.status);
            }
            reply.status = status;
            reply.fields = fields;
        }
    }
}

/// A frame as bytes.
#[must_use]
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    let head = [&len[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// The fields that every request has.
#[must_use]
pub fn request_fields<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
    ]
}

/// The client's connection preface.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of a body.
pub const DATA: u8 = 0;
/// The beginning of a header block.
pub const HEADERS: u8 = 1;
/// The former priorities.
pub const PRIORITY: u8 = 2;
/// The end of a stream by force.
pub const RST_STREAM: u8 = 3;
/// Settings, or their acknowledgement.
pub const SETTINGS: u8 = 4;
/// Frames that the server sends unasked.
pub const PUSH_PROMISE: u8 = 5;
/// To be sent back.
pub const PING: u8 = 6;
/// The end of the connection.
pub const GOAWAY: u8 = 7;
/// More may be sent.
pub const WINDOW_UPDATE: u8 = 8;
/// More of a header block.
pub const CONTINUATION: u8 = 9;
/// The last frame of a stream.
pub const END_STREAM: u8 = 1;
/// The flag of SETTINGS and PING that acknowledge.
pub const ACK: u8 = 1;
/// The last frame of a header block.
pub const END_HEADERS: u8 = 4;
/// The setting that permits pushes.
pub const ENABLE_PUSH: u16 = 2;
/// The setting of the size of streams' windows.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// No error.
pub const NO_ERROR: u32 = 0;
/// The protocol was broken.
pub const PROTOCOL_ERROR: u32 = 1;
/// The server's own fault.
pub const INTERNAL_ERROR: u32 = 2;
/// Flow control was broken.
pub const FLOW_CONTROL_ERROR: u32 = 3;
/// Not begun.
pub const REFUSED_STREAM: u32 = 7;
/// The compression state is broken.
pub const COMPRESSION_ERROR: u32 = 9;
/// Too much of everything.
pub const ENHANCE_YOUR_CALM: u32 = 11;
