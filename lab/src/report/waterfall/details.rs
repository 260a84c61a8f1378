//! The table of a visit's resources; each opens to its fields and the figures of its phases.

use maud::{Markup, html};

use crate::report::escape::{bounded, shortened};

use super::figures::{self, bytes, ms, protocol, status};
use super::rows::{Drawing, Row, URL_MOST, stall_words};

/// The table.
pub(super) fn resources(drawing: &Drawing<'_>) -> Markup {
    let mut room = FIELD_BYTES_MAX;
    html! {
        table .resources {
            thead {
                tr {
                    th scope="col" { "#" }
                    th .url scope="col" { "resource" }
                    th scope="col" { "status" }
                    @for head in ["kind", "protocol", "connection", "bytes", "start"] { th .more scope="col" { (head) } }
                    th scope="col" { "time" }
                }
            }
            tbody { @for row in drawing.drawn() { (line(row, &mut room)) } }
        }
        @if room == 0 {
            p .key { "Fields of further resources are omitted: the limit is " (bytes(FIELD_BYTES_MAX as u64)) "." }
        }
    }
}

/// A resource's line.
fn line(row: &Row<'_>, room: &mut usize) -> Markup {
    let resource = row.resource;
    let known = resource
        .transferred_bytes()
        .map_or_else(|| "-".to_owned(), bytes);
    let number = row
        .connection
        .map_or_else(|| "-".to_owned(), |number| number.to_string());
    html! {
        tr .bad[figures::is_bad(resource)] {
            td { (row.number) }
            td .url {
                details {
                    summary { (shortened(&resource.url, NAME_MOST)) }
                    (facts(row))
                    (phases(row))
                    (fields("Request", &resource.request_fields, room))
                    (fields("Response", &resource.response_fields, room))
                }
            }
            td { (status(resource)) }
            td .more { (resource.kind.name()) }
            td .more { (protocol(resource)) }
            td .more { (number) }
            td .more { (known) }
            td .more { (ms(row.start_ms())) }
            td { (row.caption()) }
        }
    }
}

/// Known facts of a resource besides its times and fields.
fn facts(row: &Row<'_>) -> Markup {
    let resource = row.resource;
    let text = |value: &str| bounded(value, FACT_MOST).into_owned();
    let size = |n: Option<u64>| n.map(bytes);
    let given = |value: &str| (!value.is_empty()).then(|| text(value));
    let facts = [
        ("URL", Some(bounded(&resource.url, URL_MOST).into_owned())),
        ("method", given(&resource.method)),
        ("kind", Some(resource.kind.name().to_owned())),
        ("protocol", given(&resource.protocol)),
        ("server", resource.remote.as_deref().map(text)),
        (
            "connection",
            row.connection.map(|number| number.to_string()),
        ),
        ("type", given(&resource.mime_type)),
        ("head", size(resource.head_bytes)),
        ("body, transferred", size(resource.body_bytes)),
        ("body, decoded", size(resource.content_bytes)),
        ("priority", resource.priority.as_deref().map(text)),
        (
            "requested by",
            resource
                .initiator
                .map(|place| format!("#{}", place.saturating_add(1))),
        ),
        (
            "from the cache",
            resource.from_cache.then(|| "yes".to_owned()),
        ),
        ("failed", resource.error.as_deref().map(text)),
    ];
    html! {
        dl {
            @for (name, value) in facts {
                @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
            }
        }
    }
}

/// The phases as numbers, the parts of the wait, and stalls.
fn phases(row: &Row<'_>) -> Markup {
    let pieces = row.resource.pieces.len();
    html! {
        table .phases {
            caption { "Phases" }
            thead { tr { th scope="col" { "phase" } th .more scope="col" { "from" } th scope="col" { "duration" } } }
            tbody {
                @for one in &row.segments {
                    tr {
                        th scope="row" { (one.phase.name()) }
                        td .more { (exact(one.from_ms)) }
                        td { (exact(one.to_ms - one.from_ms)) }
                    }
                }
                @for one in &row.parts {
                    tr { th scope="row" { "of the wait: " (one.name) } td .more { "-" } td { (exact(one.to_ms - one.from_ms)) } }
                }
                @for one in &row.stalls {
                    tr { th scope="row" { "stall: " (one.cause) } td .more { (exact(one.from_ms)) } td { (exact(one.to_ms - one.from_ms)) } }
                }
            }
        }
        @if pieces > 0 { p { (figures::quantity(pieces, "piece")) " of the body" } }
        @for one in &row.stalls { p .warning { "Stall at " (ms(one.from_ms)) ": " (stall_words(one)) } }
    }
}

/// The fields of a message, as far as the page has room for them.
fn fields(title: &str, fields: &[(String, String)], room: &mut usize) -> Markup {
    let shown: Vec<(String, String)> = fields
        .iter()
        .take(FIELDS_MOST)
        .map(|(name, value)| {
            (
                bounded(name, FIELD_NAME_MOST).into_owned(),
                bounded(value, FIELD_MOST).into_owned(),
            )
        })
        .take_while(|(name, value)| {
            *room = room.saturating_sub(name.len() + value.len());
            *room > 0
        })
        .collect();
    let left_out = fields.len() - shown.len();
    html! {
        @if !fields.is_empty() {
            table .fields {
                caption { (title) " fields" }
                thead { tr { th scope="col" { "name" } th scope="col" { "value" } } }
                tbody { @for (name, value) in &shown { tr { th scope="row" { (name) } td { (value) } } } }
            }
            @if left_out > 0 { p .key { "and " (left_out) " more" } }
        }
    }
}

/// A time with microseconds.
fn exact(value: f64) -> String {
    format!("{value:.3} ms")
}

/// Columns of a URL in the table.
const NAME_MOST: usize = 72;
/// Characters of a fact.
const FACT_MOST: usize = 500;
/// Fields of a message, and characters of a name and of a value.
const FIELDS_MOST: usize = 100;
const FIELD_NAME_MOST: usize = 100;
const FIELD_MOST: usize = 1_000;
/// Bytes of all fields of a page.
const FIELD_BYTES_MAX: usize = 8 << 20;
