//! `auth_request`, `auth_request_set`: a subrequest decides whether a request is allowed.
//!
//! A status from 200 to 299 allows it, 401 and 403 refuse it, any other is an error. The access phase waits while the
//! subrequest does. As in nginx the subrequest itself goes through no access phase.
//!
//! Source: nginx documentation, `ngx_http_auth_request_module`.

use std::rc::Rc;

use conf::{ConfError, Contexts, Directive};
use engines::http::FieldId;
use server_base::errlog::Level;
use server_http::assemble::ConfigBuilder;
use server_http::debug_http;
use server_http::exchange::{Answer, Ctx, Exchange};
use server_http::module::{Access, Handler, Module};
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::value::Value;
use server_http::vars::Target;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "auth_request",
    directives: &[PLAIN, ROWS],
    settings: &[<AuthRequestLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Access(check)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct AuthRequestLoc: Location / PLAIN {}
    extra {
        /// `auth_request`; `Some(None)` is "off".
        uri: Option<Option<Vec<u8>>> = inherited,
        /// `auth_request_set`.
        assignments: Vec<(Target, Value)> = inherited
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// URI of a subrequest; its status decides whether the request is allowed.
    directive "auth_request": Contexts::HTTP_SERVER_LOCATION, TAKE1, "off", "uri | off" => auth_request;

    /// Sets a variable after that subrequest, to a value that may have its variables.
    directive "auth_request_set": Contexts::HTTP_SERVER_LOCATION, TAKE2, "", "$variable value"
        => auth_request_set;
}

fn auth_request(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let conf = b.conf_mut::<AuthRequestLoc>();
    conf::once(d, conf.uri.is_some())?;
    conf.uri = Some(match d.arg(0) {
        b"off" | b"" => None,
        uri => Some(uri.to_vec()),
    });
    Ok(())
}

fn auth_request_set(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let Some(name) = d.arg(0).strip_prefix(b"$").filter(|name| !name.is_empty()) else {
        let text = format!("invalid variable name \"{}\"", d.arg_str(0));
        return Err(ConfError::word(d, d.word(0), text));
    };
    let target = b.vars.quiet_target(name);
    let target = target.map_err(|text| ConfError::word(d, d.word(0), text))?;
    let value = Value::compile(b, d, d.word(1))?;
    let assignments = &mut b.conf_mut::<AuthRequestLoc>().assignments;
    assignments.push((target, value));
    Ok(())
}

/// Returns whether a subrequest decides.
pub(crate) fn is_on(conf: &AuthRequestLoc) -> bool {
    matches!(conf.uri, Some(Some(_)))
}

fn check(x: &mut Exchange, cx: &mut Ctx<'_>) -> Access {
    let http = Rc::clone(&x.route.http);
    let conf: &AuthRequestLoc = x.loc(&http);
    let Some(Some(uri)) = &conf.uri else {
        return Access::NoOpinion;
    };
    debug_http!(x, "auth request handler");
    let mut answer = match x.ask(cx, uri, b"") {
        // `None`: the exchange has ended.
        Answer::Wait | Answer::None => return Access::Wait,
        Answer::Head(answer) => answer,
    };
    for (target, value) in &conf.assignments {
        let value = x.with_parent_state(&mut answer, |answer| value.to_vec(answer, cx));
        match target {
            Target::Slot(slot) => x.vars.set_slot(*slot, Some(value)),
            Target::Builtin(write) => write(x, &value),
        }
    }
    match answer.reply.status {
        200..=299 => Access::Allow,
        401 => {
            let name = b"www-authenticate";
            let sent = answer.reply.fields.named(name).next().is_some();
            let upstream = answer.upstream.as_ref();
            // If an error page replaced the response of a server, the challenge of that response is still used.
            let of_server = upstream.and_then(|upstream| upstream.head.as_deref());
            let head = match of_server {
                Some(head) if !sent => head,
                _ => &answer.reply.fields,
            };
            for challenge in head.named(name) {
                let fields = &mut x.reply.fields;
                fields.push_id(FieldId::WwwAuthenticate, b"WWW-Authenticate", challenge);
            }
            Access::Deny(401)
        }
        403 => Access::Deny(403),
        status => {
            let text = format_args!("auth request unexpected status: {status}");
            x.log(Level::Error, text);
            Access::Deny(500)
        }
    }
}
