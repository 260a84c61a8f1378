//! Changes over time with their intervals: a line in a band for each arm, around 0.

use maud::{Markup, html};

use super::{COLOURS, GRID, LEFT, RIGHT, axis, picture, px, swatch};
use crate::report::visible;

/// A change over time with its interval.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Band {
    /// Name in the legend.
    pub(in crate::web) name: String,
    /// Low end, change and high end, percent, one for each time of the chart. Ends may be infinite; `None` interrupts the band.
    pub(in crate::web) values: Vec<Option<[f64; 3]>>,
}

/// Bands over time.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Bands {
    /// Begin and end of the axis, Unix seconds.
    pub(in crate::web) period: (u64, u64),
    /// Times of the values, Unix seconds, in order.
    pub(in crate::web) times: Vec<u64>,
    /// At most one for each colour is drawn.
    pub(in crate::web) bands: Vec<Band>,
}

impl Bands {
    pub(super) fn markup(&self, title: &str) -> Markup {
        let bands = &self.bands[..self.bands.len().min(COLOURS.len())];
        if bands
            .iter()
            .all(|band| band.values.iter().flatten().next().is_none())
        {
            return html! { p .empty { "No intervals yet." } };
        }
        let reach = self.reach(bands);
        let (step, end) = axis::steps(reach, axis::Scale::Number);
        let middle = (TOP + BOTTOM) / 2.0;
        // Early intervals are much wider than later ones, and are cut at the edge of the picture.
        let y = |value: f64| middle - value.clamp(-end, end) / end * (BOTTOM - TOP) / 2.0;
        let (from, to) = self.period;
        let length = to.saturating_sub(from).max(1) as f64;
        let x = |at: u64| {
            LEFT + at.clamp(from, to.max(from)).saturating_sub(from) as f64 / length
                * (RIGHT - LEFT)
        };
        let count = (end / step).round() as i32;
        let content = html! {
            @for n in -count..=count {
                @let at = px(y(f64::from(n) * step));
                line class=(if n == 0 { "zero" } else { "grid" }) stroke=(if n == 0 { ZERO } else { GRID }) x1=(LEFT) x2=(RIGHT) y1=(at) y2=(at) {}
                text x=(LEFT - 6.0) y=(at + 4.0) text-anchor="end" { (axis::signed(f64::from(n) * step)) }
            }
            (axis::times(from, to, BOTTOM, &x))
            @for (n, band) in bands.iter().enumerate() {
                @for run in runs(&self.times, &band.values) {
                    @if run.len() > 1 {
                        path class={ "band s" (n) } fill=(COLOURS[n]) fill-opacity="0.2" d=(area(&run, &x, &y)) {}
                        path class={ "line s" (n) } fill="none" stroke=(COLOURS[n]) stroke-width="1.5" stroke-linejoin="round" d=(line(&run, &x, &y)) {}
                    } @else {
                        @let (at, [low, value, high]) = run[0];
                        line class={ "line s" (n) } stroke=(COLOURS[n]) x1=(px(x(at))) x2=(px(x(at))) y1=(px(y(low))) y2=(px(y(high))) {}
                        circle class={ "dot s" (n) } fill=(COLOURS[n]) cx=(px(x(at))) cy=(px(y(value))) r="3" {}
                    }
                }
            }
        };
        html! {
            div .plot {
                (picture(title, HEIGHT, &content))
                @if bands.len() > 1 {
                    ul .legend {
                        @for (n, band) in bands.iter().enumerate() { li { (swatch(n)) (visible(&band.name)) } }
                    }
                }
            }
        }
    }

    /// Returns the largest size that the axis must have, percent: that of the intervals of the later half.
    fn reach(&self, bands: &[Band]) -> f64 {
        let later = bands.iter().flat_map(|band| {
            let found: Vec<[f64; 3]> = band.values.iter().flatten().copied().collect();
            let from = found.len() / 2;
            found.into_iter().skip(from)
        });
        let sizes = later
            .flatten()
            .map(f64::abs)
            .filter(|size| size.is_finite());
        // Relative changes above this size would hide all others.
        sizes.fold(0.0, f64::max).clamp(LEAST, MOST)
    }
}

/// Changes without a gap.
type Run = Vec<(u64, [f64; 3])>;

/// Returns the parts of a band without a gap.
fn runs(times: &[u64], values: &[Option<[f64; 3]>]) -> Vec<Run> {
    let mut found: Vec<Run> = vec![Run::new()];
    for (at, value) in times.iter().zip(values) {
        let value = value.filter(|value| !value.iter().any(|one| one.is_nan()));
        match (value, found.last_mut()) {
            (Some(value), Some(run)) => run.push((*at, value)),
            _ => found.push(Run::new()),
        }
    }
    found.retain(|run| !run.is_empty());
    found
}

fn line(run: &Run, x: &dyn Fn(u64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let points = run.iter().map(|(at, [_, value, _])| (x(*at), y(*value)));
    path(points)
}

/// Returns the outline: low ends forward, high ends back.
fn area(run: &Run, x: &dyn Fn(u64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let low = run.iter().map(|(at, [low, ..])| (x(*at), y(*low)));
    let high = run
        .iter()
        .rev()
        .map(|(at, [_, _, high])| (x(*at), y(*high)));
    path(low.chain(high)) + "Z"
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut out = String::new();
    for (n, (x, y)) in points.enumerate() {
        let command = if n == 0 { 'M' } else { 'L' };
        out.push_str(&format!("{command}{} {}", px(x), px(y)));
    }
    out
}

const ZERO: &str = "#57606a";
/// Least and largest reach of the axis, percent.
const LEAST: f64 = 0.1;
const MOST: f64 = 1000.0;
const HEIGHT: f64 = 210.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 184.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: Vec<Option<[f64; 3]>>) -> String {
        let times = (0..values.len() as u64).map(|n| n * 3600).collect();
        let bands = vec![Band {
            name: "b<".to_owned(),
            values,
        }];
        Bands {
            period: (0, 7200),
            times,
            bands,
        }
        .markup("t")
        .into_string()
    }

    #[test]
    fn bands_are_interrupted_by_missing_values() {
        let one = Some([-1.0, 0.5, 2.0]);
        let found = drawn(vec![one, one, None, one]);
        assert_eq!(found.matches("class=\"band s0\"").count(), 1);
        assert_eq!(found.matches("<circle").count(), 1);
        assert!(drawn(vec![None, None]).contains("No intervals yet"));
        assert!(drawn(Vec::new()).contains("No intervals yet"));
    }

    #[test]
    fn extreme_intervals_are_drawn_within_the_picture() {
        let infinite = f64::INFINITY;
        for value in [
            [-infinite, 0.0, infinite],
            [-1e300, 1e300, infinite],
            [0.0, 0.0, 0.0],
            [f64::NAN, f64::NAN, f64::NAN],
        ] {
            let found = drawn(vec![Some(value), Some(value), Some(value)]);
            assert!(!found.contains("inf") && !found.contains("NaN"), "{found}");
        }
        // The first interval is wide, and does not set the axis.
        let found = drawn(vec![
            Some([-90.0, 0.0, 90.0]),
            Some([-2.0, 0.0, 2.0]),
            Some([-1.0, 0.0, 1.0]),
        ]);
        assert!(
            found.contains(">+2 %</text>") && !found.contains(">+50 %"),
            "{found}"
        );
    }
}
