//! Two servers: which is better in each figure, and how sure that is.

use serde::{Deserialize, Serialize};

use super::server::{Block, Figure, ServerReport};
use crate::stats::{self, Comparison};

/// One figure of two servers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparisonReport {
    /// Which figure: `rate`, `mean_ms`, `p99_ms`, `server_cpu_us`.
    pub figure: String,
    /// The first and the second server.
    pub first: String,
    /// See above.
    pub second: String,
    /// The second's over the first's, with an interval at 0.99.
    pub ratio: Figure,
    /// `second is better`, `first is better`, `no difference seen`, `not compared: one run each` or
    /// `not compared: other statuses`.
    pub verdict: String,
    /// Without a difference: the approximate number of runs of each that a difference of this size would need.
    pub runs_needed: Option<u64>,
}

impl ComparisonReport {
    /// The verdict as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let percent = |ratio: f64| format!("{:+.2} %", (ratio - 1.0) * 100.0);
        let interval = match (self.ratio.low, self.ratio.high) {
            (Some(low), Some(high)) => format!(" ({} to {})", percent(low), percent(high)),
            _ => String::new(),
        };
        let what = match self.figure.as_str() {
            "rate" => "responses a second",
            "mean_ms" => "mean time",
            "p99_ms" => "99th percentile",
            _ => "server's CPU time a response",
        };
        let measured = format!(
            "{what}: {}{interval}, n={}",
            percent(self.ratio.value),
            self.ratio.n
        );
        let verdict = match (self.verdict.as_str(), self.runs_needed) {
            (SINGLE, _) => "no verdict from one run each: measure both with --blocks 10".to_owned(),
            (UNLIKE, _) => "no verdict: the statuses of their responses differ".to_owned(),
            (SECOND, _) => format!("{} is better", self.second),
            (FIRST, _) => format!("{} is better", self.first),
            (_, Some(runs)) => format!("no difference seen: about {runs} runs would be needed"),
            (_, None) => {
                "no difference seen: more runs than are reasonable would be needed".to_owned()
            }
        };
        format!("{measured}: {verdict}")
    }
}

const FIRST: &str = "first is better";
const SECOND: &str = "second is better";
const NEITHER: &str = "no difference seen";
const SINGLE: &str = "not compared: one run each";
const UNLIKE: &str = "not compared: other statuses";

type Of = fn(&Block) -> Option<f64>;

/// The figures that are compared, and whether more is better.
const FIGURES: [(&str, bool, Of); 4] = [
    ("rate", true, |block| Some(block.rate)),
    ("mean_ms", false, |block| Some(block.mean_ms)),
    ("p99_ms", false, |block| Some(block.p99_ms)),
    ("server_cpu_us", false, |block| block.server_cpu_us),
];

/// Compares two servers that took turns in blocks; the last block may lack one of them.
pub(super) fn of_turns(first: &ServerReport, second: &ServerReport) -> Vec<ComparisonReport> {
    compare_figures(first, second, of_blocks)
}

/// Compares two servers of different reports.
pub(super) fn of_reports(first: &ServerReport, second: &ServerReport) -> Vec<ComparisonReport> {
    compare_figures(first, second, of_runs)
}

type Method = fn(&ServerReport, &ServerReport) -> Vec<ComparisonReport>;

/// Compares two servers with several runs by `method`. Without the same statuses there is no winner.
fn compare_figures(
    first: &ServerReport,
    second: &ServerReport,
    method: Method,
) -> Vec<ComparisonReport> {
    let mut figures = match first.blocks.len().min(second.blocks.len()) {
        1 => of_single_runs(first, second),
        _ => method(first, second),
    };
    if !answered_alike(first, second) {
        for figure in &mut figures {
            // Different statuses are different work.
            figure.verdict = UNLIKE.to_owned();
            figure.runs_needed = None;
        }
    }
    figures
}

/// By the ratios within blocks.
fn of_blocks(first: &ServerReport, second: &ServerReport) -> Vec<ComparisonReport> {
    let figures = FIGURES.iter().filter_map(|(figure, more, value)| {
        let pairs = first.blocks.iter().zip(&second.blocks);
        let pairs = pairs.filter_map(|(own, other)| value(own).zip(value(other)));
        let (own, other): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let found = stats::paired(&own, &other)?;
        Some(compared(first, second, figure, *more, found))
    });
    figures.collect()
}

/// By the runs of each, which were measured apart.
fn of_runs(first: &ServerReport, second: &ServerReport) -> Vec<ComparisonReport> {
    let figures = FIGURES.iter().filter_map(|(figure, more, value)| {
        let of = |server: &ServerReport| -> Vec<f64> {
            server.blocks.iter().filter_map(value).collect()
        };
        let found = stats::apart(&of(first), &of(second))?;
        Some(compared(first, second, figure, *more, found))
    });
    figures.collect()
}

fn compared(
    first: &ServerReport,
    second: &ServerReport,
    figure: &str,
    more_is_better: bool,
    found: Comparison,
) -> ComparisonReport {
    let verdict = match (found.differs, found.ratio.value > 1.0) {
        (false, _) => NEITHER,
        (true, more) if more == more_is_better => SECOND,
        (true, _) => FIRST,
    };
    ComparisonReport {
        figure: figure.to_owned(),
        first: first.name.clone(),
        second: second.name.clone(),
        ratio: found.ratio.into(),
        verdict: verdict.to_owned(),
        runs_needed: found.needed,
    }
}

/// Ratios of two servers if one had a single run. Parts of a run are no repetitions, so there is no interval and no winner.
fn of_single_runs(first: &ServerReport, second: &ServerReport) -> Vec<ComparisonReport> {
    let figures = FIGURES.iter().filter_map(|(figure, _, value)| {
        let of = |server: &ServerReport| {
            let values: Vec<f64> = server.blocks.iter().filter_map(value).collect();
            stats::mean(&values, stats::VERDICT_LEVEL)
        };
        let (own, other) = (of(first)?, of(second)?);
        let ratio = other.value / own.value;
        ratio.is_finite().then(|| ComparisonReport {
            figure: (*figure).to_owned(),
            first: first.name.clone(),
            second: second.name.clone(),
            ratio: Figure {
                value: ratio,
                low: None,
                high: None,
                n: own.n.min(other.n),
            },
            verdict: SINGLE.to_owned(),
            runs_needed: None,
        })
    });
    figures.collect()
}

/// Whether two servers answered with the same statuses, in shares that differ by at most [`SHARE_MOST`].
pub(super) fn answered_alike(first: &ServerReport, second: &ServerReport) -> bool {
    let share = |server: &ServerReport, status: &String| {
        let times = server.status_codes.get(status).copied().unwrap_or(0);
        times as f64 / server.done.max(1) as f64
    };
    // Reports of earlier versions have no statuses one by one.
    let is_known = |server: &ServerReport| server.done == 0 || !server.status_codes.is_empty();
    let mut all = first.status_codes.keys().chain(second.status_codes.keys());
    !(is_known(first) && is_known(second))
        || all.all(|status| (share(first, status) - share(second, status)).abs() <= SHARE_MOST)
}

/// The share of responses that may have other statuses.
const SHARE_MOST: f64 = 0.01;
