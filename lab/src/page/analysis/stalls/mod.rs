//! Stalls: pauses of a response well over a round trip, with little left to send.
//!
//! A sender may withhold its last, small piece until the acknowledgement of the piece before it. Then it is late by a round
//! trip and the hold of the acknowledgement. Linux holds it for 40 ms, other systems and Linux under some loads for 200 ms.
//!
//! A busy browser reports received pieces late. So a pause needs evidence. One of these is enough:
//!
//! - The packets of a capture show it ([`Packets`]).
//! - The response was longer than a segment and not complete. Its connection carried nothing else, and other responses did not
//!   pause with it ([`Traffic`]).
//!
//! Only the pieces of a body show a pause. Source: RFC 1122 section 4.2.3.2 and 4.2.3.4, docs/link.md, docs/waterfall.md.

mod packets;
mod stall;
mod traffic;

use super::wait::RoundTrips;
use crate::page::resource::{Piece, Resource};
use crate::page::visit::Visit;
use packets::Packets;
use stall::PAUSE_LEAST_MS;
pub use stall::{Stall, StallCause};
use traffic::Traffic;

/// The stalls of a visit, in the order of resources and of time.
pub(super) fn stalls(visit: &Visit, round_trips: &RoundTrips) -> Vec<Stall> {
    let evidence = Evidence {
        traffic: Traffic::of(visit),
        packets: Packets::of(visit),
        by_browser: visit.agent.is_browser,
        reads_sockets: visit.agent.reads_sockets(),
    };
    let named = evidence.packets.iter().flat_map(Packets::named);
    let mut found: Vec<Stall> = named.copied().collect();
    for (place, resource) in visit.resources.iter().enumerate() {
        if resource.pieces.is_empty() || resource.from_cache {
            continue;
        }
        let round_trip_ms = round_trips.to(resource);
        let response = Response::of(resource, round_trip_ms, evidence.by_browser);
        let gaps = gaps(place, resource).into_iter();
        let long = gaps.filter(|gap| gap.length_ms() >= PAUSE_LEAST_MS);
        let small = long.filter(|gap| gap.rest_bytes <= REST_BYTES_MAX);
        let judged = small.filter_map(|gap| {
            let cause = evidence.cause_of(&response, &gap)?;
            Some(Stall { cause, ..gap })
        });
        found.extend(judged);
    }
    let order = |a: &Stall, b: &Stall| {
        let places = a.resource.cmp(&b.resource);
        places.then(a.from_ms.total_cmp(&b.from_ms))
    };
    found.sort_by(order);
    found
}

/// A response, as far as its pauses depend on it.
struct Response<'r> {
    resource: &'r Resource,
    round_trip_ms: Option<f64>,
    /// When its first piece was received, ms.
    first_piece_ms: f64,
    /// For how long a browser had its first byte before its page had a piece, ms; 0 without a browser.
    handed_on_ms: f64,
    /// Its head and body, as far as their sizes are known.
    bytes: u64,
}

impl<'r> Response<'r> {
    fn of(resource: &'r Resource, round_trip_ms: Option<f64>, by_browser: bool) -> Self {
        let times = resource.pieces.iter().map(|piece| piece.at_ms);
        let first_piece_ms = times.fold(f64::INFINITY, f64::min);
        let handed_on_ms = (first_piece_ms - resource.first_byte_ms()).max(0.0);
        let pieces = resource.pieces.iter().map(|piece| piece.bytes);
        let body = pieces.fold(0, u64::saturating_add);
        Self {
            resource,
            round_trip_ms,
            first_piece_ms,
            handed_on_ms: if by_browser { handed_on_ms } else { 0.0 },
            bytes: resource.transferred_bytes().unwrap_or_default().max(body),
        }
    }
}

/// All that is known of a visit beside a pause.
struct Evidence<'v> {
    traffic: Traffic,
    packets: Option<Packets<'v>>,
    by_browser: bool,
    /// Pieces are single reads of a socket.
    reads_sockets: bool,
}

impl Evidence<'_> {
    /// Returns the cause of a pause; `None` without evidence, or if packets of the capture already show this stall.
    fn cause_of(&self, response: &Response<'_>, gap: &Stall) -> Option<StallCause> {
        let packets = self.packets.as_ref();
        let is_named = packets.is_some_and(|packets| packets.is_named(gap));
        if is_named || self.traffic.is_busy(response.resource, gap) {
            return None;
        }
        if packets.is_some_and(|packets| packets.is_proven(gap)) {
            return Some(StallCause::DelayedAck);
        }
        let least_ms = response.round_trip_ms.unwrap_or_default() + PAUSE_LEAST_MS;
        // The first byte is seen by the network process of a browser, and pieces by the page.
        let is_handed_on = response.handed_on_ms > 0.0 && gap.from_ms < response.first_piece_ms;
        let is_evident = !is_handed_on
            && gap.length_ms() >= least_ms + response.handed_on_ms
            && gap.rest_bytes > 0
            && self.is_of_segments(response, gap)
            && !self.traffic.is_shared(gap, self.by_browser);
        is_evident.then(|| match packets {
            // Packets that do not show it are evidence against it.
            Some(_) => StallCause::Gap,
            None => cause(gap, response.round_trip_ms),
        })
    }

    /// Returns whether the response of a pause arrived in more than one segment.
    fn is_of_segments(&self, response: &Response<'_>, gap: &Stall) -> bool {
        // A segment is read at once, so two reads of one response mean two segments.
        let are_own_reads = || self.reads_sockets && self.traffic.is_alone(response.resource, gap);
        response.bytes > SEGMENT_BYTES || are_own_reads()
    }
}

/// All gaps between parts of the response at `place`: its first byte, its pieces and its end.
fn gaps(place: usize, resource: &Resource) -> Vec<Stall> {
    let first = Piece {
        at_ms: resource.first_byte_ms(),
        bytes: 0,
    };
    // The end may be later than the last byte of the body, since only the sign of the end may be delayed.
    let last = Piece {
        at_ms: resource.end_ms(),
        bytes: 0,
    };
    let mut came = vec![first];
    came.extend(&resource.pieces);
    came.push(last);
    came.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
    let mut rest_bytes = 0_u64;
    let mut found = Vec::new();
    for pair in came.windows(2).rev() {
        let [before, after] = pair else { continue };
        rest_bytes = rest_bytes.saturating_add(after.bytes);
        found.push(Stall {
            resource: place,
            from_ms: before.at_ms,
            to_ms: after.at_ms,
            rest_bytes,
            cause: StallCause::Gap,
        });
    }
    found.reverse();
    found
}

/// The cause by the length of a pause and the bytes left. Without a round trip it is not known.
fn cause(gap: &Stall, round_trip_ms: Option<f64>) -> StallCause {
    let Some(round_trip_ms) = round_trip_ms else {
        return StallCause::Gap;
    };
    let held_ms = gap.length_ms() - round_trip_ms;
    let is_timer = HELD_MS
        .iter()
        .any(|(low, high)| (*low..=*high).contains(&held_ms));
    match is_timer && gap.rest_bytes < SEGMENT_BYTES {
        true => StallCause::DelayedAck,
        false => StallCause::Gap,
    }
}

/// A pause before more bytes than these may be that of a window: ten segments, an initial window (RFC 6928).
pub(super) const REST_BYTES_MAX: u64 = 14_600;
/// Payload of a segment over Ethernet, bytes. Nagle's algorithm (RFC 896) withholds less than this.
pub(super) const SEGMENT_BYTES: u64 = 1460;
/// How long receivers hold acknowledgements, ms: Linux 40 by a clock of up to 10 ms, others 200.
const HELD_MS: [(f64, f64); 2] = [(38.0, 60.0), (195.0, 215.0)];

#[cfg(test)]
mod tests;
