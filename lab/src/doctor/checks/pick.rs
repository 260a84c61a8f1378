//! Bodies that a check compares: from the docroot where there is one, else what the site has.

use std::ops::RangeInclusive;

use crate::client::Url;
use crate::doctor::docroot::Type;
use crate::doctor::examine::Examination;
use crate::doctor::failure::Failure;
use crate::stats::{Estimate, mean};

/// A body and its bytes without a content coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picked {
    pub(super) url: Url,
    pub(super) bytes: u64,
}

/// The smallest body of the site, at most `most` bytes; with a docroot one of [`SMALL_BYTES`].
///
/// # Errors
/// It cannot be written, or looked for.
pub(super) fn small(x: &mut Examination<'_>, most: u64) -> Result<Option<Picked>, Failure> {
    if let Some(url) = x.planted(SMALL_BYTES, Type::Binary)? {
        let bytes = SMALL_BYTES as u64;
        return Ok(Some(Picked { url, bytes }));
    }
    let site = x
        .site()?
        .into_iter()
        .filter(|body| body.bytes > 0 && body.bytes <= most);
    let smallest = site.min_by_key(|body| body.bytes);
    Ok(smallest.map(|body| Picked {
        url: body.url,
        bytes: body.bytes,
    }))
}

/// The largest body of the site within these bytes; with a docroot one of `planted` bytes.
///
/// # Errors
/// It cannot be written, or looked for.
pub(super) fn large(
    x: &mut Examination<'_>,
    bytes: RangeInclusive<u64>,
    planted: usize,
) -> Result<Option<Picked>, Failure> {
    if let Some(url) = x.planted(planted, Type::Binary)? {
        let bytes = planted as u64;
        return Ok(Some(Picked { url, bytes }));
    }
    let site = x
        .site()?
        .into_iter()
        .filter(|body| bytes.contains(&body.bytes));
    let largest = site.max_by_key(|body| body.bytes);
    Ok(largest.map(|body| Picked {
        url: body.url,
        bytes: body.bytes,
    }))
}

/// How much larger the second of each pair is; `None` with fewer than [`PAIRS`].
pub(super) fn more(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
    mean(&differences, LEVEL).filter(|one| one.n >= PAIRS)
}

/// The mean of times with its interval.
pub(super) fn average(times: impl Iterator<Item = f64>) -> Option<Estimate> {
    mean(&times.collect::<Vec<_>>(), LEVEL)
}

/// Milliseconds between two times of the monotonic clock.
pub(super) fn ms(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}

/// A body that fits into a segment.
const SMALL_BYTES: usize = 500;
/// The level of intervals.
const LEVEL: f64 = 0.95;
/// Pairs that a verdict needs.
pub(super) const PAIRS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pairs_say_nothing() {
        assert_eq!(more(&[(1.0, 2.0); 2]), None);
        let found = more(&[(1.0, 3.0); 3]).expect("three pairs");
        assert_eq!((found.value, found.low, found.high), (2.0, 2.0, 2.0));
    }
}
