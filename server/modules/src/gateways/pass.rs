//! `*_pass`: the server or the group that receives requests.
//!
//! Source: nginx documentation, directive `fastcgi_pass`; nginx's rules for addresses.

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Directive};
use server_base::errlog::{Level, Printable, Shown};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::upstream::Target;
use server_http::value::Value;
use server_upstream::group::{GroupId, Groups};

use super::{Application, Transport, handle};
use crate::pass_address;

/// The way to the server of a target.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(super) transport: Transport,
    /// Its host, for TLS.
    pub(super) host: Box<[u8]>,
}

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
    Group(GroupId, Way),
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
            let (group, way) = fixed::<C>(b, d, text)?;
            b.draft(location).passes_to = Some(group);
            To::Group(group, way)
        }
    };
    let host = Value::compile_bytes(b, d, word, HOST)?;
    let pass = Arc::new(Pass { to, host });
    b.conf_mut::<C>().common_mut().pass = Some(pass);
    Ok(())
}

impl Pass {
    /// Whether requests may use TLS: an address with variables may have any scheme.
    pub(super) fn may_use_tls(&self) -> bool {
        match &self.to {
            To::Group(_, way) => way.transport != Transport::Plain,
            To::Computed(_) => true,
        }
    }
}

/// Returns the group of an address without variables, and the way to it.
fn fixed<C: Application>(
    b: &mut ConfigBuilder,
    d: &Directive,
    text: &[u8],
) -> Result<(GroupId, Way), ConfError> {
    let wrong = |text: String| ConfError::word(d, d.word(0), text);
    let (transport, address) = C::address(text);
    let parsed = pass_address::parse(address)
        .map_err(|why| wrong(format!("{why} in upstream \"{}\"", Shown(address))))?;
    let group =
        b.conf_mut::<Groups>()
            .add(d, &parsed.host, parsed.port, C::PROTOCOL.default_port)?;
    Ok((group, Way::new(transport, parsed.host)))
}

impl Way {
    fn new(transport: Transport, host: String) -> Self {
        // The default name of a server behind a socket of the system is the one of `proxy_pass`.
        let host = match host.starts_with("unix:") {
            true => "localhost".into(),
            false => host,
        };
        Self {
            transport,
            host: host.into_bytes().into(),
        }
    }
}

/// Returns the way of the exchange's target. An address with variables has none before [`target`] has run.
pub(super) fn way<'x, C: Application>(x: &'x Exchange, http: &'x Http) -> Option<&'x Way> {
    match &x.loc::<C>(http).common().pass.as_deref()?.to {
        To::Group(_, way) => Some(way),
        To::Computed(_) => x.extensions.get::<Way>(),
    }
}

/// Returns the servers for a request.
///
/// # Errors
/// 500 if the computed address is invalid, which is logged.
pub(crate) fn target<C: Application>(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16> {
    let http = Rc::clone(&x.route.http);
    let pass = x.loc::<C>(&http).common().pass.as_deref();
    let value = match &pass.ok_or(500u16)?.to {
        To::Group(group, _) => return Ok(Target::Group(*group)),
        To::Computed(value) => value,
    };
    let text = value.to_vec(x, cx);
    let refuse = |x: &Exchange, text: String| {
        x.log(Level::Error, format_args!("{text}"));
        500_u16
    };
    let (transport, address) = C::address(&text);
    let parsed = pass_address::parse(address)
        .map_err(|why| refuse(x, format!("{why} in upstream \"{}\"", Printable(address))))?;
    let target = http
        .main::<Groups>()
        .target(&parsed.host, parsed.port, C::PROTOCOL.default_port)
        .map_err(|text| refuse(x, text))?;
    // A pass before an internal redirect may have left a way.
    if transport != Transport::Plain || x.extensions.get::<Way>().is_some() {
        x.extensions.set(Way::new(transport, parsed.host));
    }
    Ok(target)
}

/// nginx's value of `HTTP_HOST`.
const HOST: &[u8] = b"$host$is_request_port$request_port";
