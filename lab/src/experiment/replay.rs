//! Values of users in the order of time, and the state of each arm at a look.
//!
//! A look adds the users since the look before: sums for means, a merged sorted list for quantiles. So all looks together cost
//! one sort and a merge for each look.

use crate::stats::sequence::Covaried;

/// A user with a finished window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct User {
    /// End of the window, Unix seconds.
    pub(super) finished_s: u64,
    /// Value in the unit of reports.
    pub(super) value: f64,
    /// Value before the experiment; NaN: none.
    pub(super) before: f64,
}

impl User {
    /// Value before the experiment.
    pub(super) fn before(&self) -> Option<f64> {
        (!self.before.is_nan()).then_some(self.before)
    }
}

/// Users of all arms, each arm in the order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub(super) arms: Vec<Vec<User>>,
}

/// State of an arm at a look.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmState {
    /// Sums for means.
    pub(super) covaried: Covaried,
    /// Values in ascending order.
    pub(super) sorted: Vec<f64>,
}

/// State of all arms at a look.
#[derive(Clone, Debug)]
pub(super) struct Replay<'a> {
    samples: &'a Samples,
    pub(super) arms: Vec<ArmState>,
}

impl Samples {
    /// Number of users.
    pub(super) fn len(&self) -> usize {
        self.arms.iter().map(Vec::len).sum()
    }

    /// Returns the times of the first and of the last user.
    pub(super) fn extent(&self) -> Option<(u64, u64)> {
        let ends = self
            .arms
            .iter()
            .filter_map(|arm| Some((arm.first()?.finished_s, arm.last()?.finished_s)));
        ends.reduce(|(low, high), (first, last)| (low.min(first), high.max(last)))
    }

    /// Number of users who finished after a time.
    pub(super) fn since(&self, from_s: u64) -> usize {
        let later =
            |arm: &Vec<User>| arm.len() - arm.partition_point(|user| user.finished_s <= from_s);
        self.arms.iter().map(later).sum()
    }
}

impl<'a> Replay<'a> {
    /// Returns the state before the first look.
    pub(super) fn new(samples: &'a Samples) -> Self {
        Self {
            samples,
            arms: vec![ArmState::default(); samples.arms.len()],
        }
    }

    /// Adds the users who finished up to a time.
    pub(super) fn advance(&mut self, until_s: u64) {
        for (state, users) in self.arms.iter_mut().zip(&self.samples.arms) {
            let seen = state.sorted.len();
            let count = users[seen..].partition_point(|user| user.finished_s <= until_s);
            let new = &users[seen..seen + count];
            for user in new {
                state.covaried.push(user.value, user.before());
            }
            let mut values: Vec<f64> = new.iter().map(|user| user.value).collect();
            values.sort_unstable_by(f64::total_cmp);
            merge(&mut state.sorted, &values);
        }
    }
}

/// Merges sorted values into a sorted list, from its end, without another list.
fn merge(sorted: &mut Vec<f64>, values: &[f64]) {
    let mut left = sorted.len();
    let mut right = values.len();
    sorted.resize(left + right, 0.0);
    while right > 0 {
        let at = left + right - 1;
        if left > 0 && sorted[left - 1] > values[right - 1] {
            sorted[at] = sorted[left - 1];
            left -= 1;
        } else {
            sorted[at] = values[right - 1];
            right -= 1;
        }
    }
}

/// Returns the value at a share of sorted values: the least value that at least this share does not exceed.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).wrapping_sub(1)).copied()
}

/// Returns the times of looks, at most [`LOOKS_MAX`]: round times within the extent, and the end.
pub(super) fn look_times(from_s: u64, to_s: u64) -> Vec<u64> {
    let length = to_s.saturating_sub(from_s);
    let rough = length.div_ceil(LOOKS_MAX as u64 - 1).max(1);
    let step = STEPS_S.into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or_else(|| rough.div_ceil(DAY_S) * DAY_S);
    let first = (from_s + 1).next_multiple_of(step);
    let mut all: Vec<u64> = (first..to_s).step_by(step as usize).collect();
    all.push(to_s);
    all
}

/// Looks of a replay.
pub(super) const LOOKS_MAX: usize = 50;
const DAY_S: u64 = 86_400;
/// Round times between two looks, seconds.
const STEPS_S: [u64; 12] = [
    1,
    10,
    60,
    300,
    600,
    1800,
    3600,
    2 * 3600,
    3 * 3600,
    6 * 3600,
    12 * 3600,
    DAY_S,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_few_and_end_at_the_end() {
        for from in [0, 1, 1_767_225_600, 1_767_225_601] {
            for length in [
                0,
                1,
                49,
                50,
                51,
                3600,
                86_400,
                7 * 86_400,
                49 * 86_400,
                400 * 86_400,
            ] {
                let all = look_times(from, from + length);
                assert!(
                    (1..=LOOKS_MAX).contains(&all.len()),
                    "{from} {length}: {}",
                    all.len()
                );
                assert_eq!(all.last(), Some(&(from + length)));
                assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
                assert!(length == 0 || all[0] > from);
            }
        }
    }

    #[test]
    fn states_are_those_of_the_users_so_far() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut samples = Samples {
            arms: vec![Vec::new(); 2],
        };
        for n in 0..1000 {
            let user = User {
                finished_s: n / 3,
                value: (random.f64() * 50.0).round(),
                before: f64::NAN,
            };
            samples.arms[usize::from(random.bool())].push(user);
        }
        let mut replay = Replay::new(&samples);
        for until in look_times(0, 333) {
            replay.advance(until);
            for (state, users) in replay.arms.iter().zip(&samples.arms) {
                let seen = users.iter().filter(|user| user.finished_s <= until);
                let mut wanted: Vec<f64> = seen.map(|user| user.value).collect();
                wanted.sort_unstable_by(f64::total_cmp);
                assert_eq!(state.sorted, wanted);
                assert_eq!(state.covaried.n(), wanted.len() as u64);
            }
        }
        assert_eq!(samples.len(), 1000);
        assert_eq!(samples.extent(), Some((0, 333)));
        assert_eq!(
            [samples.since(0), samples.since(332), samples.since(333)],
            [997, 1, 0]
        );
    }

    #[test]
    fn quantiles_are_values() {
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        let found = [0.0, 0.05, 0.5, 0.8, 0.95, 1.0].map(|share| quantile(&sorted, share));
        assert_eq!(found, [1.0, 1.0, 5.0, 8.0, 10.0, 10.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
