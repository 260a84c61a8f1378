//! Text of `waterfall`: the drawing of the run in the middle, and figures of all runs with their intervals.

use std::fmt::Write as _;

use lab::page::Visit;
use lab::page::analysis::Analysis;
use lab::page::comparison::FIGURES;
use lab::report::waterfall;
use lab::stats::{self, Estimate};

use super::views::{Views, median};

/// The drawings of all views.
pub(super) fn views(views: &Views) -> String {
    let mut out = String::new();
    let all = [("Cold view", views.cold()), ("Warm view", views.warm())];
    let several = !views.warm().is_empty();
    for (title, visits) in all.iter().filter(|(_, visits)| !visits.is_empty()) {
        if several {
            let _ = writeln!(out, "{}{title}", if out.is_empty() { "" } else { "\n" });
        }
        out.push_str(&waterfall::text(visits[median(visits)]));
        out.push_str(&runs(visits));
    }
    out
}

/// Means of several runs; nothing of a single one.
fn runs(visits: &[&Visit]) -> String {
    if visits.len() < 2 {
        return String::new();
    }
    let (shown, all) = (median(visits) + 1, visits.len());
    let mut out = format!(
        "\nRun {shown} of {all} is shown, whose load is in the middle. Means of what differs, with intervals at 95 %:\n"
    );
    let analyses: Vec<Analysis> = visits.iter().map(|visit| Analysis::of(visit)).collect();
    for figure in &FIGURES {
        let of = visits.iter().zip(&analyses);
        let values: Vec<f64> = of
            .filter_map(|(visit, all)| figure.of(visit, all))
            .collect();
        // What all runs have in common is in the summary of the one that is shown.
        let differs = values.windows(2).any(|pair| pair[0] != pair[1]);
        if let Some(found) = stats::mean(&values, LEVEL).filter(|_| differs) {
            let text = estimate(found, figure.unit);
            let _ = writeln!(out, "  {:<27}{text}", figure.title);
        }
    }
    out
}

/// `12.3 ms (11.9 to 12.7, n=20)`.
fn estimate(found: Estimate, unit: &str) -> String {
    let (value, low, high) = (found.value, found.low, found.high);
    let (n, digits) = (found.n, digits(unit));
    let space = if unit.is_empty() { "" } else { " " };
    format!("{value:.digits$}{space}{unit} ({low:.digits$} to {high:.digits$}, n={n})")
}

/// Digits behind the point.
const fn digits(unit: &str) -> usize {
    match unit.as_bytes() {
        b"bytes" => 0,
        b"ms" => 1,
        _ => 2,
    }
}

/// The level of intervals of means.
const LEVEL: f64 = 0.95;
