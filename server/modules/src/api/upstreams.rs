//! Objects about groups of servers and their state.
//!
//! Only groups with a zone are shown, as in nginx: the servers of other groups belong to each thread.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Upstream".

use std::sync::Arc;

use server_base::clock::Clock;
use server_base::handshakes::HandshakeCounts;
use server_http::http::Http;
use server_http::stats;
use server_upstream::control::PeerView;
use server_upstream::group::{Group, Groups};
use server_upstream::idle_counts::idle_connections;
use server_upstream::peer_stats::{BOUNDS_MS, ResponseTimes};
use server_upstream::pool::group_digest;
use server_upstream::shared::{SharedPeers, Zone};

use super::error::ApiError;
use super::general::timestamp;
use super::handshakes::{self, DETAILS_SINCE, Owner};
use super::json::Json;
use super::zones::responses;

/// A group with a zone.
pub(super) struct SharedGroup<'h> {
    pub(super) group: &'h Group,
    zone: &'h Zone,
    pub(super) peers: &'h Arc<SharedPeers>,
}

/// Returns the groups with a zone.
pub(super) fn shared_groups(http: &Http) -> impl Iterator<Item = SharedGroup<'_>> {
    http.main::<Groups>().iter().filter_map(SharedGroup::of)
}

/// Returns the group with a name.
///
/// # Errors
/// There is none, or it has no zone.
pub(super) fn shared_group<'h>(http: &'h Http, name: &[u8]) -> Result<SharedGroup<'h>, ApiError> {
    let mut groups = http
        .main::<Groups>()
        .iter()
        .filter(|group| group.is_defined);
    let group = groups.find(|group| *group.name == *name);
    let missing = || ApiError::new(404, "UpstreamNotFound", "upstream not found");
    let group = group.ok_or_else(missing)?;
    let is_static = || ApiError::new(400, "UpstreamStatic", "upstream is static");
    SharedGroup::of(group).ok_or_else(is_static)
}

impl<'h> SharedGroup<'h> {
    fn of(group: &'h Group) -> Option<Self> {
        let zone = group.zone.as_ref()?;
        Some(Self {
            group,
            zone,
            peers: group.shared_peers()?,
        })
    }

    /// Returns the name.
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(&self.group.name).into_owned()
    }

    /// Whether the method of the group has backup servers.
    pub(super) fn allows_backup(&self) -> bool {
        let method = self.group.method.as_ref();
        method.is_none_or(|method| method.allows_backup())
    }

    /// Returns the object about the group.
    pub(super) fn object(&self, clock: &Clock, version: u64) -> Json {
        let mut peers = Vec::new();
        // Other threads choose servers between two steps.
        for step in self.peers.peer_views(clock.mono_ms) {
            peers.extend(step.iter().map(|view| peer(view, clock, version)));
        }
        let mut object = Json::object([("peers", Json::List(peers))]);
        if self.group.keepalive.is_some() {
            let idle = idle_connections(group_digest(&self.group.name));
            object.push("keepalive", idle);
        }
        object.push("zombies", self.peers.zombies() as u64);
        object.push("zone", self.zone.name());
        if let Some(limits) = &self.group.queue {
            let counts = self.peers.queue_counts();
            // Each thread has its own queue.
            let max_size = (limits.requests as u64).saturating_mul(stats::threads());
            let queue = Json::object([
                ("size", counts.waiting().into()),
                ("max_size", max_size.into()),
                ("overflows", counts.overflows().into()),
            ]);
            object.push("queue", queue);
        }
        object
    }
}

fn peer(view: &PeerView, clock: &Clock, version: u64) -> Json {
    let stats = &view.stats;
    let mut object = Json::object([
        ("id", u64::from(view.id.0).into()),
        ("server", view.addr.to_string().into()),
        ("name", (&*view.name).into()),
        ("backup", view.is_backup.into()),
        ("weight", view.weight.unsigned_abs().into()),
        ("state", view.state.as_str().into()),
        ("active", view.active.into()),
    ]);
    if let Some(service) = &view.service {
        object.push("service", &**service);
    }
    // As in nginx, a server without TLS has no such member.
    if version >= DETAILS_SINCE && stats.handshakes != HandshakeCounts::NONE {
        let ssl = handshakes::object(&stats.handshakes, Owner::Upstream, version);
        object.push("ssl", ssl);
    }
    if view.max_conns > 0 {
        object.push("max_conns", view.max_conns);
    }
    object.push("requests", stats.requests);
    if let (Some(head_ms), Some(response_ms)) = (stats.head_ms(), stats.response_ms()) {
        object.push("header_time", head_ms);
        object.push("response_time", response_ms);
        if version >= HISTOGRAM_SINCE {
            object.push("response_time_hist", histogram(&stats.histogram));
        }
    }
    object.push("responses", responses(&stats.codes, version));
    object.push("sent", stats.sent_bytes);
    object.push("received", stats.received_bytes);
    object.push("fails", stats.fails);
    object.push("unavail", stats.unavailable);
    let checks = &view.checks;
    let mut health = Json::object([
        ("checks", checks.checks.into()),
        ("fails", checks.fails.into()),
        ("unhealthy", checks.unhealthy.into()),
    ]);
    if let Some(passed) = checks.last_passed {
        health.push("last_passed", passed);
    }
    object.push("health_checks", health);
    object.push("downtime", stats.downtime_ms(clock.mono_ms));
    if let Some(start_ms) = stats.down_start_ms {
        object.push("downstart", wall_time(start_ms, clock));
    }
    if let Some(selected_ms) = stats.selected_ms {
        object.push("selected", wall_time(selected_ms, clock));
    }
    object
}

fn histogram(times: &ResponseTimes) -> Json {
    let mut buckets = Json::EMPTY;
    let bounds = BOUNDS_MS.iter().map(ToString::to_string);
    for (bound, count) in bounds.chain(["inf".to_owned()]).zip(times.buckets) {
        buckets.push(&bound, count);
    }
    Json::object([
        ("count", times.count().into()),
        ("sum", times.sum_ms.into()),
        ("buckets", buckets),
    ])
}

/// Returns a monotonic time as a time of the wall clock.
fn wall_time(at_ms: u64, clock: &Clock) -> String {
    let ago_ms = clock.mono_ms.saturating_sub(at_ms);
    timestamp(clock.unix_ms.saturating_sub(ago_ms))
}

/// First version with the histogram of response times.
const HISTOGRAM_SINCE: u64 = 9;
