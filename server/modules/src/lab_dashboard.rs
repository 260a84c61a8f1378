//! `lab_dashboard`: pages about recorded connections, made by the store process.
//!
//! A worker does not read the store. It passes requests over a UNIX-domain socket to the store process, by the same code as
//! `proxy_pass`, without buffering. The supervisor binds the socket, which its mode opens to the worker's user alone. Access
//! rules of the location apply; a location without any is an error. Fields with secrets of the client are not passed on.
//! Absent: the pages (`lab::web`).
//!
//! Source: docs/dashboard.md. nginx has no such directive.

use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use conf::{ConfError, Contexts, Directive};
use engines::http::{Escape, FieldId, Method, escape};
use server_base::errlog::Level;
use server_base::lab_store::DashboardSocket;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::location::LocationKind;
use server_http::module::{Content, Inherit, Module};
use server_http::reply;
use server_http::settings;
use server_http::settings_set::{Conf, inherited};
use server_http::upstream::conf::{NextUpstream, ResponseFields, Retry};
use server_http::upstream::{self, Gateway, Outgoing, Target, UpstreamConf};
use server_upstream::protocol::{self, ProtocolSpec};
use server_upstream::request::RequestSpec;
use server_upstream::route::{Timeouts, UpstreamAddr};

use crate::proxy::make_sendable;
use crate::{access, auth_basic, auth_request, rtt_map, ssl};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "lab_dashboard",
    directives: &[ROWS],
    settings: &[<DashboardMain as Conf>::def, <DashboardLoc as Conf>::def],
    finish: Some(finish),
    inherits: &[("lab_dashboard", Inherit::Blocks)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings that exist once.
    pub(crate) struct DashboardMain: Main / PLAIN_MAIN {}
    extra {
        /// All locations with a dashboard.
        dashboards: Vec<Dashboard>,
        /// The socket of the store process.
        socket: DashboardSocket,
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct DashboardLoc: Location / PLAIN_LOC {}
    extra {
        /// The name of the location, which is removed from paths.
        prefix: Option<Arc<[u8]>> = inherited,
    }
}

/// A location with a dashboard.
pub(crate) struct Dashboard {
    location: usize,
    /// `public`.
    is_public: bool,
    at: Directive,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Shows recorded connections to clients that the location allows; `public` allows all clients.
    directive "lab_dashboard": Contexts::LOCATION, TAKE01, "", "[public]" => lab_dashboard;
}

fn lab_dashboard(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let location = b.location();
    let draft = b.draft(location);
    let is_prefix = matches!(draft.kind, LocationKind::Prefix | LocationKind::PrefixOnly);
    if !is_prefix || !draft.name.ends_with(b"/") {
        let text = "needs a prefix location that ends with \"/\": its pages have relative links";
        return Err(ConfError::directive(d, text));
    }
    let prefix: Arc<[u8]> = draft.name.as_slice().into();
    draft.auto_redirect = true;
    let is_public = match d.args.first() {
        None => false,
        Some(word) if &*word.text == b"public" => true,
        Some(word) => return Err(ConfError::invalid(d, word)),
    };
    let main = b.conf_mut::<DashboardMain>();
    let is_set = main.dashboards.iter().any(|it| it.location == location);
    conf::once(d, is_set)?;
    main.dashboards.push(Dashboard {
        location,
        is_public,
        at: d.owned_head(),
    });
    b.conf_mut::<DashboardLoc>().prefix = Some(prefix);
    b.set_handler(handle);
    Ok(())
}

/// Returns the socket of the dashboard, if a location has one.
pub(crate) fn socket(b: &ConfigBuilder) -> Option<DashboardSocket> {
    let main = b.main_conf::<DashboardMain>();
    (!main.dashboards.is_empty()).then(|| main.socket.clone())
}

/// Checks that there is a store, and that each dashboard has access rules or is public.
fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    for Dashboard {
        location,
        is_public,
        at,
    } in &b.main_conf::<DashboardMain>().dashboards
    {
        if !rtt_map::has_store(b) {
            return Err(ConfError::directive(
                at,
                "needs a \"lab_store\" in \"http\"",
            ));
        }
        if !is_public && !is_guarded(b, *location) {
            let hint = "add \"allow\" and \"deny all\", \"auth_basic\", \"auth_request\" or \"ssl_verify_client on\", \
                        or write \"lab_dashboard public\"";
            let text = "shows the store to every client: its location has no access rule";
            return Err(ConfError::directive(at, text).with_hint(hint));
        }
    }
    Ok(())
}

/// Returns whether a location refuses some clients. Rules without `deny`, `satisfy` and optional certificates refuse nobody.
fn is_guarded(b: &ConfigBuilder, location: usize) -> bool {
    access::denies(b.location_conf(location))
        || auth_basic::is_on(b.location_conf(location))
        || auth_request::is_on(b.location_conf(location))
        || b.server_of(location).is_some_and(|server| {
            ssl::requires_certificate(b.server_conf(server)) && b.listens_by_tls_only(server)
        })
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !matches!(x.target.method, Method::Get | Method::Head) {
        return Content::Status(405);
    }
    match upstream::handle(x, cx, &StoreProcess) {
        Content::Status(status @ (500 | 502..=504)) => {
            unavailable(x, cx, status);
            Content::Sent
        }
        content => content,
    }
}

/// Sends a page if the store process is unavailable.
fn unavailable(x: &mut Exchange, cx: &mut Ctx<'_>, status: u16) {
    let reason = match status {
        500 => "The server has no free connection to the store process (worker_connections).",
        504 => "The store process does not answer. It may be busy with a large query.",
        _ => "The store process is not running, or it has just been restarted.",
    };
    let page = PAGE.replace("{}", reason);
    (x.reply.fields).push_id(FieldId::Other, b"Retry-After", b"5");
    (x.reply.fields).push_id(FieldId::CacheControl, b"Cache-Control", b"no-store");
    reply::text(
        x,
        cx,
        503,
        page.into_bytes(),
        Some(b"text/html; charset=utf-8"),
    );
}

/// The gateway to the store process.
struct StoreProcess;

impl Gateway for StoreProcess {
    fn conf<'h>(&self, _: &Exchange, _: &'h Http) -> &'h UpstreamConf {
        &CONF
    }

    fn target(&self, x: &mut Exchange, _: &mut Ctx<'_>) -> Result<Target, u16> {
        let path = x.route.http.main::<DashboardMain>().socket.path();
        let path = path.ok_or(500u16)?.as_os_str().as_bytes();
        Ok(Target::Addresses(vec![UpstreamAddr::Unix(path.into())]))
    }

    fn request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16> {
        let http = Rc::clone(&x.route.http);
        let prefix = x.loc::<DashboardLoc>(&http).prefix.as_deref();
        // A rewrite may have set another path.
        let Some(path) = prefix.and_then(|prefix| x.target.uri.strip_prefix(prefix)) else {
            let text = format_args!("the path is not below its location");
            x.log(Level::Error, text);
            return Err(404);
        };
        let mut target = b"/".to_vec();
        escape(path, Escape::Uri, &mut target);
        if !x.target.args.is_empty() {
            target.push(b'?');
            target.extend_from_slice(&x.target.args);
        }
        make_sendable(&mut target, 0);
        let method: &[u8] = match x.target.method {
            Method::Head => b"HEAD",
            _ => b"GET",
        };
        let mut fields = cx.connector.fields();
        fields.push_id(FieldId::Other, b":method", method);
        fields.push_id(FieldId::Other, b":path", &target);
        fields.push_id(FieldId::Host, b"Host", b"localhost");
        fields.push_id(FieldId::Connection, b"Connection", b"close");
        for field in &x.head.fields {
            let name = x.head.bytes(field.name);
            if PASSED
                .iter()
                .any(|passed| name.eq_ignore_ascii_case(passed))
            {
                fields.push_id(field.id, name, x.head.bytes(field.value));
            }
        }
        Ok(RequestSpec {
            fields,
            body: outgoing.body,
            ..RequestSpec::default()
        })
    }

    fn protocol(&self) -> &'static ProtocolSpec {
        &protocol::HTTP1
    }

    fn head_bytes(&self, _: &UpstreamConf) -> usize {
        HEAD_BYTES
    }

    fn takes_body(&self) -> bool {
        false
    }
}

/// Settings of the upstream connection. Nothing is buffered, so that events arrive at once.
static CONF: LazyLock<UpstreamConf> = LazyLock::new(|| UpstreamConf {
    timeouts: Timeouts {
        connect_ms: CONNECT_TIMEOUT_MS,
        send_ms: SEND_TIMEOUT_MS,
        read_ms: READ_TIMEOUT_MS,
    },
    retry: Retry {
        on: NextUpstream(NextUpstream::OFF),
        ..Retry::default()
    },
    fields: ResponseFields {
        hidden: vec![b"date"[..].into(), b"server"[..].into()].into(),
        ..ResponseFields::default()
    },
    ..UpstreamConf::default()
});

/// Names of request fields that are forwarded.
const PASSED: [&[u8]; 5] = [
    b"accept",
    b"accept-language",
    b"if-modified-since",
    b"if-none-match",
    b"last-event-id",
];

/// The page without the store process.
const PAGE: &str = "<!doctype html>\n<html lang=\"en\"><title>Dashboard unavailable</title>\n<h1>Dashboard unavailable</h1>\n<p>{}</p>\n";

/// Maximum size of the head of a response, bytes.
const HEAD_BYTES: usize = 16 << 10;
/// Time limit for the store process to accept a connection, and to read a request.
const CONNECT_TIMEOUT_MS: u64 = 5_000;
/// See [`CONNECT_TIMEOUT_MS`].
const SEND_TIMEOUT_MS: u64 = 5_000;
/// Time limit between two reads of a response. Event streams send a comment more often.
const READ_TIMEOUT_MS: u64 = 60_000;
