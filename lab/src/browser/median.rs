//! Several visits: the one in the middle.

use crate::page::{Resource, Visit};

/// The place of the visit whose load time is in the middle, of an even number the lower one; a page without a load event has
/// the end of its last resource.
#[must_use]
pub fn median(visits: &[&Visit]) -> Option<usize> {
    let mut places: Vec<usize> = (0..visits.len()).collect();
    places.sort_by(|a, b| duration_ms(visits[*a]).total_cmp(&duration_ms(visits[*b])));
    places.get(visits.len().saturating_sub(1) / 2).copied()
}

fn duration_ms(visit: &Visit) -> f64 {
    let ends = visit.resources.iter().map(Resource::end_ms);
    let last = || ends.fold(0.0, f64::max);
    visit.timings.load_ms.unwrap_or_else(last)
}

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
}
