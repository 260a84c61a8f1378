//! A raw client of SPDY/3.1: sends the frames it is given, sorts what comes back by stream.
//!
//! Its header blocks are stored, not compressed, and it reads no others: the server's are stored at `spdy_headers_comp 0`.
//! It opens its windows wide; all else is up to the test. Source: draft-mbelshe-httpbis-spdy-00.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::h2::Reply;
use crate::wait::DEADLINE;

/// One connection.
#[derive(Debug)]
pub struct SpdyClient {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Whether each direction's zlib header has passed.
    said: bool,
    received: bool,
    next_stream: u32,
    /// Data received on each stream.
    pub replies: BTreeMap<u32, Reply>,
    /// Last stream and code of each GOAWAY.
    pub goaways: Vec<(u32, u32)>,
    /// Numbers of PING that came back.
    pub pings: Vec<u32>,
    /// Settings of the server.
    pub settings: Vec<(u32, u32)>,
    /// The streams of DATA frames and how long they were, in order.
    pub data_frames: Vec<(u32, usize)>,
    /// The connection has ended.
    pub closed: bool,
}

impl SpdyClient {
    /// Connects and opens all windows.
    ///
    /// # Panics
    /// When nobody accepts.
    #[must_use]
    pub fn connect(port: u16) -> Self {
        let mut client = Self::silent(port);
        client.setting(INITIAL_WINDOW_SIZE, MAX_WINDOW);
        client.window(0, MAX_WINDOW - (64 << 10));
        client
    }

    /// Connects and says nothing.
    ///
    /// # Panics
    /// When nobody accepts.
    #[must_use]
    pub fn silent(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port))
            .unwrap_or_else(|e| panic!("cannot connect to {port}: {e}"));
        let limits = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_write_timeout(Some(DEADLINE)));
        limits.expect("a deadline that is not zero is valid");
        Self {
            stream,
            buffer: Vec::new(),
            said: false,
            received: false,
            next_stream: 1,
            replies: BTreeMap::new(),
            goaways: Vec::new(),
            pings: Vec::new(),
            settings: Vec::new(),
            data_frames: Vec::new(),
            closed: false,
        }
    }

    /// Sends bytes. A peer that has already closed is no failure: what it said tells why.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
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

    /// Requests a path and returns the number of the stream.
    pub fn get(&mut self, path: &str) -> u32 {
        self.request("GET", path, &[], true)
    }

    /// Begins a request; returns the number of the stream.
    pub fn request(&mut self, method: &str, path: &str, more: &[(&str, &str)], end: bool) -> u32 {
        let fields = [&request_fields(method, path), more].concat();
        self.syn(&fields, 4, end)
    }

    /// Opens the next stream with these fields; returns its number.
    pub fn syn(&mut self, fields: &[(&str, &str)], priority: u8, end: bool) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
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
        if !std::mem::replace(&mut self.said, true) {
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

    /// Returns the data received on a stream so far.
    #[must_use]
    pub fn so_far(&self, stream: u32) -> Reply {
        self.replies.get(&stream).cloned().unwrap_or_default()
    }

    /// Waits for the end of a stream.
    ///
    /// # Panics
    /// When it does not end before the deadline.
    #[track_caller]
    pub fn reply(&mut self, stream: u32) -> Reply {
        self.until("a stream ends", |c| {
            c.replies
                .get(&stream)
                .is_some_and(|reply| reply.ended || reply.reset.is_some())
        });
        self.so_far(stream)
    }

    /// Asks for a path and waits for the whole response.
    ///
    /// # Panics
    /// When none comes.
    #[track_caller]
    pub fn fetch(&mut self, path: &str) -> Reply {
        let stream = self.get(path);
        self.reply(stream)
    }

    /// Waits for a GOAWAY and returns the last stream and the code.
    ///
    /// # Panics
    /// When none comes.
    #[track_caller]
    pub fn goaway(&mut self) -> (u32, u32) {
        self.until("a GOAWAY comes", |c| !c.goaways.is_empty());
        self.goaways[0]
    }

    /// Waits until the server has done all that was asked before: a PING comes back.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn settle(&mut self) -> &mut Self {
        let number = self.pings.len() as u32 * 2 + 1;
        self.control(PING, 0, &number.to_be_bytes());
        self.until("a PING comes back", |c| c.pings.contains(&number));
        self
    }

    /// Reads until `done` says so.
    ///
    /// # Panics
    /// When the connection ends or the deadline passes first.
    #[track_caller]
    pub fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            let left = DEADLINE.saturating_sub(start.elapsed());
            let more = !self.closed && self.read_within(left);
            let (closed, goaways) = (self.closed, &self.goaways);
            assert!(
                more || done(self),
                "never came true: {what}; closed: {closed}, goaways: {goaways:?}"
            );
        }
    }

    /// Reads to the end of the connection.
    ///
    /// # Panics
    /// When it is still open at the deadline.
    #[track_caller]
    pub fn until_closed(&mut self) {
        self.until("the connection ends", |c| c.closed);
    }

    /// Whether `done` says so within some time.
    pub fn holds_within(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let start = Instant::now();
        while !done(self) {
            let left = limit.saturating_sub(start.elapsed());
            if self.closed || left.is_zero() || !self.read_within(left) {
                break;
            }
        }
        done(self)
    }

    /// Reads once; false if nothing came in time.
    fn read_within(&mut self, limit: Duration) -> bool {
        let limit = limit.max(Duration::from_millis(1));
        let set = self.stream.set_read_timeout(Some(limit));
        set.expect("a limit that is not zero is valid");
        let mut piece = [0; 64 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => self.closed = true,
            Ok(n) => {
                self.buffer.extend_from_slice(&piece[..n]);
                self.take_frames();
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                return false;
            }
            Err(_) => self.closed = true,
        }
        true
    }

    fn take_frames(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = &buffer[..];
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let len = (number(&head[4..]) & 0x00ff_ffff) as usize;
            let Some((payload, after)) = after.split_at_checked(len) else {
                break;
            };
            rest = after;
            self.take_frame(number(head), head[4] & FIN != 0, payload);
        }
        self.buffer = rest.to_vec();
    }

    fn take_frame(&mut self, word: u32, fin: bool, payload: &[u8]) {
        if word & CONTROL == 0 {
            let reply = self.replies.entry(word).or_default();
            reply.body.extend_from_slice(payload);
            reply.ended |= fin;
            self.data_frames.push((word, payload.len()));
            return;
        }
        match word as u16 {
            SYN_REPLY => {
                let fields = self.fields(&payload[4..]);
                let reply = self.replies.entry(number(payload)).or_default();
                let status = fields.iter().find(|(name, _)| name == ":status");
                let status = status.and_then(|(_, value)| value.split(' ').next()?.parse().ok());
                (reply.status, reply.fields) = (status.unwrap_or(0), fields);
                reply.ended |= fin;
            }
            RST_STREAM => {
                let reply = self.replies.entry(number(payload)).or_default();
                reply.reset = Some(number(&payload[4..]));
            }
            SETTINGS => {
                let pairs = payload[4..].chunks(8);
                self.settings
                    .extend(pairs.map(|pair| (number(pair), number(&pair[4..]))));
            }
            PING => self.pings.push(number(payload)),
            GOAWAY => self.goaways.push((number(payload), number(&payload[4..]))),
            _ => {}
        }
    }

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

fn number(bytes: &[u8]) -> u32 {
    let bytes = bytes.first_chunk().expect("four bytes");
    u32::from_be_bytes(*bytes)
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
/// Largest window.
pub const MAX_WINDOW: u32 = (1 << 31) - 1;
const FIN: u8 = 1;
const CONTROL: u32 = 1 << 31;
const ZLIB_WITHOUT_DICTIONARY: [u8; 2] = [0x78, 0x01];
