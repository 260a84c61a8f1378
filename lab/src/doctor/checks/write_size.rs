//! write-size: two responses of a connection, by the kernel's count of segments (`tcpi_data_segs_in`).

use serde_json::json;

use super::pick::{self, Picked};
use crate::doctor::figures::ms;
use crate::doctor::judge::Facts;
use crate::doctor::judge::write_size::{Figures, Sample, judge};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let picked = pick::large(x, BODY_MIN_BYTES..=BODY_MAX_BYTES, BODY_BYTES)?;
    let body = picked.ok_or_else(|| Failure::no_body(BODY_MIN_BYTES..=u64::MAX))?;
    let samples = x.visit(NetworkPath::Delayed(None), |visitor| {
        samples(visitor, &body)
    })??;
    let figures = Figures {
        url: body.url.to_string(),
        bytes: body.bytes,
        samples,
        round_trip_ms: x.round_trip_ms(),
    };
    x.measure(
        "segments_of_a_response",
        json!({"counted": figures.segments(), "full": figures.full_segments()}),
    );
    if figures.samples.len() < SAMPLES {
        return Err(Failure::other("too few samples of segments"));
    }
    Ok(x.with_command(judge(Facts::Server(&figures))))
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

/// Connections.
const SAMPLES: usize = 3;
/// Sizes of examined bodies, bytes. Larger ones wait for the window, and meanwhile the kernel joins small pieces.
const BODY_MIN_BYTES: u64 = 4000;
const BODY_MAX_BYTES: u64 = 30_000;
const BODY_BYTES: usize = 12_000;
