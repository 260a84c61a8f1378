//! Rules about names, connections and protocols.

use std::collections::BTreeMap;

use serde_json::json;

use super::page::{Case, Page, count, field, finding, host, rounded, shortened};
use crate::doctor::code::Code;
use crate::doctor::finding::{Finding, Severity};
use crate::page::{Resource, origin};

pub(super) fn slow_dns(page: &Page<'_>) -> Option<Finding> {
    let cases = page.asked().filter_map(|(_, resource)| {
        let dns_ms = resource.phases.dns_ms.filter(|ms| *ms >= DNS_MS)?;
        let figures = json!({"dns_ms": rounded(dns_ms), "host": host(&resource.url)});
        Some(Case {
            resource,
            lost_ms: dns_ms,
            figures,
        })
    });
    let title = |n, worst| {
        format!(
            "{} took {DNS_MS} ms or longer, up to {worst} ms",
            count(n, "look-up of a name")
        )
    };
    let mend = ["fewer hosts a page, and addresses that live longer in the zone (TTL)"];
    finding(Code::SlowDns, Severity::Warn, cases.collect(), title, &mend)
}

pub(super) fn slow_connect(page: &Page<'_>) -> Option<Finding> {
    let cases = beyond_a_round_trip(
        page,
        |resource| resource.phases.connect_ms,
        ("connect_ms", "least_ms"),
        |took_ms, least_ms| took_ms - least_ms >= CONNECT_MS && took_ms >= least_ms * 2.0,
    );
    let title = |n, worst| {
        format!(
            "{} took twice the least time or longer, up to {worst} ms more",
            count(n, "connection")
        )
    };
    let mend = [
        "net.core.somaxconn, net.ipv4.tcp_max_syn_backlog and listen ... backlog=; a second more is a SYN that was lost",
    ];
    finding(Code::SlowConnect, Severity::Warn, cases, title, &mend)
}

pub(super) fn handshake_round_trips(page: &Page<'_>) -> Option<Finding> {
    // TLS 1.3 takes one; the second is another version's, or that of a chain above the window.
    let cases = beyond_a_round_trip(
        page,
        |resource| resource.phases.tls_ms,
        ("tls_ms", "round_trip_ms"),
        |took_ms, trip_ms| trip_ms >= ROUND_TRIP_MS && took_ms >= trip_ms * 1.8,
    );
    let title = |n, worst| {
        format!(
            "{} took about two round trips or more, up to {worst} ms beyond one",
            count(n, "TLS handshake")
        )
    };
    let mend = [
        "ssl_protocols TLSv1.2 TLSv1.3; and a chain of certificates within ten segments; firstbyte doctor URL finds which",
    ];
    finding(
        Code::HandshakeRoundTrips,
        Severity::Warn,
        cases,
        title,
        &mend,
    )
}

/// Resources of which a phase that takes one round trip at least is slow by its time and that of a round trip, ms; what is
/// beyond the round trip is lost. `names` are those of both figures.
fn beyond_a_round_trip<'v>(
    page: &Page<'v>,
    phase_ms: fn(&Resource) -> Option<f64>,
    names: (&str, &str),
    is_slow: fn(f64, f64) -> bool,
) -> Vec<Case<'v>> {
    let cases = page.asked().filter_map(|(_, resource)| {
        let took_ms = phase_ms(resource)?;
        let trip_ms = page.round_trip_ms(resource)?;
        let figures = json!({names.0: rounded(took_ms), names.1: rounded(trip_ms)});
        is_slow(took_ms, trip_ms).then_some(Case {
            resource,
            lost_ms: took_ms - trip_ms,
            figures,
        })
    });
    cases.collect()
}

pub(super) fn no_http2(page: &Page<'_>) -> Option<Finding> {
    let mut origins: BTreeMap<&str, Vec<&Resource>> = BTreeMap::new();
    for (_, resource) in page
        .asked()
        .filter(|(_, one)| one.url.starts_with("https://"))
    {
        let is_old = resource.protocol.to_ascii_lowercase().starts_with("http/1");
        if is_old {
            origins
                .entry(origin(&resource.url))
                .or_default()
                .push(resource);
        }
    }
    let cases = origins.into_iter().filter_map(|(origin, resources)| {
        let queued = resources.iter().filter_map(|one| one.phases.queued_ms);
        let lost_ms = queued.max_by(f64::total_cmp).unwrap_or_default();
        let figures = json!({"origin": origin, "requests": resources.len(), "protocol": resources[0].protocol});
        (resources.len() >= STREAMS_MIN).then_some(Case { resource: resources[0], lost_ms, figures })
    });
    let title = |n, worst| {
        format!(
            "{} with {STREAMS_MIN} requests or more answered by HTTP/1; requests were queued for up to {worst} ms",
            count(n, "server")
        )
    };
    finding(
        Code::NoHttp2,
        Severity::Warn,
        cases.collect(),
        title,
        &["http2 on; beside listen ... ssl"],
    )
}

pub(super) fn no_keepalive(page: &Page<'_>) -> Option<Finding> {
    let closes = |one: &Resource| {
        let says = field(&one.response_fields, "connection");
        says.is_some_and(|value| {
            value
                .split(',')
                .any(|word| word.trim().eq_ignore_ascii_case("close"))
        })
    };
    let mut last: BTreeMap<&str, &Resource> = BTreeMap::new();
    let mut cases = Vec::new();
    // The cost is that of the connection which the next request to the same server had to open.
    for (_, resource) in page.asked() {
        let phases = &resource.phases;
        let opened_ms = phases.connect_ms.unwrap_or_default() + phases.tls_ms.unwrap_or_default();
        let before = last.insert(origin(&resource.url), resource);
        if opened_ms > 0.0
            && let Some(before) = before.filter(|one| closes(one))
            && before.end_ms()
                <= resource.start_ms + phases.queued_ms.unwrap_or_default() + opened_ms
        {
            let figures =
                json!({"opened_in_ms": rounded(opened_ms), "closed_after": shortened(&before.url)});
            cases.push(Case {
                resource,
                lost_ms: opened_ms,
                figures,
            });
        }
    }
    let title = |n, worst| {
        format!(
            "{} had to open a connection because the server had closed the last, up to {worst} ms each",
            count(n, "request")
        )
    };
    finding(
        Code::NoKeepalive,
        Severity::Bad,
        cases,
        title,
        &["keepalive_timeout 75s; keepalive_requests 1000;"],
    )
}

/// A look-up from a resolver nearby takes less.
pub(super) const DNS_MS: f64 = 100.0;
/// A connection this much slower than another to the same host is slow.
pub(super) const CONNECT_MS: f64 = 100.0;
/// Shorter round trips are no longer than computing.
const ROUND_TRIP_MS: f64 = 5.0;
/// Requests to one server from which on streams are worth having.
pub(super) const STREAMS_MIN: usize = 6;
