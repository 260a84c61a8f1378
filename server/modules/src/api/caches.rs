//! Objects about caches, and purges by key, prefix or tag.
//!
//! Purges are firstbyte's own: nginx's API has none. A purge is in effect when it is answered; files of purged prefixes and
//! tags are removed afterwards.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Cache".

use std::sync::Arc;

use serde_json::Value;
use server_http::cache::counts::{CacheResult, ResultCounts};
use server_http::cache::zone::CacheZone;
use server_http::cache::{CacheKey, PurgeError, PurgeMode};
use server_http::http::Http;

use super::error::ApiError;
use super::json::Json;

/// Returns the object about a cache, or about all caches.
///
/// # Errors
/// There is no cache with this name.
pub(super) fn get(http: &Http, name: Option<&[u8]>) -> Result<Json, ApiError> {
    if let Some(name) = name {
        return Ok(object(find(http, name)?));
    }
    let caches = http.caches.iter();
    let member = |zone: &Arc<CacheZone>| {
        let name = String::from_utf8_lossy(&zone.name).into_owned();
        (name, object(zone))
    };
    Ok(Json::Object(caches.map(member).collect()))
}

/// Resets the counts of a cache.
///
/// # Errors
/// There is no cache with this name.
pub(super) fn reset(http: &Http, name: &[u8]) -> Result<(), ApiError> {
    find(http, name)?.shared.counts.reset();
    Ok(())
}

fn find<'h>(http: &'h Http, name: &[u8]) -> Result<&'h Arc<CacheZone>, ApiError> {
    (http.caches.find(name)).ok_or_else(|| ApiError::new(404, "CacheNotFound", "cache not found"))
}

fn object(zone: &CacheZone) -> Json {
    let stats = zone.shared.index.stats();
    let directory = zone.shared.directory();
    let block_bytes = directory.map_or(0, |directory| directory.block_bytes());
    let mut object = Json::object([("size", (stats.blocks * block_bytes).into())]);
    if let Some(bytes) = zone.max_bytes {
        object.push("max_size", bytes);
    }
    object.push("cold", zone.shared.index.is_cold());
    for result in CacheResult::ALL {
        let counts = zone.shared.counts.of(result);
        object.push(result.metric_label(), numbers(result, counts));
    }
    object.push("entries", stats.entries);
    object.push("evicted", stats.evicted);
    object.push("purged", stats.purged);
    object
}

fn numbers(result: CacheResult, counts: ResultCounts) -> Json {
    let mut object = Json::object([
        ("responses", counts.responses.into()),
        ("bytes", counts.bytes.into()),
    ]);
    if result.is_of_server() {
        object.push("responses_written", counts.written);
        object.push("bytes_written", counts.bytes_written);
    }
    object
}

/// Purges entries of a cache, by an object with one of `key`, `prefix` and `tag`, and perhaps `soft`. Returns the number of
/// entries of a key; those of a prefix or a tag are not counted yet.
///
/// # Errors
/// There is no cache with this name, the body is invalid, or too many purges are in progress.
pub(super) fn purge(http: &Http, name: &[u8], body: &[u8], now_s: i64) -> Result<Json, ApiError> {
    let zone = find(http, name)?;
    let order = Order::parse(body)?;
    let (index, mode) = (&zone.shared.index, order.mode);
    let text = order.text.as_bytes();
    let purged = match order.by {
        By::Prefix => index.purge_prefix(text, mode).map(|_| None),
        By::Tag => index.purge_tag(text, mode).map(|_| None),
        By::Key => {
            let key = CacheKey::new(text).map_err(|_| invalid("the key is too long"))?;
            zone.shared.purge_key(&key, mode, now_s).map(Some)
        }
    };
    let mut object = Json::EMPTY;
    match purged {
        Ok(Some(entries)) => object.push("purged", entries),
        Ok(None) => object.push("in_progress", true),
        Err(PurgeError::TooLong) => return Err(invalid(PurgeError::TooLong.to_string())),
        Err(error) => {
            let text = error.to_string();
            return Err(ApiError::new(503, "CacheTooManyPurges", text));
        }
    }
    Ok(object)
}

fn invalid(text: impl Into<String>) -> ApiError {
    ApiError::new(400, "CachePurgeFormatError", text)
}

/// A purge as it is requested.
struct Order {
    by: By,
    text: String,
    mode: PurgeMode,
}

#[derive(Clone, Copy)]
enum By {
    Key,
    Prefix,
    Tag,
}

impl Order {
    fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let json = || ApiError::new(415, "JsonError", "json error");
        let Value::Object(members) = serde_json::from_slice(body).map_err(|_| json())? else {
            return Err(json());
        };
        let (mut target, mut mode) = (None, PurgeMode::Hard);
        for (name, value) in members {
            let by = match (name.as_str(), &value) {
                ("key", _) => By::Key,
                ("prefix", _) => By::Prefix,
                ("tag", _) => By::Tag,
                ("soft", Value::Bool(is_soft)) => {
                    if *is_soft {
                        mode = PurgeMode::Soft;
                    }
                    continue;
                }
                _ => return Err(invalid(format!("unknown or invalid parameter \"{name}\""))),
            };
            let Value::String(text) = value else {
                return Err(invalid(format!("parameter \"{name}\" is not a string")));
            };
            if target.replace((by, text)).is_some() {
                return Err(invalid("more than one of key, prefix and tag"));
            }
        }
        let (by, text) = target.ok_or_else(|| invalid("key, prefix or tag is missing"))?;
        Ok(Self { by, text, mode })
    }
}
