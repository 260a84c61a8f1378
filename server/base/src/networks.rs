//! Addresses and networks as text, for `allow`, `geo`, `set_real_ip_from` and `debug_connection`.
//!
//! An IPv6 address that holds an IPv4 one (`::ffff:192.0.2.1`) counts as the IPv4 address.
//!
//! Source: nginx documentation, `ngx_http_access_module`, `ngx_http_geo_module`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::ConfigContext;
use crate::peer::Peer;
use conf::{ConfError, Directive, Word};

/// A network, or the clients of UNIX-domain sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Address, with the bits below the mask clear, and number of leading bits that count.
    V4(u32, u8),
    /// IPv6 address, with the bits below the mask clear, and number of leading bits that count.
    V6(u128, u8),
    /// UNIX-domain sockets.
    Unix,
}

impl Network {
    /// Reads `address` or `address/bits`; the flag is true if bits below the mask were set.
    pub fn parse(text: &[u8]) -> Option<(Self, bool)> {
        let (address, bits) = match memchr(b'/', text) {
            Some(at) => (&text[..at], Some(conf::parse_number(&text[at + 1..])?)),
            None => (text, None),
        };
        match parse_ip(address)? {
            IpAddr::V4(ip) => {
                let bits = width(bits, 32)?;
                let (ip, mask) = (ip.to_bits(), mask_v4(bits));
                Some((Self::V4(ip & mask, bits), ip & !mask != 0))
            }
            IpAddr::V6(ip) => {
                let bits = width(bits, 128)?;
                let (ip, mask) = (ip.to_bits(), mask_v6(bits));
                Some((Self::V6(ip & mask, bits), ip & !mask != 0))
            }
        }
    }

    /// Reads a word of a directive; warns if bits below the mask are set.
    pub fn take(cx: &mut dyn ConfigContext, d: &Directive, word: &Word) -> Option<Self> {
        let (network, low_bits) = Self::parse(&word.text)?;
        if low_bits {
            let text = format!("low address bits of {} are meaningless", word.as_str());
            cx.warn(ConfError::word(d, word, text));
        }
        Some(network)
    }

    /// Returns whether an address is in the network.
    pub fn has(self, peer: Peer) -> bool {
        match (self, peer) {
            (Self::V4(net, bits), Peer::Inet(addr)) => match addr.ip().to_canonical() {
                IpAddr::V4(ip) => ip.to_bits() & mask_v4(bits) == net,
                IpAddr::V6(_) => false,
            },
            (Self::V6(net, bits), Peer::Inet(addr)) => match addr.ip().to_canonical() {
                IpAddr::V6(ip) => ip.to_bits() & mask_v6(bits) == net,
                IpAddr::V4(_) => false,
            },
            (Self::Unix, Peer::Unix) => true,
            _ => false,
        }
    }
}

fn width(bits: Option<u64>, most: u8) -> Option<u8> {
    match bits {
        None => Some(most),
        Some(bits) => u8::try_from(bits).ok().filter(|bits| *bits <= most),
    }
}

fn mask_v4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

/// The mask of an IPv6 network.
pub fn mask_v6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

/// Reads an address. As in nginx zeros may lead a number, and 255.255.255.255 is no address.
pub fn parse_ip(text: &[u8]) -> Option<IpAddr> {
    if let Some(ip) = parse_v4(text) {
        return Some(IpAddr::V4(ip));
    }
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// Reads an IPv4 address other than 255.255.255.255.
pub fn parse_v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split(|b| *b == b'.');
    for octet in &mut octets {
        *octet = u8::try_from(conf::parse_number(parts.next()?)?).ok()?;
    }
    let ip = Ipv4Addr::from(octets);
    (parts.next().is_none() && !ip.is_broadcast()).then_some(ip)
}

fn memchr(byte: u8, text: &[u8]) -> Option<usize> {
    text.iter().position(|b| *b == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        let ip = parse_ip(text.as_bytes()).expect("an address");
        Peer::Inet((ip, 0).into())
    }

    #[test]
    fn networks_are_read_as_nginx_reads_them() {
        let net = |text: &str| Network::parse(text.as_bytes());
        assert_eq!(
            net("192.0.2.1"),
            Some((Network::V4(0xc000_0201, 32), false))
        );
        assert_eq!(
            net("192.0.2.1/24"),
            Some((Network::V4(0xc000_0200, 24), true))
        );
        assert_eq!(net("1.2.3.4/0"), Some((Network::V4(0, 0), true)));
        assert_eq!(
            net("010.0.0.0/8"),
            Some((Network::V4(0x0a00_0000, 8), false))
        );
        assert_eq!(
            net("2001:db8::/32"),
            Some((Network::V6(0x2001_0db8 << 96, 32), false))
        );
        assert_eq!(net("::1/0"), Some((Network::V6(0, 0), true)));
        for wrong in [
            "",
            "1.2.3",
            "1.2.3.256",
            "1.2.3.4/33",
            "::/129",
            "1.2.3.4/",
            "1.2.3.4.5",
            "255.255.255.255",
        ] {
            assert_eq!(net(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_network_has_its_addresses_and_no_others() {
        let net = |text: &str| Network::parse(text.as_bytes()).expect("a network").0;
        assert!(net("192.0.2.0/24").has(peer("192.0.2.255")));
        assert!(!net("192.0.2.0/24").has(peer("192.0.3.0")));
        assert!(net("192.0.2.0/24").has(peer("::ffff:192.0.2.7")));
        assert!(!net("::/0").has(peer("::ffff:192.0.2.7")));
        assert!(net("2001:db8::/32").has(peer("2001:db8:ffff::1")));
        assert!(!net("0.0.0.0/0").has(peer("2001:db8::1")));
        assert!(!net("0.0.0.0/0").has(Peer::Unix));
        assert!(Network::Unix.has(Peer::Unix));
    }
}
