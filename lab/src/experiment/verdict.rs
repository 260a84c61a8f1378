//! The verdict of a report in sentences: the change, its size, how sure it is, and the time to wait, or the reason for none.
//!
//! Source: docs/experiment-report.md.

use super::report::{Arm, Comparison, Metric, Outcome, Report, ShareTest, State, Verdict, Wait};
use super::statistic::Statistic;
use super::words::{change, count, days, joined, label, percent, quantity, range, value};
use crate::time::{length, readable};

/// Returns the verdict of a report, which has everything else, with the expected waits.
pub(super) fn verdict(report: &Report, waits: Vec<Wait>) -> Verdict {
    let (outcome, sentences) = match no_verdict(report) {
        Some(reason) => reason,
        None => present(report, &waits),
    };
    let has_waits = matches!(outcome, Outcome::Difference | Outcome::NoDifference);
    Verdict {
        outcome,
        sentences,
        waits: if has_waits { waits } else { Vec::new() },
    }
}

/// Reasons against a verdict.
fn no_verdict(report: &Report) -> Option<(Outcome, Vec<String>)> {
    if report.state == State::NotBegun {
        let start = report.start_s.map_or_else(String::new, readable);
        let sentence = format!("No verdict: the experiment begins at {start} UTC.");
        return Some((Outcome::NotBegun, vec![sentence]));
    }
    if report.users() == 0 {
        return Some((Outcome::NoUsers, no_users(report)));
    }
    // Shares of arms are tested before any figure, since a figure of lost users means nothing.
    if report.sample_ratio.is_mismatch {
        return Some((Outcome::SampleRatio, mismatch(report)));
    }
    if report.measured_ratio.is_mismatch {
        return Some((Outcome::SampleRatio, measured_mismatch(report)));
    }
    let metric = report.primary()?;
    if finished(metric) == 0 {
        return Some((Outcome::NoUsers, none_finished(report, metric)));
    }
    let has_interval = |one: &&Comparison| one.change.is_some_and(|change| !change.is_open());
    if metric.means().any(|one| has_interval(&one)) || metric.means().next().is_none() {
        return None;
    }
    Some((Outcome::TooFewUsers, too_few(report, metric)))
}

fn finished(metric: &Metric) -> u64 {
    metric.measured().iter().sum()
}

/// Reasons for no user with a value.
fn none_finished(report: &Report, metric: &Metric) -> Vec<String> {
    let mut reasons = excluded(report, metric);
    if reasons.is_empty() {
        reasons.push(format!("no user has a value of {}.", label(metric.metric)));
    }
    reasons[0].insert_str(0, "No verdict yet: ");
    if report.uncounted.unmeasured > 0 {
        reasons.push(
            "Check that pages load to their end, and that browsers send this metric.".to_owned(),
        );
    }
    if report.uncounted.unfinished > 0 {
        reasons.push("Users count once their window is over.".to_owned());
    }
    reasons
}

/// Sentences about the users without a figure.
fn excluded(report: &Report, metric: &Metric) -> Vec<String> {
    let verb = |number: u64, one: &'static str, many: &'static str| match number {
        1 => one,
        _ => many,
    };
    let (unmeasured, unfinished) = (report.uncounted.unmeasured, report.uncounted.unfinished);
    let all = [
        (
            unmeasured,
            verb(unmeasured, "has", "have"),
            format!("finished without a value of {}", label(metric.metric)),
        ),
        (
            unfinished,
            verb(unfinished, "is within the", "are within their"),
            format!("window of {}", length(report.window_s)),
        ),
        (
            report.uncounted.mixed,
            "had",
            "visits in several arms and did not count".to_owned(),
        ),
    ];
    let seen = all.into_iter().filter(|(users, ..)| *users > 0);
    seen.map(|(users, verb, rest)| format!("{} {verb} {rest}.", quantity(users, "user")))
        .collect()
}

fn no_users(report: &Report) -> Vec<String> {
    let since = readable(report.since_s);
    vec![
        format!("No verdict: no user has been seen since {since} UTC."),
        "Check that pages contain the script of experiment_beacon, that the kill switch is off, and that the share of users is \
         above 0."
            .to_owned(),
    ]
}

fn mismatch(report: &Report) -> Vec<String> {
    let users: Vec<u64> = report.arms.iter().map(|arm| arm.users).collect();
    vec![
        format!(
            "No verdict: the shares of users contradict the weights {}.",
            shares(report, &users)
        ),
        chance(report.sample_ratio),
        "One arm loses users, or counts them twice. Look for redirects, errors, caches and robots in one arm. Until the cause is \
         found, no figure of this report is reliable."
            .to_owned(),
    ]
}

/// The users agree with the weights, and those with a value of the primary metric do not.
fn measured_mismatch(report: &Report) -> Vec<String> {
    let (users, name) = report
        .primary()
        .map(|metric| (metric.measured(), label(metric.metric)))
        .unwrap_or_default();
    vec![
        format!(
            "No verdict: the shares of users with a value of {name} contradict the weights {}.",
            shares(report, &users)
        ),
        chance(report.measured_ratio),
        "One arm loses slow or fast users before they have a value. Look for failed page loads and errors in one arm. Until the \
         cause is found, no figure of this report is reliable."
            .to_owned(),
    ]
}

/// Writes weights and shares of users of the arms with the largest errors: `(50 to 50): a has 52.00 % and b has 48.00 %`.
fn shares(report: &Report, users: &[u64]) -> String {
    let all = users.iter().sum::<u64>().max(1) as f64;
    let weights: f64 = report.arms.iter().map(|arm| f64::from(arm.weight)).sum();
    // The terms of a chi-squared test; an arm of weight 0 has no users.
    let error = |(arm, users): (&Arm, &u64)| {
        let expected = all * f64::from(arm.weight) / weights;
        let distance = *users as f64 - expected;
        if distance == 0.0 {
            return 0.0;
        }
        distance * distance / expected
    };
    let mut arms: Vec<(&Arm, &u64)> = report.arms.iter().zip(users).collect();
    arms.sort_by(|a, b| error(*b).total_cmp(&error(*a)));
    arms.truncate(ARMS_MAX);
    let weights: Vec<String> = arms.iter().map(|(arm, _)| arm.weight.to_string()).collect();
    let share = |(arm, users): &(&Arm, &u64)| {
        let share = **users as f64 * 100.0 / all;
        format!("{} has {share:.2} %", arm.arm)
    };
    let shares: Vec<String> = arms.iter().map(share).collect();
    format!("({}): {}", weights.join(" to "), joined(&shares))
}

fn chance(test: ShareTest) -> String {
    format!(
        "By chance, such shares have a probability of {} at most, however often you look.",
        probability(test.p_value)
    )
}

/// Writes a small probability: `0.4 %`, `less than 0.01 %`.
fn probability(p_value: f64) -> String {
    match p_value * 100.0 {
        p if p < 0.01 => "less than 0.01 %".to_owned(),
        p => format!("{p:.2} %"),
    }
}

fn too_few(report: &Report, metric: &Metric) -> Vec<String> {
    let users = metric.values.iter().take(ARMS_MAX);
    let users: Vec<String> = users
        .map(|values| format!("{} in {}", count(values.users), values.arm))
        .collect();
    let name = label(metric.metric);
    let mut sentences = vec![format!(
        "No verdict yet: too few users have finished with a value of {name}: {}.",
        joined(&users)
    )];
    sentences.extend(excluded(report, metric));
    let rate = report.users_per_day.filter(|rate| *rate >= 0.5);
    if let Some(rate) = rate.filter(|_| report.state != State::Ended) {
        sentences.push(format!(
            "{} enter in a day so far. Look again tomorrow.",
            quantity(rate.round() as u64, "user")
        ));
    }
    sentences
}

/// The verdict if nothing is against one.
fn present(report: &Report, waits: &[Wait]) -> (Outcome, Vec<String>) {
    let differs = report.metrics.iter().flat_map(|metric| &metric.comparisons);
    let differs = differs.clone().any(|one| one.differs);
    let outcome = match (report.is_a_a, differs) {
        (true, true) => Outcome::AaFailed,
        (true, false) => Outcome::AaPassed,
        (false, true) => Outcome::Difference,
        (false, false) => Outcome::NoDifference,
    };
    let mut sentences = begin(report, outcome);
    if let Some(metric) = report.primary() {
        sentences.extend(match outcome {
            Outcome::AaPassed => limits(report, metric),
            _ => arms(report, metric),
        });
    }
    if differs {
        sentences.extend(others(report));
    }
    sentences.push(sureness(report));
    if report.is_a_a {
        return (outcome, sentences);
    }
    sentences.extend(waiting(report, waits, outcome));
    (outcome, sentences)
}

/// First sentence of A/A tests.
fn begin(report: &Report, outcome: Outcome) -> Vec<String> {
    let users = quantity(report.primary().map_or(0, finished), "user");
    match outcome {
        Outcome::AaPassed => vec![format!(
            "A/A test passed: {users} in arms of the same effect, and no figure differs."
        )],
        Outcome::AaFailed => vec![
            format!("A/A test failed: {users} in arms of the same effect, and figures differ."),
            "The arms are not equal, or users are not assigned by chance. Find the cause before the next experiment.".to_owned(),
        ],
        _ => Vec::new(),
    }
}

/// Sentences about the primary metric, arm by arm.
fn arms(report: &Report, metric: &Metric) -> Vec<String> {
    let Some(control) = metric.values.first() else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for values in metric.values.iter().skip(1).take(ARMS_MAX) {
        let mean = metric.comparison(&values.arm, Statistic::Mean);
        sentences.extend(mean.map(|mean| about_mean(metric, mean, &control.arm)));
        let both = control
            .mean
            .zip(values.mean)
            .filter(|_| mean.is_some_and(|one| one.differs));
        if let Some((from, to)) = both {
            sentences.push(format!(
                "The mean is {} in {} and {} in {}.",
                value(metric.metric, to),
                values.arm,
                value(metric.metric, from),
                control.arm
            ));
        }
        sentences.extend(about_quantiles(metric, &values.arm));
    }
    sentences.extend(further(report));
    sentences
}

/// Sentence about the arms without sentences.
fn further(report: &Report) -> Option<String> {
    let more = report.arms.len().saturating_sub(1 + ARMS_MAX);
    (more > 0).then(|| format!("The table has {}.", quantity(more as u64, "more arm")))
}

/// Sentences of a passed A/A test: it shows no more than these ranges do.
fn limits(report: &Report, metric: &Metric) -> Vec<String> {
    let means = metric.means().take(ARMS_MAX);
    let about = |one: &Comparison| {
        let (arm, name) = (&one.arm, label(metric.metric));
        match one.change.filter(|found| !found.is_open()) {
            None => format!("{arm}: too few users for limits of the mean {name}."),
            Some(found) => format!(
                "{arm}: the true change of the mean {name} is within this range: {}.",
                range(metric.metric, &found)
            ),
        }
    };
    means.map(about).chain(further(report)).collect()
}

fn about_mean(metric: &Metric, one: &Comparison, control: &str) -> String {
    let (arm, name) = (&one.arm, label(metric.metric));
    match one.change.as_ref().filter(|found| !found.is_open()) {
        None => format!("{arm}: too few users to compare the mean {name} with {control}."),
        Some(found) if one.differs => format!(
            "{arm}: {name} is {} than in {control} on average ({}).",
            change(metric.metric, found.estimate),
            range(metric.metric, found)
        ),
        Some(found) => format!(
            "{arm}: no difference from {control} in the mean {name} so far. The true change is within this range: {}.",
            range(metric.metric, found)
        ),
    }
}

/// A sentence about the quantiles of an arm that differ, and one about the rest.
fn about_quantiles(metric: &Metric, arm: &str) -> Vec<String> {
    let quantiles = Statistic::ALL
        .into_iter()
        .filter(|one| one.quantile().is_some());
    let found: Vec<&Comparison> = quantiles
        .filter_map(|one| metric.comparison(arm, one))
        .collect();
    let about = |one: &&Comparison| {
        let found = one.change.as_ref().filter(|_| one.differs)?;
        Some(format!(
            "the {} is {} ({})",
            one.statistic.label(),
            change(metric.metric, found.estimate),
            range(metric.metric, found)
        ))
    };
    let differing: Vec<String> = found.iter().filter_map(about).collect();
    if differing.is_empty() {
        return Vec::new();
    }
    let rest = found.iter().filter(|one| !one.differs);
    let (open, limited): (Vec<&Comparison>, Vec<&Comparison>) =
        rest.partition(|one| one.change.is_none_or(|found| found.is_open()));
    let mut sentences = vec![format!("{arm}: {}.", joined(&differing))];
    for (rest, verbs, state) in [
        (limited, ["shows", "show"], "no difference yet"),
        (open, ["has", "have"], "too few users"),
    ] {
        let names = rest
            .iter()
            .map(|one| format!("the {}", one.statistic.label()));
        let names: Vec<String> = names.collect();
        let verb = verbs[usize::from(names.len() > 1)];
        if !names.is_empty() {
            sentences.push(format!("{arm}: {} {verb} {state}.", joined(&names)));
        }
    }
    sentences
}

/// Sentences about the differences in all other metrics.
fn others(report: &Report) -> Vec<String> {
    let mut sentences = Vec::new();
    for metric in report.metrics.iter().skip(1) {
        for one in &metric.comparisons {
            let Some(found) = one.change.as_ref().filter(|_| one.differs) else {
                continue;
            };
            sentences.push(format!(
                "{}: {}, {}: {} ({}).",
                one.arm,
                label(metric.metric),
                one.statistic.label(),
                change(metric.metric, found.estimate),
                range(metric.metric, found)
            ));
        }
    }
    if sentences.len() > OTHERS_MAX {
        let more = sentences.len() - OTHERS_MAX;
        sentences.truncate(OTHERS_MAX);
        sentences.push(format!(
            "The table has {}.",
            quantity(more as u64, "further difference")
        ));
    }
    sentences
}

fn sureness(report: &Report) -> String {
    let level = (1.0 - report.alpha) * 100.0;
    let level = format!("{level:.1}");
    let level = level.strip_suffix(".0").unwrap_or(&level);
    format!(
        "All intervals of this report hold together with a confidence of {level} %, however often you look."
    )
}

/// Sentences about the end, or about the time to wait.
fn waiting(report: &Report, waits: &[Wait], outcome: Outcome) -> Vec<String> {
    if report.state == State::Ended {
        return vec!["The experiment has ended, so this verdict is final.".to_owned()];
    }
    let means = report.primary().into_iter().flat_map(Metric::means);
    let open: Vec<&str> = means
        .filter(|mean| !mean.differs)
        .map(|mean| mean.arm.as_str())
        .collect();
    let mut sentences = Vec::new();
    if outcome == Outcome::Difference {
        sentences.push(decided(report, &open));
    }
    let waits = waits.iter().filter(|wait| open.contains(&&*wait.arm));
    sentences.extend(waits.take(WAITS_MAX).map(|wait| about_wait(report, wait)));
    sentences
}

/// Whether to stop: if the primary mean of all arms differs. `open` are the arms with a mean that does not.
fn decided(report: &Report, open: &[&str]) -> String {
    let Some(metric) = report.primary().filter(|_| !open.is_empty()) else {
        return "This is sure enough to stop. More users only narrow the intervals.".to_owned();
    };
    let name = label(metric.metric);
    let arms: Vec<String> = open.iter().map(|arm| (*arm).to_owned()).collect();
    let arms = match (report.arms.len(), arms.len()) {
        (0..=2, _) => String::new(),
        (_, 0..=ARMS_MAX) => format!(" in {}", joined(&arms)),
        (_, more) => format!(" in {}", quantity(more as u64, "arm")),
    };
    format!("The differences named above are sure; the mean {name} is not decided{arms}.")
}

fn about_wait(report: &Report, wait: &Wait) -> String {
    let effect = percent(wait.effect_percent);
    let arm = match report.arms.len() {
        0..=2 => String::new(),
        _ => format!(" in {}", wait.arm),
    };
    if wait.more_users_per_arm <= 0.0 {
        return format!(
            "A change of {effect}{arm} would have been found by now with a probability of 80 %."
        );
    }
    if !wait.more_users_per_arm.is_finite() {
        return format!("A change of {effect}{arm} is too small to be found.");
    }
    let users = quantity(wait.more_users_per_arm.ceil().min(1e15) as u64, "more user");
    match wait.more_days {
        None => format!("To find a change of {effect}{arm}, each arm needs {users}."),
        Some(more) => format!(
            "To find a change of {effect}{arm}, wait {}: each arm needs {users}.",
            days(more)
        ),
    }
}

/// Limit of arms with sentences in a verdict.
const ARMS_MAX: usize = 10;
/// Sentences about other metrics.
const OTHERS_MAX: usize = 12;
/// Sentences about the time to wait.
const WAITS_MAX: usize = 6;
