//! The connection: the parts specific to HTTP/2. Frames are handled in `receive`, heads of responses are encoded in
//! `encode`.

use std::collections::VecDeque;
use std::rc::Rc;

use super::error::{self, ProtocolError};
use super::frame::{self, FrameHead, HEAD_BYTES, Http2Frames, put_head};
use super::headers::Block;
use super::push::Pushes;
use super::receive::rest_is_allowed;
use super::request::Note;
use super::settings::{self, DEFAULT_WINDOW, FRAME_BYTES, Settings};
use crate::hpack::{DEFAULT_TABLE_BYTES, Decoder, Encoder};
use crate::http::ResponseHead;
pub(super) use crate::mux::server::Ending;
use crate::mux::server::{self, Protocol};
use crate::mux::{Frames, MAX_WINDOW, Priority};

/// One HTTP/2 connection in the server role.
pub type Conn = server::Conn<Http2Server>;

/// State of a server that only HTTP/2 has.
#[derive(Debug)]
pub struct Http2Server {
    pub(super) settings: Rc<Settings>,
    /// Outstanding bytes of the preface.
    preface_left: usize,
    /// The peer knows our SETTINGS.
    pub(super) acknowledged: bool,
    /// Longest frame that the peer takes.
    pub(super) frame_bytes: usize,
    pub(super) decoder: Decoder<Option<Note>>,
    pub(super) encoder: Encoder,
    /// The client has sent priorities: without them all streams take turns.
    pub(super) prioritised: bool,
    /// Priorities of streams that are not open yet.
    pub(super) early_priorities: Vec<(u32, Priority)>,
    /// The frame that ended the connection, for the log.
    pub(super) faulty: Option<FrameHead>,
    pub(super) block: Option<Block>,
    /// Received part of that header block.
    pub(super) block_bytes: Vec<u8>,
    /// Memory for header blocks of responses.
    pub(super) encoded: Vec<u8>,
    pub(super) pushes: Pushes,
    /// Highest number of a stream with a completely received request.
    pub(super) last_request: u32,
    /// Streams that we reset recently; frames still in flight on them are dropped.
    pub(super) reset_lately: VecDeque<u32>,
}

impl Conn {
    /// Approximate memory of the connection, bytes: buffers, streams, tables of header fields, queued output; not
    /// bodies.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let own = &self.protocol;
        self.common_memory_bytes()
            + own.decoder.memory_bytes()
            + own.encoder.memory_bytes()
            + own.block_bytes.capacity()
            + own.encoded.capacity()
    }

    /// A connection on which nothing has been received; our SETTINGS are ready to be transmitted.
    #[must_use]
    pub fn new(settings: Rc<Settings>) -> Self {
        let abuse_budget = settings.abuse_budget;
        let protocol = Http2Server {
            preface_left: PREFACE.len(),
            acknowledged: false,
            frame_bytes: FRAME_BYTES,
            decoder: Decoder::new(DEFAULT_TABLE_BYTES),
            encoder: Encoder::new(settings.header_table_bytes, true),
            prioritised: false,
            early_priorities: Vec::new(),
            faulty: None,
            block: None,
            block_bytes: Vec::new(),
            encoded: Vec::new(),
            pushes: Pushes::default(),
            last_request: 0,
            reset_lately: VecDeque::new(),
            settings,
        };
        let mut conn = Self::begin(protocol, abuse_budget);
        conn.send_preface();
        conn
    }

    /// Our SETTINGS, and a connection window so large that only stream windows limit request bodies.
    fn send_preface(&mut self) {
        let settings = &self.protocol.settings;
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
            Http2Frames::put_grant(out, 0, MAX_WINDOW as u32 - DEFAULT_WINDOW);
        });
    }

    fn preface(&mut self, input: &[u8]) -> Result<usize, ProtocolError> {
        let expected = &PREFACE[PREFACE.len() - self.protocol.preface_left..];
        let n = expected.len().min(input.len());
        if input[..n] != expected[..n] {
            return Err(ProtocolError::BadPreface);
        }
        self.protocol.preface_left -= n;
        Ok(n)
    }

    /// The stream of a header block that has begun and is incomplete.
    #[must_use]
    pub fn awaited_block(&self) -> Option<u32> {
        match &self.protocol.block {
            Some(block) => Some(block.stream),
            None => self.held_headers(),
        }
    }

    /// The stream of a partly received HEADERS frame.
    pub(super) fn held_headers(&self) -> Option<u32> {
        if self.protocol.preface_left > 0 {
            return None;
        }
        let head = FrameHead::parse(self.partial.bytes().first_chunk()?);
        (head.kind == frame::HEADERS).then_some(head.stream)
    }

    /// Announces the end: requests in progress are served; the last of them is named when the peer has acknowledged
    /// it (RFC 9113 section 6.8).
    pub fn drain(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Announced;
            self.out.push_with(|out| {
                Http2Frames::put_goaway(out, frame::MAX_STREAM, None);
                put_head(out, 8, frame::PING, 0, 0);
                out.extend_from_slice(&DRAIN_PING);
            });
        }
    }

    /// Ends the connection: no request after the last completely received one is served. A partly received one is
    /// not promised, since the client may send it elsewhere.
    pub fn end(&mut self) {
        self.end_after(self.protocol.last_request);
    }
}

impl Protocol for Http2Server {
    type ProtocolError = ProtocolError;
    type Frames = Http2Frames;

    fn frames(conn: &mut Conn, input: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = conn.preface(input)?;
        if conn.protocol.preface_left > 0 {
            return Ok(at);
        }
        while let Some(head) = input[at..].first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::parse(head);
            if head.len > FRAME_BYTES {
                return Err(ProtocolError::FrameSize);
            }
            conn.refuse_by_head(head)?;
            let start = at + HEAD_BYTES;
            let Some(payload) = input.get(start..start + head.len) else {
                break;
            };
            conn.frame(head, payload)?;
            at = start + head.len;
        }
        Ok(at)
    }

    fn forget_part(&mut self) {
        self.block = None;
    }

    fn is_idle(conn: &Conn, id: u32) -> bool {
        if id.is_multiple_of(2) {
            id > conn.protocol.pushes.last
        } else {
            id > conn.last_stream
        }
    }

    /// RFC 9113 section 8.1: the rest of the request is not needed.
    fn outlived(conn: &mut Conn, id: u32) {
        let stream = conn.streams.get(id);
        if stream.is_some_and(|stream| !rest_is_allowed(&stream.incoming)) {
            conn.reset(id, error::NO_ERROR);
        }
    }

    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    #[inline(always)]
    fn put_response(conn: &mut Conn, stream: u32, head: &ResponseHead, ended: bool) -> u64 {
        let block = conn.encode_response(head.status, head);
        conn.put_block(stream, block, ended)
    }

    fn put_trailers(conn: &mut Conn, stream: u32, trailers: &ResponseHead) -> u64 {
        let block = conn.encode(None, Some(trailers));
        conn.put_block(stream, block, true)
    }

    fn put_reset(conn: &mut Conn, stream: u32, code: u32) {
        let reset_lately = &mut conn.protocol.reset_lately;
        if reset_lately.len() == RESET_REMEMBERED {
            reset_lately.pop_front();
        }
        reset_lately.push_back(stream);
        conn.out
            .push_with(|out| Http2Frames::put_reset(out, stream, code));
    }

    fn check_invariants(conn: &Conn) {
        assert!(
            conn.partial.bytes().len() < HEAD_BYTES + FRAME_BYTES,
            "a whole frame is held back"
        );
        let own = &conn.protocol;
        assert!(own.reset_lately.len() <= RESET_REMEMBERED);
        assert!(own.early_priorities.len() <= super::control::EARLY_PRIORITIES);
        let most = own.settings.max_concurrent_streams as usize;
        let pushed = conn.pushed_streams();
        let most_pushed = own.settings.max_concurrent_pushes as usize;
        assert!(
            conn.streams.len() - pushed <= most,
            "more streams than allowed"
        );
        assert!(pushed <= most_pushed, "more pushes than allowed");
    }
}

/// Connection preface of a client (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Payload of the PING that follows the first GOAWAY.
pub(super) const DRAIN_PING: [u8; 8] = *b"draining";
/// Most recently reset streams that are remembered.
const RESET_REMEMBERED: usize = 256;
