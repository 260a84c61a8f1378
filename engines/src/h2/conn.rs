//! The connection: its state, how bytes come in, how it ends. Frames are taken in `receive`, responses sent in `send`.

use std::collections::VecDeque;
use std::rc::Rc;

use super::budget::{self, Budget};
use super::error::{self, Misdeed};
use super::event::Event;
use super::frame::{self, FrameHead, HEAD_BYTES, put_head};
use super::headers::Block;
use super::push::Pushes;
use super::request::Note;
use super::settings::{self, DEFAULT_WINDOW, FRAME_BYTES, Settings};
use super::stream::Stream;
use crate::held::Held;
use crate::hpack::{DEFAULT_TABLE_BYTES, Decoder, Encoder};
use crate::http::{Gather, RequestHead};
use crate::mux::{Allowance, MAX_WINDOW, Priority, Repeated, Sender, StreamTable, Window};

/// One HTTP/2 connection in the server role.
#[derive(Debug)]
pub struct Conn {
    pub(super) settings: Rc<Settings>,
    /// A part of the preface or of a frame.
    held: Held,
    /// Bytes of the preface that are still to come.
    preface_left: usize,
    /// SETTINGS of the peer have come: the first are free.
    pub(super) settled: bool,
    /// The peer knows our SETTINGS.
    pub(super) acknowledged: bool,
    pub(super) peer: PeerSettings,
    pub(super) decoder: Decoder<Option<Note>>,
    pub(super) encoder: Encoder,
    pub(super) streams: StreamTable<Stream>,
    pub(super) sender: Sender,
    /// The client has told priorities: without them all streams take turns.
    pub(super) prioritised: bool,
    /// Priorities of streams that are not open yet.
    pub(super) early_priorities: Vec<(u32, Priority)>,
    pub(super) allowance: Allowance,
    pub(super) block: Option<Block>,
    /// What has come of that header block.
    pub(super) block_bytes: Vec<u8>,
    /// The response head that was encoded last.
    pub(super) repeated: Repeated,
    /// Memory for header blocks of responses.
    pub(super) encoded: Vec<u8>,
    pub(super) pushes: Pushes,
    /// Highest number of a stream of the client.
    pub(super) last_stream: u32,
    /// Highest number of a stream whose request has come whole.
    pub(super) last_request: u32,
    /// Streams that we have reset lately: what is still under way on them is dropped.
    pub(super) reset_lately: VecDeque<u32>,
    pub(super) events: VecDeque<Event>,
    pub(super) out: Gather,
    pub(super) ending: Ending,
    pub(super) budget: Budget,
    #[allow(clippy::vec_box, reason = "heads move as pointers")]
    pub(super) spares: Vec<Box<RequestHead>>,
    eof: bool,
}

/// What the peer's SETTINGS say.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings {
    pub(super) window_bytes: u32,
    pub(super) frame_bytes: usize,
}

/// How far the connection's end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Open,
    /// The peer was told that there is an end, not yet where; a PING finds out when it knows.
    Announced,
    /// Streams above this number are not served.
    After(u32),
    /// The peer broke the protocol.
    Failed,
}

impl Conn {
    /// A connection on which nothing has been received; our SETTINGS are ready to be transmitted.
    #[must_use]
    pub fn new(settings: Rc<Settings>) -> Self {
        let mut conn = Self {
            held: Held::default(),
            preface_left: PREFACE.len(),
            settled: false,
            acknowledged: false,
            peer: PeerSettings {
                window_bytes: DEFAULT_WINDOW,
                frame_bytes: FRAME_BYTES,
            },
            decoder: Decoder::new(DEFAULT_TABLE_BYTES),
            encoder: Encoder::new(settings.header_table_bytes, true),
            streams: StreamTable::default(),
            sender: Sender::new(Window::new(DEFAULT_WINDOW)),
            prioritised: false,
            early_priorities: Vec::new(),
            allowance: Allowance::new(),
            block: None,
            block_bytes: Vec::new(),
            repeated: Repeated::default(),
            encoded: Vec::new(),
            pushes: Pushes::default(),
            last_stream: 0,
            last_request: 0,
            reset_lately: VecDeque::new(),
            events: VecDeque::new(),
            out: Gather::default(),
            ending: Ending::Open,
            budget: Budget::new(settings.abuse_budget),
            spares: Vec::new(),
            eof: false,
            settings,
        };
        conn.greet();
        conn
    }

    /// Our SETTINGS, and a window for the connection that never stops a request body; those of streams do.
    fn greet(&mut self) {
        let settings = &self.settings;
        let pairs = [
            (
                settings::HEADER_TABLE_SIZE,
                settings.header_table_bytes as u32,
                4096,
            ),
            (
                settings::MAX_CONCURRENT_STREAMS,
                settings.max_concurrent_streams,
                u32::MAX,
            ),
            (
                settings::INITIAL_WINDOW_SIZE,
                settings.preread_bytes,
                DEFAULT_WINDOW,
            ),
            (
                settings::MAX_HEADER_LIST_SIZE,
                settings.header_bytes as u32,
                u32::MAX,
            ),
            (
                settings::ENABLE_CONNECT_PROTOCOL,
                u32::from(settings.extended_connect),
                0,
            ),
            (settings::NO_RFC7540_PRIORITIES, 1, 0),
        ];
        let told: Vec<_> = pairs
            .iter()
            .filter(|(_, value, default)| value != default)
            .collect();
        self.out.push_with(|out| {
            put_head(out, told.len() * 6, frame::SETTINGS, 0, 0);
            for (id, value, _) in told {
                out.extend_from_slice(&id.to_be_bytes());
                out.extend_from_slice(&value.to_be_bytes());
            }
            put_head(out, 4, frame::WINDOW_UPDATE, 0, 0);
            out.extend_from_slice(&(MAX_WINDOW as u32 - DEFAULT_WINDOW).to_be_bytes());
        });
    }

    /// Takes bytes from the peer.
    pub fn receive(&mut self, input: &[u8]) {
        if self.ending == Ending::Failed {
            return;
        }
        let all = self.held.join(input);
        match self.frames(&all) {
            Ok(used) => self.held.keep(all, used),
            Err(misdeed) => self.fail(misdeed),
        }
    }

    /// Takes whole frames; gives how many bytes they were.
    fn frames(&mut self, input: &[u8]) -> Result<usize, Misdeed> {
        let mut at = self.preface(input)?;
        if self.preface_left > 0 {
            return Ok(at);
        }
        while let Some(head) = input[at..].first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::parse(head);
            if head.len > FRAME_BYTES {
                return Err(Misdeed::FrameSize);
            }
            self.refuse_by_head(head)?;
            let start = at + HEAD_BYTES;
            let Some(payload) = input.get(start..start + head.len) else {
                break;
            };
            self.frame(head, payload)?;
            at = start + head.len;
        }
        Ok(at)
    }

    fn preface(&mut self, input: &[u8]) -> Result<usize, Misdeed> {
        let expected = &PREFACE[PREFACE.len() - self.preface_left..];
        let n = expected.len().min(input.len());
        if input[..n] != expected[..n] {
            return Err(Misdeed::BadPreface);
        }
        self.preface_left -= n;
        Ok(n)
    }

    /// Takes the end of the peer's bytes.
    pub fn receive_eof(&mut self) {
        if !self.eof {
            self.eof = true;
            self.events.push_back(Event::Eof);
        }
    }

    /// Whether more bytes can be taken.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.eof && self.ending != Ending::Failed && self.out.len() < OUT_BYTES
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Moves the bytes to send to the end of `out`.
    pub fn transmit(&mut self, out: &mut Gather) {
        out.append(&mut self.out);
    }

    /// Exchanges the heads whose memory is used for requests with `spares`, so that connections can share them.
    #[inline]
    #[allow(clippy::vec_box, reason = "heads move as pointers")]
    pub fn swap_spares(&mut self, spares: &mut Vec<Box<RequestHead>>) {
        std::mem::swap(&mut self.spares, spares);
    }

    /// Whether the connection has ended: it was told to, and no response is under way.
    #[must_use]
    pub fn is_over(&mut self) -> bool {
        match self.ending {
            Ending::Open | Ending::Announced => false,
            Ending::After(_) => {
                let mut running = false;
                self.streams
                    .each(|_, stream| running |= stream.is_running());
                !running
            }
            Ending::Failed => true,
        }
    }

    /// Whether the last stream has been told.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        !matches!(self.ending, Ending::Open | Ending::Announced)
    }

    /// Time has passed: what a client did is forgiven by and by.
    pub fn seconds_passed(&mut self, seconds: u32) {
        self.budget.earn(seconds.saturating_mul(budget::SECOND));
    }

    /// Bytes of a response that were sent so far, frame heads included.
    pub fn sent_bytes(&mut self, id: u32) -> u64 {
        self.streams
            .get(id)
            .map_or(0, |stream| stream.out.sent_bytes)
    }

    /// The stream whose header block has begun to come and is not whole.
    #[must_use]
    pub fn awaited_block(&self) -> Option<u32> {
        match &self.block {
            Some(block) => Some(block.stream),
            None => self.held_headers(),
        }
    }

    /// The stream of a HEADERS frame of which a part is here.
    pub(super) fn held_headers(&self) -> Option<u32> {
        if self.preface_left > 0 {
            return None;
        }
        let head = FrameHead::parse(self.held.bytes().first_chunk()?);
        (head.kind == frame::HEADERS).then_some(head.stream)
    }

    /// Announces the end: requests that are under way are served, the last of them is told when the peer has heard (RFC
    /// 9113 section 6.8).
    pub fn drain(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Announced;
            self.put_goaway(frame::MAX_STREAM, error::NO_ERROR);
            self.out.push_with(|out| {
                put_head(out, 8, frame::PING, 0, 0);
                out.extend_from_slice(&DRAIN_PING);
            });
        }
    }

    /// Ends the connection: no request after the last one that has come whole is served. One of which a part is here is
    /// not promised: the client may ask for it elsewhere.
    pub fn end(&mut self) {
        self.end_after(self.last_request);
    }

    /// Ends the connection: no stream after this one is served, even where its request is here.
    pub fn end_after(&mut self, last: u32) {
        if !matches!(self.ending, Ending::Open | Ending::Announced) {
            return;
        }
        self.ending = Ending::After(last);
        // The number is one of the client's; what was promised is kept.
        let is_later = |id: u32| id > last && !id.is_multiple_of(2);
        let later: Vec<u32> = self.streams.ids().filter(|id| is_later(*id)).collect();
        for id in later {
            self.streams.remove(id);
        }
        self.events
            .retain(|event| event.stream().is_none_or(|id| !is_later(id)));
        self.put_goaway(last, error::NO_ERROR);
    }

    /// Ends the connection because of a misdeed.
    fn fail(&mut self, misdeed: Misdeed) {
        // What was told before does not grow (RFC 9113 section 6.8).
        let last = match self.ending {
            Ending::After(last) => last,
            _ => self.last_stream,
        };
        self.ending = Ending::Failed;
        self.held.clear();
        self.block = None;
        let ids: Vec<u32> = self.streams.ids().collect();
        for id in ids {
            self.lose(id);
        }
        self.sender.clear();
        self.put_goaway(last, misdeed.code());
        self.events.push_back(Event::Failed(misdeed));
    }

    fn put_goaway(&mut self, last: u32, code: u32) {
        self.out.push_with(|out| {
            put_head(out, 8, frame::GOAWAY, 0, 0);
            out.extend_from_slice(&last.to_be_bytes());
            out.extend_from_slice(&code.to_be_bytes());
        });
    }

    /// Forgets a stream; tells so where a response was still to be sent on it.
    pub(super) fn lose(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let (running, sent_bytes) = (stream.is_running(), stream.out.sent_bytes);
        self.streams.remove(id);
        if running {
            self.events.push_back(Event::Reset {
                stream: id,
                sent_bytes,
            });
        }
    }

    /// Resets a stream, if it is open, and forgets it.
    pub fn reset(&mut self, id: u32, code: u32) {
        if !self.streams.remove(id) {
            return;
        }
        self.put_reset(id, code);
    }

    pub(super) fn put_reset(&mut self, id: u32, code: u32) {
        if self.reset_lately.len() == RESET_REMEMBERED {
            self.reset_lately.pop_front();
        }
        self.reset_lately.push_back(id);
        self.out.push_with(|out| {
            put_head(out, 4, frame::RST_STREAM, 0, id);
            out.extend_from_slice(&code.to_be_bytes());
        });
    }

    pub(super) fn put_window_update(&mut self, id: u32, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(0);
        self.out.push_with(|out| {
            put_head(out, 4, frame::WINDOW_UPDATE, 0, id);
            out.extend_from_slice(&bytes.to_be_bytes());
        });
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&mut self) {
        assert!(
            self.held.bytes().len() < HEAD_BYTES + FRAME_BYTES,
            "a whole frame is held back"
        );
        assert!(self.reset_lately.len() <= RESET_REMEMBERED);
        assert!(self.early_priorities.len() <= super::control::EARLY_PRIORITIES);
        let most = self.settings.max_concurrent_streams as usize;
        let pushed = self.pushed_streams();
        let most_pushed = self.settings.max_concurrent_pushes as usize;
        assert!(
            self.streams.len() - pushed <= most,
            "more streams than allowed"
        );
        assert!(pushed <= most_pushed, "more pushes than allowed");
        let last_push = self.pushes.last;
        let Self {
            streams,
            sender,
            last_stream,
            ..
        } = self;
        streams.each(|id, stream| {
            let last = match id % 2 {
                0 => last_push,
                _ => *last_stream,
            };
            assert!(id <= last, "a stream that nobody opened");
            stream.check_invariants();
            sender.check_invariants(id, &stream.out);
        });
    }
}

/// What every connection of a client begins with (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Payload of the PING that goes with the first GOAWAY.
pub(super) const DRAIN_PING: [u8; 8] = *b"draining";
/// Streams that were reset and are remembered.
const RESET_REMEMBERED: usize = 256;
/// Bytes that wait to be transmitted before nothing more is read.
const OUT_BYTES: u64 = 64 << 10;
