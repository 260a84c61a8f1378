//! A visit with figures that several facts share.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::doctor::judge::{Case, rounded};
use crate::page::analysis::Analysis;
use crate::page::{Resource, Visit, origin};

/// A visit with its analysis.
pub(in crate::doctor) struct Page<'v> {
    pub(in crate::doctor) visit: &'v Visit,
    pub(in crate::doctor) analysis: Analysis,
    round_trips: BTreeMap<&'v str, f64>,
}

impl<'v> Page<'v> {
    pub(in crate::doctor) fn new(visit: &'v Visit) -> Self {
        Self {
            visit,
            analysis: Analysis::of(visit),
            round_trips: round_trips(visit),
        }
    }

    /// Resources with a request and a response, with their indices.
    pub(in crate::doctor) fn requested(&self) -> impl Iterator<Item = (usize, &'v Resource)> {
        let all = self.visit.resources.iter().enumerate();
        all.filter(|(_, one)| !one.from_cache && one.status != 0)
    }

    /// A case of a resource.
    pub(in crate::doctor) fn case(
        &self,
        of: &Resource,
        lost_ms: f64,
        size: f64,
        mut figures: Value,
    ) -> Case {
        figures["url"] = shortened(&of.url).into();
        figures["lost_ms"] = rounded(lost_ms).into();
        Case {
            lost_ms,
            size,
            figures,
        }
    }

    /// The round trip to a resource's server: the page's for its own host, or the least connect time to the host.
    pub(in crate::doctor) fn round_trip_ms(&self, of: &Resource) -> Option<f64> {
        self.round_trips.get(host(&of.url)).copied()
    }
}

/// The least round trip to each host, if known.
fn round_trips(visit: &Visit) -> BTreeMap<&str, f64> {
    let mut least: BTreeMap<&str, f64> = BTreeMap::new();
    // The page's round trip is to its own host.
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
pub(in crate::doctor) fn host(url: &str) -> &str {
    let origin = origin(url);
    origin.split_once("://").map_or(origin, |(_, host)| host)
}

pub(in crate::doctor) fn field<'r>(fields: &'r [(String, String)], name: &str) -> Option<&'r str> {
    let found = fields
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// A URL of a bounded length.
pub(in crate::doctor) fn shortened(url: &str) -> String {
    url.chars().take(URL_CHARS_MAX).collect()
}

/// The characters of a URL in a report.
const URL_CHARS_MAX: usize = 300;
