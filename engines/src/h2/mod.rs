//! HTTP/2 on one connection, server role; the client role is in [`Client`].
//!
//! # Contract
//!
//! One caller drives a [`Conn`] with these methods, in any order. None of them blocks or fails:
//!
//! - Bytes enter by [`Conn::receive`], preface included; the end of the peer's bytes by [`Conn::receive_eof`].
//! - [`Conn::event`] returns their meaning, with the number of the stream.
//! - A response is `push`*, `send_interim`*, `send_head`, then the actions of [`Conn::advance`]. `SendAction::Body`
//!   is answered by `send_data`, `send_end` or `stall`; after `SendAction::Sent` the exchange is over.
//! - Bytes leave by [`Conn::transmit`].
//! - [`Conn::drain`] and [`Conn::end`] announce the end; at [`Conn::is_over`] the connection is closed.
//!
//! Events and output do not depend on how the input is cut.
//!
//! A peer's error is answered at the scope that the protocol defines: a broken message by 400 and a reset of its
//! stream, a broken stream by RST_STREAM, a broken connection by GOAWAY. Work that serves no request is limited by
//! a budget.
//!
//! Absent: timers, the meaning of a request, TLS, and the priorities of RFC 7540.
//!
//! Source: RFC 9113, RFC 9218, RFC 8441; limits and words of nginx.

mod blame;
mod client;
mod conn;
mod control;
mod encode;
mod error;
mod event;
mod frame;
mod headers;
mod names;
mod push;
mod receive;
mod request;
mod settings;

#[cfg(test)]
mod tests;

use crate::mux::budget;

pub use client::{Client, Event as ClientEvent, Http2};
pub use conn::{Conn, Http2Server, PREFACE};
pub use error::{
    CANCEL, COMPRESSION_ERROR, ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR,
    INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR, ProtocolError, REFUSED_STREAM, STREAM_CLOSED,
};
pub use event::{Event, SendAction, SendOptions};
pub use settings::Settings;
