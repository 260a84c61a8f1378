//! Captured segments, before the roles of both ends are known.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::tcp::Header;

/// A segment as it was captured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Captured {
    pub(super) packet: u64,
    pub(super) at_ns: u64,
    /// Whether it is from the lower one of the flow's two ends.
    pub(super) is_from_lower: bool,
    pub(super) header: Header,
    /// Its point of capture, by [`Points::number`].
    pub(super) point: u16,
    /// Identification of its IPv4 packet; 0 if it has none.
    pub(super) identification: u16,
    /// Hash of sequence numbers, flags and payload; without an identification also of window and options.
    pub(super) digest: u64,
    /// Bytes of payload on the wire.
    pub(super) payload_bytes: u32,
    /// Offset and length in [`Collected::bytes`] of the kept part of the payload.
    pub(super) kept: (u32, u32),
}

/// A point of capture: interface of the file, interface of the kernel, and the number of bytes before IP.
pub(super) type Point = (u32, u32, usize);

/// Numbers of the points of capture.
#[derive(Debug, Default)]
pub(super) struct Points(HashMap<Point, u16>);

impl Points {
    /// The number of a point; points beyond [`POINTS_MAX`] share the last one.
    pub(super) fn number(&mut self, point: Point) -> u16 {
        let next = self.0.len().min(POINTS_MAX - 1) as u16;
        match self.0.get(&point) {
            Some(number) => *number,
            None if usize::from(next) < POINTS_MAX - 1 => *self.0.entry(point).or_insert(next),
            None => next,
        }
    }
}

/// Points of capture with a number of their own.
pub(super) const POINTS_MAX: usize = 4096;

/// All that was captured of a flow.
#[derive(Debug)]
pub(super) struct Collected {
    /// Its ends, the lower one first.
    pub(super) ends: [SocketAddr; 2],
    pub(super) segments: Vec<Captured>,
    pub(super) bytes: Vec<u8>,
    /// For each end the sequence number of the last SYN.
    pub(super) syns: [Option<u32>; 2],
}
