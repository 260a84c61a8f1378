//! Boundary of a standardized sum that is crossed with a small chance at any time.
//!
//! For sums of independent values, a mixture of likelihood ratios over normal effects is a martingale that starts at 1. By
//! Ville's inequality it reaches 1/alpha with a chance of at most alpha, over all sizes together. One scale of effects is narrow
//! near one size of the experiment and useless at a hundredth of it; a mixture of scales costs 2 % there and serves all sizes.
//!
//! Source: Howard, Ramdas, McAuliffe, Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of
//! Statistics 49 (2021), section 3; Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas, "Time-uniform central limit theory and
//! asymptotic confidence sequences", Annals of Statistics 52 (2024).

/// The size of experiment at which intervals are narrowest. Choose it before the first look: a choice after looks at the data
/// loses the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Planned users of each arm, from 1,000.
    pub users_per_arm: f64,
}

impl Default for Tuning {
    /// 400,000 users per arm: 0.6 % at a coefficient of variation of 1 needs up to 800,000.
    fn default() -> Self {
        Self {
            users_per_arm: 400_000.0,
        }
    }
}

impl Tuning {
    /// Weights of the scales, and the size of experiment that each serves best.
    fn scales(&self) -> [(f64, f64); SCALES] {
        let planned = self.users_per_arm.max(SMALL[0]);
        let [a, b, c, d] = SMALL.map(|size| (WEIGHT_SMALL, size.min(planned)));
        [(1.0 - 4.0 * WEIGHT_SMALL, planned), a, b, c, d]
    }

    /// Logarithms of the weights, and strengths of the priors in users of one arm.
    ///
    /// The strength is the size over the information that is best there (Waudby-Smith et al., equation of the tuned rho).
    pub(super) fn priors(&self, alpha: f64) -> [Prior; SCALES] {
        let double = -2.0 * alpha.ln();
        let best = double + (1.0 + double).ln();
        self.scales().map(|(weight, size)| Prior {
            ln_weight: weight.ln(),
            strength: size / best,
        })
    }

    /// Standard errors from the estimate to either end of an interval, for `users` of each arm: infinite for none.
    pub(super) fn multiplier(&self, users: f64, alpha: f64) -> f64 {
        if users <= 0.0 {
            return f64::INFINITY;
        }
        let limit = -alpha.ln();
        let terms = self.priors(alpha).map(|prior| {
            let information = users / prior.strength;
            let constant = prior.ln_weight - 0.5 * information.ln_1p();
            (constant, 0.5 * information / (1.0 + information))
        });
        let evidence = |z: f64| ln_sum(terms.map(|(constant, factor)| constant + factor * z * z));
        let (mut low, mut high) = (0.0, 1.0);
        while evidence(high) < limit {
            high *= 2.0;
        }
        for _ in 0..BISECTIONS {
            let middle = (low + high) / 2.0;
            match evidence(middle) < limit {
                true => low = middle,
                false => high = middle,
            }
        }
        high
    }
}

/// A normal or beta prior of effects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    pub(super) ln_weight: f64,
    /// Number of users of an arm without an effect that the prior is worth.
    pub(super) strength: f64,
}

/// The logarithm of a sum of exponentials.
pub(super) fn ln_sum<const N: usize>(terms: [f64; N]) -> f64 {
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = terms.iter().map(|term| (term - largest).exp()).sum();
    largest + sum.ln()
}

/// Scales of a mixture.
pub(super) const SCALES: usize = 5;
/// Sizes of small experiments, users per arm, and the weight of each.
const SMALL: [f64; 4] = [1e3, 4e3, 1.6e4, 6.4e4];
const WEIGHT_SMALL: f64 = 0.05;
const BISECTIONS: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    /// One scale has a closed form, which bounds a mixture from below.
    #[test]
    fn mixtures_are_near_the_best_single_scale() {
        let single = |alpha: f64| {
            let double: f64 = -2.0 * f64::ln(alpha);
            let v = double + (1.0 + double).ln();
            (2.0 * (1.0 + v) / v * ((1.0 + v).sqrt() / alpha).ln()).sqrt()
        };
        for alpha in [0.05, 0.01, 0.001] {
            let best = single(alpha);
            let planned = Tuning::default().multiplier(400_000.0, alpha);
            assert!(planned > best && planned < 1.03 * best, "{planned} {best}");
            for users in [1e3, 4e3, 1.6e4, 6.4e4] {
                let small = Tuning::default().multiplier(users, alpha);
                assert!(small > best && small < 1.3 * best, "{users}: {small}");
            }
        }
    }

    #[test]
    fn few_users_and_strict_levels_widen() {
        let tuning = Tuning::default();
        assert!(tuning.multiplier(0.0, 0.05).is_infinite());
        assert!(tuning.multiplier(1.0, 0.05) > 20.0);
        assert!(tuning.multiplier(1e5, 0.01) > tuning.multiplier(1e5, 0.05));
        assert!(tuning.multiplier(1e12, 0.05) < 10.0);
    }

    /// Sums of normal steps cross the boundary at any of 400 looks in at most 5 of 100 walks.
    #[test]
    fn walks_seldom_cross() {
        let mut random = fastrand::Rng::with_seed(3);
        let tuning = Tuning::default();
        let sizes: Vec<f64> = (0..400).map(|n| 100.0 * 1.025_f64.powi(n)).collect();
        let bounds: Vec<f64> = sizes.iter().map(|n| tuning.multiplier(*n, 0.05)).collect();
        let mut crossed = 0;
        for _ in 0..2000 {
            let (mut sum, mut before, mut is_crossed) = (0.0, 0.0, false);
            for (size, bound) in sizes.iter().zip(&bounds) {
                // Twelve uniform numbers are nearly normal.
                let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                sum += normal * (size - before).sqrt();
                before = *size;
                is_crossed |= sum.abs() / size.sqrt() > *bound;
            }
            crossed += u32::from(is_crossed);
        }
        assert!((20..=100).contains(&crossed), "{crossed} of 2000");
    }
}
