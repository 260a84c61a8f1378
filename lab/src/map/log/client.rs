//! The client of a line: an address, or a client without one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// Its address; one of IPv4 in IPv6 is of IPv4.
    Address(IpAddr),
    /// `unix:`, a host name, or no value: the country is unknown.
    Unknown,
}

/// Parses a value of `$remote_addr` or of a variable like it. `None` for a value that a server does not write there.
pub(super) fn address(value: &[u8]) -> Option<Client> {
    if let Some(ip) = ipv4(value) {
        return Some(Client::Address(IpAddr::V4(ip)));
    }
    if let Some(ip) = written(value) {
        return Some(Client::Address(ip));
    }
    let is_unknown = matches!(value, b"" | b"-") || value.starts_with(b"unix:");
    (is_unknown || is_host(value)).then_some(Client::Unknown)
}

/// Parses a field such as `X-Forwarded-For`: the last public address in a list. Clients write the beginning of such a list
/// themselves, and the addresses at its end may be those of own proxies.
pub(super) fn forwarded(value: &[u8]) -> Client {
    let listed = value.rsplit(|byte| *byte == b',');
    let mut addresses = listed.filter_map(|one| {
        let one = one.trim_ascii();
        ipv4(one).map(IpAddr::V4).or_else(|| written(one))
    });
    match addresses.find(is_public) {
        Some(ip) => Client::Address(ip),
        None => Client::Unknown,
    }
}

/// Four decimal numbers: the usual form, without the cost of the library's parser.
fn ipv4(value: &[u8]) -> Option<Ipv4Addr> {
    let (mut octets, mut part, mut digits) = ([0_u8; 4], 0, 0);
    let mut number = 0_u32;
    for byte in value {
        match byte {
            b'0'..=b'9' => {
                number = number * 10 + u32::from(byte - b'0');
                digits += 1;
                // A zero in front would be octal for others.
                if number > 255 || (digits > 1 && number < 10) {
                    return None;
                }
            }
            b'.' if digits > 0 && part < 3 => {
                octets[part] = number as u8;
                (part, number, digits) = (part + 1, 0, 0);
            }
            _ => return None,
        }
    }
    if part != 3 || digits == 0 {
        return None;
    }
    octets[3] = number as u8;
    Some(octets.into())
}

/// An address of either kind: with brackets, with a port, with a zone, or with the length of a prefix.
fn written(value: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(value).ok()?;
    let text = text.split(['%', '/']).next()?;
    let inner = match text.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => text,
    };
    let ip = inner.parse::<IpAddr>().ok().or_else(|| {
        let (host, port) = inner.rsplit_once(':')?;
        let ip = host.parse::<Ipv4Addr>().ok()?;
        port.parse::<u16>().ok().map(|_| IpAddr::V4(ip))
    });
    ip.map(|ip| ip.to_canonical())
}

/// Whether a value is a host name, as servers write that resolve addresses: it has a letter.
fn is_host(value: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    value.len() <= HOST_BYTES_MAX
        && value.iter().all(is_part)
        && value.iter().any(u8::is_ascii_alphabetic)
}

/// Source: RFC 6890, the tables of special-purpose addresses.
fn is_public(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            !(ip.is_private()
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_unspecified()
                || ip.is_broadcast()
                || is_shared)
        }
        IpAddr::V6(ip) => {
            !(ip.is_unique_local()
                || ip.is_unicast_link_local()
                || matches!(*ip, Ipv6Addr::LOCALHOST | Ipv6Addr::UNSPECIFIED))
        }
    }
}

/// Source: RFC 1035, section 2.3.4.
const HOST_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Client {
        Client::Address(text.parse().expect("an address"))
    }

    #[test]
    fn addresses_are_parsed() {
        for (value, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.0", "192.0.2.0"),
            ("0.0.0.0", "0.0.0.0"),
            ("255.255.255.255", "255.255.255.255"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::1", "::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("192.0.2.0/24", "192.0.2.0"),
            ("2001:db8::/48", "2001:db8::"),
            ("[2001:db8::1]:80", "2001:db8::1"),
            ("192.0.2.1:80", "192.0.2.1"),
        ] {
            assert_eq!(address(value.as_bytes()), Some(ip(expected)), "{value}");
        }
    }

    #[test]
    fn clients_without_address_are_unknown() {
        for value in ["", "-", "unix:", "unix:/run/a", "host.example", "a_b-c.1"] {
            assert_eq!(address(value.as_bytes()), Some(Client::Unknown), "{value}");
        }
        let long = |length: usize| address("a".repeat(length).as_bytes());
        let of = [254, 255, 256].map(long);
        assert_eq!(of, [Some(Client::Unknown), Some(Client::Unknown), None]);
    }

    #[test]
    fn other_values_are_damaged() {
        for value in [
            "192.0.2",
            "192.0.2.256",
            "192.0.2.01",
            "192.0.2.1.5",
            ".1.2.3",
            "1234",
            "192.0.2.1x/",
            "\u{fffd}",
            "a b",
            "2001:db8::g::1",
        ] {
            assert_eq!(address(value.as_bytes()), None, "{value}");
        }
        assert_eq!(address(b"\xff\x00"), None);
    }

    #[test]
    fn quick_parser_agrees_with_the_library() {
        let mut random = fastrand::Rng::with_seed(3);
        let text = b"0123456789.25";
        for _ in 0..100_000 {
            let length = random.usize(0..17);
            let value: Vec<u8> = (0..length)
                .map(|_| text[random.usize(0..text.len())])
                .collect();
            let theirs = std::str::from_utf8(&value).map(|text| text.parse().ok());
            assert_eq!(Ok(ipv4(&value)), theirs, "{value:?}");
        }
    }

    #[test]
    fn the_last_public_address_of_a_list_is_the_client() {
        for (value, expected) in [
            ("192.0.2.1", ip("192.0.2.1")),
            ("198.51.100.7, 192.0.2.1", ip("192.0.2.1")),
            ("192.0.2.1, 10.0.0.1,127.0.0.1", ip("192.0.2.1")),
            ("192.0.2.1, fd00::1, 100.64.0.1", ip("192.0.2.1")),
            ("8.8.8.8, 2001:db8::1, ::1", ip("2001:db8::1")),
            ("unknown, 192.0.2.1:555", ip("192.0.2.1")),
            ("192.0.2.1, unknown", ip("192.0.2.1")),
            ("10.1.2.3", Client::Unknown),
            ("-", Client::Unknown),
            ("", Client::Unknown),
            ("<script>, \\x22", Client::Unknown),
        ] {
            assert_eq!(forwarded(value.as_bytes()), expected, "{value}");
        }
    }
}
