//! Events of a multiplexed connection, and its requests to the driver.

use crate::http::{Fault, Fields, RequestHead};

/// Something the peer sent, in order; `ProtocolError` lists the connection errors of the protocol.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<ProtocolError> {
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
    /// The length of the request body is wrong; answer, if no answer was sent yet.
    BodyFault(u32, Fault),
    /// The stream is closed: the peer has reset it, or broken it. No more can be sent on it.
    Reset {
        /// Number of the stream.
        stream: u32,
        /// Bytes of the response that were sent, frame heads included.
        sent_bytes: u64,
    },
    /// The peer has broken the connection: nothing follows the bytes that wait to be transmitted.
    Failed(ProtocolError),
    /// The peer has closed its side.
    Eof,
}

impl<ProtocolError> Event<ProtocolError> {
    /// The stream of the event, if it concerns one.
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

/// Errors that end a connection of either protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A frame on a stream that was never opened.
    StreamNumber,
    /// More data than the window of the connection allowed.
    WindowExceeded,
    /// A window beyond 2^31-1.
    WindowOverflow,
    /// More frames without progress than the budget allows.
    Flood,
    /// A server closes the connection inside of a response.
    Closed,
}

/// Implements the shared part of both protocols' errors: the text for a server's error, and the variants of
/// [`Broken`].
macro_rules! protocol_error {
    ($error:ident) => {
        impl $error {
            /// The text if the peer is a server.
            #[must_use]
            pub fn of_server(self) -> String {
                self.message().replacen("client", "server", 1)
            }
        }

        impl From<$crate::mux::Broken> for $error {
            fn from(broken: $crate::mux::Broken) -> Self {
                match broken {
                    $crate::mux::Broken::StreamNumber => Self::BadStreamNumber,
                    $crate::mux::Broken::WindowExceeded => Self::WindowExceeded,
                    $crate::mux::Broken::WindowOverflow => Self::WindowOverflow,
                    $crate::mux::Broken::Flood => Self::Flood,
                    $crate::mux::Broken::Closed => Self::Closed,
                }
            }
        }
    };
}
pub(crate) use protocol_error;

/// Requests of a connection to the driver while it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendAction {
    /// The next piece, or the end, of the body of this stream.
    Body(u32),
    /// A response has been sent completely: its exchange ends.
    Sent {
        /// Number of the stream.
        stream: u32,
        /// Its bytes, frame heads included.
        bytes: u64,
    },
    /// Nothing, for now.
    Nothing,
}

/// Options for sending a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// Trailers may come: the body is requested even if it is known to be empty.
    pub trailers: bool,
    /// Most bytes of a DATA frame; capped by the peer's limit.
    pub chunk_bytes: usize,
}
