//! SPDY/3.1 on one connection, client role.
//!
//! Its upper edge is that of HTTP/2's: fields may include `:authority`, which is `:host` here, and `:version` is
//! added. Header blocks share one compression context and end with a sync flush, so that each may refer to earlier
//! ones. Parts shared with HTTP/2's client are in `mux::client`.
//!
//! Of the settings, `headers_level` is zlib's level for header blocks of requests, `preread_bytes` the window of each
//! response, `header_bytes` and `max_headers` are its limits.
//!
//! Absent: pushed streams, which are reset; trailers of requests; settings for the client to persist.
//!
//! Source: draft-mbelshe-httpbis-spdy-00.

mod receive;
mod response;

use super::error::ProtocolError;
use super::frame::{self, FrameHead, FrameKind, HEAD_BYTES, SpdyFrames, put_control};
use super::pairs::Writer;
use super::settings::{DEFAULT_WINDOW, INITIAL_WINDOW_SIZE, MAX_WINDOW, Settings};
use super::zlib::{Deflater, Inflater};
use crate::client::{self, Bodies, SendError, is_sendable};
use crate::http::{FieldId, is_token};
use crate::mux::Frames;
use crate::mux::client::{Pairs, Protocol};
use receive::BLOCK_EXTRA_BYTES;

/// Event of a SPDY client.
pub type Event = client::Event<ProtocolError>;

/// One SPDY/3.1 connection in the client role.
pub type Client = crate::mux::client::Client<Spdy>;

/// State of a client that only SPDY has.
#[derive(Debug)]
pub struct Spdy {
    settings: Settings,
    inflater: Inflater,
    deflater: Deflater,
    writer: Writer,
    /// The text of a header block.
    text: Vec<u8>,
}

impl Client {
    /// A connection on which nothing has been received; our SETTINGS are ready to be transmitted.
    #[must_use]
    pub fn new(settings: Settings, bodies: Bodies) -> Self {
        let mut out = Vec::new();
        // Before the server has read our SETTINGS its window may be smaller, never larger.
        let preread_bytes = settings.window_bytes();
        put_control(&mut out, frame::SETTINGS, 0, 12);
        for number in [1, INITIAL_WINDOW_SIZE, preread_bytes] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        // The connection window is so large that only stream windows limit responses.
        let grant = MAX_WINDOW as u32 - DEFAULT_WINDOW;
        SpdyFrames::put_grant(&mut out, 0, grant);
        let abuse_budget = settings.abuse_budget;
        let protocol = Spdy {
            inflater: Inflater::default(),
            deflater: Deflater::new(settings.headers_level),
            writer: Writer::default(),
            text: Vec::new(),
            settings,
        };
        Self::begin(protocol, bodies, preread_bytes, abuse_budget, out)
    }

    /// Opens a stream with these fields, `:method`, `:scheme`, `:authority` and `:path` first, and returns its number. With
    /// `ended` the request has no body.
    ///
    /// # Errors
    /// The connection cannot take it, or it cannot be sent; nothing has been sent then.
    pub fn request<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        ended: bool,
    ) -> Result<u32, SendError> {
        self.request_at(fields, DEFAULT_PRIORITY, ended)
    }

    /// Opens a stream with a priority: 0 is the most urgent, 7 the least.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    pub fn request_at<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        priority: u8,
        ended: bool,
    ) -> Result<u32, SendError> {
        self.admit()?;
        let is_head = write(&mut self.protocol.writer, fields)?;
        let id = self.take_number();
        let start = self.out.len();
        let flags = if ended { frame::FIN } else { 0 };
        put_control(&mut self.out, frame::SYN_STREAM, flags, 0);
        self.out.extend_from_slice(&id.to_be_bytes());
        self.out
            .extend_from_slice(&[0, 0, 0, 0, priority.min(7) << 5, 0]);
        let Spdy {
            deflater, writer, ..
        } = &mut self.protocol;
        deflater.block(&writer.text, &[], &mut self.out);
        let len = (self.out.len() - start - HEAD_BYTES) as u32;
        self.out[start + 5..start + 8].copy_from_slice(&len.to_be_bytes()[1..]);
        self.open(id, ended, is_head);
        Ok(id)
    }

    /// Sends a PING, which the server must answer; a client's numbers are odd.
    pub fn ping(&mut self, number: u32) {
        put_control(&mut self.out, frame::PING, 0, 4);
        self.out.extend_from_slice(&number.to_be_bytes());
    }
}

/// Writes the text of a request's header block; returns whether the method is HEAD.
fn write<'a>(
    writer: &mut Writer,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<bool, SendError> {
    let mut is_head = false;
    let mut version = false;
    writer.begin();
    for (name, value) in fields {
        if !is_sendable(value) {
            return Err(SendError::BadField);
        }
        let name = match name {
            b":method" => {
                is_head = value == b"HEAD";
                name
            }
            b":authority" => b":host",
            b":version" => {
                version = true;
                name
            }
            [b':', ..] => name,
            _ if !is_token(name) => return Err(SendError::BadField),
            // Draft section 3.2.1; the host is among the pseudo-fields.
            _ => match FieldId::of(name) {
                FieldId::Connection
                | FieldId::Host
                | FieldId::KeepAlive
                | FieldId::TransferEncoding => continue,
                _ => name,
            },
        };
        writer.single(name, value);
    }
    if !version {
        writer.single(b":version", b"HTTP/1.1");
    }
    writer.finish();
    Ok(is_head)
}

impl Protocol for Spdy {
    type ProtocolError = ProtocolError;
    type Frames = SpdyFrames;
    type Head = FrameHead;

    fn head(client: &Client, input: &[u8]) -> Result<Option<(FrameHead, usize)>, ProtocolError> {
        let Some(head) = input.first_chunk().map(FrameHead::parse) else {
            return Ok(None);
        };
        let most = client.protocol.settings.header_bytes + BLOCK_EXTRA_BYTES;
        match head.kind {
            FrameKind::OtherVersion => Err(ProtocolError::BadVersion),
            FrameKind::Control(_) if head.len > most => Err(ProtocolError::HeaderFlood),
            _ => Ok(Some((head, head.len))),
        }
    }

    fn frame(client: &mut Client, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        client.frame(head, payload)
    }

    fn frame_bytes(&self) -> usize {
        FRAME_BYTES
    }

    /// There are none: the stream ends with an empty frame.
    fn put_trailers(&mut self, out: &mut Vec<u8>, stream: u32, _fields: &Pairs) {
        SpdyFrames::put_data(out, stream, 0, true);
    }

    fn check_invariants(client: &Client) {
        assert!(client.partial.bytes().len() < HEAD_BYTES + frame::MAX_LEN);
    }
}

/// Bytes of a DATA frame that is sent.
const FRAME_BYTES: usize = 16 << 10;
/// Neither urgent nor not.
const DEFAULT_PRIORITY: u8 = 3;
