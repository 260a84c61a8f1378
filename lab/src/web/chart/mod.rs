//! Charts as SVG: lines over time, histograms, ranges. They need no script; a script may draw lines again for zooming.
//!
//! Texts of others come into them by templates, which escape. Colours and sizes are in the style sheet, since the policy of
//! the site forbids styles within a page; attributes have the light colours, for programs without the sheet.

mod axis;
mod bands;
mod histogram;
mod intervals;
mod lines;
mod ranges;

use maud::{Markup, html};

use crate::report::visible;

pub(super) use axis::Scale;
pub(super) use bands::{Band, Bands};
pub(super) use histogram::Bars;
pub(super) use intervals::{Interval, Intervals};
pub(super) use lines::{Lines, SERIES_MAX, Series};
pub(super) use ranges::{Range, Ranges};

/// A chart of a view.
#[derive(Clone, Debug)]
pub(super) enum Chart {
    /// Lines over time.
    Lines(Lines),
    /// A histogram of times.
    Bars(Bars),
    /// Percentiles of groups below each other.
    Ranges(Ranges),
    /// Changes over time with their intervals.
    Bands(Bands),
    /// Changes with their intervals below each other.
    Intervals(Intervals),
    /// A picture made elsewhere.
    Picture(Markup),
}

impl Chart {
    /// Returns the chart; `title` is its accessible name.
    pub(super) fn markup(&self, title: &str) -> Markup {
        match self {
            Self::Lines(chart) => chart.markup(title),
            Self::Bars(chart) => chart.markup(title),
            Self::Ranges(chart) => chart.markup(title),
            Self::Bands(chart) => chart.markup(title),
            Self::Intervals(chart) => chart.markup(title),
            Self::Picture(picture) => picture.clone(),
        }
    }
}

/// A picture of a size with its name. Readers of screens get the table below it, too.
fn picture(title: &str, height: f64, content: &Markup) -> Markup {
    // A title may have the name of an arm.
    let title = visible(title);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" .chart viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH)
            height=(height) fill=(SOFT) font-family="system-ui, sans-serif" font-size="12" role="img" aria-label=(title) {
            title { (title) }
            rect .page fill="#fff" width=(WIDTH) height=(height) {}
            (content)
        }
    }
}

/// A piece of a line for a legend: colour and dashes.
fn swatch(n: usize) -> Markup {
    html! {
        svg .swatch viewBox="0 0 24 8" width="24" height="8" aria-hidden="true" {
            line class={ "line s" (n) } stroke=(COLOURS[n]) stroke-width="2" x1="0" x2="24" y1="4" y2="4" {}
        }
    }
}

/// A number of a coordinate, to a tenth of a pixel.
fn px(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Width of all charts, pixels.
const WIDTH: f64 = 640.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 628.0;
const SOFT: &str = "#57606a";
const GRID: &str = "#d0d7de";
/// Colours of series in light: those of `--s0` to `--s5`.
const COLOURS: [&str; 6] = [
    "#0b62c4", "#b3480a", "#1a7f37", "#8250df", "#a40e60", "#6b5900",
];
