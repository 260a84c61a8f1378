//! The staircase: requests that were known, waited for the end of another resource, and were sent then.
//!
//! A browser opens six HTTP/1.1 connections to a server, each for one request at a time. Every further request starts
//! when another one ends; in a waterfall this looks like stairs. On HTTP/2 and SPDY all requests start together. If one
//! of them starts at the end of another one, that is chance.

use std::collections::HashMap;

use serde::Serialize;

use super::wait::host_of;
use crate::page::resource::Resource;
use crate::page::visit::Visit;

/// How many starts waited for another's end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Staircase {
    /// Each start that waited, in the order of resources.
    pub steps: Vec<Step>,
    /// How many starts there were that could have waited: those of requests to servers, without the first.
    pub starts: usize,
    /// The most steps that follow from each other.
    pub depth: usize,
}

impl Staircase {
    /// Share of starts that waited, 0 to 1; `None` if there were no starts, or no queue is known.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        (self.starts > 0).then(|| self.steps.len() as f64 / self.starts as f64)
    }
}

/// A start that waited for another's end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Place of the resource that waited, in [`Visit::resources`].
    pub resource: usize,
    /// Place of the resource that it waited for.
    pub behind: usize,
    /// How long it had been known before, ms.
    pub queued_ms: f64,
}

/// The staircase of a visit.
pub(super) fn staircase(visit: &Visit) -> Staircase {
    let ends = Ends::of(visit);
    let mut found = Staircase::default();
    let sent = visit.resources.iter().enumerate();
    // The first request has nothing to wait for. A request with an unknown queue cannot be analysed.
    let judged = sent
        .filter(|(_, resource)| is_sent(resource))
        .skip(1)
        .filter_map(|(place, resource)| Some((place, resource, resource.phases.queued_ms?)));
    for (place, resource, queued_ms) in judged {
        found.starts += 1;
        if queued_ms < QUEUE_LEAST_MS || has_streams(&resource.protocol) {
            continue;
        }
        let begin_ms = resource.start_ms + queued_ms;
        if let Some(behind) = ends.before(place, resource, begin_ms) {
            found.steps.push(Step {
                resource: place,
                behind,
                queued_ms,
            });
        }
    }
    found.depth = depth(visit, &found.steps);
    found
}

/// Returns whether it was requested from a server.
pub(super) fn is_sent(resource: &Resource) -> bool {
    !resource.from_cache
        && (resource.status > 0
            || resource.connection.is_some()
            || resource.phases.wait_ms.is_some())
}

/// Returns whether a protocol, as ALPN names it, has concurrent requests on a connection.
fn has_streams(protocol: &str) -> bool {
    let names = ["h2", "h3", "spdy/", "hq", "quic"];
    names.iter().any(|name| protocol.starts_with(name))
}

/// The longest chain of steps.
fn depth(visit: &Visit, steps: &[Step]) -> usize {
    // A step begins after the end of the resource that it waited for. In the order of ends, the depth of that resource
    // is known when the step is reached.
    let mut order: Vec<&Step> = steps.iter().collect();
    let end = |step: &Step| visit.resources[step.resource].end_ms();
    order.sort_by(|a, b| end(a).total_cmp(&end(b)));
    let mut depths = vec![0_usize; visit.resources.len()];
    for step in order {
        depths[step.resource] = depths[step.behind] + 1;
    }
    depths.into_iter().max().unwrap_or_default()
}

/// When resources ended, by connection and by host.
struct Ends {
    /// In the order of time.
    by_connection: HashMap<u64, Vec<(f64, usize)>>,
    /// In the order of time.
    by_host: HashMap<String, Vec<(f64, usize)>>,
    /// The connection of each resource.
    connections: Vec<Option<u64>>,
}

impl Ends {
    fn of(visit: &Visit) -> Self {
        let mut by_connection: HashMap<u64, Vec<(f64, usize)>> = HashMap::new();
        let mut by_host: HashMap<String, Vec<(f64, usize)>> = HashMap::new();
        let resources = visit.resources.iter().enumerate();
        for (place, resource) in resources.filter(|(_, resource)| is_sent(resource)) {
            let end = (resource.end_ms(), place);
            if let Some(connection) = resource.connection {
                by_connection.entry(connection).or_default().push(end);
            }
            by_host.entry(host_of(resource)).or_default().push(end);
        }
        for ends in by_connection.values_mut().chain(by_host.values_mut()) {
            ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let connections = visit.resources.iter();
        Self {
            by_connection,
            by_host,
            connections: connections.map(|resource| resource.connection).collect(),
        }
    }

    /// Returns the resource that ended and so let another one begin. That is the last one on its connection that ended
    /// shortly before, else one on another or unknown connection to its host.
    fn before(&self, place: usize, resource: &Resource, begin_ms: f64) -> Option<usize> {
        let last = |ends: Option<&Vec<(f64, usize)>>| {
            let ends = ends?;
            let beyond = ends.partition_point(|(at, _)| *at <= begin_ms + EARLY_MS);
            let close = ends.get(..beyond)?.iter().rev();
            let mut close = close.take_while(|(at, _)| begin_ms - at <= START_MS);
            close
                .find(|(_, other)| *other != place)
                .map(|(_, other)| *other)
        };
        let own = resource.connection;
        if let Some(connection) = own {
            let found = last(self.by_connection.get(&connection));
            // A new connection in place of one that was closed has nothing on it before.
            if found.is_some() || self.is_used_before(connection, begin_ms) {
                return found;
            }
        }
        last(self.by_host.get(&host_of(resource)))
            .filter(|other| own.is_none() || self.connections[*other] != own)
    }

    /// Whether anything ended on a connection before.
    fn is_used_before(&self, connection: u64, begin_ms: f64) -> bool {
        let ends = self.by_connection.get(&connection);
        ends.and_then(|ends| ends.first())
            .is_some_and(|(at, _)| *at <= begin_ms)
    }
}

/// A request that was in the queue for less was sent when it was known, ms.
const QUEUE_LEAST_MS: f64 = 1.0;
/// A request that is sent because another has ended is sent within this, ms.
const START_MS: f64 = 5.0;
/// How much earlier than the end it may seem to be sent: clocks of a browser's processes are read apart, ms.
const EARLY_MS: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Phases;

    /// A resource known at `start_ms`, queued, and answered within 10 ms.
    fn resource(start_ms: f64, queued_ms: f64, connection: u64) -> Resource {
        Resource {
            url: "http://a.test/".to_owned(),
            status: 200,
            start_ms,
            connection: Some(connection),
            phases: Phases {
                queued_ms: Some(queued_ms),
                wait_ms: Some(10.0),
                ..Phases::default()
            },
            ..Resource::default()
        }
    }

    fn of(resources: Vec<Resource>) -> Staircase {
        staircase(&Visit {
            resources,
            ..Visit::default()
        })
    }

    /// A document, then `n` resources known at 10 ms over `connections`.
    fn page(n: usize, connections: usize) -> Vec<Resource> {
        let mut all = vec![resource(0.0, 0.0, 0)];
        for i in 0..n {
            let row = i / connections;
            all.push(resource(10.0, 10.0 * row as f64, (i % connections) as u64));
        }
        all
    }

    #[test]
    fn six_connections_make_stairs_and_streams_make_none() {
        let stairs = of(page(18, 6));
        assert_eq!(
            (stairs.steps.len(), stairs.starts, stairs.depth),
            (12, 18, 2)
        );
        assert_eq!(stairs.score(), Some(12.0 / 18.0));
        assert_eq!((stairs.steps[0].resource, stairs.steps[0].behind), (7, 1));
        let together = of(page(18, 18));
        assert_eq!((together.score(), together.depth), (Some(0.0), 0));
    }

    #[test]
    fn streams_wait_for_nobody() {
        let over = |protocol: &str| {
            let mut stairs = page(18, 6);
            for resource in &mut stairs {
                resource.protocol = protocol.to_owned();
            }
            of(stairs).score()
        };
        assert_eq!((over("h2"), over("spdy/3.1")), (Some(0.0), Some(0.0)));
        assert_eq!(over("http/1.1"), Some(12.0 / 18.0));
    }

    #[test]
    fn what_was_discovered_late_did_not_wait() {
        // It starts at the end of the first one because that one contains its URL.
        let found = of(vec![resource(0.0, 0.0, 1), resource(10.0, 0.0, 1)]);
        assert_eq!((found.steps.len(), found.starts), (0, 1));
    }

    #[test]
    fn a_start_long_after_an_end_waited_for_something_else() {
        let at = |queued| {
            of(vec![resource(0.0, 0.0, 1), resource(0.0, queued, 1)])
                .steps
                .len()
        };
        assert_eq!((at(10.0), at(15.0), at(15.1)), (1, 1, 0));
        assert_eq!((at(9.0), at(8.9)), (1, 0));
        assert_eq!(at(0.5), 0);
    }

    #[test]
    fn without_connections_the_host_is_asked() {
        let unknown = |start, queued| Resource {
            connection: None,
            ..resource(start, queued, 0)
        };
        assert_eq!(
            of(vec![unknown(0.0, 0.0), unknown(0.0, 10.0)]).steps.len(),
            1
        );
        let mut other = unknown(0.0, 10.0);
        other.url = "http://b.test/".to_owned();
        assert_eq!(of(vec![unknown(0.0, 0.0), other]).steps.len(), 0);
    }

    #[test]
    fn a_new_connection_can_wait_for_the_end_of_another() {
        let found = of(vec![resource(0.0, 0.0, 1), resource(0.0, 10.0, 2)]);
        assert_eq!(found.steps.len(), 1);
        // One that carried something before has had its turn.
        let mut used = vec![resource(0.0, 0.0, 1), resource(0.0, 20.0, 2)];
        used.push(resource(0.0, 0.0, 2));
        used.push(resource(0.0, 10.0, 1));
        let steps = of(used).steps;
        assert!(steps.iter().all(|step| step.resource != 1), "{steps:?}");
    }

    #[test]
    fn caches_and_unknown_queues_are_left_out() {
        let cached = Resource {
            from_cache: true,
            ..resource(0.0, 10.0, 1)
        };
        let mut unknown = resource(0.0, 10.0, 1);
        unknown.phases.queued_ms = None;
        let found = of(vec![resource(0.0, 0.0, 1), cached, unknown]);
        assert_eq!((found.starts, found.score()), (0, None));
    }
}
