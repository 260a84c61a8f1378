//! A raw client of HTTP/2: sends the frames it is given, sorts what comes back by stream.
//!
//! It says hello and acknowledges SETTINGS by itself, and opens its windows wide unless it is told otherwise; all else is up
//! to the test. Source: RFC 9113.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::hpack::{self, Fields, Reader};
use crate::wait::DEADLINE;

/// One connection.
#[derive(Debug)]
pub struct H2Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    reader: Reader,
    block: Vec<u8>,
    next_stream: u32,
    /// Data received on each stream.
    pub replies: BTreeMap<u32, Reply>,
    /// Last stream and code of each GOAWAY.
    pub goaways: Vec<(u32, u32)>,
    /// Payloads of PING, with whether they are answers.
    pub pings: Vec<(bool, Vec<u8>)>,
    /// How many of our SETTINGS have been acknowledged.
    pub settings_acks: usize,
    /// SETTINGS of the server.
    pub settings: Vec<(u16, u32)>,
    /// Requests that the server promised to answer: the stream they came on, their own, and their fields.
    pub promises: Vec<(u32, u32, Fields)>,
    /// The promise whose header block comes: its two streams.
    promised: Option<(u32, u32)>,
    /// The streams of DATA frames, in order.
    pub data_order: Vec<u32>,
    /// The connection has ended.
    pub closed: bool,
}

/// Data received on a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// `:status` of the last header block that had one; 0 before.
    pub status: u16,
    /// Fields of that block.
    pub fields: Fields,
    /// Interim responses before it.
    pub interim: Vec<u16>,
    /// Fields after the body.
    pub trailers: Fields,
    /// The body so far.
    pub body: Vec<u8>,
    /// END_STREAM has come.
    pub ended: bool,
    /// RST_STREAM has come, with this code.
    pub reset: Option<u32>,
}

impl Reply {
    /// The first field of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(n, _)| n == name);
        field.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl H2Client {
    /// Connects, says hello, opens all windows.
    ///
    /// # Panics
    /// When nobody accepts.
    #[must_use]
    pub fn connect(port: u16) -> Self {
        let mut client = Self::narrow(port, MAX_WINDOW);
        client.window(0, MAX_WINDOW - 65_535);
        client
    }

    /// Connects and says hello; each stream may have `window` bytes, all of them together 65,535.
    ///
    /// # Panics
    /// When nobody accepts.
    #[must_use]
    pub fn narrow(port: u16, window: u32) -> Self {
        let mut client = Self::silent(port);
        client.send(PREFACE);
        client.setting(INITIAL_WINDOW_SIZE, window);
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
            reader: Reader::default(),
            block: Vec::new(),
            next_stream: 1,
            replies: BTreeMap::new(),
            goaways: Vec::new(),
            pings: Vec::new(),
            settings_acks: 0,
            settings: Vec::new(),
            promises: Vec::new(),
            promised: None,
            data_order: Vec::new(),
            closed: false,
        }
    }

    /// Sends bytes. A peer that has already closed is no failure: what it said tells why.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Sends the end of this direction.
    pub fn finish_sending(&mut self) -> &mut Self {
        let _ = self.stream.shutdown(Shutdown::Write);
        self
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

    /// Requests a path and returns the number of the stream.
    pub fn get(&mut self, path: &str) -> u32 {
        self.request("GET", path, &[], true)
    }

    /// Begins a request; returns the number of the stream.
    pub fn request(&mut self, method: &str, path: &str, more: &[(&str, &str)], end: bool) -> u32 {
        self.headers(&[&request_fields(method, path), more].concat(), end)
    }

    /// Sends a header block on the next stream; returns its number.
    pub fn headers(&mut self, fields: &[(&str, &str)], end: bool) -> u32 {
        let stream = self.take_stream();
        let flags = END_HEADERS | if end { END_STREAM } else { 0 };
        self.frame(HEADERS, flags, stream, &hpack::write(fields));
        stream
    }

    /// The number of a stream that was not used yet.
    pub fn take_stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    /// Sends a piece of a request body.
    pub fn data(&mut self, stream: u32, bytes: &[u8], end: bool) -> &mut Self {
        let flags = if end { END_STREAM } else { 0 };
        self.frame(DATA, flags, stream, bytes)
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

    /// Asks for a path until the response is this text.
    ///
    /// # Panics
    /// When it never is.
    #[track_caller]
    pub fn until_text(&mut self, path: &str, text: &str) {
        let start = Instant::now();
        while self.fetch(path).text() != text {
            assert!(start.elapsed() < DEADLINE, "{path} never said {text:?}");
        }
    }

    /// Waits for a GOAWAY; returns the last stream and the code of the latest one.
    ///
    /// # Panics
    /// When none comes.
    #[track_caller]
    pub fn goaway(&mut self) -> (u32, u32) {
        self.until("a GOAWAY comes", |c| !c.goaways.is_empty());
        *self.goaways.last().expect("one has come")
    }

    /// Waits until the server has done all that was asked before: a PING comes back.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn settle(&mut self) -> &mut Self {
        let payload = (self.pings.len() as u64).to_be_bytes();
        self.frame(PING, 0, 0, &payload);
        self.until("a PING comes back", |c| {
            c.pings.iter().any(|(ack, data)| *ack && *data == payload)
        });
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
            assert!(
                more || done(self),
                "never came true: {what}; {}",
                self.summary()
            );
        }
    }

    /// Received frames, in short.
    fn summary(&self) -> String {
        let last: Vec<_> = self.replies.iter().rev().take(3).collect();
        format!(
            "closed: {}, goaways: {:?}, pings: {}, streams: {}, the last of them: {last:.200?}",
            self.closed,
            self.goaways,
            self.pings.len(),
            self.replies.len()
        )
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
        while let Some((head, after)) = rest.split_first_chunk::<9>() {
            let len = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let Some((payload, after)) = after.split_at_checked(len) else {
                break;
            };
            rest = after;
            let stream = number(&head[5..]) & MAX_WINDOW;
            self.take_frame(head[3], head[4], stream, payload);
        }
        self.buffer = rest.to_vec();
    }

    fn take_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let ack = flags & ACK != 0;
        let reply = match kind {
            DATA | HEADERS | RST_STREAM | CONTINUATION => self.replies.entry(stream).or_default(),
            _ => &mut Reply::default(),
        };
        match kind {
            DATA => {
                reply.body.extend_from_slice(payload);
                reply.ended |= flags & END_STREAM != 0;
                self.data_order.push(stream);
            }
            HEADERS | CONTINUATION => {
                reply.ended |= kind == HEADERS && flags & END_STREAM != 0;
                self.block.extend_from_slice(payload);
                if flags & END_HEADERS != 0 {
                    let block = std::mem::take(&mut self.block);
                    let fields = self.reader.read(&block);
                    match self.promised.take() {
                        Some((parent, own)) => self.promises.push((parent, own, fields)),
                        None => take_fields(reply, fields),
                    }
                }
            }
            PUSH_PROMISE => {
                self.promised = Some((stream, number(payload)));
                self.take_frame(CONTINUATION, flags, stream, &payload[4..]);
            }
            RST_STREAM => reply.reset = Some(number(payload)),
            SETTINGS if ack => self.settings_acks += 1,
            SETTINGS => {
                let pairs = payload.chunks(6);
                self.settings.extend(pairs.map(|pair| {
                    let id = u16::from_be_bytes([pair[0], pair[1]]);
                    (id, number(&pair[2..]))
                }));
                self.frame(SETTINGS, ACK, 0, &[]);
            }
            PING => self.pings.push((ack, payload.to_vec())),
            GOAWAY => self.goaways.push((number(payload), number(&payload[4..]))),
            _ => {}
        }
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

fn number(bytes: &[u8]) -> u32 {
    let bytes = bytes.first_chunk().expect("four bytes");
    u32::from_be_bytes(*bytes)
}

/// Preface of every client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Largest window, and largest number of a stream.
pub const MAX_WINDOW: u32 = (1 << 31) - 1;

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
/// SETTINGS or PING is an answer.
pub const ACK: u8 = 1;
/// The last frame of a header block.
pub const END_HEADERS: u8 = 4;
/// The setting that says whether the server may push.
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
