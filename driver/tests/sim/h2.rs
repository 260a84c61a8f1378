//! HTTP/2 clients that check the server: random actions, and the frames that must follow from them.
//!
//! A client opens streams, uploads, and grants windows of any size or none. It changes settings, resets, pings,
//! reprioritizes, sends GOAWAY, violates the protocol, or goes silent. It tracks windows, settings and frames by RFC
//! 9113. It knows the response of each request (`requests`), and the valid reasons of resets and closes
//! (`final_checks`). Frames that the server could send must be sent once nothing else happens.

#[path = "h2/final_checks.rs"]
mod final_checks;
#[path = "h2/receive.rs"]
mod receive;
#[path = "h2/requests.rs"]
mod requests;
#[path = "h2/response.rs"]
mod response;
#[path = "h2/send.rs"]
mod send;

use std::collections::{BTreeMap, VecDeque};

use engines::h2::PREFACE;
use engines::hpack::{Decoder, Encoder};
use sim::{Link, Random, Reading, Wire};

use super::checker::RunContext;
use super::final_checks::timings;
use super::run::SimClient;
use requests::Request;

/// An HTTP/2 client.
pub(crate) struct Peer {
    link: usize,
    behavior: Behavior,
    /// Number of requests that it may still make.
    left: usize,
    /// All bytes to send; `pushed` of them are on the wire.
    out: Vec<u8>,
    pushed: usize,
    encoder: Encoder,
    next: u32,
    streams: BTreeMap<u32, Stream>,
    /// Receive window of the connection.
    window: i64,
    /// Settings that the server has acknowledged; `pending_settings` are not acknowledged yet.
    settings: Settings,
    pending_settings: VecDeque<PendingSettings>,
    pings: VecDeque<[u8; 8]>,
    /// Error code that the server must send, since the client violated the protocol.
    sin: Option<u32>,
    /// The violation was a connection window above the limit.
    overflows: bool,
    /// Number of parsed bytes of the server.
    received: usize,
    decoder: Decoder,
    block: Option<Block>,
    /// Send windows: of the connection, and the initial one of a stream.
    their_window: i64,
    their_initial: i64,
    /// Last stream and error code of the latest GOAWAY.
    goaway: Option<(u32, u32)>,
    answered: usize,
    expired: bool,
    closed: bool,
    gone: bool,
    /// Log of sent and received frames.
    log: Vec<String>,
}

/// Behavior of a client.
#[derive(Clone, Copy, Debug)]
struct Behavior {
    /// It sends at most this number of bytes.
    limit: usize,
    /// It sends in pieces of random length.
    cuts: bool,
    reading: Reading,
    /// It opens no window by itself.
    thrifty: bool,
    ending: Ending,
}

/// Action at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// None.
    Stay,
    /// Ends its side when all requests are answered.
    End,
    /// Resets when everything is sent.
    Reset,
}

/// Values of settings.
#[derive(Clone, Copy, Debug)]
struct Settings {
    window: u32,
    frame_bytes: usize,
    table_bytes: usize,
}

/// Settings that are not acknowledged, and the highest stream before them.
#[derive(Clone, Copy, Debug)]
struct PendingSettings {
    settings: Settings,
    last: u32,
}

/// A header block of the server.
struct Block {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
}

/// One stream.
struct Stream {
    request: Request,
    /// Start and end of its header block in the client's bytes.
    head: (usize, usize),
    /// Remaining body bytes; `None` if the client's side has ended.
    upload: Option<usize>,
    /// Receive window.
    window: i64,
    /// Send window.
    their_window: i64,
    /// The maximum number of streams was open at its start.
    crowded: bool,
    /// Error code that the server must send, since the client broke the stream.
    sin: Option<u32>,
    cancelled: bool,
    status: u16,
    fields: Vec<(String, String)>,
    trailers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Start of the response in the server's bytes, and the total length of its frames.
    begun: usize,
    bytes: u64,
    ended: bool,
    reset: Option<u32>,
}

impl Stream {
    /// Whether it counts as open.
    fn is_open(&self) -> bool {
        let done = self.ended && self.upload.is_none();
        !done && self.reset.is_none() && !self.cancelled
    }

    /// Whether no further part of the response is expected.
    fn is_settled(&self) -> bool {
        self.ended || self.reset.is_some() || self.cancelled || self.sin.is_some()
    }
}

impl SimClient for Peer {
    fn new(link: usize, random: &mut Random) -> Self {
        let ending = match random.below(10) {
            0..6 => Ending::Stay,
            6..9 => Ending::End,
            _ => Ending::Reset,
        };
        let reading = Reading::drawn(12, 3000, random);
        let behavior = Behavior {
            limit: match random.chance(150) {
                true => random.within(0..2000),
                false => usize::MAX,
            },
            cuts: random.chance(600),
            reading,
            thrifty: random.chance(150),
            ending,
        };
        let table_bytes = *random.pick(&[0, 100, 4096]);
        let mut peer = Self {
            link,
            behavior,
            left: random.within(0..30),
            out: PREFACE.to_vec(),
            pushed: 0,
            encoder: Encoder::new(table_bytes, random.chance(500)),
            next: 1,
            streams: BTreeMap::new(),
            window: i64::from(DEFAULT_WINDOW),
            settings: Settings {
                window: DEFAULT_WINDOW,
                frame_bytes: 16_384,
                table_bytes: 4096,
            },
            pending_settings: VecDeque::new(),
            pings: VecDeque::new(),
            sin: None,
            overflows: false,
            received: 0,
            decoder: Decoder::new(4096),
            block: None,
            their_window: i64::from(DEFAULT_WINDOW),
            their_initial: i64::from(DEFAULT_WINDOW),
            goaway: None,
            answered: 0,
            expired: false,
            closed: false,
            gone: false,
            log: Vec::new(),
        };
        peer.send_settings(random);
        peer
    }

    fn link(&self) -> usize {
        self.link
    }

    fn act(&mut self, wire: &mut Wire, random: &mut Random) {
        if self.sin.is_none() {
            self.send_something(random);
        }
        if random.chance(600) {
            self.push(wire, random);
        }
        if random.chance(500) {
            self.behavior.reading.fetch(wire, 400, random);
        }
    }

    fn finish(&mut self, wire: &mut Wire, random: &mut Random) -> bool {
        let before = (self.out.len(), self.pushed, wire.fetched(), self.gone);
        self.left = 0;
        self.behavior.cuts = false;
        if self.sin.is_none() {
            self.upload_all(random);
            if !self.behavior.thrifty {
                self.open_windows();
            }
        }
        self.push(wire, random);
        self.behavior.reading.hurry();
        self.behavior.reading.fetch(wire, 400, random);
        self.leave(wire);
        before != (self.out.len(), self.pushed, wire.fetched(), self.gone)
    }

    fn look(&mut self, link: &Link, now_ms: u64, context: &RunContext<'_>) -> Result<(), String> {
        if self.closed {
            return Ok(());
        }
        let wire = link.wire.borrow();
        if let Some(violation) = wire.violations.first() {
            return Err(violation.clone());
        }
        self.receive(&wire, link, context)?;
        if let Some(closed) = link.closed {
            self.closed = true;
            return self.close(&wire, link, closed, context);
        }
        self.check_open(&wire, now_ms)
    }

    fn quiet(&self, link: &Link, now_ms: u64, context: &RunContext<'_>) -> Result<(), String> {
        self.check_quiet(link, now_ms, context)
    }

    fn story(&self, link: &Link) -> String {
        let wire = link.wire.borrow();
        let mut story = format!("  {:?}, sin {:?}\n", self.behavior, self.sin);
        for (id, stream) in &self.streams {
            let Stream { request, head, .. } = stream;
            story += &format!(
                "  stream {id} at {head:?}: {:?} {:?} wait {}, body {:?}: status {}, {} bytes, ended {}, reset {:?}, \
                 cancelled {}, window {}\n",
                request.fields.get(2),
                request.expected,
                request.wait_ms,
                request.body,
                stream.status,
                stream.body.len(),
                stream.ended,
                stream.reset,
                stream.cancelled,
                stream.window
            );
        }
        let skipped = self.log.len().saturating_sub(STORY_LINES);
        story += &format!(
            "  accepted {:?}, drained_at {:?}, closed {:?}, shutdown {:?}, end read {}, pushed {} of {}, taken {}, window {}\n  \
             read{}\n  sent{}\n  {}",
            link.accepted,
            link.drained_at,
            link.closed,
            wire.shutdown_ms,
            wire.fin_seen,
            self.pushed,
            self.out.len(),
            wire.taken(),
            self.window,
            timings(&wire.takes),
            timings(&wire.puts),
            self.log[skipped..].join("\n  ")
        );
        story
    }

    fn answered(&self) -> usize {
        self.answered
    }

    fn is_expired(&self) -> bool {
        self.expired
    }
}

impl Peer {
    fn push(&mut self, wire: &mut Wire, random: &mut Random) {
        let there = self.out.len().min(self.behavior.limit);
        let len = match there - self.pushed {
            0 => return,
            all if self.behavior.cuts => random.piece(all),
            all => all,
        };
        wire.push(&self.out[self.pushed..self.pushed + len]);
        self.pushed += len;
    }

    /// Whether everything to send is on the wire.
    fn has_said_all(&self) -> bool {
        self.pushed == self.out.len()
    }

    fn leave(&mut self, wire: &mut Wire) {
        let all_answered = self.streams.values().all(Stream::is_settled);
        match self.behavior.ending {
            _ if self.gone || !self.has_said_all() => {}
            Ending::End if all_answered => {
                wire.end();
                self.gone = true;
            }
            Ending::Reset => {
                wire.reset();
                self.gone = true;
            }
            _ => {}
        }
    }

    fn log(&mut self, text: String) {
        self.log.push(text);
    }
}

/// Initial size of windows.
const DEFAULT_WINDOW: u32 = 65_535;
/// Maximum size of windows.
const MAX_WINDOW: i64 = (1 << 31) - 1;
/// `http2_max_concurrent_streams` of the configurations.
const MAX_STREAMS: usize = 9;
/// Number of lines in a client's log.
const STORY_LINES: usize = 60;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const PRIORITY_UPDATE: u8 = 16;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const HAS_PRIORITY: u8 = 32;
