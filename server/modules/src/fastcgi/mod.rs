//! `fastcgi_pass`: requests are passed on to applications that speak FastCGI.
//!
//! ```text
//! conf   settings of a location      split   the name of a script and what follows it in the URI
//! ```
//!
//! Parameters are those of [`gateways`](crate::gateways); records are the engine's, servers and responses those of
//! [`server_http::upstream`]. Absent: a cache, and roles other than the responder's.
//!
//! Source: nginx documentation, `ngx_http_fastcgi_module`; FastCGI Specification 1.0.

mod conf;
mod split;

use ::conf::DirectiveDef;
use server_base::connector::UpstreamProtocol;
use server_base::errlog::{Level, Shown};
use server_base::upstream_request::RequestSpec;
use server_http::build::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::module::{Content, Module};
use server_http::upstream::conf::APPLICATION_NEXT_UPSTREAM;
use server_http::upstream::settings::finish;
use server_http::upstream::{self, Gateway, Note, Outgoing, Target, UpstreamConf, Verdict};
use server_http::upstream_rows;

use crate::gateways::params::{self, Encoding};
use crate::gateways::{PassesParams, pass};
use conf::FastCgiLoc;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "fastcgi",
    directives: &[
        conf::ROWS,
        conf::PLAIN,
        BASIC,
        CONNECTION,
        HEADERS,
        BUFFERED,
        SEND_LOWAT,
    ],
    settings: &[<FastCgiLoc as server_http::settings_set::Conf>::def],
    variables: split::VARIABLES,
    finish: Some(finish::<FastCgiLoc>),
    inherits: conf::INHERITS,
    ..Module::EMPTY
};

const BASIC: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(basic "fastcgi_" FastCgiLoc);
const CONNECTION: &[DirectiveDef<ConfigBuilder>] =
    upstream_rows!(connection "fastcgi_" FastCgiLoc, next_upstream APPLICATION_NEXT_UPSTREAM);
const HEADERS: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(headers "fastcgi_" FastCgiLoc);
const BUFFERED: &[DirectiveDef<ConfigBuilder>] =
    upstream_rows!(buffered "fastcgi_" FastCgiLoc, temp_path "fastcgi_temp 1 2");
const SEND_LOWAT: &[DirectiveDef<ConfigBuilder>] = upstream_rows!(send_lowat "fastcgi_" FastCgiLoc);

/// The content handler of locations with `fastcgi_pass`.
fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    upstream::handle(x, cx, &FastCgi)
}

/// The gateway of FastCGI.
struct FastCgi;

impl Gateway for FastCgi {
    fn conf<'h>(&self, x: &Exchange, http: &'h Http) -> &'h UpstreamConf {
        x.loc::<FastCgiLoc>(http).common().conf()
    }

    fn target(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16> {
        pass::target::<FastCgiLoc>(x, cx)
    }

    fn request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16> {
        let mut fields = cx.connector.fields();
        params::push::<FastCgiLoc>(x, cx, outgoing, &mut fields, (&ENCODING, 0))?;
        Ok(RequestSpec {
            fields,
            body: outgoing.body,
            ..RequestSpec::default()
        })
    }

    fn protocol(&self, x: &Exchange, http: &Http) -> UpstreamProtocol {
        let conf: &FastCgiLoc = x.loc(http);
        UpstreamProtocol::FastCgi {
            head_bytes: conf.common().head_bytes(),
            keep: *conf.keep_conn,
        }
    }

    fn note(&self, x: &Exchange, note: &Note<'_>) -> Verdict {
        let text = without_end(note.text);
        if note.loggable_bytes > 0 {
            let shown = &text[..text.len().min(note.loggable_bytes)];
            let (shown, action) = (Shown(shown), note.action);
            x.log(
                Level::Error,
                format_args!("FastCGI sent in stderr: \"{shown}\" while {action}"),
            );
        }
        let caught = &x.route.loc::<FastCgiLoc>().catch_stderr.0;
        match caught
            .iter()
            .any(|part| memchr::memmem::find(text, part).is_some())
        {
            true => Verdict::Invalid("sent in stderr what fastcgi_catch_stderr names"),
            false => Verdict::Pass,
        }
    }

    fn scheme(&self) -> &'static str {
        "fastcgi://"
    }
}

/// An application's error text, without the end of its last line.
fn without_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !b"\n\r. ".contains(byte));
    &text[..end.map_or(0, |at| at + 1)]
}

/// Lengths take a byte each, from 128 on four.
const ENCODING: Encoding = Encoding {
    overhead: |name, value| length_bytes(name) + length_bytes(value),
    too_big: "fastcgi request record",
};

fn length_bytes(length: usize) -> usize {
    if length > 127 { 4 } else { 1 }
}
