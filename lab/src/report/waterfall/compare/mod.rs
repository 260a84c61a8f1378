//! Visits before and after a change: figures with their intervals, and the rows of both on one time axis.
//!
//! Figures come from [`crate::page::comparison`], with a verdict if each side has several runs. The picture has one run of each
//! side.

mod html;
mod overlay;
mod text;

pub use html::html;
pub use overlay::svg;
pub use text::text;

use crate::page::comparison::{FigureComparison, VisitComparison};
use crate::stats::{Comparison, Estimate};

use super::summary;

/// A figure of both sides as text.
struct Line {
    name: &'static str,
    before: String,
    after: String,
    change: String,
    verdict: Option<String>,
}

/// The figures that say something.
fn lines(found: &VisitComparison) -> Vec<Line> {
    let is_nought = |side: Option<Estimate>| side.is_none_or(|side| side.value == 0.0);
    let is_telling = |one: &&FigureComparison| !is_nought(one.before) || !is_nought(one.after);
    let figures = found.figures.iter().filter(is_telling);
    figures
        .map(|one| {
            let side = |side: Option<Estimate>| {
                summary::text_or_dash(&one.figure, side.map(|side| side.value))
            };
            let both = one.before.zip(one.after);
            let change = both.map(|(from, to)| summary::change(&one.figure, from.value, to.value));
            Line {
                name: one.figure.title,
                before: side(one.before),
                after: side(one.after),
                change: change.unwrap_or_else(|| "-".to_owned()),
                verdict: one.ratio.map(verdict),
            }
        })
        .collect()
}

/// `-12.0 % (-14.1 % to -9.8 %, n=5): differs`.
fn verdict(found: Comparison) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let ratio = found.ratio;
    let verdict = match (found.differs, found.needed) {
        (true, _) => "differs".to_owned(),
        (false, Some(runs)) => format!("no difference seen, about {runs} runs would be needed"),
        (false, None) => "no difference seen".to_owned(),
    };
    let (low, high) = (percent(ratio.low), percent(ratio.high));
    format!(
        "{} ({low} to {high}, n={}): {verdict}",
        percent(ratio.value),
        ratio.n
    )
}

/// How sure the figures are, in a sentence.
fn sureness(lines: &[Line]) -> &'static str {
    match lines.iter().any(|line| line.verdict.is_some()) {
        true => {
            "Figures are means over runs; ratios have 99 % confidence intervals (Welch's t test on logarithms)."
        }
        false => {
            "A side with one run has no interval: differences may be chance, so there is no verdict."
        }
    }
}
