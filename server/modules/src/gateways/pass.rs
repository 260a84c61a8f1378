//! `*_pass`: the server or the group that receives requests.
//!
//! Source: nginx documentation, directive `fastcgi_pass`; nginx's rules for addresses.

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Directive};
use server_base::errlog::{Level, Printable, Shown};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::upstream::Target;
use server_http::value::Value;
use server_upstream::group::{GroupId, Groups};

use super::{Application, handle};
use crate::pass_address;

/// The target of a location.
#[derive(Debug)]
pub(crate) struct Pass {
    to: To,
    /// The default of `HTTP_HOST`: the selected host, not the client's text.
    pub(super) host: Value,
}

#[derive(Debug)]
enum To {
    /// An address without variables.
    Group(GroupId),
    /// An address with variables, computed for each request.
    Computed(Value),
}

/// `*_pass`.
pub(crate) fn set<C: Application>(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<C>().common().passes_on())?;
    b.set_handler(handle::<C>);
    let location = b.location();
    let draft = b.draft(location);
    draft.auto_redirect = draft.name.ends_with(b"/");
    let word = d.word(0);
    let value = Value::compile(b, d, word)?;
    let to = match value.constant() {
        None => To::Computed(value),
        Some(text) => {
            let group = fixed::<C>(b, d, text)?;
            b.draft(location).passes_to = Some(group);
            To::Group(group)
        }
    };
    let host = Value::compile_bytes(b, d, word, HOST)?;
    let pass = Arc::new(Pass { to, host });
    b.conf_mut::<C>().common_mut().pass = Some(pass);
    Ok(())
}

/// Returns the group of an address without variables.
fn fixed<C: Application>(
    b: &mut ConfigBuilder,
    d: &Directive,
    text: &[u8],
) -> Result<GroupId, ConfError> {
    let wrong = |text: String| ConfError::word(d, d.word(0), text);
    let address = C::address(text).map_err(|schema| {
        let name = d.name();
        wrong(format!(
            "\"{name}\" to \"{schema}\" is not built yet: TLS to servers is missing"
        ))
    })?;
    let parsed = pass_address::parse(address)
        .map_err(|why| wrong(format!("{why} in upstream \"{}\"", Shown(address))))?;
    b.conf_mut::<Groups>()
        .add(d, &parsed.host, parsed.port, C::PROTOCOL.default_port)
}

/// Returns the servers for a request.
///
/// # Errors
/// 500 if the computed address is invalid, which is logged.
pub(crate) fn target<C: Application>(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16> {
    let http = Rc::clone(&x.route.http);
    let pass = x.loc::<C>(&http).common().pass.as_deref();
    let value = match &pass.ok_or(500u16)?.to {
        To::Group(group) => return Ok(Target::Group(*group)),
        To::Computed(value) => value,
    };
    let text = value.to_vec(x, cx);
    let refuse = |x: &Exchange, text: String| {
        x.log(Level::Error, format_args!("{text}"));
        500
    };
    let address = C::address(&text).map_err(|schema| {
        let text = Printable(&text);
        refuse(x, format!("\"{schema}\" is not built yet in \"{text}\""))
    })?;
    let parsed = pass_address::parse(address)
        .map_err(|why| refuse(x, format!("{why} in upstream \"{}\"", Printable(address))))?;
    http.main::<Groups>()
        .target(&parsed.host, parsed.port, C::PROTOCOL.default_port)
        .map_err(|text| refuse(x, text))
}
/// nginx's value of `HTTP_HOST`.
const HOST: &[u8] = b"$host$is_request_port$request_port";
