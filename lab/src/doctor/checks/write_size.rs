//! `write-size`: a response leaves in pieces far below the segment size although more of it follows at once.
//!
//! A first window is ten segments, whatever is in them (RFC 6928): a response in small ones needs more round trips. The kernel
//! counts segments with data (`tcpi_data_segs_in`). Counted are those of a second response, for which the window is larger: what
//! does not fit into a window waits, and is put together before it leaves. The first response shows what that costs.

use serde_json::json;

use super::pick::{self, Picked};
use super::sample::average;
use crate::doctor::code::Code;
use crate::doctor::examine::Examination;
use crate::doctor::failure::Failure;
use crate::doctor::figures::{estimate, ms};
use crate::doctor::finding::{Finding, Severity};
use crate::doctor::network::NetworkPath;
use crate::doctor::slow_start::{SEGMENT_BYTES, further_round_trips};
use crate::doctor::visitor::Visitor;

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let picked = match pick::large(x, BODY_MIN_BYTES..=BODY_MAX_BYTES, BODY_BYTES)? {
        None => pick::large(x, BODY_MIN_BYTES..=u64::MAX, BODY_BYTES)?,
        found => found,
    };
    let Some(body) = picked else {
        return Err(Failure::no_body(BODY_MIN_BYTES..=u64::MAX));
    };
    let samples = x.visit(NetworkPath::Delayed(None), |visitor| {
        samples(visitor, &body)
    })??;
    let segments: Vec<u64> = samples.iter().map(|one| one.segments).collect();
    let full = full_segments(body.bytes);
    x.measure(
        "segments_of_a_response",
        json!({"counted": segments, "full": full}),
    );
    if samples.len() < SAMPLES {
        return Err(Failure::other(
            "too few samples of the segments of a response",
        ));
    }
    if samples.iter().any(|one| !one.is_chopped(full)) {
        return Ok(Vec::new());
    }
    let Some(took) = average(samples.iter().map(|one| one.first_took_ms)) else {
        return Ok(Vec::new());
    };
    let round_trip_ms = x.round_trip_ms();
    // What the low end of the interval took is lost for sure.
    let lost = lost_round_trips(took.low, round_trip_ms, full);
    let severity = if lost > 0.0 {
        Severity::Bad
    } else {
        Severity::Warn
    };
    let least = segments.iter().min().copied().unwrap_or(0);
    let title = format!(
        "A response of {} bytes comes in {least} segments where {full} hold it",
        body.bytes
    );
    let finding = Finding::new(Code::WriteSize, severity, title)
        .costs(lost * round_trip_ms, lost)
        .proof("segments", json!(segments))
        .proof("full_segments", json!(full))
        .proof("first_response_took_ms", estimate(&took))
        .proof("url", json!(body.url.to_string()))
        .mend("nginx: larger buffers (output_buffers, proxy_buffer_size, gzip_buffers), sendfile on; tcp_nopush on;")
        .mend("firstbyte: nothing to set; an application that flushes after each line should not")
        .mend(x.plan.command());
    Ok(vec![finding])
}

/// Two responses of a connection.
struct Sample {
    /// From the head of the first one to its end, ms.
    first_took_ms: f64,
    /// Segments of the second one, and from its head to its end, ms.
    segments: u64,
    took_ms: f64,
}

impl Sample {
    /// Whether it came in many more segments than hold it, and at once: what is made slowly may come in small ones.
    fn is_chopped(&self, full: u64) -> bool {
        self.segments * 2 >= full * 3 + 2 * USUAL_SEGMENTS && self.took_ms < AT_ONCE_MS
    }
}

fn samples(visitor: &Visitor<'_>, body: &Picked) -> Result<Vec<Sample>, Failure> {
    let request = visitor.get(&body.url, &[]);
    let samples = visitor.rounds(SAMPLES, |_| {
        let mut session = visitor.open(&visitor.dial())?;
        let first = session.exchange(&request)?;
        if !session.is_open() {
            return Ok(None);
        }
        let before = session.record().data_segments;
        let second = session.exchange(&request)?;
        let counts = before.zip(session.record().data_segments);
        Ok(counts.map(|(before, after)| Sample {
            first_took_ms: ms(first.head, first.end),
            segments: after.saturating_sub(before).into(),
            took_ms: ms(second.head, second.end),
        }))
    })?;
    Ok(samples.into_iter().flatten().collect())
}

/// Segments that hold a body with its head, TLS and frames.
fn full_segments(bytes: u64) -> u64 {
    (bytes + bytes / 32).div_ceil(SEGMENT_BYTES) + 1
}

/// Round trips that a first response took beyond those that full segments need.
fn lost_round_trips(took_ms: f64, round_trip_ms: f64, full: u64) -> f64 {
    if round_trip_ms < ROUND_TRIP_MIN_MS {
        return 0.0;
    }
    let needed = further_round_trips(full * SEGMENT_BYTES);
    (took_ms / round_trip_ms - f64::from(needed))
        .round()
        .max(0.0)
}

/// Connections.
const SAMPLES: usize = 3;
/// Segments beyond the full ones that are usual: a head and a tail of their own, frames.
const USUAL_SEGMENTS: u64 = 6;
/// A response that takes longer after its head is made slowly, ms: three round trips of the link.
const AT_ONCE_MS: f64 = 150.0;
/// A shorter round trip is lost among other delays, ms.
const ROUND_TRIP_MIN_MS: f64 = 5.0;
/// Bodies that are looked at, bytes: larger ones wait for windows, where small pieces are put together.
const BODY_MIN_BYTES: u64 = 4000;
const BODY_MAX_BYTES: u64 = 30_000;
const BODY_BYTES: usize = 12_000;

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
        let full = full_segments(12_000);
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
