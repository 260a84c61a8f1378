//! Sums: requests, bytes and connections, by protocol and by host.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::wait::host_of;
use crate::page::resource::Resource;
use crate::page::visit::Visit;

/// A sum over resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Common name of the resources: a protocol as ALPN names it, or scheme, host and port. Empty for the sum of all
    /// resources and for an unknown protocol.
    pub name: String,
    /// Requests to servers.
    pub requests: usize,
    /// Resources from a cache.
    pub from_cache: usize,
    /// Requests without a whole response.
    pub failed: usize,
    /// Transferred bytes of heads and bodies, as far as they are known.
    pub bytes: u64,
    /// Bytes of bodies after decoding, as far as they are known.
    pub content_bytes: u64,
    /// Requests with an unknown number of transferred bytes. If there are any, `bytes` is a lower limit.
    pub unknown_bytes: usize,
    /// Different connections.
    pub connections: usize,
}

/// The sum over all resources.
pub(super) fn total(visit: &Visit) -> Sum {
    sums(&visit.resources, |_| String::new())
        .pop()
        .unwrap_or_default()
}

/// Sums by protocol, most requests first, without resources from a cache.
pub(super) fn by_protocol(visit: &Visit) -> Vec<Sum> {
    let asked = visit.resources.iter().filter(|one| !one.from_cache);
    sums(asked, |resource| resource.protocol.clone())
}

/// Sums by scheme, host and port, the most requests first.
pub(super) fn by_host(visit: &Visit) -> Vec<Sum> {
    sums(&visit.resources, host_of)
}

fn sums<'a>(
    resources: impl IntoIterator<Item = &'a Resource>,
    name: impl Fn(&Resource) -> String,
) -> Vec<Sum> {
    let mut found: BTreeMap<String, (Sum, BTreeSet<u64>)> = BTreeMap::new();
    for resource in resources {
        let name = name(resource);
        let (sum, connections) = found.entry(name).or_default();
        sum.content_bytes = sum
            .content_bytes
            .saturating_add(resource.content_bytes.unwrap_or_default());
        if resource.from_cache {
            sum.from_cache += 1;
            continue;
        }
        sum.requests += 1;
        sum.failed += usize::from(resource.error.is_some());
        let bytes = resource.transferred_bytes();
        sum.bytes = sum.bytes.saturating_add(bytes.unwrap_or_default());
        sum.unknown_bytes += usize::from(bytes.is_none() && resource.status > 0);
        connections.extend(resource.connection);
    }
    let mut sums: Vec<Sum> = found
        .into_iter()
        .map(|(name, (sum, connections))| Sum {
            name,
            connections: connections.len(),
            ..sum
        })
        .collect();
    // The sort is stable: equal numbers stay in the order of names.
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.requests));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(url: &str, protocol: &str, connection: u64, body_bytes: Option<u64>) -> Resource {
        Resource {
            url: url.to_owned(),
            protocol: protocol.to_owned(),
            status: 200,
            connection: Some(connection),
            head_bytes: body_bytes.map(|_| 100),
            body_bytes,
            content_bytes: body_bytes.map(|bytes| 2 * bytes),
            ..Resource::default()
        }
    }

    #[test]
    fn sums_count_requests_bytes_and_connections() {
        let cached = Resource {
            from_cache: true,
            ..resource("https://a.test/c", "h2", 1, Some(50))
        };
        let failed = Resource {
            error: Some("reset".to_owned()),
            ..resource("http://b.test/d", "http/1.1", 3, None)
        };
        let visit = Visit {
            resources: vec![
                failed,
                resource("https://a.test/a", "h2", 1, Some(1000)),
                resource("https://A.test/b", "h2", 2, Some(2000)),
                cached,
            ],
            ..Visit::default()
        };
        let h2 = Sum {
            name: "h2".to_owned(),
            requests: 2,
            bytes: 3200,
            content_bytes: 6000,
            connections: 2,
            ..Sum::default()
        };
        let h1 = Sum {
            name: "http/1.1".to_owned(),
            requests: 1,
            failed: 1,
            unknown_bytes: 1,
            connections: 1,
            ..Sum::default()
        };
        assert_eq!(by_protocol(&visit), [h2, h1]);
        let hosts = by_host(&visit);
        assert_eq!(
            (hosts[0].name.as_str(), hosts[0].from_cache),
            ("https://a.test", 1)
        );
        let all = total(&visit);
        assert_eq!(
            (all.requests, all.from_cache, all.connections, all.bytes),
            (3, 1, 3, 3200)
        );
    }

    #[test]
    fn sums_of_hostile_sizes_do_not_overflow() {
        let huge = || Resource {
            content_bytes: Some(u64::MAX),
            body_bytes: Some(u64::MAX),
            ..resource("http://a.test/", "h2", 1, Some(1))
        };
        let visit = Visit {
            resources: vec![huge(), huge()],
            ..Visit::default()
        };
        assert_eq!(
            (total(&visit).bytes, total(&visit).content_bytes),
            (u64::MAX, u64::MAX)
        );
    }
}
