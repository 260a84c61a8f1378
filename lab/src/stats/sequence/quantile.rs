//! Quantiles: ranks around one that hold it at every look, and relative differences of two arms.
//!
//! Sources: S. R. Howard, A. Ramdas, "Sequential estimation of quantiles with applications to A/B testing and best-arm
//! identification", Bernoulli 28 (2022); for one look, R. S. Woodruff, "Confidence intervals for medians and other position
//! measures", Journal of the American Statistical Association 47 (1952).

use super::boundary::Tuning;
use super::regions::{Counts, RankRegion};
use super::{Difference, Interval};
use crate::stats::binomial;

/// Ranks of the ends of an interval, counted from 1 in ascending order. `None`: no value supports that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Rank of the lower end.
    pub low: Option<u64>,
    /// Rank of the upper end.
    pub high: Option<u64>,
}

/// Ranks around the quantile `p`, between 0 and 1, of `n` values: valid at every look together with chance 1 - alpha.
#[must_use]
pub fn quantile_ranks(n: u64, p: f64, alpha: f64, tuning: &Tuning) -> Ranks {
    let counts = Counts::new(n, p, alpha, tuning);
    let limit = -alpha.ln();
    let (low, high) = counts.ends(|count| counts.mixed(counts.evidence(count)) < limit);
    Ranks {
        low: (low > 0).then_some(low),
        high: (high < n).then_some(high + 1),
    }
}

/// The relative difference of the quantile `p`, valid at every look together with chance 1 - alpha.
///
/// Values are 0 or more, in ascending order. `None`: an arm is empty, or the quantile of A is 0. [`RankRegion`] serves values that
/// are not in a slice.
#[must_use]
pub fn quantile_ratio(
    a: &[f64],
    b: &[f64],
    p: f64,
    alpha: f64,
    tuning: &Tuning,
) -> Option<Difference> {
    let region = RankRegion::new(a.len() as u64, b.len() as u64, p, alpha, tuning);
    region.difference(|rank| a[rank as usize - 1], |rank| b[rank as usize - 1])
}

/// The relative difference of the quantile `p`, valid at one look that was planned in advance.
///
/// Half widths of both arms' intervals, by order statistics, are added as squares on the logarithmic scale.
#[must_use]
pub fn quantile_ratio_once(a: &[f64], b: &[f64], p: f64, alpha: f64) -> Option<Difference> {
    let arm = |values: &[f64]| -> Option<[f64; 3]> {
        let n = values.len();
        let ranks = binomial::ranks(n as u64, p, 1.0 - alpha);
        let at = |rank: u64| values.get(rank as usize - 1).map(|value| value.ln());
        let low = ranks.low.and_then(at).unwrap_or(f64::NEG_INFINITY);
        let high = ranks.high.and_then(at).unwrap_or(f64::INFINITY);
        let rank = ((p * n as f64).ceil() as u64).max(1);
        at(rank).map(|value| [low, value, high])
    };
    let (a, b) = (arm(a)?, arm(b)?);
    let value = b[1] - a[1];
    let low = value - (b[1] - b[0]).hypot(a[2] - a[1]);
    let high = value + (b[2] - b[1]).hypot(a[1] - a[0]);
    value.is_finite().then(|| Difference {
        estimate: value.exp_m1(),
        interval: Interval {
            low: low.exp_m1(),
            high: high.exp_m1(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(n: u64, p: f64) -> (Option<u64>, Option<u64>) {
        let ranks = quantile_ranks(n, p, 0.05, &Tuning::default());
        (ranks.low, ranks.high)
    }

    #[test]
    fn few_values_support_no_end() {
        assert_eq!(found(0, 0.5), (None, None));
        assert_eq!(found(1, 0.5), (None, None));
        assert_eq!(found(5, 0.5), (None, None));
        let least = (1..200).find(|n| found(*n, 0.5).1.is_some());
        let least = least.expect("a hundred values suffice");
        assert_eq!(found(least, 0.5), (Some(1), Some(least)));
        assert!((30..60).contains(&least), "{least}");
        assert_eq!(found(20, 0.95).1, None);
    }

    /// Half widths in standard errors of the rank are those of the boundary for sums.
    #[test]
    fn ranks_are_as_wide_as_the_boundary() {
        let tuning = Tuning::default();
        for n in [1_000_u64, 20_000, 400_000, 1_600_000] {
            for p in [0.5, 0.8, 0.95] {
                let ranks = quantile_ranks(n, p, 0.05, &tuning);
                let (low, high) = (
                    ranks.low.expect("n is large"),
                    ranks.high.expect("n is large"),
                );
                let error = (n as f64 * p * (1.0 - p)).sqrt();
                let half = (high - low) as f64 / 2.0 / error;
                let expected = tuning.multiplier(n as f64, 0.05);
                assert!(
                    (half / expected - 1.0).abs() < 0.1,
                    "{n} {p}: {half} {expected}"
                );
                assert!(low < (p * n as f64) as u64 && (p * n as f64) < high as f64);
            }
        }
    }

    fn uniform(n: usize) -> Vec<f64> {
        (0..n)
            .map(|rank| 100.0 + rank as f64 / n as f64 * 100.0)
            .collect()
    }

    #[test]
    fn joint_regions_are_narrower_than_two_intervals() {
        let tuning = Tuning::default();
        let values = uniform(100_000);
        let joint =
            quantile_ratio(&values, &values, 0.5, 0.05, &tuning).expect("they are positive");
        let ranks = quantile_ranks(100_000, 0.5, 0.025, &tuning);
        let at = |rank: Option<u64>| values[rank.expect("n is large") as usize - 1];
        let apart = at(ranks.high) / at(ranks.low) - at(ranks.low) / at(ranks.high);
        let width = joint.interval.high - joint.interval.low;
        assert!(
            width < 0.8 * apart && width > 0.6 * apart,
            "{width} {apart}"
        );
        assert_eq!(joint.estimate, 0.0);
        assert!(!joint.is_found());
    }

    #[test]
    fn differences_are_found_in_either_direction() {
        let tuning = Tuning::default();
        let (a, b) = (uniform(40_000), uniform(20_000));
        let slower: Vec<f64> = b.iter().map(|value| value * 1.05).collect();
        for p in [0.5, 0.8, 0.95] {
            let up = quantile_ratio(&a, &slower, p, 0.05, &tuning).expect("they are positive");
            assert!(up.is_found() && up.interval.contains(0.05), "{p} {up:?}");
            let down = quantile_ratio(&slower, &a, p, 0.05, &tuning).expect("they are positive");
            assert!(
                down.is_found() && down.interval.contains(1.0 / 1.05 - 1.0),
                "{p} {down:?}"
            );
            // The region of exchanged arms is that of the inverse.
            let inverse = 1.0 / (1.0 + down.interval.low) - 1.0;
            assert!(
                (inverse - up.interval.high).abs() < 0.002,
                "{p} {up:?} {down:?}"
            );
            let once = quantile_ratio_once(&a, &slower, p, 0.05).expect("they are positive");
            assert!(once.interval.low > up.interval.low && once.interval.high < up.interval.high);
            assert!(once.interval.contains(0.05), "{p} {once:?}");
        }
    }

    #[test]
    fn values_at_zero_and_few_values_have_open_ends() {
        let tuning = Tuning::default();
        let zeros = vec![0.0; 1000];
        let ones = vec![1.0; 1000];
        assert_eq!(quantile_ratio(&zeros, &ones, 0.5, 0.05, &tuning), None);
        assert_eq!(quantile_ratio_once(&zeros, &ones, 0.5, 0.05), None);
        assert_eq!(quantile_ratio(&[], &ones, 0.5, 0.05, &tuning), None);
        assert_eq!(quantile_ratio(&ones, &[], 0.5, 0.05, &tuning), None);
        assert_eq!(quantile_ratio_once(&[], &ones, 0.5, 0.05), None);
        let found = quantile_ratio(&ones, &zeros, 0.5, 0.05, &tuning).expect("A is positive");
        assert_eq!(
            found.interval,
            Interval {
                low: -1.0,
                high: -1.0
            }
        );
        let few =
            quantile_ratio(&ones[..3], &ones[..3], 0.5, 0.05, &tuning).expect("A is positive");
        assert_eq!(
            few.interval,
            Interval {
                low: -1.0,
                high: f64::INFINITY
            }
        );
        // Half of the values are 0: the quantile of A may be as well.
        let half: Vec<f64> = (0..1000).map(|n| f64::from(n > 490)).collect();
        let found = quantile_ratio(&half, &ones, 0.5, 0.05, &tuning).expect("A is positive");
        assert_eq!(found.interval.high, f64::INFINITY);
    }

    /// Arms of equal values in steps of a millisecond: ties widen an interval, and never narrow it.
    #[test]
    fn ties_hold_the_truth() {
        let mut random = fastrand::Rng::with_seed(21);
        let tuning = Tuning::default();
        for _ in 0..200 {
            let mut arm = || {
                let mut values: Vec<f64> = (0..500)
                    .map(|_| (1.0 + 9.0 * random.f64()).floor())
                    .collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let (a, b) = (arm(), arm());
            let found = quantile_ratio(&a, &b, 0.8, 0.05, &tuning).expect("they are positive");
            assert!(found.interval.contains(0.0), "{found:?}");
        }
    }
}
