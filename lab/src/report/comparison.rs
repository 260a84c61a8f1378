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
    /// `second is better`, `first is better` or `no difference seen`.
    pub verdict: String,
    /// Where none was seen: about how many runs of each would be needed for a difference as large as the one measured.
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

type Of = fn(&Block) -> Option<f64>;

/// The figures that are compared, and whether more is better.
const FIGURES: [(&str, bool, Of); 4] = [
    ("rate", true, |block| Some(block.rate)),
    ("mean_ms", false, |block| Some(block.mean_ms)),
    ("p99_ms", false, |block| Some(block.p99_ms)),
    ("server_cpu_us", false, |block| block.server_cpu_us),
];

/// Compares two servers that took turns in blocks; the last block may lack one of them.
pub(super) fn of_blocks(first: &ServerReport, second: &ServerReport) -> Vec<ComparisonReport> {
    let figures = FIGURES.iter().filter_map(|(figure, more, value)| {
        let pairs = first.blocks.iter().zip(&second.blocks);
        let pairs = pairs.filter_map(|(own, other)| value(own).zip(value(other)));
        let (own, other): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let found = stats::paired(&own, &other)?;
        Some(compared(first, second, figure, *more, found))
    });
    figures.collect()
}

/// Compares two servers that were measured apart.
pub(super) fn of_runs(first: &ServerReport, second: &ServerReport) -> Vec<ComparisonReport> {
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

/// Single runs have pieces alone, which have the rate.
pub(super) fn of_pieces(first: &ServerReport, second: &ServerReport) -> Vec<ComparisonReport> {
    let found = stats::apart(&first.rates, &second.rates);
    let figure = found.map(|found| compared(first, second, "rate", true, found));
    figure.into_iter().collect()
}
