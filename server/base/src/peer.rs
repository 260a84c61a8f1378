//! Who is at the other end of a connection.

use std::fmt;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use crate::decimal::push_decimal;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An address.
    Inet(SocketAddr),
    /// A UNIX-domain socket.
    Unix,
}

impl Peer {
    /// Appends the address without the port, as logs show it. A formatter takes several times as long.
    pub fn push(self, out: &mut Vec<u8>) {
        match self {
            Self::Inet(addr) => match addr.ip() {
                IpAddr::V4(ip) => {
                    for (n, octet) in ip.octets().into_iter().enumerate() {
                        if n > 0 {
                            out.push(b'.');
                        }
                        push_decimal(out, octet.into());
                    }
                }
                // A vector takes everything.
                IpAddr::V6(ip) => drop(write!(out, "{ip}")),
            },
            Self::Unix => out.extend_from_slice(b"unix:"),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_pushed_as_it_is_formatted() {
        for text in [
            "127.0.0.1:80",
            "255.10.0.9:1",
            "[::1]:443",
            "[::ffff:10.1.2.3]:443",
            "[fe80::1%3]:443",
        ] {
            let peer = Peer::Inet(text.parse().expect("an address"));
            let mut out = Vec::new();
            peer.push(&mut out);
            assert_eq!(out, peer.to_string().into_bytes());
        }
        let mut out = Vec::new();
        Peer::Unix.push(&mut out);
        assert_eq!(out, Peer::Unix.to_string().into_bytes());
    }
}
