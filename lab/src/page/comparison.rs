//! Comparison of visits before and after a change: figures of the page, and its resources one by one.
//!
//! Of several runs a figure is their mean with an interval at 95 %, and runs of both sides are compared by Welch's t test, as
//! reports of `bench` from different times are. Of one run there is a difference, and no verdict.

use std::collections::HashMap;

use super::figure::{FIGURES, Figure};
use super::resource::Resource;
use super::runs::{self, Runs};
use super::visit::Visit;
use crate::client::Url;
use crate::stats::{self, Comparison, Estimate};

/// The part of a URL that resources are matched by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    /// Method, scheme, host, port, path and query.
    #[default]
    Url,
    /// Method, path and query: the same page at another host.
    Path,
}

/// The comparison of two lists of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitComparison {
    /// Figures of the page with a value on at least one side, in the order of [`FIGURES`].
    pub figures: Vec<FigureComparison>,
    /// Resources, in the order of the first run before, then those that are new.
    pub resources: Vec<ResourceComparison>,
    /// Protocols as ALPN names them, with the requests of a run before and after, means over runs.
    pub protocols: Vec<(String, f64, f64)>,
}

/// A figure of the page before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureComparison {
    /// The figure.
    pub figure: Figure,
    /// Mean of the runs before, with an interval at 95 %; `None` if no run has it.
    pub before: Option<Estimate>,
    /// Its mean after.
    pub after: Option<Estimate>,
    /// After over before, with an interval at 99 %; `None` without two runs of each side with values above 0.
    pub ratio: Option<Comparison>,
}

impl FigureComparison {
    /// After minus before; `None` if one side lacks it.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        Some(self.after?.value - self.before?.value)
    }
}

/// A resource before and after; at least one of both is set.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceComparison {
    /// Its method.
    pub method: String,
    /// Its URL; the one before if both differ.
    pub url: String,
    /// The resource before.
    pub before: Option<ResourceFigures>,
    /// The resource after.
    pub after: Option<ResourceFigures>,
    /// Its whole time after over that before, with an interval at 99 %; `None` without two runs of each side. Of all resources
    /// of two equal pages, one differs in one comparison of a hundred.
    pub ratio: Option<Comparison>,
}

impl ResourceComparison {
    /// Its whole time after less that before, ms.
    #[must_use]
    pub fn difference_ms(&self) -> Option<f64> {
        Some(self.after.as_ref()?.total_ms.value - self.before.as_ref()?.total_ms.value)
    }
}

/// Figures of a resource on one side: means over its runs; other fields are those of the first run with it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceFigures {
    /// When the page requested it, ms from the start of the visit.
    pub start_ms: Estimate,
    /// From there to its first byte, ms.
    pub first_byte_ms: Estimate,
    /// From there to its last byte, ms.
    pub total_ms: Estimate,
    /// Its transferred bytes; `None` if unknown.
    pub bytes: Option<u64>,
    /// Its protocol, as ALPN names it.
    pub protocol: String,
    /// Its status.
    pub status: u16,
    /// Whether it is from a cache.
    pub from_cache: bool,
}

/// Compares runs after a change with runs before it.
#[must_use]
pub fn compare(before: &Runs<'_>, after: &Runs<'_>, by: Match) -> VisitComparison {
    let figures = FIGURES.iter().filter_map(|figure| {
        let (old, new) = (before.mean(figure), after.mean(figure));
        (old.is_some() || new.is_some()).then(|| FigureComparison {
            figure: *figure,
            before: old,
            after: new,
            ratio: stats::apart(&before.values(figure), &after.values(figure)),
        })
    });
    VisitComparison {
        figures: figures.collect(),
        resources: resources(before, after, by),
        protocols: protocols(before, after),
    }
}

fn protocols(before: &Runs<'_>, after: &Runs<'_>) -> Vec<(String, f64, f64)> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut found: Vec<(String, f64, f64)> = Vec::new();
    for (runs, is_before) in [(before.all(), true), (after.all(), false)] {
        for sum in runs.iter().flat_map(|run| &run.analysis.by_protocol) {
            let share = sum.requests as f64 / runs.len() as f64;
            let place = *places.entry(&sum.name).or_insert_with(|| {
                found.push((sum.name.clone(), 0.0, 0.0));
                found.len() - 1
            });
            match is_before {
                true => found[place].1 += share,
                false => found[place].2 += share,
            }
        }
    }
    found
}

/// Key of a resource in a visit: its method, its name for matching, and its number among equal ones.
type Key = (String, String, usize);

/// A resource in each run of both sides.
#[derive(Default)]
struct Sides<'a> {
    before: Vec<&'a Resource>,
    after: Vec<&'a Resource>,
}

fn resources(before: &Runs<'_>, after: &Runs<'_>, by: Match) -> Vec<ResourceComparison> {
    let mut places: HashMap<Key, usize> = HashMap::new();
    let mut found: Vec<Sides<'_>> = Vec::new();
    let runs = before.all().iter().map(|run| (true, run));
    for (is_before, run) in runs.chain(after.all().iter().map(|run| (false, run))) {
        for (key, resource) in keys(run.visit, by).zip(&run.visit.resources) {
            let place = *places.entry(key).or_insert_with(|| {
                found.push(Sides::default());
                found.len() - 1
            });
            match is_before {
                true => found[place].before.push(resource),
                false => found[place].after.push(resource),
            }
        }
    }
    let count = found.len();
    found.iter().map(|sides| compared(sides, count)).collect()
}

/// Returns pairs of places of the same resource in two visits: resources of the first visit in their order, then the
/// rest of the second one.
#[must_use]
pub fn pairs(before: &Visit, after: &Visit, by: Match) -> Vec<(Option<usize>, Option<usize>)> {
    let mut places: HashMap<Key, usize> = keys(after, by).zip(0..).collect();
    let old = keys(before, by).zip(0..);
    let mut found: Vec<(Option<usize>, Option<usize>)> = old
        .map(|(key, place)| (Some(place), places.remove(&key)))
        .collect();
    let mut alone: Vec<usize> = places.into_values().collect();
    alone.sort_unstable();
    found.extend(alone.into_iter().map(|place| (None, Some(place))));
    found
}

/// Keys of the resources of a visit, in their order.
fn keys(visit: &Visit, by: Match) -> impl Iterator<Item = Key> {
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    visit.resources.iter().map(move |resource| {
        let (method, name) = (resource.method.clone(), name(resource, by));
        let again = seen.entry((method.clone(), name.clone())).or_default();
        *again += 1;
        (method, name, *again)
    })
}

/// Compares a resource, one of `count`.
fn compared(sides: &Sides<'_>, count: usize) -> ResourceComparison {
    let first = sides.before.first().or(sides.after.first());
    let totals = |all: &[&Resource]| -> Vec<f64> {
        all.iter()
            .map(|resource| resource.phases.total_ms())
            .collect()
    };
    ResourceComparison {
        method: first.map(|one| one.method.clone()).unwrap_or_default(),
        url: first.map(|one| one.url.clone()).unwrap_or_default(),
        before: figures(&sides.before),
        after: figures(&sides.after),
        ratio: stats::apart_among(&totals(&sides.before), &totals(&sides.after), count),
    }
}

fn figures(all: &[&Resource]) -> Option<ResourceFigures> {
    let first = all.first()?;
    let mean = |of: fn(&Resource) -> f64| {
        let values: Vec<f64> = all.iter().map(|resource| of(resource)).collect();
        runs::mean(&values)
    };
    Some(ResourceFigures {
        start_ms: mean(|one| one.start_ms)?,
        first_byte_ms: mean(|one| one.first_byte_ms() - one.start_ms)?,
        total_ms: mean(|one| one.phases.total_ms())?,
        bytes: first.transferred_bytes(),
        protocol: first.protocol.clone(),
        status: first.status,
        from_cache: first.from_cache,
    })
}

/// Returns the name of a resource for matching.
fn name(resource: &Resource, by: Match) -> String {
    match (Url::parse(&resource.url), by) {
        (Ok(url), Match::Path) => url.path,
        (Ok(url), Match::Url) => {
            let scheme = if url.tls { "https" } else { "http" };
            let host = url.host.to_ascii_lowercase();
            format!("{scheme}://{host}:{}{}", url.port, url.path)
        }
        // Other URLs than HTTP's are compared as text.
        (Err(_), _) => resource.url.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{PageTimings, Phases};

    fn compared(before: &[Visit], after: &[Visit], by: Match) -> VisitComparison {
        let [before, after] = [before, after].map(|visits| Runs::of(visits).expect("some"));
        compare(&before, &after, by)
    }

    fn resource(url: &str, wait_ms: f64, protocol: &str) -> Resource {
        Resource {
            url: url.to_owned(),
            method: "GET".to_owned(),
            status: 200,
            protocol: protocol.to_owned(),
            head_bytes: Some(100),
            body_bytes: Some(900),
            phases: Phases {
                wait_ms: Some(wait_ms),
                ..Phases::default()
            },
            ..Resource::default()
        }
    }

    fn visit(load_ms: f64, resources: Vec<Resource>) -> Visit {
        Visit {
            resources,
            timings: PageTimings {
                load_ms: Some(load_ms),
                ..PageTimings::default()
            },
            ..Visit::default()
        }
    }

    fn figure_of<'a>(found: &'a VisitComparison, name: &str) -> &'a FigureComparison {
        let mut figures = found.figures.iter();
        figures.find(|one| one.figure.name == name).expect(name)
    }

    #[test]
    fn resources_are_matched_by_url_and_by_path() {
        let before = [visit(
            100.0,
            vec![
                resource("http://A.test/a?1", 30.0, "http/1.1"),
                resource("http://a.test/gone", 5.0, "http/1.1"),
            ],
        )];
        let after = [visit(
            80.0,
            vec![
                resource("http://a.test:80/a?1", 10.0, "h2"),
                resource("http://b.test/gone", 5.0, "h2"),
            ],
        )];
        let found = compared(&before, &after, Match::Url);
        let sides = |found: &VisitComparison| -> Vec<(bool, bool)> {
            let resources = found.resources.iter();
            resources
                .map(|one| (one.before.is_some(), one.after.is_some()))
                .collect()
        };
        assert_eq!(sides(&found), [(true, true), (true, false), (false, true)]);
        assert_eq!(found.resources[0].difference_ms(), Some(-20.0));
        let after_of = |n: usize| found.resources[n].after.as_ref().expect("it is there");
        assert_eq!(
            (after_of(0).protocol.as_str(), after_of(0).bytes),
            ("h2", Some(1000))
        );
        assert_eq!(
            found.protocols,
            [
                ("http/1.1".to_owned(), 2.0, 0.0),
                ("h2".to_owned(), 0.0, 2.0)
            ]
        );
        let by_path = compared(&before, &after, Match::Path);
        assert_eq!(sides(&by_path), [(true, true), (true, true)]);
    }

    #[test]
    fn a_resource_that_is_there_twice_is_matched_in_turn() {
        let twice = |first, second| {
            visit(
                1.0,
                vec![
                    resource("http://a/", first, "h2"),
                    resource("http://a/", second, "h2"),
                ],
            )
        };
        let found = compared(&[twice(1.0, 5.0)], &[twice(2.0, 9.0)], Match::Url);
        let differences: Vec<_> = found
            .resources
            .iter()
            .map(ResourceComparison::difference_ms)
            .collect();
        assert_eq!(differences, [Some(1.0), Some(4.0)]);
    }

    #[test]
    fn one_run_has_a_difference_and_several_have_a_verdict() {
        let runs = |times: &[f64]| -> Vec<Visit> {
            let run = |ms: &f64| visit(*ms, vec![resource("http://a/", *ms, "h2")]);
            times.iter().map(run).collect()
        };
        let of = |before: &[f64], after: &[f64]| compared(&runs(before), &runs(after), Match::Url);
        let single = of(&[100.0], &[80.0]);
        let load = figure_of(&single, "load_ms");
        assert_eq!((load.difference(), load.ratio), (Some(-20.0), None));
        assert!(
            !single
                .figures
                .iter()
                .any(|one| one.figure.name == "first_byte_ms")
        );
        assert_eq!(
            figure_of(&single, "bytes").after.map(|bytes| bytes.value),
            Some(1000.0)
        );
        let several = of(&[100.0, 101.0, 99.0, 100.0], &[80.0, 81.0, 79.0, 80.0]);
        let ratio = figure_of(&several, "load_ms")
            .ratio
            .expect("four runs of each");
        assert!(
            ratio.differs && (ratio.ratio.value - 0.8).abs() < 0.01,
            "{ratio:?}"
        );
        assert!(
            several.resources[0]
                .ratio
                .is_some_and(|ratio| ratio.differs)
        );
        let alike = of(&[100.0, 140.0, 90.0], &[101.0, 139.0, 91.0]);
        let ratio = figure_of(&alike, "load_ms")
            .ratio
            .expect("three runs of each");
        assert!(!ratio.differs, "{ratio:?}");
    }
}
