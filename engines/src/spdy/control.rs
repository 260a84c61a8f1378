//! Control frames: SETTINGS, windows, PING.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.6.4, 2.6.5, 2.6.8; SPDY/3.1 for the window of the connection.

use super::budget;
use super::conn::Conn;
use super::error::{self, ProtocolError};
use super::frame::{self, one, put_control, two};
use super::settings::{INITIAL_WINDOW_SIZE, MAX_WINDOW, PERSISTED};

impl Conn {
    pub(super) fn peer_settings(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        if self.settled {
            self.spend(budget::FRAME)?;
        }
        self.settled = true;
        let (count, entries) = payload
            .split_at_checked(4)
            .ok_or(ProtocolError::FrameSize)?;
        let count = one(count).ok_or(ProtocolError::FrameSize)? as usize;
        let (entries, _) = entries.as_chunks::<8>();
        // As in nginx, bytes behind the entries are harmless.
        let entries = entries.get(..count).ok_or(ProtocolError::FrameSize)?;
        for entry in entries {
            let (id, value) = two(entry).ok_or(ProtocolError::FrameSize)?;
            let flags = (id >> 24) as u8;
            if id & NUMBER == INITIAL_WINDOW_SIZE && flags != PERSISTED {
                self.initial_window(value)?;
            }
        }
        Ok(())
    }

    /// Applies the window of new streams, and the difference to the windows of open ones.
    fn initial_window(&mut self, bytes: u32) -> Result<(), ProtocolError> {
        if u64::from(bytes) > MAX_WINDOW {
            return Err(ProtocolError::BadSetting);
        }
        for id in self.change_windows(bytes) {
            self.break_stream(id, error::FLOW_CONTROL_ERROR)?;
        }
        Ok(())
    }

    /// Any PING is answered, as in nginx: the server sends none of its own, so none can be an answer.
    pub(super) fn ping(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        self.spend(budget::FRAME)?;
        self.out.push_with(|out| {
            put_control(out, frame::PING, 0, payload.len());
            out.extend_from_slice(payload);
        });
        Ok(())
    }

    pub(super) fn window_update(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let (id, grant) = two(payload).ok_or(ProtocolError::FrameSize)?;
        self.spend(budget::FRAME)?;
        self.grow_window(id & frame::MAX_STREAM, grant & frame::MAX_STREAM)
    }
}

/// The number of a setting, without its flags.
const NUMBER: u32 = (1 << 24) - 1;
