//! `uwsgi_pass`: requests are passed on to applications that speak uwsgi.
//!
//! Parameters are those of [`gateways`](crate::gateways). Absent: a cache, and TLS (`suwsgi://`).
//!
//! Source: nginx documentation, `ngx_http_uwsgi_module`; uWSGI documentation, "The uwsgi Protocol".

mod conf;

use std::rc::Rc;

use ::conf::DirectiveDef;
use engines::http::FieldId;
use server_base::connector::UpstreamProtocol;
use server_base::upstream_request::RequestSpec;
use server_http::build::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::module::{Content, Module};
use server_http::upstream::conf::APPLICATION_NEXT_UPSTREAM;
use server_http::upstream::settings::finish;
use server_http::upstream::{self, Gateway, Outgoing, Target, UpstreamConf};
use server_http::upstream_rows;

use crate::gateways::params::{self, Encoding};
use crate::gateways::{PassesParams, may_upgrade, pass};
use conf::UwsgiLoc;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "uwsgi",
    directives: &[
        conf::ROWS,
        conf::PLAIN,
        BASIC,
        CONNECTION,
        HEADERS,
        BUFFERED,
    ],
    settings: &[<UwsgiLoc as server_http::settings_set::Conf>::def],
    finish: Some(finish::<UwsgiLoc>),
    inherits: conf::INHERITS,
    ..Module::EMPTY
};

const BASIC: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(basic "uwsgi_" UwsgiLoc);
const CONNECTION: &[DirectiveDef<ConfigBuilder>] =
    upstream_rows!(connection "uwsgi_" UwsgiLoc, next_upstream APPLICATION_NEXT_UPSTREAM);
const HEADERS: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(headers "uwsgi_" UwsgiLoc);
const BUFFERED: &[DirectiveDef<ConfigBuilder>] =
    upstream_rows!(buffered "uwsgi_" UwsgiLoc, temp_path "uwsgi_temp 1 2");

/// The content handler of locations with `uwsgi_pass`.
fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    upstream::handle(x, cx, &Uwsgi)
}

/// The gateway of uwsgi.
struct Uwsgi;

impl Gateway for Uwsgi {
    fn conf<'h>(&self, x: &Exchange, http: &'h Http) -> &'h UpstreamConf {
        x.loc::<UwsgiLoc>(http).common().conf()
    }

    fn target(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16> {
        pass::target::<UwsgiLoc>(x, cx)
    }

    fn request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16> {
        let http = Rc::clone(&x.route.http);
        let string = &x.loc::<UwsgiLoc>(&http).string.0;
        let mut fields = cx.connector.fields();
        let more = (&ENCODING, string.len());
        params::push::<UwsgiLoc>(x, cx, outgoing, &mut fields, more)?;
        if !string.is_empty() {
            // Without a name: it is sent as it is.
            fields.push_id(FieldId::Other, b"", string);
        }
        Ok(RequestSpec {
            fields,
            body: outgoing.body,
            upgrade: may_upgrade(x, self.conf(x, &x.route.http)),
            ..RequestSpec::default()
        })
    }

    fn sends_unknown_length(&self, _: &Exchange, _: &Http) -> bool {
        false
    }

    fn protocol(&self, x: &Exchange, http: &Http) -> UpstreamProtocol {
        let conf: &UwsgiLoc = x.loc(http);
        UpstreamProtocol::Uwsgi {
            head_bytes: conf.common().head_bytes(),
            modifiers: [conf.modifier1.0 as u8, conf.modifier2.0 as u8],
        }
    }

    fn scheme(&self) -> &'static str {
        "uwsgi://"
    }
}

/// Lengths take two bytes each.
const ENCODING: Encoding = Encoding {
    overhead: |_, _| 4,
    too_big: "uwsgi request",
};
