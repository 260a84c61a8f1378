//! write-size: a response leaves in pieces far below the segment size although more of it follows at once.
//!
//! A first window is ten segments, whatever is in them (RFC 6928): a response in small ones needs more round trips. Requests
//! count the segments of a second response, with its larger window. Data beyond a window waits, and small pieces
//! are joined before they leave. The first response shows the cost.

use std::cmp::Reverse;

use serde_json::json;

use super::sample::average;
use super::{Facts, Packets, count};
use crate::doctor::code::write_size as texts;
use crate::doctor::figures::estimate;
use crate::doctor::slow_start::{SEGMENT_BYTES, further_round_trips};
use crate::doctor::{Finding, Severity};

/// Responses of some connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) url: String,
    /// Bytes of the body.
    pub(crate) bytes: u64,
    pub(crate) samples: Vec<Sample>,
    pub(crate) round_trip_ms: f64,
}

/// Two responses of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// From the head of the first one to its end, ms.
    pub(crate) first_took_ms: f64,
    /// Segments of the second one, and from its head to its end, ms.
    pub(crate) segments: u64,
    pub(crate) took_ms: f64,
}

/// Short segments of a connection that were followed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    /// The segment size of the connection.
    pub(crate) segment_bytes: u32,
    /// The first one, and the one that followed the last.
    pub(crate) packets: Packets,
}

impl Run {
    /// Segments that the bytes need.
    fn needed(&self) -> u64 {
        self.bytes.div_ceil(u64::from(self.segment_bytes).max(1))
    }
}

impl Figures {
    pub(crate) fn segments(&self) -> Vec<u64> {
        self.samples.iter().map(|one| one.segments).collect()
    }

    /// Segments that hold the body with its head, TLS and frames.
    pub(crate) fn full_segments(&self) -> u64 {
        (self.bytes + self.bytes / 32).div_ceil(SEGMENT_BYTES) + 1
    }
}

impl Sample {
    /// Whether it came in many more segments than hold it, and at once: a response that is made slowly may come in small ones.
    fn is_chopped(&self, full: u64) -> bool {
        self.segments * 2 >= full * 3 + 2 * USUAL_SEGMENTS && self.took_ms < AT_ONCE_MS
    }
}

/// write-size: bad if the first response took a round trip more than full segments need; else, and by packets, warned of.
pub(crate) fn judge(facts: Facts<'_, Figures, [Run]>) -> Option<Finding> {
    match facts {
        Facts::Server(figures) => judge_counted(figures),
        Facts::Packets(runs) => judge_packets(runs),
        Facts::Page(_) => None,
    }
}

fn judge_packets(runs: &[Run]) -> Option<Finding> {
    let mut runs: Vec<&Run> = runs.iter().collect();
    runs.sort_by_key(|run| Reverse(run.segments));
    let worst = *runs.first()?;
    let connections = count(runs.len(), "connection");
    let (all, bytes, needed) = (worst.segments, worst.bytes, worst.needed());
    let text = texts::capture(connections, worst.segment_bytes, all, bytes, needed);
    let found = Finding::of(text, Severity::Warn)
        .proof("segments", all)
        .proof("packets", worst.packets.to_string())
        .proof("bytes", bytes);
    Some(found.examples(runs.iter().map(|run| {
        let (segments, needed) = (run.segments, run.needed());
        let figures = json!({"segments": segments, "bytes": run.bytes, "needed": needed});
        run.packets.with(figures)
    })))
}

fn judge_counted(figures: &Figures) -> Option<Finding> {
    let full = figures.full_segments();
    if figures.samples.iter().any(|one| !one.is_chopped(full)) {
        return None;
    }
    let took = average(figures.samples.iter().map(|one| one.first_took_ms))?;
    // At least the low end of the interval is lost.
    let lost = lost_round_trips(took.low, figures.round_trip_ms, full);
    let severity = if lost > 0.0 {
        Severity::Bad
    } else {
        Severity::Warn
    };
    let segments = figures.segments();
    let least = segments.iter().min().copied().unwrap_or(0);
    let found = Finding::of(texts::server(figures.bytes, least, full), severity)
        .costs(lost * figures.round_trip_ms, lost)
        .proof("segments", segments)
        .proof("full_segments", full)
        .proof("first_response_took_ms", estimate(&took))
        .proof("url", figures.url.as_str());
    Some(found)
}

/// Round trips of a first response beyond the need of full segments.
fn lost_round_trips(took_ms: f64, round_trip_ms: f64, full: u64) -> f64 {
    if round_trip_ms < ROUND_TRIP_MIN_MS {
        return 0.0;
    }
    let needed = further_round_trips(full * SEGMENT_BYTES);
    (took_ms / round_trip_ms - f64::from(needed))
        .round()
        .max(0.0)
}

/// Segments beyond the full ones that are usual: a head and a tail of their own, frames.
const USUAL_SEGMENTS: u64 = 6;
/// A response that takes longer after its head is made slowly, ms: three round trips of the link.
const AT_ONCE_MS: f64 = 150.0;
/// A shorter round trip is lost among other delays, ms.
const ROUND_TRIP_MIN_MS: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(segments: u64, took_ms: f64) -> Sample {
        Sample {
            first_took_ms: 0.0,
            segments,
            took_ms,
        }
    }

    #[test]
    fn half_as_many_segments_again_and_six_are_too_many() {
        let body = Figures {
            bytes: 12_000,
            ..Figures::default()
        };
        let full = body.full_segments();
        assert_eq!(full, 10);
        assert!(!sample(12, 1.0).is_chopped(full));
        assert!(!sample(20, 1.0).is_chopped(full));
        assert!(sample(21, 1.0).is_chopped(full));
        assert!(!sample(121, 150.0).is_chopped(full));
    }

    #[test]
    fn round_trips_are_lost_beyond_those_of_full_segments() {
        assert_eq!(lost_round_trips(50.4, 50.0, 10), 1.0);
        assert_eq!(lost_round_trips(0.4, 50.0, 10), 0.0);
        assert_eq!(lost_round_trips(50.4, 50.0, 11), 0.0);
        assert_eq!(lost_round_trips(50.4, 0.1, 10), 0.0);
    }
}
