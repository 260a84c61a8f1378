//! The analysis: reads settings, users and figures of the server from a store, and makes a report.
//!
//! One metric is read at a time. 1.6 million users take about 100 MB of memory meanwhile.
//!
//! Source: docs/experiment-report.md.

use store::{Excluded, ExperimentQuery, ExperimentSummary, Store, VisitMetric};

use super::error::AnalysisError;
use super::metrics::{Place, metric};
use super::replay::{Samples, User};
use super::report::{Arm, FORMAT, MADE_BY, Report, ShareTest, State, Uncounted, Verdict};
use super::statistic::Statistic;
use super::verdict::verdict;
use super::wait::waits;
use super::{server, warnings};
use crate::stats::sequence::levels;
use crate::time::DAY_S;

/// Parameters of an analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Probability that any interval of the report misses its true value, above 0 and below 1.
    pub alpha: f64,
    /// All arms have the same effect: the report tests the experiment itself (A/A).
    pub is_a_a: bool,
    /// Change for which the time to wait is computed, percent. `None`: no time is computed, which saves most of the work for few
    /// users.
    pub effect: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            alpha: 0.05,
            is_a_a: false,
            effect: Some(1.0),
        }
    }
}

/// Analyses an experiment with the visits before a time in Unix seconds.
///
/// # Errors
/// If the store cannot be read, or has no such experiment.
pub fn analysis(
    store: &dyn Store,
    name: &str,
    at_s: u64,
    options: &Options,
) -> Result<Report, AnalysisError> {
    let Some(summary) = store.experiment(name)? else {
        let all = store.experiments()?.into_iter();
        return Err(AnalysisError::Unknown(all.map(|one| one.name).collect()));
    };
    let mut report = begin(&summary, at_s, options);
    if report.state == State::NotBegun {
        report.verdict = verdict(&report, Vec::new());
        return Ok(report);
    }
    let query = ExperimentQuery {
        experiment: summary.name.clone(),
        from_s: report.since_s,
        to_s: at_s,
        window_s: report.window_s,
        pre_period_s: report.pre_period_s,
    };
    totals(store, &query, &mut report)?;
    if report.users() > 0 {
        metrics(store, &query, &summary, options.alpha, &mut report)?;
        // Visits that were stored in between belong to both, or shares of arms would be those of another moment.
        if report.counted_users() > report.users() {
            totals(store, &query, &mut report)?;
        }
    }
    server::add(store, &query, &mut report)?;
    let warnings = warnings::warnings(&report);
    report.warnings.extend(warnings);
    if summary.settings.is_none() {
        report.warnings.push(WITHOUT_SETTINGS.to_owned());
    }
    // An A/A test has no effect to wait for.
    let effect = options.effect.filter(|_| !report.is_a_a);
    let waits = effect.map_or_else(Vec::new, |effect| waits(&report, effect));
    report.verdict = verdict(&report, waits);
    Ok(report)
}

/// Returns a report with the settings alone.
pub(super) fn begin(summary: &ExperimentSummary, at_s: u64, options: &Options) -> Report {
    let settings = summary.settings.clone().unwrap_or_default();
    let has_settings = summary.settings.is_some();
    let arm = |name: &String| {
        let found = settings.arms.iter().find(|(own, _)| own == name);
        // Without settings all arms weigh alike.
        let weight = found.map_or(u32::from(!has_settings), |(_, weight)| *weight);
        Arm {
            arm: name.clone(),
            weight,
            ..Arm::default()
        }
    };
    // Arms of earlier settings come last in a summary, and have no users since.
    let count = if has_settings {
        settings.arms.len()
    } else {
        summary.arms.len()
    };
    let since_s = match has_settings {
        true => summary.since_s.max(settings.start_s.unwrap_or(0)),
        false => summary.first_s.unwrap_or(0),
    };
    let window_s = if has_settings {
        settings.window_s
    } else {
        DAY_S
    };
    Report {
        format: FORMAT,
        program: MADE_BY,
        experiment: summary.name.clone(),
        at_s,
        since_s,
        start_s: settings.start_s,
        end_s: settings.end_s,
        last_s: summary.last_s,
        window_s,
        pre_period_s: settings.pre_period_s,
        share_percent: if has_settings {
            f64::from(settings.share) / 100.0
        } else {
            100.0
        },
        state: state(summary, settings.start_s, settings.end_s, window_s, at_s),
        is_a_a: options.is_a_a,
        alpha: options.alpha,
        arms: summary.arms.iter().take(count).map(arm).collect(),
        users_per_day: None,
        uncounted: Uncounted::default(),
        sample_ratio: ShareTest::default(),
        measured_ratio: ShareTest::default(),
        metrics: Vec::new(),
        steps: Vec::new(),
        verdict: Verdict::default(),
        warnings: Vec::new(),
    }
}

fn state(
    summary: &ExperimentSummary,
    start_s: Option<u64>,
    end_s: Option<u64>,
    window_s: u64,
    at_s: u64,
) -> State {
    if start_s.is_some_and(|start| at_s < start) {
        return State::NotBegun;
    }
    if end_s.is_some_and(|end| end.saturating_add(window_s) <= at_s) {
        return State::Ended;
    }
    let (Some(first), Some(last)) = (summary.first_s, summary.last_s) else {
        return State::Waiting;
    };
    let gap_s = last.saturating_sub(first) / summary.views.max(1);
    let silence_s = SILENCE_LEAST_S.max(SILENT_GAPS.saturating_mul(gap_s));
    match at_s.saturating_sub(last) > silence_s && end_s.is_none_or(|end| at_s < end) {
        true => State::Silent,
        false => State::Running,
    }
}

/// Adds the sums of arms, and the test of their shares.
fn totals(
    store: &dyn Store,
    query: &ExperimentQuery,
    report: &mut Report,
) -> Result<(), AnalysisError> {
    for found in store.arm_totals(query)? {
        let Some(arm) = report.arms.get_mut(found.arm) else {
            continue;
        };
        arm.users = found.users;
        arm.views = found.views;
        arm.failed_views = found.failed_views;
        arm.files = found.files;
        arm.files_failed = found.files_failed;
        arm.files_truncated = found.files_truncated;
        arm.file_bytes = found.file_bytes;
    }
    let users: Vec<u64> = report.arms.iter().map(|arm| arm.users).collect();
    report.sample_ratio = ShareTest::of(&users, &report.arms);
    Ok(())
}

/// Adds all metrics.
fn metrics(
    store: &dyn Store,
    query: &ExperimentQuery,
    summary: &ExperimentSummary,
    alpha: f64,
    report: &mut Report,
) -> Result<(), AnalysisError> {
    let configured = summary
        .settings
        .as_ref()
        .map(|settings| settings.metrics.clone());
    let mut all = configured.unwrap_or_default();
    if all.is_empty() {
        all.push(VisitMetric::Load);
    }
    let names: Vec<String> = report.arms.iter().map(|arm| arm.arm.clone()).collect();
    let intervals = names.len().saturating_sub(1) * Statistic::ALL.len();
    let levels = levels(alpha, all.len(), intervals);
    for (n, own) in all.into_iter().enumerate() {
        let (samples, excluded) = read(store, query, own, names.len())?;
        if n == 0 {
            report.uncounted = Uncounted {
                mixed: excluded.mixed,
                unfinished: excluded.unfinished,
                unmeasured: excluded.unmeasured,
            };
            report.users_per_day = users_per_day(&samples);
        }
        let place = Place {
            metric: own,
            arms: &names,
            is_primary: n == 0,
            alpha: levels[n],
        };
        report.metrics.push(metric(&samples, &place));
    }
    let measured = report.metrics[0].measured();
    report.measured_ratio = ShareTest::of(&measured, &report.arms);
    Ok(())
}

/// Reads the values of all users in the unit of reports.
pub(super) fn read(
    store: &dyn Store,
    query: &ExperimentQuery,
    metric: VisitMetric,
    arms: usize,
) -> Result<(Samples, Excluded), AnalysisError> {
    let mut samples = Samples {
        arms: vec![Vec::new(); arms],
    };
    let excluded = store.users(query, metric, &mut |found| {
        // An arm of earlier settings has no place.
        let Some(arm) = samples.arms.get_mut(found.arm) else {
            return;
        };
        arm.push(User {
            finished_s: found.entered_s.saturating_add(query.window_s),
            // Microseconds to milliseconds, thousandths to ones.
            value: found.value / 1000.0,
            before: found.before.map_or(f64::NAN, |before| before / 1000.0),
        });
    })?;
    Ok((samples, excluded))
}

/// Returns the rate of users in the newest days.
pub(super) fn users_per_day(samples: &Samples) -> Option<f64> {
    let (first, last) = samples.extent()?;
    let length = (last - first).min(RATE_S);
    let users = samples.since(last - length) as f64;
    (length >= RATE_LEAST_S).then(|| users * DAY_S as f64 / length as f64)
}

/// Newest time that counts for the rate of users, and the least, seconds.
const RATE_S: u64 = 7 * DAY_S;
const RATE_LEAST_S: u64 = 3600;
/// Time without a visit after which an experiment is silent: at least this long, and this many mean gaps between visits.
const SILENCE_LEAST_S: u64 = 6 * 3600;
const SILENT_GAPS: u64 = 20;
const WITHOUT_SETTINGS: &str = "The store has no settings of this experiment. The window is taken for a day, and all weights for equal.";
