//! The client role: enough for tests and measurements.
//!
//! Requests are opened, bodies leave as the server's windows allow, and what comes is told in order. Windows for responses are
//! opened again as data comes.
//!
//! Absent: pushed streams, which are reset; limits on what the server sends; the answer to its misdeeds, which is to fail.
//!
//! Source: draft-mbelshe-httpbis-spdy-00.

use std::collections::{BTreeMap, VecDeque};

use super::error::{CANCEL, REFUSED_STREAM};
use super::frame::{self, FrameHead, HEAD_BYTES, Kind, one, put_control, put_data, put_pair, two};
use super::pairs::{self, Writer};
use super::settings::{DEFAULT_WINDOW, INITIAL_WINDOW_SIZE};
use super::zlib::{Deflater, Inflater};
use crate::http::Fields;
use crate::mux::Window;

/// One SPDY/3.1 connection in the client role.
#[derive(Debug)]
pub struct Client {
    held: Vec<u8>,
    inflater: Inflater,
    deflater: Deflater,
    writer: Writer,
    streams: BTreeMap<u32, Stream>,
    next_stream: u32,
    /// What the server lets us send on the connection, and on a new stream.
    window: Window,
    window_bytes: u32,
    /// Bytes that came and were not allowed anew.
    taken_bytes: u64,
    answers: VecDeque<Answer>,
    out: Vec<u8>,
    failed: bool,
}

#[derive(Debug)]
struct Stream {
    window: Window,
    taken_bytes: u64,
    pending: VecDeque<u8>,
    /// Nothing comes behind what waits.
    ended: bool,
    /// Our FIN is sent; the server's has come.
    sent: bool,
    received: bool,
}

/// Something the server sent, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The head of a response, or its trailers.
    Head {
        /// Number of the stream.
        stream: u32,
        /// The fields, of which `:status` is one.
        fields: Fields,
    },
    /// Bytes of a response.
    Data {
        /// Number of the stream.
        stream: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A response is complete.
    End(u32),
    /// A stream was reset.
    Reset {
        /// Number of the stream.
        stream: u32,
        /// Why.
        code: u32,
    },
    /// A PING of this client has come back.
    Pong(u32),
    /// The server serves no stream above this one.
    GoAway {
        /// Number of the last stream.
        last: u32,
        /// Why.
        code: u32,
    },
    /// The server has broken the protocol; nothing more is read.
    Failed,
}

impl Client {
    /// A connection that compresses header blocks at a level of zlib, 0 to 9.
    #[must_use]
    pub fn new(headers_level: u8) -> Self {
        Self {
            held: Vec::new(),
            inflater: Inflater::default(),
            deflater: Deflater::new(headers_level),
            writer: Writer::default(),
            streams: BTreeMap::new(),
            next_stream: 1,
            window: Window::new(DEFAULT_WINDOW),
            window_bytes: DEFAULT_WINDOW,
            taken_bytes: 0,
            answers: VecDeque::new(),
            out: Vec::new(),
            failed: false,
        }
    }

    /// Opens a stream with these fields, `:method` and its like among them, and gives its number. Priority 0 is the most
    /// urgent, 7 the least; with `ended` the request has no body.
    pub fn request<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        priority: u8,
        ended: bool,
    ) -> u32 {
        let id = self.next_stream;
        self.next_stream += 2;
        self.writer.begin();
        for (name, value) in fields {
            self.writer.single(name, value);
        }
        self.writer.finish();
        let start = self.out.len();
        let flags = if ended { frame::FIN } else { 0 };
        put_control(&mut self.out, frame::SYN_STREAM, flags, 0);
        self.out.extend_from_slice(&id.to_be_bytes());
        self.out.extend_from_slice(&[0, 0, 0, 0, priority << 5, 0]);
        self.deflater.block(&self.writer.text, &[], &mut self.out);
        let len = (self.out.len() - start - HEAD_BYTES) as u32;
        self.out[start + 5..start + 8].copy_from_slice(&len.to_be_bytes()[1..]);
        let stream = Stream {
            window: Window::new(self.window_bytes),
            taken_bytes: 0,
            pending: VecDeque::new(),
            ended,
            sent: ended,
            received: false,
        };
        self.streams.insert(id, stream);
        id
    }

    /// Sends bytes of a request's body, as far as windows allow now or later.
    pub fn send(&mut self, id: u32, bytes: &[u8], ended: bool) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.ended
        {
            stream.pending.extend(bytes);
            stream.ended = ended;
            self.flush(id);
        }
    }

    /// Gives a stream up.
    pub fn cancel(&mut self, id: u32) {
        if self.streams.remove(&id).is_some() {
            put_pair(&mut self.out, frame::RST_STREAM, id, CANCEL);
        }
    }

    /// Asks for an answer; a client's numbers are odd.
    pub fn ping(&mut self, number: u32) {
        put_control(&mut self.out, frame::PING, 0, 4);
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    /// The bytes to send.
    pub fn transmit(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// What came.
    pub fn answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        if self.failed {
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(input);
        let mut at = 0;
        while let Some(head) = held[at..].first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::parse(head);
            let start = at + HEAD_BYTES;
            let Some(payload) = held.get(start..start + head.len) else {
                break;
            };
            at = start + head.len;
            if self.frame(head, payload).is_none() {
                self.failed = true;
                self.answers.push_back(Answer::Failed);
                return;
            }
        }
        held.drain(..at);
        self.held = held;
    }

    /// Takes a frame; `None` if it breaks the protocol.
    fn frame(&mut self, head: FrameHead, payload: &[u8]) -> Option<()> {
        let ended = head.has(frame::FIN);
        let kind = match head.kind {
            Kind::Data(id) => return self.data(id, payload, ended),
            Kind::OtherVersion => return None,
            Kind::Control(kind) => kind,
        };
        match kind {
            frame::SYN_REPLY | frame::HEADERS => {
                let (id, block) = payload.split_at_checked(4)?;
                self.head(one(id)?, block, ended)?;
            }
            frame::SYN_STREAM => {
                let (id, block) = (one(payload.get(..4)?)?, payload.get(10..)?);
                self.text(block)?;
                put_pair(&mut self.out, frame::RST_STREAM, id, REFUSED_STREAM);
            }
            frame::RST_STREAM => {
                let (stream, code) = two(payload)?;
                if self.streams.remove(&stream).is_some() {
                    self.answers.push_back(Answer::Reset { stream, code });
                }
            }
            frame::SETTINGS => self.settings(payload)?,
            frame::PING => match one(payload)? {
                number if number % 2 == 1 => self.answers.push_back(Answer::Pong(number)),
                number => self.ping(number),
            },
            frame::GOAWAY => {
                let (last, code) = two(payload)?;
                self.answers.push_back(Answer::GoAway { last, code });
            }
            frame::WINDOW_UPDATE => {
                let (id, grant) = two(payload)?;
                if id == 0 {
                    self.window.adjust(i64::from(grant)).ok()?;
                    self.flush_all();
                } else if let Some(stream) = self.streams.get_mut(&id) {
                    stream.window.adjust(i64::from(grant)).ok()?;
                    self.flush(id);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn settings(&mut self, payload: &[u8]) -> Option<()> {
        let (entries, rest) = payload.get(4..)?.as_chunks::<8>();
        for entry in entries {
            let (id, value) = two(entry)?;
            if id & 0x00ff_ffff == INITIAL_WINDOW_SIZE {
                let change = i64::from(value) - i64::from(self.window_bytes);
                self.window_bytes = value;
                for stream in self.streams.values_mut() {
                    stream.window.adjust(change).ok()?;
                }
            }
        }
        self.flush_all();
        rest.is_empty().then_some(())
    }

    /// The text of a header block.
    fn text(&mut self, block: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let most = MAX_TEXT_BYTES;
        self.inflater.block(block, most, most, &mut text).ok()?;
        Some(text)
    }

    fn head(&mut self, stream: u32, block: &[u8], ended: bool) -> Option<()> {
        let text = self.text(block)?;
        let mut fields = Fields::default();
        pairs::each(&text, |name, value| {
            for value in value.split(|byte| *byte == 0) {
                fields.push(name, value);
            }
        })
        .ok()?;
        if self.streams.contains_key(&stream) {
            self.answers.push_back(Answer::Head { stream, fields });
            self.received(stream, ended);
        }
        Some(())
    }

    fn data(&mut self, id: u32, bytes: &[u8], ended: bool) -> Option<()> {
        let len = bytes.len() as u64;
        self.taken_bytes += len;
        if self.taken_bytes > u64::from(DEFAULT_WINDOW) {
            return None;
        }
        if self.taken_bytes > u64::from(DEFAULT_WINDOW / 2) {
            let grant = std::mem::take(&mut self.taken_bytes) as u32;
            put_pair(&mut self.out, frame::WINDOW_UPDATE, 0, grant);
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return Some(());
        };
        stream.taken_bytes += len;
        if stream.taken_bytes > u64::from(DEFAULT_WINDOW) {
            return None;
        }
        if stream.taken_bytes > u64::from(DEFAULT_WINDOW / 2) && !ended {
            let grant = std::mem::take(&mut stream.taken_bytes) as u32;
            put_pair(&mut self.out, frame::WINDOW_UPDATE, id, grant);
        }
        if !bytes.is_empty() {
            self.answers.push_back(Answer::Data {
                stream: id,
                bytes: bytes.to_vec(),
            });
        }
        self.received(id, ended);
        Some(())
    }

    fn received(&mut self, id: u32, ended: bool) {
        if let Some(stream) = self.streams.get_mut(&id)
            && ended
        {
            stream.received = true;
            self.answers.push_back(Answer::End(id));
            self.forget_if_done(id);
        }
    }

    fn flush_all(&mut self) {
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        for id in ids {
            self.flush(id);
        }
    }

    /// Sends what windows allow.
    fn flush(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        while !stream.sent {
            let allowed = stream.window.available().min(self.window.available());
            let len = stream.pending.len().min(allowed as usize).min(FRAME_BYTES);
            let last = stream.ended && len == stream.pending.len();
            if len == 0 && !last {
                return;
            }
            let taken = stream.window.take(len as u64) && self.window.take(len as u64);
            debug_assert!(taken, "windows were asked before");
            put_data(&mut self.out, id, if last { frame::FIN } else { 0 }, len);
            self.out.extend(stream.pending.drain(..len));
            stream.sent = last;
        }
        self.forget_if_done(id);
    }

    fn forget_if_done(&mut self, id: u32) {
        if self.streams.get(&id).is_some_and(|s| s.sent && s.received) {
            self.streams.remove(&id);
        }
    }
}

/// Bytes of a DATA frame.
const FRAME_BYTES: usize = 16 << 10;
/// Bytes of the text of a header block.
const MAX_TEXT_BYTES: usize = 1 << 20;
