//! The engine of a connection with streams: that of HTTP/2 or that of SPDY, which are driven alike.
//!
//! HTTP/2's lies in the connection itself, so that a choice costs its hot path a branch and no pointer.

use engines::http::{Chunk, Gather, RequestHead, ResponseHead};
use engines::mux::{Plan, Want};
use engines::{h2, spdy};
use server_http::conf_core::{Http2Loc, SpdyLoc};
use server_http::exchange::{Exchange, Offers};
use server_http::http::Http;

/// Parts that wait for their next use. They are boxed where they are used, and move as pointers.
#[allow(
    clippy::vec_box,
    reason = "unboxing would move hundreds of bytes at each use"
)]
pub(crate) type Pool<T> = Vec<Box<T>>;

/// One of the two.
#[allow(
    clippy::large_enum_variant,
    reason = "HTTP/2 is the usual one, and the connection's part is boxed as a whole"
)]
pub(crate) enum Engine {
    H2(h2::Conn),
    Spdy(Box<spdy::Conn>),
}

/// Why a stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It was not begun; the client may ask elsewhere.
    Refused,
    /// The response cannot be sent, or not to its end.
    Internal,
    /// The client has taken nothing for too long.
    TimedOut,
}

/// Calls a function that both engines have.
macro_rules! both {
    ($self:ident, $engine:ident => $call:expr) => {
        match $self {
            Self::H2($engine) => $call,
            Self::Spdy($engine) => $call,
        }
    };
}

impl Engine {
    /// Takes bytes from the peer; requests use the memory of `spares`.
    #[inline]
    pub(super) fn receive(&mut self, input: &[u8], spares: &mut Pool<RequestHead>) {
        both!(self, engine => {
            engine.swap_spares(spares);
            engine.receive(input);
            engine.swap_spares(spares);
        });
    }

    pub(super) fn receive_eof(&mut self) {
        both!(self, engine => engine.receive_eof());
    }

    #[inline]
    pub(super) fn wants_input(&self) -> bool {
        both!(self, engine => engine.wants_input())
    }

    #[inline]
    pub(super) fn transmit(&mut self, out: &mut Gather) {
        both!(self, engine => engine.transmit(out));
    }

    #[inline]
    pub(super) fn advance(&mut self, room: u64, now_ms: u64) -> Want {
        both!(self, engine => engine.advance(room, now_ms))
    }

    /// Sends the head of a response; trailers may follow its body where an exchange has something to say at its end.
    #[inline]
    pub(super) fn send_head(&mut self, stream: u32, x: &Exchange) -> u64 {
        let plan = |chunk_bytes: u64| Plan {
            trailers: x.on_end.is_some(),
            chunk_bytes: chunk_bytes as usize,
        };
        match self {
            Self::H2(engine) => {
                let chunk_bytes = x.loc::<Http2Loc>(&x.http).chunk_size.0;
                engine.send_head(stream, &x.response, plan(chunk_bytes))
            }
            Self::Spdy(engine) => {
                let chunk_bytes = x.loc::<SpdyLoc>(&x.http).chunk_size.0;
                engine.send_head(stream, &x.response, plan(chunk_bytes))
            }
        }
    }

    /// Which servers offer the protocol, where not all do.
    #[inline]
    pub(super) fn offers(&self) -> Option<Offers> {
        match self {
            Self::H2(_) => Some(Http::speaks_http2),
            Self::Spdy(_) => None,
        }
    }

    /// Whether a response to this request may push others; SPDY's is never asked to.
    #[inline]
    pub(super) fn may_push(&self, stream: u32) -> bool {
        match self {
            Self::H2(engine) => engine.may_push(stream),
            Self::Spdy(_) => false,
        }
    }

    #[inline]
    pub(super) fn send_data(&mut self, stream: u32, chunk: Chunk) {
        both!(self, engine => engine.send_data(stream, chunk));
    }

    #[inline]
    pub(super) fn send_end(&mut self, stream: u32, trailers: Option<&ResponseHead>) {
        both!(self, engine => engine.send_end(stream, trailers));
    }

    #[inline]
    pub(super) fn discard_body(&mut self, stream: u32) {
        both!(self, engine => engine.discard_body(stream));
    }

    pub(super) fn consumed(&mut self, stream: u32, bytes: u64) {
        both!(self, engine => engine.consumed(stream, bytes));
    }

    /// Lets the whole body of a request come without waiting for windows.
    pub(super) fn want_whole_body(&mut self, stream: u32) {
        both!(self, engine => engine.want_whole_body(stream));
    }

    pub(super) fn stall(&mut self, stream: u32) {
        both!(self, engine => engine.stall(stream));
    }

    pub(super) fn resume(&mut self, stream: u32) {
        both!(self, engine => engine.resume(stream));
    }

    pub(super) fn blocked_since(&mut self, stream: u32) -> Option<u64> {
        both!(self, engine => engine.blocked_since(stream))
    }

    pub(super) fn sent_bytes(&mut self, stream: u32) -> u64 {
        both!(self, engine => engine.sent_bytes(stream))
    }

    /// Whether the engine holds memory that it can do without while the connection is idle.
    #[inline]
    pub(super) fn could_rest(&self) -> bool {
        match self {
            Self::H2(_) => false,
            Self::Spdy(engine) => engine.could_rest(),
        }
    }

    /// Gives that memory back.
    pub(super) fn rest(&mut self) {
        if let Self::Spdy(engine) = self {
            engine.rest();
        }
    }

    pub(super) fn seconds_passed(&mut self, seconds: u32) {
        both!(self, engine => engine.seconds_passed(seconds));
    }

    /// The stream whose header block has begun to come and is not whole; [`NO_STREAM`] where it is another frame that is
    /// awaited, for which only SPDY has a time.
    #[inline]
    pub(super) fn awaited(&self) -> Option<u32> {
        match self {
            Self::H2(engine) => engine.awaited_block(),
            Self::Spdy(engine) => {
                let other = engine.is_incomplete().then_some(NO_STREAM);
                engine.awaited_block().or(other)
            }
        }
    }

    pub(super) fn give_up_block(&mut self) -> bool {
        both!(self, engine => engine.give_up_block())
    }

    pub(super) fn reset(&mut self, stream: u32, reason: Reason) {
        match self {
            Self::H2(engine) => {
                let code = match reason {
                    Reason::Refused => h2::REFUSED_STREAM,
                    Reason::Internal => h2::INTERNAL_ERROR,
                    // As in nginx, whose code for it this is.
                    Reason::TimedOut => h2::PROTOCOL_ERROR,
                };
                engine.reset(stream, code);
            }
            Self::Spdy(engine) => {
                let code = match reason {
                    Reason::Refused => spdy::REFUSED_STREAM,
                    Reason::Internal | Reason::TimedOut => spdy::INTERNAL_ERROR,
                };
                engine.reset(stream, code);
            }
        }
    }

    pub(super) fn drain(&mut self) {
        both!(self, engine => engine.drain());
    }

    pub(super) fn end(&mut self) {
        both!(self, engine => engine.end());
    }

    pub(super) fn end_after(&mut self, last: u32) {
        both!(self, engine => engine.end_after(last));
    }

    pub(super) fn is_ending(&self) -> bool {
        both!(self, engine => engine.is_ending())
    }

    #[inline]
    pub(super) fn is_over(&mut self) -> bool {
        both!(self, engine => engine.is_over())
    }
}

/// A number that no stream has.
pub(super) const NO_STREAM: u32 = u32::MAX;
