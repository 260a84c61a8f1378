//! Control frames: SETTINGS, windows, priorities, PING, GOAWAY.
//!
//! Source: RFC 9113 sections 6.3, 6.5, 6.7 to 6.9; RFC 9218 section 7.

use super::budget;
use super::conn::{Conn, DRAIN_PING, Ending};
use super::error::{self, ProtocolError};
use super::frame::{self, FrameHead, number, put_head};
use super::settings::{self, Setting};
use crate::mux::Priority;

impl Conn {
    /// The obsolete priorities of RFC 7540 (RFC 9113 section 5.3.2); only their form is checked.
    pub(super) fn priority(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        if head.stream == 0 {
            return Err(ProtocolError::WrongStream);
        }
        self.spend(budget::FRAME)?;
        let id = head.stream;
        let open = self.streams.get(id).is_some();
        // An absent stream cannot be reset.
        match number(payload).filter(|_| payload.len() == 5) {
            None if open => self.break_stream(id, error::FRAME_SIZE_ERROR),
            None => Err(ProtocolError::FrameSize),
            Some(depends) if depends & frame::MAX_STREAM != id => Ok(()),
            Some(_) if open => self.break_stream(id, error::PROTOCOL_ERROR),
            Some(_) if self.is_idle(id) => Err(ProtocolError::WrongStream),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn priority_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        if head.stream != 0 {
            return Err(ProtocolError::WrongStream);
        }
        let id = number(payload).ok_or(ProtocolError::FrameSize)? & frame::MAX_STREAM;
        if id.is_multiple_of(2) && (id == 0 || self.is_idle(id)) {
            // None, or one that only we could open.
            return Err(ProtocolError::WrongStream);
        }
        self.spend(budget::FRAME)?;
        self.protocol.prioritised = true;
        let priority = Priority::parse(&payload[4..]);
        if let Some(stream) = self.streams.get(id) {
            self.sender.reprioritise(id, &mut stream.out, priority);
        } else if self.is_idle(id) {
            self.protocol
                .early_priorities
                .retain(|(early, _)| *early != id);
            if self.protocol.early_priorities.len() < EARLY_PRIORITIES {
                self.protocol.early_priorities.push((id, priority));
            }
        }
        Ok(())
    }

    pub(super) fn peer_settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        if head.stream != 0 {
            return Err(ProtocolError::WrongStream);
        }
        if head.has(frame::ACK) {
            return self.settings_acknowledged(payload);
        }
        if self.settled {
            self.spend(budget::FRAME)?;
        }
        self.settled = true;
        let frame_bytes = &mut self.protocol.frame_bytes;
        let window = settings::take(
            payload,
            &mut self.protocol.encoder,
            frame_bytes,
            |setting| {
                match setting {
                    Setting::EnablePush(allowed) => self.protocol.pushes.allowed = allowed,
                    Setting::MaxConcurrentStreams(most) => self.protocol.pushes.most = most,
                    _ => {}
                }
                Ok(())
            },
        )?;
        if window.is_some_and(|bytes| !self.change_windows(bytes).is_empty()) {
            return Err(ProtocolError::WindowOverflow);
        }
        self.out
            .push_with(|out| put_head(out, 0, frame::SETTINGS, frame::ACK, 0));
        Ok(())
    }

    /// The peer has acknowledged our SETTINGS: from now on its table has the size announced there.
    fn settings_acknowledged(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        if !payload.is_empty() {
            return Err(ProtocolError::FrameSize);
        }
        if std::mem::replace(&mut self.protocol.acknowledged, true) {
            return self.spend(budget::FRAME);
        }
        self.protocol
            .decoder
            .set_allowed_bytes(self.protocol.settings.header_table_bytes);
        Ok(())
    }

    pub(super) fn ping(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        if head.stream != 0 {
            return Err(ProtocolError::WrongStream);
        }
        let Ok(data) = <[u8; 8]>::try_from(payload) else {
            return Err(ProtocolError::FrameSize);
        };
        self.spend(budget::FRAME)?;
        if head.has(frame::ACK) {
            if data == DRAIN_PING && self.ending == Ending::Announced {
                self.end();
            }
            return Ok(());
        }
        self.out.push_with(|out| {
            put_head(out, 8, frame::PING, frame::ACK, 0);
            out.extend_from_slice(&data);
        });
        Ok(())
    }

    pub(super) fn goaway(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        if head.stream != 0 {
            return Err(ProtocolError::WrongStream);
        }
        if payload.len() < 8 {
            return Err(ProtocolError::FrameSize);
        }
        // The client opens no more streams, and takes no more of ours; open ones continue.
        self.protocol.pushes.ended = true;
        self.spend(budget::FRAME)
    }

    pub(super) fn window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        let grant = match payload.len() {
            4 => number(payload).unwrap_or_default() & frame::MAX_STREAM,
            _ => return Err(ProtocolError::FrameSize),
        };
        if grant == 0 {
            return Err(ProtocolError::ZeroWindowUpdate);
        }
        self.spend(budget::FRAME)?;
        if self.is_idle(head.stream) {
            return Err(ProtocolError::BadStreamNumber);
        }
        self.grow_window(head.stream, grant)
    }
}

/// Most priorities stored for streams that are not open yet.
pub(super) const EARLY_PRIORITIES: usize = 32;
