//! Objects about the zones of resolvers (`status_zone` of `resolver`).
//!
//! Source: nginx documentation, `ngx_http_api_module`, "Resolver Zone".

use server_base::resolver_status::{Request, ResolverStatus, Response};

use super::error::ApiError;
use super::json::Json;

/// Returns the object about a zone, or about all zones.
///
/// # Errors
/// There is no zone with this name.
pub(super) fn get(name: Option<&[u8]>) -> Result<Json, ApiError> {
    if let Some(name) = name {
        return Ok(object(&find(name)?));
    }
    let zones = ResolverStatus::zones().into_iter();
    Ok(Json::Object(
        zones.map(|(name, zone)| (name, object(&zone))).collect(),
    ))
}

/// Resets the counts of a zone.
///
/// # Errors
/// There is no zone with this name.
pub(super) fn reset(name: &[u8]) -> Result<(), ApiError> {
    find(name)?.reset();
    Ok(())
}

fn find(name: &[u8]) -> Result<ResolverStatus, ApiError> {
    let mut zones = ResolverStatus::zones().into_iter();
    let found = zones.find(|(known, _)| known.as_bytes() == name);
    let missing = || ApiError::new(404, "ResolverZoneNotFound", "resolver zone not found");
    found.map(|(_, zone)| zone).ok_or_else(missing)
}

fn object(zone: &ResolverStatus) -> Json {
    let mut requests = Json::EMPTY;
    for (name, kind) in Request::ALL {
        requests.push(name, zone.requests(kind));
    }
    let mut responses = Json::EMPTY;
    for (name, kind) in Response::ALL {
        responses.push(name, zone.responses(kind));
    }
    Json::object([("requests", requests), ("responses", responses)])
}
