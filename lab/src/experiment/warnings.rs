//! Warnings of a report. They advise care, but never prevent a verdict.

use super::report::{Arm, Report, ShareTest, State};
use super::words::{count, label, percent, quantity};
use crate::time::readable;

/// Returns the warnings of a report.
pub(super) fn warnings(report: &Report) -> Vec<String> {
    let mut found = Vec::new();
    if let (State::Silent, Some(last)) = (report.state, report.last_s) {
        found.push(format!(
            "No visit since {} UTC: the kill switch is on, or the experiment is no longer configured.",
            readable(last - last % 60)
        ));
    }
    let users = report.users();
    if report.uncounted.mixed as f64 > users as f64 * MIXED_SHARE {
        found.push(format!(
            "{} had visits in several arms and do not count. Users that change their arm point to servers with different keys, or \
             to a user key that several people share.",
            quantity(report.uncounted.mixed, "user")
        ));
    }
    let measured: u64 = report
        .primary()
        .map_or(0, |metric| metric.measured().iter().sum());
    if report.uncounted.unmeasured > measured / 10 {
        found.push(format!(
            "{} finished without a value of the primary metric.",
            quantity(report.uncounted.unmeasured, "user")
        ));
    }
    // The verdict tests the primary metric.
    for metric in report.metrics.iter().skip(1) {
        if ShareTest::of(&metric.measured(), &report.arms).is_mismatch {
            found.push(format!(
                "The shares of users with a value of {} contradict the weights: an arm loses slow or fast users.",
                label(metric.metric)
            ));
        }
    }
    let Some((control, others)) = report.arms.split_first() else {
        return found;
    };
    for arm in others.iter().take(ARMS_MAX) {
        found.extend(shares(control, arm));
    }
    found
}

/// Returns warnings about two arms with different shares of failures.
fn shares(control: &Arm, arm: &Arm) -> Vec<String> {
    let views = |arm: &Arm| (arm.failed_views, arm.views);
    let failed = |arm: &Arm| (arm.files_failed, arm.files);
    let truncated = |arm: &Arm| (arm.files_truncated, arm.files);
    let all = [
        ("page loads failed", views(control), views(arm)),
        ("static files failed", failed(control), failed(arm)),
        (
            "static files were truncated",
            truncated(control),
            truncated(arm),
        ),
    ];
    let mut found = Vec::new();
    for (name, a, b) in all {
        if !apart(a, b) {
            continue;
        }
        let share = |(part, whole): (u64, u64)| percent(part as f64 * 100.0 / whole.max(1) as f64);
        found.push(format!(
            "{}: {} of {name} ({}), and {} in {}. Failed loads have no times, so compare times with care.",
            arm.arm,
            share(b),
            count(b.0),
            share(a),
            control.arm
        ));
    }
    found
}

/// Whether two shares differ by far more than chance allows, and enough to matter. Views of one user depend on each other, so the
/// limit is high.
fn apart(a: (u64, u64), b: (u64, u64)) -> bool {
    if a.1 == 0 || b.1 == 0 {
        return false;
    }
    let (na, nb) = (a.1 as f64, b.1 as f64);
    let (pa, pb) = (a.0 as f64 / na, b.0 as f64 / nb);
    let pooled = (a.0 + b.0) as f64 / (na + nb);
    let error = (pooled * (1.0 - pooled) * (1.0 / na + 1.0 / nb)).sqrt();
    (pb - pa).abs() > DIFFERENCE_LEAST && (pb - pa).abs() > ERRORS * error
}

/// Share of mixed users with a warning.
const MIXED_SHARE: f64 = 0.01;
/// Difference of shares, and standard errors, from which on there is a warning.
const DIFFERENCE_LEAST: f64 = 0.001;
const ERRORS: f64 = 5.0;
/// Arms with warnings.
const ARMS_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_differ_if_chance_cannot_explain_it() {
        for (a, b, is_apart) in [
            ((0, 0), (5, 10), false),
            ((10, 10_000), (12, 10_000), false),
            ((10, 10_000), (200, 10_000), true),
            ((200, 10_000), (10, 10_000), true),
            ((0, 1_000_000), (900, 1_000_000), false),
            ((0, 1_000_000), (1100, 1_000_000), true),
            ((5, 5), (5, 5), false),
        ] {
            assert_eq!(apart(a, b), is_apart, "{a:?} {b:?}");
        }
    }
}
