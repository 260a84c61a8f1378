//! Statistics of experiments with users: intervals that hold at every look.
//!
//! A fixed-horizon interval holds its level for one look at a size chosen in advance. A confidence sequence holds it for all
//! looks together, so an experiment may be judged daily and stopped at any time. Input: one value per user and metric, or
//! counts of users. Output: relative differences between two arms. Absent: reading of users, and verdicts.
//!
//! Sources: docs/statistics.md names a paper per method.

mod boundary;
mod correction;
mod cuped;
mod mean;
mod normal;
mod power;
mod quantile;
mod regions;
mod sample_ratio;

pub use boundary::Tuning;
pub use correction::levels;
pub use cuped::{Covaried, Cuped};
pub use mean::{MIN_USERS, Summary, mean_ratio, mean_ratio_once, mean_sequence};
pub use power::{Method, Question, USERS_MAX, days, users_per_arm};
pub use quantile::{Ranks, quantile_ranks, quantile_ratio, quantile_ratio_once};
pub use regions::RankRegion;
pub use sample_ratio::{SampleRatio, sample_ratio};

/// An interval; infinite ends have no support in the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value is inside, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Values in both intervals. Intervals of all looks of a sequence may be intersected: their level stays. Data that break the
    /// assumptions can make it empty (`low` above `high`).
    #[must_use]
    pub const fn intersection(&self, other: &Self) -> Self {
        Self {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }
}

/// A relative difference of arm B to arm A: 0.05 means that B is 5 % above A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// B / A - 1.
    pub estimate: f64,
    /// Its interval, from -1 to infinity.
    pub interval: Interval,
}

impl Difference {
    /// Whether the interval leaves out 0.
    #[must_use]
    pub fn is_found(&self) -> bool {
        !self.interval.contains(0.0)
    }
}

#[cfg(test)]
mod tests;
