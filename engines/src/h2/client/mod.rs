//! HTTP/2 on one connection, client role.
//!
//! Frames, header compression, windows and the table of streams are the server role's. Pushes are refused by our SETTINGS;
//! one that comes all the same breaks the connection. A response that breaks the rules for messages costs its stream, a
//! frame that breaks those for connections costs the connection. What costs work and brings nothing is paid from a budget,
//! as it is by clients: a server may be as hostile.
//!
//! Of the settings, `preread_bytes` is the window of each response, `header_bytes`, `field_bytes` and `max_headers` are its
//! limits.
//!
//! Absent: priorities, pushes, and Extended CONNECT.
//!
//! Source: RFC 9113.

mod receive;
mod request;
mod response;

use std::collections::VecDeque;

use super::budget::{self, Budget};
use super::conn::{PREFACE, PeerSettings};
use super::error::{self, Misdeed};
use super::frame::{self, FrameHead, HEAD_BYTES, put_head};
use super::settings::{self, DEFAULT_WINDOW, FRAME_BYTES, Settings};
use crate::client::{self, Bodies, Spares};
use crate::hpack::{DEFAULT_TABLE_BYTES, Decoder, Encoder};
use crate::http::ResponseHead;
use crate::mux::client::Stream;
use crate::mux::{MAX_WINDOW, StreamTable, Window};
use receive::Block;
use response::Note;

/// What a client of HTTP/2 tells its driver.
pub type Event = client::Event<Misdeed>;

/// One HTTP/2 connection in the client role.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    bodies: Bodies,
    /// A part of a frame.
    held: Vec<u8>,
    /// SETTINGS of the server have come.
    settled: bool,
    /// The server knows our SETTINGS.
    acknowledged: bool,
    peer: PeerSettings,
    /// Streams that the server lets us have open.
    max_streams: usize,
    decoder: Decoder<Option<Note>>,
    encoder: Encoder,
    streams: StreamTable<Stream>,
    next_stream: u32,
    /// What the server lets us send on the connection.
    window: Window,
    /// Streams with a body that waits for that window, in turn.
    waiting: VecDeque<u32>,
    /// Bytes of data that the server may still send on the connection.
    allowed_bytes: u64,
    block: Option<Block>,
    /// What has come of that header block.
    block_bytes: Vec<u8>,
    /// Memory for header blocks of requests.
    encoded: Vec<u8>,
    ending: Ending,
    budget: Budget,
    events: VecDeque<Event>,
    out: Vec<u8>,
    spares: Spares,
}

/// How far the connection's end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Open,
    /// The server takes no new stream.
    Closing,
    Failed,
}

impl Client {
    /// A connection on which nothing has been received; preface and SETTINGS are ready to be transmitted.
    #[must_use]
    pub fn new(settings: Settings, bodies: Bodies) -> Self {
        let mut client = Self {
            bodies,
            held: Vec::new(),
            settled: false,
            acknowledged: false,
            peer: PeerSettings {
                window_bytes: DEFAULT_WINDOW,
                frame_bytes: FRAME_BYTES,
            },
            max_streams: STREAMS_BEFORE_SETTINGS,
            decoder: Decoder::new(DEFAULT_TABLE_BYTES),
            encoder: Encoder::new(settings.header_table_bytes, true),
            streams: StreamTable::default(),
            next_stream: 1,
            window: Window::new(DEFAULT_WINDOW),
            waiting: VecDeque::new(),
            allowed_bytes: MAX_WINDOW,
            block: None,
            block_bytes: Vec::new(),
            encoded: Vec::new(),
            ending: Ending::Open,
            budget: Budget::new(settings.abuse_budget),
            events: VecDeque::new(),
            out: Vec::new(),
            spares: Spares::default(),
            settings,
        };
        client.greet();
        client
    }

    /// The preface, our SETTINGS, and a window for the connection that never stops a response; those of streams do.
    fn greet(&mut self) {
        let Self { settings, out, .. } = self;
        let pairs = [
            (
                settings::HEADER_TABLE_SIZE,
                settings.header_table_bytes as u32,
            ),
            (settings::ENABLE_PUSH, 0),
            (settings::INITIAL_WINDOW_SIZE, settings.preread_bytes),
            (settings::MAX_HEADER_LIST_SIZE, settings.header_bytes as u32),
        ];
        out.extend_from_slice(PREFACE);
        put_head(out, pairs.len() * 6, frame::SETTINGS, 0, 0);
        for (id, value) in pairs {
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        self.put_window_update(0, MAX_WINDOW - u64::from(DEFAULT_WINDOW));
    }

    /// How many exchanges can be begun now.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.is_closed() {
            return 0;
        }
        self.max_streams.saturating_sub(self.streams.len())
    }

    /// Whether the connection takes no further request, now or later.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ending != Ending::Open || self.next_stream > frame::MAX_STREAM
    }

    /// Whether the server's SETTINGS have come, so that [`Self::room`] is what it allows.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// The next event.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Moves the bytes to send to the end of `out`.
    #[inline]
    pub fn transmit(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() {
            std::mem::swap(out, &mut self.out);
        } else {
            out.append(&mut self.out);
        }
    }

    /// Takes back the memory of a head.
    #[inline]
    pub fn recycle(&mut self, head: Box<ResponseHead>) {
        self.spares.give(head);
    }

    /// Time has passed: what a server did is forgiven by and by.
    pub fn seconds_passed(&mut self, seconds: u32) {
        self.budget.earn(seconds.saturating_mul(budget::SECOND));
    }

    /// Takes bytes from the server.
    pub fn receive(&mut self, input: &[u8]) {
        if self.ending == Ending::Failed {
            return;
        }
        let result = if self.held.is_empty() {
            self.frames(input).map(|used| {
                self.held.extend_from_slice(&input[used..]);
            })
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(input);
            let result = self.frames(&held);
            result.map(|used| {
                held.drain(..used);
                self.held = held;
            })
        };
        if let Err(misdeed) = result {
            self.fail(misdeed);
        }
    }

    /// Takes whole frames; gives how many bytes they were.
    fn frames(&mut self, input: &[u8]) -> Result<usize, Misdeed> {
        let mut at = 0;
        while let Some(head) = input[at..].first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::parse(head);
            // What is no HTTP/2 at all is told as that (RFC 9113 section 3.4).
            if !self.settled && (head.kind != frame::SETTINGS || head.has(frame::ACK)) {
                return Err(Misdeed::BadPreface);
            }
            if head.len > FRAME_BYTES {
                return Err(Misdeed::FrameSize);
            }
            if self.block.is_some() && head.kind != frame::CONTINUATION {
                return Err(Misdeed::BrokenHeaderBlock);
            }
            let start = at + HEAD_BYTES;
            let Some(payload) = input.get(start..start + head.len) else {
                break;
            };
            self.frame(head, payload)?;
            at = start + head.len;
        }
        Ok(at)
    }

    /// Takes the end of the server's bytes; that it is `whole` says nothing here, since frames say where bodies end.
    pub fn receive_eof(&mut self, _whole: bool) {
        if self.ending == Ending::Failed {
            return;
        }
        if self.streams.is_empty() {
            self.ending = Ending::Failed;
            self.events.push_back(Event::Eof);
        } else {
            self.fail(Misdeed::Closed);
        }
    }

    /// Ends the connection because of a misdeed.
    fn fail(&mut self, misdeed: Misdeed) {
        self.ending = Ending::Failed;
        self.held = Vec::new();
        self.block = None;
        let ids: Vec<u32> = self.streams.ids().collect();
        for id in ids {
            self.streams.remove(id);
        }
        self.waiting.clear();
        if misdeed != Misdeed::Closed {
            self.put_goaway(misdeed.code());
        }
        self.events.push_back(Event::Failed(misdeed));
    }

    /// Tells the server that no request follows; exchanges that are under way go on.
    pub fn end(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Closing;
            self.put_goaway(error::NO_ERROR);
        }
    }

    fn put_goaway(&mut self, code: u32) {
        let out = &mut self.out;
        put_head(out, 8, frame::GOAWAY, 0, 0);
        // We take no streams of the server.
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&code.to_be_bytes());
    }

    fn put_window_update(&mut self, id: u32, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(0);
        put_head(&mut self.out, 4, frame::WINDOW_UPDATE, 0, id);
        self.out.extend_from_slice(&bytes.to_be_bytes());
    }

    /// Resets a stream and forgets it.
    fn put_reset(&mut self, id: u32, code: u32) {
        self.streams.remove(id);
        put_head(&mut self.out, 4, frame::RST_STREAM, 0, id);
        self.out.extend_from_slice(&code.to_be_bytes());
    }

    /// Asks for an answer.
    pub fn ping(&mut self, number: u64) {
        put_head(&mut self.out, 8, frame::PING, 0, 0);
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&mut self) {
        assert!(
            self.held.len() < HEAD_BYTES + FRAME_BYTES,
            "a whole frame is held back"
        );
        assert!(self.allowed_bytes <= MAX_WINDOW);
        let next = self.next_stream;
        self.streams.each(|id, stream| {
            assert!(id < next, "a stream that nobody opened");
            assert!(!stream.is_done(), "a stream that has ended is kept");
        });
        self.decoder.check_invariants();
        self.encoder.check_invariants();
    }
}

/// Streams that are opened before the server has said how many it takes (RFC 9113 section 6.5.2 recommends no fewer).
const STREAMS_BEFORE_SETTINGS: usize = 100;
