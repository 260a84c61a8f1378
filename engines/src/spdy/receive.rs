//! Handles frames of the peer: dispatch, request bodies, the end of streams. SYN_STREAM is in `syn`, frames
//! about the connection are in `control`.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.2, 2.3, 2.4, 2.6.3.

use super::budget;
use super::conn::{Conn, Ending, Part};
use super::error::{self, ProtocolError};
use super::event::Event;
use super::frame::{self, FrameHead, FrameKind};
use super::settings::MAX_ENTRIES;
use crate::http::Fault;

impl Conn {
    /// Whether a frame is handled only when it is complete; refuses some frames by their head.
    pub(super) fn is_taken_whole(&self, head: FrameHead) -> Result<bool, ProtocolError> {
        let kind = match head.kind {
            FrameKind::Data(_) => return Ok(false),
            FrameKind::OtherVersion => return Err(ProtocolError::BadVersion),
            FrameKind::Control(kind) => kind,
        };
        match kind {
            frame::SYN_STREAM if head.len > self.most_block_bytes() => {
                Err(ProtocolError::HeaderFlood)
            }
            frame::SETTINGS if head.len > 4 + 8 * MAX_ENTRIES => Err(ProtocolError::FrameSize),
            frame::RST_STREAM | frame::WINDOW_UPDATE | frame::GOAWAY if head.len != 8 => {
                Err(ProtocolError::FrameSize)
            }
            frame::PING if head.len != 4 => Err(ProtocolError::FrameSize),
            frame::SYN_REPLY | frame::HEADERS => Err(ProtocolError::WrongFrame),
            frame::SYN_STREAM | frame::RST_STREAM | frame::SETTINGS => Ok(true),
            frame::PING | frame::GOAWAY | frame::WINDOW_UPDATE => Ok(true),
            _ => Ok(false),
        }
    }

    /// Takes a whole control frame.
    pub(super) fn control(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let FrameKind::Control(kind) = head.kind else {
            return Ok(());
        };
        match kind {
            frame::SYN_STREAM => self.syn_stream(head, payload),
            frame::RST_STREAM => self.rst_stream(payload),
            frame::SETTINGS => self.peer_settings(payload),
            frame::PING => self.ping(payload),
            frame::WINDOW_UPDATE => self.window_update(payload),
            // GOAWAY: the client takes no pushed streams, and there are none.
            _ => self.spend(budget::FRAME),
        }
    }

    /// Begins a frame handled in parts: data, or an unknown frame, which is ignored.
    pub(super) fn begin_part(&mut self, head: FrameHead) -> Result<Part, ProtocolError> {
        let skipped = Part::Skipped(head.len);
        let FrameKind::Data(id) = head.kind else {
            self.spend(budget::FRAME)?;
            return Ok(skipped);
        };
        let size = head.len as u64;
        self.take_allowed(size)?;
        let Some(stream) = self.streams.get(id) else {
            return self.data_for_nobody(id).map(|()| skipped);
        };
        if stream.state.is_received() {
            self.break_stream(id, error::STREAM_ALREADY_CLOSED)?;
            return Ok(skipped);
        }
        if !stream.incoming.take(size) {
            self.break_stream(id, error::FLOW_CONTROL_ERROR)?;
            return Ok(skipped);
        }
        let fin = head.has(frame::FIN);
        if head.len >= budget::USEFUL_BYTES {
            self.budget.earn(budget::DATA);
        } else if head.len == 0 && !fin {
            self.spend(budget::FRAME)?;
        }
        Ok(Part::Data {
            stream: id,
            left: head.len,
            fin,
        })
    }

    /// Handles data on a stream that is not open: it may have been reset meanwhile.
    fn data_for_nobody(&mut self, id: u32) -> Result<(), ProtocolError> {
        if self.is_idle(id) && id != 0 && self.ending == Ending::Open {
            return self.break_stream(id, error::INVALID_STREAM);
        }
        self.spend(budget::FRAME)
    }

    /// Takes a piece of a request body.
    pub(super) fn data(&mut self, id: u32, bytes: &[u8], ended: bool) -> Result<(), ProtocolError> {
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        let size = bytes.len() as u64;
        if !stream.incoming.fits(size, ended) {
            self.wrong_length(id)?;
        }
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        let discarding = !stream.state.wants_body();
        if !discarding && !bytes.is_empty() {
            self.events.push_back(Event::Data {
                stream: id,
                bytes: bytes.to_vec(),
            });
        }
        if ended {
            self.received_whole(id);
        } else if discarding {
            self.consumed(id, size);
        }
        Ok(())
    }

    /// The body differs from its announced length: the rest of it is discarded, up to its end.
    fn wrong_length(&mut self, id: u32) -> Result<(), ProtocolError> {
        self.spend(budget::RESET)?;
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        stream.incoming.length_left = None;
        if stream.state.wants_body() {
            self.events
                .push_back(Event::BodyFault(id, Fault::BadContentLength));
        }
        stream.state = stream.state.discard();
        Ok(())
    }

    /// Body bytes have been consumed: the peer may send as many again.
    pub fn consumed(&mut self, id: u32, bytes: u64) {
        let window_bytes = u64::from(self.protocol.settings.window_bytes());
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.state.is_received() {
            return;
        }
        if !stream.is_running() {
            // SPDY has no reset code for "no error": the rest of a request is discarded, up to a limit.
            let past_bytes = u64::from(stream.past_bytes) + bytes;
            if past_bytes > PAST_BYTES {
                return self.reset(id, error::CANCEL);
            }
            stream.past_bytes = past_bytes as u32;
        }
        if let Some(grant) = stream.incoming.consumed(bytes, window_bytes) {
            self.put_grant(id, grant);
        }
    }

    fn rst_stream(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let (id, _) = frame::two(payload).ok_or(ProtocolError::FrameSize)?;
        self.peer_reset(id & frame::MAX_STREAM)
    }
}

/// Most bytes of a request that are discarded after its response has ended.
pub(super) const PAST_BYTES: u64 = 64 << 20;
