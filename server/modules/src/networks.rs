//! The client's address in `X-Forwarded-For`, for `geo` and `set_real_ip_from`.
//!
//! Source: nginx documentation, `ngx_http_realip_module`, `ngx_http_geo_module`.

use std::net::{IpAddr, SocketAddr};

use conf::{ConfError, Directive, Word};
use engines::http::FieldId;
pub(crate) use server_base::networks::{Network, mask_v6, parse_ip, parse_v4};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Exchange, Peer};

/// Parses an address with an optional port, which defaults to 0.
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

/// Parses a network; 255.255.255.255 is accepted as well.
///
/// # Errors
/// `invalid network`.
pub(crate) fn network(
    b: &mut ConfigBuilder,
    d: &Directive,
    word: &Word,
) -> Result<Network, ConfError> {
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

/// Returns the client of an exchange: `peer`, or the address in `X-Forwarded-For` if `peer` is trusted.
pub(crate) fn client(x: &Exchange, peer: Peer, trusted: &[Network], recursive: bool) -> Peer {
    if trusted.is_empty() {
        return peer;
    }
    let fields: Vec<&[u8]> = x.head.fields_by_id(FieldId::XForwardedFor).collect();
    forwarded(peer, &fields, trusted, recursive).unwrap_or(peer)
}

/// Returns the address of [`client`] for the peer of the connection; `None` for a UNIX-domain socket.
pub(crate) fn client_ip(x: &Exchange, trusted: &[Network], recursive: bool) -> Option<IpAddr> {
    match client(x, x.client.peer, trusted, recursive) {
        Peer::Inet(addr) => Some(addr.ip()),
        Peer::Unix => None,
    }
}

/// Returns the client according to the fields of trusted proxies; `None` if `peer` is to be kept.
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
        if !whole || (found.is_some() && !recursive) {
            break;
        }
    }
    found
}

/// Reads the addresses of one value from its end; also returns whether the whole value was read.
fn walk_back(
    peer: Peer,
    field: &[u8],
    trusted: &[Network],
    recursive: bool,
) -> (Option<Peer>, bool) {
    let separator = |b: &u8| matches!(b, b' ' | b'\t' | b',');
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
        // Empty elements of a list are ignored (RFC 9110 section 5.6.1.2).
        if rest.is_empty() {
            return (found, true);
        }
        let start = rest.iter().rposition(separator);
        let start = start.map_or(0, |at| at + 1);
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
            Some(peer("192.0.2.1"))
        );
        for list in [",10.0.0.1", "192.0.2.1,\t,10.0.0.1\t"] {
            assert_eq!(go(&[list], false), Some(peer("10.0.0.1")), "{list:?}");
        }
        assert_eq!(go(&[",10.0.0.1"], true), Some(peer("10.0.0.1")));
        for recursive in [false, true] {
            let fields = ["192.0.2.1", ",10.0.0.1", " ,\t", ""];
            let expected = if recursive { "192.0.2.1" } else { "10.0.0.1" };
            assert_eq!(go(&fields, recursive), Some(peer(expected)));
        }
        assert_eq!(go(&[""], true), None);
        assert_eq!(go(&[" , "], true), None);
        assert_eq!(go(&[], true), None);
        assert_eq!(
            forwarded(peer("192.0.2.7"), &[b"10.0.0.1"], &trusted, true),
            None
        );
    }
}
