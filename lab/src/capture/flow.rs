//! A flow: the segments of a connection in the order of the capture, with places in sequence space that do not wrap.

use std::net::SocketAddr;

use super::captured::{Captured, Collected};
use super::roles::is_lower_server;
use super::stream::{Piece, Stream};
use super::tcp::Header;
use crate::doctor::judge::Packets;

/// A connection of TCP.
#[derive(Debug)]
pub struct Flow {
    /// The end that opened it.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// Its segments in the order of the capture.
    pub segments: Vec<Segment>,
    /// The most payload of a segment from the server, bytes.
    pub segment_bytes: u32,
    /// Whether [`Flow::segment_bytes`] is from the handshake; else it is the largest captured segment.
    pub is_segment_size_known: bool,
    /// Payload of the client and of the server up to the first gap.
    pub(super) from_client: Stream,
    pub(super) from_server: Stream,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The packet's number, as Wireshark numbers them.
    pub packet: u64,
    /// When it was captured: nanoseconds since 1970.
    pub at_ns: u64,
    /// Its sender.
    pub from: Side,
    /// Offset of its first byte in the direction. 0 is the first byte of payload, or the first captured sequence number without
    /// a SYN.
    pub begin: i64,
    /// Bytes of payload.
    pub bytes: u32,
    /// The place before which its sender has everything, in the other direction.
    pub acknowledged: Option<i64>,
    /// Bytes that its sender can receive beyond `acknowledged`; `None` if the window scale is unknown.
    pub window: Option<u32>,
    /// Whether it has bytes, a SYN or a FIN beyond all earlier segments of its direction.
    pub is_new: bool,
    flags: u8,
}

impl Segment {
    /// Offset behind its last byte; SYN and FIN count one each (RFC 9293 section 3.4).
    #[must_use]
    pub fn end(&self) -> i64 {
        self.begin + i64::from(self.bytes) + i64::from(self.is_syn()) + i64::from(self.is_fin())
    }

    /// Whether it has a SYN.
    #[must_use]
    pub fn is_syn(&self) -> bool {
        self.flags & Header::SYN != 0
    }

    /// Whether it ends its direction.
    #[must_use]
    pub fn is_fin(&self) -> bool {
        self.flags & Header::FIN != 0
    }

    /// Whether it acknowledges, and does nothing else.
    #[must_use]
    pub fn is_bare_ack(&self) -> bool {
        let others = Header::SYN | Header::FIN | Header::RST;
        self.bytes == 0 && self.acknowledged.is_some() && self.flags & others == 0
    }
}

impl Flow {
    pub(super) fn new(collected: Collected) -> Self {
        let is_lower_server = is_lower_server(&collected);
        let [lower, upper] = collected.ends;
        let (client, server) = if is_lower_server {
            (upper, lower)
        } else {
            (lower, upper)
        };
        let side = |one: &Captured| match one.is_from_lower == is_lower_server {
            true => Side::Server,
            false => Side::Client,
        };
        let mut tracks = [Track::default(), Track::default()];
        let scales = scales(&collected.segments, side);
        let mut segments = Vec::with_capacity(collected.segments.len());
        for one in &collected.segments {
            segments.push(place(one, side(one), scales, &mut tracks));
        }
        let payload = |from: Side| {
            let own = segments.iter().zip(&collected.segments);
            let own = own.filter(|(segment, _)| segment.from == from);
            let pieces = own.map(|(segment, one)| Piece {
                // The payload of a SYN follows its sequence number (TCP Fast Open, RFC 7413).
                place: segment.begin + i64::from(segment.is_syn()),
                at_ns: segment.at_ns,
                packet: segment.packet,
                begin: one.kept.0 as usize,
                bytes: one.kept.1 as usize,
            });
            Stream::assemble(pieces, &collected.bytes)
        };
        let (from_client, from_server) = (payload(Side::Client), payload(Side::Server));
        let said = segment_bytes_said(&collected.segments);
        Self {
            client,
            server,
            segment_bytes: said.unwrap_or_else(|| segment_bytes_seen(&segments)),
            is_segment_size_known: said.is_some(),
            segments,
            from_client,
            from_server,
        }
    }

    /// Whether segments of both ends were captured.
    #[must_use]
    pub fn has_both_directions(&self) -> bool {
        let has = |side| self.segments.iter().any(|one| one.from == side);
        has(Side::Client) && has(Side::Server)
    }

    /// Its ends, for reports.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} -> {}", self.client, self.server)
    }

    /// Some of its packets, for reports.
    pub(super) fn packets(&self, first: u64, last: u64) -> Packets {
        let connection = self.name();
        Packets {
            connection,
            first,
            last,
        }
    }
}

/// Sequence numbers of a direction, made places that do not wrap.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    last: Option<(u32, i64)>,
    /// Offset after the highest byte so far.
    end: Option<i64>,
}

impl Track {
    fn place(&mut self, sequence: u32) -> i64 {
        let place = match self.last {
            None => 0,
            Some((before, place)) => place + i64::from(sequence.wrapping_sub(before) as i32),
        };
        self.last = Some((sequence, place));
        place
    }
}

fn place(one: &Captured, from: Side, scales: Option<[u8; 2]>, tracks: &mut [Track; 2]) -> Segment {
    let side = from as usize;
    let header = &one.header;
    let is_syn = header.has(Header::SYN);
    if is_syn && tracks[side].last.is_none() {
        // The payload's first byte follows the SYN.
        tracks[side].last = Some((header.sequence, -1));
    }
    let begin = tracks[side].place(header.sequence);
    let acknowledged = header
        .has(Header::ACK)
        .then(|| tracks[1 - side].place(header.acknowledged));
    // The windows of a SYN are not shifted (RFC 7323 section 2.2).
    let shift = if is_syn {
        Some(0)
    } else {
        scales.map(|scales| scales[side])
    };
    let mut segment = Segment {
        packet: one.packet,
        at_ns: one.at_ns,
        from,
        begin,
        bytes: one.payload_bytes,
        acknowledged,
        window: shift.map(|shift| u32::from(header.window) << shift),
        is_new: false,
        flags: header.flags,
    };
    let before = tracks[side].end;
    segment.is_new = segment.end() > begin && before.is_none_or(|end| segment.end() > end);
    tracks[side].end = Some(before.map_or(segment.end(), |end| end.max(segment.end())));
    segment
}

/// Returns the window scales of both sides if both SYNs were captured. Scaling applies only if both have the option.
fn scales(segments: &[Captured], side: impl Fn(&Captured) -> Side) -> Option<[u8; 2]> {
    let syn = |of: Side| {
        let mut syns = segments.iter();
        let syn = syns.find(|one| one.header.has(Header::SYN) && side(one) == of)?;
        // An option that was cut off may be a scale.
        let options = &syn.header.options;
        (!options.are_cut).then_some(options.window_scale)
    };
    let (client, server) = (syn(Side::Client)?, syn(Side::Server)?);
    Some(match (client, server) {
        (Some(client), Some(server)) => [client, server],
        _ => [0, 0],
    })
}

/// The payload of a full segment, as the handshake has it: the lesser size of both ends, without timestamps.
fn segment_bytes_said(segments: &[Captured]) -> Option<u32> {
    // If options are cut off, the use of timestamps is unknown.
    if segments.iter().any(|one| one.header.options.are_cut) {
        return None;
    }
    let syns = segments.iter().filter(|one| one.header.has(Header::SYN));
    let size = syns
        .filter_map(|one| one.header.options.segment_bytes)
        .min()?;
    let timestamps = segments
        .iter()
        .any(|one| !one.header.has(Header::SYN) && one.header.options.has_timestamps);
    let size = u32::from(size).saturating_sub(if timestamps { TIMESTAMPS_BYTES } else { 0 });
    (size >= SEGMENT_BYTES_MIN).then_some(size)
}

/// Returns the largest payload of the server within an Ethernet packet, or else the likely size of a full one.
fn segment_bytes_seen(segments: &[Segment]) -> u32 {
    let sizes = segments.iter().filter(|one| one.from == Side::Server);
    let largest = sizes
        .map(|one| one.bytes)
        .filter(|bytes| *bytes <= SEGMENT_BYTES_ETHERNET);
    match largest.max() {
        // A device or the kernel may have joined segments, and short ones prove nothing of the size of full ones.
        Some(bytes) if bytes >= SEGMENT_BYTES_LIKELY => bytes,
        _ => SEGMENT_BYTES_LIKELY,
    }
}

/// Timestamps with padding.
const TIMESTAMPS_BYTES: u32 = 12;
/// Every receiver accepts at least 536 bytes (RFC 9293 section 3.7.1); options may take the rest.
const SEGMENT_BYTES_MIN: u32 = 88;
const SEGMENT_BYTES_ETHERNET: u32 = 1460;
/// A full segment of IPv6 on Ethernet with timestamps.
const SEGMENT_BYTES_LIKELY: u32 = 1428;
