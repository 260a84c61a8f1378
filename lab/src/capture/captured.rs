//! Segments as they were captured, before anything is known of their ends.

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
    /// Bytes of payload on the wire.
    pub(super) payload_bytes: u32,
    /// Begin and length of the part of the payload that is kept in [`Collected::bytes`].
    pub(super) kept: (u32, u32),
}

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
