//! Parses the parts of a packet that the link needs: flow, sequence numbers, length.
//!
//! Nothing is changed, and checksums are not verified, since both ends are kernels of this machine. A packet that is no
//! whole first fragment of TCP over IPv4 is forwarded without being parsed. Sources: RFC 791 section 3.1, RFC 9293
//! section 3.1.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

impl Direction {
    /// The other way.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was put into the other device.
    Delivered,
    /// It was an acknowledgement that a later segment of its flow made needless while it was held.
    Superseded,
    /// It was lost by chance ([`Options::loss`](crate::Options::loss)) or by order ([`Link::lose`](crate::Link::lose)).
    Lost,
    /// The queue before the rate was full.
    Overflowed,
    /// The other device did not take it.
    Refused,
}

/// The two ends of a connection, in the direction of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Address of the sender.
    pub source: SocketAddrV4,
    /// Address of the receiver.
    pub destination: SocketAddrV4,
}

impl Flow {
    /// The flow of the segments that go the other way.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// The control bits of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: u8 = 0x01;
    /// The first segment of a side.
    pub const SYN: u8 = 0x02;
    /// The connection is broken off.
    pub const RST: u8 = 0x04;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 0x10;

    /// Whether any of these bits is set.
    #[must_use]
    pub fn any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// A parsed TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its flow.
    pub flow: Flow,
    /// The number of its first byte.
    pub seq: u32,
    /// The number of the byte its sender waits for.
    pub ack: u32,
    /// Its control bits.
    pub flags: Flags,
    /// The bytes of data it carries.
    pub payload_bytes: u32,
}

impl Segment {
    /// Reads a packet.
    #[must_use]
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        const TCP: u8 = 6;
        let first = *packet.first()?;
        let header_bytes = usize::from(first & 0x0f) * 4;
        let total_bytes = usize::from(u16_at(packet, 2)?);
        // Behind the offset of the first fragment there is the TCP header; all flags but "more" are ignored.
        let fragment = u16_at(packet, 6)? & 0x3fff;
        if first >> 4 != 4 || header_bytes < 20 || fragment != 0 || *packet.get(9)? != TCP {
            return None;
        }
        let tcp = packet.get(header_bytes..total_bytes)?;
        let data_offset = usize::from(*tcp.get(12)? >> 4) * 4;
        if data_offset < 20 {
            return None;
        }
        let payload = tcp.get(data_offset..)?.len();
        let address = |at| Some(Ipv4Addr::from(u32_at(packet, at)?));
        Some(Self {
            flow: Flow {
                source: SocketAddrV4::new(address(12)?, u16_at(tcp, 0)?),
                destination: SocketAddrV4::new(address(16)?, u16_at(tcp, 2)?),
            },
            seq: u32_at(tcp, 4)?,
            ack: u32_at(tcp, 8)?,
            flags: Flags(*tcp.get(13)?),
            payload_bytes: u32::try_from(payload).ok()?,
        })
    }

    /// Whether it only acknowledges: no data, and nothing of a connection's begin or end.
    #[must_use]
    pub fn is_pure_ack(&self) -> bool {
        let bits = Flags::SYN | Flags::FIN | Flags::RST;
        self.payload_bytes == 0 && self.flags.any(Flags::ACK) && !self.flags.any(bits)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet from port 1000 of 10.0.0.1 to port 80 of 10.0.0.2.
    pub(crate) fn packet(flags: u8, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
        let total = u16::try_from(40 + payload.len()).expect("a test's packet is short");
        let mut bytes = vec![0x45, 0];
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0x03, 0xe8, 0, 80]);
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn segment_is_read() {
        let segment = Segment::parse(&packet(Flags::ACK, 7, u32::MAX, b"abc")).expect("TCP");
        assert_eq!(segment.flow.source.to_string(), "10.0.0.1:1000");
        assert_eq!(segment.flow.destination.to_string(), "10.0.0.2:80");
        assert_eq!((segment.seq, segment.ack), (7, u32::MAX));
        assert_eq!(segment.payload_bytes, 3);
        assert_eq!(segment.flow.reversed().reversed(), segment.flow);
    }

    #[test]
    fn only_what_has_neither_data_nor_begin_nor_end_is_a_pure_ack() {
        let pure = |flags, payload: &[u8]| {
            Segment::parse(&packet(flags, 0, 0, payload)).is_some_and(|s| s.is_pure_ack())
        };
        assert!(pure(Flags::ACK, b""));
        assert!(!pure(Flags::ACK, b"x"));
        assert!(!pure(0, b""));
        for bit in [Flags::SYN, Flags::FIN, Flags::RST] {
            assert!(!pure(Flags::ACK | bit, b""));
        }
    }

    #[test]
    fn what_is_not_whole_tcp_over_ipv4_is_not_understood() {
        let good = packet(Flags::ACK, 1, 2, b"data");
        for length in 0..good.len() {
            assert_eq!(Segment::parse(&good[..length]), None, "{length} bytes");
        }
        // Version, header length, fragment, protocol, data offset.
        for (at, value) in [
            (0, 0x65),
            (0, 0x44),
            (7, 1),
            (6, 0x20),
            (9, 17),
            (32, 0x40),
            (32, 0xf0),
        ] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(Segment::parse(&bad), None, "byte {at}");
        }
    }
}
