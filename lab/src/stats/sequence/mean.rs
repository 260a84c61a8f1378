//! Means: confidence sequences of one arm, and relative differences of two.
//!
//! Sources: Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas, "Time-uniform central limit theory and asymptotic confidence
//! sequences", Annals of Statistics 52 (2024); E. C. Fieller, "Some problems in interval estimation", Journal of the Royal
//! Statistical Society B 16 (1954).

use super::boundary::Tuning;
use super::{Difference, Interval, normal};

/// Number, mean and spread of values, gathered one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    n: u64,
    mean: f64,
    /// Sum of squared distances to the mean.
    squares: f64,
}

impl Summary {
    /// `n` values with a mean and a variance of the sample.
    #[must_use]
    pub fn new(n: u64, mean: f64, variance: f64) -> Self {
        Self {
            n,
            mean,
            squares: variance * n.saturating_sub(1) as f64,
        }
    }

    /// Adds a value (Welford's method).
    pub fn push(&mut self, value: f64) {
        self.n += 1;
        let distance = value - self.mean;
        self.mean += distance / self.n as f64;
        self.squares += distance * (value - self.mean);
    }

    /// Number of values.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Their mean; 0 for none.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Variance of the sample; 0 for fewer than two values.
    #[must_use]
    pub fn variance(&self) -> f64 {
        match self.n < 2 {
            true => 0.0,
            false => self.squares / (self.n - 1) as f64,
        }
    }

    /// Sum of squared distances to the mean.
    pub(super) const fn squares(&self) -> f64 {
        self.squares
    }

    pub(super) const fn from_parts(n: u64, mean: f64, squares: f64) -> Self {
        Self { n, mean, squares }
    }

    /// The values of both (Chan's method).
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let n = self.n + other.n;
        if n == 0 {
            return self;
        }
        let share = other.n as f64 / n as f64;
        let distance = other.mean - self.mean;
        Self {
            n,
            mean: self.mean + distance * share,
            squares: self.squares + other.squares + distance * distance * share * self.n as f64,
        }
    }

    /// Squared standard error of the mean.
    fn error(&self) -> f64 {
        self.variance() / self.n as f64
    }
}

impl FromIterator<f64> for Summary {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut summary = Self::default();
        values.into_iter().for_each(|value| summary.push(value));
        summary
    }
}

/// The mean of one arm, valid at every look together with chance 1 - alpha. Unbounded below [`MIN_USERS`] users.
#[must_use]
pub fn mean_sequence(arm: &Summary, alpha: f64, tuning: &Tuning) -> Interval {
    if arm.n < MIN_USERS {
        return Interval {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
    }
    let half = tuning.multiplier(arm.n as f64, alpha) * arm.error().sqrt();
    Interval {
        low: arm.mean - half,
        high: arm.mean + half,
    }
}

/// The relative difference of two means, valid at every look together with chance 1 - alpha.
///
/// Values are 0 or more. The interval is -1 to infinity below [`MIN_USERS`] users of an arm. `None`: the mean of A is not
/// positive, or an arm is empty.
#[must_use]
pub fn mean_ratio(a: &Summary, b: &Summary, alpha: f64, tuning: &Tuning) -> Option<Difference> {
    if a.n.min(b.n) < MIN_USERS {
        return ratio(a, b, f64::INFINITY);
    }
    // Arms of different sizes know as much as two arms of the harmonic mean.
    let users = 2.0 / (1.0 / a.n as f64 + 1.0 / b.n as f64);
    ratio(a, b, tuning.multiplier(users, alpha))
}

/// The relative difference of two means, valid at one look that was planned in advance.
#[must_use]
pub fn mean_ratio_once(a: &Summary, b: &Summary, alpha: f64) -> Option<Difference> {
    ratio(a, b, normal::quantile(1.0 - alpha / 2.0))
}

/// Ratios r for which mean B - r mean A is within a number of its standard errors of 0 (Fieller).
fn ratio(a: &Summary, b: &Summary, multiplier: f64) -> Option<Difference> {
    if a.n == 0 || b.n == 0 || a.mean <= 0.0 {
        return None;
    }
    let estimate = b.mean / a.mean - 1.0;
    let unbounded = Difference {
        estimate,
        interval: Interval {
            low: -1.0,
            high: f64::INFINITY,
        },
    };
    if multiplier.is_infinite() {
        return Some(unbounded);
    }
    let square = multiplier * multiplier;
    let of_a = a.mean * a.mean - square * a.error();
    let of_b = b.mean * b.mean - square * b.error();
    if of_a <= 0.0 {
        // The mean of A may be 0.
        return Some(unbounded);
    }
    let product = a.mean * b.mean;
    let root = (product * product - of_a * of_b).max(0.0).sqrt();
    Some(Difference {
        estimate,
        interval: Interval {
            low: ((product - root) / of_a - 1.0).max(-1.0),
            high: (product + root) / of_a - 1.0,
        },
    })
}

/// Users of each arm before the first interval of a mean: with fewer, a mean of heavy-tailed values is not normal enough.
pub const MIN_USERS: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_those_of_the_formula() {
        let summary: Summary = [9.0, 11.0, 9.0, 11.0].into_iter().collect();
        assert_eq!((summary.n(), summary.mean()), (4, 10.0));
        assert!((summary.variance() - 4.0 / 3.0).abs() < 1e-12);
        let same = Summary::new(4, 10.0, 4.0 / 3.0);
        assert!((same.variance() - summary.variance()).abs() < 1e-12);
        assert_eq!(Summary::default().variance(), 0.0);
    }

    #[test]
    fn intervals_begin_at_the_least_number_of_users() {
        let tuning = Tuning::default();
        let arm = |n| Summary::new(n, 100.0, 2500.0);
        for (n, is_bounded) in [
            (MIN_USERS - 1, false),
            (MIN_USERS, true),
            (MIN_USERS + 1, true),
        ] {
            let found = mean_ratio(&arm(n), &arm(1000), 0.05, &tuning).expect("A is positive");
            assert_eq!(found.interval.high.is_finite(), is_bounded, "{n}");
            let found = mean_ratio(&arm(1000), &arm(n), 0.05, &tuning).expect("A is positive");
            assert_eq!(found.interval.high.is_finite(), is_bounded, "{n}");
            let one = mean_sequence(&arm(n), 0.05, &tuning);
            assert_eq!(one.low.is_finite(), is_bounded, "{n}");
        }
        assert_eq!(
            mean_ratio(&Summary::default(), &arm(5), 0.05, &tuning),
            None
        );
        assert_eq!(
            mean_ratio(&arm(5), &Summary::default(), 0.05, &tuning),
            None
        );
        assert_eq!(
            mean_ratio(&Summary::new(500, 0.0, 0.0), &arm(500), 0.05, &tuning),
            None
        );
    }

    /// With little spread, the interval is that of the delta method.
    #[test]
    fn ratios_have_the_width_of_the_delta_method() {
        let (a, b) = (
            Summary::new(450_000, 100.0, 10_000.0),
            Summary::new(450_000, 101.0, 10_201.0),
        );
        let found = mean_ratio_once(&a, &b, 0.05).expect("A is positive");
        assert!((found.estimate - 0.01).abs() < 1e-9);
        let half = 1.959_964 * 1.01 * (2.0_f64 / 450_000.0).sqrt();
        assert!(
            (found.interval.low - (0.01 - half)).abs() < 2e-5,
            "{found:?}"
        );
        assert!(
            (found.interval.high - (0.01 + half)).abs() < 2e-5,
            "{found:?}"
        );
        assert!(found.is_found());
        let always = mean_ratio(&a, &b, 0.05, &Tuning::default()).expect("A is positive");
        assert!(
            always.interval.low < found.interval.low && always.interval.high > found.interval.high
        );
    }

    #[test]
    fn a_mean_that_may_be_zero_has_no_upper_end() {
        let tuning = Tuning::default();
        let (rare, common) = (
            Summary::new(1000, 0.001, 0.0009),
            Summary::new(1000, 1.0, 1.0),
        );
        let found = mean_ratio(&rare, &common, 0.05, &tuning).expect("A is positive");
        assert_eq!(
            found.interval,
            Interval {
                low: -1.0,
                high: f64::INFINITY
            }
        );
        let found = mean_ratio(&common, &rare, 0.05, &tuning).expect("A is positive");
        assert!(
            found.interval.low == -1.0 && found.interval.high < 0.0,
            "{found:?}"
        );
    }
}
