//! Reports without a verdict: too few users, wrong shares, no value.

use store::VisitMetric;

use super::{EQUAL, FASTER, OPEN, check, metric, report, wait, with};
use crate::experiment::report::{Arm, Outcome, ShareTest, State};
use crate::experiment::tests::memory::START_S;
use crate::experiment::verdict::verdict;
use crate::experiment::warnings::warnings;
use crate::time::DAY_S;

#[test]
fn shares_that_contradict_the_weights_block_the_verdict() {
    let mut report = with([FASTER; 4]);
    report.arms[0].users = 10_400;
    report.arms[1].users = 9_600;
    report.sample_ratio = ShareTest {
        p_value: 0.000_02,
        is_mismatch: true,
    };
    let cause = "One arm loses users, or counts them twice. Look for redirects, errors, caches and robots in one arm. Until the \
         cause is found, no figure of this report is reliable.";
    check(
        &report,
        vec![wait(1.0, 1.0, None)],
        Outcome::SampleRatio,
        &[
            "No verdict: the shares of users contradict the weights (50 to 50): control has 52.00 % and fast has 48.00 %.",
            "By chance, such shares have a probability of less than 0.01 % at most, however often you look.",
            cause,
        ],
    );
    report.sample_ratio.p_value = 0.004;
    let found = verdict(&report, vec![wait(1.0, 1.0, None)]);
    assert!(
        found.sentences[1].contains("a probability of 0.40 % at most"),
        "{:?}",
        found.sentences
    );
    assert_eq!(found.waits, []);
}

/// The arms with the largest errors come first, not those of the configuration.
#[test]
fn wrong_shares_of_many_arms_are_named() {
    let mut report = report();
    for n in 2..15 {
        report.arms.push(Arm {
            arm: format!("arm{n}"),
            ..report.arms[1].clone()
        });
    }
    report.arms[13].users = 9_000;
    report.arms[12].users = 10_500;
    report.arms[14].weight = 0;
    report.sample_ratio = ShareTest {
        p_value: 0.0,
        is_mismatch: true,
    };
    let found = verdict(&report, Vec::new());
    let first = &found.sentences[0];
    assert!(
        first.starts_with(
            "No verdict: the shares of users contradict the weights (0 to 50 to 50 to 50 to 50 to 50 to 50 to 50 to 50 to 50): arm14 has 6.69 %, arm13 has 6.02 %, control has 6.69 %"
        ),
        "{first}"
    );
}

#[test]
fn shares_of_users_with_a_value_block_the_verdict() {
    let mut report = with([FASTER; 4]);
    report.metrics[0].values[1].users = 9_000;
    report.measured_ratio = ShareTest {
        p_value: 0.004,
        is_mismatch: true,
    };
    let cause = "One arm loses slow or fast users before they have a value. Look for failed page loads and errors in one arm. Until \
         the cause is found, no figure of this report is reliable.";
    check(
        &report,
        vec![wait(1.0, 1.0, None)],
        Outcome::SampleRatio,
        &[
            "No verdict: the shares of users with a value of page load contradict the weights (50 to 50): control has 52.63 % and fast has 47.37 %.",
            "By chance, such shares have a probability of 0.40 % at most, however often you look.",
            cause,
        ],
    );
    // Another metric has a warning alone.
    let mut report = with([FASTER; 4]);
    let mut other = metric(VisitMetric::FirstByte, [EQUAL; 4]);
    other.values[1].users = 9_000;
    report.metrics.push(other);
    let wanted = "The shares of users with a value of first byte contradict the weights: an arm loses slow or fast users.";
    assert_eq!(warnings(&report), [wanted]);
    report.metrics[1].values[1].users = 9_900;
    assert_eq!(warnings(&report), [""; 0]);
}

#[test]
fn too_few_users() {
    let mut report = with([OPEN; 4]);
    report.users_per_day = Some(40.0);
    for values in &mut report.metrics[0].values {
        values.users = 60;
    }
    check(
        &report,
        Vec::new(),
        Outcome::TooFewUsers,
        &[
            "No verdict yet: too few users have finished with a value of page load: 60 in control and 60 in fast.",
            "40 users enter in a day so far. Look again tomorrow.",
        ],
    );
    report.state = State::Ended;
    report.uncounted.unmeasured = 5_000;
    report.uncounted.unfinished = 1;
    check(
        &report,
        Vec::new(),
        Outcome::TooFewUsers,
        &[
            "No verdict yet: too few users have finished with a value of page load: 60 in control and 60 in fast.",
            "5,000 users have finished without a value of page load.",
            "1 user is within the window of 24 h.",
        ],
    );
}

#[test]
fn no_user_has_finished() {
    let mut report = with([OPEN; 4]);
    report.arms[0].users = 1;
    report.arms[1].users = 2;
    report.uncounted.unfinished = 3;
    for values in &mut report.metrics[0].values {
        values.users = 0;
    }
    check(
        &report,
        Vec::new(),
        Outcome::NoUsers,
        &[
            "No verdict yet: 3 users are within their window of 24 h.",
            "Users count once their window is over.",
        ],
    );
    let advice = "Check that pages load to their end, and that browsers send this metric.";
    report.uncounted.unmeasured = 5_000;
    report.uncounted.mixed = 2;
    check(
        &report,
        Vec::new(),
        Outcome::NoUsers,
        &[
            "No verdict yet: 5,000 users have finished without a value of page load.",
            "3 users are within their window of 24 h.",
            "2 users had visits in several arms and did not count.",
            advice,
            "Users count once their window is over.",
        ],
    );
    report.uncounted.unfinished = 0;
    report.uncounted.mixed = 0;
    check(
        &report,
        Vec::new(),
        Outcome::NoUsers,
        &[
            "No verdict yet: 5,000 users have finished without a value of page load.",
            advice,
        ],
    );
    report.uncounted.unmeasured = 0;
    let none = "No verdict yet: no user has a value of page load.";
    check(&report, Vec::new(), Outcome::NoUsers, &[none]);
}

#[test]
fn no_user_has_been_seen() {
    let mut report = report();
    report.arms.iter_mut().for_each(|arm| arm.users = 0);
    check(
        &report,
        Vec::new(),
        Outcome::NoUsers,
        &[
            "No verdict: no user has been seen since 2026-01-01 00:00 UTC.",
            "Check that pages contain the script of experiment_beacon, that the kill switch is off, and that the share of users is above 0.",
        ],
    );
}

#[test]
fn not_begun() {
    let mut report = report();
    report.state = State::NotBegun;
    report.start_s = Some(START_S + 30 * DAY_S);
    let sentence = "No verdict: the experiment begins at 2026-01-31 00:00 UTC.";
    check(&report, Vec::new(), Outcome::NotBegun, &[sentence]);
}
