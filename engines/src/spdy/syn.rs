//! SYN_STREAM: requests, and header blocks inflated only for their changes of the context.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.3.2, 2.6.1, 2.6.10.

use super::budget;
use super::conn::{Conn, Ending};
use super::error::{self, ProtocolError};
use super::frame::{self, FrameHead, two};
use super::pairs;
use super::request::{Builder, Built, Note};
use crate::http::{RequestHead, Version};
use crate::mux::Priority;

fn unfinished() -> Box<RequestHead> {
    Box::new(RequestHead {
        version: Version::Spdy31,
        ..RequestHead::default()
    })
}

/// Result of a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Request,
    /// It is dropped; the stream is reset with this code, if any.
    Dropped(Option<u32>),
}

impl Conn {
    /// Most bytes of a SYN_STREAM.
    pub(super) fn most_block_bytes(&self) -> usize {
        (FIXED_BYTES + self.protocol.settings.header_bytes).saturating_add(BLOCK_EXTRA_BYTES)
    }

    pub(super) fn syn_stream(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        let Some((fixed, block)) = payload.split_first_chunk::<FIXED_BYTES>() else {
            return Err(ProtocolError::FrameSize);
        };
        if block.is_empty() {
            return Err(ProtocolError::FrameSize);
        }
        let (id, _) = two(&fixed[..8]).ok_or(ProtocolError::FrameSize)?;
        let id = id & frame::MAX_STREAM;
        let priority = Priority {
            urgency: fixed[8] >> 5,
            incremental: true,
        };
        let given_up = std::mem::take(&mut self.protocol.block_given_up);
        let usage = if given_up {
            Use::Dropped(None)
        } else {
            self.use_of_block(id, head)?
        };
        let mut text = std::mem::take(&mut self.protocol.inflated);
        text.clear();
        let result = self.inflate(block, &mut text).and_then(|()| {
            // A stream with an unreadable block never existed.
            self.last_stream = self.last_stream.max(id);
            match usage {
                Use::Request => {
                    let size_bytes = (frame::HEAD_BYTES + payload.len()) as u64;
                    self.request(id, head.has(frame::FIN), priority, &text, size_bytes)
                }
                Use::Dropped(Some(code)) => self.break_stream(id, code),
                Use::Dropped(None) => self.spend(budget::RESET),
            }
        });
        text.clear();
        text.shrink_to(KEEP_BYTES);
        self.protocol.inflated = text;
        result
    }

    fn use_of_block(&mut self, id: u32, head: FrameHead) -> Result<Use, ProtocolError> {
        if id == 0 || id.is_multiple_of(2) {
            return Err(ProtocolError::BadStreamNumber);
        }
        if id == self.last_stream || self.streams.get(id).is_some() {
            return Ok(Use::Dropped(Some(error::PROTOCOL_ERROR)));
        }
        if id < self.last_stream {
            return Err(ProtocolError::BadStreamNumber);
        }
        let most = self.protocol.settings.max_concurrent_streams as usize;
        Ok(match self.ending {
            Ending::After(_) | Ending::Failed => Use::Dropped(None),
            _ if self.streams.len() >= most => Use::Dropped(Some(error::REFUSED_STREAM)),
            // A response to it could not be sent.
            _ if head.has(frame::UNIDIRECTIONAL) => Use::Dropped(Some(error::PROTOCOL_ERROR)),
            _ => Use::Request,
        })
    }

    /// Resets the stream of a late header block; its rest is dropped. Returns an empty head, since a block is
    /// inflated as a whole. Returns `None` if no block is awaited, or on a second call.
    pub fn give_up_block(&mut self) -> Option<Box<RequestHead>> {
        let id = self.awaited_block()?;
        if self.protocol.block_given_up || id <= self.last_stream || id.is_multiple_of(2) {
            return None;
        }
        self.protocol.block_given_up = true;
        self.last_stream = id;
        self.put_reset(id, error::PROTOCOL_ERROR);
        Some(unfinished())
    }

    /// The message about an error of the connection.
    pub fn failure_text(&self, error: &ProtocolError) -> String {
        error.to_string()
    }

    /// Returns the empty head of a request with an incomplete header block, for the log.
    pub fn unfinished_request(&self) -> Option<Box<RequestHead>> {
        let id = self.awaited_block()?;
        let known = self.protocol.block_given_up || id <= self.last_stream || id.is_multiple_of(2);
        (!known).then(unfinished)
    }

    /// Returns the text of a block, cut at the maximum length of a request.
    fn inflate(&mut self, block: &[u8], text: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let keep = self
            .protocol
            .settings
            .header_bytes
            .saturating_add(BLOCK_EXTRA_BYTES);
        let most = keep.saturating_add(DROPPED_BYTES);
        let result = self.protocol.inflater.block(block, keep + 1, most, text);
        Ok(result?)
    }

    fn request(
        &mut self,
        id: u32,
        ended: bool,
        priority: Priority,
        text: &[u8],
        size_bytes: u64,
    ) -> Result<(), ProtocolError> {
        let (settings, known) = (&*self.protocol.settings, &mut self.protocol.known);
        let mut builder = Builder::new(settings, self.spares.pop().unwrap_or_default());
        known.begin();
        let whole = pairs::each_raw(text, |raw, name, value| {
            let note = known.note(raw, || Note::of(name, value, settings));
            builder.field(name, value, note);
        });
        if whole.is_err() {
            let is_cut = text.len()
                > self
                    .protocol
                    .settings
                    .header_bytes
                    .saturating_add(BLOCK_EXTRA_BYTES);
            builder.ends_early(is_cut);
        }
        let Built { mut head, broken } = builder.finish(ended);
        if broken {
            self.spares.push(head);
            return self.break_stream(id, error::PROTOCOL_ERROR);
        }
        head.size_bytes = size_bytes;
        head.priority = Some(priority.urgency);
        let allowed_bytes = self.protocol.settings.window_bytes();
        self.open(id, head, priority, allowed_bytes, ended);
        Ok(())
    }
}

/// Bytes before the header block: two numbers of streams, the priority, and a slot for CREDENTIAL.
const FIXED_BYTES: usize = 10;
/// Bytes by which a header block may exceed the limit of its fields: lengths, and refused fields that are still read.
const BLOCK_EXTRA_BYTES: usize = 16 << 10;
/// Most bytes of a too long block that are inflated and dropped, so that the request can be answered.
const DROPPED_BYTES: usize = 256 << 10;
/// Capacity kept for the next block.
const KEEP_BYTES: usize = 1024;
