//! Verdicts of many situations, sentence by sentence.

mod no_verdict;

use store::VisitMetric;

use super::memory::START_S;
use crate::experiment::report::{
    Arm, Change, Comparison, FORMAT, MADE_BY, Metric, Outcome, Report, ShareTest, State, Uncounted,
    Values, Verdict, Wait,
};
use crate::experiment::statistic::Statistic;
use crate::experiment::verdict::verdict;
use crate::experiment::warnings::warnings;
use crate::time::DAY_S;

/// A report of two arms with 10,000 users each, without metrics.
fn report() -> Report {
    let arm = |name: &str| Arm {
        arm: name.to_owned(),
        weight: 50,
        users: 10_000,
        views: 20_000,
        files: 1_000_000,
        ..Arm::default()
    };
    Report {
        format: FORMAT,
        program: MADE_BY,
        experiment: "spdy".to_owned(),
        at_s: START_S + 10 * DAY_S,
        since_s: START_S,
        start_s: Some(START_S),
        end_s: None,
        last_s: Some(START_S + 10 * DAY_S - 60),
        window_s: DAY_S,
        pre_period_s: 0,
        share_percent: 100.0,
        state: State::Running,
        is_a_a: false,
        alpha: 0.05,
        arms: vec![arm("control"), arm("fast")],
        users_per_day: Some(2000.0),
        uncounted: Uncounted::default(),
        sample_ratio: ShareTest::default(),
        measured_ratio: ShareTest::default(),
        metrics: Vec::new(),
        steps: Vec::new(),
        verdict: Verdict::default(),
        warnings: Vec::new(),
    }
}

/// A metric with changes of arm `fast`: low end, estimate, high end of mean, median, p80, p95.
fn metric(metric: VisitMetric, changes: [[f64; 3]; 4]) -> Metric {
    let values = |name: &str, mean: f64| Values {
        arm: name.to_owned(),
        users: 10_000,
        mean: Some(mean),
        deviation: Some(mean),
        p50: Some(mean * 0.8),
        p80: Some(mean * 1.5),
        p95: Some(mean * 3.0),
    };
    let comparison = |(statistic, [low, estimate, high]): (Statistic, [f64; 3])| {
        let change = Change {
            estimate,
            low,
            high,
        };
        Comparison {
            arm: "fast".to_owned(),
            statistic,
            level: 0.9875,
            change: Some(change),
            differs: change.differs(),
            course: Vec::new(),
        }
    };
    Metric {
        metric,
        unit: "ms",
        is_primary: metric == VisitMetric::Load,
        cuped: None,
        values: vec![
            values("control", 1050.0),
            values("fast", 1050.0 * (1.0 + changes[0][1] / 100.0)),
        ],
        comparisons: Statistic::ALL
            .into_iter()
            .zip(changes)
            .map(comparison)
            .collect(),
    }
}

const FASTER: [f64; 3] = [-7.5, -4.8, -2.1];
const SLOWER: [f64; 3] = [0.4, 1.2, 2.0];
const EQUAL: [f64; 3] = [-1.2, 0.6, 2.3];
const OPEN: [f64; 3] = [-100.0, 3.0, f64::INFINITY];
const SURE: &str =
    "All intervals of this report hold together with a confidence of 95 %, however often you look.";

fn with(changes: [[f64; 3]; 4]) -> Report {
    Report {
        metrics: vec![metric(VisitMetric::Load, changes)],
        ..report()
    }
}

fn wait(effect_percent: f64, users: f64, more_days: Option<f64>) -> Wait {
    Wait {
        arm: "fast".to_owned(),
        effect_percent,
        more_users_per_arm: users,
        more_days,
    }
}

#[track_caller]
fn check(report: &Report, waits: Vec<Wait>, outcome: Outcome, sentences: &[&str]) {
    let found = verdict(report, waits);
    assert_eq!(found.sentences, sentences, "{:?}", found.outcome);
    assert_eq!(found.outcome, outcome);
    for sentence in &found.sentences {
        assert!(
            sentence.ends_with('.') && !sentence.contains("NaN") && !sentence.contains("inf"),
            "{sentence}"
        );
    }
}

#[test]
fn a_faster_arm() {
    check(
        &with([FASTER; 4]),
        Vec::new(),
        Outcome::Difference,
        &[
            "fast: page load is 4.8 % faster than in control on average (2.1 % to 7.5 %).",
            "The mean is 1,000 ms in fast and 1,050 ms in control.",
            "fast: the median is 4.8 % faster (2.1 % to 7.5 %), the 80th percentile is 4.8 % faster (2.1 % to 7.5 %) and the 95th percentile is 4.8 % faster (2.1 % to 7.5 %).",
            SURE,
            "This is sure enough to stop. More users only narrow the intervals.",
        ],
    );
}

#[test]
fn a_slower_arm_with_a_tail_that_shows_nothing() {
    check(
        &with([SLOWER, SLOWER, EQUAL, OPEN]),
        Vec::new(),
        Outcome::Difference,
        &[
            "fast: page load is 1.2 % slower than in control on average (0.40 % to 2.0 %).",
            "The mean is 1,063 ms in fast and 1,050 ms in control.",
            "fast: the median is 1.2 % slower (0.40 % to 2.0 %).",
            "fast: the 80th percentile shows no difference yet.",
            "fast: the 95th percentile has too few users.",
            SURE,
            "This is sure enough to stop. More users only narrow the intervals.",
        ],
    );
}

#[test]
fn an_arm_without_limits_of_its_mean() {
    let mut report = with([EQUAL, SLOWER, OPEN, OPEN]);
    report.arms.push(Arm {
        arm: "third".to_owned(),
        ..report.arms[1].clone()
    });
    let metric = &mut report.metrics[0];
    metric.values.push(Values {
        arm: "third".to_owned(),
        ..metric.values[1].clone()
    });
    let [low, estimate, high] = OPEN;
    metric.comparisons.push(Comparison {
        arm: "third".to_owned(),
        change: Some(Change {
            estimate,
            low,
            high,
        }),
        ..metric.comparisons[0].clone()
    });
    check(
        &report,
        Vec::new(),
        Outcome::Difference,
        &[
            "fast: no difference from control in the mean page load so far. The true change is within this range: 1.2 % faster to 2.3 % slower.",
            "fast: the median is 1.2 % slower (0.40 % to 2.0 %).",
            "fast: the 80th percentile and the 95th percentile have too few users.",
            "third: too few users to compare the mean page load with control.",
            SURE,
            "The differences named above are sure; the mean page load is not decided in fast and third.",
        ],
    );
}

#[test]
fn no_difference_yet_with_the_time_to_wait() {
    check(
        &with([EQUAL; 4]),
        vec![
            wait(0.6, 440_000.0, Some(440.0)),
            wait(1.0, 120_000.0, Some(119.2)),
        ],
        Outcome::NoDifference,
        &[
            "fast: no difference from control in the mean page load so far. The true change is within this range: 1.2 % faster to 2.3 % slower.",
            SURE,
            "To find a change of 0.60 %, wait about 440 days: each arm needs 440,000 more users.",
            "To find a change of 1.0 %, wait about 120 days: each arm needs 120,000 more users.",
        ],
    );
    check(
        &with([EQUAL; 4]),
        vec![
            wait(0.1, f64::INFINITY, None),
            wait(1.0, 1.0, None),
            wait(2.0, 0.0, Some(0.0)),
            wait(1.5, 5e6, Some(2500.0)),
        ],
        Outcome::NoDifference,
        &[
            "fast: no difference from control in the mean page load so far. The true change is within this range: 1.2 % faster to 2.3 % slower.",
            SURE,
            "A change of 0.10 % is too small to be found.",
            "To find a change of 1.0 %, each arm needs 1 more user.",
            "A change of 2.0 % would have been found by now with a probability of 80 %.",
            "To find a change of 1.5 %, wait more than two years: each arm needs 5,000,000 more users.",
        ],
    );
}

#[test]
fn a_median_that_differs_while_the_mean_does_not() {
    check(
        &with([EQUAL, FASTER, EQUAL, EQUAL]),
        vec![wait(1.0, 120_000.0, Some(30.0))],
        Outcome::Difference,
        &[
            "fast: no difference from control in the mean page load so far. The true change is within this range: 1.2 % faster to 2.3 % slower.",
            "fast: the median is 4.8 % faster (2.1 % to 7.5 %).",
            "fast: the 80th percentile and the 95th percentile show no difference yet.",
            SURE,
            "The differences named above are sure; the mean page load is not decided.",
            "To find a change of 1.0 %, wait about 30 days: each arm needs 120,000 more users.",
        ],
    );
}

#[test]
fn an_ended_experiment_is_final() {
    let mut report = with([EQUAL; 4]);
    report.state = State::Ended;
    check(
        &report,
        vec![wait(1.0, 120_000.0, Some(30.0))],
        Outcome::NoDifference,
        &[
            "fast: no difference from control in the mean page load so far. The true change is within this range: 1.2 % faster to 2.3 % slower.",
            SURE,
            "The experiment has ended, so this verdict is final.",
        ],
    );
}

#[test]
fn another_metric_that_differs() {
    let mut report = with([EQUAL; 4]);
    let shift = [EQUAL, EQUAL, [-20.0, -15.0, -10.0], EQUAL];
    report.metrics.push(metric(VisitMetric::LayoutShift, shift));
    let slower = [SLOWER, EQUAL, EQUAL, EQUAL];
    report.metrics.push(metric(VisitMetric::FirstByte, slower));
    check(
        &report,
        Vec::new(),
        Outcome::Difference,
        &[
            "fast: no difference from control in the mean page load so far. The true change is within this range: 1.2 % faster to 2.3 % slower.",
            "fast: layout shift, 80th percentile: 15.0 % lower (10.0 % to 20.0 %).",
            "fast: first byte, mean: 1.2 % slower (0.40 % to 2.0 %).",
            SURE,
            "The differences named above are sure; the mean page load is not decided.",
        ],
    );
}

#[test]
fn equal_arms() {
    let mut report = with([EQUAL; 4]);
    report.is_a_a = true;
    check(
        &report,
        vec![wait(1.0, 10.0, None)],
        Outcome::AaPassed,
        &[
            "A/A test passed: 20,000 users in arms of the same effect, and no figure differs.",
            "fast: the true change of the mean page load is within this range: 1.2 % faster to 2.3 % slower.",
            SURE,
        ],
    );
    let mean = Comparison {
        arm: "third".to_owned(),
        change: None,
        ..report.metrics[0].comparisons[0].clone()
    };
    report.metrics[0].comparisons.push(mean);
    let found = verdict(&report, Vec::new());
    assert_eq!(
        found.sentences[2],
        "third: too few users for limits of the mean page load."
    );
    let mut report = with([SLOWER, EQUAL, EQUAL, EQUAL]);
    report.is_a_a = true;
    check(
        &report,
        Vec::new(),
        Outcome::AaFailed,
        &[
            "A/A test failed: 20,000 users in arms of the same effect, and figures differ.",
            "The arms are not equal, or users are not assigned by chance. Find the cause before the next experiment.",
            "fast: page load is 1.2 % slower than in control on average (0.40 % to 2.0 %).",
            "The mean is 1,063 ms in fast and 1,050 ms in control.",
            SURE,
        ],
    );
}

#[test]
fn several_arms() {
    let mut report = with([EQUAL; 4]);
    let metric = &mut report.metrics[0];
    for n in 0..11 {
        let name = format!("arm{n}");
        report.arms.push(Arm {
            arm: name.clone(),
            ..report.arms[1].clone()
        });
        metric.values.push(Values {
            arm: name.clone(),
            ..metric.values[1].clone()
        });
        let mean = Comparison {
            arm: name,
            ..metric.comparisons[0].clone()
        };
        metric.comparisons.push(mean);
    }
    let found = verdict(&report, vec![wait(1.0, 120_000.0, Some(30.0))]);
    let arms = found
        .sentences
        .iter()
        .filter(|one| one.contains("no difference from control"));
    assert_eq!(arms.count(), 10, "{:?}", found.sentences);
    let end = &found.sentences[10..];
    let wanted = [
        "The table has 2 more arms.",
        SURE,
        "To find a change of 1.0 % in fast, wait about 30 days: each arm needs 120,000 more users.",
    ];
    assert_eq!(end, wanted);
    // One arm is decided, and 11 are open.
    let metric = &mut report.metrics[0];
    let of = |[low, estimate, high]: [f64; 3]| Change {
        estimate,
        low,
        high,
    };
    (metric.comparisons[0].change, metric.comparisons[0].differs) = (Some(of(FASTER)), true);
    let found = verdict(&report, Vec::new());
    assert_eq!(
        found.sentences.last().map(String::as_str),
        Some("The differences named above are sure; the mean page load is not decided in 11 arms.")
    );
    let metric = &mut report.metrics[0];
    for one in metric.comparisons.iter_mut().skip(4).take(9) {
        (one.change, one.differs) = (Some(of(FASTER)), true);
    }
    let found = verdict(&report, Vec::new());
    assert_eq!(
        found.sentences.last().map(String::as_str),
        Some(
            "The differences named above are sure; the mean page load is not decided in arm9 and arm10."
        )
    );
}

#[test]
fn reasons_for_care() {
    let mut care = with([FASTER; 4]);
    assert_eq!(warnings(&care), [""; 0]);
    care.state = State::Silent;
    care.uncounted.mixed = 300;
    care.uncounted.unmeasured = 5000;
    care.arms[0].failed_views = 20;
    care.arms[1].failed_views = 400;
    care.arms[1].files_truncated = 5000;
    let wanted = [
        "No visit since 2026-01-10 23:59 UTC: the kill switch is on, or the experiment is no longer configured.",
        "300 users had visits in several arms and do not count. Users that change their arm point to servers with different keys, or to a user key that several people share.",
        "5,000 users finished without a value of the primary metric.",
        "fast: 2.0 % of page loads failed (400), and 0.10 % in control. Failed loads have no times, so compare times with care.",
        "fast: 0.50 % of static files were truncated (5,000), and 0.00 % in control. Failed loads have no times, so compare times with care.",
    ];
    assert_eq!(warnings(&care), wanted);
}
