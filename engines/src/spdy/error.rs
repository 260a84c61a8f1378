//! Protocol errors of a peer, with the code and scope of each.

use super::zlib::Unreadable;
use crate::mux::{Codes, protocol_error};

errors! {
    /// A peer's violation of SPDY; all of them end the connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProtocolError {
        /// A control frame of another version.
        BadVersion = "client sent invalid frame",
        /// A frame with an invalid length for its kind.
        FrameSize = "client sent frame with incorrect length",
        /// A frame reserved for servers, or HEADERS, which this server never expects.
        WrongFrame = "client sent unexpected SYN_REPLY or HEADERS frame",
        /// SYN_STREAM with a number that is not a client's, or lower than an earlier one.
        BadStreamNumber = "client sent SYN_STREAM frame with invalid Stream-ID",
        /// A header block that zlib cannot read.
        Compression = "client sent SYN_STREAM frame with corrupted header block",
        /// A header block encoded with another dictionary.
        WrongDictionary = "client sent SYN_STREAM frame with header block encoded using wrong dictionary",
        /// A setting out of its range.
        BadSetting = "client sent SETTINGS frame with incorrect INIT_WINDOW value",
        /// A window of the connection beyond 2^31-1.
        WindowOverflow = "client violated connection flow control: window overflow",
        /// More data than the window of the connection allowed.
        WindowExceeded = "client violated connection flow control: more data than allowed",
        /// A server closes the connection while streams are open.
        Closed = "client closed the connection inside of a response",
        /// A header block longer than the limit, or one that grows beyond it.
        HeaderFlood = "client sent too large header block",
        /// More frames without progress than the budget allows.
        Flood = "spdy flood detected",
    }
}

protocol_error!(ProtocolError);

impl From<Unreadable> for ProtocolError {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Corrupted => Self::Compression,
            Unreadable::WrongDictionary => Self::WrongDictionary,
            Unreadable::TooLong => Self::HeaderFlood,
        }
    }
}

/// The error codes of RST_STREAM.
pub(super) const CODES: Codes = Codes {
    protocol_error: PROTOCOL_ERROR,
    flow_control_error: FLOW_CONTROL_ERROR,
    refused_stream: REFUSED_STREAM,
    cancel: CANCEL,
};
/// Of GOAWAY: nothing is wrong.
pub const OK: u32 = 0;
/// The peer breaks the protocol; the same number in GOAWAY and in RST_STREAM.
pub const PROTOCOL_ERROR: u32 = 1;
/// A frame on a stream that is not open.
pub const INVALID_STREAM: u32 = 2;
/// The request was not begun.
pub const REFUSED_STREAM: u32 = 3;
/// The stream is no longer wanted.
pub const CANCEL: u32 = 5;
/// Our own fault.
pub const INTERNAL_ERROR: u32 = 6;
/// The peer breaks flow control.
pub const FLOW_CONTROL_ERROR: u32 = 7;
/// Data on a stream that its sender has ended.
pub const STREAM_ALREADY_CLOSED: u32 = 9;
