//! `status_zone`: counts the requests of servers and locations, for `api`.
//!
//! A server counts each of its requests; TLS handshakes are counted by the driver. A location counts the requests that end
//! in it. Subrequests are not counted. The counters are in [`server_http::status_zones`].
//!
//! Source: nginx documentation, `ngx_http_api_module`, `status_zone`.

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Handler, Inherit, Module, Step};
use server_http::settings;
use server_http::settings_set::{Conf, inherited};
use server_http::status_zones::{EndedRequest, Processing, StatusZone, ZoneKind, attach};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "status_zone",
    directives: &[ROWS],
    settings: &[<StatusZoneMain as Conf>::def, <StatusZoneLoc as Conf>::def],
    handlers: &[Handler::PostRead(begin), Handler::Log(end)],
    on_demand: true,
    inherits: &[("status_zone", Inherit::Around)],
    ..Module::EMPTY
};

settings! {
    /// The zones of the configuration.
    pub(crate) struct StatusZoneMain: Main / PLAIN_MAIN {}
    extra {
        /// Zones of servers, in the order of their first use.
        servers: Vec<Arc<StatusZone>>,
        /// Zones of locations, in the order of their first use.
        locations: Vec<Arc<StatusZone>>,
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct StatusZoneLoc: Location / PLAIN_LOC {}
    extra {
        /// `status_zone` of a location; `Some(None)`: off.
        zone: Option<Option<Arc<StatusZone>>> = inherited,
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Counts requests of a server or a location in a zone that api shows; off ends it in a location.
    directive "status_zone": Contexts::SERVER.or(Contexts::LOCATION).or(Contexts::IF_IN_LOCATION), TAKE1, "", "zone"
        => status_zone;
}

fn status_zone(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let name = d.arg(0);
    if name.is_empty() {
        return Err(ConfError::invalid(d, d.word(0)));
    }
    if !b.in_server() {
        conf::once(d, b.conf_mut::<StatusZoneLoc>().zone.is_some())?;
        let zone = (name != b"off").then(|| known(b, ZoneKind::Location, name));
        b.conf_mut::<StatusZoneLoc>().zone = Some(zone);
        return Ok(());
    }
    let location = b.location();
    let server = b.server_of(location);
    let server = server.ok_or_else(|| ConfError::directive(d, "is outside any server"))?;
    conf::once(d, b.status_zones.contains_key(&server))?;
    let zone = known(b, ZoneKind::Server, name);
    b.status_zones.insert(server, zone);
    Ok(())
}

/// Returns the zone with this name, and adds it to the zones of the configuration.
fn known(b: &mut ConfigBuilder, kind: ZoneKind, name: &[u8]) -> Arc<StatusZone> {
    let main = b.conf_mut::<StatusZoneMain>();
    let zones = match kind {
        ZoneKind::Server => &mut main.servers,
        ZoneKind::Location => &mut main.locations,
    };
    if let Some(zone) = zones.iter().find(|zone| zone.name() == name) {
        return Arc::clone(zone);
    }
    let zone = attach(kind, name);
    zones.push(Arc::clone(&zone));
    zone
}

fn begin(x: &mut Exchange, _: &mut Ctx<'_>) -> Step {
    let http = Rc::clone(&x.route.http);
    if let Some(zone) = http.status_zone(x.route.server)
        && x.extensions.get::<Processing>().is_none()
    {
        x.extensions.push(zone.begin());
    }
    Step::Next
}

fn end(x: &mut Exchange, _: &mut Ctx<'_>) {
    // With log_subrequest.
    if x.is_subrequest() {
        return;
    }
    let http = Rc::clone(&x.route.http);
    let ended = EndedRequest {
        status: x.progress.header_sent.then(|| x.status()),
        received_bytes: x.input.bytes,
        sent_bytes: x.response.bytes_sent,
    };
    if let Some(zone) = http.status_zone(x.route.server) {
        if x.extensions.take::<Processing>().is_none() {
            // The request was refused before its phases.
            zone.count_request();
        }
        zone.end(&ended);
    }
    if let Some(Some(zone)) = &x.loc::<StatusZoneLoc>(&http).zone {
        zone.count_request();
        zone.end(&ended);
    }
}
