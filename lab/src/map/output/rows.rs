//! Rows of all outputs: countries with their figures, most samples first.

use engines::http::civil;
use store::Histogram;

use super::options::{Options, Quantile};
use super::scale::{Fill, Measure, Ms};
use crate::map::world::{self, Country};
use crate::map::{CountryCode, CountryFigures, RttMap};
use crate::report::{bounded, visible};
use crate::stats::median_ranks;

/// Quantiles of a histogram, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) median: f64,
    /// Ends of the interval of the median at 95 %; `None` with fewer than 6 samples.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p80: f64,
    pub(crate) p95: f64,
}

impl Times {
    /// Returns `None` for an empty histogram.
    pub(crate) fn of(rtt: &Histogram) -> Option<Self> {
        let quantile = |q: f64| rtt.quantile_us(q).map(|us| us / 1000.0);
        let n = rtt.count() as f64;
        // The first time begins at rank 0 of the histogram, and ends at rank 1: both ends are on the safe side.
        let interval = median_ranks(rtt.count()).and_then(|(low, high)| {
            let low = quantile((low - 1) as f64 / n)?;
            Some((low, quantile(high as f64 / n)?))
        });
        Some(Self {
            median: quantile(0.5)?,
            interval,
            p80: quantile(0.8)?,
            p95: quantile(0.95)?,
        })
    }

    /// Returns a quantile.
    pub(super) fn at(&self, quantile: Quantile) -> f64 {
        match quantile {
            Quantile::Median => self.median,
            Quantile::P80 => self.p80,
            Quantile::P95 => self.p95,
        }
    }

    /// Returns the interval as text, or a dash.
    pub(super) fn interval_text(&self) -> String {
        let text = |(low, high)| format!("{} to {}", Ms(low), Ms(high));
        self.interval.map_or_else(|| "-".to_owned(), text)
    }
}

/// A country, or all clients of unknown countries.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Two characters; any, if a database is damaged. `None`: unknown.
    pub(super) code: Option<String>,
    /// Name in English.
    pub(super) name: String,
    pub(super) samples: u64,
    pub(super) requests: u64,
    pub(super) times: Option<Times>,
    /// Whether there are as many samples as the options demand.
    pub(super) enough: bool,
    /// Fill on the map.
    pub(super) fill: Fill,
    /// Place on the map.
    pub(super) country: Option<&'static Country>,
}

impl Row {
    fn of(code: Option<CountryCode>, figures: &CountryFigures, map: &Rows<'_>) -> Self {
        let times = Times::of(&figures.rtt);
        let (samples, requests) = (figures.rtt.count(), figures.requests);
        let counted = match map.measure {
            Measure::RoundTrip => samples,
            Measure::Requests => requests,
        };
        let enough = counted >= map.options.min_samples.max(1);
        let share = requests as f64 * 100.0 / map.requests.max(1) as f64;
        let value = match map.measure {
            Measure::RoundTrip => times.map(|times| times.at(map.options.quantile)),
            Measure::Requests => Some(share),
        };
        let country = code.and_then(world::find);
        let text = code.map(|code| String::from_utf8_lossy(&code).into_owned());
        let name = code.and_then(geoip::name_of).map(str::to_owned);
        Self {
            name: name
                .or_else(|| text.clone())
                .unwrap_or_else(|| "unknown".to_owned()),
            code: text,
            samples,
            requests,
            times,
            enough,
            fill: match value {
                _ if counted == 0 => Fill::None,
                Some(value) if enough => Fill::Class(map.measure.class(value)),
                _ => Fill::TooFew,
            },
            country,
        }
    }

    /// Times of a country with enough samples.
    pub(super) fn sufficient_times(&self) -> Option<Times> {
        self.times.filter(|_| self.enough)
    }

    /// Median, interval, p80 and p95 as texts, dashes below the least number of samples.
    pub(super) fn texts(&self) -> [String; 4] {
        let dash = || "-".to_owned();
        self.sufficient_times().map_or_else(
            || [dash(), dash(), dash(), dash()],
            |times| {
                let ms = |value: f64| Ms(value).to_string();
                [
                    ms(times.median),
                    times.interval_text(),
                    ms(times.p80),
                    ms(times.p95),
                ]
            },
        )
    }
}

/// Rows of a map, with texts and sums of all outputs.
#[derive(Clone, Debug)]
pub(super) struct Rows<'a> {
    pub(super) options: &'a Options,
    /// Measure of the picture: requests, if the map has no times.
    pub(super) measure: Measure,
    /// Countries, most samples first, then most requests.
    pub(super) countries: Vec<Row>,
    /// Clients of unknown countries.
    pub(super) unknown: Option<Row>,
    /// Samples of all countries and of unknown ones.
    pub(super) samples: u64,
    /// Requests of all countries and of unknown ones.
    pub(super) requests: u64,
}

impl<'a> Rows<'a> {
    pub(super) fn of(map: &RttMap, options: &'a Options) -> Self {
        let all = || map.countries.values().chain([&map.unknown]);
        let sum = |of: &dyn Fn(&CountryFigures) -> u64| all().map(of).fold(0, u64::saturating_add);
        let samples = sum(&|one| one.rtt.count());
        let mut rows = Self {
            options,
            measure: match samples {
                0 => Measure::Requests,
                _ => Measure::RoundTrip,
            },
            countries: Vec::new(),
            unknown: None,
            samples,
            requests: sum(&|one| one.requests),
        };
        let known = map.countries.iter();
        let mut countries: Vec<Row> = known
            .map(|(code, one)| Row::of(Some(*code), one, &rows))
            .collect();
        // The order of codes remains among equals.
        countries.sort_by_key(|row| std::cmp::Reverse((row.samples, row.requests)));
        rows.unknown = Some(Row::of(None, &map.unknown, &rows));
        rows.countries = countries;
        rows
    }

    /// Returns countries and, if it has requests or samples, the row of unknown ones.
    pub(super) fn all(&self) -> impl Iterator<Item = &Row> {
        let unknown = self.unknown.iter();
        let unknown = unknown.filter(|row| row.samples > 0 || row.requests > 0);
        self.countries.iter().chain(unknown)
    }

    /// Returns the name of the measure for a legend.
    pub(super) fn name(&self) -> String {
        match self.measure {
            Measure::RoundTrip => self.options.name_of_times(),
            Measure::Requests => "Share of all requests".to_owned(),
        }
    }

    /// Returns the heading, of limited length.
    pub(super) fn title(&self) -> String {
        bounded(&self.options.title, TITLE_MOST).into_owned()
    }

    /// Returns source, period and counts, a sentence each.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.options.source.is_empty() {
            let source = bounded(&self.options.source, SOURCE_MOST);
            found.push(format!("Source: {source}."));
        }
        if let Some((first, last)) = self.options.period {
            found.push(format!(
                "Period: {} to {} UTC.",
                moment(first),
                moment(last)
            ));
        }
        let countries = self.countries.len();
        found.push(match self.measure {
            Measure::RoundTrip => format!("{} samples from {countries} countries.", self.samples),
            Measure::Requests => format!(
                "No round-trip times; {} requests from {countries} countries.",
                self.requests
            ),
        });
        found
    }

    /// Returns notes about clients and countries that the picture does not have.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(row) = self
            .unknown
            .as_ref()
            .filter(|row| row.requests > 0 || row.samples > 0)
        {
            let (samples, requests) = (row.samples, row.requests);
            found.push(format!(
                "Country unknown: {samples} samples, {requests} requests."
            ));
        }
        let without = self.countries.iter().filter(|row| row.country.is_none());
        let codes: Vec<&str> = without.filter_map(|row| row.code.as_deref()).collect();
        if !codes.is_empty() {
            let shown = codes[..codes.len().min(CODES_MOST)].join(", ");
            let more = if codes.len() > CODES_MOST {
                ", ..."
            } else {
                ""
            };
            found.push(format!("Not on the map: {}{more}.", visible(&shown)));
        }
        found
    }

    /// Returns the warnings, of limited number and length.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let all = self.options.warnings.iter().take(WARNINGS_MOST);
        all.map(|text| bounded(text, WARNING_MOST).into_owned())
    }

    /// Returns the sentence about countries below the least number of samples.
    pub(super) fn least(&self) -> String {
        let of = self.measure.unit_of_least();
        format!(
            "Countries with fewer than {} {of} have no colour.",
            self.options.min_samples.max(1)
        )
    }
}

/// Writes seconds since 1970 as `2026-01-31 23:59:59`.
pub(super) fn moment(unix_s: i64) -> String {
    let date = civil(unix_s);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        date.year, date.month, date.day, date.hour, date.minute, date.second
    )
}

/// Characters of texts, warnings, and codes in a sentence.
const TITLE_MOST: usize = 200;
const SOURCE_MOST: usize = 500;
const WARNING_MOST: usize = 1000;
const WARNINGS_MOST: usize = 20;
const CODES_MOST: usize = 20;
