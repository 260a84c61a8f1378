//! Who is at the other end of a connection.

use std::fmt;
use std::net::SocketAddr;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An address.
    Inet(SocketAddr),
    /// A UNIX-domain socket.
    Unix,
}

/// The address without the port, as logs show it.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(addr) => addr.ip().fmt(f),
            Self::Unix => f.write_str("unix:"),
        }
    }
}
