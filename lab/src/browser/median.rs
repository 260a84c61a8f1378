//! Several visits: the one in the middle, and figures of all.

use crate::page::{Resource, Visit};
use crate::stats::{Estimate, mean};

/// Figures of several visits, ms: the mean of those that have one, with its interval at 95 %.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// The first byte of the document.
    pub first_byte: Option<Estimate>,
    /// The largest paint.
    pub largest_contentful_paint: Option<Estimate>,
    /// The load event.
    pub load: Option<Estimate>,
}

/// The place of the visit whose load time is in the middle, of an even number the lower one; a page without a load event has
/// the end of its last resource.
#[must_use]
pub fn median(visits: &[&Visit]) -> Option<usize> {
    let mut places: Vec<usize> = (0..visits.len()).collect();
    places.sort_by(|a, b| duration_ms(visits[*a]).total_cmp(&duration_ms(visits[*b])));
    places.get(visits.len().saturating_sub(1) / 2).copied()
}

/// Figures of visits of the same page in the same view.
#[must_use]
pub fn figures(visits: &[&Visit]) -> Figures {
    let figure = |of: fn(&Visit) -> Option<f64>| {
        let values: Vec<f64> = visits.iter().filter_map(|visit| of(visit)).collect();
        mean(&values, LEVEL)
    };
    Figures {
        first_byte: figure(|visit| visit.timings.first_byte_ms),
        largest_contentful_paint: figure(|visit| visit.timings.largest_contentful_paint_ms),
        load: figure(|visit| visit.timings.load_ms),
    }
}

fn duration_ms(visit: &Visit) -> f64 {
    let ends = visit.resources.iter().map(Resource::end_ms);
    let last = || ends.fold(0.0, f64::max);
    visit.timings.load_ms.unwrap_or_else(last)
}

/// The level of the intervals.
const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(load_ms: Option<f64>, last_ms: f64) -> Visit {
        let mut visit = Visit::default();
        visit.timings.load_ms = load_ms;
        visit.resources.push(Resource {
            start_ms: last_ms,
            ..Resource::default()
        });
        visit
    }

    #[test]
    fn median_is_by_load_or_last_end() {
        let loads = [Some(50.0), None, Some(10.0), Some(70.0), Some(20.0)];
        let visits = loads.map(|load| visit(load, 30.0));
        let all: Vec<&Visit> = visits.iter().collect();
        assert_eq!(median(&all), Some(1));
        assert_eq!(median(&all[..4]), Some(1), "the lower of two");
        assert_eq!(median(&all[..1]), Some(0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn figures_say_how_many_they_stand_on() {
        let visits =
            [Some(9.0), Some(11.0), None, Some(9.0), Some(11.0)].map(|load| visit(load, 0.0));
        let all: Vec<&Visit> = visits.iter().collect();
        let found = figures(&all);
        let load = found.load.expect("there are four");
        assert_eq!((load.value, load.n), (10.0, 4));
        assert!((load.high - 11.837).abs() < 0.001, "{load:?}");
        assert_eq!(
            (found.first_byte, found.largest_contentful_paint),
            (None, None)
        );
    }
}
