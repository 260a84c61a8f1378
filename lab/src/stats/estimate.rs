//! Figures with their intervals.
//!
//! Means of blocks have intervals by Student's t. Percentiles of one run have intervals by the ranks between which the
//! true one lies (binomial).

use hdrhistogram::Histogram;

use super::student::t_quantile;

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many measurements it stands on.
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

/// The value below which a share `p` of the times lies, nanoseconds, with its interval at 0.95.
#[must_use]
pub fn percentile(times: &Histogram<u64>, p: f64) -> Option<Estimate> {
    let n = times.len();
    if n == 0 {
        return None;
    }
    let at = |share: f64| times.value_at_quantile(share.clamp(0.0, 1.0)) as f64;
    let half = Z_95 * (p * (1.0 - p) / n as f64).sqrt();
    Some(Estimate {
        value: at(p),
        low: at(p - half),
        high: at(p + half),
        n: usize::try_from(n).unwrap_or(usize::MAX),
    })
}

/// The end of the normal distribution's interval at 0.95.
const Z_95: f64 = 1.959_964;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_shrink_with_more_measurements() {
        let four = mean(&[9.0, 11.0, 9.0, 11.0], 0.95).expect("four values");
        assert!((four.value - 10.0).abs() < 1e-9);
        assert!((four.high - 11.837).abs() < 0.001, "{four:?}");
        assert_eq!(mean(&[], 0.95), None);
        assert_eq!(mean(&[1.0], 0.95).map(|one| one.high), Some(f64::INFINITY));
    }

    #[test]
    fn percentiles_lie_between_ranks() {
        let mut times = crate::stats::Times::default();
        for ns in 1..=10_000 {
            times.record(ns * 1000);
        }
        let p90 = percentile(&times.valid, 0.9).expect("there are values");
        assert!((p90.value - 9e6).abs() < 9e6 * 0.002, "{p90:?}");
        assert!(p90.low < p90.value && p90.high > p90.value);
        assert!(
            (p90.high - p90.low - 2.0 * 1.96 * 30_000.0).abs() < 30_000.0,
            "{p90:?}"
        );
    }
}
