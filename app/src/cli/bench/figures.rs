//! Figures of a bench for `--fail-if`.

use lab::load::{LoadResult, Measured};
use lab::report::{Report, ServerReport};
use lab::stats::{Metric, Times};

use crate::cli::condition::{Condition, Figure, Vocabulary};

/// Parses a condition on a figure of a bench.
///
/// # Errors
/// It is not a condition.
pub(super) fn condition(text: &str) -> Result<Condition, String> {
    let known = Vocabulary {
        names: NAMES.to_vec(),
        percentiles: true,
        statuses: true,
        ..Vocabulary::default()
    };
    Condition::parse(text, &known)
}

/// The conditions that a bench fails, for each server, with sentences.
pub(super) fn failures(
    conditions: &[Condition],
    report: &Report,
    measured: &Measured,
) -> Vec<String> {
    let mut found = Vec::new();
    for condition in conditions {
        let servers = report.servers.iter().zip(&measured.runs);
        found.extend(servers.filter_map(|(server, runs)| {
            condition.failure(&server.name, value(condition.figure(), server, runs))
        }));
    }
    // Too few valid samples prove nothing, even if all of them are within the limit.
    if conditions.iter().any(is_of_times) {
        found.extend(report.void.iter().cloned());
    }
    found
}

/// Whether it is about times, which are measured by samples.
fn is_of_times(condition: &Condition) -> bool {
    match condition.figure() {
        Figure::Percentile(..) => true,
        Figure::Named(name) => matches!(*name, "mean" | "max"),
        Figure::Status(_) => false,
    }
}

fn value(figure: &Figure, server: &ServerReport, runs: &[LoadResult]) -> Option<f64> {
    let times = server.main_times();
    match figure {
        Figure::Named("rate") => server.rate.map(|rate| rate.value),
        Figure::Named("errors") => Some(server.failed() as f64),
        Figure::Named("mean") => times.map(|times| times.mean_ms),
        Figure::Named("max") => times.map(|times| times.max_ms),
        Figure::Named("cpu") => server.server_cpu_us.map(|cpu| cpu.value),
        Figure::Named("memory") => server.server_memory_bytes.map(|bytes| bytes as f64 / 1e6),
        Figure::Named(_) => None,
        Figure::Percentile(name, share) => times
            .and_then(|times| times.percentile(name))
            .or_else(|| percentile(runs, *share)),
        Figure::Status(wanted) => (server.done > 0).then(|| {
            let all = server.status_codes.iter();
            let is_wanted =
                |status: &str| status.parse().is_ok_and(|status| wanted.contain(status));
            let counted = all.filter(|(status, _)| is_wanted(status));
            counted.map(|(_, times)| *times as f64).sum()
        }),
    }
}

/// A percentile that reports do not have, over all responses: milliseconds.
fn percentile(runs: &[LoadResult], share: f64) -> Option<f64> {
    let has_response = |run: &LoadResult| run.times(Metric::Response).taken() > 0;
    let metric = match runs.iter().any(has_response) {
        true => Metric::Response,
        false => Metric::Service,
    };
    let mut all = Times::default();
    runs.iter().for_each(|run| all.add(run.times(metric)));
    let ns = (!all.valid.is_empty()).then(|| all.valid.value_at_quantile(share));
    ns.map(|ns| ns as f64 / 1e6)
}

/// Responses a second, failures, milliseconds, microseconds of the server's CPU for a response, megabytes of its memory.
const NAMES: [&str; 6] = ["rate", "errors", "mean", "max", "cpu", "memory"];
