//! The connection: the parts specific to SPDY. Frames are handled in `receive`, `syn` and `control`, heads of
//! responses are encoded in `encode`.

use std::rc::Rc;

use super::error::ProtocolError;
use super::frame::{self, FrameHead, FrameKind, HEAD_BYTES, SpdyFrames, put_control};
use super::known::Known;
use super::pairs::Writer;
use super::settings::{self, DEFAULT_WINDOW, MAX_WINDOW, Settings};
use super::zlib::{Deflater, Inflater};
use crate::http::ResponseHead;
pub(super) use crate::mux::server::Ending;
use crate::mux::server::{self, Protocol};
use crate::mux::{Frames, HeaderCache};

/// One SPDY/3.1 connection in the server role.
pub type Conn = server::Conn<SpdyServer>;

/// State of a server that only SPDY has.
#[derive(Debug)]
pub struct SpdyServer {
    pub(super) settings: Rc<Settings>,
    part: Part,
    pub(super) inflater: Inflater,
    pub(super) deflater: Deflater,
    /// The header block in progress is to be dropped.
    pub(super) block_given_up: bool,
    /// Memory for the text of header blocks of requests.
    pub(super) inflated: Vec<u8>,
    /// Roles of the pairs in the last request's block.
    pub(super) known: Known,
    /// Memory for the text of header blocks of responses.
    pub(super) writer: Writer,
}

/// Part of a frame that the next bytes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The head of a frame, or a complete control frame.
    Frame,
    /// Data of a stream; `left` bytes of it are outstanding.
    Data { stream: u32, left: usize, fin: bool },
    /// Remaining bytes of a frame that is skipped.
    Skipped(usize),
}

impl Conn {
    /// Approximate memory of the connection, bytes: itself, buffers, streams, state of compression, queued output;
    /// not bodies.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let own = &self.protocol;
        size_of::<Self>()
            + self.common_memory_bytes()
            + own.inflater.memory_bytes()
            + own.deflater.memory_bytes()
            + own.inflated.capacity()
            + own.writer.text.capacity()
    }

    /// A connection on which nothing has been received; our SETTINGS are ready to be transmitted.
    #[must_use]
    pub fn new(settings: Rc<Settings>) -> Self {
        let abuse_budget = settings.abuse_budget;
        let protocol = SpdyServer {
            part: Part::Frame,
            inflater: Inflater::default(),
            deflater: Deflater::new(settings.headers_level),
            block_given_up: false,
            inflated: Vec::new(),
            known: Known::default(),
            writer: Writer::default(),
            settings,
        };
        let mut conn = Self::begin(protocol, abuse_budget);
        conn.send_preface();
        conn
    }

    /// Our SETTINGS, and a connection window so large that only stream windows limit request bodies.
    fn send_preface(&mut self) {
        let entries = [
            (
                settings::MAX_CONCURRENT_STREAMS,
                self.protocol.settings.max_concurrent_streams,
            ),
            (
                settings::INITIAL_WINDOW_SIZE,
                self.protocol.settings.window_bytes(),
            ),
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
        self.put_grant(0, MAX_WINDOW - u64::from(DEFAULT_WINDOW));
    }

    /// Whether the connection holds memory that [`Self::shrink`] releases.
    #[must_use]
    pub fn can_shrink(&self) -> bool {
        self.protocol.inflater.holds_spare_memory()
            || self.protocol.deflater.holds_spare_memory()
            || !self.protocol.known.is_empty()
    }

    /// Releases the state of compression, which is large and rebuilt by the next header block, and the cache of the
    /// last heads. For connections idle for a while.
    pub fn shrink(&mut self) {
        self.protocol.inflater.shrink();
        self.protocol.deflater.shrink();
        self.protocol.known = Known::default();
        self.header_cache = HeaderCache::default();
    }

    /// Whether a frame has begun and is incomplete.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        !self.partial.bytes().is_empty() || self.protocol.part != Part::Frame
    }

    /// The stream of a header block that has begun and is incomplete.
    #[must_use]
    pub fn awaited_block(&self) -> Option<u32> {
        if self.protocol.part != Part::Frame {
            return None;
        }
        let (head, rest) = self.partial.bytes().split_first_chunk::<HEAD_BYTES>()?;
        let is_syn = FrameHead::parse(head).kind == FrameKind::Control(frame::SYN_STREAM);
        let id = frame::one(rest.get(..4)?)?;
        is_syn.then_some(id & frame::MAX_STREAM)
    }

    /// Ends the connection: requests in progress are served. SPDY cannot find out about later requests in flight; a
    /// client sends them again elsewhere.
    pub fn drain(&mut self) {
        self.end();
    }

    /// Ends the connection: no stream after the last one is served.
    pub fn end(&mut self) {
        self.end_after(self.last_stream);
    }
}

impl Protocol for SpdyServer {
    type ProtocolError = ProtocolError;
    type Frames = SpdyFrames;

    /// Handles complete control frames, and data in pieces that do not depend on how the input is cut; returns the
    /// number of bytes.
    fn frames(conn: &mut Conn, input: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match conn.protocol.part {
                Part::Skipped(left) => {
                    let len = left.min(rest.len());
                    at += len;
                    if len < left {
                        conn.protocol.part = Part::Skipped(left - len);
                        return Ok(at);
                    }
                    conn.protocol.part = Part::Frame;
                }
                Part::Data { stream, left, fin } => {
                    let len = left.min(PIECE_BYTES);
                    let Some(piece) = rest.get(..len) else {
                        return Ok(at);
                    };
                    at += len;
                    let left = left - len;
                    conn.protocol.part = match left {
                        0 => Part::Frame,
                        _ => Part::Data { stream, left, fin },
                    };
                    conn.data(stream, piece, fin && left == 0)?;
                }
                Part::Frame => {
                    let Some(head) = rest.first_chunk::<HEAD_BYTES>() else {
                        return Ok(at);
                    };
                    let head = FrameHead::parse(head);
                    if conn.is_taken_whole(head)? {
                        let Some(payload) = rest.get(HEAD_BYTES..HEAD_BYTES + head.len) else {
                            return Ok(at);
                        };
                        conn.control(head, payload)?;
                        at += HEAD_BYTES + head.len;
                    } else {
                        conn.protocol.part = conn.begin_part(head)?;
                        at += HEAD_BYTES;
                    }
                }
            }
        }
    }

    fn forget_part(&mut self) {
        self.part = Part::Frame;
    }

    fn is_idle(conn: &Conn, id: u32) -> bool {
        id > conn.last_stream || id.is_multiple_of(2)
    }

    fn frame_bytes(&self) -> usize {
        frame::MAX_LEN
    }

    fn put_response(conn: &mut Conn, stream: u32, head: &ResponseHead, ended: bool) -> u64 {
        conn.write_head(head);
        conn.put_block(stream, frame::SYN_REPLY, ended)
    }

    /// They leave in HEADERS.
    fn put_trailers(conn: &mut Conn, stream: u32, trailers: &ResponseHead) -> u64 {
        let writer = &mut conn.protocol.writer;
        writer.begin();
        for field in &trailers.fields {
            writer.single(trailers.bytes(field.name), trailers.bytes(field.value));
        }
        writer.finish();
        conn.put_block(stream, frame::HEADERS, true)
    }

    fn put_reset(conn: &mut Conn, stream: u32, code: u32) {
        conn.out
            .push_with(|out| SpdyFrames::put_reset(out, stream, code));
    }

    fn check_invariants(conn: &Conn) {
        let longest = conn.most_block_bytes().max(PIECE_BYTES) + HEAD_BYTES;
        assert!(
            conn.partial.bytes().len() < longest,
            "a whole frame is held back"
        );
        let most = conn.protocol.settings.max_concurrent_streams as usize;
        assert!(conn.streams.len() <= most, "more streams than allowed");
    }
}

/// Bytes of data that are taken at a time.
pub(super) const PIECE_BYTES: usize = 16 << 10;
