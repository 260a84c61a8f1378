//! Readiness of sockets: the events of the poller, and the flags that a connection keeps of them.
//!
//! Events are edge-triggered: a flag stays until a read or a write finds that the socket has no more.

use sys::poll::Ready;

/// Remembered readiness of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketFlags {
    /// Input may be waiting in the socket.
    pub readable: bool,
    /// The socket may take output.
    pub writable: bool,
    /// The peer has ended its side or reset the connection: read until that is seen.
    pub hung_up: bool,
    /// The peer has ended its side, and the connection is whole: a read that empties the socket is the last.
    pub eof: bool,
}

/// Cause of a connection's turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Flags of the socket's event.
    pub socket: SocketFlags,
    /// The cause beside the socket.
    pub cause: TurnCause,
    /// The part of the turn to run.
    pub part: Part,
}

/// Causes of a turn beside the flags of the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TurnCause {
    /// An event of the socket, or a wake.
    #[default]
    Event,
    /// The deadline has passed.
    Expired,
    /// A read found the end of the connection.
    Broken,
    /// The connection is to be closed with all that is in progress.
    Aborted,
}

/// Parts of a turn: others may have theirs in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// The exchanges of the bytes that were read.
    Answer,
    /// Writing the answers, then the rest of the turn.
    Write,
}

impl SocketFlags {
    /// Input may be waiting.
    pub const READABLE: Self = Self {
        readable: true,
        writable: false,
        hung_up: false,
        eof: false,
    };

    /// Adds the flags of an event.
    #[inline]
    pub fn add(&mut self, event: Self) {
        self.readable |= event.readable || event.hung_up;
        self.writable |= event.writable;
        self.hung_up |= event.hung_up;
        self.eof |= event.eof;
    }
}

impl From<Ready> for SocketFlags {
    fn from(ready: Ready) -> Self {
        Self {
            readable: ready.readable,
            writable: ready.writable,
            hung_up: ready.closed,
            eof: ready.eof,
        }
    }
}

impl Readiness {
    /// A turn because of flags of the socket.
    pub fn of_socket(socket: impl Into<SocketFlags>) -> Self {
        Self {
            socket: socket.into(),
            ..Self::default()
        }
    }

    /// A turn for another cause.
    pub fn of(cause: TurnCause) -> Self {
        Self {
            cause,
            ..Self::default()
        }
    }

    /// A part of a turn.
    pub fn of_part(part: Part) -> Self {
        Self {
            part,
            ..Self::default()
        }
    }
}

/// Bytes of one write: a send takes about 20 us, and other connections wait for it. Larger writes save no CPU time.
pub const WRITE_BYTES: u64 = 128 << 10;
