//! `small-slower-than-large`: a small body takes longer than a large one, as it does where the end of a response waits for an
//! acknowledgement that a large one does not need, and where small responses go another way through the server.
//!
//! Both are requested in turn on the same connections, with acknowledgements held as long as can be.

use serde_json::json;

use super::pick::{self, Picked};
use super::sample::{average, more};
use crate::doctor::code::Code;
use crate::doctor::examine::Examination;
use crate::doctor::failure::Failure;
use crate::doctor::figures::{estimate, ms};
use crate::doctor::finding::{Finding, Severity};
use crate::doctor::network::NetworkPath;
use crate::doctor::visitor::Visitor;
use crate::stats::Estimate;

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let small = pick::small(x, SMALL_MAX_BYTES)?;
    let large = match pick::large(x, LARGE_MIN_BYTES..=LARGE_MAX_BYTES, LARGE_BYTES)? {
        None => pick::large(x, LARGE_MIN_BYTES..=u64::MAX, LARGE_BYTES)?,
        found => found,
    };
    let Some(small) = small else {
        return Err(Failure::no_body(1..=SMALL_MAX_BYTES));
    };
    let Some(large) = large else {
        return Err(Failure::no_body(LARGE_MIN_BYTES..=u64::MAX));
    };
    let hold = x.network.holds().first().copied();
    let pairs = x.visit(NetworkPath::Delayed(hold), |visitor| {
        pairs(visitor, &small, &large)
    })??;
    let smalls = average(pairs.iter().map(|(_, small)| *small));
    let (Some(later), Some(took)) = (more(&pairs), smalls) else {
        return Err(Failure::other("too few samples"));
    };
    x.measure("small_later_than_large_ms", estimate(&later));
    let Some(severity) = judged(&later, x.has(Code::DelayedAckStall)) else {
        return Ok(Vec::new());
    };
    let title = format!(
        "A body of {} bytes takes {:.0} ms, {:.0} ms more than one of {} bytes",
        small.bytes, took.value, later.value, large.bytes
    );
    let finding = Finding::new(Code::SmallSlowerThanLarge, severity, title)
        .costs(later.value, 0.0)
        .proof("later_ms", estimate(&later))
        .proof("small_ms", estimate(&took))
        .proof("bytes", json!([small.bytes, large.bytes]))
        .mend("if delayed-ack-stall is found as well: what mends that")
        .mend("nginx: tcp_nodelay on; no postpone_output and no limit_rate for small files")
        .mend("firstbyte: nothing to set")
        .mend(x.plan.command());
    Ok(vec![finding])
}

/// How bad it is; a stall that is known explains it, and is the one to mend.
fn judged(later: &Estimate, is_explained: bool) -> Option<Severity> {
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
        // The first request of a connection may be a case of its own: each size has it in turn.
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
/// A larger one takes round trips of its own.
const LARGE_MAX_BYTES: u64 = 13_000;
/// A large body that fits into a first window of ten segments.
const LARGE_BYTES: usize = 12_000;
/// A small body has to take this much longer, ms, to be worth a finding, and a bad one.
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
        assert_eq!(judged(&later(30.0, 26.0), false), None);
        assert_eq!(judged(&later(30.0, 20.0), false), Some(Severity::Bad));
        assert_eq!(judged(&later(10.0, 1.0), false), Some(Severity::Warn));
        assert_eq!(judged(&later(30.0, 20.0), true), Some(Severity::Note));
    }
}
