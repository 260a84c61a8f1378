//! The peer of a connection.

use std::fmt;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

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
                IpAddr::V4(ip) => push_v4(ip.octets(), out),
                // A vector takes everything.
                IpAddr::V6(ip) => drop(write!(out, "{ip}")),
            },
            Self::Unix => out.extend_from_slice(b"unix:"),
        }
    }
}

/// Four numbers with points between them, appended at once.
fn push_v4(octets: [u8; 4], out: &mut Vec<u8>) {
    let (mut text, mut len) = ([0; 16], 0);
    for octet in octets {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let from = 2 - usize::from(octet > 9) - usize::from(octet > 99);
        for digit in &digits[from..] {
            text[len] = b'0' + digit;
            len += 1;
        }
        text[len] = b'.';
        len += 1;
    }
    out.extend_from_slice(&text[..len - 1]);
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
