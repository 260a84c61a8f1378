//! Objects about the zones of `status_zone`.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Server Zone" and "HTTP Location Zone".

use server_base::code_counts::CodeCounts;
use server_base::handshakes::HandshakeCounts;
use server_http::status_zones::StatusZone;

use super::handshakes::{self, DETAILS_SINCE, Owner};
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
    if version >= DETAILS_SINCE && sum.handshakes != HandshakeCounts::NONE {
        let ssl = handshakes::object(&sum.handshakes, Owner::Zone, version);
        object.push("ssl", ssl);
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

/// Members for the classes of statuses.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
