//! The servers of a group: listed, added, changed and removed.
//!
//! A change is checked whole, then made at once for all threads. It stays over reloads until a new configuration changes
//! the server.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Upstream Server".

use std::sync::Arc;

use server_base::address::parse_endpoint;
use server_base::listen::MAX_UNIX_PATH;
use server_upstream::control::{AddError, ChangeError, ServerView};
use server_upstream::route::UpstreamAddr;
use server_upstream::server::{Server, UnresolvedHost, check_endpoint};
use server_upstream::shared::MemberId;

use super::error::ApiError;
use super::json::Json;
use super::server_params::{ServerParams, format_error};
use super::upstreams::SharedGroup;

/// Returns the servers of a group.
pub(super) fn list(group: &SharedGroup<'_>) -> Json {
    let views = group.peers.server_views();
    Json::List(views.iter().map(object).collect())
}

/// Returns a server of a group.
///
/// # Errors
/// There is none with this ID.
pub(super) fn one(group: &SharedGroup<'_>, id: &[u8]) -> Result<Json, ApiError> {
    let id = parse_id(id)?;
    view(group, id)
}

/// Adds a server. Returns its object.
///
/// # Errors
/// The reason. Nothing was changed.
pub(super) fn add(group: &SharedGroup<'_>, body: &[u8], version: u64) -> Result<Json, ApiError> {
    let params = ServerParams::parse(body, version, true)?;
    let missing = || format_error("missing \"server\" argument");
    let text = params.server.as_deref().ok_or_else(missing)?;
    let mut server = Server::new();
    set_address(&mut server, text, params.service.as_deref())?;
    if params.is_backup == Some(true) && !group.allows_backup() {
        let text = format!("upstream \"{}\" has no backup", group.name());
        return Err(ApiError::new(400, "UpstreamNoBackup", text));
    }
    check_slow_start(group, &params)?;
    apply(&params, &mut server);
    let added = group.peers.add_unique(server);
    let id = added.map_err(|error| match error {
        AddError::Exists => ApiError::new(409, "EntryExists", "entry exists"),
        AddError::Full => {
            let text = format!("upstream \"{}\" memory exhausted", group.name());
            ApiError::new(400, "UpstreamOutOfMemory", text)
        }
    })?;
    view(group, id)
}

/// Changes a server. Returns its object.
///
/// # Errors
/// The reason. Nothing was changed.
pub(super) fn change(
    group: &SharedGroup<'_>,
    id: &[u8],
    body: &[u8],
    version: u64,
) -> Result<Json, ApiError> {
    let id = parse_id(id)?;
    let params = ServerParams::parse(body, version, false)?;
    check_slow_start(group, &params)?;
    let known = find(group, id)?;
    let mut checked = known.server;
    if let Some(text) = &params.server {
        if known.parent.is_some() || checked.unresolved.is_some() {
            let text = format!("server \"{}\" address is immutable", id.0);
            return Err(ApiError::new(400, "UpstreamServerImmutable", text));
        }
        set_address(&mut checked, text, None)?;
        if checked.unresolved.is_some() {
            let text = "invalid \"server\" argument";
            return Err(ApiError::new(400, "UpstreamBadAddress", text));
        }
    }
    let changed = group.peers.change(id, |server| {
        if params.server.is_some() {
            server.name = Arc::clone(&checked.name);
            server.addresses.clone_from(&checked.addresses);
        }
        apply(&params, server);
    });
    changed.map_err(|error| match error {
        ChangeError::NotFound => not_found(id),
        ChangeError::Resolved => {
            let text = format!("server \"{}\" is immutable", id.0);
            ApiError::new(400, "UpstreamServerImmutable", text)
        }
    })?;
    view(group, id)
}

/// Refuses `slow_start` in a group with a method that does not support it, as the `server` directive does.
fn check_slow_start(group: &SharedGroup<'_>, params: &ServerParams) -> Result<(), ApiError> {
    match params.slow_start_ms.is_some_and(|ms| ms > 0) && !group.allows_backup() {
        true => {
            let text = "balancing method does not support \"slow_start\"";
            Err(ApiError::new(400, "UpstreamBadSlowStart", text))
        }
        false => Ok(()),
    }
}

/// Removes a server. Returns the list of the other servers.
///
/// # Errors
/// The reason. Nothing was changed.
pub(super) fn remove(group: &SharedGroup<'_>, id: &[u8]) -> Result<Json, ApiError> {
    let id = parse_id(id)?;
    let removed = group.peers.remove_server(id);
    removed.map_err(|error| match error {
        ChangeError::NotFound => not_found(id),
        ChangeError::Resolved => {
            let text = format!("server \"{}\" not removable", id.0);
            ApiError::new(400, "UpstreamServerImmutable", text)
        }
    })?;
    Ok(list(group))
}

fn parse_id(text: &[u8]) -> Result<MemberId, ApiError> {
    let id = conf::parse_number(text).and_then(|id| u32::try_from(id).ok());
    let invalid = || ApiError::new(400, "UpstreamBadServerId", "invalid server ID");
    id.map(MemberId).ok_or_else(invalid)
}

fn not_found(id: MemberId) -> ApiError {
    let text = format!("server with ID \"{}\" does not exist", id.0);
    ApiError::new(404, "UpstreamServerNotFound", text)
}

fn find(group: &SharedGroup<'_>, id: MemberId) -> Result<ServerView, ApiError> {
    let view = group.peers.server_view(id);
    view.ok_or_else(|| not_found(id))
}

fn view(group: &SharedGroup<'_>, id: MemberId) -> Result<Json, ApiError> {
    Ok(object(&find(group, id)?))
}

/// Sets the address of a server, or its host, which is resolved.
fn set_address(server: &mut Server, text: &str, service: Option<&str>) -> Result<(), ApiError> {
    let wrong = |why: &str| {
        let text = format!("{why} while parsing");
        ApiError::new(400, "UpstreamBadAddress", text)
    };
    server.name = Arc::from(text.as_bytes());
    server.addresses.clear();
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() || path.len() > MAX_UNIX_PATH || path.contains('\0') {
            return Err(wrong("invalid path"));
        }
        let path = Arc::from(path.as_bytes());
        server.addresses.push(UpstreamAddr::Unix(path));
    } else {
        let mut host = None;
        let mut find = |name: &str| {
            host = Some(name.to_owned());
            None
        };
        let found = check_endpoint(text);
        let found = found.and_then(|()| parse_endpoint(text, SERVER_PORT, &mut find));
        match (found, host) {
            (Ok(found), _) => server
                .addresses
                .extend(found.into_iter().map(UpstreamAddr::Inet)),
            (Err(_), Some(host)) => {
                // The port was valid, since it is parsed before the lookup.
                let port = text.split_once(':').map(|(_, port)| port);
                let has_port = port.is_some();
                let port = port.and_then(conf::parse_digits).unwrap_or(SERVER_PORT);
                if service.is_some() && has_port {
                    let text = format!("service upstream \"{text}\" may not have port");
                    return Err(ApiError::new(400, "UpstreamBadAddress", text));
                }
                server.unresolved = Some(UnresolvedHost::followed(&host, port, service));
            }
            (Err(why), None) => return Err(wrong(why)),
        }
    }
    if service.is_some() && server.unresolved.is_none() {
        let text = format!("service upstream \"{text}\" requires domain name");
        return Err(ApiError::new(400, "UpstreamBadAddress", text));
    }
    Ok(())
}

/// Sets the other parameters of a server.
fn apply(params: &ServerParams, server: &mut Server) {
    fn set<T: Copy>(place: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *place = value;
        }
    }
    set(&mut server.weight, params.weight);
    set(&mut server.max_conns, params.max_conns);
    set(&mut server.max_fails, params.max_fails);
    set(&mut server.fail_timeout_s, params.fail_timeout_s);
    set(&mut server.is_backup, params.is_backup);
    set(&mut server.is_down, params.is_down);
    set(&mut server.is_draining, params.is_draining);
    set(&mut server.slow_start_ms, params.slow_start_ms);
    if let Some(route) = &params.route {
        let route = Arc::from(route.as_bytes());
        server.route = Some(route).filter(|route: &Arc<[u8]>| !route.is_empty());
    }
}

fn object(view: &ServerView) -> Json {
    let server = &view.server;
    let addr = server.addresses.first().map(ToString::to_string);
    let name = || String::from_utf8_lossy(&server.name).into_owned();
    let mut object = Json::object([
        ("id", u64::from(view.id.0).into()),
        ("server", addr.unwrap_or_else(name).into()),
        ("weight", server.weight.unsigned_abs().into()),
        ("max_conns", server.max_conns.into()),
        ("max_fails", server.max_fails.into()),
        ("fail_timeout", format!("{}s", server.fail_timeout_s).into()),
        ("slow_start", time(server.slow_start_ms).into()),
        ("route", server.route.as_deref().unwrap_or_default().into()),
        ("backup", server.is_backup.into()),
        ("down", server.is_down.into()),
    ]);
    if server.is_draining {
        object.push("drain", true);
    }
    if let Some(service) = server
        .unresolved
        .as_ref()
        .and_then(|host| host.service.as_deref())
    {
        object.push("service", service);
    }
    if let Some(parent) = view.parent {
        object.push("parent", parent.0.to_string());
        object.push("host", name());
    }
    object
}

/// Returns a time as in the configuration, from milliseconds.
fn time(ms: u64) -> String {
    match ms % 1000 {
        0 => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

/// The port of a server without one.
const SERVER_PORT: u16 = 80;
