//! Stalls: pauses of a response well over a round trip, with little left to come.
//!
//! A sender that keeps its last, small piece until what was before it is acknowledged is late by what the receiver holds
//! the acknowledgement and a round trip. Linux holds it for 40 ms, other systems and Linux under some loads for 200 ms.
//! A pause while the connection carried another response is none: the server had something else to send.
//!
//! Only the pieces of a body show a pause. Source: RFC 1122 section 4.2.3.2 and 4.2.3.4, docs/link.md.

use std::collections::HashMap;

use super::wait::RoundTrips;
use crate::page::resource::{Piece, Resource};
use crate::page::visit::Visit;

/// A pause within a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// The place of the resource in [`Visit::resources`].
    pub resource: usize,
    /// When the pause began: the byte before it came, ms.
    pub from_ms: f64,
    /// When it ended: the next byte came, ms.
    pub to_ms: f64,
    /// Bytes of the body that came behind it.
    pub rest_bytes: u64,
    /// Its cause, as far as the evidence goes.
    pub cause: StallCause,
}

impl Stall {
    /// How long it was, ms.
    #[must_use]
    pub fn length_ms(&self) -> f64 {
        self.to_ms - self.from_ms
    }
}

/// The cause of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallCause {
    /// The sender waited for an acknowledgement that the receiver held back: the length is that of the timer and a round
    /// trip, and behind it came less than a segment.
    DelayedAck,
    /// Nothing is known but the pause.
    Gap,
}

impl StallCause {
    /// Its name in pictures and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DelayedAck => "delayed acknowledgement",
            Self::Gap => "gap",
        }
    }
}

/// The stalls of a visit, in the order of resources and of time.
pub(super) fn stalls(visit: &Visit, round_trips: &RoundTrips) -> Vec<Stall> {
    let traffic = Traffic::of(visit);
    let mut found = Vec::new();
    for (place, resource) in visit.resources.iter().enumerate() {
        if resource.pieces.is_empty() || resource.from_cache {
            continue;
        }
        let round_trip_ms = round_trips.to(resource);
        let least_ms = round_trip_ms.unwrap_or_default() + PAUSE_LEAST_MS;
        let gaps = gaps(resource).into_iter();
        let long = gaps.filter(|gap| gap.to_ms - gap.from_ms >= least_ms);
        let small = long.filter(|gap| gap.rest_bytes <= REST_BYTES_MAX);
        found.extend(
            small
                .filter(|gap| !traffic.is_busy(place, resource, gap.from_ms, gap.to_ms))
                .map(|gap| Stall {
                    resource: place,
                    cause: cause(&gap, round_trip_ms),
                    ..gap
                }),
        );
    }
    found
}

/// All gaps between what came of a response, the first byte of its head and its end included.
fn gaps(resource: &Resource) -> Vec<Stall> {
    let first = Piece {
        at_ms: resource.first_byte_ms(),
        bytes: 0,
    };
    // The end may be later than the last byte of the body: the sign of the end was kept.
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
            resource: 0,
            from_ms: before.at_ms,
            to_ms: after.at_ms,
            rest_bytes,
            cause: StallCause::Gap,
        });
    }
    found.reverse();
    found
}

/// The cause that the length of a pause and its rest carry. Without a round trip they carry none.
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

/// When each connection carried something.
struct Traffic {
    /// By connection: moments of pieces and of first bytes in order of time, with the place of the resource.
    moments: HashMap<u64, Vec<(f64, usize)>>,
    /// By connection: times within which responses without pieces came, in order and apart from each other.
    unseen: HashMap<u64, Vec<(f64, f64)>>,
}

impl Traffic {
    fn of(visit: &Visit) -> Self {
        let mut moments: HashMap<u64, Vec<(f64, usize)>> = HashMap::new();
        let mut unseen: HashMap<u64, Vec<(f64, f64)>> = HashMap::new();
        for (place, resource) in visit.resources.iter().enumerate() {
            let Some(connection) = resource.connection else {
                continue;
            };
            let (first, end) = (resource.first_byte_ms(), resource.end_ms());
            let of_connection = moments.entry(connection).or_default();
            of_connection.push((first, place));
            of_connection.extend(resource.pieces.iter().map(|piece| (piece.at_ms, place)));
            if resource.pieces.is_empty() && end - first > PAUSE_LEAST_MS {
                unseen.entry(connection).or_default().push((first, end));
            }
        }
        for of_connection in moments.values_mut() {
            of_connection.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        for spans in unseen.values_mut() {
            *spans = joined(std::mem::take(spans));
        }
        Self { moments, unseen }
    }

    /// Whether the connection of the resource at `place` carried another response between two moments, or may have.
    fn is_busy(&self, place: usize, resource: &Resource, from_ms: f64, to_ms: f64) -> bool {
        let Some(connection) = resource.connection else {
            return false;
        };
        let moments = self.moments.get(&connection).map_or(&[][..], Vec::as_slice);
        let begin = moments.partition_point(|(at, _)| *at <= from_ms);
        let inside = moments.iter().skip(begin);
        // What comes with the end of the pause is not the reason for it: the bytes may share a segment.
        let mut inside = inside.take_while(|(at, _)| *at < to_ms - TOGETHER_MS);
        let unseen = self.unseen.get(&connection).map_or(&[][..], Vec::as_slice);
        let first_after = unseen.partition_point(|(_, end)| *end <= from_ms);
        let unseen = unseen.get(first_after);
        inside.any(|(_, other)| *other != place) || unseen.is_some_and(|(first, _)| *first < to_ms)
    }
}

/// Spans of time in order, those that overlap as one.
fn joined(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut apart: Vec<(f64, f64)> = Vec::new();
    for (from, to) in spans {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

/// A pause is longer than a round trip by this at least: the congestion window explains a round trip, and the shortest timer
/// of acknowledgements that is in use is that of Linux, 40 ms.
pub(super) const PAUSE_LEAST_MS: f64 = 30.0;
/// A pause before more bytes than these may be that of a window: ten segments, an initial window (RFC 6928).
pub(super) const REST_BYTES_MAX: u64 = 14_600;
/// Less than this waits for an acknowledgement in a sender with Nagle's algorithm (RFC 896): the body of a segment.
const SEGMENT_BYTES: u64 = 1460;
/// How long receivers hold acknowledgements, ms: Linux 40 by a clock of up to 10 ms, others 200.
const HELD_MS: [(f64, f64); 2] = [(38.0, 60.0), (195.0, 215.0)];
/// Bytes that come within this are taken to come together, ms.
const TOGETHER_MS: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Phases;

    /// A response whose head comes at 100 ms, and then pieces.
    fn response(url: &str, connection: u64, pieces: &[(f64, u64)]) -> Resource {
        let end = pieces.last().map_or(100.0, |(at, _)| *at);
        Resource {
            url: url.to_owned(),
            connection: Some(connection),
            phases: Phases {
                wait_ms: Some(100.0),
                receive_ms: Some(end - 100.0),
                ..Phases::default()
            },
            pieces: pieces
                .iter()
                .map(|(at_ms, bytes)| Piece {
                    at_ms: *at_ms,
                    bytes: *bytes,
                })
                .collect(),
            ..Resource::default()
        }
    }

    fn found(resources: Vec<Resource>, round_trip_ms: Option<f64>) -> Vec<Stall> {
        let visit = Visit {
            resources,
            round_trip_ms,
            ..Visit::default()
        };
        stalls(&visit, &RoundTrips::of(&visit))
    }

    fn causes(pieces: &[(f64, u64)], round_trip_ms: Option<f64>) -> Vec<StallCause> {
        let stalls = found(vec![response("http://a.test/", 1, pieces)], round_trip_ms);
        stalls.iter().map(|stall| stall.cause).collect()
    }

    #[test]
    fn a_small_rest_behind_a_timer_and_a_round_trip_is_a_delayed_acknowledgement() {
        let stalls = found(
            vec![response(
                "http://a.test/",
                1,
                &[(101.0, 1460), (351.0, 142)],
            )],
            Some(50.0),
        );
        let expected = Stall {
            resource: 0,
            from_ms: 101.0,
            to_ms: 351.0,
            rest_bytes: 142,
            cause: StallCause::DelayedAck,
        };
        assert_eq!(stalls, [expected]);
        // Both timers, at their ends and beyond.
        for (held, expected) in [
            (38.0, StallCause::DelayedAck),
            (60.0, StallCause::DelayedAck),
            (61.0, StallCause::Gap),
            (194.0, StallCause::Gap),
            (195.0, StallCause::DelayedAck),
            (215.0, StallCause::DelayedAck),
            (216.0, StallCause::Gap),
        ] {
            let pieces = [(100.0, 1000), (150.0 + held, 10)];
            assert_eq!(causes(&pieces, Some(50.0)), [expected], "{held}");
        }
    }

    #[test]
    fn a_whole_segment_or_an_unknown_round_trip_carries_no_cause() {
        let pieces = |rest| [(100.0, 1000), (350.0, rest)];
        assert_eq!(causes(&pieces(1459), Some(50.0)), [StallCause::DelayedAck]);
        assert_eq!(causes(&pieces(1460), Some(50.0)), [StallCause::Gap]);
        assert_eq!(causes(&pieces(10), None), [StallCause::Gap]);
    }

    #[test]
    fn a_round_trip_and_a_large_rest_are_no_stall() {
        assert_eq!(causes(&[(100.0, 9), (179.0, 9)], Some(50.0)), []);
        assert_eq!(
            causes(&[(100.0, 9), (180.0, 9)], Some(50.0)),
            [StallCause::Gap]
        );
        let pieces = |rest| [(100.0, 1), (300.0, rest)];
        assert_eq!(
            causes(&pieces(REST_BYTES_MAX), Some(1.0)),
            [StallCause::Gap]
        );
        assert_eq!(causes(&pieces(REST_BYTES_MAX + 1), Some(1.0)), []);
    }

    #[test]
    fn an_end_that_comes_late_is_a_stall_without_a_rest() {
        let mut late = response("http://a.test/", 1, &[(100.0, 500)]);
        late.phases.receive_ms = Some(240.0);
        let stalls = found(vec![late], Some(40.0));
        assert_eq!(
            (stalls[0].rest_bytes, stalls[0].cause),
            (0, StallCause::DelayedAck)
        );
    }

    #[test]
    fn a_connection_that_carries_another_response_does_not_stall() {
        let pieces = [(100.0, 1000), (350.0, 10)];
        let slow = || response("http://a.test/", 1, &pieces);
        let other = |connection| response("http://a.test/b", connection, &[(200.0, 50_000)]);
        assert_eq!(found(vec![slow(), other(1)], Some(50.0)), []);
        assert_eq!(found(vec![slow(), other(2)], Some(50.0)).len(), 1);
        // Without its pieces, nobody knows when the other response came.
        let unseen = |from: f64, to: f64| {
            let mut other = other(1);
            other.pieces.clear();
            other.phases.wait_ms = Some(from);
            other.phases.receive_ms = Some(to - from);
            other
        };
        let stalls = |spans: &[(f64, f64)]| {
            let others = spans.iter().map(|(from, to)| unseen(*from, *to));
            found(std::iter::once(slow()).chain(others).collect(), Some(50.0)).len()
        };
        assert_eq!(stalls(&[(50.0, 200.0)]), 0);
        assert_eq!(stalls(&[(10.0, 60.0), (20.0, 150.0), (30.0, 90.0)]), 0);
        assert_eq!(stalls(&[(10.0, 100.0), (350.0, 400.0), (20.0, 90.0)]), 1);
    }
}
