//! Ranks of samples around a percentile: exact order statistics.
//!
//! Of `n` independent samples the number below the percentile `p` is binomial. So the chance of a percentile between two
//! ranks is known for any distribution of the samples.
//!
//! Source: W. J. Conover, "Practical Nonparametric Statistics", 3rd edition, section 3.2.

use super::student::{incomplete_beta, t_quantile};

/// Ranks of the ends of an interval, counted from 1 in the order of the samples. `None`: no sample supports that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ranks {
    pub(super) low: Option<u64>,
    pub(super) high: Option<u64>,
}

/// The ranks for the percentile `p`, from 0 to 1, of `n` samples at a level such as 0.95.
pub(super) fn ranks(n: u64, p: f64, level: f64) -> Ranks {
    let tail = (1.0 - level) / 2.0;
    let variance = n as f64 * p * (1.0 - p);
    if variance > EXACT_BELOW {
        return approximate(n, p, variance, tail);
    }
    let low = first(n, |count| at_most(count, n, p) > tail);
    let high = first(n, |count| at_most(count, n, p) >= 1.0 - tail) + 1;
    Ranks {
        low: (low > 0).then_some(low),
        high: (high <= n).then_some(high),
    }
}

/// The first count up to `n` with a property that all later counts have; `n` if none has it.
fn first(n: u64, has: impl Fn(u64) -> bool) -> u64 {
    let (mut below, mut found) = (0, n);
    while below < found {
        let middle = below + (found - below) / 2;
        match has(middle) {
            true => found = middle,
            false => below = middle + 1,
        }
    }
    found
}

/// The chance of `count` or fewer of `n`.
fn at_most(count: u64, n: u64, p: f64) -> f64 {
    match count >= n {
        true => 1.0,
        false => incomplete_beta((n - count) as f64, (count + 1) as f64, 1.0 - p),
    }
}

/// By the normal distribution, corrected for skewness (Cornish and Fisher); less than a rank away from the exact ones.
fn approximate(n: u64, p: f64, variance: f64, tail: f64) -> Ranks {
    let z = t_quantile(1.0 - tail, f64::from(u32::MAX));
    let skew = (1.0 - 2.0 * p) * (z * z - 1.0) / 6.0;
    let middle = n as f64 * p + skew;
    let half = z * variance.sqrt();
    Ranks {
        low: Some((middle - half).floor().max(1.0) as u64),
        high: Some(((middle + half).ceil() as u64 + 1).min(n)),
    }
}

/// Variances of the count up to which ranks are exact; above them the approximation is off by less than a rank.
const EXACT_BELOW: f64 = 10_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(n: u64, p: f64) -> (Option<u64>, Option<u64>) {
        let ranks = ranks(n, p, 0.95);
        (ranks.low, ranks.high)
    }

    /// Ranks of tables of the sign test and of the binomial distribution.
    #[test]
    fn ranks_are_those_of_the_tables() {
        assert_eq!(found(10, 0.5), (Some(2), Some(9)));
        assert_eq!(found(20, 0.5), (Some(6), Some(15)));
        assert_eq!(found(100, 0.5), (Some(40), Some(61)));
        assert_eq!(found(100, 0.9), (Some(84), Some(96)));
    }

    #[test]
    fn ends_without_support_are_missing() {
        for (p, least) in [(0.5, 6), (0.9, 36), (0.99, 368), (0.999, 3688)] {
            assert_eq!(found(least - 1, p).1, None, "{p}");
            assert_eq!(found(least, p).1, Some(least), "{p}");
            assert_eq!(found(least + 1, p).1, Some(least + 1), "{p}");
        }
        assert_eq!(found(5, 0.5), (None, None));
        assert_eq!(found(6, 0.5), (Some(1), Some(6)));
        assert_eq!(found(1, 0.9), (None, None));
        assert_eq!(found(2, 0.9), (Some(1), None));
    }

    #[test]
    fn approximation_is_within_a_rank_of_the_exact_ones() {
        for p in [0.5, 0.9, 0.99, 0.999] {
            let n = (0.9 * EXACT_BELOW / (p * (1.0 - p))) as u64;
            let variance = n as f64 * p * (1.0 - p);
            let (exact, near) = (ranks(n, p, 0.95), approximate(n, p, variance, 0.025));
            let apart = |a: Option<u64>, b: Option<u64>| {
                a.expect("n is large").abs_diff(b.expect("n is large"))
            };
            assert!(apart(exact.low, near.low) <= 1, "{p}: {exact:?} {near:?}");
            assert!(apart(exact.high, near.high) <= 1, "{p}: {exact:?} {near:?}");
        }
    }

    /// Of 2,000 samples of uniform numbers the intervals hold the percentile as often as they promise.
    #[test]
    fn intervals_hold_as_often_as_promised() {
        let mut random = fastrand::Rng::with_seed(5);
        for (n, p) in [(12_u64, 0.5), (60, 0.9), (500, 0.99)] {
            let ranks = ranks(n, p, 0.95);
            let mut held = 0;
            for _ in 0..2000 {
                let below = (0..n).filter(|_| random.f64() < p).count() as u64;
                // The sample of a rank is below the percentile if as many samples are.
                let low = ranks.low.is_none_or(|low| below >= low);
                let high = ranks.high.is_none_or(|high| below < high);
                held += u32::from(low && high);
            }
            assert!(held >= 1880, "{n} {p}: {held} of 2000");
        }
    }
}
