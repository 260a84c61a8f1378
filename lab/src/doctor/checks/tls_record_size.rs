//! tls-record-size: times to the heads of a large and a small response, each the first one of its connection.

use super::pick::{self, Picked};
use crate::client::Url;
use crate::doctor::figures::{estimate, ms};
use crate::doctor::judge::Facts;
use crate::doctor::judge::tls_record_size::{Figures, RECORD_BYTES, Sample, judge};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};

pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    if !x.plan.url.tls {
        return Ok(Vec::new());
    }
    // A small body fits into the window whatever its record is: its head comes as early as can be.
    let small = pick::small(x, SMALL_MAX_BYTES)?;
    let large = pick::large(x, RECORD_BYTES..=u64::MAX, LARGE_BYTES)?;
    let small = small.ok_or_else(|| Failure::no_body(1..=SMALL_MAX_BYTES))?;
    let large = large.ok_or_else(|| Failure::no_body(RECORD_BYTES..=u64::MAX))?;
    let samples = x.visit(NetworkPath::Delayed(None), |visitor| {
        samples(visitor, &small, &large)
    })??;
    let figures = Figures {
        samples,
        url: large.url.to_string(),
        round_trip_ms: x.round_trip_ms(),
    };
    let later = figures
        .later()
        .ok_or_else(|| Failure::other("too few samples"))?;
    x.measure("first_record_bytes", figures.record_bytes());
    x.measure("head_of_large_later_ms", estimate(&later));
    Ok(x.with_command(judge(Facts::Server(&figures))))
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

/// Returns the times of the request and of the complete head for a connection's first response, and the largest record that
/// came with the head.
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
const LARGE_BYTES: usize = 40_000;
