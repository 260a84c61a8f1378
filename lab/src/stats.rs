//! How sure a figure is: means with intervals, comparisons, and how many runs one would need.
//!
//! Means of blocks have intervals by Student's t. Two servers that were loaded in turn within blocks are compared by the
//! ratio in each block (the paired t test, on logarithms), so that what changes from block to block, such as other load on
//! the machine, is common to both and falls out. Two reports from different times are compared by Welch's t test. Percentiles
//! of one run have intervals by the ranks between which the true one lies (binomial).
//!
//! Source: docs/lab.md.

use hdrhistogram::Histogram;

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

/// What came out of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The second over the first: 1.05 is 5 % more. Its interval is at [`VERDICT_LEVEL`].
    pub ratio: Estimate,
    /// Whether the interval leaves out 1.
    pub differs: bool,
    /// Where it does not: about how many measurements of each would be needed to see a difference as large as the one that
    /// was measured, four times of five; none where that is beyond reason.
    pub needed: Option<u64>,
}

/// Compares two series that were measured in pairs; values above 0.
#[must_use]
pub fn paired(first: &[f64], second: &[f64]) -> Option<Comparison> {
    let logs: Vec<f64> = first
        .iter()
        .zip(second)
        .filter(|(a, b)| **a > 0.0 && **b > 0.0)
        .map(|(a, b)| (b / a).ln())
        .collect();
    if logs.len() < 2 {
        return None;
    }
    let estimate = mean(&logs, VERDICT_LEVEL)?;
    Some(verdict(estimate, deviation(&logs)))
}

/// Compares two series that were measured apart; values above 0.
#[must_use]
pub fn apart(first: &[f64], second: &[f64]) -> Option<Comparison> {
    let logs = |values: &[f64]| -> Vec<f64> {
        let positive = values.iter().filter(|value| **value > 0.0);
        positive.map(|value| value.ln()).collect()
    };
    let (a, b) = (logs(first), logs(second));
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let part = |values: &[f64]| deviation(values).powi(2) / values.len() as f64;
    let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (own, other) = (part(&a), part(&b));
    let sum = own + other;
    let value = average(&b) - average(&a);
    // Welch and Satterthwaite.
    let squares = own.powi(2) / (a.len() - 1) as f64 + other.powi(2) / (b.len() - 1) as f64;
    let freedom = if squares > 0.0 {
        sum.powi(2) / squares
    } else {
        (a.len() + b.len() - 2) as f64
    };
    let half = t_quantile(0.5 + VERDICT_LEVEL / 2.0, freedom) * sum.sqrt();
    let n = a.len().min(b.len());
    let estimate = Estimate {
        value,
        low: value - half,
        high: value + half,
        n,
    };
    Some(verdict(estimate, (sum * n as f64).sqrt()))
}

/// From a difference of logarithms and the deviation of one pair.
fn verdict(difference: Estimate, deviation: f64) -> Comparison {
    let differs = difference.low > 0.0 || difference.high < 0.0;
    let needed = (Z_VERDICT + Z_POWER) * deviation / difference.value.abs();
    let needed = (needed.powi(2).ceil() + SMALL_SAMPLE).max((difference.n + 1) as f64);
    let none = difference.value == 0.0;
    let reasonable = !differs && !none && needed <= MOST_NEEDED;
    Comparison {
        ratio: Estimate {
            value: difference.value.exp(),
            low: difference.low.exp(),
            high: difference.high.exp(),
            n: difference.n,
        },
        differs,
        needed: reasonable.then_some(needed as u64),
    }
}

/// The value below which Student's t with so many degrees of freedom lies with probability `p`, from 0.5 on.
#[must_use]
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t_below(high, freedom) < p && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        if t_below(middle, freedom) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The probability that Student's t is below `t`, which is not negative.
fn t_below(t: f64, freedom: f64) -> f64 {
    let x = freedom / (freedom + t * t);
    1.0 - 0.5 * incomplete_beta(freedom / 2.0, 0.5, x)
}

/// The regularized incomplete beta function, by its continued fraction (Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly on one side; the other is its complement.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    let keep = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / keep(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..FRACTIONS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / keep(1.0 + even * d);
        c = keep(1.0 + even / c);
        fraction *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / keep(1.0 + odd * d);
        c = keep(1.0 + odd / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-13 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// The logarithm of the gamma function above 0, by Stirling's series after shifting upwards.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let (inverse, square) = (1.0 / x, 1.0 / (x * x));
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0));
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

/// The level of the interval that decides whether two servers differ: an A/A comparison calls a winner once in a hundred.
pub const VERDICT_LEVEL: f64 = 0.99;
/// Ends of the normal distribution's intervals at 0.95 and 0.99, and what a power of 0.8 adds.
const Z_95: f64 = 1.959_964;
const Z_VERDICT: f64 = 2.575_829;
const Z_POWER: f64 = 0.841_621;
/// What t needs more than the normal distribution at the sizes that matter here.
const SMALL_SAMPLE: f64 = 2.0;
/// More measurements than these are told as none.
const MOST_NEEDED: f64 = 100_000.0;
const BISECTIONS: u32 = 60;
const FRACTIONS: u32 = 300;
const TINY: f64 = 1e-300;

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of any table of Student's t.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, freedom, expected) in [
            (0.975, 1.0, 12.706),
            (0.975, 4.0, 2.776),
            (0.975, 19.0, 2.093),
            (0.995, 19.0, 2.861),
            (0.995, 2.0, 9.925),
            (0.975, 1e6, 1.960),
        ] {
            let found = t_quantile(p, freedom);
            assert!((found - expected).abs() < 0.001, "{p} {freedom}: {found}");
        }
    }

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
        let mut times = crate::outcome::Times::default();
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

    /// A small generator (xorshift), so that a seed tells all; the sum of twelve is nearly normal.
    struct Random(u64);

    impl Random {
        fn new(seed: u64) -> Self {
            Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        }

        fn normal(&mut self) -> f64 {
            let mut unit = || {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                (self.0 >> 11) as f64 / (1_u64 << 53) as f64
            };
            (0..12).map(|_| unit()).sum::<f64>() - 6.0
        }

        /// Rates of two servers in blocks: each block has its own speed, each run its own noise.
        fn blocks(&mut self, count: usize, second: f64) -> (Vec<f64>, Vec<f64>) {
            let mut pair = |_| {
                let block = 1000.0 * (0.2 * self.normal()).exp();
                let mut run = |speed: f64| block * speed * (0.03 * self.normal()).exp();
                (run(1.0), run(second))
            };
            (0..count).map(&mut pair).unzip()
        }
    }

    #[test]
    fn two_hundred_comparisons_of_one_server_with_itself_call_few_winners() {
        for seed in 1..=5_u64 {
            let mut random = Random::new(seed);
            let differs = |_| {
                let (first, second) = random.blocks(10, 1.0);
                usize::from(paired(&first, &second).expect("ten pairs").differs)
            };
            let winners: usize = (0..200).map(differs).sum();
            assert!(winners <= 10, "seed {seed}: {winners} winners");
        }
    }

    #[test]
    fn five_percent_are_found() {
        let mut random = Random::new(7);
        let mut found = 0;
        for _ in 0..50 {
            let (first, second) = random.blocks(20, 1.05);
            let comparison = paired(&first, &second).expect("twenty pairs");
            found += usize::from(comparison.differs);
            assert!(
                (comparison.ratio.value - 1.05).abs() < 0.03,
                "{comparison:?}"
            );
        }
        assert!(found >= 45, "{found} of 50");
    }

    #[test]
    fn series_that_were_measured_apart_see_less() {
        let mut random = Random::new(11);
        let (first, second) = random.blocks(20, 1.05);
        let apart = apart(&first, &second).expect("twenty of each");
        assert!(!apart.differs, "{apart:?}");
        assert!(apart.needed.is_none_or(|n| n > 20), "{apart:?}");
        let same = super::apart(&[5.0, 5.0], &[5.0, 5.0]).expect("two of each");
        assert!(!same.differs && same.needed.is_none(), "{same:?}");
    }

    /// With as many runs as were said to be needed, a difference of the size that was measured is found in about four cases
    /// of five.
    #[test]
    fn number_of_runs_needed_is_enough() {
        let mut random = Random::new(13);
        let (mut asked, mut found) = (0, 0);
        for _ in 0..200 {
            let (first, second) = random.blocks(20, 1.01);
            let few = paired(&first, &second).expect("twenty pairs");
            let Some(needed) = few.needed.filter(|needed| *needed < 2000) else {
                continue;
            };
            let (first, second) = random.blocks(needed as usize, few.ratio.value);
            asked += 1;
            found += u32::from(paired(&first, &second).expect("pairs").differs);
        }
        let share = f64::from(found) / f64::from(asked);
        assert!(asked > 50 && share > 0.65, "{found} of {asked}");
    }
}
