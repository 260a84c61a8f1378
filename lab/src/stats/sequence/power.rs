//! Users that an experiment needs.
//!
//! The test statistic is taken for a Brownian motion with drift. The power of a sequence is the chance that this motion leaves the
//! boundary at one of many looks. Numerical integration from look to look finds it.
//!
//! Sources: P. Armitage, C. K. McPherson, B. C. Rowe, "Repeated significance tests on accumulating data", Journal of the Royal
//! Statistical Society A 132 (1969), for the integration.

use super::boundary::Tuning;
use super::mean::MIN_USERS;
use super::normal;

/// An effect to be found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// Relative difference of the means, such as 0.006; above -1 and not 0.
    pub effect: f64,
    /// Coefficient of variation of users' values: standard deviation over mean.
    pub cv: f64,
    /// Correlation of a user's value with that of the pre-period (CUPED), from 0 to below 1; 0 without one.
    pub correlation: f64,
    /// Chance of a false alarm, such as 0.05.
    pub alpha: f64,
    /// Chance to find the effect, such as 0.8.
    pub power: f64,
}

impl Question {
    /// The effect with `users` of each arm, in standard errors of the logarithm of the ratio.
    fn signal(&self, users: f64) -> f64 {
        let spread = self.cv * (2.0 * (1.0 - self.correlation * self.correlation)).sqrt();
        self.effect.ln_1p().abs() / spread * users.sqrt()
    }
}

/// Times at which the interval may be looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Once, at a size chosen in advance.
    FixedHorizon,
    /// At any time.
    Sequence(Tuning),
}

impl Method {
    /// The chance to find the effect with `users` of each arm.
    #[must_use]
    pub fn power(&self, question: &Question, users: f64) -> f64 {
        let signal = question.signal(users);
        match self {
            Self::FixedHorizon => {
                let end = normal::quantile(1.0 - question.alpha / 2.0);
                normal::below(signal - end)
            }
            Self::Sequence(tuning) => crossing(users, signal, question.alpha, tuning),
        }
    }
}

/// Users of each arm of equal size; a sequence has at least [`MIN_USERS`]. `None`: more than [`USERS_MAX`], or no effect.
#[must_use]
pub fn users_per_arm(question: &Question, method: &Method) -> Option<u64> {
    let ends = normal::quantile(1.0 - question.alpha / 2.0) + normal::quantile(question.power);
    let fixed = (ends / question.signal(1.0)).powi(2).max(2.0);
    let limit = USERS_MAX as f64;
    let users = match method {
        Method::FixedHorizon => fixed,
        Method::Sequence(_) => {
            let suffices = |users: f64| method.power(question, users) >= question.power;
            let least = fixed.max(MIN_USERS as f64);
            let (mut low, mut high) = (least, least);
            while high <= limit && !suffices(high) {
                (low, high) = (high, high * 2.0);
            }
            while high <= limit && high / low > 1.0 + PRECISION {
                let middle = (low + high) / 2.0;
                match suffices(middle) {
                    true => high = middle,
                    false => low = middle,
                }
            }
            high
        }
    };
    (users <= limit).then_some(users.ceil() as u64)
}

/// Days until every arm has its users, for arms of equal size; at least 1.
#[must_use]
pub fn days(users_per_arm: u64, arms: u32, users_per_day: f64) -> f64 {
    (users_per_arm as f64 * f64::from(arms) / users_per_day).max(1.0)
}

/// The chance that a walk with a drift of `signal` at its end leaves the boundary at one of [`LOOKS`] looks.
fn crossing(users: f64, signal: f64, alpha: f64, tuning: &Tuning) -> f64 {
    let least = MIN_USERS as f64;
    if users < least {
        return 0.0;
    }
    if signal > SIGNAL_MAX {
        return 1.0;
    }
    let time = 1.0 / f64::from(LOOKS);
    let band = (6.0 * time.sqrt() / CELL).ceil() as i32 + (signal * time / CELL).ceil() as i32;
    let step = |cells: i32| {
        let distance = (f64::from(cells) * CELL - signal * time) / time.sqrt();
        normal::density(distance) / time.sqrt() * CELL
    };
    let kernel: Vec<f64> = (-band..=band).map(step).collect();
    // The chances of cells within the boundary; the middle cell is 0.
    let mut inside = vec![1.0];
    for look in 1..=LOOKS {
        let share = f64::from(look) * time;
        let bound = match look == LOOKS || users * share >= least {
            true => tuning.multiplier(users * share, alpha) * share.sqrt() / CELL,
            // Fewer users have no interval.
            false => f64::INFINITY,
        };
        let bound = bound.min(SIGNAL_MAX * 2.0 / CELL);
        let half = (bound + 0.5).floor() as i32;
        let before = (inside.len() / 2) as i32;
        let chance = |cell: i32| {
            // The last cell is inside in part.
            let part = (bound - f64::from(cell.abs()) + 0.5).clamp(0.0, 1.0);
            let from = (cell - band).max(-before);
            let to = (cell + band).min(before);
            let sum: f64 = (from..=to)
                .map(|start| {
                    inside[(start + before) as usize] * kernel[(cell - start + band) as usize]
                })
                .sum();
            part * sum
        };
        inside = (-half..=half).map(chance).collect();
    }
    1.0 - inside.iter().sum::<f64>()
}

/// More users of an arm than these are none.
pub const USERS_MAX: u64 = 1_000_000_000_000;
/// Looks at a sequence.
const LOOKS: u32 = 50;
/// Width of the cells of the integration, in standard errors at the end.
const CELL: f64 = 0.04;
/// Signals beyond are found for certain.
const SIGNAL_MAX: f64 = 12.0;
/// Relative precision of a number of users.
const PRECISION: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: Question = Question {
        effect: 0.006,
        cv: 1.0,
        correlation: 0.0,
        alpha: 0.05,
        power: 0.8,
    };

    fn users(question: Question, method: Method) -> u64 {
        users_per_arm(&question, &method).expect("it is found")
    }

    #[test]
    fn users_are_those_of_the_formula() {
        let fixed = users(QUESTION, Method::FixedHorizon);
        assert!((438_600..=438_700).contains(&fixed), "{fixed}");
        let covaried = Question {
            correlation: 0.6,
            ..QUESTION
        };
        let with = users(covaried, Method::FixedHorizon) as f64;
        assert!((with / fixed as f64 - 0.64).abs() < 0.002, "{with}");
        let other = Question {
            effect: 0.012,
            cv: 2.0,
            ..QUESTION
        };
        let same = users(other, Method::FixedHorizon) as f64;
        assert!((same / fixed as f64 - 1.0).abs() < 0.01, "{same}");
    }

    #[test]
    fn a_sequence_needs_at_most_800_000() {
        let always = Method::Sequence(Tuning::default());
        let found = users(QUESTION, always);
        assert!((700_000..=800_000).contains(&found), "{found}");
        let covaried = users(
            Question {
                correlation: 0.7,
                ..QUESTION
            },
            always,
        );
        assert!((360_000..=450_000).contains(&covaried), "{covaried}");
    }

    /// The chances of false alarms, and the sample of walks.
    #[test]
    fn integration_agrees_with_walks() {
        let mut random = fastrand::Rng::with_seed(8);
        let tuning = Tuning::default();
        let bounds: Vec<f64> = (1..=LOOKS)
            .map(|look| tuning.multiplier(16_000.0 * f64::from(look), 0.05))
            .collect();
        for signal in [0.0, 2.0, 3.8] {
            let expected = crossing(800_000.0, signal, 0.05, &tuning);
            let mut crossed = 0;
            for _ in 0..4000 {
                let mut sum = 0.0;
                crossed += u32::from((1..).zip(&bounds).any(|(look, bound)| {
                    let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                    sum += normal + signal / f64::from(LOOKS).sqrt();
                    f64::abs(sum) / f64::from(look).sqrt() > *bound
                }));
            }
            let found = f64::from(crossed) / 4000.0;
            assert!(
                (found - expected).abs() < 0.025,
                "{signal}: {found} {expected}"
            );
        }
        assert!(crossing(800_000.0, 0.0, 0.05, &tuning) < 0.05);
    }

    /// Fewer users have no interval of the mean.
    #[test]
    fn a_sequence_needs_the_least_number_of_users() {
        let always = Method::Sequence(Tuning::default());
        let mut needed = Vec::new();
        for effect in [10.0, 0.5, 0.4, 0.3, 0.2] {
            let question = Question {
                effect,
                cv: 0.5,
                ..QUESTION
            };
            let found = users(question, always);
            assert!(found >= MIN_USERS, "{effect}: {found}");
            needed.push(found);
        }
        assert_eq!(needed[0], MIN_USERS);
        assert!(needed.is_sorted() && needed[4] > MIN_USERS, "{needed:?}");
        let large = Question {
            effect: 10.0,
            ..QUESTION
        };
        let powers = [-1.0, 0.0, 1.0].map(|more| always.power(&large, MIN_USERS as f64 + more));
        assert!(
            powers[0] == 0.0 && powers[1] > 0.99 && powers[2] > 0.99,
            "{powers:?}"
        );
    }

    #[test]
    fn effects_out_of_reach_are_none() {
        let none = Question {
            effect: 0.0,
            ..QUESTION
        };
        assert_eq!(users_per_arm(&none, &Method::FixedHorizon), None);
        let large = Question {
            effect: 10.0,
            cv: 0.1,
            ..QUESTION
        };
        assert_eq!(users(large, Method::FixedHorizon), 2);
        let least = (USERS_MAX as f64 / 438_670.0).sqrt();
        for (cv, is_reached) in [(0.999 * least, true), (1.001 * least, false)] {
            let question = Question { cv, ..QUESTION };
            let found = users_per_arm(&question, &Method::FixedHorizon);
            assert_eq!(found.is_some(), is_reached, "{cv}");
            let always = Method::Sequence(Tuning::default());
            assert_eq!(users_per_arm(&question, &always), None, "{cv}");
        }
        assert!((days(1000, 2, 500.0) - 4.0).abs() < 1e-12);
        assert_eq!(days(1, 2, 500.0), 1.0);
    }
}
