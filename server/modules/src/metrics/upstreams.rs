//! Families of upstream servers and of their groups: those of groups with a zone, [`SERVERS_MAX`] of each at most.
//!
//! A server with several entries of one address in a group has one sample with their sums. The number of servers in
//! excess of the limit is a family of its own.

use std::collections::BTreeMap;

use server_base::handshakes::HandshakeCounts;
use server_http::http::Http;
use server_upstream::control::PeerView;
use server_upstream::group::{Group, Groups};
use server_upstream::idle_counts::idle_connections;
use server_upstream::peer_stats::BOUNDS_MS;
use server_upstream::pool::group_digest;
use server_upstream::shared::SharedPeers;

use super::format::{MetricType, Writer};

/// Figures of upstream servers.
#[derive(Default)]
pub(super) struct UpstreamFacts {
    servers: Vec<ServerSample>,
    groups: Vec<GroupSample>,
    /// Number of servers in excess of the limit.
    unlisted: usize,
    /// Whether there is a group with a zone.
    has_groups: bool,
}

/// A server of a group.
struct ServerSample {
    /// Names of group and server, quoted.
    upstream: String,
    server: String,
    figures: Figures,
}

/// A group.
#[derive(Default)]
struct GroupSample {
    /// Its name, quoted.
    upstream: String,
    /// Idle connections; `None` without `keepalive`.
    idle: Option<u64>,
    /// Waiting requests, and requests rejected by a full queue; `None` without `queue`.
    queue: Option<(u64, u64)>,
}

/// Sums of the entries of one address.
#[derive(Default)]
struct Figures {
    is_up: bool,
    active: u64,
    requests: u64,
    classes: [u64; 5],
    fails: u64,
    unavailable: u64,
    sent_bytes: u64,
    received_bytes: u64,
    buckets: [u64; BOUNDS_MS.len() + 1],
    response_ms: u64,
    handshakes: HandshakeCounts,
}

impl UpstreamFacts {
    /// Reads the present values. `now_ms` is monotonic.
    pub(super) fn now(http: &Http, now_ms: u64) -> Self {
        let mut facts = Self::default();
        for group in http.main::<Groups>().iter() {
            let Some(peers) = group.shared_peers() else {
                continue;
            };
            facts.has_groups = true;
            let mut servers: BTreeMap<String, Figures> = BTreeMap::new();
            for peer in peers.peer_views(now_ms).flatten() {
                let server = servers.entry(quoted(&peer.addr.to_string()));
                server.or_default().add(&peer);
            }
            let upstream = quoted(&String::from_utf8_lossy(&group.name));
            for (server, figures) in servers {
                facts.push(&upstream, server, figures);
            }
            if facts.groups.len() < SERVERS_MAX {
                facts.groups.push(GroupSample::of(group, peers, upstream));
            }
        }
        facts
    }

    fn push(&mut self, upstream: &str, server: String, figures: Figures) {
        match self.servers.len() < SERVERS_MAX {
            true => self.servers.push(ServerSample {
                upstream: upstream.to_owned(),
                server,
                figures,
            }),
            false => self.unlisted += 1,
        }
    }
}

impl GroupSample {
    fn of(group: &Group, peers: &SharedPeers, upstream: String) -> Self {
        let idle = || idle_connections(group_digest(&group.name));
        let counts = peers.queue_counts();
        Self {
            upstream,
            idle: group.keepalive.map(|_| idle()),
            queue: (group.queue).map(|_| (counts.waiting(), counts.overflows())),
        }
    }
}

impl Figures {
    fn add(&mut self, peer: &PeerView) {
        let stats = &peer.stats;
        self.is_up |= peer.state.is_up();
        self.active += peer.active;
        self.requests += stats.requests;
        let counts = stats.codes.classes().into_iter();
        for (sum, count) in self.classes.iter_mut().zip(counts) {
            *sum += count;
        }
        self.fails += stats.fails;
        self.unavailable += stats.unavailable;
        self.sent_bytes += stats.sent_bytes;
        self.received_bytes += stats.received_bytes;
        let counts = stats.histogram.buckets.iter();
        for (sum, count) in self.buckets.iter_mut().zip(counts) {
            *sum += count;
        }
        self.response_ms += stats.histogram.sum_ms;
        self.handshakes.add(&stats.handshakes);
    }
}

/// Writes the families of upstream servers.
pub(super) fn write(page: &mut Writer, facts: &UpstreamFacts) {
    if !facts.has_groups {
        return;
    }
    for (name, kind, help, value) in FAMILIES {
        let name = format!("firstbyte_upstream_{name}");
        let sample = match kind {
            MetricType::Counter => format!("{name}_total"),
            _ => name.clone(),
        };
        let unit = if name.ends_with("_bytes") {
            "bytes"
        } else {
            ""
        };
        page.family(&name, *kind, unit, help);
        for row in &facts.servers {
            page.sample(&sample, &row.labels(), value(&row.figures));
        }
    }
    responses(page, &facts.servers);
    times(page, &facts.servers);
    groups(page, &facts.groups);
    let name = "firstbyte_upstream_unlisted_servers";
    let help = "Upstream servers without metrics of their own, since there are too many.";
    page.family(name, MetricType::Gauge, "", help);
    page.sample(name, &[], facts.unlisted);
}

/// Writes the families of groups. A group has samples of the directives that it has.
fn groups(page: &mut Writer, groups: &[GroupSample]) {
    for (name, kind, help, value) in GROUP_FAMILIES {
        let samples: Vec<_> = groups
            .iter()
            .filter_map(|group| Some((group, value(group)?)))
            .collect();
        if samples.is_empty() {
            continue;
        }
        let name = format!("firstbyte_upstream_{name}");
        page.family(&name, *kind, "", help);
        let sample = match kind {
            MetricType::Counter => format!("{name}_total"),
            _ => name,
        };
        for (group, value) in samples {
            page.sample(&sample, &[("upstream", &group.upstream)], value);
        }
    }
}

fn responses(page: &mut Writer, rows: &[ServerSample]) {
    let name = "firstbyte_upstream_responses";
    let help = "Responses of an upstream server, by class of status.";
    page.family(name, MetricType::Counter, "", help);
    for row in rows {
        for (class, count) in CLASSES.iter().zip(row.figures.classes) {
            let [upstream, server] = row.labels();
            let labels = [upstream, server, ("class", *class)];
            page.sample(&format!("{name}_total"), &labels, count);
        }
    }
}

fn times(page: &mut Writer, rows: &[ServerSample]) {
    let name = "firstbyte_upstream_response_seconds";
    let help = "Time from the start of an attempt to the end of the upstream server's response.";
    page.family(name, MetricType::Histogram, "seconds", help);
    for row in rows {
        let [upstream, server] = row.labels();
        let mut within = 0;
        let bounds = BOUNDS_MS.iter().map(|ms| milliseconds(*ms));
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(row.figures.buckets) {
            within += count;
            let labels = [upstream, server, ("le", &*bound)];
            page.sample(&format!("{name}_bucket"), &labels, within);
        }
        let sum = milliseconds(row.figures.response_ms);
        page.sample(&format!("{name}_sum"), &row.labels(), sum);
        page.sample(&format!("{name}_count"), &row.labels(), within);
    }
}

impl ServerSample {
    fn labels(&self) -> [(&'static str, &str); 2] {
        [("upstream", &self.upstream), ("server", &self.server)]
    }
}

/// Returns milliseconds as seconds.
fn milliseconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Quotes a value of a label.
pub(super) fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

/// Name without `firstbyte_upstream_`, type, help and value of a family.
type ServerFamily = (&'static str, MetricType, &'static str, fn(&Figures) -> u64);

#[rustfmt::skip] // One line a family.
const FAMILIES: &[ServerFamily] = &[
    ("up", MetricType::Gauge, "Whether an upstream server is used: it is not down, draining, unavailable or unhealthy.", |it| u64::from(it.is_up)),
    ("active_requests", MetricType::Gauge, "Requests in progress with an upstream server.", |it| it.active),
    ("requests", MetricType::Counter, "Requests passed to an upstream server.", |it| it.requests),
    ("fails", MetricType::Counter, "Failed attempts with an upstream server.", |it| it.fails),
    ("unavailable", MetricType::Counter, "Times that an upstream server reached max_fails.", |it| it.unavailable),
    ("sent_bytes", MetricType::Counter, "Bytes sent to an upstream server.", |it| it.sent_bytes),
    ("received_bytes", MetricType::Counter, "Bytes received from an upstream server.", |it| it.received_bytes),
    ("tls_handshakes", MetricType::Counter, "TLS handshakes with an upstream server that succeeded.", |it| it.handshakes.succeeded),
    ("tls_resumed_handshakes", MetricType::Counter, "TLS handshakes with an upstream server that resumed a session.", |it| it.handshakes.resumed),
    ("tls_handshake_failures", MetricType::Counter, "TLS handshakes with an upstream server that failed.", |it| it.handshakes.failed),
];

/// Name without `firstbyte_upstream_`, type, help and value of a family of groups.
type GroupFamily = (
    &'static str,
    MetricType,
    &'static str,
    fn(&GroupSample) -> Option<u64>,
);

#[rustfmt::skip] // One line a family.
const GROUP_FAMILIES: &[GroupFamily] = &[
    ("idle_connections", MetricType::Gauge, "Idle connections to the servers of a group.", |it| it.idle),
    ("queued_requests", MetricType::Gauge, "Requests that wait for a server of a group.", |it| it.queue.map(|queue| queue.0)),
    ("queue_overflows", MetricType::Counter, "Requests rejected since the queue of a group was full.", |it| it.queue.map(|queue| queue.1)),
];

/// Values of the label `class`.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// Maximum number of servers on a page. With 34 samples for each, the page has 4 MB or so.
const SERVERS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::super::format::Format;
    use super::*;

    fn facts(servers: usize) -> UpstreamFacts {
        let mut facts = UpstreamFacts {
            has_groups: true,
            ..UpstreamFacts::default()
        };
        for n in 0..servers {
            facts.push("a", format!("10.0.0.1:{n}"), Figures::default());
        }
        facts
    }

    fn page(facts: &UpstreamFacts) -> String {
        let mut page = Writer::new(Format::Prometheus);
        write(&mut page, facts);
        page.end()
    }

    #[test]
    fn the_number_of_servers_is_limited() {
        for (servers, listed, unlisted) in [
            (SERVERS_MAX - 1, SERVERS_MAX - 1, 0),
            (SERVERS_MAX, SERVERS_MAX, 0),
            (SERVERS_MAX + 1, SERVERS_MAX, 1),
        ] {
            let page = page(&facts(servers));
            let up = page
                .lines()
                .filter(|line| line.starts_with("firstbyte_upstream_up{"));
            assert_eq!(up.count(), listed);
            let last = format!("firstbyte_upstream_unlisted_servers {unlisted}\n");
            assert!(page.ends_with(&last));
        }
    }

    #[test]
    fn a_histogram_is_cumulative_and_in_seconds() {
        let mut facts = facts(1);
        let figures = &mut facts.servers[0].figures;
        (figures.buckets[0], figures.buckets[14], figures.response_ms) = (2, 1, 12_345);
        let page = page(&facts);
        for line in [
            "firstbyte_upstream_response_seconds_bucket{upstream=\"a\",server=\"10.0.0.1:0\",le=\"0.005\"} 2",
            "firstbyte_upstream_response_seconds_bucket{upstream=\"a\",server=\"10.0.0.1:0\",le=\"10.000\"} 2",
            "firstbyte_upstream_response_seconds_bucket{upstream=\"a\",server=\"10.0.0.1:0\",le=\"+Inf\"} 3",
            "firstbyte_upstream_response_seconds_sum{upstream=\"a\",server=\"10.0.0.1:0\"} 12.345",
            "firstbyte_upstream_response_seconds_count{upstream=\"a\",server=\"10.0.0.1:0\"} 3",
        ] {
            assert!(page.lines().any(|known| known == line), "{line}");
        }
    }

    #[test]
    fn groups_have_samples_of_their_directives() {
        let mut facts = facts(0);
        assert!(!page(&facts).contains("idle_connections"));
        facts.groups.push(GroupSample {
            upstream: "a".to_owned(),
            idle: Some(3),
            queue: None,
        });
        facts.groups.push(GroupSample {
            upstream: "b".to_owned(),
            idle: None,
            queue: Some((1, 2)),
        });
        let page = page(&facts);
        let samples = [
            "firstbyte_upstream_idle_connections{upstream=\"a\"} 3",
            "firstbyte_upstream_queued_requests{upstream=\"b\"} 1",
            "firstbyte_upstream_queue_overflows_total{upstream=\"b\"} 2",
        ];
        let is_of_group = |line: &&str| line.contains("{upstream=");
        let written: Vec<&str> = page.lines().filter(is_of_group).collect();
        assert_eq!(written, samples);
    }

    #[test]
    fn without_zones_there_are_no_families() {
        assert_eq!(page(&UpstreamFacts::default()), "");
    }

    #[test]
    fn labels_are_quoted() {
        assert_eq!(quoted("unix:/a\"b\\c\n"), "unix:/a\\\"b\\\\c\\n");
    }
}
