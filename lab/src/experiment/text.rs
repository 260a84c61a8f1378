//! The report for people at a terminal.

use super::report::{Metric, Report, State, Values};
use super::statistic::Statistic;
use super::words::{change, count, label, range, value};
use crate::report::{push_rows, push_wrapped};
use crate::time::{length, readable};

/// Returns the report as text.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    push_wrapped("", "  ", &title(report), &mut out);
    out.push('\n');
    for sentence in &report.verdict.sentences {
        push_wrapped("", "  ", sentence, &mut out);
    }
    for warning in &report.warnings {
        push_wrapped("", "  ", &format!("WARNING: {warning}"), &mut out);
    }
    if report.state == State::NotBegun {
        return out;
    }
    for metric in &report.metrics {
        out.push('\n');
        push_rows(&comparisons(metric), "", &mut out);
        if let Some(cuped) = metric.cuped {
            let sentence = format!(
                "Means are adjusted by the time before the experiment, which {:.0} % of users have: {:.0} % less variance.",
                cuped.share * 100.0,
                cuped.reduction * 100.0
            );
            push_wrapped("  ", "  ", &sentence, &mut out);
        }
    }
    out.push('\n');
    push_rows(&arms(report), "", &mut out);
    if report.arms.iter().any(|arm| arm.server.is_some()) {
        out.push('\n');
        push_rows(&servers(report), "", &mut out);
    }
    let counts = format!(
        "Users in several arms: {}; with an unfinished window: {}; without a value: {}.",
        count(report.uncounted.mixed),
        count(report.uncounted.unfinished),
        count(report.uncounted.unmeasured)
    );
    push_wrapped("", "  ", &counts, &mut out);
    out
}

/// Name, state and times of an experiment.
fn title(report: &Report) -> String {
    let state = report.state.label();
    let mut text = format!(
        "Experiment {}, {state}, visits from {} to {} UTC",
        report.experiment,
        readable(report.since_s),
        readable(report.at_s - report.at_s % 60)
    );
    if report.window_s > 0 {
        text.push_str(&format!("; window {}", length(report.window_s)));
    }
    text
}

fn comparisons(metric: &Metric) -> Vec<Vec<String>> {
    let heads = [
        label(metric.metric),
        "statistic",
        "value",
        "change",
        "interval",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (n, values) in metric.values.iter().enumerate() {
        for statistic in Statistic::ALL {
            let mut row = vec![
                values.arm.clone(),
                statistic.name().to_owned(),
                figure(metric, values, statistic),
            ];
            let found = metric
                .comparison(&values.arm, statistic)
                .and_then(|one| one.change);
            match found {
                Some(found) => row.extend([
                    change(metric.metric, found.estimate),
                    range(metric.metric, &found),
                ]),
                None if n == 0 => {}
                None => row.extend(["-".to_owned(), "too few users".to_owned()]),
            }
            rows.push(row);
        }
    }
    rows
}

fn figure(metric: &Metric, values: &Values, statistic: Statistic) -> String {
    let found = values.of(statistic);
    found.map_or_else(|| "-".to_owned(), |found| value(metric.metric, found))
}

fn arms(report: &Report) -> Vec<Vec<String>> {
    let heads = [
        "arm",
        "weight",
        "users",
        "views",
        "failed",
        "files",
        "failed",
        "truncated",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for arm in &report.arms {
        let counts = [
            u64::from(arm.weight),
            arm.users,
            arm.views,
            arm.failed_views,
            arm.files,
            arm.files_failed,
            arm.files_truncated,
        ];
        rows.push([vec![arm.arm.clone()], counts.map(count).to_vec()].concat());
    }
    rows
}

fn servers(report: &Report) -> Vec<Vec<String>> {
    let heads = [
        "server",
        "connections",
        "open",
        "requests",
        "truncated",
        "aborted",
        "CPU us/conn.",
        "us/request",
        "first byte ms",
        "handshake ms",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let real =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    for arm in &report.arms {
        let Some(server) = &arm.server else { continue };
        let median = |times: Option<[f64; 3]>| real(times.map(|[median, ..]| median));
        rows.push(vec![
            arm.arm.clone(),
            count(server.connections),
            real(Some(server.open_mean)),
            count(server.requests),
            count(server.truncated),
            count(server.aborted),
            real(server.cpu_us_per_connection),
            real(server.cpu_us_per_request),
            median(server.first_byte_ms),
            median(server.handshake_ms),
        ]);
    }
    rows
}
