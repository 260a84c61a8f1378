//! `proxy_pass`: passes requests to HTTP/1 servers.
//!
//! ```text
//! conf       settings of a location          pass       proxy_pass: URL, group, what of the URI it replaces
//! fields     proxy_set_header, the client's  request    method, target and fields of a request
//! redirect   Location and Refresh            cookies    Set-Cookie
//! ```
//!
//! [`server_http::upstream`] handles servers, connections, responses and bodies, [`ssl::upstream`](crate::ssl::upstream)
//! the settings of TLS. Absent: HTTP/2 to servers.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; RFC 9110 section 7.6.

mod conf;
mod cookies;
mod fields;
mod pass;
mod redirect;
mod request;
mod variables;

use std::rc::Rc;
use std::sync::Arc;

use engines::http::ResponseHead;
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::module::{Content, Module};
use server_http::upstream::directives::HTTP_NEXT_UPSTREAM;
use server_http::upstream::settings::finish;
use server_http::upstream::{self, Gateway, Outgoing, Target, UpstreamConf, Verdict};
use server_http::upstream_rows;
use server_upstream::protocol::{self, ProtocolSpec};
use server_upstream::request::RequestSpec;
use server_upstream::route::ServerTls;

use crate::ssl::upstream::server_tls_rows;
use crate::{early_hints, ssl};
use conf::{HttpVersion, ProxyLoc};
use pass::{Pass, Schema};
pub(crate) use request::make_sendable;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "proxy",
    directives: &[
        conf::ROWS,
        conf::PLAIN,
        upstream_rows!(basic "proxy_" ProxyLoc),
        upstream_rows!(connection "proxy_" ProxyLoc, next_upstream HTTP_NEXT_UPSTREAM),
        upstream_rows!(headers "proxy_" ProxyLoc),
        upstream_rows!(buffered "proxy_" ProxyLoc, temp_path "proxy_temp 1 2"),
        upstream_rows!(
            cache "proxy_" ProxyLoc, use_stale HTTP_NEXT_UPSTREAM, key "$scheme$proxy_host$request_uri"
        ),
        upstream_rows!(http_cache "proxy_" ProxyLoc),
        upstream_rows!(send_lowat "proxy_" ProxyLoc),
        upstream_rows!(trailers "proxy_" ProxyLoc),
        server_tls_rows!("proxy_" ProxyLoc),
    ],
    settings: &[<ProxyLoc as server_http::settings_set::Conf>::def],
    variables: variables::VARIABLES,
    defaults: variables::DEFAULTS,
    finish: Some(|b| {
        finish::<ProxyLoc>(b)?;
        ssl::upstream::finish::<ProxyLoc>(b)
    }),
    inherits: conf::INHERITS,
    ..Module::EMPTY
};

/// The content handler of locations with `proxy_pass`.
pub(crate) fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    upstream::handle(x, cx, &Proxy)
}

/// The gateway of HTTP/1.
struct Proxy;

impl Gateway for Proxy {
    fn conf<'h>(&self, x: &Exchange, http: &'h Http) -> &'h UpstreamConf {
        x.loc::<ProxyLoc>(http).upstream.conf()
    }

    fn target(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16> {
        pass::target(x, cx)
    }

    fn request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16> {
        request::request(x, cx, outgoing)
    }

    fn cache_key(&self, x: &mut Exchange, _: &mut Ctx<'_>) -> Result<Vec<u8>, u16> {
        Ok(request::cache_key(x, &x.route.http))
    }

    fn has_body(&self, x: &Exchange, http: &Http) -> bool {
        x.loc::<ProxyLoc>(http).set_body.0.is_some()
    }

    fn body(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
        let http = Rc::clone(&x.route.http);
        let body = x.loc::<ProxyLoc>(&http).set_body.0.as_ref();
        body.map(|body| body.to_vec(x, cx))
    }

    fn sends_unknown_length(&self, x: &Exchange, http: &Http) -> bool {
        *x.loc::<ProxyLoc>(http).http_version == HttpVersion::V11
    }

    fn passes_hints(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> bool {
        early_hints::are_wanted(x, cx)
    }

    fn protocol(&self) -> &'static ProtocolSpec {
        &protocol::HTTP1
    }

    fn scheme(&self, x: &Exchange) -> &'static str {
        match pass::parts(x, &x.route.http) {
            Some(parts) => parts.schema.text(),
            None => self.protocol().scheme,
        }
    }

    fn tls(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Option<Arc<ServerTls>>, u16> {
        let http = Rc::clone(&x.route.http);
        let policy = x.loc::<ProxyLoc>(&http).tls.policy();
        let Some(policy) = policy else {
            return Ok(None);
        };
        let computed;
        let parts = match x.loc::<ProxyLoc>(&http).pass.as_deref() {
            Some(Pass::Fixed(fixed)) => &fixed.parts,
            _ => {
                computed = pass::parts(x, &http).cloned().unwrap_or_default();
                &computed
            }
        };
        match parts.schema {
            Schema::Http => Ok(None),
            Schema::Https => ssl::upstream::connect(policy, x, cx, &parts.host).map(Some),
        }
    }

    fn head(&self, x: &mut Exchange, cx: &mut Ctx<'_>, _: &ResponseHead) -> Verdict {
        redirect::rewrite(x, cx);
        cookies::rewrite(x, cx);
        Verdict::Pass
    }
}
