//! Errors of attempts with servers: the side at fault, and whether another attempt is safe.
//!
//! Absent: the words of nginx's log for them, which are in `server_http`.

/// Reason of a failed attempt, and whether another attempt is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamError {
    /// The kind of failure.
    pub failure: Failure,
    /// Number of request bytes passed to the socket.
    pub sent_bytes: u64,
    /// The connection had been idle or had brought a response, or the server refused the stream. Another attempt is free.
    pub reused: bool,
    /// The server has certainly not processed the request. Sending it again is safe for every method.
    pub untouched: bool,
}

impl UpstreamError {
    /// A failure before any byte of the request was sent; `reused` is that of the connection.
    pub fn unsent(failure: Failure, reused: bool) -> Self {
        Self {
            failure,
            sent_bytes: 0,
            reused,
            untouched: true,
        }
    }
}

/// Kinds of failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A call on the socket failed: its name as in nginx's log ("connect()", "recv()", "writev()"), and the error number.
    Socket {
        /// The call.
        call: &'static str,
        /// The error number of the system.
        errno: i32,
    },
    /// `worker_connections` allows no further connection; already logged.
    NoConnection,
    /// The timeout for connecting, sending or reading has expired.
    TimedOut,
    /// The server closed the connection before the response was complete.
    Closed,
    /// The response is malformed; the text follows "upstream " in the log.
    Invalid(&'static str),
    /// As `Invalid`, with details from the response: the whole text of the log.
    InvalidDetail(Box<str>),
    /// TLS failed to establish, or broke; the text is the reason.
    Handshake(Box<str>),
    /// Our certificate for a handshake cannot be loaded; the text is the reason.
    Certificate(Box<str>),
    /// The request cannot be sent; the text is the reason.
    Unsendable(&'static str),
}
