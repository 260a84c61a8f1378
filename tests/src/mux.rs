//! A raw client of HTTP/2 or SPDY: sends the frames that it gets, and sorts received frames by stream.
//!
//! Frames and header blocks are in `h2` and `spdy`. It shares no code with the engines under test.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::hpack::Fields;
use crate::wait::DEADLINE;

/// The frames of a protocol, and the state that its client keeps.
pub trait Frames: Default {
    /// Length of a frame's head, bytes.
    const HEAD_BYTES: usize;

    /// How many bytes follow the head of a frame.
    fn payload_bytes(head: &[u8]) -> usize;

    /// Takes a frame.
    fn take(client: &mut MuxClient<Self>, head: &[u8], payload: &[u8]);

    /// Begins a request; returns the number of the stream.
    fn request(
        client: &mut MuxClient<Self>,
        method_and_path: (&str, &str),
        more: &[(&str, &str)],
        end: bool,
    ) -> u32;

    /// Sends a PING that was not sent before; returns its payload.
    fn ping(client: &mut MuxClient<Self>) -> Vec<u8>;
}

/// One connection.
#[derive(Debug)]
pub struct MuxClient<F> {
    stream: TcpStream,
    buffer: Vec<u8>,
    next_stream: u32,
    /// State of this protocol alone.
    pub protocol: F,
    /// Data received on each stream.
    pub replies: BTreeMap<u32, Reply>,
    /// Last stream and code of each GOAWAY.
    pub goaways: Vec<(u32, u32)>,
    /// Payloads of PING, with whether they are answers.
    pub pings: Vec<(bool, Vec<u8>)>,
    /// SETTINGS of the server.
    pub settings: Vec<(u32, u32)>,
    /// The streams of DATA frames and how long they were, in order.
    pub data_frames: Vec<(u32, usize)>,
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
    /// The last frame has come.
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

impl<F: Frames> MuxClient<F> {
    /// Connects and sends nothing.
    ///
    /// # Panics
    /// If the connection is refused.
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
            next_stream: 1,
            protocol: F::default(),
            replies: BTreeMap::new(),
            goaways: Vec::new(),
            pings: Vec::new(),
            settings: Vec::new(),
            data_frames: Vec::new(),
            closed: false,
        }
    }

    /// Sends bytes. A closed connection is no failure: the received frames have the reason.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Sends the end of this direction.
    pub fn finish_sending(&mut self) -> &mut Self {
        let _ = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// Requests a path and returns the number of the stream.
    pub fn get(&mut self, path: &str) -> u32 {
        self.request("GET", path, &[], true)
    }

    /// Begins a request; returns the number of the stream.
    pub fn request(&mut self, method: &str, path: &str, more: &[(&str, &str)], end: bool) -> u32 {
        F::request(self, (method, path), more, end)
    }

    /// The number of a stream that was not used yet.
    pub fn take_stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
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

    /// Waits until the server has handled all earlier frames: a PING comes back.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn settle(&mut self) -> &mut Self {
        let payload = F::ping(self);
        self.until("a PING comes back", |c| {
            c.pings.iter().any(|(ack, data)| *ack && *data == payload)
        });
        self
    }

    /// Reads until `done` returns true.
    ///
    /// # Panics
    /// If the connection ends or the deadline passes first.
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

    /// A summary of the received frames.
    fn summary(&self) -> String {
        let last = self.replies.iter().rev().take(3).map(|(stream, reply)| {
            let (status, bytes) = (reply.status, reply.body.len());
            let (ended, reset) = (reply.ended, reply.reset);
            format!("{stream}: {status}, {bytes} bytes, ended: {ended}, reset: {reset:?}")
        });
        let last: Vec<String> = last.collect();
        format!(
            "closed: {}, goaways: {:?}, pings: {}, streams: {}, the last of them: {last:?}",
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

    /// Reads until `done` returns true; returns false after `limit`.
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
        while let Some((head, after)) = rest.split_at_checked(F::HEAD_BYTES) {
            let Some((payload, after)) = after.split_at_checked(F::payload_bytes(head)) else {
                break;
            };
            rest = after;
            F::take(self, head, payload);
        }
        self.buffer = rest.to_vec();
    }
}

/// The number that `bytes` begin with.
pub(crate) fn number(bytes: &[u8]) -> u32 {
    let bytes = bytes.first_chunk().expect("four bytes");
    u32::from_be_bytes(*bytes)
}

/// Largest window, and largest number of a stream.
pub const MAX_WINDOW: u32 = (1 << 31) - 1;
