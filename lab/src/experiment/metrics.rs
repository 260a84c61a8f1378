//! Figures of a metric: values of each arm, and its changes against the first arm with their course.

use store::VisitMetric;

use super::replay::{ArmState, LOOKS_MAX, Replay, Samples, look_times, quantile};
use super::report::{Change, Comparison, Cuped, Look, Metric, Values};
use super::statistic::Statistic;
use super::words::unit;
use crate::stats::sequence::{self, Covaried, Difference, Interval, Summary, Tuning};

/// Place of a metric in a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The metric.
    pub(super) metric: VisitMetric,
    /// Names of the arms, that of the first one first.
    pub(super) arms: &'a [String],
    pub(super) is_primary: bool,
    /// Error probability of each interval.
    pub(super) alpha: f64,
}

/// Returns the figures of a metric.
pub(super) fn metric(samples: &Samples, place: &Place<'_>) -> Metric {
    let (first, last) = samples.extent().unwrap_or_default();
    let times = look_times(first.saturating_sub(1), last);
    debug_assert!(times.len() <= LOOKS_MAX);
    let mut replay = Replay::new(samples);
    let mut comparisons = comparisons(place);
    for (n, at_s) in times.iter().enumerate() {
        replay.advance(*at_s);
        let means = means(&replay.arms);
        let due = comparisons.iter_mut();
        for one in due.filter(|one| is_due(one.arm, n, times.len())) {
            one.look(*at_s, &replay.arms, &means, place.alpha);
        }
    }
    let (means, cuped) = (means(&replay.arms), adjustment(samples, &replay.arms));
    Metric {
        metric: place.metric,
        unit: unit(place.metric),
        is_primary: place.is_primary,
        cuped,
        values: values(place, &replay.arms, &means),
        comparisons: comparisons
            .into_iter()
            .map(|one| one.finished(place))
            .collect(),
    }
}

/// Whether an arm is compared at the look `n` of `looks`. Arms without a course have few looks, since regions of quantiles are most of
/// the work for a thousand arms. Their level stays: intervals hold at any looks.
fn is_due(arm: usize, n: usize, looks: usize) -> bool {
    arm <= COURSES_MAX || n + 1 == looks || n % LOOKS_APART == LOOKS_APART - 1
}

/// Returns mean and spread of each arm, adjusted if enough users have a value before.
fn means(arms: &[ArmState]) -> Vec<Summary> {
    let all: Vec<Covaried> = arms.iter().map(|arm| arm.covaried).collect();
    let cuped = sequence::Cuped::of(&all);
    all.iter().map(|arm| cuped.summary(arm)).collect()
}

/// Returns the adjustment that [`means`] has made.
fn adjustment(samples: &Samples, arms: &[ArmState]) -> Option<Cuped> {
    let all: Vec<Covaried> = arms.iter().map(|arm| arm.covaried).collect();
    let cuped = sequence::Cuped::of(&all);
    let users = samples.arms.iter().flatten();
    let known = users.filter(|user| user.before().is_some()).count();
    (cuped.reduction > 0.0).then(|| Cuped {
        theta: cuped.theta,
        reduction: cuped.reduction,
        share: known as f64 / samples.len().max(1) as f64,
    })
}

fn values(place: &Place<'_>, arms: &[ArmState], means: &[Summary]) -> Vec<Values> {
    let one = |((name, arm), mean): ((&String, &ArmState), &Summary)| Values {
        arm: name.clone(),
        users: mean.n(),
        mean: (mean.n() > 0).then(|| mean.mean()),
        deviation: (mean.n() > 1).then(|| mean.variance().sqrt()),
        p50: quantile(&arm.sorted, 0.5),
        p80: quantile(&arm.sorted, 0.8),
        p95: quantile(&arm.sorted, 0.95),
    };
    place.arms.iter().zip(arms).zip(means).map(one).collect()
}

/// A comparison in progress.
struct Compared {
    arm: usize,
    statistic: Statistic,
    /// Intersection of the intervals so far, as fractions.
    interval: Interval,
    /// Change at the last look.
    last: Option<Change>,
    course: Vec<Look>,
}

fn comparisons(place: &Place<'_>) -> Vec<Compared> {
    let all =
        (1..place.arms.len()).flat_map(|arm| Statistic::ALL.map(|statistic| (arm, statistic)));
    let one = |(arm, statistic)| Compared {
        arm,
        statistic,
        interval: Interval {
            low: -1.0,
            high: f64::INFINITY,
        },
        last: None,
        course: Vec::new(),
    };
    all.map(one).collect()
}

impl Compared {
    /// Compares both arms at a look.
    fn look(&mut self, at_s: u64, arms: &[ArmState], means: &[Summary], alpha: f64) {
        let tuning = Tuning::default();
        let (control, own) = (&arms[0], &arms[self.arm]);
        let found = match self.statistic.quantile() {
            None => sequence::mean_ratio(&means[0], &means[self.arm], alpha, &tuning),
            Some(p) => sequence::quantile_ratio(&control.sorted, &own.sorted, p, alpha, &tuning),
        };
        self.last = found.map(|found| self.narrowed(&found));
        if self.arm <= COURSES_MAX {
            let users = [control, own].map(|arm| arm.sorted.len() as u64);
            let change = self.last;
            self.course.push(Look {
                at_s,
                users,
                change,
            });
        }
    }

    /// Returns a change with the part of its interval that all looks so far share. All intervals hold at once, so their common part
    /// holds at the same level.
    fn narrowed(&mut self, found: &Difference) -> Change {
        let common = self.interval.intersection(&found.interval);
        // An effect that fades leaves a sliver of the common part, with the estimate outside. The newest interval is valid alone.
        self.interval = match common.contains(found.estimate) {
            true => common,
            false => found.interval,
        };
        let percent = |value: f64| value * 100.0;
        Change {
            estimate: percent(found.estimate),
            low: percent(self.interval.low),
            high: percent(self.interval.high),
        }
    }

    fn finished(self, place: &Place<'_>) -> Comparison {
        Comparison {
            arm: place.arms[self.arm].clone(),
            statistic: self.statistic,
            level: 1.0 - place.alpha,
            change: self.last,
            differs: self.last.is_some_and(|change| change.differs()),
            course: self.course,
        }
    }
}

/// Arms with a course, without the first.
pub(super) const COURSES_MAX: usize = 10;
/// Looks from one comparison to the next, for arms without a course.
const LOOKS_APART: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::replay::User;

    fn samples(count: u64, effect: f64, before: bool) -> Samples {
        let mut random = fastrand::Rng::with_seed(count);
        let mut samples = Samples {
            arms: vec![Vec::new(); 2],
        };
        for n in 0..count {
            let arm = usize::from(random.bool());
            let habit = 500.0 + 500.0 * random.f64();
            let factor = if arm == 1 { 1.0 + effect } else { 1.0 };
            let value = (habit + 100.0 * random.f64()) * factor;
            let before = if before {
                habit + 100.0 * random.f64()
            } else {
                f64::NAN
            };
            samples.arms[arm].push(User {
                finished_s: 1_000_000 + n * 10,
                value,
                before,
            });
        }
        samples
    }

    fn found(samples: &Samples) -> Metric {
        let arms = ["a".to_owned(), "b".to_owned()];
        let place = Place {
            metric: VisitMetric::Load,
            arms: &arms,
            is_primary: true,
            alpha: 0.01,
        };
        metric(samples, &place)
    }

    #[test]
    fn a_difference_is_found_and_stays_found() {
        let metric = found(&samples(20_000, 0.05, false));
        assert_eq!(metric.cuped, None);
        for statistic in Statistic::ALL {
            let one = metric.comparison("b", statistic).expect("it is there");
            let change = one.change.expect("users are many");
            assert!(
                one.differs && change.low <= 5.0 && change.high >= 5.0,
                "{one:?}"
            );
            assert_eq!(one.course.last().expect("a look").change, one.change);
            let mut is_narrowed = false;
            for pair in one.course.windows(2) {
                let [before, after] = [pair[0].change, pair[1].change];
                let Some((before, after)) = before.zip(after) else {
                    continue;
                };
                let is_inside = before.low <= after.estimate && after.estimate <= before.high;
                is_narrowed |= is_inside;
                assert!(
                    !is_inside || (after.low >= before.low && after.high <= before.high),
                    "{before:?} {after:?}"
                );
                assert!(
                    !is_inside || !before.differs() || after.differs(),
                    "{before:?} {after:?}"
                );
            }
            assert!(is_narrowed, "{one:?}");
        }
        let users: u64 = metric.values.iter().map(|values| values.users).sum();
        assert_eq!(users, 20_000);
    }

    /// The effect of the first users is 40 %, and the later ones have none.
    #[test]
    fn a_fading_effect_has_its_newest_interval() {
        let mut fading = samples(2_000, 0.4, false);
        let later = samples(20_000, 0.0, false);
        for (arm, more) in fading.arms.iter_mut().zip(later.arms) {
            arm.extend(more.into_iter().map(|user| User {
                finished_s: user.finished_s + 20_000,
                ..user
            }));
        }
        let metric = found(&fading);
        let [control, own] = &metric.values[..] else {
            panic!("two arms");
        };
        for statistic in Statistic::ALL {
            let one = metric.comparison("b", statistic).expect("it is there");
            let change = one.change.expect("users are many");
            let [a, b] = [control, own].map(|arm| arm.of(statistic).expect("users are many"));
            let wanted = (b / a - 1.0) * 100.0;
            assert!((change.estimate - wanted).abs() < 1e-9, "{one:?} {wanted}");
            for look in one.course.iter().filter_map(|look| look.change) {
                assert!(
                    look.low <= look.estimate && look.estimate <= look.high,
                    "{statistic:?}: {look:?}"
                );
            }
            let first = one
                .course
                .iter()
                .find(|look| look.change.is_some_and(|one| one.differs()));
            let first = first
                .and_then(|look| look.change)
                .expect("it differs at first");
            assert!(first.low > change.high, "{first:?} {change:?}");
        }
    }

    #[test]
    fn values_before_narrow_the_intervals_of_means() {
        let width = |before: bool| {
            let metric = found(&samples(5_000, 0.0, before));
            assert_eq!(metric.cuped.is_some(), before);
            let change = metric
                .comparison("b", Statistic::Mean)
                .and_then(|one| one.change);
            change.map_or(f64::INFINITY, |change| change.high - change.low)
        };
        let (without, with) = (width(false), width(true));
        assert!(with < 0.6 * without, "{with} {without}");
    }

    /// A thousand arms have the work of 110 arms at all looks.
    #[test]
    fn arms_without_a_course_have_few_looks() {
        let due = |arm: usize, looks: usize| (0..looks).filter(|n| is_due(arm, *n, looks)).count();
        for (arm, looks, wanted) in [
            (COURSES_MAX, LOOKS_MAX, LOOKS_MAX),
            (COURSES_MAX + 1, LOOKS_MAX, 5),
            (COURSES_MAX + 1, LOOKS_MAX - 1, 5),
            (COURSES_MAX + 1, LOOKS_MAX - 9, 5),
            (COURSES_MAX + 1, LOOKS_MAX - 10, 4),
            (999, 1, 1),
        ] {
            assert_eq!(due(arm, looks), wanted, "{arm} {looks}");
        }
        let all: usize = (1..1000).map(|arm| due(arm, LOOKS_MAX)).sum();
        assert!(all < 110 * LOOKS_MAX, "{all}");
    }

    #[test]
    fn the_last_of_many_arms_is_compared() {
        let pair = samples(2_000, 0.4, false);
        let [control, own] = &pair.arms[..] else {
            panic!("two arms");
        };
        let mut arms = vec![Vec::new(); COURSES_MAX + 2];
        arms[0].clone_from(control);
        arms[COURSES_MAX + 1].clone_from(own);
        let names: Vec<String> = (0..arms.len()).map(|arm| arm.to_string()).collect();
        let place = Place {
            metric: VisitMetric::Load,
            arms: &names,
            is_primary: true,
            alpha: 0.01,
        };
        let many = metric(&Samples { arms }, &place);
        let two = found(&pair);
        for statistic in Statistic::ALL {
            let of = |metric: &Metric, arm: &str| metric.comparison(arm, statistic).cloned();
            let last = of(&many, &names[COURSES_MAX + 1]).expect("it is there");
            let wanted = of(&two, "b")
                .expect("it is there")
                .change
                .expect("users are many");
            let change = last.change.expect("users are many");
            assert!(last.differs && last.course.is_empty(), "{last:?}");
            assert_eq!(change.estimate, wanted.estimate);
            assert!(
                change.high - change.low >= wanted.high - wanted.low,
                "{change:?} {wanted:?}"
            );
        }
    }

    #[test]
    fn few_users_have_no_interval() {
        for count in [0, 1, 3, 50] {
            let metric = found(&samples(count, 0.0, false));
            for one in &metric.comparisons {
                assert!(!one.differs, "{one:?}");
                assert!(
                    one.change
                        .is_none_or(|change| change.is_open() || one.statistic != Statistic::Mean),
                    "{one:?}"
                );
            }
        }
    }
}
