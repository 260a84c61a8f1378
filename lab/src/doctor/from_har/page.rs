//! A visit as rules see it, and the finding that the cases of a rule become.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::doctor::code::Code;
use crate::doctor::finding::{Finding, Severity};
use crate::page::analysis::Analysis;
use crate::page::{Resource, Visit, origin};

/// A visit with what was computed of it.
pub(super) struct Page<'v> {
    pub(super) visit: &'v Visit,
    pub(super) analysis: Analysis,
    round_trips: BTreeMap<&'v str, f64>,
}

/// One case of a rule: a resource, its cost, and the figures that prove it.
pub(super) struct Case<'v> {
    pub(super) resource: &'v Resource,
    pub(super) lost_ms: f64,
    pub(super) figures: Value,
}

impl<'v> Page<'v> {
    pub(super) fn new(visit: &'v Visit) -> Self {
        Self {
            visit,
            analysis: Analysis::of(visit),
            round_trips: round_trips(visit),
        }
    }

    /// The resources that were asked for and answered, with their places.
    pub(super) fn asked(&self) -> impl Iterator<Item = (usize, &'v Resource)> {
        let all = self.visit.resources.iter().enumerate();
        all.filter(|(_, one)| !one.from_cache && one.status != 0)
    }

    /// A round trip to a resource's server: the page's, or the least time of a connection to that host.
    pub(super) fn round_trip_ms(&self, of: &Resource) -> Option<f64> {
        self.round_trips.get(host(&of.url)).copied()
    }
}

/// The least round trip to each host, as far as it is known.
fn round_trips(visit: &Visit) -> BTreeMap<&str, f64> {
    let mut least: BTreeMap<&str, f64> = BTreeMap::new();
    // The page's own round trip is one to its own host.
    let first = visit.resources.first();
    let own = first.and_then(|one| Some((host(&one.url), visit.round_trip_ms?)));
    let connects = visit.resources.iter();
    let connects = connects.filter_map(|one| Some((host(&one.url), one.phases.connect_ms?)));
    for (host, ms) in own.into_iter().chain(connects).filter(|(_, ms)| *ms > 0.0) {
        let known = least.entry(host).or_insert(ms);
        *known = known.min(ms);
    }
    least
}

/// Host and port of a URL.
pub(super) fn host(url: &str) -> &str {
    let origin = origin(url);
    origin.split_once("://").map_or(origin, |(_, host)| host)
}

pub(super) fn field<'r>(fields: &'r [(String, String)], name: &str) -> Option<&'r str> {
    let found = fields
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// The finding of some cases: the largest cost is the page's, since the costs of resources overlap.
pub(super) fn finding(
    code: Code,
    severity: Severity,
    mut cases: Vec<Case<'_>>,
    title: impl Fn(usize, f64) -> String,
    mend: &[&str],
) -> Option<Finding> {
    cases.sort_by(|a, b| b.lost_ms.total_cmp(&a.lost_ms));
    let lost_ms = rounded(cases.first()?.lost_ms);
    let shown = cases.iter().take(EXAMPLES_MAX).map(|case| {
        let mut value = case.figures.clone();
        value["url"] = shortened(&case.resource.url).into();
        value["lost_ms"] = rounded(case.lost_ms).into();
        value
    });
    let mut found = Finding::new(code, severity, title(cases.len(), lost_ms))
        .costs(lost_ms, 0.0)
        .proof("resources", cases.len())
        .proof("examples", shown.collect::<Vec<_>>());
    for line in mend {
        found = found.mend(*line);
    }
    Some(found.mend(
        "again: firstbyte waterfall URL --har again.har, then firstbyte doctor --har again.har",
    ))
}

/// A URL of a bounded length.
pub(super) fn shortened(url: &str) -> String {
    url.chars().take(URL_CHARS_MAX).collect()
}

pub(super) fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The cases that a finding shows.
pub(super) const EXAMPLES_MAX: usize = 20;
/// The characters of a URL in a report.
const URL_CHARS_MAX: usize = 300;
