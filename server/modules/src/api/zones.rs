//! Objects about the zones of `status_zone`.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Server Zone" and "HTTP Location Zone".

use server_base::code_counts::CodeCounts;
use server_http::status_zones::{HandshakeCounts, StatusZone};

use super::json::Json;

/// Returns the object about a zone of servers.
pub(super) fn server_zone(zone: &StatusZone, version: u64) -> Json {
    let sum = zone.sum();
    let mut object = Json::object([
        ("processing", sum.processing().into()),
        ("requests", sum.requests.into()),
        ("responses", responses(&sum.codes, version)),
        ("discarded", sum.discarded.into()),
        ("received", sum.received_bytes.into()),
        ("sent", sum.sent_bytes.into()),
    ]);
    if version >= 8 && sum.handshakes != HandshakeCounts::default() {
        object.push("ssl", handshakes(&sum.handshakes));
    }
    object
}

/// Returns the object about a zone of locations.
pub(super) fn location_zone(zone: &StatusZone, version: u64) -> Json {
    let sum = zone.sum();
    Json::object([
        ("requests", sum.requests.into()),
        ("responses", responses(&sum.codes, version)),
        ("discarded", sum.discarded.into()),
        ("received", sum.received_bytes.into()),
        ("sent", sum.sent_bytes.into()),
    ])
}

/// Returns numbers of responses: by class, since version 7 by status, and of all.
pub(super) fn responses(codes: &CodeCounts, version: u64) -> Json {
    let mut object = Json::EMPTY;
    for (class, count) in CLASSES.iter().zip(codes.classes()) {
        object.push(class, count);
    }
    if version >= 7 {
        let mut by_status = Json::EMPTY;
        for (status, count) in codes.iter() {
            by_status.push(&status.to_string(), count);
        }
        object.push("codes", by_status);
    }
    object.push("total", codes.total());
    object
}

fn handshakes(counts: &HandshakeCounts) -> Json {
    Json::object([
        ("handshakes", counts.succeeded.into()),
        ("handshakes_failed", counts.failed.into()),
        ("session_reuses", counts.resumed.into()),
    ])
}

/// Members for the classes of statuses.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
