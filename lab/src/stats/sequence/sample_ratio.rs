//! Whether users are split among arms as configured: a test that may be read at any time.
//!
//! A mismatch means that users of an arm are lost or assigned wrongly, and no difference between arms can be trusted.
//!
//! Source: M. Lindon, A. Malek, "Anytime-valid inference for multinomial count data", Advances in Neural Information Processing
//! Systems 35 (2022).

use super::boundary::ln_sum;
use crate::stats::student::ln_gamma;

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRatio {
    /// Valid at every look. The smallest of all looks is a valid p value of all of them.
    pub p_value: f64,
    /// Whether it is at or below [`SampleRatio::LEVEL`].
    pub is_mismatch: bool,
}

impl SampleRatio {
    /// The level below which a split is a mismatch: a right split is one in one of a hundred experiments, over all looks.
    pub const LEVEL: f64 = 0.01;
}

/// Compares the users of each arm with the weights of the arms.
///
/// An arm without a weight has weight 0; users in it are a mismatch for certain.
#[must_use]
pub fn sample_ratio(users: &[u64], weights: &[u32]) -> SampleRatio {
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum::<f64>();
    let share = |arm: usize| {
        weights
            .get(arm)
            .map_or(0.0, |weight| f64::from(*weight) / total.max(1.0))
    };
    let pairs: Vec<(f64, f64)> = users
        .iter()
        .enumerate()
        .map(|(arm, count)| (*count as f64, share(arm)))
        .collect();
    let is_impossible = pairs
        .iter()
        .any(|(count, share)| *count > 0.0 && *share <= 0.0);
    let p_value = match is_impossible {
        true => 0.0,
        false => (-evidence(&pairs)).exp().min(1.0),
    };
    SampleRatio {
        p_value,
        is_mismatch: p_value <= SampleRatio::LEVEL,
    }
}

/// Returns the logarithm of a mixture of likelihood ratios. In one half all arms deviate from their weights, in the other one arm. Of a thousand arms, only the second half notices that one is lost. Of two arms, both halves are equal.
fn evidence(arms: &[(f64, f64)]) -> f64 {
    let n: f64 = arms.iter().map(|(count, _)| count).sum();
    let one = arms.iter().map(|(count, share)| {
        let others = (n - count, 1.0 - share);
        dirichlet(&[(*count, *share), others])
    });
    // Their mean, with the largest term in front: each may exceed the range of a number.
    let one: Vec<f64> = one.collect();
    let largest = one.iter().copied().fold(0.0, f64::max);
    let mean =
        one.iter().map(|term| (term - largest).exp()).sum::<f64>() / arms.len().max(1) as f64;
    let half = 0.5_f64.ln();
    ln_sum([half + dirichlet(arms), half + largest + mean.ln()])
}

/// The logarithm of a Dirichlet mixture of likelihood ratios: splits near the configured one against the configured one.
fn dirichlet(cells: &[(f64, f64)]) -> f64 {
    let n: f64 = cells.iter().map(|(count, _)| count).sum();
    ln_sum(PRIORS.map(|(weight, strength)| {
        let users = cells.iter().filter(|(count, _)| *count > 0.0);
        let sum: f64 = users
            .map(|(count, share)| {
                let prior = strength * share;
                ln_gamma(prior + count) - ln_gamma(prior) - count * share.ln()
            })
            .sum();
        f64::ln(weight) + sum + ln_gamma(strength) - ln_gamma(strength + n)
    }))
}

/// Weights and strengths of the priors, users: the first finds 51/49 at 50,000 users, the second 60/40 at 1,000.
const PRIORS: [(f64, f64); 2] = [(0.9, 5000.0), (0.1, 50.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_judged() {
        for (users, weights, is_mismatch) in [
            (&[25_500, 24_500][..], &[50, 50][..], true),
            (&[25_100, 24_900], &[1, 1], false),
            (&[25_500, 24_500], &[51, 49], false),
            (&[600, 400], &[1, 1], true),
            (&[520, 480], &[1, 1], false),
            (&[90_000, 10_000], &[9, 1], false),
            (&[90_600, 9_400], &[9, 1], true),
            (&[0, 0], &[1, 1], false),
            (&[1, 0], &[1, 1], false),
            (&[30, 0], &[1, 1], false),
            (&[40, 0], &[1, 1], true),
            (&[], &[], false),
            (&[5, 5, 1], &[1, 1], true),
            (&[5, 5, 0], &[1, 1], false),
            (&[33_300, 33_400, 33_300], &[1, 1, 1], false),
            (&[33_000, 34_000, 33_000], &[1, 1, 1], true),
        ] {
            let found = sample_ratio(users, weights);
            assert_eq!(
                found.is_mismatch, is_mismatch,
                "{users:?} {weights:?} {found:?}"
            );
            assert_eq!(found.is_mismatch, found.p_value <= 0.01);
            assert!((0.0..=1.0).contains(&found.p_value), "{found:?}");
        }
    }

    #[test]
    fn a_thousand_arms_are_judged() {
        let mut users = vec![1000; 1000];
        let weights = vec![7; 1000];
        assert!(!sample_ratio(&users, &weights).is_mismatch);
        users[999] = 0;
        assert!(sample_ratio(&users, &weights).is_mismatch);
    }

    /// Right splits of 20,000 users, looked at 200 times, and 51/49 of 50,000 users.
    #[test]
    fn right_splits_pass_at_every_look_and_wrong_ones_are_found() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut is_found = |looks: usize, share: f64| {
            let mut users = [0, 0];
            (0..looks).any(|_| {
                (0..100).for_each(|_| users[usize::from(random.f64() >= share)] += 1);
                sample_ratio(&users, &[1, 1]).is_mismatch
            })
        };
        let wrong = (0..500).filter(|_| is_found(200, 0.5)).count();
        assert!(wrong <= 5, "{wrong} of 500");
        let right = (0..100).filter(|_| is_found(500, 0.51)).count();
        assert!(right >= 70, "{right} of 100");
    }
}
