//! Responses: heads are encoded at once, bodies are asked for and sent as windows and priorities allow.
//!
//! [`Conn::advance`] is the transmit builder; whose turn it is and how much may leave is found in `mux::outgoing`. Trailers
//! leave in HEADERS.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.2.2, 2.6.2, 2.6.7, 3.2.2.

use super::budget;
use super::conn::Conn;
use super::event::{Plan, Want};
use super::frame::{self, put_control, put_data};
use crate::http::{Chunk, FieldId, ResponseHead};
use crate::mux::Step;

impl Conn {
    /// Does nothing: a stream of SPDY has one reply, so that interim responses cannot be sent.
    pub fn send_interim(&mut self, _id: u32, _status: u16, _fields: Option<&ResponseHead>) {}

    /// Sends the head of the response and gives the bytes it has on the wire.
    pub fn send_head(&mut self, id: u32, head: &ResponseHead, plan: Plan) -> u64 {
        let stream = self.streams.get(id);
        let Some(ended) = stream.and_then(|stream| stream.out.begin(head, plan, stream.is_head))
        else {
            return 0;
        };
        self.write_head(head);
        let bytes = self.put_block(id, frame::SYN_REPLY, ended);
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
            let most = frame::MAX_LEN;
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
                let flags = if last { frame::FIN } else { 0 };
                put_data(out, id, flags, len as usize);
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
            self.writer.begin();
            for field in &trailers.fields {
                let (name, value) = (trailers.bytes(field.name), trailers.bytes(field.value));
                self.writer.single(name, value);
            }
            self.writer.finish();
            let bytes = self.put_block(id, frame::HEADERS, true);
            self.count(id, bytes);
        } else {
            self.count(id, frame::HEAD_BYTES as u64);
            self.out.push_with(|out| put_data(out, id, frame::FIN, 0));
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
        if stream.received {
            self.streams.remove(id);
        }
    }

    /// The text of a reply's header block.
    fn write_head(&mut self, head: &ResponseHead) {
        let writer = &mut self.writer;
        if let Some(text) = self.repeated.block(head.status, head, 0) {
            writer.repeat(text);
            return;
        }
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
        if writer.secrets.is_empty() {
            self.repeated.keep(head.status, head, &writer.text, 0);
        }
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
