//! Parameters of a page: period, filters, metric. They come from the query of a URL, as a form without script sends it.
//!
//! Values are data for the store and texts for pages. Lengths and numbers have limits; an unknown name is ignored.

use engines::http::{Escape, escape, unescape};
use store::{Metric, TEXT_BYTES_MAX, VisitMetric};

use crate::time::{self, DAY_S};

/// Parameters of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// The period of presets; `None`: exact times.
    pub(super) preset: Option<Preset>,
    /// Begin and end before [`Self::shift`], Unix seconds.
    pub(super) base: (u64, u64),
    /// Number of periods that the period is moved; negative: to the past.
    pub(super) shift: i64,
    /// Time of the request, Unix seconds.
    pub(super) now_s: u64,
    /// Connections of this protocol alone.
    pub(super) protocol: Option<String>,
    /// Connections of this server alone.
    pub(super) server: Option<String>,
    /// Connections of this country alone: two capitals, or empty for unknown countries.
    pub(super) country: Option<String>,
    /// Time that maps, time series and comparisons show.
    pub(super) metric: Metric,
    /// Share that maps show, percent: 50, 80 or 95.
    pub(super) percentile: u8,
    /// Begin of the earlier period of a comparison; `None`: right before the period.
    pub(super) before_s: Option<u64>,
    /// Name of the table of CSV; `None`: the first.
    pub(super) table: Option<String>,
    /// Name of an experiment; `None`: the list of all.
    pub(super) experiment: Option<String>,
    /// Metric that the page of an experiment draws; `None`: the primary one.
    pub(super) visit: Option<VisitMetric>,
    /// Whether the arms of the experiment have the same effect.
    pub(super) is_a_a: bool,
}

/// A length of time that ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preset {
    /// Value in URLs.
    pub(super) name: &'static str,
    /// Text of the choice.
    pub(super) label: &'static str,
    /// Length, seconds.
    pub(super) length_s: u64,
    /// The end is the next multiple of this time, seconds.
    round_s: u64,
}

impl Params {
    /// Reads a query.
    ///
    /// # Errors
    /// A sentence about the first value that has no meaning.
    pub(super) fn parse(query: &str, now_s: u64) -> Result<Self, String> {
        let pairs = pairs(query);
        let value = |name: &str| {
            let found = pairs.iter().find(|(own, _)| own == name);
            found
                .map(|(_, value)| value.as_str())
                .filter(|value| !value.is_empty())
        };
        let text = |name: &str| value(name).map(str::to_owned);
        let (preset, base) = period(value("period"), value("from"), value("to"), now_s)?;
        // Everything after the period is optional, and has a default.
        let number = |name: &str, text: &str| text.parse::<i64>().map_err(|_| unknown(name, text));
        let shift = value("shift").map_or(Ok(0), |text| number("shift", text))?;
        let metric = value("metric").map_or(Ok(Metric::MinRtt), |text| {
            let found = METRICS.iter().find(|one| one.name == text);
            found
                .map(|one| one.metric)
                .ok_or_else(|| unknown("metric", text))
        })?;
        let percentile = match value("percentile") {
            None | Some("50") => 50,
            Some("80") => 80,
            Some("95") => 95,
            Some(other) => return Err(unknown("percentile", other)),
        };
        let country = value("country").map_or(Ok(None), |text| {
            let is_code = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
            match text {
                UNKNOWN_COUNTRY => Ok(Some(String::new())),
                code if is_code => Ok(Some(code.to_owned())),
                other => Err(unknown("country", other)),
            }
        })?;
        let before_s = value("before").map_or(Ok(None), |text| {
            time::parse(text)
                .map(Some)
                .ok_or_else(|| unknown("before", text))
        })?;
        let visit = value("visit").map_or(Ok(None), |text| {
            let found = VisitMetric::from_name(text).map(Some);
            found.ok_or_else(|| unknown("visit", text))
        })?;
        let is_a_a = match value("aa") {
            None => false,
            Some("1") => true,
            Some(other) => return Err(unknown("aa", other)),
        };
        let params = Self {
            preset,
            base,
            shift: shift.clamp(-SHIFT_MAX, SHIFT_MAX),
            now_s,
            protocol: text("protocol"),
            server: text("server"),
            country,
            metric,
            percentile,
            before_s,
            table: text("table"),
            experiment: text("experiment"),
            visit,
            is_a_a,
        };
        Ok(params)
    }

    /// Length of the period, seconds.
    pub(super) fn length_s(&self) -> u64 {
        self.base.1 - self.base.0
    }

    /// Begin and end of the period, Unix seconds.
    pub(super) fn period(&self) -> (u64, u64) {
        let moved = self.length_s().saturating_mul(self.shift.unsigned_abs());
        let (from, to) = self.base;
        match self.shift < 0 {
            true => (from.saturating_sub(moved), to.saturating_sub(moved)),
            false => (from.saturating_add(moved), to.saturating_add(moved)),
        }
    }

    /// Begin and end of the earlier period of a comparison, of the same length.
    pub(super) fn before(&self) -> (u64, u64) {
        let (from, _) = self.period();
        let length = self.length_s();
        let begin = self.before_s.unwrap_or_else(|| from.saturating_sub(length));
        (begin, begin.saturating_add(length))
    }

    /// Returns the query of a page with these parameters and some changes, with its question mark; `None` removes one.
    pub(super) fn query(&self, changes: &[(&str, Option<&str>)]) -> String {
        let mut out = String::new();
        let mut push = |name: &str, value: &str| {
            out.push(if out.is_empty() { '?' } else { '&' });
            out.push_str(name);
            out.push('=');
            let mut bytes = Vec::new();
            escape(value.as_bytes(), Escape::UriComponent, &mut bytes);
            out.push_str(&String::from_utf8_lossy(&bytes));
        };
        for (name, value) in self.values() {
            if !changes.iter().any(|(changed, _)| *changed == name) {
                push(name, &value);
            }
        }
        for (name, value) in changes {
            if let Some(value) = value {
                push(name, value);
            }
        }
        out
    }

    /// Names and values that differ from the defaults.
    pub(super) fn values(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        match self.preset {
            Some(preset) if preset.name == DEFAULT => {}
            Some(preset) => found.push(("period", preset.name.to_owned())),
            None => found.extend([
                ("from", time::iso(self.base.0)),
                ("to", time::iso(self.base.1)),
            ]),
        }
        let mut add = |name, value: Option<String>| found.extend(value.map(|value| (name, value)));
        add("shift", (self.shift != 0).then(|| self.shift.to_string()));
        add("protocol", self.protocol.clone());
        add("server", self.server.clone());
        let country = self.country.as_deref();
        let country = country.map(|code| {
            if code.is_empty() {
                UNKNOWN_COUNTRY
            } else {
                code
            }
        });
        add("country", country.map(str::to_owned));
        add(
            "metric",
            (self.metric != Metric::MinRtt).then(|| metric(self.metric).name.to_owned()),
        );
        add(
            "percentile",
            (self.percentile != 50).then(|| self.percentile.to_string()),
        );
        add("before", self.before_s.map(time::iso));
        add("experiment", self.experiment.clone());
        add("visit", self.visit.map(|visit| visit.name().to_owned()));
        add("aa", self.is_a_a.then(|| "1".to_owned()));
        found
    }
}

/// Returns the period before its shift.
fn period(
    name: Option<&str>,
    from: Option<&str>,
    to: Option<&str>,
    now_s: u64,
) -> Result<(Option<Preset>, (u64, u64)), String> {
    let read = |name: &str, text: &str| time::parse(text).ok_or_else(|| unknown(name, text));
    if matches!(name, None | Some(EXACT)) && (from.is_some() || to.is_some()) {
        let to = to.map_or(Ok(now_s), |text| read("to", text))?;
        let from = from.map_or(Ok(to.saturating_sub(DAY_S)), |text| read("from", text))?;
        return match from < to {
            true if to - from <= LENGTH_MAX_S => Ok((None, (from, to))),
            true => Err("The period is longer than 10 years.".to_owned()),
            false => Err("The period ends before it begins.".to_owned()),
        };
    }
    let name = name.filter(|name| *name != EXACT).unwrap_or(DEFAULT);
    let found = PRESETS.iter().find(|preset| preset.name == name);
    let preset = *found.ok_or_else(|| unknown("period", name))?;
    let to = now_s.max(preset.length_s).next_multiple_of(preset.round_s);
    Ok((Some(preset), (to - preset.length_s, to)))
}

fn unknown(name: &str, value: &str) -> String {
    format!("The value \"{value}\" of \"{name}\" has no meaning here.")
}

/// Reads names and values of `application/x-www-form-urlencoded`. Longer values are cut.
fn pairs(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        let mut bytes = Vec::new();
        unescape(text.replace('+', " ").as_bytes(), &mut bytes);
        bytes.truncate(TEXT_BYTES_MAX);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let pairs = query.split('&').take(PAIRS_MAX);
    let split = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    split
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// A metric with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MetricName {
    /// The metric.
    pub(super) metric: Metric,
    /// Name in URLs, CSV and JSON.
    pub(super) name: &'static str,
    /// Name for readers.
    pub(super) label: &'static str,
}

/// Returns the names of a metric.
pub(super) fn metric(metric: Metric) -> MetricName {
    let found = METRICS.into_iter().find(|one| one.metric == metric);
    found.expect("each metric has its names")
}

/// All metrics.
pub(super) const METRICS: [MetricName; 4] = [
    MetricName {
        metric: Metric::MinRtt,
        name: "min_rtt",
        label: "Round trip",
    },
    MetricName {
        metric: Metric::FirstByte,
        name: "first_byte",
        label: "First byte",
    },
    MetricName {
        metric: Metric::Handshake,
        name: "handshake",
        label: "TLS handshake",
    },
    MetricName {
        metric: Metric::Rtt,
        name: "rtt",
        label: "Smoothed round trip",
    },
];

const fn preset(name: &'static str, label: &'static str, length_s: u64, round_s: u64) -> Preset {
    Preset {
        name,
        label,
        length_s,
        round_s,
    }
}

/// All presets.
pub(super) const PRESETS: [Preset; 7] = [
    preset("1h", "Last hour", 3600, 60),
    preset("6h", "Last 6 hours", 6 * 3600, 300),
    preset("24h", "Last 24 hours", DAY_S, 600),
    preset("7d", "Last 7 days", 7 * DAY_S, 3600),
    preset("30d", "Last 30 days", 30 * DAY_S, 3600),
    preset("90d", "Last 90 days", 90 * DAY_S, DAY_S),
    preset("400d", "Last 400 days", 400 * DAY_S, DAY_S),
];
const DEFAULT: &str = "24h";
/// Value of `period` for exact times.
pub(super) const EXACT: &str = "exact";
/// Value of `country` for connections of unknown countries.
const UNKNOWN_COUNTRY: &str = "unknown";
/// Names and values of a query.
const PAIRS_MAX: usize = 32;
/// Periods that a period is moved at most.
pub(super) const SHIFT_MAX: i64 = 10_000;
/// Longest period: 10 years.
const LENGTH_MAX_S: u64 = 3_653 * DAY_S;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_767_225_600 + 123;

    fn parsed(query: &str) -> Params {
        Params::parse(query, NOW).expect(query)
    }

    #[test]
    fn queries_are_read_and_written() {
        for query in [
            "",
            "?period=1h",
            "?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
            "?period=7d&shift=-3&protocol=HTTP%2F2.0&server=a%26b%3D%27%22%3C%20%2B&country=DE&metric=handshake&percentile=95",
            "?experiment=a%3Cb&visit=first_byte&aa=1",
        ] {
            let params = parsed(query.trim_start_matches('?'));
            assert_eq!(params.query(&[]).replace("%3A", ":"), query);
            assert_eq!(parsed(params.query(&[]).trim_start_matches('?')), params);
        }
        let params = parsed("server=a%26b%3D%27%22%3C+%2B&protocol=");
        assert_eq!(params.server.as_deref(), Some("a&b='\"< +"));
        assert_eq!(params.protocol, None);
        assert_eq!(
            params.query(&[("server", None), ("period", Some("1h"))]),
            "?period=1h"
        );
    }

    #[test]
    fn periods_end_at_round_times_and_move_by_their_length() {
        let params = parsed("period=1h");
        let to = 1_767_225_600 + 180;
        assert_eq!(params.period(), (to - 3600, to));
        assert_eq!(params.before(), (to - 7200, to - 3600));
        assert_eq!(
            parsed("period=1h&shift=-2").period(),
            (to - 3 * 3600, to - 2 * 3600)
        );
        assert_eq!(parsed("period=1h&shift=1").period(), (to, to + 3600));
        assert_eq!(
            parsed("period=exact&from=2026-01-01").period(),
            (1_767_225_600, NOW)
        );
        assert_eq!(
            parsed("from=0&period=1h").period().1,
            to,
            "a preset has precedence"
        );
        let far = parsed("shift=-9000000000000000000");
        assert_eq!(far.shift, -SHIFT_MAX);
        assert_eq!(parsed("before=2026-01-01").before().0, 1_767_225_600);
    }

    #[test]
    fn values_without_meaning_are_errors() {
        for query in [
            "period=2h",
            "from=yesterday",
            "from=2026-01-02&to=2026-01-01",
            "from=2026-01-01&to=2026-01-01",
            "from=1990-01-01&to=2026-01-01",
            "shift=x",
            "metric=",
            "metric=1",
            "percentile=99",
            "country=de",
            "country=DE'",
            "country=%00%00",
            "before=<script>",
            "visit=x",
            "aa=2",
        ] {
            let found = Params::parse(query, NOW);
            assert_eq!(found.is_err(), query != "metric=", "{query}: {found:?}");
        }
    }

    #[test]
    fn long_queries_are_cut() {
        let long = format!("server={}", "%41".repeat(300));
        assert_eq!(
            parsed(&long).server.map(|text| text.len()),
            Some(TEXT_BYTES_MAX)
        );
        let many = format!("{}server=x", "a=b&".repeat(PAIRS_MAX));
        assert_eq!(parsed(&many).server, None);
        let many = format!("{}server=x", "a=b&".repeat(PAIRS_MAX - 1));
        assert_eq!(parsed(&many).server.as_deref(), Some("x"));
    }
}
