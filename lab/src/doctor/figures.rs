//! Figures of findings: times in milliseconds, and estimates as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stats::Estimate;

/// A figure with its interval; an end without one is null.
#[must_use]
pub(super) fn estimate(estimate: &Estimate) -> Value {
    let finite = |value: f64| value.is_finite().then(|| (value * 1000.0).round() / 1000.0);
    json!({
        "value": finite(estimate.value), "low": finite(estimate.low), "high": finite(estimate.high), "n": estimate.n,
    })
}

/// Milliseconds between two times of the monotonic clock in nanoseconds.
#[must_use]
pub(super) fn ms(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}

/// A time in milliseconds.
#[must_use]
pub(super) fn in_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Milliseconds of a capture's clock, with three decimals: more would be noise.
#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of a capture have fewer than 53 bits"
)]
pub(crate) fn milliseconds(nanoseconds: u64) -> f64 {
    (nanoseconds / 1000) as f64 / 1000.0
}
