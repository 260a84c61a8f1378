//! The body of a request piece by piece, for a handler that passes it on while it is received; or the bytes that a
//! client sends through a tunnel.
//!
//! ```text
//! take -> Chunk     a piece, in memory
//!         Later     nothing now: the handler is run again, or called back, when more arrives
//!         End       all has been taken; of a tunnel, the client has ended its side
//!         Failed    it cannot be had: the status to answer with, if there is no answer yet
//! ```
//!
//! Untaken pieces are held. While [`HELD_BYTES`](super::HELD_BYTES) are held, the client is not read. The times of
//! `client_body_timeout` and its kin run only while the handler waits: a client is not charged for a slow server.
//!
//! Absent: trailers of requests, which are dropped.
//!
//! Source: nginx documentation, `proxy_request_buffering`, `client_body_timeout`, `client_max_body_size`.

use engines::http::{BodyLength, Chunk};
use server_base::errlog::Level;

use crate::debug_http;
use crate::decision::REQUEST_TIMEOUT;
use crate::exchange::request_body::{Limits, RequestBody, Stream};
use crate::exchange::{Ctx, Exchange};

/// The result of [`take`].
#[derive(Debug)]
pub enum Piece {
    /// The next piece.
    Chunk(Chunk),
    /// Nothing now.
    Later,
    /// There is no more.
    End,
    /// It cannot be had.
    Failed(u16),
}

/// Takes the next piece of the body; the first call also takes the bytes that came before. Not for a body that is
/// collected, and not for subrequests.
pub fn take(x: &mut Exchange, cx: &mut Ctx<'_>) -> Piece {
    begin(x, cx);
    let Some(request_body) = &mut x.input.body else {
        return Piece::End;
    };
    let Some(stream) = &mut request_body.stream else {
        return Piece::Failed(500);
    };
    stream.due = false;
    if let Some(status) = stream.failed {
        return Piece::Failed(status);
    }
    if let Some(bytes) = request_body.held.pop_front() {
        let len = bytes.len() as u64;
        request_body.held_bytes -= len;
        request_body.used += len;
        stream.record_taken(&bytes);
        return Piece::Chunk(Chunk::Owned(bytes));
    }
    if request_body.ended {
        return Piece::End;
    }
    let broken = stream.wait(cx.clock.mono_ms, REQUEST_TIMEOUT);
    if let Some(text) = broken {
        x.log(Level::Info, format_args!("{text}"));
        return Piece::Failed(REQUEST_TIMEOUT);
    }
    Piece::Later
}

/// Begins to take the body piece by piece, if that has not begun yet.
pub fn begin(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let request_body = x.input.body.as_ref();
    if request_body.is_none_or(|request_body| request_body.stream.is_none()) {
        open(x, cx);
    }
}

/// Number of bytes of the body that have been taken: they cannot be taken again.
pub fn taken_bytes(x: &Exchange) -> u64 {
    let request_body = x.input.body.as_ref();
    let stream = request_body.and_then(|request_body| request_body.stream.as_ref());
    stream.map_or(0, |stream| stream.taken)
}

/// Makes [`take`] return the bytes that the client sends behind its request, up to its end. For a response that
/// changes the protocol, before its head is sent; false if the request is not over.
pub fn open_tunnel(x: &mut Exchange, cx: &Ctx<'_>) -> bool {
    if !x.is_body_complete() {
        return false;
    }
    x.input.body = Some(Box::new(RequestBody {
        stream: Some(Stream::new(None, cx.clock.mono_ms)),
        ..RequestBody::default()
    }));
    true
}

fn open(x: &mut Exchange, cx: &mut Ctx<'_>) {
    debug_http!(x, "http read client request body");
    let loc = x.route.core_loc();
    let now_ms = cx.clock.mono_ms;
    let limits = Limits {
        pace: super::pace_of(loc, now_ms),
        // A length that was announced has been compared when the location was found.
        most: match x.head.body {
            BodyLength::Length(_) => 0,
            _ => loc.bodies.client_max_body_size.0,
        },
    };
    let complete = x.is_body_complete();
    let mut request_body = x.input.body.take().unwrap_or_default();
    debug_assert!(request_body.reader.is_none(), "it is collected");
    request_body.ended |= complete;
    let mut stream = Stream::new(Some(limits), now_ms);
    stream.keep_copy(loc.bodies.client_body_buffer_size.0);
    request_body.stream = Some(stream);
    request_body.pass(x, request_body.received, now_ms);
    x.input.body = Some(request_body);
}

impl RequestBody {
    /// Counts and checks the last `len` bytes of the held ones, for the handler that takes pieces.
    pub(super) fn pass(&mut self, x: &mut Exchange, len: u64, now_ms: u64) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        stream.due = true;
        stream.stop_waiting(now_ms);
        let Some(limits) = &mut stream.limits else {
            return;
        };
        limits.pace.record(len, now_ms);
        if limits.most != 0 && self.received > limits.most && stream.failed.is_none() {
            x.input.too_large = true;
            let before = self.received - len;
            x.log(
                Level::Error,
                format_args!(
                    "client intended to send too large chunked body: {before}+{len} bytes"
                ),
            );
            stream.failed = Some(413);
        }
        if stream.failed.is_some() {
            self.held.clear();
            self.used += std::mem::take(&mut self.held_bytes);
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
