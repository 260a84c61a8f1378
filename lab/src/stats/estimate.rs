//! Figures with their intervals.
//!
//! Means of runs have intervals by Student's t. Percentiles of one run have intervals by exact order statistics, which
//! take samples for independent. Percentiles of several runs have intervals from the differences between runs.
//!
//! Source: docs/lab.md, "How sure they are".

use hdrhistogram::Histogram;

use super::binomial::ranks;
use super::student::t_quantile;

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of the interval; minus infinity if no measurement supports one.
    pub low: f64,
    /// Upper end; infinity if no measurement supports one.
    pub high: f64,
    /// Number of measurements behind the interval: samples of one run, or runs.
    pub n: usize,
}

/// The mean of measurements with its interval at a level such as 0.95; without two of them there is no interval.
#[must_use]
pub fn mean(values: &[f64], level: f64) -> Option<Estimate> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let value = values.iter().sum::<f64>() / n as f64;
    if n == 1 {
        return Some(Estimate {
            value,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            n,
        });
    }
    let half =
        t_quantile(0.5 + level / 2.0, (n - 1) as f64) * deviation(values) / (n as f64).sqrt();
    Some(Estimate {
        value,
        low: value - half,
        high: value + half,
        n,
    })
}

/// The sample's standard deviation; 0 for fewer than two values.
#[must_use]
pub fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (n - 1.0)).sqrt()
}

/// The percentile `p`, from 0 to 1, of one run's times, nanoseconds, with its interval at 0.95 by exact order statistics.
#[must_use]
pub fn percentile(times: &Histogram<u64>, p: f64) -> Option<Estimate> {
    of_samples(times, p, times.len())
}

/// The percentile `p` of times that are worth as much as `effective` independent samples, at most as many as they are.
fn of_samples(times: &Histogram<u64>, p: f64, effective: u64) -> Option<Estimate> {
    let n = times.len();
    if n == 0 {
        return None;
    }
    let ranks = ranks(effective, p, LEVEL);
    let (all, effective) = (u128::from(n), u128::from(effective));
    let rank = |rank: u128| at_rank(times, u64::try_from(rank).unwrap_or(n));
    let low = (ranks.low).map(|low| rank((u128::from(low) - 1) * all / effective + 1));
    let high = (ranks.high).map(|high| rank((u128::from(high) * all).div_ceil(effective)));
    Some(Estimate {
        value: times.value_at_quantile(p) as f64,
        low: low.map_or(f64::NEG_INFINITY, |low| times.lowest_equivalent(low) as f64),
        high: high.map_or(f64::INFINITY, |high| times.highest_equivalent(high) as f64),
        n: usize::try_from(n).unwrap_or(usize::MAX),
    })
}

/// The percentile `p`, from 0 to 1, of the times of `all` runs together, nanoseconds, with its interval at 0.95.
///
/// For a time `x`, each run has a difference: its number of times up to `x`, minus the share `p` of all its times. Student's
/// t over the runs tests if the differences are 0 on average. The interval has all times that pass. So samples of one run
/// may depend on each other.
///
/// A tail that few runs have seen may still be longer. The spread of the differences shows the worth of the samples: as
/// many independent ones would spread as much. The interval has the exact ranks of that number, too. Without enough of
/// them it has no end.
///
/// Sources: R. S. Woodruff, "Confidence intervals for medians and other position measures" (1952), with runs as clusters;
/// E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with small expected number of positive counts
/// estimated from survey data" (1998), for the effective number of samples.
#[must_use]
pub fn percentile_of_runs(
    all: &Histogram<u64>,
    runs: &[&Histogram<u64>],
    p: f64,
) -> Option<Estimate> {
    let runs: Vec<_> = runs.iter().filter(|run| !run.is_empty()).collect();
    if runs.len() < 2 {
        return percentile(all, p);
    }
    let exact = of_samples(all, p, effective_samples(&runs, all, p))?;
    let (low, high) = not_contradicted(&runs, all, p);
    Some(Estimate {
        value: exact.value,
        low: exact.low.min(low),
        high: exact.high.max(high),
        n: runs.len(),
    })
}

/// Returns the ranks, from 1, of the samples at both ends of the interval of the median at 0.95, by exact order statistics.
///
/// `None` below 6 samples. The samples have to be independent.
#[must_use]
pub fn median_ranks(n: u64) -> Option<(u64, u64)> {
    let ranks = ranks(n, 0.5, LEVEL);
    ranks.low.zip(ranks.high)
}

/// Number of independent samples with as much spread at the percentile `p` as the runs have; 1 to the number of samples.
fn effective_samples(runs: &[&&Histogram<u64>], all: &Histogram<u64>, p: f64) -> u64 {
    let value = all.value_at_quantile(p);
    let difference =
        |run: &&&Histogram<u64>| run.count_between(0, value) as f64 - p * run.len() as f64;
    let differences: Vec<f64> = runs.iter().map(difference).collect();
    let (n, count) = (all.len() as f64, runs.len() as f64);
    // The variance of independent samples over that of the runs. Few runs know their variance badly: hence the square of t.
    let share = n * p * (1.0 - p) / (count * deviation(&differences).powi(2));
    let quantile = |freedom: f64| t_quantile(0.5 + LEVEL / 2.0, freedom);
    let certainty = (quantile(n) / quantile(count - 1.0)).powi(2);
    (n * share * certainty).clamp(1.0, n) as u64
}

/// The least and the greatest time that the runs do not contradict as percentile `p`.
fn not_contradicted(runs: &[&&Histogram<u64>], all: &Histogram<u64>, p: f64) -> (f64, f64) {
    let t = t_quantile(0.5 + LEVEL / 2.0, (runs.len() - 1) as f64);
    let mut differences: Vec<f64> = runs.iter().map(|run| -p * run.len() as f64).collect();
    let is_possible = |differences: &[f64]| {
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        mean.abs() <= t * deviation(differences) / n.sqrt()
    };
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    // Times between two samples have the counts of the lower one.
    let mut was_possible = is_possible(&differences);
    if was_possible {
        low = f64::NEG_INFINITY;
    }
    for step in all.iter_recorded() {
        let time = step.value_iterated_to();
        if was_possible {
            high = all.highest_equivalent(time) as f64;
        }
        for (difference, run) in differences.iter_mut().zip(runs) {
            *difference += run.count_at(time) as f64;
        }
        was_possible = is_possible(&differences);
        if was_possible {
            low = low.min(all.lowest_equivalent(time) as f64);
        }
    }
    match was_possible {
        true => (low, f64::INFINITY),
        false => (low, high),
    }
}

/// The time at a rank, counted from 1.
fn at_rank(times: &Histogram<u64>, rank: u64) -> u64 {
    let mut before = 0;
    for step in times.iter_recorded() {
        before += step.count_since_last_iteration();
        if before >= rank {
            return step.value_iterated_to();
        }
    }
    times.max()
}

/// The level of intervals of percentiles.
const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Times;

    #[test]
    fn intervals_shrink_with_more_measurements() {
        let four = mean(&[9.0, 11.0, 9.0, 11.0], 0.95).expect("four values");
        assert!((four.value - 10.0).abs() < 1e-9);
        assert!((four.high - 11.837).abs() < 0.001, "{four:?}");
        assert_eq!(mean(&[], 0.95), None);
        assert_eq!(mean(&[1.0], 0.95).map(|one| one.high), Some(f64::INFINITY));
    }

    fn times(values: impl Iterator<Item = u64>) -> Times {
        let mut times = Times::default();
        values.for_each(|ns| times.record(ns));
        times
    }

    /// The percentile of runs.
    fn of_runs(runs: &[&Histogram<u64>], p: f64) -> Option<Estimate> {
        let mut all = Times::default().valid;
        runs.iter()
            .for_each(|run| all.add(*run).expect("equal bounds"));
        percentile_of_runs(&all, runs, p)
    }

    #[test]
    fn percentiles_lie_between_ranks() {
        let times = times((1..=10_000).map(|n| n * 1000));
        let p90 = percentile(&times.valid, 0.9).expect("there are values");
        assert!((p90.value - 9e6).abs() < 9e6 * 0.002, "{p90:?}");
        assert!((p90.low - 8.941e6).abs() < 9e6 * 0.002, "{p90:?}");
        assert!((p90.high - 9.059e6).abs() < 9e6 * 0.002, "{p90:?}");
        assert_eq!(percentile(&Times::default().valid, 0.5), None);
    }

    #[test]
    fn ranks_of_medians_need_six_samples() {
        assert_eq!(median_ranks(0), None);
        assert_eq!(median_ranks(5), None);
        assert_eq!(median_ranks(6), Some((1, 6)));
        assert_eq!(median_ranks(20), Some((6, 15)));
    }

    #[test]
    fn an_end_that_no_sample_supports_is_missing() {
        let few = times((1..=100).map(|n| n * 1_000_000));
        let p99 = percentile(&few.valid, 0.99).expect("there are values");
        assert!(p99.low.is_finite() && p99.high.is_infinite(), "{p99:?}");
        let p90 = percentile(&few.valid, 0.9).expect("there are values");
        assert!(p90.low.is_finite() && p90.high.is_finite(), "{p90:?}");
        // Equal runs leave no doubt of their own, and still no sample is above the percentile.
        let runs = [&few.valid, &few.valid, &few.valid];
        let p999 = of_runs(&runs, 0.999).expect("there are values");
        assert!(p999.high.is_infinite() && p999.n == 3, "{p999:?}");
    }

    #[test]
    fn runs_that_differ_widen_the_interval() {
        let of = |ms: u64| times((0..500).map(move |n| ms * 1_000_000 + n * 100));
        let runs = [10, 20, 10, 20, 10, 20].map(of);
        let runs: Vec<_> = runs.iter().map(|run| &run.valid).collect();
        let p50 = of_runs(&runs, 0.5).expect("there are values");
        assert!(p50.low < 10.1e6 && p50.high > 19.9e6, "{p50:?}");
        let one = of_runs(&runs[..1], 0.5).expect("there are values");
        assert_eq!(one, percentile(runs[0], 0.5).expect("there are values"));
        let nothing = Times::default();
        assert_eq!(of_runs(&[&nothing.valid], 0.5), None);
    }

    /// A server changes its speed three times in a run. Intervals of six runs hold the percentiles of a long run.
    #[test]
    fn intervals_hold_for_a_server_that_changes_its_speed() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut run = |pieces: usize| {
            let mut out = Times::default();
            for _ in 0..pieces {
                let ms = [5, 10, 20, 40][random.usize(..4)];
                for _ in 0..3000 / ms {
                    out.record((ms as f64 * (0.9 + 0.2 * random.f64()) * 1e6) as u64);
                }
            }
            out
        };
        let long = run(6000);
        // Six runs have seen 18 states, too few for the end of a tail.
        let runs: Vec<Times> = (0..6).map(|_| run(3)).collect();
        let runs: Vec<_> = runs.iter().map(|run| &run.valid).collect();
        let p999 = of_runs(&runs, 0.999).expect("there are values");
        assert!(p999.high.is_infinite(), "{p999:?}");
        for p in [0.5, 0.9, 0.99] {
            let truth = long.valid.value_at_quantile(p) as f64;
            let mut held = 0;
            for _ in 0..100 {
                let runs: Vec<Times> = (0..6).map(|_| run(3)).collect();
                let runs: Vec<_> = runs.iter().map(|run| &run.valid).collect();
                let found = of_runs(&runs, p).expect("there are values");
                held += u32::from(found.low <= truth && truth <= found.high);
            }
            assert!(held >= 85, "{p}: {held} of 100");
        }
    }
}
