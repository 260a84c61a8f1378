//! `head-of-line`: a large or slow response delays a small one that was requested at the same time on the same connection.
//!
//! Only HTTP/2 and SPDY are examined, since their streams should prevent this. The small response is requested as more urgent
//! (RFC 9218), and again on an idle connection. Some delay is normal: data in the kernel's buffer, about a window, is sent first.

use serde_json::json;

use super::pick::{self, Picked};
use crate::doctor::code::head_of_line;
use crate::doctor::figures::{estimate, ms};
use crate::doctor::judge::sample::{average, more};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Severity, Visitor};
use crate::stats::Estimate;

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let round_trip_ms = x.round_trip_ms();
    if !x.first.protocol.has_streams() {
        return Ok(Vec::new());
    }
    if round_trip_ms < ROUND_TRIP_MIN_MS {
        return Err(Failure::short_round_trip(round_trip_ms));
    }
    let small = pick::small(x, SMALL_MAX_BYTES)?;
    let Some(small) = small else {
        return Err(Failure::no_body(1..=SMALL_MAX_BYTES));
    };
    // A page that its application makes slowly is the other kind of response that others must not wait for.
    let slow = x.plan.flushed.first().map(|url| Picked {
        url: url.clone(),
        bytes: 0,
    });
    let large = pick::large(x, LARGE_MIN_BYTES..=u64::MAX, LARGE_BYTES)?;
    if large.is_none() && slow.is_none() {
        return Err(Failure::no_body(LARGE_MIN_BYTES..=u64::MAX));
    }
    let mut findings = Vec::new();
    for (kind, other) in [("large", large), ("slow", slow)] {
        let Some(other) = other else { continue };
        let samples = x.visit(NetworkPath::Delayed(None), |visitor| {
            samples(visitor, &small, &other)
        })??;
        let figures = Figures::of(&samples, kind, other, round_trip_ms);
        let figures =
            figures.ok_or_else(|| Failure::other("too few samples of concurrent responses"))?;
        x.measure(&format!("later_beside_{kind}_ms"), estimate(&figures.later));
        findings.extend(judge(&figures));
    }
    Ok(x.with_command(findings))
}

/// Times of a small response together with another one.
struct Figures {
    /// The kind of the other response.
    kind: &'static str,
    other: Picked,
    /// By how much the small one is later than alone, ms.
    later: Estimate,
    /// Times of both, ms.
    beside: Estimate,
    end: Estimate,
    round_trip_ms: f64,
}

impl Figures {
    /// `None` with too few samples.
    fn of(
        samples: &[Sample],
        kind: &'static str,
        other: Picked,
        round_trip_ms: f64,
    ) -> Option<Self> {
        let pairs = samples.iter().map(|one| (one.alone, one.beside));
        Some(Self {
            kind,
            other,
            later: more(&pairs.collect::<Vec<_>>())?,
            beside: average(samples.iter().map(|one| one.beside))?,
            end: average(samples.iter().map(|one| one.other))?,
            round_trip_ms,
        })
    }
}

/// Times of a small response, ms.
#[derive(Clone, Copy, Debug)]
struct Sample {
    alone: f64,
    beside: f64,
    /// The end of the other one.
    other: f64,
}

fn samples(visitor: &Visitor<'_>, small: &Picked, other: &Picked) -> Result<Vec<Sample>, Failure> {
    let request = visitor.get(&small.url, &[("priority", "u=1")]);
    let large = visitor.get(&other.url, &[("priority", "u=5, i")]);
    let samples = visitor.rounds(ROUNDS, |_| {
        // Both connections have had a request: windows and compression of heads are the same.
        let first = {
            let mut alone = visitor.open(&visitor.dial())?;
            alone.exchange(&request)?;
            alone.exchange(&request)?
        };
        let mut beside = visitor.open(&visitor.dial())?;
        beside.exchange(&request)?;
        let both = beside.exchange_all(&[large.clone(), request.clone()])?;
        let [Ok(large), Ok(second)] = &both[..] else {
            return Ok(None);
        };
        let times = [(first.sent, first.end), (second.sent, second.end)];
        let is_valid = !visitor.are_void(&times).contains(&true);
        Ok(is_valid.then(|| Sample {
            alone: ms(first.sent, first.end),
            beside: ms(second.sent, second.end),
            other: ms(large.sent, large.end),
        }))
    })?;
    Ok(samples.into_iter().flatten().collect())
}

/// head-of-line: by the time that a small response takes more than alone.
fn judge(figures: &Figures) -> Option<Finding> {
    let Figures { later, other, .. } = figures;
    let share = figures.beside.value / figures.end.value.max(f64::EPSILON);
    let severity = severity(later.low, share, figures.round_trip_ms)?;
    let found = Finding::of(head_of_line::server(later.value, figures.kind), severity)
        .costs(later.value, later.value / figures.round_trip_ms)
        .proof("later_ms", estimate(later))
        .proof("share_of_the_other", share)
        .proof("small_ms", estimate(&figures.beside))
        .proof("other_ms", estimate(&figures.end));
    let other = json!({"url": other.url.to_string(), "bytes": other.bytes});
    Some(found.proof("other", other))
}

/// Returns the severity. A response between both times (alone, and the end of the other one) waited for the kernel's buffer.
/// Most servers fill that buffer with the other response.
fn severity(later_low_ms: f64, share: f64, round_trip_ms: f64) -> Option<Severity> {
    let is_late = later_low_ms >= round_trip_ms * ROUND_TRIPS;
    match share {
        _ if !is_late => None,
        SHARE_BAD.. => Some(Severity::Bad),
        SHARE_NOTED.. => Some(Severity::Note),
        _ => None,
    }
}

/// Samples.
const ROUNDS: usize = 4;
/// Bodies that count as small, and as large, bytes.
const SMALL_MAX_BYTES: u64 = 10_000;
const LARGE_MIN_BYTES: u64 = 150_000;
/// A large body takes five round trips of slow start.
const LARGE_BYTES: usize = 400_000;
/// A small response may wait for a window that is on its way already, round trips.
const ROUND_TRIPS: f64 = 1.5;
/// Of the other one's time: a response that takes this long has waited for all of it, or for the kernel's buffer.
const SHARE_BAD: f64 = 0.85;
const SHARE_NOTED: f64 = 0.6;
/// With a shorter round trip all of a large body comes at once, ms.
const ROUND_TRIP_MIN_MS: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_ends_with_the_other_has_waited_for_it() {
        assert_eq!(severity(200.0, 0.98, 50.0), Some(Severity::Bad));
        assert_eq!(severity(150.0, 0.75, 50.0), Some(Severity::Note));
        assert_eq!(severity(150.0, 0.5, 50.0), None);
        assert_eq!(severity(74.0, 0.98, 50.0), None);
    }
}
