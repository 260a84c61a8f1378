//! Times of few samples: means, and medians with their intervals.
//!
//! Source: the binomial distribution of ranks.

use crate::stats::{Estimate, mean};

/// Mean difference of pairs, second less first; `None` with fewer than [`PAIRS`].
pub(crate) fn more(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
    mean(&differences, LEVEL).filter(|one| one.n >= PAIRS)
}

/// The mean of times with its interval.
pub(crate) fn average(times: impl Iterator<Item = f64>) -> Option<Estimate> {
    mean(&times.collect::<Vec<_>>(), LEVEL)
}

/// The median, with an interval of ranks at 0.95 or above. With fewer than six samples both ends are infinite, so no threshold
/// is ever passed.
pub(crate) fn median(samples: &[f64]) -> Option<Estimate> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let value = match n {
        0 => return None,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    };
    let (low, high) = match rank_outside(n) {
        Some(rank) => (sorted[rank], sorted[n - 1 - rank]),
        None => (f64::NEG_INFINITY, f64::INFINITY),
    };
    Some(Estimate {
        value,
        low,
        high,
        n,
    })
}

/// The number of samples beyond each end of the interval: as many as possible while it has the median with a probability of
/// 0.95.
fn rank_outside(n: usize) -> Option<usize> {
    let mut below = 0.0;
    let mut term = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut found = None;
    for rank in 0..n {
        below += term;
        if 2.0 * below > 0.05 {
            break;
        }
        found = Some(rank);
        term *= (n - rank) as f64 / (rank + 1) as f64;
    }
    found
}

/// The level of intervals of means.
const LEVEL: f64 = 0.95;
/// Pairs that a verdict needs.
const PAIRS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pairs_say_nothing() {
        assert_eq!(more(&[(1.0, 2.0); 2]), None);
        let found = more(&[(1.0, 3.0); 3]).expect("three pairs");
        assert_eq!((found.value, found.low, found.high), (2.0, 2.0, 2.0));
    }

    fn of(n: u32) -> Estimate {
        let samples: Vec<f64> = (0..n).map(f64::from).collect();
        median(&samples).expect("there are samples")
    }

    /// Ranks of any table of the sign test.
    #[test]
    fn intervals_are_those_of_the_tables() {
        assert_eq!((of(6).low, of(6).high), (0.0, 5.0));
        assert_eq!((of(9).low, of(9).value, of(9).high), (1.0, 4.0, 7.0));
        assert_eq!((of(20).low, of(20).high), (5.0, 14.0));
    }

    #[test]
    fn few_samples_have_no_interval() {
        assert!(median(&[]).is_none());
        assert_eq!(of(5).low, f64::NEG_INFINITY);
        assert_eq!(of(5).value, 2.0);
    }

    #[test]
    fn one_late_sample_of_nine_changes_no_end() {
        let mut samples = vec![1.0; 8];
        samples.push(900.0);
        let found = median(&samples).expect("there are samples");
        assert_eq!((found.low, found.high), (1.0, 1.0));
    }
}
