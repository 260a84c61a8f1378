//! Facts about names, connections and protocols.

use std::collections::BTreeMap;

use serde_json::json;

use super::page::{Page, field, host, shortened};
use crate::doctor::judge::{Case, rounded};
use crate::page::{Resource, origin};

pub(in crate::doctor) fn lookups(page: &Page<'_>) -> Vec<Case> {
    let cases = page.requested().filter_map(|(_, one)| {
        let dns_ms = one.phases.dns_ms?;
        let figures = json!({"dns_ms": rounded(dns_ms), "host": host(&one.url)});
        Some(page.case(one, dns_ms, 0.0, figures))
    });
    cases.collect()
}

pub(in crate::doctor) fn connects(page: &Page<'_>) -> Vec<Case> {
    let names = ("connect_ms", "least_ms");
    beyond_a_round_trip(page, |one| one.phases.connect_ms, names)
}

pub(in crate::doctor) fn handshakes(page: &Page<'_>) -> Vec<Case> {
    beyond_a_round_trip(page, |one| one.phases.tls_ms, ("tls_ms", "round_trip_ms"))
}

/// Cases of a phase that takes at least a round trip; the rest of its time is lost. `names` are the members for both times.
fn beyond_a_round_trip(
    page: &Page<'_>,
    phase_ms: fn(&Resource) -> Option<f64>,
    names: (&str, &str),
) -> Vec<Case> {
    let all = page.requested().filter_map(|(_, one)| {
        let (took_ms, trip_ms) = (phase_ms(one)?, page.round_trip_ms(one)?);
        let figures = json!({names.0: rounded(took_ms), names.1: rounded(trip_ms)});
        Some(page.case(one, took_ms - trip_ms, trip_ms, figures))
    });
    all.collect()
}

/// Servers that answer by HTTP/1, by the number of their requests. The cost is the longest time in a queue.
pub(in crate::doctor) fn of_http1(page: &Page<'_>) -> Vec<Case> {
    let mut origins: BTreeMap<&str, Vec<&Resource>> = BTreeMap::new();
    for (_, one) in page.requested() {
        let is_old = one.protocol.to_ascii_lowercase().starts_with("http/1");
        if is_old && one.url.starts_with("https://") {
            origins.entry(origin(&one.url)).or_default().push(one);
        }
    }
    let servers = origins.into_iter().map(|(origin, all)| {
        let queued = all.iter().filter_map(|one| one.phases.queued_ms);
        let lost_ms = queued.max_by(f64::total_cmp).unwrap_or_default();
        let (requests, protocol) = (all.len(), &all[0].protocol);
        let figures = json!({"origin": origin, "requests": requests, "protocol": protocol});
        page.case(all[0], lost_ms, requests as f64, figures)
    });
    servers.collect()
}

/// Requests that opened a connection because the server had closed the last one.
pub(in crate::doctor) fn reopened(page: &Page<'_>) -> Vec<Case> {
    let closes = |one: &Resource| {
        let words = field(&one.response_fields, "connection").unwrap_or_default();
        let mut words = words.split(',');
        words.any(|word| word.trim().eq_ignore_ascii_case("close"))
    };
    let mut last: BTreeMap<&str, &Resource> = BTreeMap::new();
    let cases = page.requested().filter_map(|(_, one)| {
        let phases = &one.phases;
        let opened_ms = phases.connect_ms.unwrap_or_default() + phases.tls_ms.unwrap_or_default();
        let before = last.insert(origin(&one.url), one)?;
        let opened_at_ms = one.start_ms + phases.queued_ms.unwrap_or_default() + opened_ms;
        let is_behind = opened_ms > 0.0 && closes(before) && before.end_ms() <= opened_at_ms;
        let closed = shortened(&before.url);
        let figures = json!({"opened_in_ms": rounded(opened_ms), "closed_after": closed});
        is_behind.then(|| page.case(one, opened_ms, 0.0, figures))
    });
    cases.collect()
}
