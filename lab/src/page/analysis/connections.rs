//! Connections: the resources of each, when it was opened, and how long it was idle.

use std::collections::HashMap;

use serde::Serialize;

use super::wait::host_of;
use crate::page::resource::Resource;
use crate::page::visit::Visit;

/// A connection and its use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConnectionUse {
    /// Its number, as the source of the visit numbers connections.
    pub id: u64,
    /// Scheme, host and port of its first request.
    pub host: String,
    /// Address and port of the server, if known.
    pub remote: Option<String>,
    /// The protocol, as ALPN names it; empty if unknown.
    pub protocol: String,
    /// When its opening began, ms; without an opening in this visit, when its first request was sent.
    pub opened_ms: f64,
    /// Place of the resource for which it was opened; `None` if it was not opened in this visit.
    pub opened_for: Option<usize>,
    /// Duration of the opening of TCP, ms.
    pub connect_ms: Option<f64>,
    /// Duration of the TLS handshake, ms.
    pub tls_ms: Option<f64>,
    /// Places of its resources in [`Visit::resources`], in the order of their requests.
    pub resources: Vec<usize>,
    /// Most concurrent requests.
    pub streams_max: usize,
    /// When its last response ended, ms.
    pub last_ms: f64,
    /// Time with a request in progress, ms.
    pub busy_ms: f64,
    /// Time without a request in progress, from its opening to its last response, ms.
    pub idle_ms: f64,
}

/// The connections of a visit, in the order in which they were opened.
pub(super) fn connections(visit: &Visit) -> Vec<ConnectionUse> {
    let mut carried: HashMap<u64, Vec<usize>> = HashMap::new();
    for (place, resource) in visit.resources.iter().enumerate() {
        if let Some(id) = resource.connection.filter(|_| !resource.from_cache) {
            carried.entry(id).or_default().push(place);
        }
    }
    let mut found: Vec<ConnectionUse> = carried
        .into_iter()
        .map(|(id, places)| used(visit, id, places))
        .collect();
    found.sort_by(|a, b| a.opened_ms.total_cmp(&b.opened_ms).then(a.id.cmp(&b.id)));
    found
}

fn used(visit: &Visit, id: u64, mut places: Vec<usize>) -> ConnectionUse {
    let sent = |place: &usize| visit.resources[*place].sent_ms();
    places.sort_by(|a, b| sent(a).total_cmp(&sent(b)).then(a.cmp(b)));
    let mut carried = places.iter().map(|place| &visit.resources[*place]);
    let mut of_opening = places.iter().copied();
    let opened_for = of_opening.find(|place| visit.resources[*place].phases.connect_ms.is_some());
    let opening = opened_for.map(|place| &visit.resources[place]);
    let first_sent = places.first().map(sent).unwrap_or_default();
    let mut spans: Vec<(f64, f64)> = places
        .iter()
        .map(|place| (sent(place), visit.resources[*place].end_ms()))
        .collect();
    // A connection is open from its handshake on: opening it is neither use nor rest.
    let open_ms = opening
        .map_or(first_sent, Resource::sent_ms)
        .min(first_sent);
    let last_ms = spans.iter().map(|span| span.1).fold(first_sent, f64::max);
    let busy_ms = covered(&mut spans);
    ConnectionUse {
        id,
        host: carried.clone().next().map(host_of).unwrap_or_default(),
        remote: carried.clone().find_map(|resource| resource.remote.clone()),
        protocol: carried
            .find(|resource| !resource.protocol.is_empty())
            .map(|resource| resource.protocol.clone())
            .unwrap_or_default(),
        opened_ms: opening.map_or(first_sent, Resource::opening_ms),
        opened_for,
        connect_ms: opening.and_then(|resource| resource.phases.connect_ms),
        tls_ms: opening.and_then(|resource| resource.phases.tls_ms),
        streams_max: most_at_a_time(&spans),
        last_ms,
        busy_ms,
        idle_ms: (last_ms - open_ms - busy_ms).max(0.0),
        resources: places,
    }
}

/// Returns the length of the union of spans of time; sorts the spans.
fn covered(spans: &mut [(f64, f64)]) -> f64 {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut until) = (0.0, f64::NEG_INFINITY);
    for (from, to) in spans.iter().copied() {
        let new = to - from.max(until);
        sum += new.max(0.0);
        until = until.max(to);
    }
    sum
}

/// The most spans that hold one moment; an end is before a begin of the same time.
fn most_at_a_time(spans: &[(f64, f64)]) -> usize {
    let begins = spans.iter().map(|span| (span.0, 1_i64));
    let mut changes: Vec<(f64, i64)> = begins
        .chain(spans.iter().map(|span| (span.1, -1)))
        .collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most) = (0_i64, 0_i64);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    // A span without length begins behind its own end, and was there nevertheless.
    usize::try_from(most)
        .unwrap_or_default()
        .max(spans.len().min(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Phases;

    fn resource(connection: u64, start_ms: f64, opens: bool, wait_ms: f64) -> Resource {
        Resource {
            url: "https://a.test:8443/x".to_owned(),
            protocol: "h2".to_owned(),
            connection: Some(connection),
            start_ms,
            phases: Phases {
                queued_ms: Some(1.0),
                dns_ms: opens.then_some(2.0),
                connect_ms: opens.then_some(20.0),
                tls_ms: opens.then_some(30.0),
                wait_ms: Some(wait_ms),
                ..Phases::default()
            },
            ..Resource::default()
        }
    }

    #[test]
    fn a_connection_has_its_opening_its_requests_and_its_rest() {
        let visit = Visit {
            resources: vec![
                resource(4, 200.0, true, 10.0),
                resource(9, 0.0, true, 40.0),
                resource(9, 99.0, false, 50.0),
                resource(9, 109.0, false, 60.0),
            ],
            ..Visit::default()
        };
        let found = connections(&visit);
        let expected = ConnectionUse {
            id: 9,
            host: "https://a.test:8443".to_owned(),
            remote: None,
            protocol: "h2".to_owned(),
            opened_ms: 3.0,
            opened_for: Some(1),
            connect_ms: Some(20.0),
            tls_ms: Some(30.0),
            resources: vec![1, 2, 3],
            streams_max: 2,
            last_ms: 170.0,
            // 53 to 93 and 100 to 170.
            busy_ms: 110.0,
            idle_ms: 7.0,
        };
        assert_eq!(found[0], expected);
        assert_eq!((found.len(), found[1].id, found[1].idle_ms), (2, 4, 0.0));
    }

    #[test]
    fn a_connection_of_an_earlier_visit_has_no_opening() {
        let visit = Visit {
            resources: vec![
                resource(1, 5.0, false, 10.0),
                Resource {
                    from_cache: true,
                    ..resource(2, 0.0, false, 0.0)
                },
            ],
            ..Visit::default()
        };
        let found = connections(&visit);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].opened_for, found[0].opened_ms), (None, 6.0));
        assert_eq!((found[0].streams_max, found[0].idle_ms), (1, 0.0));
    }
}
