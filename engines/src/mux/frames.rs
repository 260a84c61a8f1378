//! Frames that both roles of a protocol encode identically.

use std::fmt;

/// A protocol's encoding of the frames that end and control streams.
pub trait Frames: fmt::Debug {
    /// The errors that end a connection.
    type ProtocolError;
    /// How long the head of a frame is.
    const HEAD_BYTES: usize;
    /// The window of a stream, and of the connection, until it is changed.
    const DEFAULT_WINDOW: u32;
    /// The error codes of RST_STREAM.
    const CODES: Codes;

    /// Appends the head of a DATA frame.
    fn put_data(out: &mut Vec<u8>, stream: u32, len: usize, ended: bool);

    /// Appends RST_STREAM.
    fn put_reset(out: &mut Vec<u8>, stream: u32, code: u32);

    /// Appends WINDOW_UPDATE; stream 0 is the connection.
    fn put_grant(out: &mut Vec<u8>, stream: u32, bytes: u32);

    /// Appends GOAWAY with the last stream of the peer that is served, and with an error, if any.
    fn put_goaway(out: &mut Vec<u8>, last: u32, error: Option<&Self::ProtocolError>);
}

/// Error codes of RST_STREAM, in the numbers of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Codes {
    /// The message breaks the protocol.
    pub protocol_error: u32,
    /// It is more than its window allowed.
    pub flow_control_error: u32,
    /// The request was not begun.
    pub refused_stream: u32,
    /// The response is no longer wanted.
    pub cancel: u32,
}
