//! Addresses and networks as text, and which address `X-Forwarded-For` names: what `allow`, `geo` and
//! `set_real_ip_from` share.
//!
//! An IPv6 address that holds an IPv4 one (`::ffff:192.0.2.1`) counts as the IPv4 address.
//!
//! Source: nginx documentation, `ngx_http_realip_module`, `ngx_http_geo_module`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use conf::{ConfError, Directive, Word};
use engines::http::FieldId;
use server_core::build::Build;
use server_core::exchange::{Exchange, Peer};

/// A network, or the clients of UNIX-domain sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// Address, with the bits below the mask clear, and number of leading bits that count.
    V4(u32, u8),
    /// The same for IPv6.
    V6(u128, u8),
    /// UNIX-domain sockets.
    Unix,
}

impl Network {
    /// Reads `address` or `address/bits`; also tells whether bits below the mask were set.
    pub(crate) fn parse(text: &[u8]) -> Option<(Self, bool)> {
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

    /// Reads a word of a directive; warns where bits below the mask are set.
    pub(crate) fn take(b: &mut Build, d: &Directive, word: &Word) -> Option<Self> {
        let (network, low_bits) = Self::parse(&word.text)?;
        if low_bits {
            let text = format!("low address bits of {} are meaningless", word.as_str());
            b.warn(ConfError::word(d, word, text));
        }
        Some(network)
    }

    /// Whether an address lies in the network.
    pub(crate) fn has(self, peer: Peer) -> bool {
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
pub(crate) fn mask_v6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

/// Reads an address. As in nginx zeros may lead a number, and 255.255.255.255 is no address.
pub(crate) fn parse_ip(text: &[u8]) -> Option<IpAddr> {
    if let Some(ip) = parse_v4(text) {
        return Some(IpAddr::V4(ip));
    }
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// Reads an IPv4 address other than 255.255.255.255.
pub(crate) fn parse_v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split(|b| *b == b'.');
    for octet in &mut octets {
        *octet = u8::try_from(conf::parse_number(parts.next()?)?).ok()?;
    }
    let ip = Ipv4Addr::from(octets);
    (parts.next().is_none() && !ip.is_broadcast()).then_some(ip)
}

/// Reads an address with or without a port, which is 0 where there is none.
fn parse_peer(text: &[u8]) -> Option<SocketAddr> {
    if let Some(ip) = parse_ip(text) {
        return Some(SocketAddr::new(ip, 0));
    }
    let (address, rest) = match text.strip_prefix(b"[") {
        Some(inner) => {
            let end = memchr(b']', inner)?;
            (&inner[..end], &inner[end + 1..])
        }
        None => text.split_at(memchr(b':', text)?),
    };
    let port = match rest {
        [] => 0,
        [b':', digits @ ..] => u16::try_from(conf::parse_number(digits)?)
            .ok()
            .filter(|port| *port != 0)?,
        _ => return None,
    };
    Some(SocketAddr::new(parse_ip(address)?, port))
}

/// Reads a network where 255.255.255.255 is one, too.
///
/// # Errors
/// `invalid network`.
pub(crate) fn network(b: &mut Build, d: &Directive, word: &Word) -> Result<Network, ConfError> {
    if word.text == b"255.255.255.255" {
        return Ok(Network::V4(u32::MAX, 32));
    }
    Network::take(b, d, word).ok_or_else(|| {
        let text = format!("invalid network \"{}\"", word.as_str());
        ConfError::word(d, word, text)
    })
}

fn memchr(byte: u8, text: &[u8]) -> Option<usize> {
    text.iter().position(|b| *b == byte)
}

/// The client of an exchange: `peer`, or whom `X-Forwarded-For` names if it is trusted to.
pub(crate) fn client(x: &Exchange, peer: Peer, trusted: &[Network], recursive: bool) -> Peer {
    if trusted.is_empty() {
        return peer;
    }
    let fields: Vec<&[u8]> = x.head.fields_by_id(FieldId::XForwardedFor).collect();
    forwarded(peer, &fields, trusted, recursive).unwrap_or(peer)
}

/// The client that the fields of trusted proxies name; `None` where `peer` is not to be replaced.
///
/// `fields` are values of `X-Forwarded-For` in the order in which they came. The last address counts; with
/// `recursive` the last one that is not trusted.
pub(crate) fn forwarded(
    peer: Peer,
    fields: &[&[u8]],
    trusted: &[Network],
    recursive: bool,
) -> Option<Peer> {
    let mut found = None;
    for field in fields.iter().rev() {
        let (named, whole) = walk_back(found.unwrap_or(peer), field, trusted, recursive);
        found = named.or(found);
        if !whole || !recursive {
            break;
        }
    }
    found
}

/// Goes through one value from its end; also tells whether all of it was read.
fn walk_back(
    peer: Peer,
    field: &[u8],
    trusted: &[Network],
    recursive: bool,
) -> (Option<Peer>, bool) {
    let separator = |b: &u8| matches!(b, b' ' | b',');
    let (mut found, mut rest) = (None, field);
    loop {
        let last = found.unwrap_or(peer);
        if !trusted.iter().any(|network| network.has(last)) {
            return (found, false);
        }
        while let [more @ .., end] = rest
            && separator(end)
        {
            rest = more;
        }
        // As in nginx a separator in the first place belongs to the address, which is none then.
        let start = rest.iter().skip(1).rposition(separator);
        let start = start.map_or(0, |at| at + 2);
        let Some(addr) = parse_peer(&rest[start..]) else {
            return (found, false);
        };
        found = Some(Peer::Inet(addr));
        rest = &rest[..start];
        if !recursive || start == 0 {
            return (found, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        Peer::Inet(parse_peer(text.as_bytes()).expect("an address"))
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

    #[test]
    fn a_peer_may_have_a_port() {
        for (text, shown) in [
            ("192.0.2.1", "192.0.2.1:0"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("2001:db8::1", "[2001:db8::1]:0"),
            ("[2001:db8::1]", "[2001:db8::1]:0"),
            ("[2001:db8::1]:8080", "[2001:db8::1]:8080"),
        ] {
            assert_eq!(peer(text), Peer::Inet(shown.parse().expect("an address")));
        }
        for wrong in [
            "",
            "192.0.2.1:",
            "192.0.2.1:0",
            "192.0.2.1:65536",
            "[::1",
            "[::1]80",
            "unknown",
        ] {
            assert_eq!(parse_peer(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn the_last_address_counts_or_the_last_that_is_not_trusted() {
        let trusted = [Network::V4(0x7f00_0001, 32), Network::V4(0x0a00_0000, 8)];
        let go = |fields: &[&str], recursive| {
            let fields: Vec<_> = fields.iter().map(|f| f.as_bytes()).collect();
            forwarded(peer("127.0.0.1"), &fields, &trusted, recursive)
        };
        assert_eq!(go(&["192.0.2.1, 10.0.0.1"], false), Some(peer("10.0.0.1")));
        assert_eq!(
            go(&["192.0.2.9,192.0.2.1, 10.0.0.1 ,"], true),
            Some(peer("192.0.2.1"))
        );
        assert_eq!(go(&["10.0.0.2, 10.0.0.1"], true), Some(peer("10.0.0.2")));
        assert_eq!(
            go(&["192.0.2.1", "10.0.0.2", "10.0.0.1"], true),
            Some(peer("192.0.2.1"))
        );
        assert_eq!(
            go(&["192.0.2.1", "10.0.0.1"], false),
            Some(peer("10.0.0.1"))
        );
        assert_eq!(
            go(&["192.0.2.1, unknown, 10.0.0.1"], true),
            Some(peer("10.0.0.1"))
        );
        assert_eq!(go(&["192.0.2.1", "unknown"], true), None);
        assert_eq!(
            go(&["192.0.2.1", " ,10.0.0.1"], true),
            Some(peer("10.0.0.1"))
        );
        assert_eq!(go(&[",10.0.0.1"], true), None);
        assert_eq!(go(&[""], true), None);
        assert_eq!(go(&[" , "], true), None);
        assert_eq!(go(&[], true), None);
        assert_eq!(
            forwarded(peer("192.0.2.7"), &[b"10.0.0.1"], &trusted, true),
            None
        );
    }
}
