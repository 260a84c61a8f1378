//! A raw client of SPDY/3.1: sends the frames that it gets, and sorts received frames by stream.
//!
//! Its header blocks are stored, not compressed, and it reads no others: the server's are stored with
//! `spdy_headers_comp 0`. It opens its windows wide; everything else is up to the test. Source:
//! draft-mbelshe-httpbis-spdy-00.

use crate::mux::{Frames, MuxClient, number};

pub use crate::mux::MAX_WINDOW;

/// One connection.
pub type SpdyClient = MuxClient<Spdy>;

/// State of a client of SPDY.
#[derive(Debug, Default)]
pub struct Spdy {
    /// Whether each direction's zlib header has passed.
    said: bool,
    received: bool,
}

impl SpdyClient {
    /// Connects and opens all windows.
    ///
    /// # Panics
    /// If the connection is refused.
    #[must_use]
    pub fn connect(port: u16) -> Self {
        let mut client = Self::silent(port);
        client.setting(INITIAL_WINDOW_SIZE, MAX_WINDOW);
        client.window(0, MAX_WINDOW - (64 << 10));
        client
    }

    /// Sends a control frame.
    pub fn control(&mut self, kind: u16, flags: u8, payload: &[u8]) -> &mut Self {
        self.send(control(kind, flags, payload))
    }

    /// Sends one setting.
    pub fn setting(&mut self, id: u32, value: u32) -> &mut Self {
        self.control(SETTINGS, 0, &numbers(&[1, id, value]))
    }

    /// Opens a window.
    pub fn window(&mut self, stream: u32, bytes: u32) -> &mut Self {
        self.control(WINDOW_UPDATE, 0, &numbers(&[stream, bytes]))
    }

    /// Resets a stream with CANCEL.
    pub fn cancel(&mut self, stream: u32) -> &mut Self {
        self.control(RST_STREAM, 0, &numbers(&[stream, 5]))
    }

    /// Opens the next stream with these fields; returns its number.
    pub fn syn(&mut self, fields: &[(&str, &str)], priority: u8, end: bool) -> u32 {
        let stream = self.take_stream();
        let frame = self.syn_frame(stream, fields, priority, end);
        self.send(frame);
        stream
    }

    /// A SYN_STREAM as bytes, which must be sent: the next one counts on it.
    pub fn syn_frame(
        &mut self,
        stream: u32,
        fields: &[(&str, &str)],
        priority: u8,
        end: bool,
    ) -> Vec<u8> {
        let mut text = numbers(&[fields.len() as u32]);
        for part in fields.iter().flat_map(|(name, value)| [name, value]) {
            text.extend_from_slice(&(part.len() as u32).to_be_bytes());
            text.extend_from_slice(part.as_bytes());
        }
        let mut block = Vec::new();
        if !std::mem::replace(&mut self.protocol.said, true) {
            block.extend_from_slice(&ZLIB_WITHOUT_DICTIONARY);
        }
        for piece in text.chunks(usize::from(u16::MAX)) {
            let len = piece.len() as u16;
            block.push(0);
            block.extend_from_slice(&len.to_le_bytes());
            block.extend_from_slice(&(!len).to_le_bytes());
            block.extend_from_slice(piece);
        }
        let payload = [&numbers(&[stream, 0])[..], &[priority << 5, 0], &block].concat();
        control(SYN_STREAM, u8::from(end), &payload)
    }

    /// Sends a piece of a request body.
    pub fn data(&mut self, stream: u32, bytes: &[u8], end: bool) -> &mut Self {
        let flags = u32::from(end) << 24;
        let head = numbers(&[stream, flags | bytes.len() as u32]);
        self.send([&head, bytes].concat())
    }
}

impl Spdy {
    /// The fields of a stored header block.
    fn fields(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut rest = block;
        if !std::mem::replace(&mut self.received, true) {
            // The zlib header and the number of the dictionary.
            rest = &rest[6..];
        }
        let mut text = Vec::new();
        while let [kind, low, high, _, _, after @ ..] = rest {
            assert_eq!(*kind, 0, "the block is stored");
            let len = usize::from(u16::from_le_bytes([*low, *high]));
            text.extend_from_slice(&after[..len]);
            rest = &after[len..];
        }
        let mut rest = &text[4..];
        let mut part = || {
            let (len, after) = rest.split_at(4);
            let (text, after) = after.split_at(number(len) as usize);
            rest = after;
            String::from_utf8_lossy(text).into_owned()
        };
        (0..number(&text)).map(|_| (part(), part())).collect()
    }
}

impl Frames for Spdy {
    const HEAD_BYTES: usize = 8;

    fn payload_bytes(head: &[u8]) -> usize {
        (number(&head[4..]) & 0x00ff_ffff) as usize
    }

    fn take(client: &mut SpdyClient, head: &[u8], payload: &[u8]) {
        let (word, fin) = (number(head), head[4] & FIN != 0);
        if word & CONTROL == 0 {
            let reply = client.replies.entry(word).or_default();
            reply.body.extend_from_slice(payload);
            reply.ended |= fin;
            client.data_frames.push((word, payload.len()));
            return;
        }
        match word as u16 {
            SYN_REPLY => {
                let fields = client.protocol.fields(&payload[4..]);
                let reply = client.replies.entry(number(payload)).or_default();
                let status = fields.iter().find(|(name, _)| name == ":status");
                let status = status.and_then(|(_, value)| value.split(' ').next()?.parse().ok());
                (reply.status, reply.fields) = (status.unwrap_or(0), fields);
                reply.ended |= fin;
            }
            RST_STREAM => {
                let reply = client.replies.entry(number(payload)).or_default();
                reply.reset = Some(number(&payload[4..]));
            }
            SETTINGS => {
                let pairs = payload[4..].chunks(8);
                let pairs = pairs.map(|pair| (number(pair), number(&pair[4..])));
                client.settings.extend(pairs);
            }
            // Only the number tells a PING of the server from a returned one of the client, which is odd.
            PING => client
                .pings
                .push((number(payload) % 2 == 1, payload.to_vec())),
            GOAWAY => {
                let goaway = (number(payload), number(&payload[4..]));
                client.goaways.push(goaway);
            }
            _ => {}
        }
    }

    fn request(
        client: &mut SpdyClient,
        (method, path): (&str, &str),
        more: &[(&str, &str)],
        end: bool,
    ) -> u32 {
        let fields = [&request_fields(method, path), more].concat();
        client.syn(&fields, 4, end)
    }

    fn ping(client: &mut SpdyClient) -> Vec<u8> {
        let number = client.pings.len() as u32 * 2 + 1;
        client.control(PING, 0, &number.to_be_bytes());
        number.to_be_bytes().to_vec()
    }
}

/// A control frame as bytes.
#[must_use]
pub fn control(kind: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let word = CONTROL | 3 << 16 | u32::from(kind);
    let head = numbers(&[word, u32::from(flags) << 24 | payload.len() as u32]);
    [&head, payload].concat()
}

/// Numbers as bytes.
#[must_use]
pub fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// The fields that every request has.
#[must_use]
pub fn request_fields<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 5] {
    [
        (":method", method),
        (":path", path),
        (":version", "HTTP/1.1"),
        (":host", "localhost"),
        (":scheme", "http"),
    ]
}

/// Type of SYN_STREAM.
pub const SYN_STREAM: u16 = 1;
/// Type of SYN_REPLY.
pub const SYN_REPLY: u16 = 2;
/// Type of RST_STREAM.
pub const RST_STREAM: u16 = 3;
/// Type of SETTINGS.
pub const SETTINGS: u16 = 4;
/// Type of PING.
pub const PING: u16 = 6;
/// Type of GOAWAY.
pub const GOAWAY: u16 = 7;
/// Type of WINDOW_UPDATE.
pub const WINDOW_UPDATE: u16 = 9;
/// The window that a stream begins with.
pub const INITIAL_WINDOW_SIZE: u32 = 7;
const FIN: u8 = 1;
const CONTROL: u32 = 1 << 31;
const ZLIB_WITHOUT_DICTIONARY: [u8; 2] = [0x78, 0x01];
