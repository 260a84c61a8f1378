//! HTTP/2 on one connection, client role.
//!
//! Frames, header compression, windows and the table of streams are shared with the server role; the parts shared
//! with SPDY's client are in `mux::client`. Our SETTINGS refuse pushes; a push nevertheless breaks the connection.
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

use super::conn::PREFACE;
use super::error::ProtocolError;
use super::frame::{self, FrameHead, HEAD_BYTES, Http2Frames, put_head};
use super::settings::{self, DEFAULT_WINDOW, FRAME_BYTES, Settings};
use crate::client::{self, Bodies};
use crate::hpack::{DEFAULT_TABLE_BYTES, Decoder, Encoder, Indexing};
use crate::mux::client::{Pairs, Protocol};
use crate::mux::{Frames, MAX_WINDOW};
use receive::Block;
use response::Note;

/// Event of an HTTP/2 client.
pub type Event = client::Event<ProtocolError>;

/// One HTTP/2 connection in the client role.
pub type Client = crate::mux::client::Client<Http2>;

/// State of a client that only HTTP/2 has.
#[derive(Debug)]
pub struct Http2 {
    settings: Settings,
    /// SETTINGS of the server have come.
    settled: bool,
    /// The server knows our SETTINGS.
    acknowledged: bool,
    /// Longest frame that the server takes.
    frame_bytes: usize,
    decoder: Decoder<Option<Note>>,
    encoder: Encoder,
    block: Option<Block>,
    /// Received part of that header block.
    block_bytes: Vec<u8>,
    /// Memory for header blocks of requests.
    encoded: Vec<u8>,
}

impl Client {
    /// A connection on which nothing has been received; preface and SETTINGS are ready to be transmitted.
    #[must_use]
    pub fn new(settings: Settings, bodies: Bodies) -> Self {
        let out = greeting(&settings);
        let (preread_bytes, abuse_budget) = (settings.preread_bytes, settings.abuse_budget);
        let protocol = Http2 {
            settled: false,
            acknowledged: false,
            frame_bytes: FRAME_BYTES,
            decoder: Decoder::new(DEFAULT_TABLE_BYTES),
            encoder: Encoder::new(settings.header_table_bytes, true),
            block: None,
            block_bytes: Vec::new(),
            encoded: Vec::new(),
            settings,
        };
        Self::begin(protocol, bodies, preread_bytes, abuse_budget, out)
    }

    /// Whether the server's SETTINGS have arrived, so that [`Self::room`] is the server's limit.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.protocol.settled
    }

    /// Announces to the server that no request follows; exchanges in progress continue.
    pub fn end(&mut self) {
        if self.close() {
            Http2Frames::put_goaway(&mut self.out, 0, None);
        }
    }

    /// Sends a PING, which the server must answer.
    pub fn ping(&mut self, number: u64) {
        put_head(&mut self.out, 8, frame::PING, 0, 0);
        self.out.extend_from_slice(&number.to_be_bytes());
    }
}

/// The preface, our SETTINGS, and a connection window so large that only stream windows limit responses.
fn greeting(settings: &Settings) -> Vec<u8> {
    let pairs = [
        (
            settings::HEADER_TABLE_SIZE,
            settings.header_table_bytes as u32,
        ),
        (settings::ENABLE_PUSH, 0),
        (settings::INITIAL_WINDOW_SIZE, settings.preread_bytes),
        (settings::MAX_HEADER_LIST_SIZE, settings.header_bytes as u32),
    ];
    let mut out = PREFACE.to_vec();
    put_head(&mut out, pairs.len() * 6, frame::SETTINGS, 0, 0);
    for (id, value) in pairs {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    Http2Frames::put_grant(&mut out, 0, MAX_WINDOW as u32 - DEFAULT_WINDOW);
    out
}

impl Protocol for Http2 {
    type ProtocolError = ProtocolError;
    type Frames = Http2Frames;
    type Head = FrameHead;

    fn head(client: &Client, input: &[u8]) -> Result<Option<(FrameHead, usize)>, ProtocolError> {
        let Some(head) = input.first_chunk().map(FrameHead::parse) else {
            return Ok(None);
        };
        // A first frame that is not SETTINGS is no HTTP/2 at all, and is reported so (RFC 9113 section 3.4).
        if !client.protocol.settled && (head.kind != frame::SETTINGS || head.has(frame::ACK)) {
            return Err(ProtocolError::BadPreface);
        }
        if head.len > FRAME_BYTES {
            return Err(ProtocolError::FrameSize);
        }
        if client.protocol.block.is_some() && head.kind != frame::CONTINUATION {
            return Err(ProtocolError::BrokenHeaderBlock);
        }
        Ok(Some((head, head.len)))
    }

    fn frame(client: &mut Client, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        client.frame(head, payload)
    }

    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    fn put_trailers(&mut self, out: &mut Vec<u8>, stream: u32, fields: &Pairs) {
        self.encoded.clear();
        self.encoder.begin(&mut self.encoded);
        for (name, value) in fields {
            self.encoder
                .field(name, value, Indexing::No, &mut self.encoded);
        }
        frame::put_block(out, &self.encoded, self.frame_bytes, true, stream);
    }

    fn check_invariants(client: &Client) {
        assert!(
            client.partial.bytes().len() < HEAD_BYTES + FRAME_BYTES,
            "a whole frame is held back"
        );
        client.protocol.decoder.check_invariants();
        client.protocol.encoder.check_invariants();
    }
}
