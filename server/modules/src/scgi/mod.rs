//! `scgi_pass`: requests are passed on to applications that speak SCGI.
//!
//! Parameters are those of [`gateways`](crate::gateways), behind `CONTENT_LENGTH`, which comes first and is what is sent. Absent:
//! a cache.
//!
//! Source: nginx documentation, `ngx_http_scgi_module`; SCGI: A Simple Common Gateway Interface alternative, 2008.

mod conf;

use ::conf::DirectiveDef;
use engines::http::BodyLength;
use server_base::connector::UpstreamProtocol;
use server_base::upstream_request::RequestSpec;
use server_http::build::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::module::{Content, Module};
use server_http::reply::decimal;
use server_http::upstream::conf::APPLICATION_NEXT_UPSTREAM;
use server_http::upstream::settings::finish;
use server_http::upstream::{self, Gateway, Outgoing, Target, UpstreamConf};
use server_http::upstream_rows;

use crate::gateways::params::{self, Encoding};
use crate::gateways::{PassesParams, may_upgrade, pass};
use conf::ScgiLoc;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "scgi",
    directives: &[
        conf::ROWS,
        conf::PLAIN,
        BASIC,
        CONNECTION,
        HEADERS,
        BUFFERED,
    ],
    settings: &[<ScgiLoc as server_http::settings_set::Conf>::def],
    finish: Some(finish::<ScgiLoc>),
    inherits: conf::INHERITS,
    ..Module::EMPTY
};

const BASIC: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(basic "scgi_" ScgiLoc);
const CONNECTION: &[DirectiveDef<ConfigBuilder>] =
    upstream_rows!(connection "scgi_" ScgiLoc, next_upstream APPLICATION_NEXT_UPSTREAM);
const HEADERS: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(headers "scgi_" ScgiLoc);
const BUFFERED: &[DirectiveDef<ConfigBuilder>] =
    upstream_rows!(buffered "scgi_" ScgiLoc, temp_path "scgi_temp 1 2");

/// The content handler of locations with `scgi_pass`.
fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    upstream::handle(x, cx, &Scgi)
}

/// The gateway of SCGI.
struct Scgi;

impl Gateway for Scgi {
    fn conf<'h>(&self, x: &Exchange, http: &'h Http) -> &'h UpstreamConf {
        x.loc::<ScgiLoc>(http).common().conf()
    }

    fn target(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16> {
        pass::target::<ScgiLoc>(x, cx)
    }

    fn request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16> {
        let mut fields = cx.connector.fields();
        // What is sent is what it says, whatever the client said: an application waits for so much.
        let length = match outgoing.body {
            BodyLength::Length(length) => length,
            BodyLength::None | BodyLength::Unknown => 0,
        };
        let mut digits = [0; 20];
        let length = decimal(length, &mut digits);
        params::push_one(&mut fields, b"CONTENT_LENGTH", false, |out| {
            out.extend_from_slice(length);
        });
        params::push::<ScgiLoc>(x, cx, outgoing, &mut fields, (&ENCODING, 0))?;
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
        UpstreamProtocol::Scgi {
            head_bytes: x.loc::<ScgiLoc>(http).common().head_bytes(),
        }
    }

    fn scheme(&self) -> &'static str {
        "scgi://"
    }
}

/// Names and values end with a NUL each.
const ENCODING: Encoding = Encoding {
    overhead: |_, _| 2,
    too_big: "scgi request",
};
