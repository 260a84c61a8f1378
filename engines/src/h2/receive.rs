//! Handles frames of the peer: dispatch, request bodies, the end of streams. Header blocks are in `headers`,
//! frames about the connection in `control`.
//!
//! Source: RFC 9113 sections 5.1, 6.1, 6.4.

use super::blame;
use super::budget;
use super::conn::{Conn, Ending};
use super::error::{self, ProtocolError};
use super::event::Event;
use super::frame::{self, FrameHead, unpadded};
use crate::http::Fault;
use crate::mux::Incoming;
use crate::mux::server::State;

impl Conn {
    /// Refuses a frame that is invalid regardless of its payload.
    #[inline]
    pub(super) fn refuse_by_head(&self, head: FrameHead) -> Result<(), ProtocolError> {
        if self.protocol.block.is_some() && head.kind != frame::CONTINUATION {
            return Err(ProtocolError::BrokenHeaderBlock);
        }
        if head.kind == frame::PUSH_PROMISE {
            return Err(ProtocolError::PushFromClient);
        }
        Ok(())
    }

    /// Takes one frame.
    pub(super) fn frame(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let result = self.dispatch(head, payload);
        if result.is_err() {
            self.protocol.faulty = Some(head);
        }
        result
    }

    /// The message about an error of the connection, with the frame at fault if it is known.
    pub fn failure_text(&self, error: &ProtocolError) -> String {
        match self.protocol.faulty {
            Some(head) => blame::connection(*error, head, self.last_stream),
            None => error.to_string(),
        }
    }

    #[inline(always)] // Once a frame.
    fn dispatch(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        match head.kind {
            frame::DATA => self.data(head, payload),
            frame::HEADERS => self.headers(head, payload),
            frame::PRIORITY => self.priority(head, payload),
            frame::RST_STREAM => self.rst_stream(head, payload),
            frame::SETTINGS => self.peer_settings(head, payload),
            frame::PING => self.ping(head, payload),
            frame::GOAWAY => self.goaway(head, payload),
            frame::WINDOW_UPDATE => self.window_update(head, payload),
            frame::CONTINUATION => self.continuation(head, payload),
            frame::PRIORITY_UPDATE => self.priority_update(head, payload),
            // RFC 9113 section 5.5: unknown frames are ignored.
            _ => self.spend(budget::FRAME),
        }
    }

    /// Returns whether a frame on a stream absent from the table may be dropped.
    pub(super) fn absent(&self, id: u32) -> Result<(), ProtocolError> {
        if id > self.last_stream || id.is_multiple_of(2) {
            return Err(ProtocolError::BadStreamNumber);
        }
        let refused = matches!(self.ending, Ending::After(last) if id > last);
        if refused || self.protocol.reset_lately.contains(&id) {
            return Ok(());
        }
        Err(ProtocolError::ClosedStream)
    }

    fn data(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        if head.stream == 0 {
            return Err(ProtocolError::WrongStream);
        }
        let size = payload.len() as u64;
        let bytes = unpadded(head, payload).ok_or(ProtocolError::BadPadding)?;
        self.take_allowed(size)?;
        if bytes.len() >= budget::USEFUL_BYTES {
            self.budget.earn(budget::DATA);
        } else if bytes.is_empty() && !head.has(frame::END_STREAM) {
            self.spend(budget::FRAME)?;
        }
        let Some(stream) = self.streams.get(head.stream) else {
            self.absent(head.stream)?;
            return self.spend(budget::FRAME);
        };
        match stream.state {
            State::Malformed { ended: true } => return self.spend(budget::FRAME),
            State::HalfClosedRemote => {
                return self.break_stream(head.stream, error::STREAM_CLOSED);
            }
            _ => {}
        }
        if !stream.incoming.take(size) {
            return self.break_stream(head.stream, error::FLOW_CONTROL_ERROR);
        }
        self.body(head, bytes, size)
    }

    /// Takes body bytes on an open stream.
    fn body(&mut self, head: FrameHead, bytes: &[u8], size: u64) -> Result<(), ProtocolError> {
        let id = head.stream;
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        let ended = head.has(frame::END_STREAM);
        if !stream.incoming.fits(bytes.len() as u64, ended) {
            return self.wrong_length(id);
        }
        let discarding = !stream.state.wants_body();
        if !stream.is_running() && !ended && !rest_is_allowed(&stream.incoming) {
            // The response is sent, and the rest of the body cannot come.
            self.reset(id, error::NO_ERROR);
            return Ok(());
        }
        if !discarding && !bytes.is_empty() {
            self.events.push_back(Event::Data {
                stream: id,
                bytes: bytes.to_vec(),
            });
        }
        let unread = if discarding {
            size
        } else {
            size - bytes.len() as u64
        };
        if ended {
            self.received_whole(id);
        } else if unread > 0 {
            self.consumed(id, unread);
        }
        Ok(())
    }

    /// The body is not as long as announced (RFC 9113 section 8.1.1).
    pub(super) fn wrong_length(&mut self, id: u32) -> Result<(), ProtocolError> {
        self.spend(budget::RESET)?;
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if !stream.is_running() {
            self.reset(id, error::PROTOCOL_ERROR);
            return Ok(());
        }
        stream.state = State::Malformed { ended: true };
        self.events
            .push_back(Event::BodyFault(id, Fault::BadContentLength));
        Ok(())
    }

    /// Body bytes have been consumed: the peer may send as many again.
    pub fn consumed(&mut self, id: u32, bytes: u64) {
        let window_bytes = u64::from(self.protocol.settings.preread_bytes);
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        // After the response the window is not opened further.
        if stream.state.is_received() || !stream.is_running() {
            return;
        }
        if let Some(grant) = stream.incoming.consumed(bytes, window_bytes) {
            self.put_grant(id, grant);
        }
    }

    fn rst_stream(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        if head.stream == 0 {
            return Err(ProtocolError::WrongStream);
        }
        if payload.len() != 4 {
            return Err(ProtocolError::FrameSize);
        }
        if self.is_idle(head.stream) {
            return Err(ProtocolError::BadStreamNumber);
        }
        self.peer_reset(head.stream)
    }
}

/// Whether the rest of the request body, as far as its length is known, is already covered by the window.
pub(super) fn rest_is_allowed(incoming: &Incoming) -> bool {
    match incoming.length_left {
        // A window opened for a whole body covers more bytes than are worth discarding.
        None => incoming.allowed_bytes > 0 && !incoming.unlimited,
        Some(left) if incoming.unlimited => left <= incoming.allowed_bytes.min(PAST_BYTES),
        Some(left) => incoming.allowed_bytes > 0 && left <= incoming.allowed_bytes,
    }
}

/// Most bytes of a body that are discarded after the response if its window was larger.
const PAST_BYTES: u64 = 64 << 10;
