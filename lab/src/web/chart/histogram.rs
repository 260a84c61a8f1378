//! Histograms of times on a logarithmic axis, with marks of quantiles.

use maud::{Markup, html};
use store::{Histogram, bounds_of};

use super::axis::{self, Scale};
use super::{COLOURS, GRID, LEFT, RIGHT, picture, px};
use crate::web::table::real;

/// A histogram with its quantiles.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Bars {
    /// Times of the histogram, microseconds.
    pub(in crate::web) histogram: Histogram,
}

/// A range of times with the number of times in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::web) struct Bar {
    /// Least time and the least time above the range, ms.
    pub(in crate::web) low_ms: f64,
    pub(in crate::web) high_ms: f64,
    pub(in crate::web) count: u64,
}

impl Bars {
    /// Returns ranges of a quarter of a doubling from the first time to the last, empty ones too.
    pub(in crate::web) fn bars(&self) -> Vec<Bar> {
        let cells: Vec<_> = self.histogram.cells().collect();
        let (Some((first, _)), Some((last, _))) = (cells.first(), cells.last()) else {
            return Vec::new();
        };
        let (first, last) = (first / JOINED, last / JOINED);
        let mut bars: Vec<Bar> = (first..=last)
            .map(|n| Bar {
                low_ms: bounds_of(n * JOINED).0 as f64 / 1000.0,
                high_ms: bounds_of(n * JOINED + JOINED - 1).1 as f64 / 1000.0,
                count: 0,
            })
            .collect();
        for (bucket, cell) in cells {
            bars[usize::from(bucket / JOINED - first)].count += cell.count;
        }
        bars
    }

    /// Returns the quantiles that are marked, with their names, ms.
    pub(in crate::web) fn marks(&self) -> Vec<(&'static str, f64)> {
        let all = [("median", 0.5), ("p80", 0.8), ("p95", 0.95)];
        let found = all.map(|(name, q)| Some((name, self.histogram.quantile_us(q)? / 1000.0)));
        found.into_iter().flatten().collect()
    }

    pub(super) fn markup(&self, title: &str) -> Markup {
        let bars = self.bars();
        let (Some(first), Some(last)) = (bars.first(), bars.last()) else {
            return html! { p .empty { "No times in this period." } };
        };
        // A logarithm needs a least time above 0.
        let low = first.low_ms.max(LEAST_MS);
        let high = last.high_ms.max(low * 1.1);
        let span = (high / low).ln();
        let x = |ms: f64| LEFT + (ms.max(low) / low).ln() / span * (RIGHT - LEFT);
        let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0) as f64;
        let (_, end) = axis::steps(most, Scale::Number);
        let y = |count: f64| BOTTOM - count / end * (BOTTOM - TOP);
        let content = html! {
            (axis::vertical(most, Scale::Number, &y))
            @for bar in bars.iter().filter(|bar| bar.count > 0) {
                @let (left, right) = (x(bar.low_ms), x(bar.high_ms));
                rect .bar fill=(COLOURS[0]) x=(px(left + 0.5)) y=(px(y(bar.count as f64)))
                    width=(px((right - left - 1.0).max(0.5))) height=(px(BOTTOM - y(bar.count as f64))) {
                    title { (real(bar.low_ms)) " to " (real(bar.high_ms)) " ms: " (bar.count) }
                }
            }
            @for at in axis::decades(low, high) {
                line .tick stroke=(GRID) x1=(px(x(at))) x2=(px(x(at))) y1=(BOTTOM) y2=(BOTTOM + 4.0) {}
                text x=(px(x(at).clamp(LEFT, RIGHT - 8.0))) y=(BOTTOM + 17.0) text-anchor="middle" { (axis::label(at, Scale::Number)) }
            }
            text x=(RIGHT) y=(BOTTOM + 31.0) text-anchor="end" { "ms, logarithmic" }
            // Labels of near quantiles are below each other.
            @for (n, (name, ms)) in self.marks().iter().enumerate() {
                @let at = px(x(*ms));
                @let anchor = if at > RIGHT - 110.0 { "end" } else { "start" };
                @let place = if anchor == "end" { at - 4.0 } else { at + 4.0 };
                line .mark stroke=(COLOURS[1]) x1=(at) x2=(at) y1=(MARKS) y2=(BOTTOM) stroke-dasharray="4 3" {}
                text .marked fill=(COLOURS[1]) x=(px(place)) y=(MARKS + 10.0 + 13.0 * n as f64) text-anchor=(anchor) { (name) " " (real(*ms)) }
            }
        };
        picture(title, HEIGHT, &content)
    }
}

/// Buckets of the store in a bar: a doubling has 16 buckets and 4 bars.
const JOINED: u16 = 4;
/// Begin of the axis if there are times of 0 ms.
const LEAST_MS: f64 = 0.01;
const HEIGHT: f64 = 240.0;
/// Top of the marks; the bars begin below their labels.
const MARKS: f64 = 4.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 200.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_all_times_once() {
        let mut histogram = Histogram::default();
        for us in [0, 1, 20, 999, 5000, 5001, 80_000, 9_000_000] {
            histogram.add(us);
        }
        let bars = Bars { histogram };
        let all = bars.bars();
        assert_eq!(all.iter().map(|bar| bar.count).sum::<u64>(), 8);
        for pair in all.windows(2) {
            assert!((pair[0].high_ms - pair[1].low_ms).abs() < 1e-9);
        }
        assert_eq!(bars.marks().len(), 3);
        let empty = Bars {
            histogram: Histogram::default(),
        };
        assert!(empty.bars().is_empty() && empty.marks().is_empty());
    }

    #[test]
    fn extreme_times_are_drawn() {
        for times in [vec![0], vec![u64::MAX], vec![0, u64::MAX], vec![1]] {
            let mut histogram = Histogram::default();
            times.iter().for_each(|us| histogram.add(*us));
            let drawn = Bars { histogram }.markup("t").into_string();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
    }
}
