//! Responses: heads are encoded at once, bodies are pulled and sent as windows and priorities allow.
//!
//! [`Conn::advance`] is the transmit builder; `mux::outgoing` chooses the stream and the number of bytes.
//!
//! Source: RFC 9113 sections 6.1, 6.2, 8.1; draft-mbelshe-httpbis-spdy-00 sections 2.2.2, 2.6.2, 2.6.7.

use super::{Conn, Protocol, State};
use crate::http::{Chunk, ResponseHead};
use crate::mux::{Frames, SendAction, SendOptions, Step, budget};

impl<P: Protocol> Conn<P> {
    /// Sends the head of the response and returns its bytes on the wire.
    pub fn send_head(&mut self, id: u32, head: &ResponseHead, plan: SendOptions) -> u64 {
        let stream = self.streams.get(id);
        let Some(ended) = stream.and_then(|stream| stream.out.begin(head, plan, stream.is_head))
        else {
            return 0;
        };
        let bytes = P::put_response(self, id, head, ended);
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

    /// Truncates the body: queued data is sent, then the stream is reset, which [`SendAction::Sent`] reports. False
    /// if there is no body to break off.
    pub fn break_off(&mut self, id: u32, code: u32) -> bool {
        self.sender.break_off(&mut self.streams, id, code)
    }

    /// The source of a body has nothing now and is not polled until [`Self::resume`].
    pub fn stall(&mut self, id: u32) {
        self.sender.stall(&mut self.streams, id, true);
    }

    /// The source of a body has more.
    pub fn resume(&mut self, id: u32) {
        self.sender.stall(&mut self.streams, id, false);
    }

    /// Time since when the window of a stream, or that of the connection, has blocked a response that is otherwise
    /// ready; in the clock of [`Self::advance`].
    pub fn blocked_since(&mut self, id: u32) -> Option<u64> {
        let stream = self.streams.get(id)?;
        self.sender.blocked_since(&stream.out)
    }

    /// Bytes of a response sent so far, frame heads included.
    pub fn sent_bytes(&mut self, id: u32) -> u64 {
        self.streams
            .get(id)
            .map_or(0, |stream| stream.out.sent_bytes)
    }

    /// Makes progress until something is needed, or `room` bytes wait to be transmitted.
    // Inlined into a turn of the driver it would slow down the turns of HTTP/1, too.
    #[inline(never)]
    pub fn advance(&mut self, room: u64, now_ms: u64) -> SendAction {
        loop {
            let most = self.protocol.frame_bytes();
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
    pub(crate) fn count(&mut self, id: u32, bytes: u64) {
        if let Some(stream) = self.streams.get(id) {
            stream.out.sent_bytes += bytes;
        }
    }

    /// Sends a frame of `len` bytes from the queue of a stream.
    fn put_data(&mut self, id: u32, len: u64) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let (stream, out) = (&mut stream.out, &mut self.out);
        let piece =
            self.sender
                .put_data(id, stream, len, out, P::Frames::HEAD_BYTES, |out, last| {
                    P::Frames::put_data(out, id, len as usize, last);
                });
        if piece.all || len >= budget::USEFUL_BYTES as u64 {
            self.budget.earn(budget::DATA);
        } else {
            // Small windows cause such frames; once the budget is empty, the peer's next frame with a cost is a
            // flood.
            self.budget.drain(budget::FRAME);
        }
        if piece.last {
            self.finish(id);
        }
    }

    /// Ends a stream without queued bytes: with its trailers, or with an empty frame.
    fn put_end(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if let Some(code) = stream.out.broken() {
            self.sender.finish_broken(id, stream.out.sent_bytes);
            return self.reset(id, code);
        }
        let Some(trailers) = stream.out.take_trailers() else {
            return;
        };
        let bytes = if let Some(trailers) = trailers {
            P::put_trailers(self, id, &trailers)
        } else {
            self.out
                .push_with(|out| P::Frames::put_data(out, id, 0, true));
            P::Frames::HEAD_BYTES as u64
        };
        self.count(id, bytes);
        self.finish(id);
    }

    /// Our side of a stream has ended.
    fn finish(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let state = std::mem::replace(&mut stream.state, State::HalfClosedLocal);
        self.sender.finish(id, &mut stream.out);
        self.budget.earn(budget::RESPONSE);
        match state {
            State::HalfClosedRemote => _ = self.streams.remove(id),
            State::Malformed { .. } => self.reset(id, P::Frames::CODES.protocol_error),
            _ => P::outlived(self, id),
        }
    }
}
