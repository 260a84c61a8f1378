//! Figures of findings as JSON.

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
