//! Responses: heads are encoded at once, bodies are asked for and sent as windows and priorities allow.
//!
//! [`Conn::advance`] is the transmit builder. It takes the stream whose turn it is; if no more than a frame of its body is
//! here and more may come, it asks for that first, so that the last piece carries END_STREAM.
//!
//! Source: RFC 9113 sections 6.1, 6.2, 8.1.

use super::budget;
use super::conn::Conn;
use super::error;
use super::event::{Plan, Want};
use super::frame::{self, put_head};
use super::stream::Sending;
use crate::http::{BodyLength, Chunk, ResponseHead};

impl Conn {
    /// Sends an interim response, 1xx but not 101, with `fields` if any.
    pub fn send_interim(&mut self, id: u32, status: u16, fields: Option<&ResponseHead>) {
        let waiting = self
            .streams
            .get(id)
            .is_some_and(|stream| stream.sending == Sending::Waiting);
        if waiting {
            let block = self.encode(Some(status), fields);
            let bytes = self.put_block(id, block, false);
            self.count(id, bytes);
        }
    }

    /// Sends the head of the response and gives the bytes it has on the wire.
    pub fn send_head(&mut self, id: u32, head: &ResponseHead, plan: Plan) -> u64 {
        let Some(stream) = self.streams.get(id) else {
            return 0;
        };
        if stream.sending != Sending::Waiting {
            return 0;
        }
        let suppressed = stream.is_head || matches!(head.status, 100..=199 | 204 | 304);
        let empty = matches!(head.body, BodyLength::None | BodyLength::Length(0)) && !plan.trailers;
        let ended = suppressed || empty;
        stream.sending = Sending::Body;
        stream.chunk_bytes = plan.chunk_bytes.max(1);
        let block = self.encode_response(head.status, head);
        let bytes = self.put_block(id, block, ended);
        self.count(id, bytes);
        if ended {
            self.finish(id);
        } else {
            self.requeue(id);
        }
        bytes
    }

    /// Sends a piece of the body.
    pub fn send_data(&mut self, id: u32, chunk: Chunk) {
        if let Some(stream) = self.streams.get(id)
            && stream.sending == Sending::Body
            && !chunk.is_empty()
        {
            stream.pending_bytes += chunk.len();
            stream.pending.push_back(chunk);
            self.requeue(id);
        }
    }

    /// Ends the body, with `trailers` if there are any.
    pub fn send_end(&mut self, id: u32, trailers: Option<&ResponseHead>) {
        let waits = self
            .streams
            .get(id)
            .is_some_and(|stream| stream.sending == Sending::Body);
        if !waits {
            return;
        }
        // Trailers are encoded only when they leave, since the table changes with each block: kept as they are here.
        let block = trailers.map(flat).unwrap_or_default();
        if let Some(stream) = self.streams.get(id) {
            stream.sending = Sending::Last(block);
        }
        self.requeue(id);
    }

    /// The source of a body has nothing now: it is not asked for until [`Self::resume`].
    pub fn stall(&mut self, id: u32) {
        if let Some(stream) = self.streams.get(id) {
            stream.stalled = true;
        }
    }

    /// The source of a body has more.
    pub fn resume(&mut self, id: u32) {
        if let Some(stream) = self.streams.get(id) {
            stream.stalled = false;
            self.requeue(id);
        }
    }

    /// Since when the peer lets nothing of a response leave that waits to, by the window of its stream or by that of the
    /// connection; in the time that [`Self::advance`] is told.
    pub fn blocked_since(&mut self, id: u32) -> Option<u64> {
        let connection = self.blocked_ms;
        let stream = self.streams.get(id)?;
        let waits = stream.pending_bytes > 0;
        stream.blocked_ms.or(connection.filter(|_| waits))
    }

    /// Does what can be done until something is needed, or `room` bytes wait to be transmitted.
    pub fn advance(&mut self, room: u64, now_ms: u64) -> Want {
        loop {
            if let Some((stream, bytes)) = self.sent.pop_front() {
                return Want::Sent { stream, bytes };
            }
            if self.out.len() >= room {
                return Want::Nothing;
            }
            let Some(id) = self.scheduler.pop() else {
                return Want::Nothing;
            };
            let Some(stream) = self.streams.get(id) else {
                continue;
            };
            if !std::mem::take(&mut stream.queued) || !stream.could_send() {
                continue;
            }
            let chunk_bytes = stream.chunk_bytes.min(self.peer.frame_bytes) as u64;
            if stream.sending == Sending::Body
                && !stream.stalled
                && stream.pending_bytes <= chunk_bytes
            {
                self.keep_turn(id);
                return Want::Body(id);
            }
            let most = stream.window.available().min(chunk_bytes);
            let len = stream.pending_bytes.min(most);
            if stream.pending_bytes > 0 {
                if len == 0 {
                    // Its window is closed; an update brings it back.
                    stream.blocked_ms.get_or_insert(now_ms);
                    continue;
                }
                let len = len.min(self.window.available());
                if len == 0 {
                    self.blocked_ms.get_or_insert(now_ms);
                    self.keep_turn(id);
                    return Want::Nothing;
                }
                self.put_data(id, len);
            } else {
                self.put_end(id);
            }
        }
    }

    /// Puts a stream back to where it was taken from.
    fn keep_turn(&mut self, id: u32) {
        if let Some(stream) = self.streams.get(id) {
            stream.queued = true;
            let in_front = crate::mux::Priority {
                incremental: false,
                ..stream.priority
            };
            self.scheduler.push_again(id, in_front);
        }
    }

    /// Queues a stream that could send.
    pub(super) fn requeue(&mut self, id: u32) {
        if let Some(stream) = self.streams.get(id)
            && stream.comes_back()
        {
            self.scheduler.push(id, stream.priority);
        }
    }

    pub(super) fn requeue_all(&mut self) {
        let Self {
            streams, scheduler, ..
        } = self;
        streams.each(|id, stream| {
            if stream.comes_back() {
                scheduler.push(id, stream.priority);
            }
        });
    }

    /// Counts bytes of a response.
    fn count(&mut self, id: u32, bytes: u64) {
        if let Some(stream) = self.streams.get(id) {
            stream.sent_bytes += bytes;
        }
    }

    /// Sends a frame of `len` bytes of what waits on a stream.
    fn put_data(&mut self, id: u32, len: u64) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let taken = stream.window.take(len) && self.window.take(len);
        debug_assert!(taken, "windows were asked before");
        (stream.blocked_ms, self.blocked_ms) = (None, None);
        stream.pending_bytes -= len;
        stream.sent_bytes += len + frame::HEAD_BYTES as u64;
        let last = stream.pending_bytes == 0
            && matches!(&stream.sending, Sending::Last(trailers) if trailers.is_empty());
        let flags = if last { frame::END_STREAM } else { 0 };
        self.out
            .push_with(|out| put_head(out, len as usize, frame::DATA, flags, id));
        let mut left = len;
        while left > 0 {
            let Some(mut chunk) = stream.pending.pop_front() else {
                break;
            };
            if let Some(rest) = chunk.split_off(left) {
                stream.pending.push_front(rest);
            }
            left -= chunk.len();
            self.out.push(chunk);
        }
        if len >= budget::USEFUL_BYTES as u64 || stream.pending_bytes == 0 {
            self.budget.earn(budget::DATA);
        }
        if last {
            self.finish(id);
        } else if stream.could_send() {
            stream.queued = true;
            let priority = stream.priority;
            self.scheduler.push_again(id, priority);
        }
    }

    /// Ends a stream that has no byte left: with its trailers, or with an empty frame.
    fn put_end(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let Sending::Last(trailers) = &mut stream.sending else {
            return;
        };
        let trailers = std::mem::take(trailers);
        if trailers.is_empty() {
            stream.sent_bytes += frame::HEAD_BYTES as u64;
            self.out
                .push_with(|out| put_head(out, 0, frame::DATA, frame::END_STREAM, id));
        } else {
            let mut head = ResponseHead::default();
            for line in trailers.split(|byte| *byte == b'\n') {
                if let Some(at) = line.windows(2).position(|two| two == b": ") {
                    head.push(&line[..at], &line[at + 2..]);
                }
            }
            let block = self.encode(None, Some(&head));
            let bytes = self.put_block(id, block, true);
            self.count(id, bytes);
        }
        self.finish(id);
    }

    /// Our side of a stream has ended.
    fn finish(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        stream.sending = Sending::Ended;
        stream.discarding = true;
        stream.pending.clear();
        stream.pending_bytes = 0;
        self.sent.push_back((id, stream.sent_bytes));
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
        let (first, mut rest) = block.split_at(block.len().min(most));
        let mut flags = if end_stream { frame::END_STREAM } else { 0 };
        if rest.is_empty() {
            flags |= frame::END_HEADERS;
        }
        self.out.push_with(|out| {
            put_head(out, first.len(), frame::HEADERS, flags, id);
            out.extend_from_slice(first);
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(rest.len().min(most));
                let flags = if more.is_empty() {
                    frame::END_HEADERS
                } else {
                    0
                };
                put_head(out, piece.len(), frame::CONTINUATION, flags, id);
                out.extend_from_slice(piece);
                rest = more;
            }
        });
        // Its memory is used for the next block.
        self.encoded = block;
        self.encoded.shrink_to(KEEP_BYTES);
        self.out.len() - before
    }
}

/// Trailers as lines.
fn flat(head: &ResponseHead) -> Vec<u8> {
    let mut out = Vec::new();
    for field in &head.fields {
        out.extend_from_slice(head.bytes(field.name));
        out.extend_from_slice(b": ");
        out.extend_from_slice(head.bytes(field.value));
        out.push(b'\n');
    }
    out
}

/// Capacity that is kept for the next block.
const KEEP_BYTES: usize = 4096;
