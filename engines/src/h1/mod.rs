//! HTTP/1.1, HTTP/1.0 and HTTP/0.9 on one connection, server role; the client role is in [`Client`].
//!
//! # Contract
//!
//! One caller drives a [`Conn`] with these methods, in any order. None of them blocks or fails:
//!
//! - Bytes enter by [`Conn::receive`], the end of the peer's bytes by [`Conn::receive_eof`].
//!   [`Conn::wants_input`] decides when to stop reading.
//! - [`Conn::event`] returns their meaning: a head, then the body of that request. No part of the
//!   next request is reported before [`Conn::finish`], so there is one request at a time and
//!   pipelined ones wait.
//! - The response is `send_interim`*, `send_head`, `send_data`*, `send_end`.
//!   It may start before the request body is complete.
//! - Bytes leave by [`Conn::transmit`].
//! - [`Conn::finish`] ends the exchange and returns the fate of the connection. An early call
//!   abandons an exchange; the result is then to close.
//!
//! Events and output do not depend on how the input is cut. Exceptions: the sizes of `Data` events, and the length
//! of a broken request line kept for the log.
//!
//! Parsing works on the received slice itself unless bytes are held back; only heads and body data are copied. With
//! heads returned by [`Conn::recycle`], a connection allocates nothing from request to request.
//!
//! Absent: timers (the driver reads [`Conn::phase`]), the meaning of a request, TLS.
//!
//! Source: RFC 9112; limits, answers and words of nginx.

mod blame;
mod chunked;
mod client;
mod conn;
mod encode;
mod event;
mod extension;
mod framing;
mod head;
mod header;
mod limit;
mod line;
mod send;
mod settings;
mod trailer;

#[cfg(test)]
mod tests;

pub use client::{Client, Event as ClientEvent, ProtocolError, RequestOptions};
pub(crate) use client::{Ends, FirstLine, ResponseParser, ends};
pub use conn::{Conn, PIPELINE_BUFFER_BYTES};
pub use event::{Event, Next, Phase};
pub use settings::Settings;
