//! Responses: heads are encoded at once, bodies are asked for and sent as windows and priorities allow.
//!
//! [`Conn::advance`] is the transmit builder. It takes the stream whose turn it is; if no more than a frame of its body is
//! here and more may come, it asks for that first, so that the last piece carries FIN. Trailers leave in HEADERS.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.2.2, 2.6.2, 2.6.7, 3.2.2.

use super::budget;
use super::conn::Conn;
use super::event::{Plan, Want};
use super::frame::{self, put_control, put_data};
use super::stream::Sending;
use crate::http::{BodyLength, Chunk, FieldId, ResponseHead};

impl Conn {
    /// Does nothing: a stream of SPDY has one reply, so that interim responses cannot be sent.
    pub fn send_interim(&mut self, _id: u32, _status: u16, _fields: Option<&ResponseHead>) {}

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
        stream.chunk_bytes = plan.chunk_bytes.clamp(1, frame::MAX_LEN);
        self.write_head(head);
        let bytes = self.put_block(id, frame::SYN_REPLY, ended);
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
        if let Some(stream) = self.streams.get(id)
            && stream.sending == Sending::Body
        {
            let fields = trailers.into_iter().flat_map(|head| {
                let text = |span| head.bytes(span).to_vec();
                let each = head.fields.iter();
                each.map(move |field| (text(field.name), text(field.value)))
            });
            stream.sending = Sending::Last(fields.collect());
            self.requeue(id);
        }
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
            let chunk_bytes = stream.chunk_bytes as u64;
            if stream.sending == Sending::Body
                && !stream.stalled
                && stream.pending_bytes <= chunk_bytes
            {
                self.keep_turn(id);
                return Want::Body(id);
            }
            if stream.pending_bytes == 0 {
                self.put_end(id);
                continue;
            }
            let most = stream.window.available().min(chunk_bytes);
            let len = stream.pending_bytes.min(most);
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
        let flags = if last { frame::FIN } else { 0 };
        self.out
            .push_with(|out| put_data(out, id, flags, len as usize));
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
            self.out.push_with(|out| put_data(out, id, frame::FIN, 0));
        } else {
            self.writer.begin();
            for (name, value) in &trailers {
                self.writer.single(name, value);
            }
            self.writer.finish();
            let bytes = self.put_block(id, frame::HEADERS, true);
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
        if stream.received {
            self.streams.remove(id);
        }
    }

    /// The text of a reply's header block.
    fn write_head(&mut self, head: &ResponseHead) {
        let writer = &mut self.writer;
        writer.begin();
        writer.single(b":version", b"HTTP/1.1");
        let digits = wire_status(head.status).to_string();
        writer.single(b":status", digits.as_bytes());
        for (n, field) in head.fields.iter().enumerate() {
            let name = head.bytes(field.name);
            let same = |other: &&crate::http::Field| {
                other.id == field.id && head.bytes(other.name).eq_ignore_ascii_case(name)
            };
            let told = head.fields[..n].iter().any(|other| same(&other));
            if told || is_of_connection(field.id, name) {
                continue;
            }
            // A name stands once, with all its values.
            let values = head.fields[n..].iter().filter(same);
            let values = values.map(|field| head.bytes(field.value));
            writer.pair(name, values, field.id == FieldId::SetCookie);
        }
        writer.finish();
    }

    /// A control frame with the header block that was written; gives its bytes.
    fn put_block(&mut self, id: u32, kind: u16, fin: bool) -> u64 {
        let before = self.out.len();
        let flags = if fin { frame::FIN } else { 0 };
        let (deflater, writer) = (&mut self.deflater, &self.writer);
        self.out.push_with(|out| {
            let start = out.len();
            put_control(out, kind, flags, 0);
            out.extend_from_slice(&id.to_be_bytes());
            deflater.block(&writer.text, &writer.secrets, out);
            let len = out.len() - start - frame::HEAD_BYTES;
            debug_assert!(len <= frame::MAX_LEN, "a head is shorter than 16 MiB");
            let len = (len as u32).to_be_bytes();
            out[start + 5..start + 8].copy_from_slice(&len[1..]);
        });
        self.writer.text.shrink_to(KEEP_BYTES);
        self.out.len() - before
    }
}

/// nginx's own codes leave as 400, as in HTTP/1.
fn wire_status(status: u16) -> u16 {
    match status {
        494..=497 => 400,
        other => other,
    }
}

/// Fields that belong to a connection of HTTP/1 (section 3.2.2).
fn is_of_connection(id: FieldId, name: &[u8]) -> bool {
    matches!(
        id,
        FieldId::Connection | FieldId::TransferEncoding | FieldId::Upgrade
    ) || name.eq_ignore_ascii_case(b"keep-alive")
        || name.eq_ignore_ascii_case(b"proxy-connection")
}

/// Capacity that is kept for the next block.
const KEEP_BYTES: usize = 4096;
