//! Packets with more than one copy in a capture: from several interfaces, on both sides of a NAT, or twice at one.
//!
//! `tcpdump -i any` sees a packet at the device of a container, at the bridge and at the card. Copies look like repeated
//! segments, so that no rule finds anything. Each connection is judged at one point of capture with all bytes of both
//! directions. Of several such points, the one with most packets in the file is chosen.
//!
//! Without such a point, and at one point, a packet is a copy if an earlier one has the same IP identification, sequence
//! number and payload. Without an identification (0, or IPv6) it also needs the same options and comes within [`COPY_NS`].
//! A third of its connection has to have such copies.
//!
//! Source: RFC 6864 (identifications), tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html (interfaces).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::captured::{Captured, Collected};
use super::tcp::Header;

/// Copies that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copies {
    /// Packets of connections that were captured at several points of the network.
    elsewhere: usize,
    /// Packets that were captured again.
    again: usize,
    /// Connections that were captured on both sides of a NAT.
    translated: usize,
}

impl Copies {
    /// A note for each kind.
    pub(super) fn add_notes(self, notes: &mut Vec<String>) {
        let Self {
            elsewhere,
            again,
            translated,
        } = self;
        if elsewhere > 0 {
            notes.push(format!(
                "{elsewhere} packets are copies, captured at another interface or VLAN: each connection is analyzed at one of them"
            ));
        }
        if again > 0 {
            notes.push(format!("{again} packets are copies: each is analyzed once"));
        }
        if translated > 0 {
            notes.push(format!(
                "{translated} connections were captured on both sides of a NAT: each is analyzed once"
            ));
        }
    }
}

/// Leaves one copy of each packet in the flows.
pub(super) fn remove(flows: &mut Vec<Collected>) -> Copies {
    let mut copies = Copies {
        translated: remove_translated(flows),
        ..Copies::default()
    };
    let mut at_point: HashMap<u16, usize> = HashMap::new();
    for one in flows.iter().flat_map(|flow| &flow.segments) {
        *at_point.entry(one.point).or_default() += 1;
    }
    for flow in flows {
        let before = flow.segments.len();
        if let Some(point) = point_of_all(flow, &at_point) {
            flow.segments.retain(|one| one.point == point);
        }
        let of_point = flow.segments.len();
        copies.elsewhere += before - of_point;
        remove_again(flow);
        copies.again += of_point - flow.segments.len();
    }
    copies
}

/// Of flows with the same sequence numbers of both SYNs and the same port of the client, the one with most segments stays.
fn remove_translated(flows: &mut Vec<Collected>) -> usize {
    let mut known: HashMap<(u32, u32, u16), Vec<usize>> = HashMap::new();
    for (n, flow) in flows.iter().enumerate() {
        if let Some(key) = opening(flow) {
            known.entry(key).or_default().push(n);
        }
    }
    let mut is_copy = vec![false; flows.len()];
    for same in known.values() {
        let most = same.iter().max_by_key(|n| flows[**n].segments.len());
        for n in same.iter().filter(|n| Some(*n) != most) {
            is_copy[*n] = true;
        }
    }
    let mut is_copy = is_copy.into_iter();
    let before = flows.len();
    flows.retain(|_| !is_copy.next().unwrap_or_default());
    before - flows.len()
}

/// Sequence numbers of the SYNs of client and server, and the client's port.
fn opening(flow: &Collected) -> Option<(u32, u32, u16)> {
    let syn = |answers: bool| {
        let mut syns = flow.segments.iter();
        syns.find(|one| one.header.has(Header::SYN) && one.header.has(Header::ACK) == answers)
    };
    let (client, server) = (syn(false)?.header, syn(true)?.header);
    Some((client.sequence, server.sequence, client.from_port))
}

/// The point of the capture to judge a flow at; `None` if there is one only, or none with all bytes.
fn point_of_all(flow: &Collected, at_point: &HashMap<u16, usize>) -> Option<u16> {
    let mut of_flow: BTreeMap<u16, usize> = BTreeMap::new();
    for one in &flow.segments {
        *of_flow.entry(one.point).or_default() += 1;
    }
    if of_flow.len() < 2 {
        return None;
    }
    let mut points: Vec<u16> = of_flow.keys().copied().collect();
    points.sort_by_key(|point| Reverse(of_flow[point]));
    points.truncate(POINTS_MAX);
    let ranges = [true, false].map(|is_from_lower| ranges(&flow.segments, is_from_lower));
    let has_all = |point: &u16| {
        ranges.iter().all(|of_side| {
            let own = of_side.iter().filter(|one| one.0 == *point);
            let has_any = of_side.is_empty() || own.clone().next().is_some();
            has_any && covered(own) >= covered(of_side.iter())
        })
    };
    let whole = points.into_iter().filter(has_all);
    whole.max_by_key(|point| (at_point.get(point).copied(), Reverse(*point)))
}

/// Point of capture, begin and end of each segment of a direction, in sequence space that does not wrap.
fn ranges(segments: &[Captured], is_from_lower: bool) -> Vec<(u16, i64, i64)> {
    let mut last: Option<(u32, i64)> = None;
    let own = segments.iter();
    let own = own.filter(|one| one.is_from_lower == is_from_lower);
    let range = |one: &Captured| {
        let sequence = one.header.sequence;
        let begin = last.map_or(0, |(before, begin)| {
            begin + i64::from(sequence.wrapping_sub(before) as i32)
        });
        last = Some((sequence, begin));
        (one.point, begin, begin + i64::from(one.payload_bytes))
    };
    own.map(range).collect()
}

/// Bytes in at least one of some ranges.
fn covered<'a>(ranges: impl Iterator<Item = &'a (u16, i64, i64)>) -> i64 {
    let mut sorted: Vec<(i64, i64)> = ranges.map(|(_, begin, end)| (*begin, *end)).collect();
    sorted.sort_unstable();
    let (mut bytes, mut at) = (0, i64::MIN);
    for (begin, end) in sorted {
        bytes += (end - begin.max(at)).max(0);
        at = at.max(end);
    }
    bytes
}

/// Removes the later ones of equal segments.
fn remove_again(flow: &mut Collected) {
    let mut seen: HashMap<(bool, u16, u64), u64> = HashMap::new();
    let (mut certain, mut likely) = (vec![false; flow.segments.len()], Vec::new());
    for (n, one) in flow.segments.iter().enumerate() {
        let key = (one.is_from_lower, one.identification, one.digest);
        let Some(before) = seen.get(&key) else {
            seen.insert(key, one.at_ns);
            continue;
        };
        let after = one.at_ns.saturating_sub(*before);
        match one.identification {
            0 if after <= COPY_NS => likely.push(n),
            0 => {
                seen.insert(key, one.at_ns);
            }
            _ => certain[n] = after <= IDENTIFICATION_NS,
        }
    }
    // The network and clients repeat some segments themselves.
    if likely.len() * COPIES_SHARE >= flow.segments.len() {
        likely.into_iter().for_each(|n| certain[n] = true);
    }
    let mut is_copy = certain.into_iter();
    flow.segments
        .retain(|_| !is_copy.next().unwrap_or_default());
}

/// Most points of capture compared for one connection; those with most of its packets come first.
pub(super) const POINTS_MAX: usize = 16;
/// Time within which an IP identification is unique, ns: hosts repeat it after 65,536 packets.
pub(super) const IDENTIFICATION_NS: u64 = 1_000_000_000;
/// Limit of delay of a copy without an identification, ns: Linux retransmits after 200 ms at the earliest.
pub(super) const COPY_NS: u64 = 50_000_000;
/// Least share of copies without an identification, as one in this many packets. If each packet is captured twice, half are
/// copies.
const COPIES_SHARE: usize = 3;
