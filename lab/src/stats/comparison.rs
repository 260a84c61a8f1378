//! Two series of measurements: whether they differ, and the number of measurements that would show it.
//!
//! Two servers that were loaded in turn within blocks are compared by the ratio in each block (the paired t test, on logarithms).
//! Changes between blocks, such as other load on the machine, affect both servers and cancel out. Two reports from different
//! times are compared by Welch's t test.

use super::estimate::{Estimate, deviation, mean};
use super::student::t_quantile;

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The second over the first: 1.05 is 5 % more. Its interval is at [`VERDICT_LEVEL`].
    pub ratio: Estimate,
    /// Whether the interval leaves out 1; of several comparisons, the wider interval for all together.
    pub differs: bool,
    /// Without a difference: the approximate number of measurements of each that would show the measured difference in four of five
    /// cases; `None` if it is impractically large.
    pub needed: Option<u64>,
}

/// Compares two series that were measured in pairs; values above 0.
#[must_use]
pub fn paired(first: &[f64], second: &[f64]) -> Option<Comparison> {
    paired_among(first, second, 1)
}

/// Compares two series that were measured in pairs, as one of several comparisons. All of them together call a difference
/// by chance in one of a hundred cases (Bonferroni). The interval is that of one comparison.
#[must_use]
pub fn paired_among(first: &[f64], second: &[f64], comparisons: usize) -> Option<Comparison> {
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
    let chance = (1.0 - VERDICT_LEVEL) / comparisons.max(1) as f64;
    let together = mean(&logs, 1.0 - chance)?;
    let differs = together.low > 0.0 || together.high < 0.0;
    Some(verdict(estimate, differs, deviation(&logs)))
}

/// Compares two series that were measured apart; values above 0.
#[must_use]
pub fn apart(first: &[f64], second: &[f64]) -> Option<Comparison> {
    apart_among(first, second, 1)
}

/// Compares two series of different times, as one of several comparisons. All of them together call a difference by chance
/// in one of a hundred cases (Bonferroni). The interval is that of one comparison.
#[must_use]
pub fn apart_among(first: &[f64], second: &[f64], comparisons: usize) -> Option<Comparison> {
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
    let half_at = |chance: f64| t_quantile(1.0 - chance / 2.0, freedom) * sum.sqrt();
    let chance = 1.0 - VERDICT_LEVEL;
    let half = half_at(chance);
    let differs = value.abs() > half_at(chance / comparisons.max(1) as f64);
    let n = a.len().min(b.len());
    let estimate = Estimate {
        value,
        low: value - half,
        high: value + half,
        n,
    };
    Some(verdict(estimate, differs, (sum * n as f64).sqrt()))
}

/// From a difference of logarithms and the deviation of one pair.
fn verdict(difference: Estimate, differs: bool, deviation: f64) -> Comparison {
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

/// The level of the interval that decides whether two servers differ: an A/A comparison calls a winner once in a hundred.
pub const VERDICT_LEVEL: f64 = 0.99;
/// Quantile of the normal distribution for an interval at 0.99, and the addition for a power of 0.8.
const Z_VERDICT: f64 = 2.575_829;
const Z_POWER: f64 = 0.841_621;
/// Measurements that t needs more than the normal distribution at the sizes that matter here.
const SMALL_SAMPLE: f64 = 2.0;
/// More measurements than these are reported as none.
const MOST_NEEDED: f64 = 100_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Measurements by chance.
    struct Random(fastrand::Rng);

    impl Random {
        fn new(seed: u64) -> Self {
            Self(fastrand::Rng::with_seed(seed))
        }

        /// The sum of twelve numbers below 1 is nearly normal.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0
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
                (comparison.ratio.value - 1.05).abs() < 0.04,
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

    #[test]
    fn many_comparisons_of_one_server_call_few_winners_together() {
        let mut random = Random::new(17);
        let (mut alone, mut among) = (0, 0);
        for _ in 0..40 {
            let mut found = [0, 0];
            for _ in 0..100 {
                // Of different blocks, as series at different times are.
                let (first, _) = random.blocks(5, 1.0);
                let (second, _) = random.blocks(5, 1.0);
                let differs = |comparison: Option<Comparison>| {
                    usize::from(comparison.expect("five of each").differs)
                };
                found[0] += differs(apart(&first, &second));
                found[1] += differs(apart_among(&first, &second, 100));
            }
            alone += usize::from(found[0] > 0);
            among += usize::from(found[1] > 0);
        }
        assert!(alone >= 15 && among <= 3, "{alone} and {among} of 40");
        let found = apart_among(&[5.0, 5.1, 4.9, 5.0], &[9.0, 9.1, 9.2, 8.9], 100);
        assert!(found.is_some_and(|found| found.differs), "{found:?}");
    }

    #[test]
    fn many_comparisons_in_pairs_call_few_winners_together() {
        let mut random = Random::new(19);
        let (mut alone, mut among) = (0, 0);
        for _ in 0..40 {
            let mut found = [0, 0];
            for _ in 0..100 {
                let (first, second) = random.blocks(6, 1.0);
                let one = paired(&first, &second).expect("six pairs");
                let of_many = paired_among(&first, &second, 100).expect("six pairs");
                assert_eq!(one.ratio, of_many.ratio);
                found[0] += usize::from(one.differs);
                found[1] += usize::from(of_many.differs);
            }
            alone += usize::from(found[0] > 0);
            among += usize::from(found[1] > 0);
        }
        assert!(alone >= 15 && among <= 3, "{alone} and {among} of 40");
        let found = paired_among(&[5.0, 5.1, 4.9, 5.0], &[9.0, 9.1, 9.2, 8.9], 100);
        assert!(found.is_some_and(|found| found.differs), "{found:?}");
    }

    /// With the number of runs in `needed`, a difference of the measured size is found in about four of five cases.
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
