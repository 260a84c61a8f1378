//! Responses: heads are encoded at once, bodies are asked for and sent as windows and priorities allow.
//!
//! [`Conn::advance`] is the transmit builder; whose turn it is and how much may leave is found in `mux::outgoing`.
//!
//! Source: RFC 9113 sections 6.1, 6.2, 8.1.

use super::budget;
use super::conn::Conn;
use super::error;
use super::event::{Plan, Want};
use super::frame::{self, put_head};
use crate::http::{Chunk, ResponseHead};
use crate::mux::Step;

impl Conn {
    /// Sends an interim response, 1xx but not 101, with `fields` if any.
    pub fn send_interim(&mut self, id: u32, status: u16, fields: Option<&ResponseHead>) {
        let waiting = self
            .streams
            .get(id)
            .is_some_and(|stream| stream.out.is_waiting());
        if waiting {
            let block = self.encode(Some(status), fields);
            let bytes = self.put_block(id, block, false);
            self.count(id, bytes);
        }
    }

    /// Sends the head of the response and gives the bytes it has on the wire.
    pub fn send_head(&mut self, id: u32, head: &ResponseHead, plan: Plan) -> u64 {
        let stream = self.streams.get(id);
        let Some(ended) = stream.and_then(|stream| stream.out.begin(head, plan, stream.is_head))
        else {
            return 0;
        };
        let block = self.encode_response(head.status, head);
        let bytes = self.put_block(id, block, ended);
        self.count(id, bytes);
        if ended {
            self.finish(id);
        } else if let Some(stream) = self.streams.get(id) {
            self.sender.requeue(id, &mut stream.out);
        }
        bytes
    }

    /// Sends a piece of the body.
    #[inline]
    pub fn send_data(&mut self, id: u32, chunk: Chunk) {
        self.sender.push(&mut self.streams, id, chunk);
    }

    /// Ends the body, with `trailers` if there are any.
    #[inline]
    pub fn send_end(&mut self, id: u32, trailers: Option<&ResponseHead>) {
        self.sender.end(&mut self.streams, id, trailers);
    }

    /// The source of a body has nothing now: it is not asked for until [`Self::resume`].
    pub fn stall(&mut self, id: u32) {
        self.sender.stall(&mut self.streams, id, true);
    }

    /// The source of a body has more.
    pub fn resume(&mut self, id: u32) {
        self.sender.stall(&mut self.streams, id, false);
    }

    /// Since when the peer lets nothing of a response leave that waits to, by the window of its stream or by that of the
    /// connection; in the time that [`Self::advance`] is told.
    pub fn blocked_since(&mut self, id: u32) -> Option<u64> {
        let stream = self.streams.get(id)?;
        self.sender.blocked_since(&stream.out)
    }

    /// Does what can be done until something is needed, or `room` bytes wait to be transmitted.
    pub fn advance(&mut self, room: u64, now_ms: u64) -> Want {
        loop {
            let most = self.peer.frame_bytes;
            match self
                .sender
                .next(&mut self.streams, &self.out, room, most, now_ms)
            {
                Step::Tell(want) => return want,
                Step::Data { stream, len } => self.put_data(stream, len),
                Step::End(stream) => self.put_end(stream),
            }
        }
    }

    /// Counts bytes of a response.
    fn count(&mut self, id: u32, bytes: u64) {
        if let Some(stream) = self.streams.get(id) {
            stream.out.sent_bytes += bytes;
        }
    }

    /// Sends a frame of `len` bytes of what waits on a stream.
    fn put_data(&mut self, id: u32, len: u64) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let (stream, out) = (&mut stream.out, &mut self.out);
        let head_bytes = frame::HEAD_BYTES;
        let piece = self
            .sender
            .put_data(id, stream, len, out, head_bytes, |out, last| {
                let flags = if last { frame::END_STREAM } else { 0 };
                put_head(out, len as usize, frame::DATA, flags, id);
            });
        if piece.all || len >= budget::USEFUL_BYTES as u64 {
            self.budget.earn(budget::DATA);
        } else {
            // Small windows cut it so; once nothing is left, the next frame of the peer that costs anything is a flood.
            self.budget.drain(budget::FRAME);
        }
        if piece.last {
            self.finish(id);
        }
    }

    /// Ends a stream that has no byte left: with its trailers, or with an empty frame.
    fn put_end(&mut self, id: u32) {
        let stream = self.streams.get(id);
        let Some(trailers) = stream.and_then(|stream| stream.out.take_trailers()) else {
            return;
        };
        if let Some(trailers) = trailers {
            let block = self.encode(None, Some(&trailers));
            let bytes = self.put_block(id, block, true);
            self.count(id, bytes);
        } else {
            self.count(id, frame::HEAD_BYTES as u64);
            self.out
                .push_with(|out| put_head(out, 0, frame::DATA, frame::END_STREAM, id));
        }
        self.finish(id);
    }

    /// Our side of a stream has ended.
    fn finish(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        stream.discarding = true;
        self.sender.finish(id, &mut stream.out);
        self.budget.earn(budget::RESPONSE);
        if stream.malformed {
            self.reset(id, error::PROTOCOL_ERROR);
        } else if stream.received {
            self.streams.remove(id);
        } else if !stream.rest_is_allowed() {
            // RFC 9113 section 8.1: the rest of the request is not needed.
            self.reset(id, error::NO_ERROR);
        }
    }

    /// HEADERS, and CONTINUATION where one frame is too small; gives the bytes of all of them.
    fn put_block(&mut self, id: u32, block: Vec<u8>, end_stream: bool) -> u64 {
        let before = self.out.len();
        let most = self.peer.frame_bytes;
        self.out
            .push_with(|out| frame::put_block(out, &block, most, end_stream, id));
        // Its memory is used for the next block.
        self.encoded = block;
        self.encoded.shrink_to(KEEP_BYTES);
        self.out.len() - before
    }
}

/// Capacity that is kept for the next block.
const KEEP_BYTES: usize = 4096;
