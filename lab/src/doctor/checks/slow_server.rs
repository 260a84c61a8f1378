//! slow-server: how long the server takes for a response, beyond the network.
//!
//! Source: W3C Server Timing; thresholds of PageSpeed Insights ("reduce server response times") and Lighthouse
//! ("server-response-time").

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::sample::median;
use crate::doctor::command::quoted;
use crate::doctor::figures::{estimate, ms};
use crate::doctor::finding::name_of_server;
use crate::doctor::{Code, Examination, Failure, Finding, NetworkPath, Severity, Visitor};
use crate::stats::Estimate;

/// Responses to one URL, each on a connection that was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) url: String,
    /// From the end of a request to the head, less the least round trip, ms.
    pub(super) waits_ms: Vec<f64>,
    /// The longest entry of each response's `Server-Timing`, name and ms.
    pub(super) said: Vec<(String, f64)>,
    pub(super) round_trip_ms: f64,
}

impl Figures {
    pub(super) fn estimate(&self) -> Option<Estimate> {
        median(&self.waits_ms)
    }

    pub(super) fn measured(&self) -> Value {
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

/// Asks for the target again and again on a connection that is there.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let figures = x.visit(NetworkPath::Direct, requests)??;
    x.measure("server", figures.measured());
    Ok(judge(&figures).into_iter().collect())
}

fn requests(visitor: &Visitor<'_>) -> Result<Figures, Failure> {
    let url = &visitor.plan().url;
    let (mut samples, mut said) = (Vec::new(), Vec::new());
    let mut least_ns = u64::MAX;
    let begun = Instant::now();
    let mut session = visitor.open(&visitor.dial())?;
    while samples.len() < SAMPLES && (samples.len() < SAMPLES_MIN || begun.elapsed() < LONGEST) {
        session.keep_open()?;
        let response = session.exchange(&visitor.get(url, &[]))?;
        least_ns = least_ns.min(session.record().round_trip_ns());
        samples.push((response.sent, response.head));
        said.extend(response.field("server-timing").and_then(longest_entry));
    }
    let round_trip_ms = ms(0, least_ns);
    let beyond = |took_ms: f64| (took_ms - round_trip_ms).max(0.0);
    let took_ms = visitor.valid_ms(&samples).into_iter();
    Ok(Figures {
        url: url.to_string(),
        waits_ms: took_ms.map(beyond).collect(),
        said,
        round_trip_ms,
    })
}

/// slow-server: by the lower end of the median's interval, so that a machine that is busy for a moment is not called slow.
pub(super) fn judge(figures: &Figures) -> Option<Finding> {
    let estimate = figures.estimate()?;
    let severity = match estimate.low {
        low if low > BAD_MS => Severity::Bad,
        low if low > WARN_MS => Severity::Warn,
        _ => return None,
    };
    let mut title = format!(
        "The server takes {:.0} ms for a response ({:.0} to {:.0}, n = {}) beyond the round trip",
        estimate.value, estimate.low, estimate.high, estimate.n
    );
    if let Some((name, ms)) = figures.said_most() {
        title.push_str(&format!(
            "; Server-Timing has {ms:.0} ms for \"{}\"",
            name_of_server(&name)
        ));
    }
    Some(
        Finding::new(Code::SlowServer, severity, title)
            .costs(estimate.value, 0.0)
            .proof("response", figures.measured())
            .mend("nginx and firstbyte: proxy_cache, fastcgi_cache and so on, with proxy_cache_background_update on and proxy_cache_use_stale updating")
            .mend("firstbyte: server_timing on; says what part of it is the application's")
            .mend("an application that flushes the page's head before it computes the rest: early bytes name scripts and styles")
            .mend(format!("firstbyte bench --connections 1 --requests 20 {}", quoted(&figures.url))),
    )
}

/// The longest entry of a `Server-Timing` field with a duration, and that duration.
pub(super) fn longest_entry(value: &str) -> Option<(String, f64)> {
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

/// Requests of which the median is taken.
const SAMPLES: usize = 11;
/// The least of them that have an interval, where the server is so slow that more take too long.
const SAMPLES_MIN: usize = 6;
/// How long more than that are waited for.
const LONGEST: Duration = Duration::from_secs(10);
/// The limit of PageSpeed Insights.
const WARN_MS: f64 = 200.0;
/// The limit of Lighthouse.
const BAD_MS: f64 = 600.0;
/// Entries of `Server-Timing` that are read.
const ENTRIES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

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
