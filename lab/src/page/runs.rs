//! Runs: the visits to a page with one view, their analyses, and the run with the median load time.
//!
//! All reports of a page read its runs here, so each visit is analysed once, and all reports have the same figures.

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
    /// Runs of the first view: cold, unless there are only warm ones.
    pub first: Runs<'a>,
    /// Runs of the view with the caches of the first one.
    pub warm: Option<Runs<'a>>,
}

impl<'a> Runs<'a> {
    /// Analyses visits; returns `None` if there are none.
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

    /// Returns the place of the run with the median load time, the lower one of an even number. A page without a load
    /// event counts until the end of its last resource.
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

    /// The mean of a figure over the runs that have it, with its interval at 95 %, as [`mean`] has it.
    #[must_use]
    pub fn mean(&self, figure: &Figure) -> Option<Estimate> {
        mean(&self.values(figure))
    }
}

/// The mean over independent visits, with its interval at 95 % by Student's t; `None` without a value.
///
/// Both ends are infinite for one visit, and for visits with equal values: these do not show by how much the next one may
/// differ. Figures of visits are not negative, so no interval goes below 0.
pub(super) fn mean(values: &[f64]) -> Option<Estimate> {
    let found = stats::mean(values, LEVEL)?;
    let is_varied = values.iter().any(|value| *value != values[0]);
    let (low, high) = match is_varied {
        true => (found.low.max(0.0), found.high),
        false => (f64::NEG_INFINITY, f64::INFINITY),
    };
    Some(Estimate { low, high, ..found })
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
const LEVEL: f64 = 0.95;

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
    fn an_interval_has_the_ends_that_visits_support() {
        let ends = |values: &[f64]| mean(values).map(|found| (found.low, found.high));
        let none = Some((f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(ends(&[]), None);
        assert_eq!(ends(&[5.0]), none);
        assert_eq!(ends(&[5.0, 5.0, 5.0]), none);
        // By Student's t with one degree of freedom: 12.706 times the standard error of 5.
        let (low, high) = ends(&[10.0, 20.0]).expect("two values");
        assert_eq!(low, 0.0);
        assert!((high - 78.53).abs() < 0.01, "{high}");
        let (low, high) = ends(&[100.0, 101.0]).expect("two values");
        assert!(
            (low - 94.147).abs() < 0.01 && (high - 106.853).abs() < 0.01,
            "{low} {high}"
        );
    }

    /// Times that are skewed, as load times are, cost the interval of few visits some of its 95 %.
    #[test]
    fn intervals_hold_the_true_mean() {
        let mut rng = fastrand::Rng::with_seed(5);
        for n in [3, 5, 10] {
            // 500 ms, and an exponential share of 50 ms.
            let mut time = || 500.0 - 50.0 * (1.0 - rng.f64()).ln();
            let mut holds = 0;
            for _ in 0..1000 {
                let values: Vec<f64> = (0..n).map(|_| time()).collect();
                let found = mean(&values).expect("there are some");
                holds += usize::from(found.low <= 550.0 && found.high >= 550.0);
            }
            assert!(holds >= 870, "n={n}: {holds} of 1000");
        }
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
