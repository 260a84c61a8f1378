//! Runs: the visits to a page with one view, each with its analysis, and the one in the middle.
//!
//! Whatever reports a page reads its runs here, so that each visit is analysed once, and all reports have the same figures.

use super::analysis::Analysis;
use super::figure::Figure;
use super::resource::Resource;
use super::visit::Visit;
use crate::stats::{self, Estimate};

/// A visit and its analysis.
#[derive(Clone, Debug)]
pub struct AnalysedVisit<'a> {
    /// The visit.
    pub visit: &'a Visit,
    /// Its analysis.
    pub analysis: Analysis,
}

/// Visits to a page with one view, one at least.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    all: Vec<AnalysedVisit<'a>>,
    shown: usize,
}

/// The runs of a page with both views.
#[derive(Clone, Debug)]
pub struct Views<'a> {
    /// Those of the first view, cold but where warm ones are all there is.
    pub first: Runs<'a>,
    /// Those with what the first view had left in caches.
    pub warm: Option<Runs<'a>>,
}

impl<'a> Runs<'a> {
    /// Analyses visits; `None` where there are none.
    #[must_use]
    pub fn of(visits: &'a [Visit]) -> Option<Self> {
        let all = visits.iter().map(|visit| AnalysedVisit {
            visit,
            analysis: Analysis::of(visit),
        });
        Some(Self {
            shown: middle(visits)?,
            all: all.collect(),
        })
    }

    /// All runs in their order.
    #[must_use]
    pub fn all(&self) -> &[AnalysedVisit<'a>] {
        &self.all
    }

    /// The place of the run whose load time is in the middle, of an even number the lower one; a page without a load event has
    /// the end of its last resource.
    #[must_use]
    pub fn shown_place(&self) -> usize {
        self.shown
    }

    /// The run at [`Self::shown_place`].
    #[must_use]
    pub fn shown(&self) -> &AnalysedVisit<'a> {
        &self.all[self.shown]
    }

    /// The values of a figure, of the runs that have it.
    #[must_use]
    pub fn values(&self, figure: &Figure) -> Vec<f64> {
        let runs = self.all.iter();
        runs.filter_map(|run| figure.of(run.visit, &run.analysis))
            .collect()
    }

    /// The mean of a figure over the runs that have it, with its interval at 95 %.
    #[must_use]
    pub fn mean(&self, figure: &Figure) -> Option<Estimate> {
        stats::mean(&self.values(figure), LEVEL)
    }
}

/// The place of the visit in the middle.
fn middle(visits: &[Visit]) -> Option<usize> {
    let mut places: Vec<usize> = (0..visits.len()).collect();
    places.sort_by(|a, b| duration_ms(&visits[*a]).total_cmp(&duration_ms(&visits[*b])));
    places.get(visits.len().saturating_sub(1) / 2).copied()
}

fn duration_ms(visit: &Visit) -> f64 {
    let ends = visit.resources.iter().map(Resource::end_ms);
    let last = || ends.fold(0.0, f64::max);
    visit.timings.load_ms.unwrap_or_else(last)
}

/// The level of intervals of means.
pub(super) const LEVEL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::FIGURES;

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
    fn the_run_in_the_middle_is_by_load_or_last_end() {
        let loads = [Some(50.0), None, Some(10.0), Some(70.0), Some(20.0)];
        let all = loads.map(|load| visit(load, 30.0));
        let shown = |visits: &[Visit]| Runs::of(visits).map(|runs| runs.shown_place());
        assert_eq!(shown(&all), Some(1));
        assert_eq!(shown(&all[..4]), Some(1), "the lower of two");
        assert_eq!(shown(&all[..1]), Some(0));
        assert_eq!(shown(&[]), None);
    }

    #[test]
    fn means_say_how_many_they_stand_on() {
        let all = [Some(9.0), Some(11.0), None, Some(9.0), Some(11.0)].map(|load| visit(load, 0.0));
        let runs = Runs::of(&all).expect("there are some");
        let mean = |name: &str| runs.mean(FIGURES.iter().find(|one| one.name == name)?);
        let load = mean("load_ms").expect("there are four");
        assert_eq!((load.value, load.n), (10.0, 4));
        assert!((load.high - 11.837).abs() < 0.001, "{load:?}");
        assert_eq!(mean("first_byte_ms"), None);
    }

    #[test]
    fn bytes_that_nobody_knows_are_not_nought() {
        let bytes = |resource: Resource| {
            let visit = [Visit {
                resources: vec![resource],
                ..Visit::default()
            }];
            let figure = FIGURES.iter().find(|one| one.name == "bytes")?;
            Some(Runs::of(&visit)?.values(figure))
        };
        let unknown = Resource {
            status: 200,
            ..Resource::default()
        };
        assert_eq!(bytes(unknown.clone()), Some(vec![]));
        let failed = Resource {
            status: 0,
            ..unknown.clone()
        };
        assert_eq!(bytes(failed), Some(vec![0.0]));
        let known = Resource {
            body_bytes: Some(7),
            ..unknown
        };
        assert_eq!(bytes(known), Some(vec![7.0]));
    }
}
