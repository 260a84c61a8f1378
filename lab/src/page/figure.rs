//! Figures of a visit as a whole: moments of the page, and sums of its analysis.

use super::analysis::{Analysis, Stall};
use super::resource::Resource;
use super::visit::Visit;

/// A figure of a visit.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name in JSON.
    pub name: &'static str,
    /// Name in reports.
    pub title: &'static str,
    /// Its unit; empty for numbers.
    pub unit: &'static str,
    of: fn(&Visit, &Analysis) -> Option<f64>,
}

impl Figure {
    /// Returns the figure of a visit, if it has one.
    #[must_use]
    pub fn of(&self, visit: &Visit, analysis: &Analysis) -> Option<f64> {
        (self.of)(visit, analysis)
    }
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const fn figure(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    of: fn(&Visit, &Analysis) -> Option<f64>,
) -> Figure {
    Figure {
        name,
        title,
        unit,
        of,
    }
}

/// All figures, in the order of reports: first the moments of [`PageTimings`](super::PageTimings).
pub static FIGURES: [Figure; 17] = [
    figure("first_byte_ms", "first byte", "ms", |visit, _| {
        visit.timings.first_byte_ms
    }),
    figure("first_paint_ms", "first paint", "ms", |visit, _| {
        visit.timings.first_paint_ms
    }),
    figure(
        "first_contentful_paint_ms",
        "first contentful paint",
        "ms",
        |visit, _| visit.timings.first_contentful_paint_ms,
    ),
    figure(
        "largest_contentful_paint_ms",
        "largest contentful paint",
        "ms",
        |visit, _| visit.timings.largest_contentful_paint_ms,
    ),
    figure(
        "dom_content_loaded_ms",
        "DOM content loaded",
        "ms",
        |visit, _| visit.timings.dom_content_loaded_ms,
    ),
    figure("load_ms", "load", "ms", |visit, _| visit.timings.load_ms),
    figure("last_byte_ms", "last byte", "ms", |visit, _| {
        visit
            .resources
            .iter()
            .map(Resource::end_ms)
            .max_by(f64::total_cmp)
    }),
    figure("requests", "requests", "", |_, all| {
        Some(all.total.requests as f64)
    }),
    figure("from_cache", "from the cache", "", |_, all| {
        Some(all.total.from_cache as f64)
    }),
    figure("failed", "failed", "", |_, all| {
        Some(all.total.failed as f64)
    }),
    figure("bytes", "transferred", "bytes", |_, all| {
        // If no size is known, a sum of 0 is no figure.
        let is_known = all.total.bytes > 0 || all.total.unknown_bytes == 0;
        is_known.then_some(all.total.bytes as f64)
    }),
    figure("content_bytes", "content", "bytes", |_, all| {
        Some(all.total.content_bytes as f64)
    }),
    figure("connections", "connections", "", |_, all| {
        Some(all.connections.len() as f64)
    }),
    figure("staircase", "staircase score", "", |_, all| {
        all.staircase.score()
    }),
    figure("stalls", "stalls", "", |_, all| {
        Some(all.stalls.len() as f64)
    }),
    figure("stalled_ms", "stalled", "ms", |_, all| {
        let lengths = all.stalls.iter().map(Stall::length_ms);
        // The sum of no numbers is -0.
        Some(lengths.fold(0.0, |sum, ms| sum + ms))
    }),
    figure("round_trip_ms", "round trip", "ms", |visit, _| {
        visit.round_trip_ms
    }),
];
