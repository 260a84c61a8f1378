//! Lines over time.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::axis::Scale;
use super::{COLOURS, LEFT, RIGHT, axis, picture, px, swatch};
use crate::report::visible;

/// A line with its name.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Series {
    /// Name in the legend.
    pub(in crate::web) name: String,
    /// Values, one for each time of the chart; `None` interrupts the line.
    pub(in crate::web) values: Vec<Option<f64>>,
}

/// Lines over time.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Lines {
    /// Begin and end of the axis, Unix seconds.
    pub(in crate::web) period: (u64, u64),
    /// Times of the values, Unix seconds, in order.
    pub(in crate::web) times: Vec<u64>,
    /// At most [`SERIES_MAX`].
    pub(in crate::web) series: Vec<Series>,
    pub(in crate::web) scale: Scale,
    /// Format behind the values, such as `ms`.
    pub(in crate::web) unit: &'static str,
}

impl Lines {
    /// Returns the chart with its legend. The figures are in an attribute too, from which a script draws them.
    pub(super) fn markup(&self, title: &str) -> Markup {
        let series = &self.series[..self.series.len().min(SERIES_MAX)];
        let values = series.iter().flat_map(|one| one.values.iter().flatten());
        let most = values.copied().fold(0.0, f64::max);
        let (_, end) = axis::steps(most, self.scale);
        let y = |value: f64| BOTTOM - value.clamp(0.0, end) / end * (BOTTOM - TOP);
        let (from, to) = self.period;
        let length = to.saturating_sub(from).max(1) as f64;
        let x = |at: u64| LEFT + at.saturating_sub(from) as f64 / length * (RIGHT - LEFT);
        let content = html! {
            (axis::vertical(most, self.scale, &y))
            (axis::times(from, to, BOTTOM, &x))
            @for (n, one) in series.iter().enumerate() {
                @let (lines, points) = runs(&self.times, &one.values, &x, &y);
                @if !lines.is_empty() {
                    path class={ "line s" (n) } fill="none" stroke=(COLOURS[n]) stroke-width="1.5"
                        stroke-linejoin="round" d=(lines) {}
                }
                @for (x, y) in points { circle class={ "dot s" (n) } fill=(COLOURS[n]) cx=(x) cy=(y) r="2" {} }
            }
        };
        html! {
            div .plot data-chart=(self.data(series)) {
                div .still {
                    (picture(title, HEIGHT, &content))
                    @if series.len() > 1 {
                        ul .legend {
                            @for (n, one) in series.iter().enumerate() { li { (swatch(n)) (visible(&one.name)) } }
                        }
                    }
                }
            }
        }
    }

    /// Figures for a script.
    fn data(&self, series: &[Series]) -> String {
        let rounded = |value: &Option<f64>| value.map(|value| (value * 1000.0).round() / 1000.0);
        let one = |series: &Series| -> Value {
            let values: Vec<_> = series.values.iter().map(rounded).collect();
            json!({ "name": visible(&series.name), "values": values })
        };
        let all: Vec<Value> = series.iter().map(one).collect();
        let kind = match self.scale {
            Scale::Number => "number",
            Scale::Bytes => "bytes",
        };
        json!({ "from": self.period.0, "to": self.period.1, "times": self.times, "series": all,
            "unit": self.unit, "scale": kind })
        .to_string()
    }
}

/// Returns the path of all runs of values, and single values as points.
fn runs(
    times: &[u64],
    values: &[Option<f64>],
    x: &dyn Fn(u64) -> f64,
    y: &dyn Fn(f64) -> f64,
) -> (String, Vec<(f64, f64)>) {
    let (mut path, mut points) = (String::new(), Vec::new());
    let mut run: Vec<(f64, f64)> = Vec::new();
    let ends = [(&0, &None)];
    for (at, value) in times.iter().zip(values).chain(ends) {
        if let Some(value) = value {
            run.push((px(x(*at)), px(y(*value))));
            continue;
        }
        match run[..] {
            [] => {}
            [single] => points.push(single),
            _ => {
                for (n, (x, y)) in run.iter().enumerate() {
                    let command = if n == 0 { 'M' } else { 'L' };
                    path.push_str(&format!("{command}{x} {y}"));
                }
            }
        }
        run.clear();
    }
    (path, points)
}

/// Lines of a chart.
pub(in crate::web) const SERIES_MAX: usize = COLOURS.len();
const HEIGHT: f64 = 190.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 164.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_interrupted_where_values_are_missing() {
        let values = [
            Some(1.0),
            Some(2.0),
            None,
            Some(3.0),
            None,
            None,
            Some(4.0),
            Some(5.0),
        ];
        let times: Vec<u64> = (0..8).collect();
        let (path, points) = runs(&times, &values, &|at| at as f64, &|value| value);
        assert_eq!(path, "M0 1L1 2M6 4L7 5");
        assert_eq!(points, [(3.0, 3.0)]);
    }
}
