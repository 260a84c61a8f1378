//! Figures of visits as text: of one view, of several runs, before and after.

use crate::page::comparison::{FIGURES, Figure};
use crate::stats;

use super::figures::{bytes, ms};
use super::rows::Drawing;

/// The values of a visit in the order of [`FIGURES`].
pub(super) fn values(drawing: &Drawing<'_>) -> Vec<Option<f64>> {
    let of = |figure: &Figure| figure.of(drawing.visit, &drawing.analysis);
    FIGURES.iter().map(of).collect()
}

/// Whether a figure says something in any of several visits: what is nought in all of them does not, but for stalls.
pub(super) fn is_telling(visits: &[&[Option<f64>]], n: usize) -> bool {
    let mut values = visits.iter().filter_map(|values| values[n]);
    values
        .any(|value| value != 0.0 || FIGURES[n].name == "stalls" || FIGURES[n].name == "staircase")
}

/// A value with its unit.
pub(super) fn text(figure: &Figure, value: f64) -> String {
    match figure.unit {
        "ms" => ms(value),
        // Sums of bytes are whole; the mean of some is rounded.
        "bytes" => bytes(value.max(0.0).round() as u64),
        // Nought below nought, such as an empty sum, has no sign.
        _ if value.fract() == 0.0 => format!("{:.0}", value + 0.0),
        _ => format!("{value:.2}"),
    }
}

/// A value with its unit, or a dash.
pub(super) fn text_or_dash(figure: &Figure, value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| text(figure, value))
}

/// Several runs in a line: of times the mean with its interval, `mean 12 ms (11 ms to 13 ms, n=5)`, of other figures the range,
/// where runs differ; `None` below two runs.
pub(super) fn of_runs(figure: &Figure, values: &[f64]) -> Option<String> {
    let found = stats::mean(values, LEVEL).filter(|found| found.n > 1)?;
    if figure.unit == "ms" {
        let (low, high) = (ms(found.low), ms(found.high));
        return Some(format!(
            "mean {} ({low} to {high}, n={})",
            ms(found.value),
            found.n
        ));
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (lowest, highest) = (text(figure, low), text(figure, high));
    (lowest != highest).then(|| format!("{lowest} to {highest} in {} runs", found.n))
}

/// `-120 ms (-40 %)`; without a share where there was nothing before.
pub(super) fn change(figure: &Figure, from: f64, to: f64) -> String {
    let by = to - from;
    let sign = if by < 0.0 { "-" } else { "+" };
    let share = by / from * 100.0;
    let text = format!("{sign}{}", text(figure, by.abs()));
    match share.is_finite() && by != 0.0 {
        true => format!("{text} ({share:+.0} %)"),
        false => text,
    }
}

/// The level of intervals.
const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str) -> &'static Figure {
        let found = FIGURES.iter().find(|figure| figure.name == name);
        found.expect("there is such a figure")
    }

    #[test]
    fn means_have_intervals_from_two_runs_on() {
        let load = figure("load_ms");
        assert_eq!(of_runs(load, &[]), None);
        assert_eq!(of_runs(load, &[10.0]), None);
        let four = of_runs(load, &[90.0, 110.0, 90.0, 110.0]);
        assert_eq!(four.as_deref(), Some("mean 100 ms (82 ms to 118 ms, n=4)"));
        let two = of_runs(figure("requests"), &[1.0, 2.0]);
        assert_eq!(two.as_deref(), Some("1 to 2 in 2 runs"));
        assert_eq!(of_runs(figure("requests"), &[2.0, 2.0]), None);
        let close = of_runs(figure("bytes"), &[30_472.0, 30_490.0]);
        assert_eq!(close, None, "no difference is seen in their texts");
    }

    #[test]
    fn changes_have_their_sign() {
        assert_eq!(change(figure("load_ms"), 24.0, 12.0), "-12 ms (-50 %)");
        assert_eq!(change(figure("bytes"), 0.0, 1_500.0), "+1.5 kB");
        assert_eq!(change(figure("staircase"), 0.25, 0.25), "+0");
        assert_eq!(change(figure("staircase"), 0.5, 0.25), "-0.25 (-50 %)");
    }
}
