//! Median, p80 and p95 of groups below each other, on one axis.

use maud::{Markup, html};

use super::axis::{self, Scale};
use super::{COLOURS, GRID, LEFT, RIGHT, picture, px};
use crate::report::bounded;
use crate::web::table::real;

/// A group.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Range {
    pub(in crate::web) name: String,
    /// Median, p80 and p95, ms.
    pub(in crate::web) ms: [f64; 3],
}

/// Groups below each other.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::web) struct Ranges {
    /// The first [`ROWS_MAX`] are drawn.
    pub(in crate::web) rows: Vec<Range>,
}

impl Ranges {
    pub(super) fn markup(&self, title: &str) -> Markup {
        let rows = &self.rows[..self.rows.len().min(ROWS_MAX)];
        if rows.is_empty() {
            return html! { p .empty { "No times in this period." } };
        }
        let most = rows.iter().flat_map(|row| row.ms).fold(0.0, f64::max);
        let (step, end) = axis::steps(most, Scale::Number);
        let x = |ms: f64| NAMES + ms.clamp(0.0, end) / end * (RIGHT - 12.0 - NAMES);
        let bottom = TOP + rows.len() as f64 * ROW;
        let content = html! {
            @for n in 0..=(end / step).round() as u32 {
                @let value = f64::from(n) * step;
                line .grid stroke=(GRID) x1=(px(x(value))) x2=(px(x(value))) y1=(TOP) y2=(bottom) {}
                text x=(px(x(value))) y=(bottom + 16.0) text-anchor="middle" { (axis::label(value, Scale::Number)) }
            }
            @for (n, row) in rows.iter().enumerate() {
                @let y = TOP + (n as f64 + 0.5) * ROW;
                @let [median, p80, p95] = row.ms;
                text .name x=(NAMES - 8.0) y=(y + 4.0) text-anchor="end" { (bounded(&row.name, NAME_MOST)) }
                g {
                    title { (bounded(&row.name, 100)) ": median " (real(median)) ", p80 " (real(p80)) ", p95 " (real(p95)) " ms" }
                    line .range stroke=(COLOURS[0]) stroke-width="2" x1=(px(x(median))) x2=(px(x(p95))) y1=(y) y2=(y) {}
                    circle .dot .s0 fill=(COLOURS[0]) cx=(px(x(median))) cy=(y) r="4.5" {}
                    path .range fill="none" stroke=(COLOURS[0]) stroke-width="2" d={ "M" (px(x(p80))) " " (y - 5.0) "v10" } {}
                    path .range fill="none" stroke=(COLOURS[0]) stroke-width="2" d={ "M" (px(x(p95))) " " (y - 3.0) "v6" } {}
                }
            }
        };
        html! {
            (picture(title, bottom + 24.0, &content))
            p .key {
                "Dot: median; long mark: p80; short mark: p95; ms."
                @if self.rows.len() > rows.len() { " The first " (rows.len()) " of " (self.rows.len()) " are drawn." }
            }
        }
    }
}

/// Groups that are drawn.
pub(in crate::web) const ROWS_MAX: usize = 40;
const NAMES: f64 = LEFT + 112.0;
/// Characters of a name.
const NAME_MOST: usize = 22;
const ROW: f64 = 20.0;
const TOP: f64 = 8.0;
