//! Headers below TCP: of the link, IPv4, IPv6.
//!
//! Source: tcpdump.org/linktypes.html, IEEE 802.1Q, RFC 791, RFC 8200.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A TCP segment in its IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried<'a> {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    /// Captured part of header and payload.
    pub(super) bytes: &'a [u8],
    /// Length of header and payload on the wire.
    pub(super) wire_bytes: usize,
    /// Identification of the IPv4 packet; 0 if it has none.
    pub(super) identification: u16,
    /// Number of the interface in the kernel, if the link's header has it, else 0.
    pub(super) interface: u32,
    /// Bytes before IP.
    pub(super) link_bytes: usize,
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    Tcp(Carried<'a>),
    /// A fragment of a packet of TCP.
    Fragment,
    /// The link's type is not known.
    UnknownLink,
    /// Something else, or too little of it.
    Other,
}

/// Finds TCP in a packet of this link type.
pub(super) fn find(link: i32, bytes: &[u8], wire_bytes: usize) -> Found<'_> {
    let skipped = match link {
        LINK_NULL | LINK_LOOP => ip_follows(bytes, 4),
        LINK_RAW | LINK_RAW_BSD | LINK_RAW_OPENBSD | LINK_IPV4 | LINK_IPV6 => ip_follows(bytes, 0),
        LINK_ETHERNET => behind_ethertype(bytes, 12),
        LINK_SLL => typed(bytes, 14, 16),
        LINK_SLL2 => typed(bytes, 0, 20),
        _ => return Found::UnknownLink,
    };
    let Some(head) = skipped else {
        return Found::Other;
    };
    let ip = &bytes[head..];
    let left = wire_bytes.saturating_sub(head).max(ip.len());
    let found = match ip[0] >> 4 {
        4 => ipv4(ip, left),
        6 => ipv6(ip, left),
        _ => None,
    };
    match found {
        Some(Found::Tcp(carried)) => Found::Tcp(Carried {
            interface: interface(link, bytes),
            link_bytes: head,
            ..carried
        }),
        other => other.unwrap_or(Found::Other),
    }
}

/// The interface in the header of `LINKTYPE_LINUX_SLL2`; 0 of others.
fn interface(link: i32, bytes: &[u8]) -> u32 {
    let number = bytes.get(4..).and_then(|rest| rest.first_chunk());
    match (link, number) {
        (LINK_SLL2, Some(number)) => u32::from_be_bytes(*number),
        _ => 0,
    }
}

/// Returns the offset of the IP header if its version is valid.
fn ip_follows(bytes: &[u8], at: usize) -> Option<usize> {
    let version = bytes.get(at)? >> 4;
    matches!(version, 4 | 6).then_some(at)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

/// A header with an EtherType at one place, which ends at another; VLAN tags may follow.
fn typed(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    match u16_at(bytes, at)? {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => ip_follows(bytes, end),
        tag if is_vlan(tag) => behind_ethertype(bytes, end + 2),
        _ => None,
    }
}

/// Skips VLAN tags from the EtherType at this place.
fn behind_ethertype(bytes: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..=TAGS_MAX {
        match u16_at(bytes, at)? {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return ip_follows(bytes, at + 2),
            tag if is_vlan(tag) => at += 4,
            // PPP over Ethernet: a header of 6 bytes, then the protocol of PPP (RFC 2516).
            ETHERTYPE_PPPOE => return ip_follows(bytes, at + 2 + 6 + 2),
            _ => return None,
        }
    }
    None
}

fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100)
}

fn ipv4(ip: &[u8], left: usize) -> Option<Found<'_>> {
    let head = usize::from(ip[0] & 15) * 4;
    let fixed: &[u8; 20] = ip.first_chunk()?;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    // Segments that the kernel leaves to the device to cut may be too long for the field, which is 0 then.
    let total = if total == 0 { left } else { total.min(left) };
    if fixed[9] != PROTOCOL_TCP || head < fixed.len() || total < head {
        return None;
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    if fragment & 0x3fff != 0 {
        return Some(Found::Fragment);
    }
    let address = |at: usize| -> [u8; 4] { std::array::from_fn(|n| fixed[at + n]) };
    Some(Found::Tcp(Carried {
        from: IpAddr::V4(Ipv4Addr::from(address(12))),
        to: IpAddr::V4(Ipv4Addr::from(address(16))),
        bytes: ip.get(head..total.min(ip.len()))?,
        wire_bytes: total - head,
        identification: u16::from_be_bytes([fixed[4], fixed[5]]),
        interface: 0,
        link_bytes: 0,
    }))
}

fn ipv6(ip: &[u8], left: usize) -> Option<Found<'_>> {
    let fixed: &[u8; 40] = ip.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    // 0 as for IPv4, and for jumbograms (RFC 2675).
    let total = match length {
        0 => left,
        length => (length + fixed.len()).min(left),
    };
    let (mut next, mut at) = (fixed[6], fixed.len());
    for _ in 0..EXTENSIONS_MAX {
        let length = match next {
            PROTOCOL_TCP => break,
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HOST_IDENTITY | SHIM6 => {
                usize::from(*ip.get(at + 1)?) * 8 + 8
            }
            AUTHENTICATION => usize::from(*ip.get(at + 1)?) * 4 + 8,
            FRAGMENT if u16_at(ip, at + 2)? & 0xfff9 == 0 => 8,
            FRAGMENT if *ip.get(at)? == PROTOCOL_TCP => return Some(Found::Fragment),
            _ => return None,
        };
        next = *ip.get(at)?;
        at += length;
    }
    if next != PROTOCOL_TCP || total < at {
        return None;
    }
    let address = |at: usize| -> [u8; 16] { std::array::from_fn(|n| fixed[at + n]) };
    Some(Found::Tcp(Carried {
        from: IpAddr::V6(Ipv6Addr::from(address(8))),
        to: IpAddr::V6(Ipv6Addr::from(address(24))),
        bytes: ip.get(at..total.min(ip.len()))?,
        wire_bytes: total - at,
        identification: 0,
        interface: 0,
        link_bytes: 0,
    }))
}

/// Link types, as files number them.
pub(super) const LINK_NULL: i32 = 0;
pub(super) const LINK_ETHERNET: i32 = 1;
const LINK_RAW_BSD: i32 = 12;
const LINK_RAW_OPENBSD: i32 = 14;
pub(super) const LINK_RAW: i32 = 101;
pub(super) const LINK_LOOP: i32 = 108;
pub(super) const LINK_SLL: i32 = 113;
const LINK_IPV4: i32 = 228;
const LINK_IPV6: i32 = 229;
pub(super) const LINK_SLL2: i32 = 276;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_PPPOE: u16 = 0x8864;
const PROTOCOL_TCP: u8 = 6;
/// Extension headers of IPv6 with a length of their own.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
/// The most VLAN tags of a frame.
pub(super) const TAGS_MAX: usize = 4;
/// The most extension headers of a packet.
pub(super) const EXTENSIONS_MAX: usize = 8;
