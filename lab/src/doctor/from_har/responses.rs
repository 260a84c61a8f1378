//! Rules about responses.

use serde_json::json;

use super::page::{Case, EXAMPLES_MAX, Page, count, field, finding, rounded, shortened};
use crate::doctor::checks::is_text;
use crate::doctor::code::Code;
use crate::doctor::finding::{Finding, Severity};
use crate::page::analysis::StallCause;
use crate::page::{Kind, Resource};

pub(super) fn no_compression(page: &Page<'_>) -> Option<Finding> {
    let cases = page.asked().filter_map(|(_, resource)| {
        let bytes = resource.body_bytes.or(resource.content_bytes)?;
        let asked = field(&resource.request_fields, "accept-encoding")
            .is_none_or(|value| !value.trim().is_empty());
        let coded = field(&resource.response_fields, "content-encoding")
            .is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"));
        // Some sources have no fields, but both lengths.
        let shorter = resource
            .content_bytes
            .is_some_and(|content| bytes < content);
        let is_plain = asked && !coded && !shorter && is_text(&essence(&resource.mime_type));
        let received_ms = resource.phases.receive_ms.map(rounded);
        let figures =
            json!({"bytes": bytes, "type": resource.mime_type, "receive_ms": received_ms});
        // How much smaller it would be, only a coder knows: nothing is claimed here.
        (is_plain && bytes >= TEXT_BYTES_MIN).then_some(Case {
            resource,
            lost_ms: 0.0,
            figures,
        })
    });
    let title = |n, _| {
        format!(
            "{} of {TEXT_BYTES_MIN} bytes or more came uncompressed",
            count(n, "text")
        )
    };
    let mend = [
        "gzip on; gzip_types text/css application/javascript application/json image/svg+xml;",
        "firstbyte: brotli on; zstd on; with the same types",
    ];
    finding(
        Code::NoCompression,
        Severity::Bad,
        cases.collect(),
        title,
        &mend,
    )
}

/// A type without its parameters.
fn essence(mime_type: &str) -> String {
    let essence = mime_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

pub(super) fn redirect_chain(page: &Page<'_>) -> Option<Finding> {
    let is_redirect = |one: &Resource| matches!(one.status, 301 | 302 | 303 | 307 | 308);
    let hops: Vec<&Resource> = page
        .asked()
        .map(|(_, one)| one)
        .take_while(|one| is_redirect(one) && matches!(one.kind, Kind::Document | Kind::Other))
        .collect();
    let lost_ms = hops.iter().map(|one| one.phases.total_ms()).sum();
    let urls: Vec<String> = hops
        .iter()
        .map(|one| shortened(&one.url))
        .take(EXAMPLES_MAX)
        .collect();
    let first = hops.first().copied()?;
    if hops.len() < REDIRECTS_MIN {
        return None;
    }
    let case = Case {
        resource: first,
        lost_ms,
        figures: json!({"redirects": hops.len(), "urls": urls}),
    };
    let title = |_, worst| {
        format!(
            "{} before the page, {worst} ms in all",
            count(hops.len(), "redirect")
        )
    };
    let mend = [
        "return 301 https://NAME$request_uri; straight to the last address, from each of the others",
    ];
    // As by URL.
    let severity = match hops.len() {
        REDIRECTS_MIN => Severity::Warn,
        _ => Severity::Bad,
    };
    finding(Code::RedirectChain, severity, vec![case], title, &mend)
}

pub(super) fn header_bloat(page: &Page<'_>) -> Option<Finding> {
    let cases = page.asked().filter_map(|(_, resource)| {
        let fields = resource.response_fields.iter();
        let lines = fields
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum::<usize>() as u64;
        let bytes = resource.head_bytes.unwrap_or(lines);
        let largest = resource
            .response_fields
            .iter()
            .max_by_key(|(_, value)| value.len());
        let figures =
            json!({"head_bytes": bytes, "largest_field": largest.map(|(name, _)| shortened(name))});
        (bytes >= HEAD_BYTES).then_some(Case {
            resource,
            lost_ms: 0.0,
            figures,
        })
    });
    let title = |n, _| {
        format!(
            "{} with a head of {HEAD_BYTES} bytes or more",
            count(n, "response")
        )
    };
    finding(
        Code::HeaderBloat,
        Severity::Warn,
        cases.collect(),
        title,
        &[
            "add_header, Set-Cookie and Content-Security-Policy: shorter, and where they are needed alone",
        ],
    )
}

pub(super) fn slow_server(page: &Page<'_>) -> Option<Finding> {
    let cases = page.asked().filter_map(|(place, resource)| {
        let parts = page.analysis.waits.get(place)?.as_ref()?;
        // Without the server's word the rest is its own only if the network's part is known.
        let (lost_ms, by) = match parts.server_ms {
            Some(ms) => (ms, "Server-Timing"),
            None => (parts.unexplained_ms, "the rest of the wait"),
        };
        let is_known = parts.server_ms.is_some() || parts.round_trip_ms.is_some();
        let figures = json!({"by": by, "wait_ms": resource.phases.wait_ms.map(rounded)});
        (is_known && lost_ms >= SERVER_MS).then_some(Case {
            resource,
            lost_ms,
            figures,
        })
    });
    let title = |n, worst| {
        format!(
            "{} waited {SERVER_MS} ms or longer for the server alone, up to {worst} ms",
            count(n, "request")
        )
    };
    let mend = [
        "proxy_cache or fastcgi_cache for what may be kept, and Server-Timing from the program to see which part takes long",
    ];
    finding(
        Code::SlowServer,
        Severity::Warn,
        cases.collect(),
        title,
        &mend,
    )
}

pub(super) fn delayed_ack_stall(page: &Page<'_>) -> Option<Finding> {
    let stalls = page.analysis.stalls.iter();
    let cases = stalls
        .filter(|stall| stall.cause == StallCause::DelayedAck)
        .filter_map(|stall| {
            let resource = page.visit.resources.get(stall.resource)?;
            let figures =
                json!({"from_ms": rounded(stall.from_ms), "rest_bytes": stall.rest_bytes});
            Some(Case {
                resource,
                lost_ms: stall.length_ms(),
                figures,
            })
        });
    let title = |n, worst| {
        format!(
            "{} paused as if for a late acknowledgement, up to {worst} ms: a capture proves it",
            count(n, "response")
        )
    };
    let mend = [
        "tcp_nodelay on;",
        "tcpdump -w page.pcap, then firstbyte doctor --pcap page.pcap",
    ];
    finding(
        Code::DelayedAckStall,
        Severity::Warn,
        cases.collect(),
        title,
        &mend,
    )
}

/// A smaller text fits into a segment either way.
pub(super) const TEXT_BYTES_MIN: u64 = 1400;
/// One redirect may be needed; the second need not be.
pub(super) const REDIRECTS_MIN: usize = 2;
/// A head that is larger than two segments.
pub(super) const HEAD_BYTES: u64 = 2920;
/// A response that is made this long is noticed (RAIL: 100 ms), with a margin for the network.
pub(super) const SERVER_MS: f64 = 200.0;
