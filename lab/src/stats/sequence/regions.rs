//! Ranks of two arms that may be those of one quantile, and ratios between them.
//!
//! Of the values of an arm, the number below its quantile p is a sum of independent choices with chance p, for any distribution of
//! values. A beta mixture of likelihood ratios of this number is a martingale, and so is the product for two arms. Pairs of
//! ranks with a product below 1/alpha hold the true pair at every look together with chance 1 - alpha. One joint region is about
//! a quarter narrower than two intervals at alpha/2.
//!
//! Source: S. R. Howard, A. Ramdas, "Sequential estimation of quantiles with applications to A/B testing and best-arm
//! identification", Bernoulli 28 (2022), sections 3 and 5.

use super::boundary::{Prior, SCALES, Tuning, ln_sum};
use super::{Difference, Interval};
use crate::stats::student::ln_gamma;

/// A quantile of the values of one arm.
#[derive(Debug)]
pub(super) struct Counts {
    n: u64,
    p: f64,
    priors: [Prior; SCALES],
    /// Parts of the evidence that do not depend on the count.
    constants: [f64; SCALES],
}

impl Counts {
    pub(super) fn new(n: u64, p: f64, alpha: f64, tuning: &Tuning) -> Self {
        let priors = tuning.priors(alpha);
        let constants = priors.map(|prior| {
            let strength = prior.strength;
            let beta = |shift: f64| ln_gamma(strength + shift);
            beta(n as f64) - beta(0.0) + ln_gamma(p * strength) + ln_gamma((1.0 - p) * strength)
        });
        Self {
            n,
            p,
            priors,
            constants: constants.map(|constant| -constant),
        }
    }

    /// Logarithms of the likelihood ratios of a count, by scale.
    pub(super) fn evidence(&self, count: u64) -> [f64; SCALES] {
        let (below, above) = (count as f64, (self.n - count) as f64);
        let null = below * self.p.ln() + above * (1.0 - self.p).ln();
        std::array::from_fn(|scale| {
            let strength = self.priors[scale].strength;
            let alternative =
                ln_gamma(self.p * strength + below) + ln_gamma((1.0 - self.p) * strength + above);
            self.constants[scale] + alternative - null
        })
    }

    /// The most likely count; evidence grows on both sides of it.
    pub(super) fn middle(&self) -> u64 {
        (self.p * self.n as f64).round() as u64
    }

    /// Logarithm of the mixture with weights, for logarithms by scale.
    pub(super) fn mixed(&self, terms: [f64; SCALES]) -> f64 {
        ln_sum::<SCALES>(std::array::from_fn(|scale| {
            self.priors[scale].ln_weight + terms[scale]
        }))
    }

    /// The smallest count up to the middle, and the largest from there on, that a property has; it holds from one to the other.
    pub(super) fn ends(&self, has: impl Fn(u64) -> bool) -> (u64, u64) {
        let middle = self.middle();
        let (mut outside, mut low) = (0, middle);
        while outside < low {
            let count = outside + (low - outside) / 2;
            match has(count) {
                true => low = count,
                false => outside = count + 1,
            }
        }
        let (mut high, mut outside) = (middle, self.n);
        while high < outside {
            let count = high + (outside - high).div_ceil(2);
            match has(count) {
                true => high = count,
                false => outside = count - 1,
            }
        }
        (low, high)
    }
}

/// Pairs of ranks of two arms between which the ratio of their quantiles is extreme. They depend on numbers of users alone.
#[derive(Clone, Debug)]
pub struct RankRegion {
    n: [u64; 2],
    p: f64,
    /// Rank of A below its quantile (0: none) and of B above its quantile (beyond all: none).
    highest: Vec<(u64, u64)>,
    /// Rank of A above its quantile and of B below its quantile.
    lowest: Vec<(u64, u64)>,
}

impl RankRegion {
    /// The region for the quantile `p`, between 0 and 1, of `a` and `b` users.
    #[must_use]
    pub fn new(a: u64, b: u64, p: f64, alpha: f64, tuning: &Tuning) -> Self {
        let (first, second) = (
            Counts::new(a, p, alpha, tuning),
            Counts::new(b, p, alpha, tuning),
        );
        let limit = -alpha.ln();
        let joint = |own: [f64; SCALES], count: u64| {
            let other = second.evidence(count);
            first.mixed(std::array::from_fn(|scale| own[scale] + other[scale])) < limit
        };
        let middle = first.middle();
        let (low, high) = first.ends(|count| joint(first.evidence(count), second.middle()));
        // The region is convex. So the range of B at the inner end of a block of A holds those of the whole block.
        let range = |count: u64| {
            let own = first.evidence(count);
            second.ends(|other| joint(own, other))
        };
        let step = |from: u64, to: u64| ((to - from) / BLOCKS + 1) as usize;
        let below = (low..=middle).step_by(step(low, middle));
        let inner = |count: u64| (count + step(low, middle) as u64 - 1).min(middle);
        let highest = below.map(|count| (count, range(inner(count)).1 + 1));
        let back = step(middle, high);
        let above = (middle..=high).rev().step_by(back);
        let outer = |count: u64| count.saturating_sub(back as u64 - 1).max(middle);
        let lowest = above.map(|count| (count + 1, range(outer(count)).0));
        Self {
            n: [a, b],
            p,
            highest: highest.collect(),
            lowest: lowest.collect(),
        }
    }

    /// The relative difference of the quantiles. `a` and `b` return the value of a rank, from 1 to the number of users, in
    /// ascending order; values are 0 or more. `None`: an arm is empty, or the quantile of A is 0.
    #[must_use]
    pub fn difference(&self, a: impl Fn(u64) -> f64, b: impl Fn(u64) -> f64) -> Option<Difference> {
        let rank = |n: u64| ((self.p * n as f64).ceil() as u64).clamp(1, n.max(1));
        if self.n.contains(&0) {
            return None;
        }
        let (of_a, of_b) = (a(rank(self.n[0])), b(rank(self.n[1])));
        if of_a <= 0.0 {
            return None;
        }
        let at = |value: &dyn Fn(u64) -> f64, rank: u64, n: u64| match rank {
            0 => 0.0,
            rank if rank > n => f64::INFINITY,
            rank => value(rank),
        };
        let ratio = |above: f64, below: f64| match below <= 0.0 || above.is_infinite() {
            true => f64::INFINITY,
            false => above / below,
        };
        let pair = |ranks: &(u64, u64)| (at(&a, ranks.0, self.n[0]), at(&b, ranks.1, self.n[1]));
        let highest = self.highest.iter().map(pair);
        let high = highest.map(|(a, b)| ratio(b, a)).fold(0.0, f64::max);
        let lowest = self.lowest.iter().map(pair);
        let low = lowest.map(|(a, b)| b / a).fold(f64::INFINITY, f64::min);
        Some(Difference {
            estimate: of_b / of_a - 1.0,
            interval: Interval {
                low: low - 1.0,
                high: high - 1.0,
            },
        })
    }
}

/// Blocks of ranks on either side; they widen an interval by 2 % at most.
const BLOCKS: u64 = 64;
