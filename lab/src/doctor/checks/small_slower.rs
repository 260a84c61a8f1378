//! `small-slower-than-large`: a small body takes longer than a large one. The end of the small response may wait for an
//! acknowledgement that the large one does not need, or the server may handle small responses differently.
//!
//! Both are requested in turn on the same connections, with acknowledgements held as long as possible.

use serde_json::json;

use super::pick::{self, Picked};
use crate::doctor::code::{Code, small_slower_than_large};
use crate::doctor::figures::{estimate, ms};
use crate::doctor::judge::sample::{average, more};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Severity, Visitor};
use crate::stats::Estimate;

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let small = pick::small(x, SMALL_MAX_BYTES)?;
    let large = pick::large(x, LARGE_MIN_BYTES..=LARGE_MAX_BYTES, LARGE_BYTES)?;
    let small = small.ok_or_else(|| Failure::no_body(1..=SMALL_MAX_BYTES))?;
    let large = large.ok_or_else(|| Failure::no_body(LARGE_MIN_BYTES..=u64::MAX))?;
    let hold = x.network.holds().first().copied();
    let pairs = x.visit(NetworkPath::Delayed(hold), |visitor| {
        pairs(visitor, &small, &large)
    })??;
    let smalls = average(pairs.iter().map(|(_, small)| *small));
    let (Some(later), Some(took)) = (more(&pairs), smalls) else {
        return Err(Failure::other("too few samples"));
    };
    x.measure("small_later_than_large_ms", estimate(&later));
    let figures = Figures {
        bytes: [small.bytes, large.bytes],
        took,
        later,
        is_explained: x.has(Code::DelayedAckStall),
    };
    Ok(x.with_command(judge(&figures)))
}

/// Times of a small body and a large one.
struct Figures {
    /// Bytes of both.
    bytes: [u64; 2],
    /// The time of the small one, and its delay against the large one, ms.
    took: Estimate,
    later: Estimate,
    /// Whether a stall was found.
    is_explained: bool,
}

/// small-slower-than-large: by the lower end of the difference.
fn judge(figures: &Figures) -> Option<Finding> {
    let Figures {
        bytes, took, later, ..
    } = figures;
    let severity = severity(later, figures.is_explained)?;
    let text = small_slower_than_large::server(bytes[0], took.value, later.value, bytes[1]);
    let found = Finding::of(text, severity)
        .costs(later.value, 0.0)
        .proof("later_ms", estimate(later))
        .proof("small_ms", estimate(took));
    Some(found.proof("bytes", json!(bytes)))
}

/// Returns the severity. A stall that was found explains the delay, and is the fault to fix.
fn severity(later: &Estimate, is_explained: bool) -> Option<Severity> {
    match (later.low >= LEAST_MS, is_explained) {
        (false, _) => None,
        (true, true) => Some(Severity::Note),
        (true, false) if later.value >= BAD_MS => Some(Severity::Bad),
        (true, false) => Some(Severity::Warn),
    }
}

/// Times of the large and the small body in turn, ms.
fn pairs(
    visitor: &Visitor<'_>,
    small: &Picked,
    large: &Picked,
) -> Result<Vec<(f64, f64)>, Failure> {
    let pairs = visitor.rounds(ROUNDS, |round| {
        let mut pairs = Vec::new();
        let mut session = visitor.open(&visitor.dial())?;
        // The first request of a connection may differ, so both sizes are first in turn.
        let order = if round % 2 == 0 {
            [small, large]
        } else {
            [large, small]
        };
        let mut times = Vec::new();
        for picked in order.iter().cycle().take(2 * PAIRS_A_CONNECTION) {
            session.keep_open()?;
            let response = session.exchange(&visitor.get(&picked.url, &[]))?;
            times.push((response.sent, response.end));
        }
        for both in times.chunks_exact(2) {
            if visitor.are_void(both).contains(&true) {
                continue;
            }
            let took: Vec<f64> = both.iter().map(|(from, to)| ms(*from, *to)).collect();
            pairs.push(match round % 2 {
                0 => (took[1], took[0]),
                _ => (took[0], took[1]),
            });
        }
        Ok(pairs)
    })?;
    Ok(pairs.into_iter().flatten().collect())
}

/// Connections, and pairs of each.
const ROUNDS: usize = 4;
const PAIRS_A_CONNECTION: usize = 2;
/// Bodies that count as small, and as large, bytes.
const SMALL_MAX_BYTES: u64 = 2000;
const LARGE_MIN_BYTES: u64 = 8000;
/// A larger body needs further round trips.
const LARGE_MAX_BYTES: u64 = 13_000;
/// A large body that fits into a first window of ten segments.
const LARGE_BYTES: usize = 12_000;
/// Least delay of a small body for a finding, ms, and for a bad one.
const LEAST_MS: f64 = 5.0;
const BAD_MS: f64 = 15.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_by_the_lower_end_of_its_interval() {
        let later = |value: f64, half: f64| Estimate {
            value,
            low: value - half,
            high: value + half,
            n: 8,
        };
        assert_eq!(severity(&later(30.0, 26.0), false), None);
        assert_eq!(severity(&later(30.0, 20.0), false), Some(Severity::Bad));
        assert_eq!(severity(&later(10.0, 1.0), false), Some(Severity::Warn));
        assert_eq!(severity(&later(30.0, 20.0), true), Some(Severity::Note));
    }
}
