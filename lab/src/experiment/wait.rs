//! The time until a change of the primary mean is found with power 0.8.

use super::report::{Metric, Report, Wait};
use crate::stats::sequence::{Method, Question, Tuning, users_per_arm};

/// Returns the expected times of the first arms without a difference: for the change as it seems to be, and for a change of
/// `effect` percent.
pub(super) fn waits(report: &Report, effect: f64) -> Vec<Wait> {
    let Some(metric) = report.primary() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for mean in metric.means().filter(|one| !one.differs).take(ARMS_MAX) {
        let Some(change) = mean.change.filter(|change| !change.is_open()) else {
            continue;
        };
        // A tiny change would take for ever, and a large one is about to be found.
        let seems = Some(change.estimate)
            .filter(|seems| seems.abs() >= LEAST && seems.abs() < effect * 5.0);
        for size in [seems, Some(effect)].into_iter().flatten() {
            found.extend(wait(report, metric, &mean.arm, size, 1.0 - mean.level));
        }
    }
    found
}

fn wait(report: &Report, metric: &Metric, arm: &str, percent: f64, alpha: f64) -> Option<Wait> {
    let control = metric.values.first()?;
    let own = metric.values.iter().find(|values| values.arm == arm)?;
    let cv = |mean: Option<f64>, deviation: Option<f64>| Some(deviation? / mean?);
    let cv = cv(control.mean, control.deviation)?.max(cv(own.mean, own.deviation)?);
    let question = Question {
        effect: percent / 100.0,
        cv,
        // The deviation is that of adjusted values.
        correlation: 0.0,
        alpha,
        power: POWER,
    };
    let needed = users_per_arm(&question, &Method::Sequence(Tuning::default()));
    let needed = needed.map_or(f64::INFINITY, |users| users as f64);
    // Two arms of different sizes know as much as two arms of their harmonic mean.
    let harmonic = |a: f64, b: f64| 2.0 / (1.0 / a + 1.0 / b);
    let more = (needed - harmonic(control.users as f64, own.users as f64)).max(0.0);
    let all: f64 = metric.values.iter().map(|values| values.users as f64).sum();
    let rate = report.users_per_day.map(|rate| {
        let daily = |users: u64| rate * users as f64 / all;
        harmonic(daily(control.users), daily(own.users))
    });
    Some(Wait {
        arm: arm.to_owned(),
        effect_percent: percent.abs(),
        more_users_per_arm: more,
        more_days: rate.filter(|rate| *rate > 0.0).map(|rate| more / rate),
    })
}

/// Arms with waits.
const ARMS_MAX: usize = 3;
/// Least change with a wait, percent.
const LEAST: f64 = 0.1;
const POWER: f64 = 0.8;
