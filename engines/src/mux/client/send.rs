//! Bodies of requests, as far as windows allow.
//!
//! Source: RFC 9113 section 6.9.

use super::stream::{Pairs, Receiving, Sending};
use super::{Broken, Client, Ending, Protocol};
use crate::client::Malformed;
use crate::mux::{Frames, budget};

impl<P: Protocol> Client<P> {
    /// Sends bytes of a request's body, as far as windows allow now or later; with `ended` they are the last.
    pub fn send(&mut self, id: u32, bytes: &[u8], ended: bool) {
        self.send_last(id, bytes, ended.then_some(None));
    }

    /// Sends a piece of the body; trailers may follow the last one.
    pub(crate) fn send_last(&mut self, id: u32, bytes: &[u8], last: Option<Option<Pairs>>) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.sending != Sending::Body {
            return;
        }
        stream.pending.extend(bytes);
        if let Some(trailers) = last {
            stream.sending = Sending::Last(trailers);
        }
        self.flush(id);
    }

    /// Bytes of a body that wait for windows; a driver with a separate body source stops reading at them.
    #[must_use]
    pub fn pending_bytes(&mut self, id: u32) -> usize {
        self.streams
            .get(id)
            .map_or(0, |stream| stream.pending.len())
    }

    /// Bytes of a body that were encoded so far, with its trailers and the heads of frames; 0 once both sides have ended.
    #[must_use]
    pub fn encoded_bytes(&mut self, id: u32) -> u64 {
        self.streams
            .get(id)
            .map_or(0, |stream| stream.encoded_bytes)
    }

    /// Sends as much of a stream as the windows allow, and counts the bytes.
    fn flush(&mut self, id: u32) {
        let before = self.out.len();
        self.put_frames(id);
        let bytes = (self.out.len() - before) as u64;
        if bytes > 0
            && let Some(stream) = self.streams.get(id)
        {
            stream.encoded_bytes += bytes;
        }
    }

    fn put_frames(&mut self, id: u32) {
        if self.ending == Ending::Over {
            return;
        }
        let most = self.protocol.frame_bytes();
        loop {
            let Some(stream) = self.streams.get(id) else {
                return;
            };
            let allowed = stream.window.available().min(self.window.available()) as usize;
            let len = stream.pending.len().min(allowed).min(most);
            // Trailers, or the end, may only follow the last byte.
            let whole = len == stream.pending.len();
            let (last, trailers) = match &mut stream.sending {
                Sending::Ended => return,
                Sending::Body => (false, None),
                Sending::Last(trailers) if whole => (true, trailers.take()),
                Sending::Last(_) => (false, None),
            };
            // Blocked by the connection's window: the stream is queued and resumed when that opens.
            if len == 0 && !last {
                if !whole && stream.window.available() > 0 && !self.waiting.contains(&id) {
                    self.waiting.push_back(id);
                }
                return;
            }
            let end = last && trailers.is_none();
            if len > 0 || end {
                let taken = stream.window.take(len as u64) && self.window.take(len as u64);
                debug_assert!(taken, "windows were asked before");
                P::Frames::put_data(&mut self.out, id, len, end);
                let (front, back) = stream.pending.as_slices();
                let in_front = len.min(front.len());
                self.out.extend_from_slice(&front[..in_front]);
                self.out.extend_from_slice(&back[..len - in_front]);
                stream.pending.drain(..len);
                // Useful traffic buys tolerance for control frames; with tiny frames that would be free.
                if len >= budget::USEFUL_BYTES {
                    self.budget.earn(budget::DATA);
                }
            }
            if last {
                stream.sending = Sending::Ended;
                let done = stream.receiving == Receiving::Ended;
                if let Some(trailers) = trailers {
                    self.protocol.put_trailers(&mut self.out, id, &trailers);
                }
                if done {
                    self.streams.remove(id);
                }
                return;
            }
        }
    }

    /// The server has grown a window; the number 0 is the connection's.
    pub(crate) fn granted(&mut self, id: u32, bytes: u32) -> Result<(), P::ProtocolError> {
        if id == 0 {
            let grown = self.window.adjust(i64::from(bytes));
            grown.map_err(|_| Broken::WindowOverflow)?;
            self.flush_waiting();
            return Ok(());
        }
        let Some(stream) = self.streams.get(id) else {
            return self.absent(id);
        };
        if stream.window.adjust(i64::from(bytes)).is_err() {
            return self.malformed(id, Malformed::Window);
        }
        if !self.waiting.contains(&id) {
            self.flush(id);
        }
        Ok(())
    }

    /// Sends as much as the connection's window allows, each stream in turn.
    fn flush_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            if self.window.available() == 0 {
                return;
            }
            if let Some(id) = self.waiting.pop_front() {
                self.flush(id);
            }
        }
    }

    /// A new initial window changes the windows of all streams (RFC 9113 section 6.9.2).
    pub(crate) fn change_windows(&mut self, bytes: u32) -> Result<(), P::ProtocolError> {
        let change = i64::from(bytes) - i64::from(self.window_bytes);
        self.window_bytes = bytes;
        let mut overflow = false;
        self.streams
            .each(|_, stream| overflow |= stream.window.adjust(change).is_err());
        if overflow {
            return Err(Broken::WindowOverflow.into());
        }
        let ids: Vec<u32> = self.streams.ids().collect();
        self.waiting.clear();
        for id in ids {
            self.flush(id);
        }
        Ok(())
    }
}
