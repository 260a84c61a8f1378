//! The connection: its state, how bytes come in, how it ends. Frames are taken in `receive`, `syn` and `control`, responses
//! sent in `send`.

use std::collections::VecDeque;
use std::rc::Rc;

use super::budget::{self, Budget};
use super::error::{self, Misdeed};
use super::event::Event;
use super::frame::{self, FrameHead, HEAD_BYTES, Kind, put_control, put_pair};
use super::known::Known;
use super::pairs::Writer;
use super::settings::{self, DEFAULT_WINDOW, MAX_WINDOW, Settings};
use super::stream::Stream;
use super::zlib::{Deflater, Inflater};
use crate::held::Held;
use crate::http::{Gather, RequestHead};
use crate::mux::{Allowance, Repeated, Sender, StreamTable, Window};

/// One SPDY/3.1 connection in the server role.
#[derive(Debug)]
pub struct Conn {
    pub(super) settings: Rc<Settings>,
    /// A part of a frame.
    held: Held,
    part: Part,
    /// SETTINGS of the peer have come: the first are free.
    pub(super) settled: bool,
    /// The window of a new stream, as the peer's SETTINGS say.
    pub(super) peer_window_bytes: u32,
    pub(super) inflater: Inflater,
    pub(super) deflater: Deflater,
    pub(super) streams: StreamTable<Stream>,
    pub(super) sender: Sender,
    pub(super) allowance: Allowance,
    /// The header block that is under way is to be dropped.
    pub(super) block_given_up: bool,
    /// Memory for the text of header blocks of requests.
    pub(super) inflated: Vec<u8>,
    /// What was found out about the last request's block.
    pub(super) known: Known,
    /// Memory for the text of header blocks of responses.
    pub(super) writer: Writer,
    /// The response head that was encoded last, and its text.
    pub(super) repeated: Repeated,
    /// Highest number of a stream of the client.
    pub(super) last_stream: u32,
    pub(super) events: VecDeque<Event>,
    pub(super) out: Gather,
    pub(super) ending: Ending,
    pub(super) budget: Budget,
    #[allow(clippy::vec_box, reason = "heads move as pointers")]
    pub(super) spares: Vec<Box<RequestHead>>,
    eof: bool,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The head of a frame, and all of it if it is a control frame.
    Frame,
    /// Data of a stream, of which so much is still to come.
    Data { stream: u32, left: usize, fin: bool },
    /// So much of a frame that is of no interest.
    Skipped(usize),
}

/// How far the connection's end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Open,
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
            part: Part::Frame,
            settled: false,
            peer_window_bytes: DEFAULT_WINDOW,
            inflater: Inflater::default(),
            deflater: Deflater::new(settings.headers_level),
            streams: StreamTable::default(),
            sender: Sender::new(Window::new(DEFAULT_WINDOW)),
            allowance: Allowance::new(),
            block_given_up: false,
            inflated: Vec::new(),
            known: Known::default(),
            writer: Writer::default(),
            repeated: Repeated::default(),
            last_stream: 0,
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
        let entries = [
            (
                settings::MAX_CONCURRENT_STREAMS,
                self.settings.max_concurrent_streams,
            ),
            (settings::INITIAL_WINDOW_SIZE, self.settings.window_bytes()),
        ];
        self.out.push_with(|out| {
            let len = 4 + 8 * entries.len();
            put_control(out, frame::SETTINGS, frame::CLEAR_SETTINGS, len);
            out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
            for (id, value) in entries {
                out.extend_from_slice(&id.to_be_bytes());
                out.extend_from_slice(&value.to_be_bytes());
            }
        });
        self.put_window_update(0, MAX_WINDOW - u64::from(DEFAULT_WINDOW));
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

    /// Takes whole control frames, and data in pieces that do not depend on how it comes; gives how many bytes they were.
    fn frames(&mut self, input: &[u8]) -> Result<usize, Misdeed> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.part {
                Part::Skipped(left) => {
                    let len = left.min(rest.len());
                    at += len;
                    if len < left {
                        self.part = Part::Skipped(left - len);
                        return Ok(at);
                    }
                    self.part = Part::Frame;
                }
                Part::Data { stream, left, fin } => {
                    let len = left.min(PIECE_BYTES);
                    let Some(piece) = rest.get(..len) else {
                        return Ok(at);
                    };
                    at += len;
                    let left = left - len;
                    self.part = match left {
                        0 => Part::Frame,
                        _ => Part::Data { stream, left, fin },
                    };
                    self.data(stream, piece, fin && left == 0)?;
                }
                Part::Frame => {
                    let Some(head) = rest.first_chunk::<HEAD_BYTES>() else {
                        return Ok(at);
                    };
                    let head = FrameHead::parse(head);
                    if self.is_taken_whole(head)? {
                        let Some(payload) = rest.get(HEAD_BYTES..HEAD_BYTES + head.len) else {
                            return Ok(at);
                        };
                        self.control(head, payload)?;
                        at += HEAD_BYTES + head.len;
                    } else {
                        self.part = self.begin_part(head)?;
                        at += HEAD_BYTES;
                    }
                }
            }
        }
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

    /// Whether the connection holds memory that [`Self::rest`] gives back.
    #[must_use]
    pub fn could_rest(&self) -> bool {
        self.inflater.is_awake() || self.deflater.is_awake() || !self.known.is_empty()
    }

    /// Gives back what compression needs, which is large and made anew by the next header block, and what is remembered of
    /// the last heads. For connections on which nothing has happened for a while.
    pub fn rest(&mut self) {
        self.inflater.rest();
        self.deflater.rest();
        self.known = Known::default();
        self.repeated = Repeated::default();
    }

    /// Exchanges the heads whose memory is used for requests with `spares`, so that connections can share them.
    #[allow(clippy::vec_box, reason = "heads move as pointers")]
    pub fn swap_spares(&mut self, spares: &mut Vec<Box<RequestHead>>) {
        std::mem::swap(&mut self.spares, spares);
    }

    /// Whether the connection has ended: it was told to, and no response is under way.
    #[must_use]
    pub fn is_over(&mut self) -> bool {
        match self.ending {
            Ending::Open => false,
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
        self.ending != Ending::Open
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

    /// Whether a frame has begun to come and is not whole.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        !self.held.bytes().is_empty() || self.part != Part::Frame
    }

    /// The stream whose header block has begun to come and is not whole.
    #[must_use]
    pub fn awaited_block(&self) -> Option<u32> {
        if self.part != Part::Frame {
            return None;
        }
        let (head, rest) = self.held.bytes().split_first_chunk::<HEAD_BYTES>()?;
        let is_syn = FrameHead::parse(head).kind == Kind::Control(frame::SYN_STREAM);
        let id = frame::one(rest.get(..4)?)?;
        is_syn.then_some(id & frame::MAX_STREAM)
    }

    /// Ends the connection: requests that are under way are served. SPDY has no way to find out which others are on their
    /// way; a client sends them again elsewhere.
    pub fn drain(&mut self) {
        self.end();
    }

    /// Ends the connection: no stream after the last one is served.
    pub fn end(&mut self) {
        self.end_after(self.last_stream);
    }

    /// Ends the connection: no stream after this one is served, even where its request is here.
    pub fn end_after(&mut self, last: u32) {
        if self.ending != Ending::Open {
            return;
        }
        self.ending = Ending::After(last);
        let later: Vec<u32> = self.streams.ids().filter(|id| *id > last).collect();
        for id in later {
            self.streams.remove(id);
        }
        self.events
            .retain(|event| event.stream().is_none_or(|id| id <= last));
        self.put_goaway(last, error::OK);
    }

    /// Ends the connection because of a misdeed.
    fn fail(&mut self, misdeed: Misdeed) {
        // What was told before does not grow.
        let last = match self.ending {
            Ending::After(last) => last,
            _ => self.last_stream,
        };
        self.ending = Ending::Failed;
        self.held.clear();
        self.part = Part::Frame;
        let ids: Vec<u32> = self.streams.ids().collect();
        for id in ids {
            self.lose(id);
        }
        self.sender.clear();
        self.put_goaway(last, error::PROTOCOL_ERROR);
        self.events.push_back(Event::Failed(misdeed));
    }

    fn put_goaway(&mut self, last: u32, code: u32) {
        self.out
            .push_with(|out| put_pair(out, frame::GOAWAY, last, code));
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
        if self.streams.remove(id) {
            self.put_reset(id, code);
        }
    }

    pub(super) fn put_reset(&mut self, id: u32, code: u32) {
        self.out
            .push_with(|out| put_pair(out, frame::RST_STREAM, id, code));
    }

    pub(super) fn put_window_update(&mut self, id: u32, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(0);
        self.out
            .push_with(|out| put_pair(out, frame::WINDOW_UPDATE, id, bytes));
    }

    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&mut self) {
        let longest = self.most_block_bytes().max(PIECE_BYTES) + HEAD_BYTES;
        assert!(
            self.held.bytes().len() < longest,
            "a whole frame is held back"
        );
        let most = self.settings.max_concurrent_streams as usize;
        assert!(self.streams.len() <= most, "more streams than allowed");
        let Self {
            streams,
            sender,
            last_stream,
            ..
        } = self;
        streams.each(|id, stream| {
            assert!(
                id <= *last_stream && id % 2 == 1,
                "a stream that nobody opened"
            );
            stream.check_invariants();
            sender.check_invariants(id, &stream.out);
        });
    }
}

/// Bytes of data that are taken at a time.
pub(super) const PIECE_BYTES: usize = 16 << 10;
/// Bytes that wait to be transmitted before nothing more is read.
const OUT_BYTES: u64 = 64 << 10;
