//! What an HTTP/2 connection tells its driver.

use super::error::Misdeed;
use crate::http::{Fault, Fields, RequestHead};

/// Something the peer sent, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A request head on a new stream. If its `fault` is set, answer it; no body event follows.
    Head {
        /// Number of the stream.
        stream: u32,
        /// The head.
        head: Box<RequestHead>,
    },
    /// Bytes of a request body; they count against the stream's window until `consumed` is called.
    Data {
        /// Number of the stream.
        stream: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The trailer section of a request body.
    Trailers {
        /// Number of the stream.
        stream: u32,
        /// The fields.
        fields: Fields,
    },
    /// The request body is complete.
    BodyEnd(u32),
    /// The request body is not as announced; answer, if nothing has been answered yet.
    BodyFault(u32, Fault),
    /// The stream is gone: the peer has reset it, or broken it. Nothing more can be sent on it.
    Reset {
        /// Number of the stream.
        stream: u32,
        /// Bytes of the response that were sent, frame heads included.
        sent_bytes: u64,
    },
    /// The peer has broken the connection: what waits to be transmitted is the last.
    Failed(Misdeed),
    /// The peer has closed its side.
    Eof,
}

impl Event {
    /// The stream that it is about, if it is about one.
    #[must_use]
    pub fn stream(&self) -> Option<u32> {
        match self {
            Self::Head { stream, .. }
            | Self::Data { stream, .. }
            | Self::Trailers { stream, .. }
            | Self::BodyEnd(stream)
            | Self::BodyFault(stream, _)
            | Self::Reset { stream, .. } => Some(*stream),
            Self::Failed(_) | Self::Eof => None,
        }
    }
}

/// What [`Conn::advance`](super::Conn::advance) asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The next piece, or the end, of the body of this stream.
    Body(u32),
    /// A response has been sent whole: its exchange ends.
    Sent {
        /// Number of the stream.
        stream: u32,
        /// Its bytes, frame heads included.
        bytes: u64,
    },
    /// Nothing, for now.
    Nothing,
}
