//! `api`: the state of the server as JSON, and changes of groups of servers without a new configuration.
//!
//! Paths, members and errors are those of nginx's API, as far as the server has their objects. A location with `api` needs
//! access rules of its own: the API checks nothing but `write=on`. A request is checked whole before it changes anything.
//! Absent: `slabs`, since no memory is shared between processes; `license`; `stream`; key-value pairs.
//!
//! Source: nginx documentation, `ngx_http_api_module`.

mod caches;
mod error;
mod general;
mod handshakes;
mod json;
mod limits;
mod path;
mod resolvers;
mod server_params;
mod upstream_servers;
mod upstreams;
mod zones;

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use engines::http::{BodyLength, Method, unescape};
use server_http::assemble::ConfigBuilder;
use server_http::builtin::random_id;
use server_http::conf_core::InFile;
use server_http::exchange::{Ctx, Exchange};
use server_http::location::LocationKind;
use server_http::module::{Content, Inherit, Module};
use server_http::request_body::{self, CollectOptions, Collected};
use server_http::settings_set::{Conf, inherited};
use server_http::status_zones::StatusZone;
use server_http::{reply, settings};

use crate::status_zone::StatusZoneMain;
use error::ApiError;
use json::Json;
use limits::LimitKind;
use path::{Endpoint, VERSIONS, http_names, root_names};
use upstreams::{SharedGroup, shared_group, shared_groups};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "api",
    directives: &[ROWS],
    settings: &[<ApiLoc as Conf>::def],
    inherits: &[("api", Inherit::Blocks)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct ApiLoc: Location / PLAIN_LOC {}
    extra {
        /// `api`.
        api: Option<Arc<Api>> = inherited,
    }
}

/// One `api`.
pub(crate) struct Api {
    /// The name of the location, which precedes the path of the API.
    prefix: Vec<u8>,
    is_writable: bool,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Answers with the state of the server as JSON; with write=on, requests may change groups of servers and reset counters.
    directive "api": Contexts::LOCATION, TAKE01, "write=off", "[write=on | off]" => api;
}

fn api(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let is_writable = match d.args.first() {
        None => false,
        Some(word) => match word.text.as_slice() {
            b"write=on" => true,
            b"write=off" => false,
            _ => return Err(ConfError::parameter(d, word)),
        },
    };
    let location = b.location();
    let draft = b.draft(location);
    let prefix = match draft.kind {
        LocationKind::Prefix | LocationKind::PrefixOnly | LocationKind::Exact => draft.name.clone(),
        _ => {
            let text = "needs a location with a prefix, after which the paths of the API begin";
            return Err(ConfError::directive(d, text));
        }
    };
    let loc = b.conf_mut::<ApiLoc>();
    conf::once(d, loc.api.is_some())?;
    loc.api = Some(Arc::new(Api {
        prefix,
        is_writable,
    }));
    b.set_handler(handle);
    Ok(())
}

/// A response of the API.
enum Answer {
    /// A JSON document with a status.
    Json(u16, Json),
    /// A change without a result.
    Done,
    /// The request body is still coming.
    Wait,
    /// The request body cannot be had; the status.
    Refused(u16),
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let http = Rc::clone(&x.route.http);
    let Some(api) = &x.loc::<ApiLoc>(&http).api else {
        return Content::Declined;
    };
    let uri = x.target.uri.clone();
    let path = uri.strip_prefix(api.prefix.as_slice()).unwrap_or(&uri);
    let (version, endpoint) = Endpoint::find(path);
    let answer = endpoint.and_then(|endpoint| respond(x, cx, api, version, endpoint));
    match answer {
        Ok(Answer::Json(status, json)) => send(x, cx, status, &json),
        Ok(Answer::Done) => Content::Status(204),
        Ok(Answer::Wait) => Content::Wait,
        Ok(Answer::Refused(status)) => Content::Status(status),
        Err(error) => {
            let id = *x.vars.request_id.get_or_insert_with(random_id);
            let id = u128::from_be_bytes(id);
            send(
                x,
                cx,
                error.status,
                &error.body(version, &format!("{id:032x}")),
            )
        }
    }
}

fn send(x: &mut Exchange, cx: &mut Ctx<'_>, status: u16, json: &Json) -> Content {
    let body = json.text().into_bytes();
    reply::text(x, cx, status, body, Some(b"application/json"));
    Content::Sent
}

/// Answers a request for an endpoint.
fn respond(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    api: &Api,
    version: u64,
    endpoint: Endpoint<'_>,
) -> Result<Answer, ApiError> {
    let method = x.target.method;
    if matches!(method, Method::Get | Method::Head) {
        let mut json = get(x, cx, version, endpoint)?;
        keep_fields(&mut json, &x.target.args, endpoint);
        return Ok(Answer::Json(200, json));
    }
    if !api.is_writable || !endpoint.may_change(method) {
        return Err(ApiError::method_disabled());
    }
    match endpoint {
        _ if method == Method::Delete => delete(x, cx, endpoint),
        Endpoint::Servers(name) | Endpoint::Server(name, _) => {
            // Before the body, so that a wrong name costs no body.
            let http = Rc::clone(&x.route.http);
            let group = shared_group(&http, name)?;
            match body(x, cx)? {
                Body::Wait => Ok(Answer::Wait),
                Body::Refused(status) => Ok(Answer::Refused(status)),
                Body::Whole(bytes) => write(&group, endpoint, &bytes, version),
            }
        }
        Endpoint::Caches(Some(name)) => match body(x, cx)? {
            Body::Wait => Ok(Answer::Wait),
            Body::Refused(status) => Ok(Answer::Refused(status)),
            Body::Whole(bytes) => {
                let http = Rc::clone(&x.route.http);
                Ok(Answer::Json(
                    200,
                    caches::purge(&http, name, &bytes, cx.clock.unix_s())?,
                ))
            }
        },
        _ => Err(ApiError::method_disabled()),
    }
}

/// Adds or changes a server.
fn write(
    group: &SharedGroup<'_>,
    endpoint: Endpoint<'_>,
    body: &[u8],
    version: u64,
) -> Result<Answer, ApiError> {
    match endpoint {
        Endpoint::Server(_, id) => {
            let changed = upstream_servers::change(group, id, body, version)?;
            Ok(Answer::Json(200, changed))
        }
        _ => Ok(Answer::Json(
            201,
            upstream_servers::add(group, body, version)?,
        )),
    }
}

/// The progress of a request body.
enum Body {
    /// It is still coming.
    Wait,
    /// It cannot be had; the status.
    Refused(u16),
    /// All of it.
    Whole(Vec<u8>),
}

/// Collects the body, which must fit into `client_body_buffer_size`.
fn body(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Body, ApiError> {
    let most = x.route.core_loc().bodies.client_body_buffer_size.0;
    if matches!(x.head.body, BodyLength::Length(bytes) if bytes > most) {
        return Ok(Body::Refused(413));
    }
    let options = CollectOptions {
        in_file: InFile::Off,
        mode: 0o600,
        log: None,
        most: Some(most),
    };
    match request_body::collect(x, cx, &options) {
        Collected::Wait => return Ok(Body::Wait),
        Collected::Status(status) => return Ok(Body::Refused(status)),
        Collected::Done => {}
    }
    let unread = || ApiError::new(400, "BodyReadError", "reading request body failed");
    let is_empty = x.body_size().is_none_or(|size| size == 0);
    match x.body_bytes() {
        Some(bytes) => Ok(Body::Whole(bytes.to_vec())),
        None if is_empty => Ok(Body::Whole(Vec::new())),
        None => Err(unread()),
    }
}

/// Limits an object to the members in `fields`. For a collection they are members of its objects.
fn keep_fields(json: &mut Json, args: &[u8], endpoint: Endpoint<'_>) {
    let mut args = args.split(|b| *b == b'&');
    let Some(fields) = args.find_map(|arg| arg.strip_prefix(b"fields=")) else {
        return;
    };
    let mut decoded = Vec::new();
    unescape(fields, &mut decoded);
    let names: Vec<&[u8]> = decoded.split(|b| *b == b',').collect();
    match endpoint.is_collection() {
        true => json.keep_inner_fields(&names),
        false => json.keep_fields(&names),
    }
}

/// Returns the object of an endpoint.
fn get(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    version: u64,
    endpoint: Endpoint<'_>,
) -> Result<Json, ApiError> {
    let http = Rc::clone(&x.route.http);
    let zones: &StatusZoneMain = http.main();
    Ok(match endpoint {
        Endpoint::Versions => Json::List(VERSIONS.map(Json::Number).collect()),
        Endpoint::Root => Json::names(root_names(version)),
        Endpoint::Http => Json::names(http_names(version)),
        Endpoint::Nginx => general::nginx(x, cx),
        Endpoint::Connections => general::connections(),
        Endpoint::Ssl => general::ssl(version),
        Endpoint::Processes => general::processes(),
        Endpoint::Resolvers(name) => resolvers::get(name)?,
        Endpoint::Requests => general::requests(),
        Endpoint::Workers(None) => Json::List(vec![general::worker(cx)]),
        Endpoint::Workers(Some(id)) => {
            check_worker(id)?;
            general::worker(cx)
        }
        Endpoint::ServerZones(None) => {
            all_zones(&zones.servers, |zone| zones::server_zone(zone, version))
        }
        Endpoint::ServerZones(Some(name)) => zones::server_zone(server_zone(zones, name)?, version),
        Endpoint::LocationZones(None) => {
            all_zones(&zones.locations, |zone| zones::location_zone(zone, version))
        }
        Endpoint::LocationZones(Some(name)) => {
            zones::location_zone(location_zone(zones, name)?, version)
        }
        Endpoint::LimitConns(name) => LimitKind::Conn.get(&http, name)?,
        Endpoint::LimitReqs(name) => LimitKind::Req.get(&http, name)?,
        Endpoint::Caches(name) => caches::get(&http, name)?,
        Endpoint::Upstreams => {
            let groups = shared_groups(&http);
            let members = groups.map(|group| (group.name(), group.object(cx.clock, version)));
            Json::Object(members.collect())
        }
        Endpoint::Upstream(name) => shared_group(&http, name)?.object(cx.clock, version),
        Endpoint::Servers(name) => upstream_servers::list(&shared_group(&http, name)?),
        Endpoint::Server(name, id) => upstream_servers::one(&shared_group(&http, name)?, id)?,
    })
}

/// Resets the counters of an endpoint, or removes a server.
fn delete(x: &mut Exchange, cx: &mut Ctx<'_>, endpoint: Endpoint<'_>) -> Result<Answer, ApiError> {
    let http = Rc::clone(&x.route.http);
    let zones: &StatusZoneMain = http.main();
    match endpoint {
        Endpoint::Connections => general::reset_connections(),
        Endpoint::Ssl => general::reset_ssl(),
        Endpoint::Processes => general::reset_processes(),
        Endpoint::Resolvers(Some(name)) => resolvers::reset(name)?,
        Endpoint::LimitConns(Some(name)) => LimitKind::Conn.reset(&http, name)?,
        Endpoint::LimitReqs(Some(name)) => LimitKind::Req.reset(&http, name)?,
        Endpoint::Caches(Some(name)) => caches::reset(&http, name)?,
        Endpoint::Requests => general::reset_requests(),
        Endpoint::Workers(id) => {
            id.map_or(Ok(()), check_worker)?;
            general::reset_connections();
            general::reset_requests();
        }
        Endpoint::ServerZones(Some(name)) => server_zone(zones, name)?.reset(),
        Endpoint::LocationZones(Some(name)) => location_zone(zones, name)?.reset(),
        Endpoint::Upstream(name) => {
            let group = shared_group(&http, name)?;
            group.peers.reset_stats(cx.clock.mono_ms);
        }
        Endpoint::Server(name, id) => {
            let left = upstream_servers::remove(&shared_group(&http, name)?, id)?;
            return Ok(Answer::Json(200, left));
        }
        _ => return Err(ApiError::method_disabled()),
    }
    Ok(Answer::Done)
}

/// There is one worker process, with number 0.
fn check_worker(id: &[u8]) -> Result<(), ApiError> {
    match id {
        b"0" => Ok(()),
        _ => Err(ApiError::new(404, "WorkerNotFound", "worker not found")),
    }
}

fn all_zones(zones: &[Arc<StatusZone>], object: impl Fn(&StatusZone) -> Json) -> Json {
    let member = |zone: &Arc<StatusZone>| {
        let name = String::from_utf8_lossy(zone.name()).into_owned();
        (name, object(zone))
    };
    Json::Object(zones.iter().map(member).collect())
}

fn server_zone<'z>(zones: &'z StatusZoneMain, name: &[u8]) -> Result<&'z StatusZone, ApiError> {
    let error = || ApiError::new(404, "ServerZoneNotFound", "server zone not found");
    zone_named(&zones.servers, name).ok_or_else(error)
}

fn location_zone<'z>(zones: &'z StatusZoneMain, name: &[u8]) -> Result<&'z StatusZone, ApiError> {
    let error = || ApiError::new(404, "LocationZoneNotFound", "location zone not found");
    zone_named(&zones.locations, name).ok_or_else(error)
}

fn zone_named<'z>(zones: &'z [Arc<StatusZone>], name: &[u8]) -> Option<&'z StatusZone> {
    zones
        .iter()
        .map(|zone| &**zone)
        .find(|zone| zone.name() == name)
}
