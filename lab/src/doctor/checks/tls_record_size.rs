//! `tls-record-size`: the first TLS record of a response is longer than the first window.
//!
//! No byte of a record can be used before its last has come. A record of 16 KB is twelve segments, and a first window has
//! ten: the head of the response comes a round trip after its first segment. It is measured as the time to the head of a
//! large response less that of a small one, each the first on a connection of its own.

use serde_json::json;

use super::pick::{self, Picked};
use super::sample::{average, more};
use crate::client::Url;
use crate::doctor::code::Code;
use crate::doctor::examine::Examination;
use crate::doctor::failure::Failure;
use crate::doctor::figures::{estimate, ms};
use crate::doctor::finding::{Finding, Severity};
use crate::doctor::network::NetworkPath;
use crate::doctor::visitor::Visitor;

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    if !x.plan.url.tls {
        return Ok(Vec::new());
    }
    // A small body fits into the window whatever its record is: its head comes as early as can be.
    let small = pick::small(x, SMALL_MAX_BYTES)?;
    let large = pick::large(x, RECORD_BYTES..=u64::MAX, LARGE_BYTES)?;
    let Some(small) = small else {
        return Err(Failure::no_body(1..=SMALL_MAX_BYTES));
    };
    let Some(large) = large else {
        return Err(Failure::no_body(RECORD_BYTES..=u64::MAX));
    };
    let samples = x.visit(NetworkPath::Delayed(None), |visitor| {
        samples(visitor, &small, &large)
    })??;
    let pairs: Vec<(f64, f64)> = samples.iter().map(|one| (one.small, one.large)).collect();
    let Some(later) = more(&pairs) else {
        return Err(Failure::other("too few samples"));
    };
    let record = samples
        .iter()
        .map(|one| one.record_bytes)
        .min()
        .unwrap_or(0);
    x.measure("first_record_bytes", json!(record));
    x.measure("head_of_large_later_ms", estimate(&later));
    let round_trip_ms = x.round_trip_ms();
    let Some(severity) = judged(record, later.low, round_trip_ms) else {
        return Ok(Vec::new());
    };
    let title = format!(
        "The first record of a response has {record} bytes, more than a first window: nothing of it can be read for a round trip"
    );
    let mut finding = Finding::new(Code::TlsRecordSize, severity, title)
        .costs(later.value.max(0.0), 1.0)
        .proof("first_record_bytes", json!(record))
        .proof("later_ms", estimate(&later));
    for (name, part) in [("small", 0), ("large", 1)] {
        let times = pairs
            .iter()
            .map(|pair| if part == 0 { pair.0 } else { pair.1 });
        if let Some(head) = average(times) {
            finding = finding.proof(&format!("head_of_{name}_ms"), estimate(&head));
        }
    }
    let finding = finding
        .proof("url", json!(large.url.to_string()))
        .mend("nginx: ssl_buffer_size 4k;")
        .mend("firstbyte: nothing to set, the first records are small whatever ssl_buffer_size is")
        .mend(x.plan.command());
    Ok(vec![finding])
}

/// How bad a first record is: where the round trip is too short to be seen, its length alone is worth a note.
fn judged(record_bytes: u64, later_low_ms: f64, round_trip_ms: f64) -> Option<Severity> {
    if record_bytes < RECORD_BYTES {
        return None;
    }
    match round_trip_ms >= ROUND_TRIP_MIN_MS {
        true => (later_low_ms >= round_trip_ms / 2.0).then_some(Severity::Bad),
        false => Some(Severity::Note),
    }
}

/// Times to the heads of a small and a large response, ms.
struct Sample {
    small: f64,
    large: f64,
    /// The record that completed the large one's head.
    record_bytes: u64,
}

fn samples(visitor: &Visitor<'_>, small: &Picked, large: &Picked) -> Result<Vec<Sample>, Failure> {
    let samples = visitor.rounds(ROUNDS, |_| {
        let (small, _) = first(visitor, &small.url)?;
        let (large, record_bytes) = first(visitor, &large.url)?;
        let is_valid = !visitor.are_void(&[small, large]).contains(&true);
        Ok(is_valid.then(|| Sample {
            small: ms(small.0, small.1),
            large: ms(large.0, large.1),
            record_bytes,
        }))
    })?;
    Ok(samples.into_iter().flatten().collect())
}

/// The first response of a connection: when it was asked for and when its head was complete, and the largest record that came
/// with the head.
fn first(visitor: &Visitor<'_>, url: &Url) -> Result<((u64, u64), u64), Failure> {
    let mut session = visitor.open(&visitor.dial())?;
    let response = session.exchange(&visitor.get(url, &[]))?;
    let records = session.record().tls_records.iter();
    let with_head = records.filter(|record| record.at == response.head);
    let largest = with_head.map(|record| record.bytes).max().unwrap_or(0);
    Ok(((response.sent, response.head), largest))
}

/// Samples.
const ROUNDS: usize = 4;
/// Bodies that count as small, bytes.
const SMALL_MAX_BYTES: u64 = 4000;
/// Ten segments of 1448 bytes less what a handshake's last flight may have left there: a record of that length does not fit.
const RECORD_BYTES: u64 = 14_000;
const LARGE_BYTES: usize = 40_000;
/// A shorter round trip is lost among other delays, ms.
const ROUND_TRIP_MIN_MS: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_by_what_it_costs() {
        assert_eq!(judged(16_401, 49.0, 50.0), Some(Severity::Bad));
        assert_eq!(judged(16_401, 24.0, 50.0), None);
        assert_eq!(judged(13_999, 49.0, 50.0), None);
        assert_eq!(judged(16_401, 0.0, 0.1), Some(Severity::Note));
    }
}
