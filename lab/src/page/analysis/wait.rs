//! The parts of a wait: queue, round trip, server, and the unexplained rest.
//!
//! The part of the server is the longest metric in the response's `Server-Timing` (W3C Server Timing). Metrics may
//! contain each other, so their sum would be too long. Without the field, the time of the server is in the unexplained
//! rest.

use std::collections::HashMap;

use serde::Serialize;

use crate::page::resource::Resource;
use crate::page::visit::Visit;

/// Parts of the time from a request's discovery to its first byte, without DNS, connect, TLS and sending; ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitParts {
    /// In the queue before it was sent; `None` if the source does not report it.
    pub queue_ms: Option<f64>,
    /// Of the network: one round trip, or the whole wait if it is shorter; `None` if no round trip is known.
    pub round_trip_ms: Option<f64>,
    /// The server's by its own account; `None` without `Server-Timing`.
    pub server_ms: Option<f64>,
    /// The rest of the wait.
    pub unexplained_ms: f64,
}

/// Splits a resource's wait; `None` for a resource that did not wait for a server.
pub(super) fn wait_parts(resource: &Resource, round_trip_ms: Option<f64>) -> Option<WaitParts> {
    let wait_ms = resource.phases.wait_ms?;
    if resource.from_cache {
        return None;
    }
    let network = round_trip_ms.map(|ms| ms.clamp(0.0, wait_ms.max(0.0)));
    let rest = wait_ms - network.unwrap_or_default();
    // A streamed response may report the time of the whole body; only the time before its first byte is part of the
    // wait.
    let server = server_timing_ms(resource).map(|ms| ms.min(rest));
    Some(WaitParts {
        queue_ms: resource.phases.queued_ms,
        round_trip_ms: network,
        server_ms: server,
        unexplained_ms: rest - server.unwrap_or_default(),
    })
}

/// The longest duration of the response's `Server-Timing`, ms.
fn server_timing_ms(resource: &Resource) -> Option<f64> {
    let fields = resource.response_fields.iter();
    let values = fields.filter(|(name, _)| name.eq_ignore_ascii_case("server-timing"));
    let metrics = values.flat_map(|(_, value)| outside_quotes(value, ','));
    let durations = metrics.filter_map(duration_ms);
    durations.max_by(f64::total_cmp)
}

/// The `dur` of a metric, such as `db;dur=12.5;desc="rows"`.
fn duration_ms(metric: &str) -> Option<f64> {
    let parameters = outside_quotes(metric, ';').into_iter().skip(1);
    let mut pairs = parameters.filter_map(|parameter| parameter.split_once('='));
    // The first of two parameters with the same name counts.
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("dur"))?;
    let number = value.trim().trim_matches('"').parse::<f64>().ok();
    number.filter(|ms| ms.is_finite() && *ms >= 0.0)
}

/// Parts of a text between separators that are in no quoted string.
fn outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c| {
        let is_end = c == separator && !quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        is_end
    })
    .collect()
}

/// Round trips to the hosts of a visit, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips {
    /// By host: when the first connection to it was opened, and how long that took, which is a round trip and no less, ms.
    connects: HashMap<String, (f64, f64)>,
    /// The host of the page, and the round trip that was measured to it, ms.
    page: Option<(String, f64)>,
}

impl RoundTrips {
    /// Round trips of a visit: the measured one, and TCP handshakes.
    pub(super) fn of(visit: &Visit) -> Self {
        let mut connects: HashMap<String, (f64, f64)> = HashMap::new();
        for resource in visit.resources.iter().filter(|one| !one.from_cache) {
            let Some(took) = resource.phases.connect_ms.filter(|ms| *ms > 0.0) else {
                continue;
            };
            let opened = resource.opening_ms();
            // The minimum would be wrong: a request may take over a connection that is being opened, and then its
            // connect time is too short. The first one opened its connection itself.
            let first = connects.entry(host_of(resource)).or_insert((opened, took));
            if opened < first.0 {
                *first = (opened, took);
            }
        }
        let measured = visit.round_trip_ms.filter(|ms| *ms > 0.0);
        // The host of the document after redirects has most of the resources.
        let first = visit.resources.first();
        Self {
            connects,
            page: first.map(host_of).zip(measured),
        }
    }

    /// The round trip to a resource's host, ms: measured, or else the time in which the first connection was opened.
    pub(super) fn to(&self, resource: &Resource) -> Option<f64> {
        let host = host_of(resource);
        let page = self.page.as_ref().filter(|(name, _)| *name == host);
        let connect = || self.connects.get(&host).map(|(_, took)| *took);
        page.map(|(_, measured)| *measured).or_else(connect)
    }
}

/// Returns scheme, host and port of a resource; hosts are case-insensitive.
pub(super) fn host_of(resource: &Resource) -> String {
    resource.origin().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Phases;

    fn waited(wait_ms: f64, server_timing: &str) -> Resource {
        Resource {
            url: "http://a.test/x".to_owned(),
            phases: Phases {
                queued_ms: Some(7.0),
                wait_ms: Some(wait_ms),
                ..Phases::default()
            },
            response_fields: vec![("Server-Timing".to_owned(), server_timing.to_owned())],
            ..Resource::default()
        }
    }

    #[test]
    fn a_wait_is_a_round_trip_the_server_and_a_rest() {
        let parts = wait_parts(&waited(100.0, "app;dur=30"), Some(50.0)).expect("it waited");
        let expected = WaitParts {
            queue_ms: Some(7.0),
            round_trip_ms: Some(50.0),
            server_ms: Some(30.0),
            unexplained_ms: 20.0,
        };
        assert_eq!(parts, expected);
    }

    #[test]
    fn no_part_is_longer_than_the_wait() {
        let parts = wait_parts(&waited(40.0, "app;dur=30"), Some(50.0)).expect("it waited");
        assert_eq!(
            (parts.round_trip_ms, parts.server_ms),
            (Some(40.0), Some(0.0))
        );
        assert_eq!(parts.unexplained_ms, 0.0);
        let parts = wait_parts(&waited(60.0, "all;dur=500"), Some(50.0)).expect("it waited");
        assert_eq!((parts.server_ms, parts.unexplained_ms), (Some(10.0), 0.0));
        let parts = wait_parts(&waited(60.0, ""), None).expect("it waited");
        assert_eq!((parts.server_ms, parts.unexplained_ms), (None, 60.0));
    }

    #[test]
    fn the_longest_metric_of_server_timing_counts() {
        for (value, expected) in [
            ("db;dur=12.5, app;dur=30;desc=\"a, b;dur=99\"", Some(30.0)),
            ("cache;desc=hit", None),
            ("a;DUR=\"3\";dur=9", Some(3.0)),
            ("a;dur=-1", None),
            ("a;dur=NaN, b;dur=inf", None),
            ("a;desc=\"\\\";dur=7\";dur=2", Some(2.0)),
        ] {
            assert_eq!(server_timing_ms(&waited(1.0, value)), expected, "{value}");
        }
    }

    #[test]
    fn round_trips_are_what_was_measured_or_the_first_connect() {
        let connecting = |url: &str, start_ms: f64, ms: f64| Resource {
            url: url.to_owned(),
            start_ms,
            phases: Phases {
                connect_ms: Some(ms),
                ..Phases::default()
            },
            ..Resource::default()
        };
        let visit = Visit {
            resources: vec![
                connecting("http://a.test/", 0.0, 21.0),
                connecting("http://B.test/1", 9.0, 30.0),
                connecting("http://b.test/2", 8.0, 80.0),
                connecting("http://b.test/3", 9.0, 90.0),
            ],
            round_trip_ms: Some(20.0),
            ..Visit::default()
        };
        let trips = RoundTrips::of(&visit);
        let to = |url: &str| trips.to(&connecting(url, 0.0, 0.0));
        assert_eq!(to("http://a.test/other"), Some(20.0));
        assert_eq!(to("http://b.test"), Some(80.0));
        assert_eq!(to("http://c.test/"), None);
    }
}
