//! The figures by country as JSON, format `firstbyte-map/1`.
//!
//! Members are added to the format, but none is removed or changes its meaning.
//!
//! Source: docs/map.md.

use serde::Serialize;

use super::options::Options;
use super::rows::{Row, Rows};
use super::scale::Measure;
use crate::map::RttMap;
use crate::report::escaped_json;

/// Returns an object with a line per member, and a last line end.
#[must_use]
pub fn json(map: &RttMap, options: &Options) -> String {
    let rows = Rows::of(map, options);
    let report = Report {
        format: FORMAT,
        title: &options.title,
        source: &options.source,
        period: options.period.map(|(first, last)| Period {
            first_unix_s: first,
            last_unix_s: last,
        }),
        warnings: &options.warnings,
        measure: match rows.measure {
            Measure::RoundTrip => "round_trip",
            Measure::Requests => "requests",
        },
        min_samples: options.min_samples.max(1),
        samples: rows.samples,
        requests: rows.requests,
        countries: rows.countries.iter().map(Figures::of).collect(),
        unknown: rows.unknown.as_ref().map(Figures::of),
    };
    let text = serde_json::to_string_pretty(&report).expect("texts and finite numbers are JSON");
    format!("{}\n", escaped_json(&text))
}

#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    title: &'a str,
    source: &'a str,
    period: Option<Period>,
    warnings: &'a [String],
    measure: &'static str,
    min_samples: u64,
    samples: u64,
    requests: u64,
    countries: Vec<Figures<'a>>,
    unknown: Option<Figures<'a>>,
}

#[derive(Serialize)]
struct Period {
    first_unix_s: i64,
    last_unix_s: i64,
}

/// Figures of a country; those of unknown countries have neither code nor name.
#[derive(Serialize)]
struct Figures<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    samples: u64,
    median_ms: Option<f64>,
    median_low_ms: Option<f64>,
    median_high_ms: Option<f64>,
    p80_ms: Option<f64>,
    p95_ms: Option<f64>,
    requests: u64,
    enough: bool,
}

impl<'a> Figures<'a> {
    fn of(row: &'a Row) -> Self {
        let times = row.times.as_ref();
        let interval = times.and_then(|times| times.interval);
        let rounded = |ms: f64| (ms * 1000.0).round() / 1000.0;
        Self {
            country: row.code.as_deref(),
            name: row.code.as_ref().map(|_| row.name.as_str()),
            samples: row.samples,
            median_ms: times.map(|times| rounded(times.median)),
            median_low_ms: interval.map(|(low, _)| rounded(low)),
            median_high_ms: interval.map(|(_, high)| rounded(high)),
            p80_ms: times.map(|times| rounded(times.p80)),
            p95_ms: times.map(|times| rounded(times.p95)),
            requests: row.requests,
            enough: row.enough,
        }
    }
}

const FORMAT: &str = "firstbyte-map/1";
