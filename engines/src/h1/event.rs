//! Events of an HTTP/1 connection.

use crate::http::{Fault, Fields, RequestHead};

/// Something the peer sent, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A request head. If its `fault` is set, answer it and close: no body
    /// event follows. If its `body` is `BodyLength::None` no body event
    /// follows either; else `BodyEnd` or `BodyFault` ends the body.
    Head(RequestHead),
    /// Bytes of the request body, or of a tunnel after 101.
    Data(Vec<u8>),
    /// The trailer section of a chunked body, if it had fields.
    Trailers(Fields),
    /// The request body is complete.
    BodyEnd,
    /// The framing of the body is broken; close after the response.
    BodyFault(Fault),
    /// The peer has closed its side, between requests or within one.
    Eof,
}

/// Fate of the connection after a response; from `Conn::finish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Keep it; a next request may already have arrived.
    KeepAlive,
    /// Read and drop the peer's remaining bytes, then close.
    Linger,
    /// Close.
    Close,
    /// The request body is still coming and is being discarded: call `finish`
    /// again at `BodyEnd` or `BodyFault`.
    AwaitBody,
}

/// Phase of a connection; decides which timeout applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No byte of a next request has been received.
    Idle,
    /// A part of a head is held.
    Head,
    /// A request body is being received.
    Body,
    /// The request is complete and has not been finished.
    Respond,
}
