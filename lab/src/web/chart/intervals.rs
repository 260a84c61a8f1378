//! Changes with their intervals below each other, on one axis around 0.

use maud::{Markup, html};

use super::axis::{self, Scale};
use super::{COLOURS, GRID, LEFT, RIGHT, picture, px};
use crate::report::bounded;

/// A change with its interval, percent; ends may be infinite.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Interval {
    pub(in crate::web) name: String,
    /// Low end, change, high end.
    pub(in crate::web) values: [f64; 3],
    /// Whether the interval leaves out 0.
    pub(in crate::web) differs: bool,
}

/// Changes below each other.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Intervals {
    /// The first [`ROWS_MAX`] are drawn.
    pub(in crate::web) rows: Vec<Interval>,
}

impl Intervals {
    pub(super) fn markup(&self, title: &str) -> Markup {
        let rows = &self.rows[..self.rows.len().min(ROWS_MAX)];
        if rows.is_empty() {
            return html! { p .empty { "No intervals yet." } };
        }
        let sizes = rows.iter().flat_map(|row| row.values).map(f64::abs);
        let most = sizes
            .filter(|size| size.is_finite())
            .fold(0.0, f64::max)
            .clamp(LEAST, MOST);
        let (step, end) = axis::steps(most, Scale::Number);
        let (left, right) = (NAMES, RIGHT - 16.0);
        let middle = (left + right) / 2.0;
        let x = |value: f64| middle + value.clamp(-end, end) / end * (right - left) / 2.0;
        let bottom = TOP + rows.len() as f64 * ROW;
        // Labels of narrow steps would overlap.
        let count = (end / step).round() as i32;
        let every = if count > 2 { 2 } else { 1 };
        let content = html! {
            @for n in -count..=count {
                @let at = px(x(f64::from(n) * step));
                line class=(if n == 0 { "zero" } else { "grid" }) stroke=(GRID) x1=(at) x2=(at) y1=(TOP) y2=(bottom) {}
                @if n % every == 0 {
                    text x=(at) y=(bottom + 16.0) text-anchor="middle" { (axis::signed(f64::from(n) * step)) }
                }
            }
            @for (n, row) in rows.iter().enumerate() {
                @let y = TOP + (n as f64 + 0.5) * ROW;
                @let [low, value, high] = row.values.map(|value| px(x(value)));
                // A form beside the colour shows a difference.
                @let width = if row.differs { "4" } else { "2" };
                text .name x=(NAMES - 8.0) y=(y + 4.0) text-anchor="end" { (bounded(&row.name, NAME_MOST)) }
                line .range stroke=(COLOURS[0]) stroke-width=(width) x1=(low) x2=(high) y1=(y) y2=(y) {}
                circle .dot .s0 fill=(COLOURS[0]) cx=(value) cy=(y) r=(if row.differs { "5.5" } else { "4" }) {}
            }
        };
        html! {
            (picture(title, bottom + 24.0, &content))
            p .key {
                "Dot: change; line: its interval. Thick: the interval leaves out 0."
                @if self.rows.len() > rows.len() { " The first " (rows.len()) " of " (self.rows.len()) " are drawn." }
            }
        }
    }
}

/// Changes that are drawn.
const ROWS_MAX: usize = 48;
const NAMES: f64 = LEFT + 132.0;
/// Characters of a name.
const NAME_MOST: usize = 26;
const ROW: f64 = 20.0;
const TOP: f64 = 8.0;
/// Least and largest reach of the axis, percent.
const LEAST: f64 = 0.1;
const MOST: f64 = 1000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: [f64; 3]) -> Interval {
        Interval {
            name: "mean, fast".to_owned(),
            values,
            differs: values[0] > 0.0,
        }
    }

    #[test]
    fn all_intervals_are_drawn_within_the_picture() {
        let infinite = f64::INFINITY;
        let rows = [
            [-1.0, 0.0, 1.0],
            [0.5, 1.0, 1.5],
            [-infinite, 0.0, infinite],
            [-1e300, 1e300, infinite],
        ];
        let found = Intervals {
            rows: rows.map(row).to_vec(),
        }
        .markup("t")
        .into_string();
        assert_eq!(found.matches("<circle").count(), 4);
        assert_eq!(found.matches("stroke-width=\"4\"").count(), 1);
        assert!(!found.contains("inf") && !found.contains("NaN"), "{found}");
        let rows = vec![row([0.0; 3]); ROWS_MAX + 1];
        let found = Intervals { rows }.markup("t").into_string();
        assert_eq!(found.matches("<circle").count(), ROWS_MAX);
        assert!(found.contains("The first 48 of 49 are drawn."));
        assert!(
            Intervals { rows: Vec::new() }
                .markup("t")
                .into_string()
                .contains("No intervals yet")
        );
    }
}
