//! Protocol errors of a peer, with the code and scope of each.

use crate::hpack;
use crate::mux::{Codes, protocol_error};

errors! {
    /// A peer's violation of HTTP/2; all of them end the connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProtocolError {
        /// The connection does not begin with the preface (RFC 9113 section 3.4). A SETTINGS frame next is not
        /// required.
        BadPreface = "client sent invalid http2 preface",
        /// A frame is longer than allowed, or its length is none of its kind's.
        FrameSize = "client sent frame with incorrect length",
        /// A frame on a stream, or on none, that is not valid there.
        WrongStream = "client sent frame with incorrect identifier",
        /// A frame other than CONTINUATION inside of a header block, or CONTINUATION outside.
        BrokenHeaderBlock = "client sent inappropriate frame while CONTINUATION was expected",
        /// A header block that is no HPACK.
        Compression(hpack::Fault) = "client sent invalid header block",
        /// A field without a name.
        EmptyFieldName = "client sent zero header name length",
        /// Padding longer than the frame.
        BadPadding = "client sent padded frame with incorrect length",
        /// A frame on a stream that was never opened, or with a number lower than an earlier one.
        BadStreamNumber = "client sent frame for a stream that was never opened",
        /// DATA or HEADERS on a stream that the peer has closed.
        ClosedStream = "client sent frame for a stream that it had closed",
        /// A setting out of its range.
        BadSetting = "client sent SETTINGS frame with incorrect value",
        /// A window update of 0 on the connection.
        ZeroWindowUpdate = "client sent WINDOW_UPDATE frame with incorrect window increment 0",
        /// A window of the connection beyond 2^31-1, or one of a stream by a setting.
        WindowOverflow = "client violated flow control: window overflow",
        /// More data than a window allowed.
        WindowExceeded = "client violated flow control: more data than allowed",
        /// PUSH_PROMISE from a client.
        PushFromClient = "client sent PUSH_PROMISE frame",
        /// PUSH_PROMISE from a server although push is disabled.
        PushUnasked = "client sent PUSH_PROMISE frame",
        /// A server closes the connection while streams are open.
        Closed = "client closed the connection inside of a response",
        /// A header block longer than the limit, or in too many frames.
        HeaderFlood = "client sent too large header block",
        /// More frames without progress than the budget allows.
        Flood = "http2 flood detected",
    }
}

impl ProtocolError {
    /// The error code of the GOAWAY (RFC 9113 section 7).
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::BadSetting | Self::BadPreface | Self::WrongStream | Self::BadPadding => {
                PROTOCOL_ERROR
            }
            Self::BrokenHeaderBlock | Self::BadStreamNumber | Self::ZeroWindowUpdate => {
                PROTOCOL_ERROR
            }
            Self::PushFromClient | Self::PushUnasked | Self::EmptyFieldName => PROTOCOL_ERROR,
            Self::Closed => NO_ERROR,
            Self::WindowOverflow | Self::WindowExceeded => FLOW_CONTROL_ERROR,
            Self::ClosedStream => STREAM_CLOSED,
            // A block that ends too early is, as in nginx, a frame that is too small (RFC 9113 section 4.2).
            Self::FrameSize | Self::Compression(hpack::Fault::Truncated) => FRAME_SIZE_ERROR,
            Self::Compression(_) => COMPRESSION_ERROR,
            Self::HeaderFlood | Self::Flood => ENHANCE_YOUR_CALM,
        }
    }
}

protocol_error!(ProtocolError);

/// The error codes of RST_STREAM.
pub(super) const CODES: Codes = Codes {
    protocol_error: PROTOCOL_ERROR,
    flow_control_error: FLOW_CONTROL_ERROR,
    refused_stream: REFUSED_STREAM,
    cancel: CANCEL,
};
/// Graceful.
pub const NO_ERROR: u32 = 0;
/// The peer breaks the protocol.
pub const PROTOCOL_ERROR: u32 = 1;
/// Our own fault.
pub const INTERNAL_ERROR: u32 = 2;
/// The peer breaks flow control.
pub const FLOW_CONTROL_ERROR: u32 = 3;
/// A frame on a stream that is closed.
pub const STREAM_CLOSED: u32 = 5;
/// A frame of a wrong size.
pub const FRAME_SIZE_ERROR: u32 = 6;
/// The request was not begun.
pub const REFUSED_STREAM: u32 = 7;
/// The stream is no longer wanted.
pub const CANCEL: u32 = 8;
/// The compression state is broken.
pub const COMPRESSION_ERROR: u32 = 9;
/// The peer does too much.
pub const ENHANCE_YOUR_CALM: u32 = 11;
