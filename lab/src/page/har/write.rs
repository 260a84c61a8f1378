//! From visits to an archive.

use std::net::SocketAddr;

use engines::http::reason_phrase;
use serde_json::{Map, Value, json};

use super::{BYTES_MAX, date, names};
use crate::page::resource::{Phases, Resource};
use crate::page::visit::{Agent, PageTimings, Visit, Withheld};

/// Writes an archive with a page of each visit. A number that is not finite is written as unknown.
#[must_use]
pub fn write(visits: &[&Visit]) -> String {
    let browser = visits.first().map(|visit| visit.agent.clone());
    let browser = browser.unwrap_or_default();
    let pages = visits.iter().enumerate();
    let pages: Vec<Value> = pages
        .map(|(number, visit)| page(visit, number, &browser))
        .collect();
    let entries = visits.iter().enumerate().flat_map(|(number, visit)| {
        let resources = visit.resources.iter();
        resources.map(move |resource| entry(visit, resource, &id(number)))
    });
    let log = json!({
        "version": "1.2",
        "creator": { "name": "firstbyte", "version": env!("CARGO_PKG_VERSION") },
        "browser": agent(&browser),
        "pages": pages,
        "entries": entries.collect::<Vec<_>>(),
    });
    format!("{:#}\n", json!({ "log": log }))
}

fn id(number: usize) -> String {
    format!("page_{}", number + 1)
}

fn agent(agent: &Agent) -> Value {
    json!({ "name": agent.name, "version": agent.version, "_isBrowser": agent.is_browser })
}

fn page(visit: &Visit, number: usize, browser: &Agent) -> Value {
    // HAR requires a title. A title equal to the URL reads as no title.
    let title = visit.title.as_ref().unwrap_or(&visit.url);
    let mut page = Map::new();
    page.insert("id".to_owned(), json!(id(number)));
    page.insert("title".to_owned(), json!(title));
    let started = date::encode(visit.started_unix_ms);
    page.insert("startedDateTime".to_owned(), json!(started));
    page.insert("pageTimings".to_owned(), page_timings(&visit.timings));
    page.insert("_url".to_owned(), json!(visit.url));
    page.insert("_view".to_owned(), json!(visit.view.name()));
    put_ms(&mut page, "_startedUnixMs", Some(visit.started_unix_ms));
    put_ms(&mut page, "_roundTripMs", visit.round_trip_ms);
    if let Some(all) = &visit.withheld {
        page.insert("_withheld".to_owned(), all.iter().map(withheld).collect());
    }
    if !visit.notes.is_empty() {
        page.insert("_notes".to_owned(), json!(visit.notes));
    }
    if visit.agent != *browser {
        page.insert("_agent".to_owned(), agent(&visit.agent));
    }
    Value::Object(page)
}

fn withheld(one: &Withheld) -> Value {
    let (from_ms, to_ms) = (finite(one.from_ms), finite(one.to_ms));
    json!({
        "port": one.port,
        "request": one.request,
        "fromMs": from_ms,
        "toMs": to_ms,
        "bytes": size(one.bytes),
    })
}

fn page_timings(timings: &PageTimings) -> Value {
    let mut of_page = Map::new();
    of_page.insert(
        "onContentLoad".to_owned(),
        ms(timings.dom_content_loaded_ms),
    );
    of_page.insert("onLoad".to_owned(), ms(timings.load_ms));
    put_ms(&mut of_page, "_firstByte", timings.first_byte_ms);
    put_ms(&mut of_page, "_firstPaint", timings.first_paint_ms);
    let contentful = timings.first_contentful_paint_ms;
    put_ms(&mut of_page, "_firstContentfulPaint", contentful);
    let largest = timings.largest_contentful_paint_ms;
    put_ms(&mut of_page, "_largestContentfulPaint", largest);
    Value::Object(of_page)
}

fn entry(visit: &Visit, resource: &Resource, page: &str) -> Value {
    let started = date::encode(visit.started_unix_ms + resource.start_ms);
    let total_ms = resource.phases.total_ms();
    let mut entry = Map::new();
    let mut put = |name: &str, value: Value| {
        entry.insert(name.to_owned(), value);
    };
    put("pageref", json!(page));
    put("startedDateTime", json!(started));
    put("_startMs", json!(finite(resource.start_ms)));
    put("time", json!(finite(total_ms).max(0.0)));
    put("request", request(resource));
    put("response", response(resource));
    put("cache", json!({}));
    put("timings", timings(&resource.phases));
    put("_resourceType", json!(resource.kind.name()));
    if let Some(connection) = resource.connection {
        put("connection", json!(connection.to_string()));
    }
    if let Some(remote) = &resource.remote {
        match remote.parse::<SocketAddr>() {
            Ok(address) if address.to_string() == *remote => {
                put("serverIPAddress", json!(address.ip().to_string()));
                put("_serverPort", json!(address.port()));
            }
            _ => put("_remote", json!(remote)),
        }
    }
    if resource.from_cache {
        put("_fromCache", json!(true));
    }
    if let Some(priority) = &resource.priority {
        put("_priority", json!(priority));
    }
    if let Some(place) = resource.initiator {
        let url = visit.resources.get(place).map(|other| &other.url);
        put(
            "_initiator",
            json!({ "type": "other", "url": url, "_index": place }),
        );
    }
    if !resource.pieces.is_empty() {
        let pieces = resource.pieces.iter();
        let chunk =
            pieces.map(|piece| json!({ "ts": finite(piece.at_ms), "bytes": size(piece.bytes) }));
        put("_chunks", chunk.collect());
    }
    Value::Object(entry)
}

fn request(resource: &Resource) -> Value {
    json!({
        "method": resource.method,
        "url": resource.url,
        "httpVersion": names::http_version(&resource.protocol),
        "cookies": [],
        "headers": fields(&resource.request_fields),
        "queryString": query(&resource.url),
        "headersSize": UNKNOWN,
        "bodySize": UNKNOWN,
    })
}

fn response(resource: &Resource) -> Value {
    let mut fields_of_response = resource.response_fields.iter();
    let location = fields_of_response.find(|(name, _)| name.eq_ignore_ascii_case("location"));
    let bytes =
        |size_bytes: Option<u64>| size_bytes.map_or(json!(UNKNOWN), |bytes| json!(size(bytes)));
    let mut response = json!({
        "status": resource.status,
        "statusText": match resource.status { 0 => "", status => reason_phrase(status) },
        "httpVersion": names::http_version(&resource.protocol),
        "cookies": [],
        "headers": fields(&resource.response_fields),
        "content": { "size": bytes(resource.content_bytes), "mimeType": resource.mime_type },
        "redirectURL": location.map_or("", |(_, value)| value),
        "headersSize": bytes(resource.head_bytes),
        "bodySize": bytes(resource.body_bytes),
    });
    if let Some(body_bytes) = resource.body_bytes {
        let all = body_bytes.saturating_add(resource.head_bytes.unwrap_or_default());
        response["_transferSize"] = json!(size(all));
    }
    if let Some(error) = &resource.error {
        response["_error"] = json!(error);
    }
    response
}

fn timings(phases: &Phases) -> Value {
    // The handshake is a part of the connection's opening.
    let opening = [phases.connect_ms, phases.tls_ms];
    let connect_ms = opening
        .iter()
        .any(Option::is_some)
        .then(|| opening.into_iter().flatten().sum());
    let mandatory = [
        ("send", phases.send_ms),
        ("wait", phases.wait_ms),
        ("receive", phases.receive_ms),
    ];
    let mut of_entry = Map::new();
    of_entry.insert("blocked".to_owned(), ms(phases.queued_ms));
    of_entry.insert("dns".to_owned(), ms(phases.dns_ms));
    of_entry.insert("connect".to_owned(), ms(connect_ms));
    of_entry.insert("ssl".to_owned(), ms(phases.tls_ms));
    for (name, value) in mandatory {
        let value = value.map_or(0.0, finite);
        of_entry.insert(name.to_owned(), json!(value));
    }
    put_ms(&mut of_entry, "_tcp", phases.connect_ms);
    let absent = mandatory.iter().filter(|(_, value)| value.is_none());
    let absent: Vec<&str> = absent.map(|(name, _)| *name).collect();
    if !absent.is_empty() {
        of_entry.insert("_absent".to_owned(), json!(absent));
    }
    Value::Object(of_entry)
}

fn fields(fields: &[(String, String)]) -> Vec<Value> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}

/// Returns the parameters of a URL's query, not decoded.
fn query(url: &str) -> Vec<Value> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    parameters
        .map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            json!({ "name": name, "value": value })
        })
        .collect()
}

/// A time that may not apply.
fn ms(value: Option<f64>) -> Value {
    value
        .filter(|ms| ms.is_finite())
        .map_or(json!(UNKNOWN), |ms| json!(ms))
}

fn put_ms(object: &mut Map<String, Value>, name: &str, value: Option<f64>) {
    if let Some(ms) = value.filter(|ms| ms.is_finite()) {
        object.insert(name.to_owned(), json!(ms));
    }
}

fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

fn size(bytes: u64) -> u64 {
    bytes.min(BYTES_MAX)
}

/// Unknown, or not applicable.
const UNKNOWN: i64 = -1;
