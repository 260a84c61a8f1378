//! tls-record-size: the first TLS record of a response is longer than the first window.
//!
//! No byte of a record can be used before its last has come. A record of 16 KB is twelve segments, and a first window has
//! ten: the head of the response comes a round trip after its first segment.

use serde_json::json;

use super::sample::{average, more};
use super::{Facts, Packets, count, middle_ms};
use crate::doctor::code::tls_record_size as texts;
use crate::doctor::figures::estimate;
use crate::doctor::{Finding, Severity};
use crate::stats::Estimate;

/// A first record of data that took a round trip to arrive.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlowRecord {
    pub(crate) bytes: usize,
    /// From its first byte to its last, ms.
    pub(crate) took_ms: f64,
    pub(crate) packets: Packets,
}

/// First responses of connections, small and large in turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) samples: Vec<Sample>,
    /// The large response.
    pub(crate) url: String,
    pub(crate) round_trip_ms: f64,
}

/// Times to the heads of a small and a large response, ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) small: f64,
    pub(crate) large: f64,
    /// The record that completed the large one's head.
    pub(crate) record_bytes: u64,
}

impl Figures {
    /// Delay of the large response's head against the small one's, ms; `None` with too few samples.
    pub(crate) fn later(&self) -> Option<Estimate> {
        let pairs = self.samples.iter().map(|one| (one.small, one.large));
        more(&pairs.collect::<Vec<_>>())
    }

    /// The shortest of the records.
    pub(crate) fn record_bytes(&self) -> u64 {
        let records = self.samples.iter().map(|one| one.record_bytes);
        records.min().unwrap_or(0)
    }
}

/// tls-record-size. For a server: bad if samples show the round trip, a note if the round trip is too short to measure. For a
/// capture: warned of.
pub(crate) fn judge(facts: Facts<'_, Figures, [SlowRecord]>) -> Option<Finding> {
    match facts {
        Facts::Server(figures) => judge_samples(figures),
        Facts::Packets(all) => judge_packets(all),
        Facts::Page(_) => None,
    }
}

fn judge_packets(all: &[SlowRecord]) -> Option<Finding> {
    let mut all: Vec<&SlowRecord> = all.iter().collect();
    all.sort_by(|a, b| b.took_ms.total_cmp(&a.took_ms));
    let worst = *all.first()?;
    let text = texts::capture(count(all.len(), "connection"), worst.bytes, worst.took_ms);
    let found = Finding::of(text, Severity::Warn)
        .costs(middle_ms(all.iter().map(|one| one.took_ms)), 1.0)
        .proof("record_bytes", worst.bytes)
        .proof("packets", worst.packets.to_string());
    Some(found.examples(all.iter().map(|one| {
        let figures = json!({"record_bytes": one.bytes, "took_ms": one.took_ms});
        one.packets.with(figures)
    })))
}

fn judge_samples(figures: &Figures) -> Option<Finding> {
    let (record, later) = (figures.record_bytes(), figures.later()?);
    let severity = severity(record, later.low, figures.round_trip_ms)?;
    let mut found = Finding::of(texts::server(record), severity)
        .costs(later.value.max(0.0), 1.0)
        .proof("first_record_bytes", record)
        .proof("later_ms", estimate(&later))
        .proof("url", figures.url.as_str());
    let small = average(figures.samples.iter().map(|one| one.small));
    let large = average(figures.samples.iter().map(|one| one.large));
    for (name, head) in [("head_of_small_ms", small), ("head_of_large_ms", large)] {
        if let Some(head) = head {
            found = found.proof(name, estimate(&head));
        }
    }
    Some(found)
}

/// Returns the severity. If the round trip is too short to measure, the length of the record alone is a note.
fn severity(record_bytes: u64, later_low_ms: f64, round_trip_ms: f64) -> Option<Severity> {
    if record_bytes < RECORD_BYTES {
        return None;
    }
    match round_trip_ms >= ROUND_TRIP_MIN_MS {
        true => (later_low_ms >= round_trip_ms / 2.0).then_some(Severity::Bad),
        false => Some(Severity::Note),
    }
}

/// Ten segments of 1448 bytes less the rest of a handshake's last flight: a record of that length does not fit.
pub(crate) const RECORD_BYTES: u64 = 14_000;
/// A shorter round trip is lost among other delays, ms.
const ROUND_TRIP_MIN_MS: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_by_what_it_costs() {
        assert_eq!(severity(16_401, 49.0, 50.0), Some(Severity::Bad));
        assert_eq!(severity(16_401, 24.0, 50.0), None);
        assert_eq!(severity(13_999, 49.0, 50.0), None);
        assert_eq!(severity(16_401, 0.0, 0.1), Some(Severity::Note));
    }
}
