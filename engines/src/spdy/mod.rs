//! SPDY/3.1 on one connection: [`Conn`] in the server role, [`Client`] in the client role.
//!
//! # Contract
//!
//! One caller drives a [`Conn`] like one of HTTP/2, with these methods in any order. None of them blocks or fails:
//!
//! - Bytes enter by [`Conn::receive`]; the end of the peer's bytes by [`Conn::receive_eof`].
//! - [`Conn::event`] returns their meaning, with the number of the stream.
//! - A response is `send_head`, then the actions of [`Conn::advance`]. `SendAction::Body` is answered by
//!   `send_data`, `send_end` or `stall`; after `SendAction::Sent` the exchange is over.
//! - Bytes leave by [`Conn::transmit`].
//! - [`Conn::end`] announces the end; at [`Conn::is_over`] the connection is closed.
//!
//! Events and output do not depend on how the input is cut.
//!
//! A peer's error is answered as in nginx: a wrong request by 400, a broken header block or stream by RST_STREAM, a
//! broken connection by its end, which GOAWAY announces here. Work that serves no request is limited by a budget.
//!
//! Absent: timers, the meaning of a request, TLS, server push, CREDENTIAL, trailers of requests, and settings for
//! the client to persist. SPDY/2, SPDY/3 and SPDY/4 are absent too; their names are not offered.
//!
//! Source: draft-mbelshe-httpbis-spdy-00; the window of the connection is SPDY/3.1's. Limits and answers of nginx 1.9.4.

mod client;
mod conn;
mod control;
mod dictionary;
mod encode;
mod error;
mod event;
mod frame;
mod known;
mod pairs;
mod receive;
mod request;
mod settings;
mod syn;
mod zlib;

#[cfg(test)]
mod tests;

use crate::mux::budget;

pub use client::{Client, Event as ClientEvent, Spdy};
pub use conn::{Conn, SpdyServer};
pub use error::{
    CANCEL, FLOW_CONTROL_ERROR, INTERNAL_ERROR, INVALID_STREAM, OK, PROTOCOL_ERROR, ProtocolError,
    REFUSED_STREAM, STREAM_ALREADY_CLOSED,
};
pub use event::{Event, SendAction, SendOptions};
pub use settings::{DEFAULT_WINDOW, Settings};
