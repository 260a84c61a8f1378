//! Correction for several metrics.
//!
//! The chance of a false alarm is shared by all intervals of an experiment (Bonferroni). The shares are weighted: the first
//! metric, which the experiment was made for, gets half of it. So further metrics cost it little.
//!
//! Source: O. J. Dunn, "Multiple comparisons among means", Journal of the American Statistical Association 56 (1961);
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979), for weights.

/// The alpha of each interval, by metric, for an experiment of `metrics` metrics with `intervals` intervals each: statistics
/// times compared arms.
///
/// All of them together leave out a true difference with a chance of at most `alpha`.
#[must_use]
pub fn levels(alpha: f64, metrics: usize, intervals: usize) -> Vec<f64> {
    let each = alpha / intervals.max(1) as f64;
    match metrics {
        0 => Vec::new(),
        1 => vec![each],
        _ => {
            let mut levels = vec![0.5 * each / (metrics - 1) as f64; metrics];
            levels[0] = 0.5 * each;
            levels
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_alpha() {
        assert_eq!(levels(0.05, 0, 4), [0.0; 0]);
        assert_eq!(levels(0.05, 1, 1), [0.05]);
        assert_eq!(levels(0.04, 2, 4), [0.005; 2]);
        assert_eq!(levels(0.04, 3, 1), [0.02, 0.01, 0.01]);
        assert_eq!(levels(0.05, 1, 0), [0.05]);
        for metrics in 1..20 {
            for intervals in 1..20 {
                let sum: f64 = levels(0.05, metrics, intervals).iter().sum();
                assert!((sum * intervals as f64 - 0.05).abs() < 1e-12);
            }
        }
    }
}
