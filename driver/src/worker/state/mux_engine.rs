//! The engine of a connection with streams: HTTP/2 or SPDY.
//!
//! All that the driver does differently for one protocol on `mux` is here and in its settings (`worker/thread_config.rs`).
//!
//! HTTP/2 is stored inline: the hot path pays a branch and no pointer.

use std::rc::Rc;

use engines::http::{self, Chunk, OutputQueue, RequestHead, ResponseHead};
use engines::mux::{SendAction, SendOptions};
use engines::{h2, spdy};
use server_http::conf_core::{Http2Loc, SpdyLoc};
use server_http::exchange::{Exchange, Offers};
use server_http::http::Http;

use crate::worker::thread_config::MuxSettings;

/// Unused parts. Their users box them, so they move as pointers.
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

/// Reason of a stream's reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was not begun; the client may retry elsewhere.
    Refused,
    /// The response cannot be sent, or not to its end.
    Internal,
    /// The client has taken nothing for too long.
    TimedOut,
}

/// Does something with the engine, whichever it is.
macro_rules! with_engine {
    ($of:expr, $engine:ident => $call:expr) => {
        match $of {
            $crate::worker::state::mux_engine::Engine::H2($engine) => $call,
            $crate::worker::state::mux_engine::Engine::Spdy($engine) => $call,
        }
    };
}
pub(crate) use with_engine;

/// The first bytes of a connection in the clear that speaks a protocol: HTTP/2's preface (RFC 9113 section 3.3), a control
/// frame of SPDY. The first byte of that frame begins no method.
pub(crate) fn preface(protocol: http::Protocol) -> &'static [u8] {
    match protocol {
        http::Protocol::Http2 => h2::PREFACE,
        http::Protocol::Spdy => &[0x80],
        http::Protocol::Http1 | http::Protocol::Http3 => &[],
    }
}

impl Engine {
    /// The action of the connection, as the error log names it.
    #[cold]
    pub(crate) fn action(&self) -> &'static str {
        match self {
            Self::H2(_) => "processing HTTP/2 connection",
            Self::Spdy(_) => "processing SPDY",
        }
    }

    /// The engine for a new connection; `None` for a protocol that has none with streams.
    #[inline]
    pub(crate) fn new(protocol: http::Protocol, settings: &MuxSettings) -> Option<Self> {
        match protocol {
            http::Protocol::Http2 => Some(Self::H2(h2::Conn::new(Rc::clone(&settings.h2)))),
            http::Protocol::Spdy => {
                let engine = spdy::Conn::new(Rc::clone(&settings.spdy));
                Some(Self::Spdy(Box::new(engine)))
            }
            http::Protocol::Http1 | http::Protocol::Http3 => None,
        }
    }

    /// Takes bytes from the peer; requests use the memory of `spares`.
    #[inline]
    pub(crate) fn receive(&mut self, input: &[u8], spares: &mut Pool<RequestHead>) {
        with_engine!(self, engine => {
            engine.swap_spares(spares);
            engine.receive(input);
            engine.swap_spares(spares);
        });
    }

    #[inline]
    pub(crate) fn wants_input(&self) -> bool {
        with_engine!(self, engine => engine.wants_input())
    }

    /// Sends the head of a response; trailers may follow its body if the exchange has a function for its end.
    #[inline]
    pub(crate) fn send_head(&mut self, stream: u32, x: &Exchange) -> u64 {
        let plan = |chunk_bytes: u64| SendOptions {
            trailers: x.response.on_end.is_some(),
            chunk_bytes: chunk_bytes as usize,
        };
        match self {
            Self::H2(engine) => {
                let chunk_bytes = x.route.loc::<Http2Loc>().chunk_size.0;
                engine.send_head(stream, &x.response.head, plan(chunk_bytes))
            }
            Self::Spdy(engine) => {
                let chunk_bytes = x.route.loc::<SpdyLoc>().chunk_size.0;
                engine.send_head(stream, &x.response.head, plan(chunk_bytes))
            }
        }
    }

    /// The check of servers that offer the protocol; `None` if all do.
    #[inline]
    pub(crate) fn offers(&self) -> Option<Offers> {
        match self {
            Self::H2(_) => Some(Http::speaks_http2),
            Self::Spdy(_) => None,
        }
    }

    /// Whether a response to this request may push others; never with SPDY.
    #[inline]
    pub(crate) fn may_push(&self, stream: u32) -> bool {
        match self {
            Self::H2(engine) => engine.may_push(stream),
            Self::Spdy(_) => false,
        }
    }

    /// Whether the engine holds memory that it can do without while the connection is idle.
    #[inline]
    pub(crate) fn can_shrink(&self) -> bool {
        match self {
            Self::H2(_) => false,
            Self::Spdy(engine) => engine.can_shrink(),
        }
    }

    /// Releases that memory.
    pub(crate) fn shrink(&mut self) {
        if let Self::Spdy(engine) = self {
            engine.shrink();
        }
    }

    /// The stream with an incomplete header block; [`NO_STREAM`] for another incomplete frame, for which only SPDY has a
    /// time.
    #[inline]
    pub(crate) fn awaited(&self) -> Option<u32> {
        match self {
            Self::H2(engine) => engine.awaited_block(),
            Self::Spdy(engine) => {
                let other = engine.is_incomplete().then_some(NO_STREAM);
                engine.awaited_block().or(other)
            }
        }
    }

    pub(crate) fn reset(&mut self, stream: u32, reason: Reason) {
        let code = self.code(reason);
        with_engine!(self, engine => engine.reset(stream, code));
    }

    /// Resets a stream behind its queued bytes; false if no body is being sent on it.
    pub(crate) fn break_off(&mut self, stream: u32, reason: Reason) -> bool {
        let code = self.code(reason);
        with_engine!(self, engine => engine.break_off(stream, code))
    }

    fn code(&self, reason: Reason) -> u32 {
        match (self, reason) {
            (Self::H2(_), Reason::Refused) => h2::REFUSED_STREAM,
            (Self::H2(_), Reason::Internal) => h2::INTERNAL_ERROR,
            // As in nginx.
            (Self::H2(_), Reason::TimedOut) => h2::PROTOCOL_ERROR,
            (Self::Spdy(_), Reason::Refused) => spdy::REFUSED_STREAM,
            (Self::Spdy(_), Reason::Internal | Reason::TimedOut) => spdy::INTERNAL_ERROR,
        }
    }

    pub(crate) fn is_ending(&self) -> bool {
        with_engine!(self, engine => engine.is_ending())
    }
}

/// Defines functions of the engine that both of its protocols have.
macro_rules! forward {
    ($($(#[$meta:meta])* $name:ident($($arg:ident: $kind:ty),*) $(-> $out:ty)?;)+) => {
        impl Engine {
            $($(#[$meta])*
            pub(crate) fn $name(&mut self $(, $arg: $kind)*) $(-> $out)? {
                with_engine!(self, engine => engine.$name($($arg),*))
            })+
        }
    };
}

forward! {
    receive_eof();
    #[inline]
    transmit(out: &mut OutputQueue);
    #[inline]
    advance(room: u64, now_ms: u64) -> SendAction;
    #[inline]
    send_data(stream: u32, chunk: Chunk);
    #[inline]
    send_end(stream: u32, trailers: Option<&ResponseHead>);
    #[inline]
    discard_body(stream: u32);
    consumed(stream: u32, bytes: u64);
    /// Lets the whole body of a request come without waiting for windows.
    want_whole_body(stream: u32);
    /// Lets the body come in pieces; this many bytes may be on their way unused.
    want_body(stream: u32, bytes: u32);
    stall(stream: u32);
    resume(stream: u32);
    blocked_since(stream: u32) -> Option<u64>;
    sent_bytes(stream: u32) -> u64;
    #[inline]
    tick(now_ms: u64);
    give_up_block() -> Option<Box<RequestHead>>;
    drain();
    end();
    end_after(last: u32);
    #[inline]
    is_over() -> bool;
}

/// A number that no stream has.
pub(crate) const NO_STREAM: u32 = u32::MAX;
