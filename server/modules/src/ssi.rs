//! `ssi` and its companions: commands in pages (Server Side Includes).
//!
//! The commands are `include`, `echo`, `config`, `set`, `if`, `elif`, `else`, `endif`, `block` and `endblock`. The
//! parser keeps its state across chunks ([`parse`]). Commands are in [`command`]. Included bodies are inserted like
//! those of all subrequests. The memory for variables and blocks of a request is bounded.
//!
//! Source: nginx documentation, `ngx_http_ssi_module`.

mod command;
mod expand;
mod parse;
mod shared;
mod stage;
mod time;

use conf::{ConfError, Contexts};
use engines::http::Method;
use server_base::clock::utc_offset_s;
use server_base::from_args::Size;
use server_base::mime::{ALWAYS, MimeTypes};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::reply::change_content;
use server_http::settings;
use server_http::variables;

use stage::Stage;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "ssi",
    directives: &[PLAIN],
    settings: &[<SsiLoc as server_http::settings_set::Conf>::def],
    variables: variables! {
        "date_local": "the local time, in the format of the SSI command config"
            => |x, cx, _, out| put_date(x, cx, Some(utc_offset_s()), out);
        "date_gmt": "the time in GMT, in the format of the SSI command config"
            => |x, cx, _, out| put_date(x, cx, None, out);
    },
    header_stage: Some(stage),
    stage_of_subrequests: true,
    on_demand: true,
    finish: Some(finish),
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct SsiLoc: Location / PLAIN {
        /// Whether commands in pages are executed.
        ssi "ssi": bool = false, "off", Contexts::HTTP_TO_IF;
        /// Whether pages with commands keep their modification time, and their ETag as a weak one.
        last_modified "ssi_last_modified": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Whether failed commands have no output.
        silent_errors "ssi_silent_errors": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// The longest value of a command's parameter.
        value_length "ssi_value_length": Size = Size(256), "256", Contexts::HTTP_SERVER_LOCATION;
        /// Media types of responses with commands, besides text/html; * for all.
        types "ssi_types": MimeTypes = MimeTypes::of(&[ALWAYS]), "text/html", Contexts::HTTP_SERVER_LOCATION;
    }
}

/// Keeps variables available by name: pages may use variables that the configuration does not.
fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let any = b.location_confs_mut::<SsiLoc>().any(|conf| *conf.ssi);
    b.vars.by_name |= any;
    Ok(())
}

fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    let conf: &SsiLoc = x.route.loc();
    if !*conf.ssi || x.reply.content_length == Some(0) {
        return Ok(());
    }
    if !conf.types.matches(x.reply.content_type.media_type()) {
        return Ok(());
    }
    x.reply.forbid_ranges();
    change_content(&mut x.reply, *conf.last_modified);
    if x.head.method != Method::Head {
        let stage = Stage::new(conf.value_length.0 as usize, *conf.silent_errors);
        x.body.stages.push(Box::new(stage));
        x.join_subrequests();
    }
    Ok(())
}

/// `timefmt` of the current page, stored with the exchange.
#[derive(Debug, PartialEq, Eq)]
struct TimeFormat(Vec<u8>);

fn put_date(x: &Exchange, cx: &Ctx<'_>, offset_s: Option<i32>, out: &mut Vec<u8>) -> bool {
    let format = x.extensions.get::<TimeFormat>();
    let format = format.map_or(TIMEFMT, |format| format.0.as_slice());
    out.extend_from_slice(&time::format(cx.clock.unix_s(), offset_s, format));
    true
}

/// Default of `timefmt`.
const TIMEFMT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";
