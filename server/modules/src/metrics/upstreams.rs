//! Families of upstream servers: those of groups with a zone, [`SERVERS_MAX`] at most.
//!
//! A server with several entries of one address in a group has one sample with their sums. The number of servers in
//! excess of the limit is a family of its own.

use std::collections::BTreeMap;

use server_http::http::Http;
use server_upstream::control::PeerView;
use server_upstream::group::Groups;
use server_upstream::peer_stats::BOUNDS_MS;

use super::format::{MetricType, Writer};

/// Figures of upstream servers.
#[derive(Default)]
pub(super) struct UpstreamFacts {
    servers: Vec<ServerSample>,
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
    let name = "firstbyte_upstream_unlisted_servers";
    let help = "Upstream servers without metrics of their own, since there are too many.";
    page.family(name, MetricType::Gauge, "", help);
    page.sample(name, &[], facts.unlisted);
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
fn quoted(text: &str) -> String {
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
];

/// Values of the label `class`.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// Maximum number of servers on a page. With 31 samples for each, the page has 4 MB or so.
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
    fn without_zones_there_are_no_families() {
        assert_eq!(page(&UpstreamFacts::default()), "");
    }

    #[test]
    fn labels_are_quoted() {
        assert_eq!(quoted("unix:/a\"b\\c\n"), "unix:/a\\\"b\\\\c\\n");
    }
}
