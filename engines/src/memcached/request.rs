//! Requests: the first on a connection, and those behind it.

use std::ops::Range;

use super::{Client, KEY_BYTES, Memcached, PIPELINE_MAX, Receiving};
use crate::client::SendError;

impl Client {
    /// Requests the value of a key; returns the number of the request.
    ///
    /// # Errors
    /// The connection cannot take it, or the key is empty or has a blank or a control, which would make it another
    /// command.
    pub fn request(&mut self, key: &[u8], line_bytes: usize) -> Result<u32, SendError> {
        self.admit()?;
        self.protocol.keys.clear();
        self.ask(key)?;
        self.protocol.line_bytes = line_bytes;
        self.protocol.receiving = Receiving::ReplyLine;
        Ok(self.begin_exchange(true))
    }

    /// Requests the value of a further key on a connection without any answer since [`Self::request`]; returns the
    /// number of the request.
    ///
    /// # Errors
    /// Those of [`Self::request`]. The connection is also busy if no request is open, if a byte of an answer has
    /// come, if [`PIPELINE_MAX`] requests wait, or if a key has more than [`KEY_BYTES`], since servers answer long
    /// keys differently.
    pub fn pipeline(&mut self, key: &[u8]) -> Result<u32, SendError> {
        if self.is_closed() {
            return Err(SendError::Closed);
        }
        let has_room = matches!(self.protocol.asked.len(), 1..PIPELINE_MAX);
        let is_early = self.protocol.receiving == Receiving::ReplyLine && !self.has_answer;
        let longest = key
            .len()
            .max(self.protocol.asked.back().map_or(0, Range::len));
        if !has_room || !is_early || longest > KEY_BYTES {
            return Err(SendError::Busy);
        }
        self.ask(key)?;
        let behind = self.protocol.asked.len() as u32 - 1;
        Ok(self.stream.wrapping_add(behind))
    }

    /// Appends the command.
    fn ask(&mut self, key: &[u8]) -> Result<(), SendError> {
        if key.is_empty() || key.iter().any(|byte| *byte <= b' ') {
            return Err(SendError::BadKey);
        }
        let from = self.protocol.keys.len();
        self.protocol.keys.extend_from_slice(key);
        self.protocol
            .asked
            .push_back(from..self.protocol.keys.len());
        self.out.push_with(|run| {
            for part in [b"get ", key, b"\r\n"] {
                run.extend_from_slice(part);
            }
        });
        Ok(())
    }
}

impl Memcached {
    /// Whether other requests wait behind the one being answered.
    pub(super) fn is_followed(&self) -> bool {
        self.asked.len() > 1
    }
}
