//! `http2_push`, `http2_push_preload`: pushes related resources before the client requests them.
//!
//! The pushes are selected with the response head. The protocol knows whether the client still accepts pushes, and how
//! many at a time. `http2_max_concurrent_pushes` belongs to the core.
//!
//! Absent: pushes of other origins, and of anything but GET.
//!
//! Source: nginx documentation, `ngx_http_v2_module`, as of 1.25.0; RFC 9113 section 8.4.

mod link;

use std::rc::Rc;

use conf::{ConfError, Contexts, Directive};
use engines::http::Method;
use server_base::errlog::{Level, Printable};
use server_base::shared_list::SharedList;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::value::Value;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "http2_push",
    directives: &[PLAIN, ROWS],
    settings: &[<PushLoc as server_http::settings_set::Conf>::def],
    header_stage: Some(stage),
    on_demand: true,
    ..Module::EMPTY
};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of the module.
    pub(crate) struct PushLoc: Location / PLAIN {
        /// Whether preloads of Link fields of responses are pushed over HTTP/2.
        preload "http2_push_preload": bool = false, "off", HSL;
    }
    extra {
        /// `http2_push`: an empty list for `off`.
        pushes: Option<SharedList<Value>> = inherited
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// A path that is pushed with responses over HTTP/2.
    directive "http2_push": HSL, TAKE1, "off", "uri | off" => push;
}

fn push(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let is_off = d.arg(0) == b"off";
    match &b.conf_mut::<PushLoc>().pushes {
        Some(list) if list.is_empty() && is_off => {
            return Err(ConfError::directive(d, "is duplicate"));
        }
        Some(list) if list.is_empty() => {
            let text = "URI cannot be used with \"off\" parameter";
            return Err(ConfError::directive(d, text));
        }
        Some(_) if is_off => {
            let text = "\"off\" parameter cannot be used with URI";
            return Err(ConfError::directive(d, text));
        }
        _ => {}
    }
    let value = (!is_off)
        .then(|| Value::compile(b, d, d.word(0)))
        .transpose()?;
    let pushes = &mut b.conf_mut::<PushLoc>().pushes;
    let pushes = pushes.get_or_insert_default();
    if let Some(value) = value {
        pushes.push(value);
    }
    Ok(())
}

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    if !x.client.may_push || x.head.method == Method::Head {
        return Ok(());
    }
    let http = Rc::clone(&x.route.http);
    let conf: &PushLoc = x.loc(&http);
    let mut targets = Vec::new();
    for value in conf.pushes.iter().flatten() {
        let target = value.to_vec(x, cx);
        if !target.is_empty() && target != b"off" {
            targets.push(target);
        }
    }
    if *conf.preload {
        let reply = &x.reply.fields;
        for field in &reply.fields {
            if reply.bytes(field.name).eq_ignore_ascii_case(b"link") {
                let found = |target: &[u8]| targets.push(target.to_vec());
                link::preloads(reply.bytes(field.value), found);
            }
        }
    }
    targets.retain(|target| is_path(x, target));
    if !targets.is_empty() {
        x.response.early_responses.get_or_insert_default().pushes = targets;
    }
    Ok(())
}

/// Whether a link target is a path on this server.
fn is_path(x: &Exchange, target: &[u8]) -> bool {
    let is_path = target.starts_with(b"/");
    if !is_path {
        let shown = Printable(target);
        let text = format_args!("non-absolute path \"{shown}\" not pushed");
        x.log(Level::Warn, text);
    }
    is_path
}
