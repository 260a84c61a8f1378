//! Analyses of generated experiments: figures, states, and the verdicts of many situations.

#[path = "../../tests/dashboard/memory.rs"]
pub(crate) mod memory;

mod stored;
mod verdicts;

use std::sync::atomic::Ordering;

use memory::{Memory, START_S};

use super::{AnalysisError, Options, Outcome, Report, State, Statistic, analysis, text};
use crate::time::DAY_S;

/// Analyses an experiment after its last window.
fn analysed(memory: &Memory) -> Report {
    at(memory, memory.end_s())
}

fn at(memory: &Memory, at_s: u64) -> Report {
    // The time to wait takes most of a test's time.
    let options = Options {
        effect: None,
        ..Options::default()
    };
    analysis(memory, "spdy", at_s, &options).expect("the store can be read")
}

#[test]
fn figures_are_those_of_the_users() {
    let memory = Memory::generated(1, 4000, &[0.0, -0.1]);
    let report = analysed(&memory);
    assert_eq!(report.users(), 4000);
    assert_eq!(report.metrics.len(), 2);
    assert_eq!(report.metrics[1].unit, "ms");
    let of = |arm: usize| {
        let users = memory.users.iter().filter(|user| user.arm == arm);
        let values: Vec<f64> = users.map(|user| user.value / 1000.0).collect();
        (
            values.len() as u64,
            values.iter().sum::<f64>() / values.len() as f64,
        )
    };
    for (n, values) in report.metrics[0].values.iter().enumerate() {
        let (users, mean) = of(n);
        assert_eq!(values.users, users);
        assert!((values.mean.expect("users") - mean).abs() < 1e-6);
        let (median, p95) = (values.p50.expect("users"), values.p95.expect("users"));
        assert!(median < p95 && (median / mean - 1.0).abs() < 0.05);
    }
    for metric in &report.metrics {
        let change = metric
            .comparison("fast", Statistic::Mean)
            .and_then(|one| one.change);
        let change = change.expect("users are many");
        assert!(
            change.differs() && change.low < -10.0 && change.high > -10.0,
            "{change:?}"
        );
    }
    assert_eq!(report.verdict.outcome, Outcome::Difference);
    let server = report.arms[0].server.as_ref().expect("it has steps");
    assert_eq!(server.cpu_us_per_connection, Some(200.0));
    assert_eq!(server.cpu_us_per_request, Some(12.0));
    assert_eq!(server.open_max, 30);
    assert!(
        server
            .first_byte_ms
            .is_some_and(|[median, ..]| (50.0..60.0).contains(&median))
    );
    assert!((report.users_per_day.expect("hours of users") / 8640.0 - 1.0).abs() < 0.01);
}

/// The store gets users after the totals have been read.
#[test]
fn totals_have_the_users_of_the_figures() {
    let memory = Memory::generated(2, 1000, &[0.0, 0.0]);
    memory.late.store(400, Ordering::SeqCst);
    let report = analysed(&memory);
    assert_eq!((report.users(), report.counted_users()), (1000, 1000));
    assert_eq!(report.sample_ratio, report.measured_ratio);
}

#[test]
fn users_count_once_their_window_is_over() {
    let memory = Memory::generated(2, 1000, &[0.0, 0.0]);
    let middle = START_S + 5000;
    let report = at(&memory, middle);
    assert_eq!(report.users(), 500);
    assert_eq!(report.uncounted.unfinished, 360);
    let finished: u64 = report.metrics[0]
        .values
        .iter()
        .map(|values| values.users)
        .sum();
    assert_eq!(finished, 140);
    // Windows of 0 count the first view alone.
    let mut memory = memory;
    memory.settings().window_s = 0;
    let finished: u64 = at(&memory, middle).metrics[0]
        .values
        .iter()
        .map(|values| values.users)
        .sum();
    assert_eq!(finished, 500);
}

#[test]
fn other_weights_restart_the_analysis() {
    let mut memory = Memory::generated(3, 1000, &[0.0, 0.0]);
    memory.summary.since_s = START_S + 6000;
    let report = analysed(&memory);
    assert_eq!((report.since_s, report.users()), (START_S + 6000, 400));
    let finished: u64 = report.metrics[0]
        .values
        .iter()
        .map(|values| values.users)
        .sum();
    assert_eq!(finished, 400);
}

#[test]
fn values_before_adjust_means() {
    let memory = Memory::generated(4, 3000, &[0.0, 0.0]);
    let width = |memory: &Memory| {
        let report = analysed(memory);
        let change = report.metrics[0]
            .comparison("fast", Statistic::Mean)
            .and_then(|one| one.change);
        (
            report.metrics[0].cuped,
            change.map_or(f64::NAN, |change| change.high - change.low),
        )
    };
    let (none, plain) = width(&memory);
    let (cuped, adjusted) = width(&memory.with_before());
    assert_eq!(none, None);
    let cuped = cuped.expect("all users have a value before");
    assert!(cuped.reduction > 0.9 && cuped.share == 1.0, "{cuped:?}");
    assert!(adjusted < plain / 3.0, "{adjusted} {plain}");
}

#[test]
fn states_follow_time_and_visits() {
    let memory = Memory::generated(5, 1000, &[0.0, 0.0]);
    let end = START_S + 60 * DAY_S;
    for (at_s, state) in [
        (START_S - 1, State::NotBegun),
        (START_S, State::Running),
        (memory.end_s(), State::Running),
        (START_S + 9990 + 6 * 3600, State::Running),
        (START_S + 9990 + 6 * 3600 + 1, State::Silent),
        (end - 1, State::Silent),
        (end + 3599, State::Running),
        (end + 3600, State::Ended),
    ] {
        assert_eq!(at(&memory, at_s).state, state, "{at_s}");
    }
    let empty = Memory::generated(5, 0, &[0.0, 0.0]);
    assert_eq!(at(&empty, START_S + 10).state, State::Waiting);
}

#[test]
fn unknown_experiments_are_named() {
    let memory = Memory::generated(6, 10, &[0.0, 0.0]);
    let error = analysis(&memory, "other", START_S, &Options::default()).expect_err("no such one");
    assert_eq!(error, AnalysisError::Unknown(vec!["spdy".to_owned()]));
    assert_eq!(
        error.to_string(),
        "the store has no such experiment, only spdy"
    );
}

#[test]
fn experiments_without_settings_have_a_report_with_a_warning() {
    let mut memory = Memory::generated(7, 500, &[0.0, 0.0]);
    memory.summary.settings = None;
    memory.summary.since_s = 0;
    let report = at(&memory, memory.end_s() + DAY_S);
    assert_eq!((report.users(), report.metrics.len()), (500, 1));
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.contains("no settings")),
        "{:?}",
        report.warnings
    );
}

#[test]
fn json_has_the_documented_members() {
    let report = analysed(&Memory::generated(8, 600, &[0.0, 0.0]));
    let found: serde_json::Value =
        serde_json::from_str(&report.json().expect("it is JSON")).expect("it is JSON");
    assert_eq!(found["format"], "firstbyte-experiment/1");
    assert_eq!(found["since"], "2026-01-01T00:00:00Z");
    assert_eq!(found["metrics"][0]["metric"], "load");
    let one = &found["metrics"][0]["comparisons"][0];
    assert_eq!(
        (&one["arm"], &one["statistic"]),
        (&"fast".into(), &"mean".into())
    );
    assert!(
        one["change_percent"].is_number() && one["course"][0]["at"].is_string(),
        "{one}"
    );
    assert!(
        one["course"]
            .as_array()
            .is_some_and(|course| (10..=50).contains(&course.len()))
    );
    assert_eq!(found["verdict"]["outcome"], "no_difference");
    assert_eq!(
        found["arms"][1]["server"]["truncated"]
            .as_u64()
            .map(|count| count > 0),
        Some(true)
    );
}

#[test]
fn texts_fit_a_terminal_and_are_not_obeyed() {
    let mut memory = Memory::generated(9, 600, &[0.0, 0.0, 0.0]);
    memory.summary.arms[1] = "\u{1b}[31m".to_owned();
    memory.settings().arms[1].0 = "\u{1b}[31m".to_owned();
    let report = analysed(&memory);
    for columns in [60, 100] {
        let found = crate::report::within(columns, || text(&report));
        assert!(!found.contains('\u{1b}'), "{found}");
        let wide = found.lines().find(|line| line.chars().count() > columns);
        assert_eq!(wide, None, "{found}");
        assert!(found.starts_with("Experiment spdy, running"), "{found}");
    }
}

/// A/A tests of many seeds report nothing in nearly all runs.
#[test]
fn equal_arms_seldom_differ() {
    let options = Options {
        is_a_a: true,
        ..Options::default()
    };
    let mut failed = 0;
    for seed in 0..12 {
        let mut memory = Memory::generated(100 + seed, 500, &[0.0, 0.0]);
        memory.settings().metrics.truncate(1);
        let report = analysis(&memory, "spdy", memory.end_s(), &options).expect("it can be read");
        failed += u32::from(report.verdict.outcome == Outcome::AaFailed);
        assert!(!report.sample_ratio.is_mismatch, "seed {seed}");
        assert_eq!(report.sample_ratio, report.measured_ratio);
    }
    // At most 5 of 100 by chance: more than 4 of 12 are one of 5,000 sets of seeds.
    assert!(failed <= 4, "{failed} of 12");
}

/// Measures the analysis of 1.6 million users; with `LAB_LONG=1` alone, since it takes a minute without optimisation.
#[test]
fn a_million_users_are_analysed() {
    if std::env::var_os("LAB_LONG").is_none() {
        return;
    }
    let mut memory = Memory::generated(20, 1_600_000, &[0.0, -0.006]);
    memory.settings().end_s = None;
    let began = std::time::Instant::now();
    let report = analysed(&memory);
    println!(
        "1.6 million users, 2 metrics: {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let change = report.metrics[0]
        .comparison("fast", Statistic::Mean)
        .and_then(|one| one.change);
    let change = change.expect("users are many");
    // The coefficient of variation of these users is 0.3.
    assert!(
        change.differs() && change.low < -0.6 && change.high > -0.6,
        "{change:?}"
    );
}

/// The verdict of generated users has its parts in order.
#[test]
fn verdicts_of_generated_users() {
    let faster = analysed(&Memory::generated(11, 20_000, &[0.0, -0.05]));
    assert_eq!(faster.verdict.outcome, Outcome::Difference);
    assert!(
        faster.verdict.sentences[0].starts_with("fast: page load is "),
        "{:?}",
        faster.verdict
    );
    let memory = Memory::generated(12, 5_000, &[0.0, 0.0]);
    let equal = analysis(&memory, "spdy", memory.end_s(), &Options::default());
    let equal = equal.expect("it can be read");
    assert_eq!(
        equal.verdict.outcome,
        Outcome::NoDifference,
        "{:?}",
        equal.verdict
    );
    let wait = equal.verdict.waits.last().expect("a wait for 1 %");
    assert_eq!(wait.effect_percent, 1.0);
    // A coefficient of variation of 0.3 needs some 20,000 users in each arm.
    assert!(
        (5_000.0..100_000.0).contains(&wait.more_users_per_arm),
        "{wait:?}"
    );
    // 4,320 users a day and arm.
    let days = wait.more_days.expect("the rate is known");
    assert!(
        (days * 4320.0 / wait.more_users_per_arm - 1.0).abs() < 0.1,
        "{wait:?}"
    );
    let uneven = {
        let mut memory = Memory::generated(13, 8_000, &[0.0, 0.0]);
        let mut n = 0;
        memory.users.retain(|user| {
            n += usize::from(user.arm == 1);
            user.arm == 0 || n % 3 > 0
        });
        analysed(&memory)
    };
    assert_eq!(uneven.verdict.outcome, Outcome::SampleRatio);
    let lossy = {
        let mut memory = Memory::generated(13, 8_000, &[0.0, 0.0]);
        let all = memory.users.iter_mut();
        let slow = all.filter(|user| user.arm == 1 && user.value > 1.25e6);
        slow.for_each(|user| user.is_unmeasured = true);
        analysed(&memory)
    };
    assert!(!lossy.sample_ratio.is_mismatch && lossy.measured_ratio.is_mismatch);
    assert_eq!(lossy.verdict.outcome, Outcome::SampleRatio);
    let few = analysed(&Memory::generated(14, 60, &[0.0, 0.0]));
    assert_eq!(
        few.verdict.outcome,
        Outcome::TooFewUsers,
        "{:?}",
        few.verdict
    );
    let begun = at(&Memory::generated(15, 60, &[0.0, 0.0]), START_S + 100);
    assert_eq!(
        begun.verdict.outcome,
        Outcome::NoUsers,
        "{:?}",
        begun.verdict
    );
    let none = at(&Memory::generated(16, 0, &[0.0, 0.0]), START_S + 100);
    assert_eq!(none.verdict.outcome, Outcome::NoUsers);
    let before = at(&Memory::generated(17, 10, &[0.0, 0.0]), START_S - 100);
    assert_eq!(before.verdict.outcome, Outcome::NotBegun);
    let a_a = Options {
        is_a_a: true,
        ..Options::default()
    };
    let memory = Memory::generated(18, 20_000, &[0.0, -0.05]);
    let failed = analysis(&memory, "spdy", memory.end_s(), &a_a).expect("it can be read");
    assert_eq!(failed.verdict.outcome, Outcome::AaFailed);
}
