//! Packets into flows, within limits.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use super::captured::{Captured, Collected, Points};
use super::copies;
use super::decrypt::{self, Decrypted, KeyLog};
use super::file::{self, Packet};
use super::flow::Flow;
use super::packet::{self, Carried, Found};
use super::paths::{self, Path};
use super::tcp::Header;

/// A capture: its flows.
#[derive(Debug, Default)]
pub struct Capture {
    /// Connections of TCP, in the order of their first packets.
    pub flows: Vec<Flow>,
    /// For each flow the times to its ends.
    pub(super) paths: Vec<Path>,
    /// Decrypted contents of each flow, if any.
    pub(super) decrypted: Vec<Option<Decrypted>>,
    /// Number of packets in the file, of TCP or not.
    pub packets: u64,
    /// Sentences about parts that were left out, with the reason.
    pub notes: Vec<String>,
}

impl Capture {
    /// Decrypts the connections with keys in the log, so that findings name their requests. Returns the number of decrypted
    /// connections.
    pub fn decrypt(&mut self, log: &KeyLog) -> usize {
        let flows = self.flows.iter();
        self.decrypted = flows.map(|flow| decrypt::open(flow, log)).collect();
        self.decrypted.iter().flatten().count()
    }
}

/// Reads a capture: classic pcap or pcapng. A damaged or truncated file is read as far as possible; a note has its last packet.
///
/// # Errors
/// The file is no capture, or has no TCP; a sentence.
pub fn read(reader: impl Read) -> Result<Capture, String> {
    read_within(reader, LIMITS)
}

/// Reads a capture within these limits.
pub(super) fn read_within(reader: impl Read, limits: Limits) -> Result<Capture, String> {
    let mut collector = Collector {
        limits,
        flows: Vec::new(),
        current: HashMap::new(),
        packets: 0,
        segments: 0,
        kept_bytes: 0,
        points: Points::default(),
        left_out: LeftOut::default(),
    };
    let notes = file::packets(reader, |packet| collector.packet(&packet))?;
    collector.finish(notes)
}

/// Limits of a capture in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Connections.
    pub(super) flows: usize,
    /// Segments in all.
    pub(super) segments: usize,
    /// Bytes of payload of a connection, and of all.
    pub(super) flow_bytes: usize,
    pub(super) kept_bytes: usize,
}

#[derive(Debug)]
struct Collector {
    limits: Limits,
    flows: Vec<Collected>,
    /// The last flow between two ends.
    current: HashMap<[SocketAddr; 2], usize>,
    packets: u64,
    segments: usize,
    kept_bytes: usize,
    points: Points,
    left_out: LeftOut,
}

/// Numbers of packets that are in no flow, or in one without their bytes.
#[derive(Debug, Default)]
struct LeftOut {
    fragments: u64,
    unknown_links: u64,
    beyond_flows: u64,
    payloads: u64,
    /// Packets that a snap length has cut: within headers, within TCP options, within the payload.
    cut_heads: u64,
    cut_options: u64,
    cut_payloads: u64,
    is_cut: bool,
}

impl Collector {
    fn packet(&mut self, packet: &Packet<'_>) -> ControlFlow<()> {
        if self.segments >= self.limits.segments {
            self.left_out.is_cut = true;
            return ControlFlow::Break(());
        }
        self.packets = packet.number;
        let carried = match packet::find(packet.link, packet.bytes, packet.wire_bytes) {
            Found::Tcp(carried) => carried,
            Found::Fragment => {
                self.left_out.fragments += 1;
                return ControlFlow::Continue(());
            }
            Found::UnknownLink => {
                self.left_out.unknown_links += 1;
                return ControlFlow::Continue(());
            }
            Found::Other => {
                let is_cut = packet.bytes.len() < packet.wire_bytes.min(HEADS_BYTES);
                self.left_out.cut_heads += u64::from(is_cut);
                return ControlFlow::Continue(());
            }
        };
        let Some(header) = Header::parse(carried.bytes) else {
            let is_cut = carried.bytes.len() < carried.wire_bytes.min(TCP_HEAD_BYTES);
            self.left_out.cut_heads += u64::from(is_cut);
            return ControlFlow::Continue(());
        };
        let Some(payload_bytes) = carried.wire_bytes.checked_sub(header.bytes) else {
            return ControlFlow::Continue(());
        };
        let payload = carried.bytes.get(header.bytes..).unwrap_or_default();
        match header.options.are_cut {
            true => self.left_out.cut_options += 1,
            false => self.left_out.cut_payloads += u64::from(payload.len() < payload_bytes),
        }
        let point = (packet.interface, carried.interface, carried.link_bytes);
        let point = self.points.number(point);
        let from = SocketAddr::new(carried.from, header.from_port);
        let to = SocketAddr::new(carried.to, header.to_port);
        let Some(place) = self.flow(from, to, &header) else {
            self.left_out.beyond_flows += 1;
            return ControlFlow::Continue(());
        };
        let flow = &mut self.flows[place];
        let begin = flow.bytes.len();
        let fits = begin + payload.len() <= self.limits.flow_bytes
            && self.kept_bytes + payload.len() <= self.limits.kept_bytes;
        let mut kept = 0;
        if fits {
            flow.bytes.extend_from_slice(payload);
            self.kept_bytes += payload.len();
            kept = payload.len();
        } else {
            self.left_out.payloads += 1;
        }
        self.segments += 1;
        flow.segments.push(Captured {
            packet: packet.number,
            at_ns: packet.at_ns,
            is_from_lower: from == flow.ends[0],
            header,
            point,
            identification: carried.identification,
            digest: digest(&carried, &header),
            payload_bytes: u32::try_from(payload_bytes).unwrap_or(u32::MAX),
            // Both are at most the limit of kept bytes of a flow.
            kept: (begin as u32, kept as u32),
        });
        ControlFlow::Continue(())
    }

    /// Returns the index of a segment's flow; `None` beyond the limit of flows.
    fn flow(&mut self, from: SocketAddr, to: SocketAddr, header: &Header) -> Option<usize> {
        let ends = if from <= to { [from, to] } else { [to, from] };
        let side = usize::from(from != ends[0]);
        let is_syn = header.has(Header::SYN) && !header.has(Header::ACK);
        if let Some(place) = self.current.get(&ends).copied() {
            let flow = &mut self.flows[place];
            // Ports are used again; a SYN that is sent again has the same number.
            let begins_anew = is_syn && flow.syns[side] != Some(header.sequence);
            if !begins_anew {
                return Some(place);
            }
        }
        if self.flows.len() >= self.limits.flows {
            return None;
        }
        let mut syns = [None; 2];
        if is_syn {
            syns[side] = Some(header.sequence);
        }
        self.flows.push(Collected {
            ends,
            segments: Vec::new(),
            bytes: Vec::new(),
            syns,
        });
        let place = self.flows.len() - 1;
        self.current.insert(ends, place);
        Some(place)
    }

    fn finish(mut self, mut notes: Vec<String>) -> Result<Capture, String> {
        self.left_out
            .add_notes(self.packets, self.limits, &mut notes);
        add_cut_notes(&self.left_out, &mut notes);
        if self.flows.is_empty() {
            let why: String = notes.iter().map(|note| format!("; {note}")).collect();
            return Err(format!(
                "the capture has {} packets, and none of TCP{why}",
                self.packets
            ));
        }
        copies::remove(&mut self.flows).add_notes(&mut notes);
        let mut one_way = 0;
        let mut flows = Vec::new();
        for collected in self.flows {
            let flow = Flow::new(collected);
            one_way += usize::from(!flow.has_both_directions());
            flows.push(flow);
        }
        if one_way > 0 {
            notes.push(format!(
                "{one_way} of {} connections were captured in one direction: checks that need both directions skip them",
                flows.len()
            ));
        }
        let paths = paths::of(&flows);
        Ok(Capture {
            decrypted: flows.iter().map(|_| None).collect(),
            flows,
            paths,
            packets: self.packets,
            notes,
        })
    }
}

impl LeftOut {
    fn add_notes(&self, packets: u64, limits: Limits, notes: &mut Vec<String>) {
        let mut note = |count: u64, what: String| {
            if count > 0 {
                notes.push(what);
            }
        };
        let Self {
            fragments,
            unknown_links,
            beyond_flows,
            payloads,
            is_cut,
            ..
        } = self;
        note(
            *fragments,
            format!("{fragments} fragments of IP were left out"),
        );
        note(
            *unknown_links,
            format!("{unknown_links} packets have an unknown link type"),
        );
        note(
            *beyond_flows,
            format!(
                "{beyond_flows} packets are of connections beyond the first {}",
                limits.flows
            ),
        );
        note(
            *payloads,
            format!(
                "contents of {payloads} packets were not kept: the limits are {} bytes per connection and {} bytes in total",
                limits.flow_bytes, limits.kept_bytes
            ),
        );
        note(
            u64::from(*is_cut),
            format!(
                "only the first {packets} packets were read: the capture has more than {} TCP packets",
                limits.segments
            ),
        );
    }
}

/// Sentences about packets that a short snap length has cut.
fn add_cut_notes(left_out: &LeftOut, notes: &mut Vec<String>) {
    for (count, part) in [
        (left_out.cut_heads, "headers"),
        (
            left_out.cut_options,
            "TCP options, so that sizes of segments and windows are unknown",
        ),
        (
            left_out.cut_payloads,
            "payload, so that handshakes and requests may be unknown",
        ),
    ] {
        if count > 0 {
            notes.push(format!(
                "{count} packets are cut within their {part}: capture with tcpdump -s 0"
            ));
        }
    }
}

/// The hash of a segment by which copies of it are found.
fn digest(carried: &Carried<'_>, header: &Header) -> u64 {
    let mut hasher = DefaultHasher::new();
    let numbers = (header.sequence, header.acknowledged, header.flags);
    (numbers, carried.wire_bytes).hash(&mut hasher);
    let bytes = carried.bytes;
    bytes.get(header.bytes..).hash(&mut hasher);
    if carried.identification == 0 {
        let options = bytes.get(TCP_HEAD_BYTES..header.bytes.min(bytes.len()));
        (header.window, options).hash(&mut hasher);
    }
    hasher.finish()
}

/// TCP's header without options.
const TCP_HEAD_BYTES: usize = 20;
/// Headers of Ethernet, IPv4 and TCP without options: a packet with fewer captured bytes is of an unknown protocol.
const HEADS_BYTES: usize = 14 + 20 + TCP_HEAD_BYTES;

/// 20,000 connections; 2,000,000 segments, which take some 350 MB while they are read; 4 MiB of payload a connection, and 256 MiB
/// in all.
pub(super) const LIMITS: Limits = Limits {
    flows: 20_000,
    segments: 2_000_000,
    flow_bytes: 4 << 20,
    kept_bytes: 256 << 20,
};
