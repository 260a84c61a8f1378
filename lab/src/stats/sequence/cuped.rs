//! CUPED: values less the part that a user's values before the experiment explain.
//!
//! A user's value of the pre-period predicts that of the experiment, and no arm can have changed it. Less this prediction, means stay
//! as they are and variances fall by the squared correlation. Users without a value of the pre-period have the mean of
//! their kind: that they are new explains a part as well. The prediction is common to all arms; otherwise it would
//! hide differences.
//!
//! Source: A. Deng, Y. Xu, R. Kohavi, T. Walker, "Improving the sensitivity of online controlled experiments by utilizing
//! pre-experiment data", WSDM 2013.

use super::mean::Summary;

/// Values of one arm with their covariates, gathered one by one; a few numbers of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Covaried {
    /// Users without a covariate.
    new: Summary,
    /// Values of the others, and their covariates.
    known: Summary,
    before: Summary,
    /// Sum of products of distances to the means.
    products: f64,
}

impl Covaried {
    /// Adds a user's value, and the value before the experiment if there is one.
    pub fn push(&mut self, value: f64, before: Option<f64>) {
        let Some(before) = before else {
            return self.new.push(value);
        };
        let distance = value - self.known.mean();
        self.known.push(value);
        self.before.push(before);
        self.products += distance * (before - self.before.mean());
    }

    /// Number of users.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.new.n() + self.known.n()
    }

    /// The values as they are.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Cuped::default().summary(self)
    }
}

/// A common prediction of all arms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cuped {
    /// Change of the value for each unit of the covariate.
    pub theta: f64,
    /// Mean value of known users less that of new ones.
    pub known_more: f64,
    /// Share of the variance that is explained, from 0 to 1; 0 if nothing is.
    pub reduction: f64,
    /// Mean of the covariate.
    before: f64,
    /// Share of known users.
    known: f64,
}

impl Cuped {
    /// The prediction for all arms of an experiment; without covariates it changes nothing.
    #[must_use]
    pub fn of(arms: &[Covaried]) -> Self {
        let pooled = |of: fn(&Covaried) -> &Summary| {
            arms.iter()
                .map(of)
                .copied()
                .fold(Summary::default(), Summary::joined)
        };
        let (new, known, before) = (
            pooled(|arm| &arm.new),
            pooled(|arm| &arm.known),
            pooled(|arm| &arm.before),
        );
        // Within arms: differences between arms are no prediction.
        let products: f64 = arms.iter().map(|arm| arm.products).sum();
        let spread: f64 = arms.iter().map(|arm| arm.before.squares()).sum();
        let n = new.n() + known.n();
        if known.n() < LEAST_KNOWN {
            return Self::default();
        }
        let theta = match spread > 0.0 {
            true => products / spread,
            false => 0.0,
        };
        let known_more = match new.n() >= LEAST_KNOWN {
            true => known.mean() - new.mean(),
            false => 0.0,
        };
        let mut found = Self {
            theta,
            known_more,
            reduction: 0.0,
            before: before.mean(),
            known: known.n() as f64 / n as f64,
        };
        let within = |of: &dyn Fn(&Covaried) -> Summary| -> f64 {
            arms.iter().map(|arm| of(arm).squares()).sum()
        };
        let (all, left) = (
            within(&Covaried::summary),
            within(&|arm| found.summary(arm)),
        );
        if all > 0.0 {
            found.reduction = (1.0 - left / all).clamp(0.0, 1.0);
        }
        found
    }

    /// A user's value less the prediction.
    #[must_use]
    pub fn adjusted(&self, value: f64, before: Option<f64>) -> f64 {
        let explained = before.map_or(0.0, |before| self.theta * (before - self.before));
        let share = f64::from(before.is_some()) - self.known;
        value - explained - self.known_more * share
    }

    /// The adjusted values of an arm.
    #[must_use]
    pub fn summary(&self, arm: &Covaried) -> Summary {
        let part = |summary: &Summary, before: Option<f64>, squares: f64| {
            Summary::from_parts(summary.n(), self.adjusted(summary.mean(), before), squares)
        };
        let squares = arm.known.squares() - 2.0 * self.theta * arm.products
            + self.theta * self.theta * arm.before.squares();
        let known = part(&arm.known, Some(arm.before.mean()), squares.max(0.0));
        let new = part(&arm.new, None, arm.new.squares());
        new.joined(known)
    }
}

/// Users with a covariate, and users without one, from which on each kind is used.
const LEAST_KNOWN: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// Users of two arms: known ones have a habit, which shows before and during the experiment.
    fn users(count: usize, effect: f64, seed: u64) -> Vec<(f64, Option<f64>)> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let mut user = |number: usize| {
            let habit = 100.0 + 20.0 * normal();
            let before = habit + 10.0 * normal();
            let value = (habit + 10.0 * normal()) * effect;
            match number % 4 {
                0 => (value + 40.0, None),
                _ => (value, Some(before)),
            }
        };
        (0..count).map(&mut user).collect()
    }

    fn covaried(users: &[(f64, Option<f64>)]) -> Covaried {
        let mut arm = Covaried::default();
        users
            .iter()
            .for_each(|(value, before)| arm.push(*value, *before));
        arm
    }

    #[test]
    fn summaries_are_those_of_adjusted_values() {
        let (a, b) = (users(4000, 1.0, 1), users(4000, 1.02, 2));
        let arms = [covaried(&a), covaried(&b)];
        let cuped = Cuped::of(&arms);
        for (users, arm) in [(&a, &arms[0]), (&b, &arms[1])] {
            let direct: Summary = users
                .iter()
                .map(|(value, before)| cuped.adjusted(*value, *before))
                .collect();
            let found = cuped.summary(arm);
            assert_eq!(found.n(), 4000);
            assert!(
                (found.mean() - direct.mean()).abs() < 1e-9,
                "{found:?} {direct:?}"
            );
            assert!((found.variance() / direct.variance() - 1.0).abs() < 1e-9);
            let plain: Summary = users.iter().map(|(value, _)| *value).collect();
            let unadjusted = arm.summary();
            assert!((unadjusted.variance() / plain.variance() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn variance_falls_and_the_difference_stays() {
        let arms = [
            covaried(&users(40_000, 1.0, 3)),
            covaried(&users(40_000, 1.02, 4)),
        ];
        let cuped = Cuped::of(&arms);
        // Known users: a variance of 500, of which 320 are explained. New ones have 500; the difference of both kinds adds 300.
        assert!((cuped.theta - 0.8).abs() < 0.03, "{cuped:?}");
        assert!((cuped.reduction - 540.0 / 800.0).abs() < 0.03, "{cuped:?}");
        let means = arms.map(|arm| cuped.summary(&arm).mean());
        let ratio = means[1] / means[0] - 1.0;
        assert!((ratio - 0.02).abs() < 0.004, "{ratio}");
    }

    #[test]
    fn without_covariates_nothing_changes() {
        let alone: Vec<_> = users(1000, 1.0, 5)
            .iter()
            .map(|(value, _)| (*value, None))
            .collect();
        for known in [0, LEAST_KNOWN - 1, LEAST_KNOWN] {
            let mut arm = covaried(&alone);
            (0..known).for_each(|n| arm.push(n as f64, Some(n as f64)));
            let cuped = Cuped::of(&[arm]);
            assert_eq!(cuped == Cuped::default(), known < LEAST_KNOWN, "{known}");
            assert_eq!(cuped.summary(&arm) == arm.summary(), known < LEAST_KNOWN);
        }
        assert_eq!(Cuped::of(&[]), Cuped::default());
        let mut equal = Covaried::default();
        (0..500).for_each(|_| equal.push(1.0, Some(2.0)));
        let cuped = Cuped::of(&[equal]);
        assert_eq!((cuped.theta, cuped.reduction), (0.0, 0.0));
    }
}
