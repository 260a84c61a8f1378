//! Facts about responses.

use serde_json::json;

use super::page::{Page, field, host, shortened};
use crate::doctor::judge::caching::StaticFile;
use crate::doctor::judge::compression::is_text;
use crate::doctor::judge::{Case, EXAMPLES_MAX, rounded};
use crate::page::analysis::StallCause;
use crate::page::{Kind, Resource};

/// Texts that came without a coding although the client accepts some, by their bytes.
pub(in crate::doctor) fn plain_texts(page: &Page<'_>) -> Vec<Case> {
    let texts = page.requested().filter_map(|(_, one)| {
        let bytes = one.body_bytes.or(one.content_bytes)?;
        let accepts = field(&one.request_fields, "accept-encoding")
            .is_none_or(|value| !value.trim().is_empty());
        let is_coded = field(&one.response_fields, "content-encoding")
            .is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"));
        // Some sources have no fields, but both lengths.
        let is_shorter = one.content_bytes.is_some_and(|content| bytes < content);
        let essence = one.mime_type.split(';').next().unwrap_or_default();
        let is_text = is_text(&essence.trim().to_ascii_lowercase());
        let receive_ms = one.phases.receive_ms.map(rounded);
        let figures = json!({"bytes": bytes, "type": one.mime_type, "receive_ms": receive_ms});
        let is_plain = accepts && !is_coded && !is_shorter && is_text;
        is_plain.then(|| page.case(one, 0.0, bytes as f64, figures))
    });
    texts.collect()
}

/// Static files of the page's own site: the site cannot fix others.
pub(in crate::doctor) fn static_files(page: &Page<'_>) -> Vec<StaticFile> {
    let own = host(&page.visit.url);
    let own = own.strip_prefix("www.").unwrap_or(own);
    let is_own = |url: &str| {
        let rest = host(url).strip_suffix(own);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let files = page.requested().map(|(_, one)| one);
    let files = files
        .filter(|one| one.status == 200 && one.method == "GET" && is_own(&one.url))
        // Some sources have no fields.
        .filter(|one| !one.response_fields.is_empty());
    let files = files.filter_map(|one| {
        let bytes = one.body_bytes.or(one.content_bytes).unwrap_or_default();
        StaticFile::of(&one.url, &one.mime_type, &one.response_fields, bytes)
    });
    files.collect()
}

/// Redirects at the beginning of a page as one case, by their number; none without any.
pub(in crate::doctor) fn redirects(page: &Page<'_>) -> Vec<Case> {
    let is_redirect = |one: &&Resource| {
        matches!(one.status, 301 | 302 | 303 | 307 | 308)
            && matches!(one.kind, Kind::Document | Kind::Other)
    };
    let all = page.requested().map(|(_, one)| one);
    let hops: Vec<&Resource> = all.take_while(is_redirect).collect();
    let Some(first) = hops.first() else {
        return Vec::new();
    };
    let lost_ms = hops.iter().map(|one| one.phases.total_ms()).sum();
    let urls = hops.iter().map(|one| shortened(&one.url));
    let urls: Vec<String> = urls.take(EXAMPLES_MAX).collect();
    let figures = json!({"redirects": hops.len(), "urls": urls});
    vec![page.case(first, lost_ms, hops.len() as f64, figures)]
}

/// Heads, by their bytes.
pub(in crate::doctor) fn heads(page: &Page<'_>) -> Vec<Case> {
    let heads = page.requested().map(|(_, one)| {
        let fields = one.response_fields.iter();
        let lines = fields
            .clone()
            .map(|(name, value)| name.len() + value.len() + 4);
        let bytes = one.head_bytes.unwrap_or(lines.sum::<usize>() as u64);
        let largest = fields.max_by_key(|(_, value)| value.len());
        let largest = largest.map(|(name, _)| shortened(name));
        let figures = json!({"head_bytes": bytes, "largest_field": largest});
        page.case(one, 0.0, bytes as f64, figures)
    });
    heads.collect()
}

/// Waits with a known part of the server.
pub(in crate::doctor) fn waits(page: &Page<'_>) -> Vec<Case> {
    let waits = page.requested().filter_map(|(place, one)| {
        let parts = page.analysis.waits.get(place)?.as_ref()?;
        // Without Server-Timing, the rest is the server's only if the network's part is known.
        let (lost_ms, by) = match (parts.server_ms, parts.round_trip_ms) {
            (Some(ms), _) => (ms, "Server-Timing"),
            (None, Some(_)) => (parts.unexplained_ms, "the rest of the wait"),
            (None, None) => return None,
        };
        let figures = json!({"by": by, "wait_ms": one.phases.wait_ms.map(rounded)});
        Some(page.case(one, lost_ms, 0.0, figures))
    });
    waits.collect()
}

/// Pauses that look like waits for an acknowledgement.
pub(in crate::doctor) fn pauses(page: &Page<'_>) -> Vec<Case> {
    let stalls = page.analysis.stalls.iter();
    let pauses = stalls.filter(|stall| stall.cause == StallCause::DelayedAck);
    let cases = pauses.filter_map(|stall| {
        let from_ms = rounded(stall.from_ms);
        let figures = json!({"from_ms": from_ms, "rest_bytes": stall.rest_bytes});
        let resource = page.visit.resources.get(stall.resource)?;
        Some(page.case(resource, stall.length_ms(), 0.0, figures))
    });
    cases.collect()
}
