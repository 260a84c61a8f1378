//! Figures of visits as text: of one view, of several runs, before and after.

use crate::page::{AnalysedVisit, FIGURES, Figure, Runs};

use super::figures::{bytes, ms};

/// The values of a visit in the order of [`FIGURES`].
pub(super) fn values(run: &AnalysedVisit<'_>) -> Vec<Option<f64>> {
    let of = |figure: &Figure| figure.of(run.visit, &run.analysis);
    FIGURES.iter().map(of).collect()
}

/// Whether to show a figure of several visits: it is not zero in all of them, or it is of stalls or the staircase, for which zero
/// is good news.
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

/// Text of a figure in which runs differ: of times the mean with its interval,
/// `mean 12.3 ms (11.9 to 12.7, n=5)`, of other figures the range.
pub(super) fn of_runs(figure: &Figure, runs: &Runs<'_>) -> Option<String> {
    let values = runs.values(figure);
    let found = runs.mean(figure)?;
    if values.iter().all(|value| *value == values[0]) {
        return None;
    }
    if figure.unit == "ms" {
        let (value, low, high, n) = (found.value, found.low, found.high, found.n);
        return Some(format!("mean {value:.1} ms ({low:.1} to {high:.1}, n={n})"));
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (lowest, highest) = (text(figure, low), text(figure, high));
    (lowest != highest).then(|| format!("{lowest} to {highest} in {} runs", found.n))
}

/// `-120 ms (-40 %)`; without a share if the old value is zero.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Resource, Visit};

    fn figure(name: &str) -> &'static Figure {
        let found = FIGURES.iter().find(|figure| figure.name == name);
        found.expect("there is such a figure")
    }

    /// The text of a figure of runs, made of the value of each.
    fn text_of(name: &str, runs: &[u32], visit: fn(u32) -> Visit) -> Option<String> {
        let visits: Vec<Visit> = runs.iter().copied().map(visit).collect();
        of_runs(figure(name), &Runs::of(&visits)?)
    }

    #[test]
    fn means_have_intervals_from_two_runs_on() {
        let load = |runs: &[u32]| {
            text_of("load_ms", runs, |load_ms| {
                let mut visit = Visit::default();
                visit.timings.load_ms = Some(load_ms.into());
                visit
            })
        };
        assert_eq!(
            (load(&[]), load(&[10]), load(&[10, 10])),
            (None, None, None)
        );
        let four = load(&[90, 110, 90, 110]);
        assert_eq!(four.as_deref(), Some("mean 100.0 ms (81.6 to 118.4, n=4)"));
    }

    #[test]
    fn numbers_have_their_range_where_it_is_seen() {
        let bytes = |runs: &[u32]| {
            text_of("bytes", runs, |bytes| Visit {
                resources: vec![Resource {
                    body_bytes: Some(bytes.into()),
                    ..Resource::default()
                }],
                ..Visit::default()
            })
        };
        assert_eq!(bytes(&[1, 2]).as_deref(), Some("1 B to 2 B in 2 runs"));
        let close = bytes(&[30_472, 30_490]);
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
