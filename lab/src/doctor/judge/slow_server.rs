//! slow-server: how long the server takes for a response, beyond the network.
//!
//! Source: W3C Server Timing; thresholds of PageSpeed Insights ("reduce server response times") and Lighthouse
//! ("server-response-time").

use serde_json::{Value, json};

use super::sample::median;
use super::{Case, count, interval, of_page};
use crate::doctor::code::slow_server;
use crate::doctor::command::quoted;
use crate::doctor::figures::estimate;
use crate::doctor::finding::name_of_server;
use crate::doctor::{Finding, Severity};
use crate::stats::Estimate;

/// Responses to one URL, each on a connection that was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) url: String,
    /// From the end of a request to the head, less the least round trip, ms.
    pub(crate) waits_ms: Vec<f64>,
    /// The longest entry of each response's `Server-Timing`, name and ms.
    pub(crate) said: Vec<(String, f64)>,
    pub(crate) round_trip_ms: f64,
}

impl Figures {
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        median(&self.waits_ms)
    }

    pub(crate) fn measured(&self) -> Value {
        json!({
            "wait_ms": self.estimate().as_ref().map(estimate),
            "n": self.waits_ms.len(),
            "server_timing": self.said_most().map(|(name, ms)| json!({"name": name, "median_ms": ms})),
        })
    }

    /// The entry of `Server-Timing` that most responses name as the longest, with its median.
    fn said_most(&self) -> Option<(String, f64)> {
        let count = |name: &str| self.said.iter().filter(|(other, _)| other == name).count();
        let name = self
            .said
            .iter()
            .map(|(name, _)| name)
            .max_by_key(|name| count(name))?;
        let times: Vec<f64> = self
            .said
            .iter()
            .filter(|(other, _)| other == name)
            .map(|(_, ms)| *ms)
            .collect();
        Some((name.clone(), median(&times)?.value))
    }
}

/// slow-server: bad or warned of by the lower end of the median's interval, so a short load peak causes no finding.
pub(crate) fn judge(figures: &Figures) -> Option<Finding> {
    let estimate = figures.estimate()?;
    let severity = match estimate.low {
        low if low > BAD_MS => Severity::Bad,
        low if low > WARN_MS => Severity::Warn,
        _ => return None,
    };
    let timing = figures.said_most().map_or_else(String::new, |(name, ms)| {
        let name = name_of_server(&name);
        format!("; Server-Timing has {ms:.0} ms for \"{name}\"")
    });
    let url = quoted(&figures.url);
    let text = slow_server::server(estimate.value, interval(&estimate, 0), timing, url);
    let found = Finding::of(text, severity).costs(estimate.value, 0.0);
    Some(found.proof("response", figures.measured()))
}

/// slow-server in a page: warned of.
pub(crate) fn judge_page(cases: Vec<Case>) -> Option<Finding> {
    let is_slow = |one: &Case| one.lost_ms >= WARN_MS;
    of_page(cases, is_slow, Severity::Warn, |n, worst_ms| {
        slow_server::page(count(n, "request"), WARN_MS, worst_ms)
    })
}

/// The longest entry of a `Server-Timing` field with a duration, and that duration.
pub(crate) fn longest_entry(value: &str) -> Option<(String, f64)> {
    let entry = |text: &str| {
        let mut parts = text.split(';');
        let name = name_of_server(parts.next()?.trim());
        let ms = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            let of_duration = key.trim().eq_ignore_ascii_case("dur");
            of_duration.then(|| value.trim().trim_matches('"').parse::<f64>().ok())?
        })?;
        (ms.is_finite() && ms >= 0.0 && !name.is_empty()).then_some((name, ms))
    };
    let entries = value.split(',').take(ENTRIES_MAX).filter_map(entry);
    entries.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The limit of PageSpeed Insights.
pub(crate) const WARN_MS: f64 = 200.0;
/// The limit of Lighthouse.
const BAD_MS: f64 = 600.0;
/// Entries of `Server-Timing` that are read.
const ENTRIES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: usize = 11;

    fn figures(waits_ms: Vec<f64>) -> Figures {
        Figures {
            waits_ms,
            ..Figures::default()
        }
    }

    #[test]
    fn thresholds_are_held_by_the_interval() {
        let judged = |ms: f64| judge(&figures(vec![ms; SAMPLES])).map(|found| found.severity);
        assert_eq!(judged(WARN_MS), None);
        assert_eq!(judged(WARN_MS + 1.0), Some(Severity::Warn));
        assert_eq!(judged(BAD_MS), Some(Severity::Warn));
        assert_eq!(judged(BAD_MS + 1.0), Some(Severity::Bad));
        // Too few samples, and a few that are slow.
        assert_eq!(judge(&figures(vec![900.0; 5])), None);
        let mut busy = vec![5.0; SAMPLES];
        busy[..5].fill(900.0);
        assert_eq!(judge(&figures(busy)), None);
        let mut slow = vec![900.0; SAMPLES];
        slow[0] = 1.0;
        assert!(judge(&figures(slow)).is_some());
    }

    #[test]
    fn server_is_heard_of_what_it_did() {
        assert_eq!(
            longest_entry("cache;desc=hit, db;dur=53.2, app;dur=\"47\""),
            Some(("db".to_owned(), 53.2))
        );
        for none in ["", "db", "db;dur=x", "db;dur=-1", "db;dur=inf", ";dur=3"] {
            assert_eq!(longest_entry(none), None, "{none}");
        }
        let mut slow = figures(vec![300.0; SAMPLES]);
        slow.said = vec![("db".to_owned(), 280.0); SAMPLES];
        let found = judge(&slow).expect("it is slow");
        assert!(
            found.title.ends_with("280 ms for \"db\""),
            "{}",
            found.title
        );
        assert_eq!(found.lost_ms, 300.0);
    }
}
